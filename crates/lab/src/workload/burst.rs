//! A burst of deadlines: many keys due within a short window, beside keys that stay.
//!
//! `mass-expiry` and `sparse` are this experiment with different sizes. Keys that stay are read by
//! one closed loop; the dying are touched by nobody. A second connection asks at a steady, modest
//! rate how many keys there are and how much memory they take, from well before the first
//! deadline on, so that its cost is in the figures "before" as much as in those after.

use std::time::Duration;

use anyhow::{Result, bail};
use clap::ValueEnum;
use serde_json::json;

use super::burst_figures::{Course, figures};
use super::sized;
use crate::client::{Address, Connection};
use crate::clock::{self, Anchor};
use crate::getter::{Getter, Seen};
use crate::keys::{Key, Ttl};
use crate::loader::{load, long_ttl};
use crate::proc::{self, CpuMeter, NoiseMeter};
use crate::progress::Progress;
use crate::report::Report;
use crate::rng::Rng;
use crate::server::{self, Target};

/// Loading is planned for at least this many keys a second; a slower server needs `--lead-s`.
const SLOWEST_LOAD_PER_S: u64 = 150_000;
/// Time for a freshly loaded server to come to rest before its memory is read.
const SETTLE: Duration = Duration::from_millis(500);
/// The reader's first half second warms caches and counts for nothing.
const WARM_UP_NS: u64 = 500_000_000;
const NS_PER_S: f64 = 1e9;
/// Memory is asked for at every tenth poll: INFO costs a server more than DBSIZE.
const POLLS_PER_INFO: usize = 10;

/// Where the keys that stay lie among those that go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Survivors {
    /// Loaded before them, so that they share no memory page with the dying.
    First,
    /// Loaded among them in random order, the hard case for giving memory back.
    Interleaved,
}

/// Which sizes are the default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Preset {
    MassExpiry,
    Sparse,
}

/// Options; where none is given, the preset and `--quick` decide.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// Keys that fall due [mass-expiry: 1000000, sparse: 50000].
    #[arg(long)]
    keys: Option<u64>,
    /// Keys that stay [mass-expiry: 100000 without TTL, sparse: 1000000 with TTLs of 1–2 h].
    #[arg(long)]
    live: Option<u64>,
    /// The deadlines lie uniformly in this many milliseconds [1000].
    #[arg(long)]
    window_ms: Option<u64>,
    /// Where the keys that stay lie among the dying.
    #[arg(long, value_enum, default_value = "first")]
    survivors: Survivors,
    /// Seconds of reading before the first deadline [5].
    #[arg(long)]
    before_s: Option<f64>,
    /// Seconds of reading after everything is reclaimed [3].
    #[arg(long)]
    after_s: Option<f64>,
    /// Give up this many seconds after the last deadline [mass-expiry: 60, sparse: 30].
    #[arg(long)]
    watch_s: Option<f64>,
    /// Seconds from the start of loading to the first deadline [by the number of keys].
    #[arg(long)]
    lead_s: Option<f64>,
    /// Ask for the number of keys this often.
    #[arg(long, default_value_t = 10)]
    poll_ms: u64,
    /// Do not read meanwhile.
    #[arg(long)]
    no_gets: bool,
    /// Seed of deadlines and order.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// A small run of a few seconds.
    #[arg(long)]
    quick: bool,
}

/// What will be done, every default filled in.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) dying: u64,
    pub(crate) live: u64,
    live_ttl: bool,
    pub(crate) window_ms: u64,
    survivors: Survivors,
    before_s: f64,
    after_s: f64,
    watch_s: f64,
    lead_s: f64,
    poll_ms: u64,
    gets: bool,
    seed: u64,
    /// Whether the dying are most of what is stored: then their memory must come back before the
    /// experiment ends, and their share of the processor time stands out from the reads'.
    pub(crate) mass: bool,
}

impl Args {
    pub(crate) fn plan(&self, preset: Preset) -> Plan {
        let quick = self.quick;
        let mass = preset == Preset::MassExpiry;
        let dying = sized(
            self.keys,
            quick,
            if mass { 1_000_000 } else { 50_000 },
            20_000,
        );
        let live = sized(
            self.live,
            quick,
            if mass { 100_000 } else { 1_000_000 },
            if mass { 2_000 } else { 40_000 },
        );
        let before_s = sized(self.before_s, quick, 5.0, 0.7);
        let in_lead = match self.survivors {
            Survivors::First => dying,
            Survivors::Interleaved => dying + live,
        };
        let lead_s = self.lead_s.unwrap_or_else(|| {
            before_s + SETTLE.as_secs_f64() + 1.0 + in_lead as f64 / SLOWEST_LOAD_PER_S as f64
        });
        Plan {
            dying,
            live,
            live_ttl: !mass,
            window_ms: sized(self.window_ms, quick, 1_000, 300).max(1),
            survivors: self.survivors,
            before_s,
            after_s: sized(self.after_s, quick, 3.0, 0.5),
            watch_s: sized(self.watch_s, quick, if mass { 60.0 } else { 30.0 }, 3.0),
            lead_s,
            poll_ms: self.poll_ms.max(1),
            gets: !self.no_gets && live > 0,
            seed: self.seed,
            mass,
        }
    }
}

/// One look at the server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Poll {
    /// When the question was sent and when its answer was there.
    pub(crate) sent_ns: u64,
    pub(crate) at_ns: u64,
    pub(crate) stored: u64,
    pub(crate) used_bytes: Option<f64>,
    pub(crate) rss_bytes: Option<u64>,
    pub(crate) cpu_ns: Option<u64>,
}

/// Memory at one stage, as the server and as the system see it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Memory {
    pub(crate) rss_bytes: Option<u64>,
    pub(crate) used_bytes: Option<f64>,
}

/// How many of the dying are due by when.
#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    pub(crate) first_ns: u64,
    pub(crate) last_ns: u64,
    base_ns: u64,
    /// Keys whose deadline is at most this many milliseconds after the base.
    due_by_ms: Vec<u64>,
}

impl Schedule {
    fn new(base_ns: u64, offsets_ms: &[u32], window_ms: u64) -> Self {
        let mut due_by_ms = vec![0_u64; window_ms as usize];
        for &offset in offsets_ms {
            due_by_ms[offset as usize] += 1;
        }
        let at = |offset: Option<&u32>| base_ns + u64::from(*offset.unwrap_or(&0)) * 1_000_000;
        let (first_ns, last_ns) = (at(offsets_ms.iter().min()), at(offsets_ms.iter().max()));
        let mut sum = 0;
        for count in &mut due_by_ms {
            sum += *count;
            *count = sum;
        }
        Self {
            first_ns,
            last_ns,
            base_ns,
            due_by_ms,
        }
    }

    /// Keys whose deadline has come at that time.
    pub(crate) fn due_at(&self, at_ns: u64) -> u64 {
        let Some(since_ns) = at_ns.checked_sub(self.base_ns) else {
            return 0;
        };
        let ms = (since_ns / 1_000_000) as usize;
        self.due_by_ms
            .get(ms)
            .or(self.due_by_ms.last())
            .copied()
            .unwrap_or(0)
    }
}

pub(crate) fn run(
    plan: &Plan,
    name: &'static str,
    target: &Target,
    progress: &Progress,
) -> Result<Report> {
    let (mut connection, facts) = server::meet(target)?;
    let pid = facts.pid;
    let mut rng = Rng::new(plan.seed);
    let empty = memory(&mut connection, pid);

    let live_entry = |id: u64, rng: &mut Rng| {
        (
            Key::live(id),
            if plan.live_ttl {
                long_ttl(rng)
            } else {
                Ttl::None
            },
        )
    };
    let mut live_only = None;
    if plan.survivors == Survivors::First {
        let entries = (0..plan.live as usize).map(|id| live_entry(id as u64, &mut rng));
        load(&mut connection, entries, "loading keys that stay", progress)?;
        std::thread::sleep(SETTLE);
        live_only = Some(memory(&mut connection, pid));
    }

    let offsets: Vec<u32> = (0..plan.dying)
        .map(|_| rng.below(plan.window_ms) as u32)
        .collect();
    let anchor = Anchor::now();
    let base_ms = clock::wall_us() / 1_000 + (plan.lead_s * 1e3) as i64;
    let base_ns = anchor.mono_of_wall_us(base_ms * 1_000);
    let schedule = Schedule::new(base_ns, &offsets, plan.window_ms);
    let dying_entry = |id: u64| {
        let deadline = base_ms as u64 + u64::from(offsets[id as usize]);
        (Key::dying(id), Ttl::Pxat(deadline))
    };
    let load_s = match plan.survivors {
        Survivors::First => {
            let entries = (0..plan.dying as usize).map(|id| dying_entry(id as u64));
            load(
                &mut connection,
                entries,
                "loading keys that fall due",
                progress,
            )?
        }
        Survivors::Interleaved => {
            let mut order: Vec<u64> = (0..plan.dying + plan.live).collect();
            rng.shuffle(&mut order);
            let entries = order
                .into_iter()
                .map(|id| match id.checked_sub(plan.dying) {
                    Some(live) => live_entry(live, &mut rng),
                    None => dying_entry(id),
                });
            load(
                &mut connection,
                entries,
                "loading all keys, mixed",
                progress,
            )?
        }
    };
    std::thread::sleep(SETTLE);
    let loaded = memory(&mut connection, pid);
    let start_ns = clock::mono_ns();
    if start_ns + (plan.before_s * NS_PER_S) as u64 > schedule.first_ns {
        bail!("loading took {load_s:.1} s and the first deadline came too soon: raise --lead-s");
    }

    let getter = if plan.gets {
        Some(start_getter(&target.address, plan)?)
    } else {
        None
    };
    let before_ns = start_ns + WARM_UP_NS.min((plan.before_s * NS_PER_S / 2.0) as u64);
    let mut noise = NoiseMeter::start(pid.and_then(|pid| CpuMeter::new(pid).read_ns()));
    let release = Release::new(plan, empty, live_only, loaded);
    let polls = watch(plan, &mut connection, pid, &schedule, &release, progress)?;
    let seen = getter.map(Getter::finish).transpose()?.unwrap_or_default();
    let others_ns = noise.others_ns(polls.last().and_then(|poll| poll.cpu_ns));
    let expired = server::info_number(&mut connection, "stats", "expired_keys");
    connection.call(&["FLUSHALL"])?;

    let mut report = Report::new(name, Some(facts), params(plan));
    let course = Course {
        plan,
        schedule: &schedule,
        polls: &polls,
        seen: &seen,
        before_ns,
        empty,
        loaded,
        live_only,
        release: &release,
        load_s,
        expired,
        others_ns,
    };
    report.figures = figures(&course);
    notes(&mut report, &seen);
    Ok(report)
}

fn start_getter(address: &Address, plan: &Plan) -> Result<Getter> {
    let (live, mut rng) = (plan.live, Rng::new(plan.seed ^ 1));
    Getter::start(address, None, move || Some(Key::live(rng.below(live))))
}

fn params(plan: &Plan) -> serde_json::Value {
    json!({
        "keys": plan.dying,
        "live": plan.live,
        "live_ttl_s": plan.live_ttl.then_some([3_600, 7_200]),
        "window_ms": plan.window_ms,
        "survivors": format!("{:?}", plan.survivors).to_lowercase(),
        "before_s": plan.before_s,
        "after_s": plan.after_s,
        "watch_s": plan.watch_s,
        "lead_s": plan.lead_s,
        "poll_ms": plan.poll_ms,
        "gets": plan.gets,
        "seed": plan.seed,
    })
}

fn notes(report: &mut Report, seen: &Seen) {
    if seen.missing + seen.wrong > 0 {
        report.notes.push(format!(
            "{} GETs of keys that stay found nothing, {} found a wrong value",
            seen.missing, seen.wrong
        ));
    }
    if seen.log.left_out() > 0 {
        report.notes.push(format!(
            "{} GETs were beyond the log's cap",
            seen.log.left_out()
        ));
    }
}

fn memory(connection: &mut Connection, pid: Option<u32>) -> Memory {
    Memory {
        rss_bytes: pid.and_then(proc::rss_bytes),
        used_bytes: server::info_number(connection, "memory", "used_memory"),
    }
}

/// How far memory must fall before the dying count as given back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Release {
    /// What the loaded server takes, and what the dying take of it.
    rss: Option<(f64, f64)>,
    used: Option<(f64, f64)>,
}

impl Release {
    fn new(plan: &Plan, empty: Memory, live_only: Option<Memory>, loaded: Memory) -> Self {
        let share = plan.dying as f64 / (plan.dying + plan.live).max(1) as f64;
        // Mixed keys were never loaded apart: the dying's part of the growth is by their number.
        let of = |empty: Option<f64>, live: Option<f64>, loaded: Option<f64>| {
            let (empty, loaded) = (empty?, loaded?);
            let dying = live.map_or((loaded - empty) * share, |live| loaded - live);
            (dying > 0.0).then_some((loaded, dying))
        };
        let rss = |memory: Memory| memory.rss_bytes.map(|bytes| bytes as f64);
        Self {
            rss: of(rss(empty), live_only.and_then(rss), rss(loaded)),
            used: of(
                empty.used_bytes,
                live_only.and_then(|m| m.used_bytes),
                loaded.used_bytes,
            ),
        }
    }

    /// Whether at least this part of the dying's resident memory is back.
    pub(crate) fn rss_back(&self, poll: &Poll, part: f64) -> bool {
        back(self.rss, poll.rss_bytes.map(|bytes| bytes as f64), part)
    }

    pub(crate) fn used_back(&self, poll: &Poll, part: f64) -> bool {
        back(self.used, poll.used_bytes, part)
    }
}

fn back(from: Option<(f64, f64)>, now: Option<f64>, part: f64) -> bool {
    matches!((from, now), (Some((loaded, dying)), Some(now)) if now <= loaded - part * dying)
}

/// Polls from now until the keys (and the memory) are back or the time is up.
fn watch(
    plan: &Plan,
    connection: &mut Connection,
    pid: Option<u32>,
    schedule: &Schedule,
    release: &Release,
    progress: &Progress,
) -> Result<Vec<Poll>> {
    let mut cpu = pid.map(CpuMeter::new);
    let mut polls: Vec<Poll> = Vec::new();
    let after_ns = (plan.after_s * NS_PER_S) as u64;
    let give_up_ns = schedule.last_ns + (plan.watch_s * NS_PER_S) as u64;
    let (mut gone_ns, mut rss_is_back) = (None, false);
    let start_ns = clock::mono_ns();
    let mut next_ns = start_ns;
    progress.phase(
        "waiting for the deadlines",
        (schedule.last_ns - start_ns) / 1_000_000,
    );
    loop {
        clock::sleep_until(next_ns);
        let sent_ns = clock::mono_ns();
        let stored = server::dbsize(connection)?;
        let at_ns = clock::mono_ns();
        let used_bytes = if polls.len().is_multiple_of(POLLS_PER_INFO) {
            server::info_number(connection, "memory", "used_memory")
        } else {
            None
        };
        let rss_bytes = pid.and_then(proc::rss_bytes);
        let cpu_ns = cpu.as_mut().and_then(CpuMeter::read_ns);
        let poll = Poll {
            sent_ns,
            at_ns,
            stored,
            used_bytes,
            rss_bytes,
            cpu_ns,
        };
        polls.push(poll);
        progress.set((at_ns - start_ns) / 1_000_000);
        if sent_ns >= schedule.last_ns {
            if polls.len() >= 2 && polls[polls.len() - 2].sent_ns < schedule.last_ns {
                let watch_ms = (plan.watch_s * 1e3) as u64;
                progress.phase("waiting for what is dead to go", watch_ms);
            }
            progress.set((at_ns - schedule.last_ns) / 1_000_000);
            if gone_ns.is_none() && stored <= plan.live {
                gone_ns = Some(at_ns);
            }
            rss_is_back |= !plan.mass || pid.is_none() || release.rss_back(&poll, 0.9);
            let done = gone_ns.is_some_and(|gone| at_ns >= gone + after_ns) && rss_is_back;
            if done || at_ns >= give_up_ns {
                return Ok(polls);
            }
        }
        next_ns = (next_ns + plan.poll_ms * 1_000_000).max(at_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_counts_what_is_due_from_the_very_deadline_on() {
        let ms = 1_000_000;
        let schedule = Schedule::new(100 * ms, &[3, 0, 9, 3], 10);
        assert_eq!(schedule.first_ns, 100 * ms);
        assert_eq!(schedule.last_ns, 109 * ms);
        assert_eq!(schedule.due_at(0), 0);
        assert_eq!(schedule.due_at(100 * ms - 1), 0);
        assert_eq!(schedule.due_at(100 * ms), 1);
        assert_eq!(schedule.due_at(103 * ms - 1), 1);
        assert_eq!(schedule.due_at(103 * ms), 3);
        assert_eq!(schedule.due_at(900 * ms), 4);
    }

    #[test]
    fn mixed_survivors_keep_their_share_of_the_memory() {
        let args = Args {
            keys: Some(900),
            live: Some(100),
            window_ms: None,
            survivors: Survivors::Interleaved,
            before_s: None,
            after_s: None,
            watch_s: None,
            lead_s: None,
            poll_ms: 10,
            no_gets: false,
            seed: 1,
            quick: true,
        };
        let plan = args.plan(Preset::MassExpiry);
        let at = |rss| Memory {
            rss_bytes: Some(rss),
            used_bytes: None,
        };
        let release = Release::new(&plan, at(1_000), None, at(11_000));
        let poll = |rss| Poll {
            sent_ns: 0,
            at_ns: 0,
            stored: 0,
            used_bytes: None,
            rss_bytes: Some(rss),
            cpu_ns: None,
        };
        // The dying took 9,000 of the 10,000.
        assert!(release.rss_back(&poll(2_900), 0.9));
        assert!(!release.rss_back(&poll(2_901), 0.9));
        assert!(release.rss_back(&poll(6_500), 0.5));
        assert!(!release.used_back(&poll(0), 0.9));
    }
}
