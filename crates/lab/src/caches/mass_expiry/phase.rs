//! One phase: build, populate, read, watch, tear down.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail};

use super::super::kind::{Kind, Settings};
use super::super::mortal::{self, Mortal};
use super::super::subject::{Key, Subject, Value};
use super::readers::Readers;
use super::watch::{self, Watched};
use crate::clock;
use crate::heap;
use crate::latency::Summary;
use crate::proc::{CpuMeter, thread_cpu_ns};
use crate::rng::Rng;

pub(super) type Cache = Arc<dyn Subject<u64, Mortal>>;

const LIVE_TTL: Duration = Duration::from_secs(3_600);
/// Between the end of the populating and the first deadline: threads start and caches settle.
const CALM_NS: u64 = 300_000_000;
/// Populating again takes longer than the control's did at most this often.
const ATTEMPTS: usize = 4;

/// What a run does.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) entries: u64,
    pub(super) live: u64,
    pub(super) window_ns: u64,
    /// Reads count until so long after the last deadline.
    pub(super) tail_ns: u64,
    /// The watch is given up so long after the last deadline.
    pub(super) watch_ns: u64,
    pub(super) interleaved: bool,
    pub(super) seed: u64,
}

/// What a phase found.
#[derive(Debug)]
pub(super) struct Phase {
    pub(super) populate_ns: u64,
    pub(super) reads: Summary,
    pub(super) read_window_ns: u64,
    pub(super) misses: u64,
    pub(super) watched: Watched,
    /// From the first deadline to the end of the watch.
    pub(super) wall_ns: u64,
    /// Processor time meanwhile of threads that are neither readers nor the watch.
    pub(super) background_cpu_ns: Option<u64>,
}

/// When what begins and ends, on the monotonic clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    /// First and last deadline.
    pub(super) first_ns: u64,
    pub(super) last_ns: u64,
    /// Reads under way in between are counted.
    pub(super) reads_end_ns: u64,
    pub(super) give_up_ns: u64,
}

impl Plan {
    /// Nothing expires.
    pub(super) fn control(&self, kind: Kind, readers: usize) -> Result<Phase> {
        match self.attempt(kind, readers, None)? {
            Some(phase) => Ok(phase),
            None => bail!("a control run has no deadlines to miss"),
        }
    }

    /// Everything expires, once it is all in; `populate_ns` says how long that may take.
    pub(super) fn expiry(&self, kind: Kind, readers: usize, populate_ns: u64) -> Result<Phase> {
        let mut lead_ns = populate_ns + populate_ns / 4 + CALM_NS;
        for _ in 0..ATTEMPTS {
            if let Some(phase) = self.attempt(kind, readers, Some(lead_ns))? {
                return Ok(phase);
            }
            lead_ns = lead_ns.saturating_mul(2);
        }
        bail!("the machine is too busy: populating did not end before the first deadline");
    }

    /// `None` when the first deadline came before the last insert.
    fn attempt(&self, kind: Kind, readers: usize, lead_ns: Option<u64>) -> Result<Option<Phase>> {
        let readers = Readers::prepare(readers, self.live, self.seed);
        let base = watch::Base {
            alive: mortal::alive(),
            bytes: heap::allocated(),
        };
        let total = self.entries + self.live;
        let settings = Settings {
            capacity: usize::try_from(total + total / 4)?,
        };
        let cache: Cache = Arc::from(kind.build::<u64, Mortal>(&settings)?);
        let start_ns = clock::mono_ns();
        self.populate(cache.as_ref(), lead_ns.map(|lead| start_ns + lead));
        cache.settle();
        let populated_ns = clock::mono_ns();
        let first_ns = lead_ns.map_or(populated_ns + CALM_NS, |lead| start_ns + lead);
        if populated_ns + CALM_NS / 2 > first_ns {
            return Ok(None);
        }
        let last_ns = first_ns + self.window_ns;
        let times = Times {
            first_ns,
            last_ns,
            reads_end_ns: last_ns + self.tail_ns,
            give_up_ns: last_ns + self.watch_ns.max(self.tail_ns),
        };
        let running = readers.start(&cache, times)?;
        let mut process = CpuMeter::new(std::process::id());
        clock::sleep_until(first_ns);
        let cpu_before = process.read_ns().zip(thread_cpu_ns());
        let watched = if lead_ns.is_some() {
            watch::expiry(self, base, times)
        } else {
            watch::control(base, times)
        };
        let ended_ns = clock::mono_ns();
        let cpu_after = process.read_ns().zip(thread_cpu_ns());
        let read = running.stop()?;
        let background_cpu_ns = cpu_before.zip(cpu_after).zip(read.cpu_ns).map(
            |(((process_then, own_then), (process_now, own_now)), readers)| {
                (process_now - process_then)
                    .saturating_sub(own_now - own_then)
                    .saturating_sub(readers)
            },
        );
        Ok(Some(Phase {
            populate_ns: populated_ns - start_ns,
            reads: read.latencies.summary(),
            read_window_ns: times.reads_end_ns - times.first_ns,
            misses: read.misses,
            watched,
            wall_ns: ended_ns - first_ns,
            background_cpu_ns,
        }))
    }

    /// The living have the numbers below `live`. Deadlines are uniform from `first_ns` on.
    fn populate(&self, cache: &dyn Subject<u64, Mortal>, first_ns: Option<u64>) {
        let mut rng = Rng::new(self.seed);
        let (mut live, mut dying) = (0, 0);
        while live + dying < self.live + self.entries {
            let left = self.live + self.entries - live - dying;
            let lives = if self.interleaved {
                rng.below(left) < self.live - live
            } else {
                live < self.live
            };
            if lives {
                cache.insert(u64::of(live), Mortal::for_key(live), Some(LIVE_TTL));
                live += 1;
            } else {
                let id = self.live + dying;
                let ttl = first_ns.map_or(LIVE_TTL, |first_ns| {
                    let deadline = first_ns + rng.below(self.window_ns.max(1));
                    Duration::from_nanos(deadline.saturating_sub(clock::mono_ns()).max(1))
                });
                cache.insert(u64::of(id), Mortal::for_key(id), Some(ttl));
                dying += 1;
            }
        }
    }
}
