//! A stampede: a thousand threads want one cold key at the same moment, and its loads are counted.
//! For Tidewheel the spread of the loads of keys that were warmed together is measured too.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Result, anyhow, ensure};
use serde::Serialize;
use serde_json::json;

use super::Subjects;
use super::jitter;
use super::kind::CacheKind;
use super::subject::{Key, Value};
use crate::clock;
use crate::outcome::Outcome;
use crate::report::Report;
use crate::runner::{Common, Experiment, threads};

const TTL: Duration = Duration::from_secs(60);
const CAPACITY: usize = 10_000;
/// A thousand of the usual 2 MiB would be reserved for nothing.
const STACK_BYTES: usize = 128 << 10;

/// Options of `caches stampede`.
#[derive(Clone, Debug, clap::Args, Serialize)]
pub(crate) struct Args {
    #[command(flatten)]
    #[serde(skip)]
    common: Common,
    #[command(flatten)]
    #[serde(skip)]
    subjects: Subjects,
    /// Threads that want the key (quick: 50).
    #[arg(long, default_value_t = 1_000, default_value_if("quick", "true", "50"))]
    #[arg(value_parser = threads)]
    callers: usize,
    /// Milliseconds that a load takes.
    #[arg(long, default_value_t = 10)]
    load_ms: u64,
    /// Keys that are warmed together (quick: 2000).
    #[arg(
        long,
        default_value_t = 100_000,
        default_value_if("quick", "true", "2000")
    )]
    warmed: u64,
    /// The jitter of their TTL, as a fraction of it.
    #[arg(long, default_value_t = 0.2)]
    jitter: f64,
}

const NAME: &str = "caches stampede";

pub(super) fn run(args: &Args) -> Result<Option<Outcome>> {
    ensure!(
        (0.0..1.0).contains(&args.jitter),
        "--jitter lies between 0 and 1"
    );
    let (callers, load_ms) = (args.callers, args.load_ms);
    let title = format!("{callers} callers, one cold key, a load takes {load_ms} ms");
    let experiment = Experiment {
        name: NAME,
        cells: vec![title],
        subjects: &|_| args.subjects.kinds(),
        measure: &|kind, _, _| measure(kind, args),
    };
    experiment.run(&args.common)
}

fn measure(kind: CacheKind, args: &Args) -> Result<Report> {
    let cache = kind.build::<u64, [u8; 32]>(CAPACITY)?;
    let (loads, key, loaded) = (AtomicU64::new(0), u64::of(1), <[u8; 32]>::for_key(1));
    let load = || {
        loads.fetch_add(1, Ordering::Relaxed);
        thread::sleep(Duration::from_millis(args.load_ms));
        loaded
    };
    let ready = Barrier::new(args.callers);
    let slowest_ns = thread::scope(|scope| -> Result<u64> {
        let call = || {
            ready.wait();
            let from = clock::mono_ns();
            let value = cache.get_or_load(&key, Some(TTL), &load);
            (clock::mono_ns() - from, value)
        };
        let start = |_| {
            thread::Builder::new()
                .stack_size(STACK_BYTES)
                .spawn_scoped(scope, call)
        };
        let callers: Vec<_> = (0..args.callers).map(start).collect::<Result<_, _>>()?;
        let mut slowest = 0;
        for caller in callers {
            let (ns, value) = caller.join().map_err(|_| anyhow!("a caller panicked"))?;
            ensure!(
                value == loaded,
                "a caller got another value than the one that was loaded"
            );
            slowest = slowest.max(ns);
        }
        Ok(slowest)
    })?;
    let mut report = Report::new(NAME, json!(args)).of(kind, kind.version());
    let figures = &mut report.figures;
    figures.push("loads", loads.into_inner() as f64);
    figures.push("slowest_ms", slowest_ns as f64 / 1e6);
    // Peers have no jitter: all they were warmed with together falls due together.
    if kind == CacheKind::Tidewheel && args.warmed > 0 {
        jitter::run(args.warmed, args.jitter)?.push(figures);
    }
    Ok(report)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    #[test]
    fn tidewheel_loads_once_and_caches_without_single_flight_more_often() {
        let line = "stampede --callers 20 --load-ms 50 --warmed 0";
        let args = Line::parse_from(line.split(' ')).args;
        for kind in [
            CacheKind::Tidewheel,
            CacheKind::NaiveScan,
            CacheKind::SlotWheel,
        ] {
            let report = measure(kind, &args).expect("measures");
            let value = |key: &str| report.figures.value(key).expect(key);
            assert_eq!(
                value("loads") == 1.0,
                kind == CacheKind::Tidewheel,
                "{kind}"
            );
            assert!(value("slowest_ms") >= 50.0, "{kind}");
        }
    }
}
