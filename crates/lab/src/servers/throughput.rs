//! Server processor time per request, and requests a second, over a grid of cells.
//!
//! A cell is an operation, a pipeline depth and a number of connections. Every cell of a run meets
//! the same server process and the same keys; it is warmed up, then measured in a few windows, and
//! the median window counts. Server and laboratory share the machine, so processor time per
//! request is the comparable figure and requests a second is what was left.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};

use anyhow::{Result, anyhow, bail};
use clap::ValueEnum;
use serde_json::{Value, json};

use super::sized;
use crate::clock;
use crate::latency::Latencies;
use crate::proc::{CpuMeter, NoiseMeter};
use crate::progress;
use crate::report::{Figures, Report};
use crate::rng::Rng;
use crate::servers::client::Address;
use crate::servers::driver::{self, Traffic};
use crate::servers::keys::{Key, encode_get, encode_set};
use crate::servers::loader::{load, long_ttl};
use crate::servers::server::{self, Target};
use crate::stats;

/// What each request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Op {
    /// GET of a key that is there.
    Get,
    /// SET with EX of a key that is there.
    Set,
}

/// Options of `throughput`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// Keys, drawn uniformly (default 1000000).
    #[arg(long)]
    keys: Option<u64>,
    /// Operations.
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        value_name = "OPERATION,…",
        default_value = "get,set"
    )]
    ops: Vec<Op>,
    /// Requests under way on each connection (default 1,16,64).
    #[arg(long, value_delimiter = ',', value_name = "N,…")]
    pipelines: Option<Vec<usize>>,
    /// Connections (default 8,50).
    #[arg(long, value_delimiter = ',', value_name = "N,…")]
    conns: Option<Vec<usize>>,
    /// Threads that send; more than one only where the machine has cores to spare.
    #[arg(long, default_value_t = 1)]
    client_threads: usize,
    /// Length of a window in milliseconds (default 1000).
    #[arg(long)]
    window_ms: Option<u64>,
    /// Windows per cell (default 3).
    #[arg(long)]
    windows: Option<usize>,
    /// Seed of the keys asked for.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// A small run of a few seconds.
    #[arg(long)]
    quick: bool,
}

const MAX_PIPELINE: usize = 10_000;

pub(crate) fn run(args: &Args, target: &Target) -> Result<Report> {
    let keys = sized(args.keys, args.quick, 1_000_000, 10_000);
    let pipelines = sized(
        args.pipelines.clone(),
        args.quick,
        vec![1, 16, 64],
        vec![1, 16],
    );
    let conns = sized(args.conns.clone(), args.quick, vec![8, 50], vec![8]);
    let window_ms = sized(args.window_ms, args.quick, 1_000, 100);
    let windows = sized(args.windows, args.quick, 3, 2);
    if keys == 0 || windows == 0 || window_ms == 0 {
        bail!("--keys, --windows and --window-ms must be at least 1");
    }
    if pipelines
        .iter()
        .any(|&depth| depth == 0 || depth > MAX_PIPELINE)
    {
        bail!("--pipelines must lie in 1..={MAX_PIPELINE}");
    }
    if args.client_threads == 0 || conns.iter().any(|&count| count < args.client_threads) {
        bail!("each of the --client-threads needs a connection");
    }

    let (mut connection, facts) = server::meet(target)?;
    let mut rng = Rng::new(args.seed);
    let entries = (0..keys as usize).map(|id| (Key::live(id as u64), long_ttl(&mut rng)));
    load(&mut connection, entries, "loading keys")?;

    let mut cells = Vec::new();
    for &op in &args.ops {
        for &pipeline in &pipelines {
            for &conns in &conns {
                cells.push(Cell {
                    op,
                    pipeline,
                    conns,
                });
            }
        }
    }
    let setting = Setting {
        address: &target.address,
        pid: facts.pid,
        keys,
        threads: args.client_threads,
        windows,
        window_ns: window_ms * 1_000_000,
        seed: args.seed,
    };
    progress::say("measuring");
    let noise = NoiseMeter::start(facts.pid.and_then(|pid| CpuMeter::new(pid).read_ns()));
    let start_ns = clock::mono_ns();
    let mut results = Vec::new();
    for &cell in &cells {
        results.push((cell, measure(&setting, cell)?));
    }
    let wall_ns = clock::mono_ns() - start_ns;
    let others = noise.others_ns(facts.pid.and_then(|pid| CpuMeter::new(pid).read_ns()));
    connection.call(&["FLUSHALL"])?;

    let params = json!({
        "keys": keys,
        "ttl_s": [3_600, 7_200],
        "pipelines": pipelines,
        "conns": conns,
        "client_threads": args.client_threads,
        "windows": windows,
        "window_ms": window_ms,
        "seed": args.seed,
        "cells": results.iter().map(|(cell, result)| cell.to_json(result)).collect::<Vec<_>>(),
    });
    let mut report = facts.report("throughput", params);
    tabulate(&mut report.figures, &results);
    report.figures.push_noise(others, wall_ns);
    let nulls: u64 = results.iter().map(|(_, result)| result.nulls).sum();
    if nulls > 0 {
        report.notes.push(format!(
            "{nulls} GETs of keys that were loaded found nothing"
        ));
    }
    Ok(report)
}

#[derive(Clone, Copy, Debug)]
struct Cell {
    op: Op,
    pipeline: usize,
    conns: usize,
}

impl Cell {
    fn key(&self) -> String {
        format!("{:?}_p{}_c{}", self.op, self.pipeline, self.conns).to_lowercase()
    }

    fn to_json(self, result: &Measured) -> Value {
        json!({
            "cell": self.key(),
            "cpu_us_per_request": result.windows.iter().map(|w| w.cpu_us).collect::<Vec<_>>(),
            "requests_per_s": result.windows.iter().map(|w| w.per_s).collect::<Vec<_>>(),
        })
    }
}

/// One window of one cell.
#[derive(Clone, Copy, Debug)]
struct Window {
    cpu_us: Option<f64>,
    per_s: f64,
    /// Server processor time as a part of wall time, in percent of a core.
    cpu_percent: Option<f64>,
}

#[derive(Debug)]
struct Measured {
    windows: Vec<Window>,
    batches: Latencies,
    nulls: u64,
}

impl Measured {
    fn median(&self, of: impl Fn(&Window) -> Option<f64>) -> Option<f64> {
        stats::median(&self.windows.iter().filter_map(of).collect::<Vec<_>>())
    }
}

fn tabulate(figures: &mut Figures, results: &[(Cell, Measured)]) {
    let mut block = |key: &str, of: &dyn Fn(&Measured) -> Option<f64>| {
        for (cell, result) in results {
            figures.push(format!("{key}_{}", cell.key()), of(result));
        }
    };
    block("cpu_us", &|m| m.median(|w| w.cpu_us));
    block("k_per_s", &|m| m.median(|w| Some(w.per_s / 1e3)));
    block("cpu_percent", &|m| m.median(|w| w.cpu_percent));
    block("batch_p50_us", &|m| m.batches.summary().p50_us);
    block("batch_p99_us", &|m| m.batches.summary().p99_us);
    block("batch_p999_us", &|m| m.batches.summary().p999_us);
    block("batch_max_ms", &|m| m.batches.summary().max_ms());
}

struct Setting<'a> {
    address: &'a Address,
    pid: Option<u32>,
    keys: u64,
    threads: usize,
    windows: usize,
    window_ns: u64,
    seed: u64,
}

/// What the measuring and the sending threads share.
#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    answered: AtomicU64,
    /// Latencies count only while this is 1.
    counting: AtomicUsize,
}

fn measure(setting: &Setting<'_>, cell: Cell) -> Result<Measured> {
    let shared = Arc::new(Shared::default());
    let mut workers: Vec<JoinHandle<Result<(Latencies, u64)>>> = Vec::new();
    for at in 0..setting.threads {
        let conns = cell.conns / setting.threads + usize::from(at < cell.conns % setting.threads);
        let (address, shared) = (setting.address.clone(), Arc::clone(&shared));
        let mut load = Load {
            rng: Rng::new(setting.seed ^ crate::rng::mix(at as u64 + 1)),
            keys: setting.keys,
            cell,
            latencies: Latencies::new(),
            shared: Arc::clone(&shared),
        };
        workers.push(
            thread::Builder::new()
                .name(format!("load-{at}"))
                .spawn(move || {
                    let nulls = driver::drive(&address, conns, &mut load, &shared.stop)?;
                    Ok((load.latencies, nulls))
                })?,
        );
    }

    let mut cpu = setting.pid.map(CpuMeter::new);
    let mut windows = Vec::new();
    let warm_ns = clock::mono_ns() + setting.window_ns / 2;
    clock::sleep_until(warm_ns);
    shared.counting.store(1, Ordering::Relaxed);
    for _ in 0..setting.windows {
        // A worker that has ended has failed; joining it tells why.
        if workers.iter().any(JoinHandle::is_finished) {
            break;
        }
        let mut look = || {
            let cpu_ns = cpu.as_mut().and_then(CpuMeter::read_ns);
            (
                clock::mono_ns(),
                cpu_ns,
                shared.answered.load(Ordering::Relaxed),
            )
        };
        let (from_ns, cpu_from, answered_from) = look();
        clock::sleep_until(from_ns + setting.window_ns);
        let (to_ns, cpu_to, answered_to) = look();
        let (wall_ns, requests) = (
            (to_ns - from_ns) as f64,
            (answered_to - answered_from) as f64,
        );
        let cpu_ns = cpu_from
            .zip(cpu_to)
            .map(|(from, to)| to.saturating_sub(from) as f64);
        windows.push(Window {
            cpu_us: cpu_ns
                .filter(|_| requests > 0.0)
                .map(|ns| ns / 1e3 / requests),
            per_s: requests / (wall_ns / 1e9),
            cpu_percent: cpu_ns.map(|ns| ns / wall_ns * 100.0),
        });
    }
    shared.counting.store(0, Ordering::Relaxed);
    shared.stop.store(true, Ordering::Relaxed);

    let mut measured = Measured {
        windows,
        batches: Latencies::new(),
        nulls: 0,
    };
    for worker in workers {
        let (latencies, nulls) = worker
            .join()
            .map_err(|_| anyhow!("a thread that sends panicked"))??;
        measured.batches.add(&latencies);
        measured.nulls += nulls;
    }
    Ok(measured)
}

/// The requests of one thread.
struct Load {
    rng: Rng,
    keys: u64,
    cell: Cell,
    latencies: Latencies,
    shared: Arc<Shared>,
}

impl Traffic for Load {
    fn fill(&mut self, _: usize, _: u64, out: &mut Vec<u8>) -> usize {
        for _ in 0..self.cell.pipeline {
            let key = Key::live(self.rng.below(self.keys));
            match self.cell.op {
                Op::Get => encode_get(out, key),
                Op::Set => encode_set(out, key, long_ttl(&mut self.rng)),
            }
        }
        self.cell.pipeline
    }

    fn answered(&mut self, _: usize, sent_ns: u64, now_ns: u64) {
        self.shared
            .answered
            .fetch_add(self.cell.pipeline as u64, Ordering::Relaxed);
        if self.shared.counting.load(Ordering::Relaxed) == 1 {
            self.latencies.record(now_ns - sent_ns);
        }
    }
}
