//! Measures server processor time per request, and requests a second, over a grid of cells.
//!
//! A cell is an operation, a pipeline depth and a number of connections. Every cell of a run meets
//! the same server process and the same keys; it is warmed up, then measured in a few windows, and
//! the median window counts. Server and laboratory share the machine, so processor time per
//! request is the comparable figure and requests a second is what was left.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use anyhow::{Result, anyhow};
use serde::Serialize;
use serde_json::json;
use tidewheel_resp::{Protocol, Writer};

use super::driver::{self, Traffic};
use super::keys::Key;
use super::loader::{load, long_ttl};
use super::ops::{self, Draw, Op, Requests};
use super::server::{self, Target};
use crate::clock;
use crate::latency::Latencies;
use crate::proc::Meter;
use crate::progress;
use crate::report::{Figures, Report};
use crate::rng::{Rng, mix};
use crate::runner::{Basics, count, threads};
use crate::stats;

/// Options of `throughput`.
#[derive(Clone, Debug, clap::Args, Serialize)]
pub(crate) struct Args {
    /// Keys (quick: 10000).
    #[arg(long, default_value_t = 1_000_000, value_parser = count::<u64>)]
    #[arg(default_value_if("quick", "true", "10000"))]
    keys: u64,
    /// Requests under way on each connection (quick: 1,16).
    #[arg(long, value_delimiter = ',', value_name = "N,…", value_parser = threads)]
    #[arg(default_value = "1,16,64", default_value_if("quick", "true", "1,16"))]
    pipelines: Vec<usize>,
    /// Connections (quick: 8).
    #[arg(long, value_delimiter = ',', value_name = "N,…", value_parser = threads)]
    #[arg(default_value = "8,50", default_value_if("quick", "true", "8"))]
    conns: Vec<usize>,
    /// Operations of the requests; a wrong name lists them all.
    #[arg(long, value_delimiter = ',', value_name = "NAME,…", value_parser = ops::parse)]
    #[arg(default_value = "get,set_ex")]
    #[serde(skip)]
    ops: Vec<&'static Op>,
    /// Distribution of the keys that the requests name.
    #[arg(long, value_enum, default_value_t)]
    draw: Draw,
    #[command(flatten)]
    #[serde(flatten)]
    basics: Basics,
}

/// Windows of a cell, and how long each is.
const WINDOWS: usize = 3;
const WINDOW_NS: u64 = 1_000_000_000;
const QUICK_WINDOW_NS: u64 = 100_000_000;

pub(crate) fn run(args: &Args, target: Target) -> Result<Report> {
    let (mut connection, facts) = server::meet(target)?;
    let mut rng = Rng::new(args.basics.seed);
    let entries = (0..args.keys).map(|id| (Key::live(id), long_ttl(&mut rng)));
    load(&mut connection, entries, "loading keys")?;

    progress::say("measuring");
    let mut meter = Meter::start(target.pid);
    let mut results = Vec::new();
    for &op in &args.ops {
        let rng = Rng::new(args.basics.seed ^ mix(2));
        let mut requests = Requests::new(op, rng, args.keys, args.draw);
        requests.store(&mut connection)?;
        for &pipeline in &args.pipelines {
            for &conns in &args.conns {
                let cell = Cell {
                    op,
                    pipeline,
                    conns,
                };
                let measured = measure(args, target, cell, &requests)?;
                results.push((cell, measured));
            }
        }
    }
    let taken = meter.read();

    let mut report = facts.report("throughput", json!(args));
    tabulate(&mut report.figures, &results);
    report.figures.push_noise(taken);
    let nulls: u64 = results.iter().map(|(_, result)| result.nulls).sum();
    if nulls > 0 {
        let note = format!("{nulls} requests for what was stored found nothing");
        report.notes.push(note);
    }
    Ok(report)
}

#[derive(Clone, Copy, Debug)]
struct Cell {
    op: &'static Op,
    pipeline: usize,
    conns: usize,
}

impl Cell {
    fn key(&self) -> String {
        format!("{}_p{}_c{}", self.op.name, self.pipeline, self.conns)
    }
}

/// One window of one cell.
#[derive(Clone, Copy, Debug)]
struct Window {
    cpu_us: Option<f64>,
    per_s: f64,
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
    block("batch_p50_us", &|m| m.batches.at_us(0.5));
    block("batch_p99_us", &|m| m.batches.at_us(0.99));
    block("batch_p999_us", &|m| m.batches.at_us(0.999));
    block("batch_max_ms", &|m| m.batches.max_ms());
}

/// The state that the measuring and the sending threads share.
#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    answered: AtomicU64,
    /// True while latencies count.
    counting: AtomicBool,
}

fn measure(args: &Args, target: Target, cell: Cell, requests: &Requests) -> Result<Measured> {
    let shared = &Shared::default();
    let mut load = Load {
        requests: requests.anew(),
        cell,
        latencies: Latencies::default(),
        shared,
    };
    thread::scope(|scope| {
        let sender = scope.spawn(move || -> Result<_> {
            let nulls = driver::drive(target.port, cell.conns, &mut load, &shared.stop)?;
            Ok((load.latencies, nulls))
        });
        let window_ns = match args.basics.quick {
            true => QUICK_WINDOW_NS,
            false => WINDOW_NS,
        };
        clock::sleep_until(clock::mono_ns() + window_ns / 2);
        shared.counting.store(true, Ordering::Relaxed);
        let mut windows = Vec::new();
        // One that has ended has failed; joining it tells why.
        while windows.len() < WINDOWS && !sender.is_finished() {
            windows.push(window(shared, target.pid, window_ns));
        }
        shared.counting.store(false, Ordering::Relaxed);
        shared.stop.store(true, Ordering::Relaxed);
        let sent = sender.join();
        let (batches, nulls) = sent.map_err(|_| anyhow!("the thread that sends panicked"))??;
        Ok(Measured {
            windows,
            batches,
            nulls,
        })
    })
}

fn window(shared: &Shared, pid: u32, length_ns: u64) -> Window {
    let answered = || shared.answered.load(Ordering::Relaxed);
    let (mut meter, before) = (Meter::start(pid), answered());
    clock::sleep_until(clock::mono_ns() + length_ns);
    let (taken, requests) = (meter.read(), (answered() - before) as f64);
    let server_ns = taken.server_ns.filter(|_| requests > 0.0);
    Window {
        cpu_us: server_ns.map(|ns| ns / 1e3 / requests),
        per_s: requests / (taken.wall_ns as f64 / 1e9),
    }
}

/// The requests of a cell.
struct Load<'a> {
    requests: Requests,
    cell: Cell,
    latencies: Latencies,
    shared: &'a Shared,
}

impl Traffic for Load<'_> {
    fn fill(&mut self, connection: usize, out: &mut Vec<u8>) -> usize {
        let mut requests = Writer::new(Protocol::Resp2);
        let pipeline = self.cell.pipeline;
        self.requests.append(connection, pipeline, &mut requests);
        out.extend_from_slice(requests.as_bytes());
        self.cell.pipeline
    }

    fn answered(&mut self, _: usize, sent_ns: u64, now_ns: u64) {
        let requests = self.cell.pipeline as u64;
        self.shared.answered.fetch_add(requests, Ordering::Relaxed);
        if self.shared.counting.load(Ordering::Relaxed) {
            self.latencies.record(now_ns - sent_ns);
        }
    }
}
