//! Reads while entries expire: the article's second and fourth table, as it ran them and fairly.
//!
//! The article fills a cache with TTLs of 30 + i % 30 s and has ten readers read for ten seconds, each one
//! key of its own, with 10 ms of sleep between two reads. No TTL ends within those ten seconds: what its
//! wheel's table shows is a wheel in which nothing expires.
//!
//! The fair run has the same fill, the same readers and the same TTLs, but for the first one, which is
//! chosen so that all is filled and calm before it ends. Its window begins when all classes of TTLs fall due
//! side by side, so that a thirtieth of the entries expires in each second of it. Readers draw keys
//! uniformly. They are an open loop: a read that could not begin in time, because the one before it was held
//! up, counts from when it should have begun (the article's readers are a closed loop, and so are they in
//! the run after the article). How late a sleeping reader is woken is not the cache's doing and
//! does not count. The control is the same cache with the same readers in the seconds before the first
//! deadline.

use std::fmt::Write as _;
use std::sync::Arc;
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use serde_json::json;

use super::scan::TTLS;
use crate::caches::kind::{Kind, Settings};
use crate::caches::subject::{Key, Subject, Sweeps, Value};
use crate::clock;
use crate::heap;
use crate::latency::{Latencies, Summary};
use crate::proc::{CpuMeter, OwnNoiseMeter, rss_bytes};
use crate::report::{Curve, Figures, Report};
use crate::rng::Rng;

pub(super) const NAME: &str = "expiry readers";
const SECOND_NS: u64 = 1_000_000_000;
/// From the last insert to the first read that counts.
const CALM_NS: u64 = 300_000_000;
const LOOK_NS: u64 = 100_000_000;
const ATTEMPTS: usize = 4;
/// A fill takes at least as long as the step from one TTL to the next, else they fall due in bursts.
const STEP_NS: u64 = SECOND_NS;
/// Entries between two looks at how far the fill is ahead of its pace.
const FILL_STRIDE: u64 = 64;

type Cache = Arc<dyn Subject<String, [u8; 32]>>;

/// How one table is measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) entries: u64,
    /// As the article ran it, or with expiry going on.
    pub(super) fair: bool,
    pub(super) readers: usize,
    pub(super) pace: Duration,
    /// The shortest TTL.
    pub(super) lead_ns: u64,
    /// How long reads are recorded; a fair window ends where fewer expire, if that is earlier.
    pub(super) window_ns: u64,
    pub(super) seed: u64,
}

/// What one part of a run found.
#[derive(Debug)]
struct Phase {
    reads: Summary,
    hits: u64,
    cpu_ns: Option<u64>,
    length_ns: u64,
}

#[derive(Debug)]
struct Found {
    fill_ns: u64,
    rss_per_entry: Option<f64>,
    control: Option<Phase>,
    window: Phase,
    /// Entries whose deadline lies in the window.
    due: u64,
    /// Seconds since the first deadline, dead entries held.
    held: Vec<[f64; 2]>,
    sweeps: Option<Sweeps>,
}

pub(super) fn cell_as_run(entries: u64) -> String {
    format!("{entries} entries, as the article ran it: nothing expires")
}

pub(super) fn cell_fair(entries: u64) -> String {
    format!("{entries} entries, a thirtieth of them expires each second")
}

pub(super) fn measure(kind: Kind, plan: &Plan) -> Result<Report> {
    let noise = OwnNoiseMeter::start();
    let start_ns = clock::mono_ns();
    let mut lead_ns = plan.lead_ns;
    let mut found = None;
    for attempts in 0..ATTEMPTS {
        found = attempt(kind, plan, lead_ns)?;
        if let Some(found) = &mut found {
            // The allocator kept pages of what an earlier attempt had filled.
            found.rss_per_entry = found.rss_per_entry.filter(|_| attempts == 0);
            break;
        }
        lead_ns = lead_ns.saturating_mul(2);
    }
    let found = found.context("the fill did not end before the first deadline")?;
    let wall_ns = clock::mono_ns() - start_ns;
    let params = json!({
        "entries": plan.entries,
        "mode": if plan.fair { "expiring" } else { "as the article ran it" },
        "readers": plan.readers,
        "pace_ms": plan.pace.as_secs_f64() * 1e3,
        "shortest_ttl_s": lead_ns as f64 / 1e9,
        "ttls": TTLS,
        "seed": plan.seed,
        "counting_allocator": heap::COUNTED,
    });
    let mut report = Report::new(NAME, None, params);
    report.subject = kind.to_string();
    report.version = kind.version().to_owned();
    report.cell = match plan.fair {
        true => cell_fair(plan.entries),
        false => cell_as_run(plan.entries),
    };
    figures(&mut report.figures, &found);
    report.figures.push_noise(noise.others_ns(), wall_ns);
    if plan.fair && !found.held.is_empty() {
        report.curves.push(Curve {
            key: "held".to_owned(),
            label: "dead entries held".to_owned(),
            axes: [
                "time since the first deadline, s".to_owned(),
                "dead entries held".to_owned(),
            ],
            points: found.held,
        });
    }
    Ok(report.finish())
}

/// `None` when the fill did not leave the time that the control takes.
fn attempt(kind: Kind, plan: &Plan, lead_ns: u64) -> Result<Option<Found>> {
    let settings = Settings {
        capacity: usize::try_from(plan.entries + plan.entries / 4)?,
    };
    let own = std::process::id();
    // Touched before memory is looked at: it is not the cache's.
    let mut deadlines_ms = vec![1_u32; usize::try_from(plan.entries)?];
    let rss_before = rss_bytes(own);
    let cache: Cache = Arc::from(kind.build::<String, [u8; 32]>(&settings)?);
    let start_ns = clock::mono_ns();
    fill(cache.as_ref(), plan, (start_ns, lead_ns), &mut deadlines_ms);
    cache.settle();
    let fill_ns = clock::mono_ns() - start_ns;
    deadlines_ms.sort_unstable();
    let filled_ns = clock::mono_ns();
    let first_ns = start_ns + lead_ns;
    let control_ns = if plan.fair {
        plan.window_ns.min(10 * SECOND_NS)
    } else {
        0
    };
    if plan.fair && filled_ns + CALM_NS + control_ns / 2 > first_ns {
        return Ok(None);
    }
    let rss = rss_before
        .zip(rss_bytes(own))
        .map(|(then, now)| now.saturating_sub(then));
    // All classes of TTLs fall due side by side from the end of the first one's to the beginning of the last.
    let full_ns = first_ns + fill_ns;
    let window = match plan.fair {
        true => {
            let steady_ns = (TTLS * STEP_NS).saturating_sub(fill_ns).max(STEP_NS);
            (full_ns, full_ns + plan.window_ns.min(steady_ns))
        }
        false => (filled_ns + CALM_NS, filled_ns + CALM_NS + plan.window_ns),
    };
    let control_from_ns = (filled_ns + CALM_NS).max(first_ns.saturating_sub(control_ns));
    let control = plan.fair.then_some((control_from_ns, first_ns));
    if !plan.fair && window.1 > first_ns {
        return Ok(None);
    }
    let windows: Vec<(u64, u64)> = control.into_iter().chain([window]).collect();

    let mut cpu = CpuMeter::new(own);
    let mut cpu_ns = Vec::new();
    let mut held = Vec::new();
    let passes = thread::scope(|scope| -> Result<_> {
        let readers = start_readers(scope, cache.as_ref(), plan, &windows)?;
        for &(from_ns, to_ns) in &windows {
            clock::sleep_until(from_ns);
            let before = cpu.read_ns();
            let expiring = from_ns >= first_ns;
            let mut look_ns = from_ns;
            while look_ns < to_ns {
                clock::sleep_until(look_ns);
                let now_ns = clock::mono_ns();
                // In the control too, so that what a look costs is not the expiry's.
                if let Some(stored) = cache.held()
                    && expiring
                {
                    let past = now_ns.saturating_sub(start_ns) / 1_000_000;
                    let dead = deadlines_ms.partition_point(|&ms| u64::from(ms) <= past);
                    let alive = deadlines_ms.len() - dead;
                    let since_s = now_ns.saturating_sub(first_ns) as f64 / 1e9;
                    held.push([since_s, stored.saturating_sub(alive) as f64]);
                }
                // A look that had to wait is not made up for: all is clean after a walk.
                let late_ns = clock::mono_ns().saturating_sub(look_ns);
                look_ns += (late_ns / LOOK_NS + 1) * LOOK_NS;
            }
            clock::sleep_until(to_ns);
            cpu_ns.push(before.zip(cpu.read_ns()).map(|(then, now)| now - then));
        }
        let mut sum: Vec<(Latencies, u64)> =
            windows.iter().map(|_| (Latencies::new(), 0)).collect();
        for reader in readers {
            let passes = reader.join().map_err(|_| anyhow!("a reader panicked"))?;
            for (all, own) in sum.iter_mut().zip(passes) {
                all.0.add(&own.0);
                all.1 += own.1;
            }
        }
        Ok(sum)
    })?;
    let mut phases = passes.into_iter().zip(cpu_ns).zip(&windows).map(
        |(((latencies, hits), cpu_ns), &(from_ns, to_ns))| Phase {
            reads: latencies.summary(),
            hits,
            cpu_ns,
            length_ns: to_ns - from_ns,
        },
    );
    let control = if plan.fair { phases.next() } else { None };
    let ms = |ns: u64| ns.saturating_sub(start_ns) / 1_000_000;
    let due_before = |ns: u64| deadlines_ms.partition_point(|&due| u64::from(due) < ms(ns)) as u64;
    Ok(Some(Found {
        fill_ns,
        rss_per_entry: rss.map(|bytes| bytes as f64 / plan.entries as f64),
        control,
        window: phases.next().context("there is a window")?,
        due: due_before(window.1) - due_before(window.0),
        held,
        sweeps: cache.sweeps(),
    }))
}

/// Fills the cache from `start_ns` on and notes the deadlines in milliseconds from there on, rounded up.
fn fill(
    cache: &dyn Subject<String, [u8; 32]>,
    plan: &Plan,
    (start_ns, lead_ns): (u64, u64),
    deadlines_ms: &mut [u32],
) {
    for (id, deadline_ms) in (0..).zip(deadlines_ms) {
        if u64::is_multiple_of(id, FILL_STRIDE) {
            let pace_ns = u128::from(STEP_NS) * u128::from(id) / u128::from(plan.entries);
            clock::sleep_until(start_ns + pace_ns as u64);
        }
        let ttl_ns = lead_ns + id % TTLS * STEP_NS;
        let due_ns = clock::mono_ns() - start_ns + ttl_ns;
        *deadline_ms = u32::try_from(due_ns.div_ceil(1_000_000)).unwrap_or(u32::MAX);
        let value = <[u8; 32]>::for_key(id);
        cache.insert(String::of(id), value, Some(Duration::from_nanos(ttl_ns)));
    }
}

/// Reads within each window, and how many of them found their key.
type Passes = Vec<(Latencies, u64)>;

fn start_readers<'scope>(
    scope: &'scope Scope<'scope, '_>,
    cache: &'scope dyn Subject<String, [u8; 32]>,
    plan: &'scope Plan,
    windows: &'scope [(u64, u64)],
) -> Result<Vec<ScopedJoinHandle<'scope, Passes>>> {
    let start = |number: usize| {
        let thread = thread::Builder::new().name(format!("reader-{number}"));
        Ok(thread.spawn_scoped(scope, move || read(cache, plan, number as u64, windows))?)
    };
    (0..plan.readers).map(start).collect()
}

/// One reader, until no read of its own is left to begin within the windows.
fn read(
    cache: &dyn Subject<String, [u8; 32]>,
    plan: &Plan,
    number: u64,
    windows: &[(u64, u64)],
) -> Passes {
    let mut passes: Passes = windows.iter().map(|_| (Latencies::new(), 0)).collect();
    let end_ns = windows.iter().map(|window| window.1).max().unwrap_or(0);
    let mut rng = Rng::new(plan.seed.wrapping_add(number + 1));
    let pace_ns = plan.pace.as_nanos() as u64;
    let mut key = String::of(0);
    // Readers begin one after the other within one pace.
    let mut intended_ns = clock::mono_ns() + pace_ns * number / plan.readers.max(1) as u64;
    while intended_ns < end_ns {
        let id = match plan.fair {
            true => rng.below(plan.entries),
            false => number * 1_000 % plan.entries,
        };
        key.clear();
        if write!(key, "key-{id:012}").is_err() {
            break;
        }
        let from_ns = if clock::mono_ns() < intended_ns {
            clock::sleep_until(intended_ns);
            clock::mono_ns()
        } else {
            intended_ns
        };
        let found = cache.get(&key).is_some();
        let now_ns = clock::mono_ns();
        let within = |window: &(u64, u64)| (window.0..window.1).contains(&from_ns);
        if let Some(at) = windows.iter().position(within) {
            passes[at].0.record(now_ns - from_ns);
            passes[at].1 += u64::from(found);
        }
        // The article's readers sleep after each read, and do not make up for what they could not read.
        intended_ns = if plan.fair { from_ns } else { now_ns } + pace_ns;
    }
    passes
}

fn hit_percent(phase: &Phase) -> Option<f64> {
    let reads = phase.reads.count;
    (reads > 0).then(|| phase.hits as f64 / reads as f64 * 100.0)
}

fn figures(figures: &mut Figures, found: &Found) {
    let phases = [
        ("", "", Some(&found.window)),
        ("control_", "control ", found.control.as_ref()),
    ];
    for (key, label, phase) in phases {
        let Some(phase) = phase else { continue };
        let reads = &phase.reads;
        for (name, head, value) in [
            ("read_mean_us", "read average µs", reads.mean_us),
            ("read_p50_us", "read p50 µs", reads.p50_us),
            ("read_p99_us", "read p99 µs", reads.p99_us),
            ("read_p999_us", "read p99.9 µs", reads.p999_us),
            ("read_p9999_us", "read p99.99 µs", reads.p9999_us),
            ("read_max_us", "read worst µs", reads.max_us),
            (
                "reads_over_1ms",
                "reads over 1 ms",
                Some(reads.over_1ms as f64),
            ),
            ("reads", "reads", Some(reads.count as f64)),
            ("hit_percent", "hits %", hit_percent(phase)),
        ] {
            figures.push(format!("{key}{name}"), format!("{label}{head}"), value);
        }
    }
    let share = |phase: &Phase| {
        phase
            .cpu_ns
            .map(|ns| ns as f64 / phase.length_ns.max(1) as f64)
    };
    let (with, without) = (share(&found.window), found.control.as_ref().and_then(share));
    figures.push(
        "cpu_percent",
        "CPU, % of a core",
        with.map(|share| share * 100.0),
    );
    let sweep = |value: fn(&Sweeps) -> f64| {
        found
            .sweeps
            .as_ref()
            .filter(|sweeps| sweeps.count > 0)
            .map(value)
    };
    if found.control.is_some() {
        let seconds = found.window.length_ns as f64 / 1e9;
        let dead: Vec<f64> = found.held.iter().map(|point| point[1]).collect();
        let due = found.due.max(1) as f64;
        for (key, label, value) in [
            (
                "control_cpu_percent",
                "control CPU, % of a core",
                without.map(|share| share * 100.0),
            ),
            (
                "expiry_cpu_ns_per_entry",
                "CPU beyond the control, ns per entry due",
                with.zip(without)
                    .map(|(with, without)| (with - without) * found.window.length_ns as f64 / due),
            ),
            (
                "due_per_s",
                "due a second",
                Some(found.due as f64 / seconds),
            ),
            (
                "dead_mean",
                "dead entries held, mean",
                crate::stats::mean(&dead),
            ),
            (
                "dead_max",
                "dead entries held, most",
                dead.iter().copied().reduce(f64::max),
            ),
        ] {
            figures.push(key, label, value);
        }
    }
    figures.push(
        "sweep_mean_ms",
        "sweep average ms",
        sweep(|s| s.total_ns as f64 / s.count as f64 / 1e6),
    );
    figures.push(
        "sweep_max_ms",
        "sweep longest ms",
        sweep(|s| s.longest_ns as f64 / 1e6),
    );
    figures.push(
        "rss_bytes_per_entry",
        "resident bytes per entry",
        found.rss_per_entry,
    );
    let window_s = found.window.length_ns as f64 / 1e9;
    figures.push("window_s", "window s", window_s);
    figures.push("fill_s", "fill s", found.fill_ns as f64 / 1e9);
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: Plan = Plan {
        entries: 6_000,
        fair: true,
        readers: 2,
        pace: Duration::from_millis(1),
        lead_ns: 3 * SECOND_NS,
        window_ns: SECOND_NS / 2,
        seed: 1,
    };

    #[test]
    fn entries_expire_while_they_are_read_and_none_did_before() {
        for kind in [Kind::Tidewheel, Kind::NaiveScan, Kind::ArticleWheel] {
            let report = measure(kind, &PLAN).expect("measures");
            let value = |key: &str| report.figures.value(key).expect(key);
            assert!(value("reads") > 0.0 && value("control_reads") > 0.0);
            // The window begins when a thirtieth has gone and ends when half of another one has.
            assert!(
                (80.0..99.5).contains(&value("hit_percent")),
                "{kind}: {}",
                value("hit_percent")
            );
            assert!(
                (100.0..300.0).contains(&value("due_per_s")),
                "{}",
                value("due_per_s")
            );
            assert!(value("read_max_us") >= value("read_p50_us"));
            assert_eq!(report.curves.len(), 1);
        }
    }

    #[test]
    fn nothing_expires_in_the_run_of_the_article() {
        let plan = Plan {
            fair: false,
            lead_ns: 30 * SECOND_NS,
            ..PLAN
        };
        let report = measure(Kind::ArticleWheel, &plan).expect("measures");
        assert!(report.figures.value("reads").expect("counted") > 0.0);
        assert_eq!(report.figures.value("hit_percent"), Some(100.0));
        assert_eq!(report.figures.value("control_reads"), None);
        assert!(report.curves.is_empty());
    }
}
