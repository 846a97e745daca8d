//! Measures operations per second by threads, all caches in one process and in turn, so that they
//! can be compared.
//!
//! `get`: all keys present, capacity for twice as many. `mixed`: three reads to one write with a
//! TTL of 30–60 s. `insert`: the cache is full and every key is new. `hot`: one key.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use anyhow::{Result, anyhow};
use clap::ValueEnum;
use serde_json::json;

use super::Subjects;
use super::kind::CacheKind;
use super::subject::{Key, Pass, Subject, Value};
use crate::clock;
use crate::heap;
use crate::names;
use crate::outcome::Outcome;
use crate::proc::{Meter, NOBODY};
use crate::progress;
use crate::report::Report;
use crate::rng::Rng;
use crate::runner::{Common, count, threads};
use crate::stats;
use crate::zipf::Zipf;

const NAME: &str = "caches throughput";
const ZIPF_EXPONENT: f64 = 0.99;
/// Draws that the threads go around in, each from a place of its own.
const DRAWS: usize = 1 << 20;
const POPULATE_TTL: Duration = Duration::from_secs(3_600);

type Cache = dyn Subject<u64, [u8; 32]>;

/// The operations of the threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Load {
    /// Reads of present keys.
    Get,
    /// Reads of one key.
    Hot,
    /// Three reads to one write with a TTL.
    Mixed,
    /// New keys into a full cache.
    Insert,
}

names::display_as_named!(Load);

/// Options of `caches throughput`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    subjects: Subjects,
    /// Keys, Zipf-distributed with exponent 0.99 (quick: 20000).
    #[arg(long, default_value_t = 1_000_000)]
    #[arg(default_value_if("quick", "true", "20000"), value_parser = count::<u64>)]
    entries: u64,
    /// Threads (quick: 1,2).
    #[arg(long, value_name = "N,…", value_parser = threads)]
    #[arg(value_delimiter = ',', default_value = "1,2,4,8")]
    #[arg(default_value_if("quick", "true", "1,2"))]
    threads: Vec<usize>,
    /// Operations of the threads.
    #[arg(long, value_enum, value_name = "LOAD,…")]
    #[arg(value_delimiter = ',', default_value = "get,hot,mixed,insert")]
    load: Vec<Load>,
    /// Seconds of one sample (quick: 0.05).
    #[arg(long, default_value_t = 0.3)]
    #[arg(default_value_if("quick", "true", "0.05"))]
    sample: f64,
}

/// The keys that the threads of all samples share.
struct Keys {
    zipf: Vec<u64>,
    hot: Vec<u64>,
    /// Numbers of keys that no cache has seen.
    fresh: AtomicU64,
}

/// One sample of one cache.
#[derive(Clone, Copy, Debug)]
struct Point {
    load: Load,
    threads: usize,
    m_per_s: f64,
    hit_percent: f64,
}

pub(super) fn run(args: &Args) -> Result<Outcome> {
    let runs = args.common.runs;
    let kinds = args.subjects.kinds();
    let mut rng = Rng::new(args.common.basics.seed);
    let zipf = Zipf::new(args.entries, ZIPF_EXPONENT);
    let keys = Keys {
        zipf: (0..DRAWS).map(|_| u64::of(zipf.draw(&mut rng))).collect(),
        hot: vec![u64::of(0)],
        fresh: AtomicU64::new(args.entries),
    };
    let mut meter = Meter::start(NOBODY);
    // By round and cache.
    let mut points: Vec<Vec<Vec<Point>>> = vec![vec![Vec::new(); kinds.len()]; runs];
    // Reads leave the caches as they are, so they share one filling; the mix comes last on it.
    let mut shared: Vec<Option<Box<Cache>>> = Vec::new();
    for &load in &args.load {
        if load == Load::Insert || shared.is_empty() {
            shared.clear();
            for &kind in &kinds {
                progress::say(format!("{kind}: filling for {load}"));
                shared.push(filled(kind, load, args.entries)?);
            }
        }
        for (round, of_round) in points.iter_mut().enumerate() {
            for &threads in &args.threads {
                for turn in 0..kinds.len() {
                    // Another one begins in every round.
                    let at = (turn + round) % kinds.len();
                    let Some(cache) = &shared[at] else { continue };
                    progress::say(format!("{}: {load} × {threads}", kinds[at]));
                    cache.rest(false);
                    let point = sample(args, load, cache.as_ref(), &keys, threads, round)?;
                    cache.rest(true);
                    of_round[at].push(point);
                }
            }
        }
        if load == Load::Insert {
            shared.clear();
        }
    }
    let taken = meter.read();
    let mut reports = Vec::new();
    for (at, &kind) in kinds.iter().enumerate() {
        for (round, of_round) in (1..).zip(&points) {
            let mut report = report(args, kind, &of_round[at]);
            report.run = round;
            report.figures.push_noise(taken);
            reports.push(report);
        }
    }
    let sizes = format!("{} keys of 8 B, values of 32 B", args.entries);
    let title = format!("{NAME}: {sizes}, Zipf {ZIPF_EXPONENT}, M operations/s");
    let mut outcome = Outcome::of(&title, reports);
    if args.common.basics.quick {
        outcome.note_quick();
    }
    Ok(outcome)
}

/// Full of the keys that are drawn; an insert's with no room for more, if it has a limit at all.
fn filled(kind: CacheKind, load: Load, entries: u64) -> Result<Option<Box<Cache>>> {
    let capacity = match load {
        Load::Insert if !kind.has_capacity() => return Ok(None),
        Load::Insert => entries,
        _ => entries.saturating_mul(2),
    };
    let cache = kind.build::<u64, [u8; 32]>(usize::try_from(capacity)?)?;
    for id in 0..entries {
        cache.insert(u64::of(id), <[u8; 32]>::for_key(id), Some(POPULATE_TTL));
    }
    cache.settle();
    cache.rest(true);
    Ok(Some(cache))
}

/// Takes one sample of one cache, after a warm-up that is not counted.
fn sample(
    args: &Args,
    load: Load,
    cache: &Cache,
    keys: &Keys,
    threads: usize,
    round: usize,
) -> Result<Point> {
    let (warm, stop) = (&AtomicBool::new(false), &AtomicBool::new(false));
    let ready = &Barrier::new(threads + 1);
    let pass = move |start: usize, stop: &AtomicBool| match load {
        Load::Get => cache.get_pass(&keys.zipf, start, stop),
        Load::Hot => cache.get_pass(&keys.hot, start, stop),
        Load::Mixed => cache.mixed_pass(&keys.zipf, start, stop),
        Load::Insert => cache.insert_pass(&keys.fresh, stop),
    };
    let passes: Vec<Pass> = thread::scope(|scope| {
        let start = |number: usize| {
            let start = DRAWS / threads * number + round * 7_919;
            scope.spawn(move || {
                ready.wait();
                let warmed = pass(start, warm);
                pass(start.wrapping_add(warmed.operations as usize), stop)
            })
        };
        let running: Vec<_> = (0..threads).map(start).collect();
        ready.wait();
        let warm_ms = if args.common.basics.quick { 10 } else { 100 };
        let warm_ends = clock::mono_ns() + warm_ms * 1_000_000;
        clock::sleep_until(warm_ends);
        warm.store(true, Ordering::Relaxed);
        clock::sleep_until(warm_ends + (args.sample * 1e9) as u64);
        stop.store(true, Ordering::Relaxed);
        let passes = running.into_iter().map(ScopedJoinHandle::join);
        passes.collect::<Result<_, _>>()
    })
    .map_err(|_| anyhow!("a thread panicked"))?;
    let hits: u64 = passes.iter().map(|pass| pass.hits).sum();
    let operations: u64 = passes.iter().map(|pass| pass.operations).sum();
    Ok(Point {
        load,
        threads,
        m_per_s: passes.iter().map(Pass::millions_per_s).sum(),
        hit_percent: hits as f64 / operations.max(1) as f64 * 100.0,
    })
}

fn report(args: &Args, kind: CacheKind, points: &[Point]) -> Report {
    let params = json!({
        "entries": args.entries,
        "zipf": ZIPF_EXPONENT,
        "sample_s": args.sample,
        "ttl": kind.has_ttl(),
        "counting_allocator": heap::COUNTED,
        "seed": args.common.basics.seed,
    });
    let mut report = Report::new(NAME, params).of(kind, kind.version());
    let figures = &mut report.figures;
    for point in points {
        let name = format!("{}_{}_m_per_s", point.load, point.threads);
        figures.push(name, point.m_per_s);
    }
    for load in [Load::Get, Load::Mixed] {
        let own = points.iter().filter(|point| point.load == load);
        let hits: Vec<f64> = own.map(|point| point.hit_percent).collect();
        figures.push(format!("{load}_hit_percent"), stats::mean(&hits));
    }
    report
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

    fn args() -> Args {
        Line::parse_from("x --quick --entries 1000 --sample 0.01".split(' ')).args
    }

    #[test]
    fn every_load_does_operations_and_reads_hit() {
        let keys = Keys {
            zipf: (0..DRAWS as u64).map(|n| u64::of(n % 1_000)).collect(),
            hot: vec![u64::of(0)],
            fresh: AtomicU64::new(1_000),
        };
        for kind in [
            CacheKind::Tidewheel,
            CacheKind::NaiveScan,
            CacheKind::SlotWheel,
        ] {
            let cache = filled(kind, Load::Get, 1_000)
                .expect("builds")
                .expect("a cache");
            for &load in Load::value_variants() {
                let point = sample(&args(), load, cache.as_ref(), &keys, 2, 0).expect("samples");
                assert!(point.m_per_s > 0.0, "{kind} {load:?}");
                if matches!(load, Load::Get | Load::Hot) {
                    assert_eq!(point.hit_percent, 100.0, "{kind} {load:?}");
                }
            }
        }
    }
}
