//! Readers read while entries expire, and while nothing is due.
//!
//! "Killing O(n)" fills a cache with TTLs of 30 + i % 30 s and has ten readers read for ten
//! seconds, each one key of its own, with 10 ms of sleep between two reads. No TTL ends within
//! those ten seconds: the calm run is that one.
//!
//! The fair run has the same fill, the same readers and the same TTLs, but for the first one, which
//! is chosen so that all is filled and calm before it ends. Its window begins when all classes of
//! TTLs fall due side by side, so that a thirtieth of the entries expires in each second of it.
//! Readers draw keys uniformly. They are an open loop: a read that could not begin in time, because
//! the one before it was held up, counts from when it should have begun (the calm run's readers are
//! a closed loop, as published). How late a sleeping reader is woken is not the cache's doing and
//! does not count. The control is the same cache with the same readers in the seconds before the
//! first deadline.

use std::fmt::Write as _;
use std::iter;
use std::ops::Range;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use serde_json::json;

use super::scan::{SHORTEST_TTL_S, TTLS};
use super::{CALM, SECOND_NS};
use crate::caches::kind::CacheKind;
use crate::caches::subject::{Key, Subject, Value};
use crate::clock;
use crate::heap;
use crate::latency::Latencies;
use crate::outcome::Outcome;
use crate::proc::rss_bytes;
use crate::report::{Curve, Figures, Report};
use crate::rng::Rng;
use crate::runner::{Common, Experiment};
use crate::schedule::Schedule;
use crate::stats;

const NAME: &str = "expiry readers";
/// The numbers of readers, and the pause between two reads of one of them, as published.
const READERS: u64 = 10;
const PACE_NS: u64 = 10_000_000;
/// From this number of entries on a fill takes so long that TTLs begin at 30 s; below, at 12.
const MANY: u64 = 5_000_000;
/// The time from the last insert to the first read that counts.
const CALM_NS: u64 = 300_000_000;
const LOOK_NS: u64 = 100_000_000;
const ATTEMPTS: u32 = 4;
/// Entries between two looks at how far the fill is ahead of its pace.
const FILL_STRIDE: u64 = 64;

type Cache = dyn Subject<String, [u8; 32]>;

/// The numbers of one table.
#[derive(Clone, Copy, Debug)]
struct Plan {
    entries: u64,
    /// True with expiry going on, false if calm.
    fair: bool,
    /// The time from one TTL to the next. A fill takes at least as long, else they fall due in
    /// bursts.
    step_ns: u64,
    /// The shortest TTL, unless the fill takes longer.
    lead_ns: u64,
    /// The time for which reads are recorded; a fair window ends where fewer expire, if that is
    /// earlier.
    window_ns: u64,
    seed: u64,
}

/// The results of one window of a run.
#[derive(Debug)]
struct Phase {
    reads: Latencies,
    hits: u64,
    cpu_ns: u64,
    length_ns: u64,
}

#[derive(Debug)]
struct Found {
    /// The shortest TTL.
    lead_ns: u64,
    fill_ns: u64,
    rss_per_entry: Option<f64>,
    control: Option<Phase>,
    window: Phase,
    /// Entries whose deadline lies in the window.
    due: u64,
    /// Seconds since the first deadline, dead entries held.
    held: Vec<[f64; 2]>,
}

/// Calm, then while entries expire, at each size.
pub(super) fn run(common: &Common, sizes: &[u64], kinds: &[CacheKind]) -> Result<Option<Outcome>> {
    let both = |&size| [false, true].map(|fair| Plan::new(size, fair, common));
    let plans: Vec<Plan> = sizes.iter().flat_map(both).collect();
    let takes_part = |fair: bool, kind: &CacheKind| fair || CALM.contains(kind);
    let own = |fair| kinds.iter().filter(move |kind| takes_part(fair, kind));
    let experiment = Experiment {
        name: NAME,
        cells: plans.iter().map(Plan::title).collect(),
        subjects: &|cell| own(plans[cell].fair).copied().collect(),
        measure: &|kind, cell, _| measure(kind, &plans[cell]),
    };
    experiment.run(common)
}

fn measure(kind: CacheKind, plan: &Plan) -> Result<Report> {
    let found = (0..ATTEMPTS).find_map(|attempts| attempt(kind, plan, attempts).transpose());
    let found = found.context("the fill did not end before the first deadline")??;
    let params = json!({
        "entries": plan.entries,
        "mode": if plan.fair { "expiring" } else { "calm" },
        "readers": READERS,
        "pace_ms": PACE_NS as f64 / 1e6,
        "shortest_ttl_s": found.lead_ns as f64 / 1e9,
        "ttls": TTLS,
        "seed": plan.seed,
        "counting_allocator": heap::COUNTED,
    });
    let mut report = Report::new(NAME, params).of(kind, kind.version());
    figures(&mut report.figures, &found);
    if plan.fair && !found.held.is_empty() {
        let (x, y) = ("time since the first deadline, s", "dead entries held");
        let curve = Curve::new(x, y, found.held);
        report.curves.insert("held".to_owned(), curve);
    }
    Ok(report)
}

/// `None` when the fill did not leave the time that the control takes; each attempt has twice the
/// time of the one before.
fn attempt(kind: CacheKind, plan: &Plan, attempts: u32) -> Result<Option<Found>> {
    let own = std::process::id();
    let lead_ns = plan.lead_ns << attempts;
    // Touched before memory is looked at: it is not the cache's.
    let mut deadlines_ms = vec![1_u32; usize::try_from(plan.entries)?];
    let rss_before = rss_bytes(own);
    let capacity = usize::try_from(plan.entries + plan.entries / 4)?;
    let cache = kind.build::<String, [u8; 32]>(capacity)?;
    let start_ns = clock::mono_ns();
    fill(cache.as_ref(), plan, (start_ns, lead_ns), &mut deadlines_ms);
    cache.settle();
    let fill_ns = clock::mono_ns() - start_ns;
    let due = Schedule::new(start_ns, deadlines_ms);
    let filled_ns = clock::mono_ns();
    let first_ns = start_ns + lead_ns;
    let Some(windows) = plan.windows(filled_ns, first_ns, fill_ns) else {
        return Ok(None);
    };
    let rss = rss_before.zip(rss_bytes(own));
    // The allocator keeps pages of what an earlier attempt had filled.
    let rss = rss.filter(|_| attempts == 0);
    let rss = rss.map(|(then, now)| now.saturating_sub(then) as f64);
    let mut held = Vec::new();
    let mut phases = watch(cache.as_ref(), plan, &windows, &due, &mut held)?;
    let window = phases.pop().context("there is a window")?;
    let Range { start, end } = windows[windows.len() - 1];
    Ok(Some(Found {
        lead_ns,
        fill_ns,
        rss_per_entry: rss.map(|bytes| bytes / plan.entries as f64),
        control: phases.pop(),
        window,
        due: due.due_at(end) - due.due_at(start),
        held,
    }))
}

impl Plan {
    fn new(entries: u64, fair: bool, common: &Common) -> Self {
        let quick = common.basics.quick;
        let lead_ns = match (fair, quick) {
            (true, true) => SECOND_NS * 4 / 5,
            (true, false) if entries < MANY => 12 * SECOND_NS,
            _ => SHORTEST_TTL_S * SECOND_NS,
        };
        Self {
            entries,
            fair,
            step_ns: if quick { SECOND_NS / 8 } else { SECOND_NS },
            lead_ns,
            window_ns: match (quick, fair && entries >= MANY) {
                (true, _) => SECOND_NS / 2,
                (false, false) => 10 * SECOND_NS,
                (false, true) => 20 * SECOND_NS,
            },
            seed: common.basics.seed,
        }
    }

    fn title(&self) -> String {
        let what = match self.fair {
            true => "a thirtieth of them expires each second",
            false => "nothing is due",
        };
        format!("{} entries, {what}", self.entries)
    }

    /// The windows in which reads count: the control, if there is one, and the window. `None` when
    /// the first deadline comes too soon after the fill.
    fn windows(&self, filled_ns: u64, first_ns: u64, fill_ns: u64) -> Option<Vec<Range<u64>>> {
        let calm_ns = filled_ns + CALM_NS;
        if !self.fair {
            let end_ns = calm_ns + self.window_ns;
            return (end_ns <= first_ns).then(|| iter::once(calm_ns..end_ns).collect());
        }
        let control_ns = self.window_ns.min(10 * SECOND_NS);
        let control = calm_ns.max(first_ns.saturating_sub(control_ns))..first_ns;
        // All classes of TTLs fall due side by side from the end of the first one's to the
        // beginning of the last.
        let full_ns = first_ns + fill_ns;
        let step_ns = self.step_ns;
        let steady_ns = (TTLS * step_ns).saturating_sub(fill_ns).max(step_ns);
        let window = full_ns..full_ns + self.window_ns.min(steady_ns);
        (calm_ns + control_ns / 2 <= first_ns).then(|| vec![control, window])
    }
}

/// Reads in every window; looks at how many dead are held, which in the control costs as much and
/// tells nothing.
fn watch(
    cache: &Cache,
    plan: &Plan,
    windows: &[Range<u64>],
    due: &Schedule,
    held: &mut Vec<[f64; 2]>,
) -> Result<Vec<Phase>> {
    thread::scope(|scope| {
        let start = |number| scope.spawn(move || read(cache, plan, number, windows));
        let readers: Vec<_> = (0..READERS).map(start).collect();
        let mut phases = empty(windows);
        for (window, phase) in windows.iter().zip(&mut phases) {
            clock::sleep_until(window.start);
            let before = clock::process_cpu_ns();
            let mut look_ns = window.start;
            while look_ns < window.end {
                clock::sleep_until(look_ns);
                let now_ns = clock::mono_ns();
                if let Some(stored) = cache.held()
                    && window.start >= due.first_ns
                {
                    let alive = plan.entries - due.due_at(now_ns);
                    let dead = (stored as u64).saturating_sub(alive);
                    held.push([(now_ns - due.first_ns) as f64 / 1e9, dead as f64]);
                }
                // A look that had to wait is not made up for: all is clean after a walk.
                let late_ns = clock::mono_ns().saturating_sub(look_ns);
                look_ns += (late_ns / LOOK_NS + 1) * LOOK_NS;
            }
            clock::sleep_until(window.end);
            phase.cpu_ns = clock::process_cpu_ns() - before;
        }
        for reader in readers {
            let own = reader.join().map_err(|_| anyhow!("a reader panicked"))?;
            for (all, own) in phases.iter_mut().zip(own) {
                all.reads.add(&own.reads);
                all.hits += own.hits;
            }
        }
        Ok(phases)
    })
}

fn empty(windows: &[Range<u64>]) -> Vec<Phase> {
    let phase = |window: &Range<u64>| Phase {
        reads: Latencies::default(),
        hits: 0,
        cpu_ns: 0,
        length_ns: window.end - window.start,
    };
    windows.iter().map(phase).collect()
}

/// Fills the cache from `start_ns` on and notes the deadlines in milliseconds from there on,
/// rounded up.
fn fill(cache: &Cache, plan: &Plan, (start_ns, lead_ns): (u64, u64), deadlines_ms: &mut [u32]) {
    for (id, deadline_ms) in (0..).zip(deadlines_ms) {
        if u64::is_multiple_of(id, FILL_STRIDE) {
            let pace_ns = u128::from(plan.step_ns) * u128::from(id) / u128::from(plan.entries);
            clock::sleep_until(start_ns + pace_ns as u64);
        }
        let ttl_ns = lead_ns + id % TTLS * plan.step_ns;
        let due_ns = clock::mono_ns() - start_ns + ttl_ns;
        *deadline_ms = u32::try_from(due_ns.div_ceil(1_000_000)).unwrap_or(u32::MAX);
        let value = <[u8; 32]>::for_key(id);
        cache.insert(String::of(id), value, Some(Duration::from_nanos(ttl_ns)));
    }
}

/// Reads until no read of its own is left to begin within the windows.
fn read(cache: &Cache, plan: &Plan, number: u64, windows: &[Range<u64>]) -> Vec<Phase> {
    let mut phases = empty(windows);
    let end_ns = windows.last().map_or(0, |window| window.end);
    let mut rng = Rng::new(plan.seed.wrapping_add(number + 1));
    let mut key = String::of(0);
    // Readers begin one after the other within one pace.
    let mut intended_ns = clock::mono_ns() + PACE_NS * number / READERS;
    while intended_ns < end_ns {
        let id = match plan.fair {
            true => rng.below(plan.entries),
            false => number * 1_000 % plan.entries,
        };
        key.clear();
        write!(key, "key-{id:012}").expect("a string takes all that is written");
        let from_ns = if clock::mono_ns() < intended_ns {
            clock::sleep_until(intended_ns);
            clock::mono_ns()
        } else {
            intended_ns
        };
        let found = cache.get(&key).is_some();
        let now_ns = clock::mono_ns();
        if let Some(at) = windows.iter().position(|window| window.contains(&from_ns)) {
            phases[at].reads.record(now_ns - from_ns);
            phases[at].hits += u64::from(found);
        }
        // Calm readers sleep after each read, and do not make up for what they could not read.
        intended_ns = if plan.fair { from_ns } else { now_ns } + PACE_NS;
    }
    phases
}

fn figures(figures: &mut Figures, found: &Found) {
    reads(figures, "", &found.window);
    if let Some(control) = &found.control {
        reads(figures, "control_", control);
    }
    let share = |phase: &Phase| phase.cpu_ns as f64 / phase.length_ns.max(1) as f64;
    let (with, without) = (share(&found.window), found.control.as_ref().map(share));
    let window_s = found.window.length_ns as f64 / 1e9;
    figures.push("cpu_percent", with * 100.0);
    if found.control.is_some() {
        let dead: Vec<f64> = found.held.iter().map(|point| point[1]).collect();
        let beyond = without.map(|without| with - without);
        let per_entry = beyond.map(|share| share * window_s * 1e9 / found.due.max(1) as f64);
        figures.push("control_cpu_percent", without.map(|share| share * 100.0));
        figures.push("expiry_cpu_ns_per_entry", per_entry);
        figures.push("due_per_s", found.due as f64 / window_s);
        figures.push("dead_mean", stats::mean(&dead));
        figures.push("dead_max", dead.iter().copied().reduce(f64::max));
    }
    figures.push("rss_bytes_per_entry", found.rss_per_entry);
    figures.push("window_s", window_s);
    figures.push("fill_s", found.fill_ns as f64 / 1e9);
}

fn reads(figures: &mut Figures, key: &str, phase: &Phase) {
    let reads = &phase.reads;
    let hits = (reads.count() > 0).then(|| phase.hits as f64 / reads.count() as f64 * 100.0);
    figures.push(format!("{key}read_mean_us"), reads.mean_us());
    for (name, value) in reads.percentiles() {
        figures.push(format!("{key}read_{name}_us"), value);
    }
    figures.push(format!("{key}reads_over_1ms"), reads.over_1ms as f64);
    figures.push(format!("{key}reads"), reads.count() as f64);
    figures.push(format!("{key}hit_percent"), hits);
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAIR: Plan = Plan {
        entries: 6_000,
        fair: true,
        step_ns: SECOND_NS,
        lead_ns: 2 * SECOND_NS,
        window_ns: SECOND_NS / 2,
        seed: 1,
    };

    #[test]
    fn entries_expire_while_they_are_read_and_none_did_before() {
        let test = |kind| {
            let report = measure(kind, &FAIR).expect("measures");
            let value = |key: &str| report.figures.value(key).expect(key);
            assert!(value("reads") > 0.0 && value("control_reads") > 0.0);
            // The window begins when a thirtieth has gone and ends when half of another one has.
            let hits = value("hit_percent");
            assert!((80.0..99.5).contains(&hits), "{kind}: {hits}");
            let due = value("due_per_s");
            assert!((100.0..300.0).contains(&due), "{due}");
            assert!(value("read_max_us") >= value("read_p50_us"));
            assert_eq!(report.curves.len(), 1);
        };
        thread::scope(|scope| {
            for kind in CALM {
                scope.spawn(move || test(kind));
            }
        });
    }

    #[test]
    fn nothing_expires_in_the_calm_run() {
        let calm = Plan {
            fair: false,
            step_ns: SECOND_NS / 8,
            lead_ns: 30 * SECOND_NS,
            ..FAIR
        };
        let report = measure(CacheKind::SlotWheel, &calm).expect("measures");
        assert!(report.figures.value("reads").expect("counted") > 0.0);
        assert_eq!(report.figures.value("hit_percent"), Some(100.0));
        assert_eq!(report.figures.value("control_reads"), None);
        assert!(report.curves.is_empty());
    }
}
