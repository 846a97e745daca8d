//! Operations a second by threads, all caches in one process and in turn, so that ratios are fair.
//!
//! `get`: all keys present, capacity for twice as many. `mixed`: three reads to one write with a TTL
//! of 30–60 s. `insert`: the cache is full and every key is new. `hot`: one key.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Result, anyhow, ensure};
use clap::ValueEnum;

use self::figures::{Row, outcome};
use super::Subjects;
use super::kind::Kind;
use super::subject::{Key, Pass, Subject, Value};
use super::zipf::Zipf;
use crate::clock;
use crate::outcome::Outcome;
use crate::proc::NoiseMeter;
use crate::progress;
use crate::rng::Rng;
use crate::runner::Common;

mod figures;

const NAME: &str = "caches throughput";
const ZIPF_EXPONENT: f64 = 0.99;
/// Draws that the threads go around in, each from a place of its own.
const DRAWS: usize = 1 << 20;
const POPULATE_TTL: Duration = Duration::from_secs(3_600);
const MAX_THREADS: usize = 1_024;

type Cache = Box<dyn Subject<u64, [u8; 32]>>;

/// What the threads do.
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

impl Load {
    fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Hot => "hot",
            Self::Mixed => "mixed",
            Self::Insert => "insert",
        }
    }
}

/// Options of `caches throughput`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    subjects: Subjects,
    /// Keys, Zipf-distributed with exponent 0.99 (quick: 20000).
    #[arg(
        long,
        default_value_t = 1_000_000,
        default_value_if("quick", "true", "20000")
    )]
    entries: u64,
    /// Threads (default 1,2,4,8).
    #[arg(
        long,
        visible_alias = "readers",
        value_delimiter = ',',
        value_name = "N,…"
    )]
    threads: Option<Vec<usize>>,
    /// What they do (default all).
    #[arg(long, value_enum, value_delimiter = ',', value_name = "LOAD,…")]
    load: Option<Vec<Load>>,
    /// Seconds of one sample (quick: 0.05).
    #[arg(long, default_value_t = 0.3, default_value_if("quick", "true", "0.05"))]
    sample: f64,
}

struct Plan {
    entries: u64,
    threads: Vec<usize>,
    loads: Vec<Load>,
    sample: Duration,
    warm: Duration,
    seed: u64,
}

impl Plan {
    fn new(args: &Args) -> Result<Self> {
        let quick = args.common.quick;
        let threads = if quick { &[1, 2][..] } else { &[1, 2, 4, 8] };
        let plan = Self {
            entries: args.entries,
            threads: args.threads.clone().unwrap_or_else(|| threads.to_vec()),
            loads: args.load.clone().unwrap_or(Load::value_variants().to_vec()),
            sample: Duration::try_from_secs_f64(args.sample)?,
            warm: Duration::from_millis(if quick { 10 } else { 100 }),
            seed: args.common.seed,
        };
        ensure!(plan.entries > 0, "--entries starts at 1");
        ensure!(
            plan.threads.iter().all(|n| (1..=MAX_THREADS).contains(n)),
            "--threads lies in 1..={MAX_THREADS}"
        );
        Ok(plan)
    }

    fn takes_part(kind: Kind, load: Load) -> bool {
        load != Load::Insert || kind.has_capacity()
    }

    /// Full of the keys that are drawn; an insert's with no room for more.
    fn filled(&self, kind: Kind, load: Load) -> Result<Cache> {
        let capacity = match load {
            Load::Insert => self.entries,
            _ => self.entries.saturating_mul(2),
        };
        let cache = kind.build::<u64, [u8; 32]>(usize::try_from(capacity)?)?;
        for id in 0..self.entries {
            cache.insert(u64::of(id), <[u8; 32]>::for_key(id), Some(POPULATE_TTL));
        }
        cache.settle();
        cache.rest(true);
        Ok(cache)
    }
}

/// What the threads of all samples share.
struct Keys {
    zipf: Vec<u64>,
    hot: Vec<u64>,
    /// Numbers of keys that no cache has seen.
    fresh: AtomicU64,
}

pub(super) fn run(args: &Args) -> Result<Outcome> {
    let plan = Plan::new(args)?;
    let runs = args.common.runs;
    ensure!(runs > 0, "--runs starts at 1");
    let kinds = args.subjects.kinds();
    let mut rng = Rng::new(plan.seed);
    let zipf = Zipf::new(plan.entries, ZIPF_EXPONENT);
    let keys = Keys {
        zipf: (0..DRAWS).map(|_| u64::of(zipf.draw(&mut rng))).collect(),
        hot: vec![u64::of(0)],
        fresh: AtomicU64::new(plan.entries),
    };
    let start_ns = clock::mono_ns();
    let noise = NoiseMeter::start(Some(0));
    let mut rows: Vec<Row> = kinds.iter().map(|&kind| Row::new(kind, runs)).collect();
    // Reads leave the caches as they are, so they share one filling; the mix comes last on it.
    let mut shared: Vec<Option<Cache>> = Vec::new();
    for &load in &plan.loads {
        let fresh = load == Load::Insert || shared.is_empty();
        if fresh {
            shared.clear();
            for &kind in &kinds {
                progress::say(format!("{kind}: filling for {}", load.name()));
                let takes_part = Plan::takes_part(kind, load);
                shared.push(takes_part.then(|| plan.filled(kind, load)).transpose()?);
            }
        }
        for round in 0..runs {
            for &threads in &plan.threads {
                for turn in 0..rows.len() {
                    // Another one begins in every round.
                    let at = (turn + round) % rows.len();
                    let Some(cache) = &shared[at] else { continue };
                    let (kind, round_now) = (rows[at].kind, round + 1);
                    progress::say(format!(
                        "{kind}: {} × {threads}, {round_now}/{runs}",
                        load.name()
                    ));
                    cache.rest(false);
                    let passes = sample(&plan, load, cache.as_ref(), &keys, threads, round)?;
                    cache.rest(true);
                    rows[at].add(round, load, threads, &passes);
                }
            }
        }
        if load == Load::Insert {
            shared.clear();
        }
    }
    progress::clear();
    let noise = (noise.others_ns(Some(0)), clock::mono_ns() - start_ns);
    let mut outcome = outcome(&plan, &rows, noise);
    if args.common.quick {
        outcome.note_quick();
    }
    Ok(outcome)
}

/// One sample of one cache, after a warm-up that is not counted.
fn sample(
    plan: &Plan,
    load: Load,
    cache: &dyn Subject<u64, [u8; 32]>,
    keys: &Keys,
    threads: usize,
    round: usize,
) -> Result<Vec<Pass>> {
    let warm = AtomicBool::new(false);
    let stop = AtomicBool::new(false);
    let ready = Barrier::new(threads + 1);
    thread::scope(|scope| {
        let mut running = Vec::with_capacity(threads);
        for number in 0..threads {
            let start = DRAWS / threads * number + round * 7_919;
            let (warm, stop, ready) = (&warm, &stop, &ready);
            let pass = move |start: usize, stop: &AtomicBool| match load {
                Load::Get => cache.get_pass(&keys.zipf, start, stop),
                Load::Hot => cache.get_pass(&keys.hot, start, stop),
                Load::Mixed => cache.mixed_pass(&keys.zipf, start, stop),
                Load::Insert => cache.insert_pass(&keys.fresh, stop),
            };
            running.push(scope.spawn(move || {
                ready.wait();
                let warmed = pass(start, warm);
                pass(start.wrapping_add(warmed.operations as usize), stop)
            }));
        }
        ready.wait();
        let from = clock::mono_ns();
        let warm_ends = from + plan.warm.as_nanos() as u64;
        clock::sleep_until(warm_ends);
        warm.store(true, Ordering::Relaxed);
        clock::sleep_until(warm_ends + plan.sample.as_nanos() as u64);
        stop.store(true, Ordering::Relaxed);
        running
            .into_iter()
            .map(|thread| thread.join().map_err(|_| anyhow!("a thread panicked")))
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn plan() -> Plan {
        Plan {
            entries: 1_000,
            threads: vec![1, 2],
            loads: vec![Load::Get],
            sample: Duration::from_millis(10),
            warm: Duration::from_millis(1),
            seed: 1,
        }
    }

    #[test]
    fn every_load_does_operations_and_reads_hit() {
        let plan = plan();
        let keys = Keys {
            zipf: (0..DRAWS as u64).map(|n| u64::of(n % 1_000)).collect(),
            hot: vec![u64::of(0)],
            fresh: AtomicU64::new(1_000),
        };
        for kind in [Kind::Tidewheel, Kind::NaiveScan, Kind::SlotWheel] {
            let cache = plan.filled(kind, Load::Get).expect("builds");
            for &load in Load::value_variants() {
                let passes = sample(&plan, load, cache.as_ref(), &keys, 2, 0).expect("samples");
                assert_eq!(passes.len(), 2);
                for pass in passes {
                    assert!(pass.operations > 0 && pass.ns > 0, "{kind} {load:?}");
                    if matches!(load, Load::Get | Load::Hot) {
                        assert_eq!(pass.hits, pass.operations, "{kind} {load:?}");
                    }
                }
            }
        }
    }
}
