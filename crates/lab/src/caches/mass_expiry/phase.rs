//! A phase builds, populates, reads, watches, and tears down.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use serde::Serialize;

use super::super::kind::CacheKind;
use super::super::mortal::{self, Mortal};
use super::super::subject::{Key, Subject, Value};
use super::watch::{Base, Times, Watched, watch};
use crate::clock;
use crate::heap;
use crate::latency::Latencies;
use crate::rng::Rng;

const LIVE_TTL: Duration = Duration::from_secs(3_600);
/// Between the end of the populating and the first deadline: threads start and caches settle.
const CALM_NS: u64 = 300_000_000;
/// Populating again takes longer than the control's did at most this often.
const ATTEMPTS: usize = 4;

type Cache = dyn Subject<u64, Mortal>;

/// The numbers of a run.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Plan {
    pub(super) entries: u64,
    pub(super) live: u64,
    /// Seconds over which the deadlines are spread.
    pub(super) window_s: f64,
    /// Reads count until so long after the last deadline.
    pub(super) tail_s: f64,
    /// The watch is given up so long after the last deadline.
    pub(super) watch_s: f64,
    pub(super) interleaved: bool,
    pub(super) seed: u64,
}

/// The results of a phase.
#[derive(Debug)]
pub(super) struct Phase {
    pub(super) populate_ns: u64,
    pub(super) reads: Latencies,
    pub(super) read_window_ns: u64,
    pub(super) misses: u64,
    pub(super) watched: Watched,
    /// The time from the first deadline to the end of the watch.
    pub(super) wall_ns: u64,
    /// Processor time meanwhile of threads that are neither readers nor the watch.
    pub(super) background_cpu_ns: u64,
}

/// Runs a phase in which nothing expires.
pub(super) fn control(plan: &Plan, kind: CacheKind, readers: usize) -> Result<Phase> {
    let phase = attempt(plan, kind, readers, None)?;
    phase.context("a control run has no deadlines to miss")
}

/// Runs a phase in which everything expires, once it is all in; `populate_ns` says how long that
/// may take.
pub(super) fn expiry(
    plan: &Plan,
    kind: CacheKind,
    readers: usize,
    populate_ns: u64,
) -> Result<Phase> {
    let mut lead_ns = populate_ns + populate_ns / 4 + CALM_NS;
    for _ in 0..ATTEMPTS {
        if let Some(phase) = attempt(plan, kind, readers, Some(lead_ns))? {
            return Ok(phase);
        }
        lead_ns = lead_ns.saturating_mul(2);
    }
    bail!("the machine is too busy: populating did not end before the first deadline");
}

/// `None` when the first deadline came before the last insert.
fn attempt(
    plan: &Plan,
    kind: CacheKind,
    readers: usize,
    lead_ns: Option<u64>,
) -> Result<Option<Phase>> {
    wait_for_earlier_values();
    let mut read = Read::default();
    let readers: Vec<Read> = (0..readers).map(|_| Read::default()).collect();
    let base = Base {
        alive: mortal::alive(),
        bytes: heap::allocated(),
        dying: plan.entries,
        live: plan.live,
    };
    let total = plan.entries + plan.live;
    let capacity = usize::try_from(total + total / 4)?;
    let cache = kind.build::<u64, Mortal>(capacity)?;
    let start_ns = clock::mono_ns();
    populate(plan, cache.as_ref(), lead_ns.map(|lead| start_ns + lead));
    cache.settle();
    let populated_ns = clock::mono_ns();
    let first_ns = lead_ns.map_or(populated_ns + CALM_NS, |lead| start_ns + lead);
    if populated_ns + CALM_NS / 2 > first_ns {
        return Ok(None);
    }
    let last_ns = first_ns + ns(plan.window_s);
    let reads_end_ns = last_ns + ns(plan.tail_s);
    let times = Times {
        first_ns,
        last_ns,
        reads_end_ns,
        // The control has nothing to wait for, and is disturbed by as many looks.
        give_up_ns: lead_ns
            .map_or(0, |_| last_ns + ns(plan.watch_s))
            .max(reads_end_ns),
    };
    let (cache, stop) = (cache.as_ref(), &AtomicBool::new(false));
    let (watched, ended_ns, busy_ns) = thread::scope(|scope| -> Result<_> {
        let start = |(seed, reader): (u64, Read)| {
            let keys = (plan.live, plan.seed.wrapping_add(seed));
            scope.spawn(move || reader.run(cache, keys, times, stop))
        };
        let running: Vec<_> = (1..).zip(readers).map(start).collect();
        clock::sleep_until(first_ns);
        let (process_then, own_then) = (clock::process_cpu_ns(), clock::thread_cpu_ns());
        let watched = watch(base, times);
        let ended_ns = clock::mono_ns();
        let process_ns = clock::process_cpu_ns() - process_then;
        let own_ns = clock::thread_cpu_ns() - own_then;
        stop.store(true, Ordering::Relaxed);
        for reader in running {
            let found = reader.join().map_err(|_| anyhow!("a reader panicked"))?;
            read.add(&found);
        }
        Ok((watched, ended_ns, process_ns.saturating_sub(own_ns)))
    })?;
    Ok(Some(Phase {
        populate_ns: populated_ns - start_ns,
        reads: read.latencies,
        read_window_ns: reads_end_ns - first_ns,
        misses: read.misses,
        watched,
        wall_ns: ended_ns - first_ns,
        background_cpu_ns: busy_ns.saturating_sub(read.cpu_ns),
    }))
}

/// A cache may drop its entries after its last handle is gone: those of the phase before are not to
/// be counted in this one.
fn wait_for_earlier_values() {
    let mut before = mortal::alive();
    for _ in 0..200 {
        clock::sleep_until(clock::mono_ns() + CALM_NS / 6);
        let alive = mortal::alive();
        if alive == before {
            return;
        }
        before = alive;
    }
}

/// The results of closed-loop readers of live keys. The histogram is made before any byte is
/// counted.
#[derive(Default)]
struct Read {
    latencies: Latencies,
    misses: u64,
    /// The processor time from the first deadline on.
    cpu_ns: u64,
}

impl Read {
    /// Reads the first `live` keys at random until it is told to stop.
    fn run(
        mut self,
        cache: &Cache,
        (live, seed): (u64, u64),
        times: Times,
        stop: &AtomicBool,
    ) -> Self {
        let mut rng = Rng::new(seed);
        let mut cpu_before = None;
        while !stop.load(Ordering::Relaxed) {
            let key = u64::of(rng.below(live));
            let from = clock::mono_ns();
            let found = cache.get(&key);
            let now = clock::mono_ns();
            self.misses += u64::from(found.is_none());
            drop(found);
            // A stall that begins before the end counts, however long it lasts.
            if now >= times.first_ns && from < times.reads_end_ns {
                self.latencies.record(now - from);
                cpu_before.get_or_insert_with(clock::thread_cpu_ns);
            }
        }
        self.cpu_ns = cpu_before.map_or(0, |before| clock::thread_cpu_ns() - before);
        self
    }

    fn add(&mut self, other: &Self) {
        self.latencies.add(&other.latencies);
        self.misses += other.misses;
        self.cpu_ns += other.cpu_ns;
    }
}

/// The living have the numbers below `live`. Deadlines are uniform from `first_ns` on.
fn populate(plan: &Plan, cache: &Cache, first_ns: Option<u64>) {
    let mut rng = Rng::new(plan.seed);
    let (mut live, mut dying) = (0, 0);
    while live + dying < plan.live + plan.entries {
        let left = plan.live + plan.entries - live - dying;
        let lives = if plan.interleaved {
            rng.below(left) < plan.live - live
        } else {
            live < plan.live
        };
        if lives {
            cache.insert(u64::of(live), Mortal::for_key(live), Some(LIVE_TTL));
            live += 1;
        } else {
            let id = plan.live + dying;
            let ttl = first_ns.map_or(LIVE_TTL, |first_ns| {
                let deadline = first_ns + rng.below(ns(plan.window_s).max(1));
                Duration::from_nanos(deadline.saturating_sub(clock::mono_ns()).max(1))
            });
            cache.insert(u64::of(id), Mortal::for_key(id), Some(ttl));
            dying += 1;
        }
    }
}

fn ns(seconds: f64) -> u64 {
    (seconds * 1e9) as u64
}
