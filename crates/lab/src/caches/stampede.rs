//! Stampedes: a thousand threads that want one cold key at the same moment, and how often it is
//! loaded; for Tidewheel also how the loads of keys that were warmed together spread.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use serde_json::json;

use super::jitter;
use super::kind::{Kind, Settings};
use super::runner::{self, Common, Experiment, Share};
use super::subject::{Key, Value};
use crate::clock;
use crate::outcome::Outcome;
use crate::progress::Progress;
use crate::report::Report;

const TTL: Duration = Duration::from_secs(60);
const MAX_CALLERS: usize = 10_000;
const CAPACITY: usize = 10_000;
/// A thousand of the usual 2 MiB would be reserved for nothing.
const STACK_BYTES: usize = 128 << 10;

/// Options of `caches stampede`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(super) common: Common,
    /// Threads that want the key (default 1000).
    #[arg(long, visible_alias = "readers")]
    callers: Option<usize>,
    /// Milliseconds that a load takes.
    #[arg(long, default_value_t = 10)]
    load_ms: u64,
    /// Keys that are warmed together (default 100000).
    #[arg(long, visible_alias = "entries")]
    warmed: Option<u64>,
    /// The jitter of their TTL, as a fraction of it.
    #[arg(long, default_value_t = 0.2)]
    jitter: f64,
}

pub(super) struct Stampede {
    warmed: u64,
    jitter: f64,
    callers: usize,
    load: Duration,
}

pub(super) fn run(args: &Args, progress: &mut Progress) -> Result<Option<Outcome>> {
    let small = if args.common.quick { 50 } else { 1_000 };
    let callers = args.callers.unwrap_or(small);
    if callers == 0 || callers > MAX_CALLERS {
        bail!("--callers lies in 1..={MAX_CALLERS}");
    }
    if !(0.0..1.0).contains(&args.jitter) {
        bail!("--jitter lies between 0 and 1");
    }
    let warmed = if args.common.quick { 2_000 } else { 100_000 };
    let stampede = Stampede {
        callers,
        load: Duration::from_millis(args.load_ms),
        warmed: args.warmed.unwrap_or(warmed),
        jitter: args.jitter,
    };
    runner::run(&stampede, &args.common, progress)
}

impl Experiment for Stampede {
    fn name(&self) -> &'static str {
        "caches stampede"
    }

    fn cells(&self) -> Vec<String> {
        vec![format!(
            "{} callers, one cold key, a load takes {} ms",
            self.callers,
            self.load.as_millis()
        )]
    }

    fn excludes(&self, _: Kind) -> Option<&'static str> {
        None
    }

    fn measure(&self, share: Share, _: &Progress) -> Result<Report> {
        let cache = share
            .kind
            .build::<u64, [u8; 32]>(&Settings { capacity: CAPACITY })?;
        let loads = AtomicU64::new(0);
        let key = u64::of(1);
        let load = || {
            loads.fetch_add(1, Ordering::Relaxed);
            thread::sleep(self.load);
            <[u8; 32]>::for_key(1)
        };
        let ready = Barrier::new(self.callers);
        let slowest_ns = thread::scope(|scope| -> Result<u64> {
            let mut callers = Vec::with_capacity(self.callers);
            for number in 0..self.callers {
                let (cache, ready, load, key) = (cache.as_ref(), &ready, &load, &key);
                let caller = thread::Builder::new()
                    .name(format!("caller-{number}"))
                    .stack_size(STACK_BYTES)
                    .spawn_scoped(scope, move || {
                        ready.wait();
                        let from = clock::mono_ns();
                        let value = cache.get_or_load(key, Some(TTL), load);
                        (clock::mono_ns() - from, value)
                    });
                callers.push(caller?);
            }
            let mut slowest = 0;
            for caller in callers {
                let (ns, value) = caller.join().map_err(|_| anyhow!("a caller panicked"))?;
                if value != <[u8; 32]>::for_key(1) {
                    bail!("a caller got another value than the one that was loaded");
                }
                slowest = slowest.max(ns);
            }
            Ok(slowest)
        })?;
        let params = json!({
            "callers": self.callers,
            "load_ms": self.load.as_millis() as u64,
            "warmed": self.warmed,
            "jitter": self.jitter,
        });
        let mut report = Report::new(self.name(), None, params);
        let figures = &mut report.figures;
        figures.push("loads", "loads", loads.into_inner() as f64);
        figures.push("slowest_ms", "slowest caller ms", slowest_ns as f64 / 1e6);
        // Peers have no jitter: all they were warmed with together falls due together.
        if share.kind == Kind::Tidewheel && self.warmed > 0 {
            jitter::run(self.warmed, self.jitter)?.push(figures);
        }
        Ok(report)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tidewheel_loads_once_and_caches_without_single_flight_more_often() {
        let stampede = Stampede {
            callers: 20,
            load: Duration::from_millis(50),
            warmed: 0,
            jitter: 0.2,
        };
        for kind in [Kind::Tidewheel, Kind::NaiveScan, Kind::ArticleWheel] {
            let share = Share {
                kind,
                cell: 0,
                round: 1,
            };
            let report = stampede.measure(share, &Progress::new()).expect("measures");
            let value = |key: &str| report.figures.value(key).expect(key);
            assert_eq!(value("loads") == 1.0, kind == Kind::Tidewheel, "{kind}");
            assert!(value("slowest_ms") >= 50.0, "{kind}");
        }
    }
}
