//! Closed-loop readers of live keys, whose histograms are made before any byte is counted.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use anyhow::{Result, anyhow};

use super::super::subject::Key;
use super::plan::{Cache, Times};
use crate::clock;
use crate::latency::Latencies;
use crate::rng::Rng;

pub(super) struct Readers {
    prepared: Vec<Reader>,
    all: Latencies,
}

struct Reader {
    rng: Rng,
    live: u64,
    read: Read,
}

/// What readers found.
pub(super) struct Read {
    pub(super) latencies: Latencies,
    pub(super) misses: u64,
    /// From the first deadline on.
    pub(super) cpu_ns: u64,
}

pub(super) struct Running {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Read>>,
    all: Latencies,
}

impl Readers {
    pub(super) fn prepare(readers: usize, live: u64, seed: u64) -> Self {
        let reader = |number: usize| Reader {
            rng: Rng::new(seed.wrapping_add(number as u64 + 1)),
            live,
            read: Read {
                latencies: Latencies::new(),
                misses: 0,
                cpu_ns: 0,
            },
        };
        Self {
            prepared: (0..readers).map(reader).collect(),
            all: Latencies::new(),
        }
    }

    pub(super) fn start(self, cache: &Cache, times: Times) -> io::Result<Running> {
        let stop = Arc::new(AtomicBool::new(false));
        let spawn = |(number, reader): (usize, Reader)| {
            let (cache, stop) = (Arc::clone(cache), Arc::clone(&stop));
            thread::Builder::new()
                .name(format!("reader-{number}"))
                .spawn(move || reader.run(&cache, times, &stop))
        };
        let threads = self
            .prepared
            .into_iter()
            .enumerate()
            .map(spawn)
            .collect::<io::Result<_>>()?;
        Ok(Running {
            stop,
            threads,
            all: self.all,
        })
    }
}

impl Reader {
    fn run(mut self, cache: &Cache, times: Times, stop: &AtomicBool) -> Read {
        let mut cpu_before = None;
        while !stop.load(Ordering::Relaxed) {
            let key = u64::of(self.rng.below(self.live));
            let from = clock::mono_ns();
            let found = cache.get(&key);
            let now = clock::mono_ns();
            self.read.misses += u64::from(found.is_none());
            drop(found);
            // A stall that begins before the end counts, however long it lasts.
            if now >= times.first_ns && from < times.reads_end_ns {
                self.read.latencies.record(now - from);
                if cpu_before.is_none() {
                    cpu_before = Some(clock::thread_cpu_ns());
                }
            }
        }
        self.read.cpu_ns = cpu_before.map_or(0, |before| clock::thread_cpu_ns() - before);
        self.read
    }
}

impl Running {
    pub(super) fn stop(self) -> Result<Read> {
        self.stop.store(true, Ordering::Relaxed);
        let mut all = Read {
            latencies: self.all,
            misses: 0,
            cpu_ns: 0,
        };
        for thread in self.threads {
            let read = thread.join().map_err(|_| anyhow!("a reader panicked"))?;
            all.latencies.add(&read.latencies);
            all.misses += read.misses;
            all.cpu_ns += read.cpu_ns;
        }
        Ok(all)
    }
}
