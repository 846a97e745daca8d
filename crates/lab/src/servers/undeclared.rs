//! Measures GETs beside scripts over keys that they do not declare.
//!
//! Some connections GET in closed loops. They are alone at first; then another calls a script at a
//! fixed rate; then as fast as it can. The script reads and writes a key whose name is an argument.

use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Result, ensure};
use serde::Serialize;
use serde_json::json;
use tidewheel_resp::{Protocol, Writer};

use crate::clock;
use crate::latency::{Log, Sample};
use crate::proc::Meter;
use crate::progress;
use crate::report::{Figures, Report};
use crate::rng::Rng;
use crate::runner::{Basics, count, threads};
use crate::servers::background::Background;
use crate::servers::client::Connection;
use crate::servers::driver::{self, Traffic};
use crate::servers::keys::{Key, encode_get};
use crate::servers::loader::{load, long_ttl};
use crate::servers::ops::{self, Draw, Requests};
use crate::servers::server::{self, Target};

/// Options of `undeclared`.
#[derive(Clone, Debug, clap::Args, Serialize)]
pub(crate) struct Args {
    /// Keys that are read (quick: 10000).
    #[arg(long, default_value_t = 100_000, value_parser = count::<u64>)]
    #[arg(default_value_if("quick", "true", "10000"))]
    keys: u64,
    /// Connections that GET.
    #[arg(long, default_value_t = 8, value_parser = threads)]
    readers: usize,
    /// Scripts a second in the second phase.
    #[arg(long, default_value_t = 30_000, value_parser = count::<u64>)]
    rate: u64,
    /// Scripts under way.
    #[arg(long, default_value_t = 10, value_parser = count::<u64>)]
    pipeline: u64,
    /// Seconds of each phase (quick: 1).
    #[arg(long, default_value_t = 5, value_parser = count::<u64>)]
    #[arg(default_value_if("quick", "true", "1"))]
    seconds: u64,
    #[command(flatten)]
    #[serde(flatten)]
    basics: Basics,
}

/// Of each phase, its first part does not count.
const WARM_UP: Duration = Duration::from_millis(200);

pub(crate) fn run(args: &Args, target: Target) -> Result<Report> {
    let (mut connection, facts) = server::meet(target)?;
    let mut rng = Rng::new(args.basics.seed);
    let entries = (0..args.keys).map(|id| (Key::live(id), long_ttl(&mut rng)));
    load(&mut connection, entries, "loading keys")?;
    let op = ops::parse("undeclared").map_err(anyhow::Error::msg)?;
    let mut requests = Requests::new(op, Rng::new(args.basics.seed), args.keys, Draw::Uniform);
    requests.store(&mut connection)?;

    progress::say("measuring");
    let mut meter = Meter::start(target.pid);
    let (port, readers) = (target.port, args.readers);
    let mut gets = Gets {
        rng,
        keys: args.keys,
        log: Log::default(),
    };
    let gets = Background::start(move |stop| {
        let missing = driver::drive(port, readers, &mut gets, stop)?;
        ensure!(missing == 0, "GETs found nothing");
        Ok(gets.log)
    });
    let phase_ns = args.seconds * 1_000_000_000;
    let alone = Phase::pass(phase_ns, None);
    let every_ns = args.pipeline * 1_000_000_000 / args.rate;
    let beside = |every_ns| -> Result<_> {
        let (requests, pipeline) = (requests.anew(), args.pipeline as usize);
        let scripts = call(target.port, requests, pipeline, every_ns)?;
        let phase = Phase::pass(phase_ns, Some(&scripts));
        Ok((phase, scripts.finish()?))
    };
    let at_rate = beside(every_ns)?;
    let flat_out = beside(0)?;
    let log = gets.finish()?;
    let taken = meter.read();

    let mut report = facts.report("undeclared", json!(args));
    let figures = &mut report.figures;
    alone.tell("alone", &log, figures);
    for (name, (phase, ends)) in [("at_rate", at_rate), ("flat_out", flat_out)] {
        phase.tell(name, &log, figures);
        let ended = ends.iter().filter(|&&at| phase.holds(at)).count() as u64;
        let scripts = (ended * args.pipeline) as f64;
        figures.push(format!("scripts_per_s_{name}"), scripts / phase.seconds());
    }
    figures.push_noise(taken);
    Ok(report)
}

/// The readers, with how long each GET took.
struct Gets {
    rng: Rng,
    keys: u64,
    log: Log,
}

impl Traffic for Gets {
    fn fill(&mut self, _: usize, out: &mut Vec<u8>) -> usize {
        encode_get(out, Key::live(self.rng.below(self.keys)));
        1
    }

    fn answered(&mut self, _: usize, sent_ns: u64, end_ns: u64) {
        let latency_ns = end_ns - sent_ns;
        self.log.push(Sample { end_ns, latency_ns });
    }
}

/// A stretch of time.
#[derive(Clone, Copy, Debug)]
struct Phase {
    start_ns: u64,
    end_ns: u64,
}

impl Phase {
    /// Lets so much time pass, or less if the scripts fail.
    fn pass(length_ns: u64, scripts: Option<&Background<Vec<u64>>>) -> Self {
        let start_ns = clock::mono_ns() + WARM_UP.as_nanos() as u64;
        let end_ns = start_ns + length_ns;
        while clock::mono_ns() < end_ns && !scripts.is_some_and(Background::has_ended) {
            std::thread::sleep(Duration::from_millis(10));
        }
        Self { start_ns, end_ns }
    }

    fn holds(&self, at_ns: u64) -> bool {
        (self.start_ns..self.end_ns).contains(&at_ns)
    }

    fn seconds(&self) -> f64 {
        (self.end_ns - self.start_ns) as f64 / 1e9
    }

    fn tell(&self, name: &str, log: &Log, figures: &mut Figures) {
        let gets = log.within(self.start_ns, self.end_ns);
        figures.push(
            format!("gets_per_s_{name}"),
            gets.count() as f64 / self.seconds(),
        );
        for (quantile, us) in gets.percentiles() {
            figures.push(format!("get_{quantile}_us_{name}"), us);
        }
    }
}

/// Calls the script: so many at a time, each batch so long after the one before, or later if that
/// was not answered. Returns when each batch was answered.
fn call(
    port: u16,
    mut requests: Requests,
    pipeline: usize,
    every_ns: u64,
) -> Result<Background<Vec<u64>>> {
    let mut connection = Connection::open(port)?;
    Ok(Background::start(move |stop| {
        let mut ends = Vec::new();
        let mut next_ns = clock::mono_ns();
        while !stop.load(Ordering::Relaxed) {
            if every_ns > 0 {
                clock::sleep_until(next_ns);
                next_ns += every_ns;
            }
            let mut out = Writer::new(Protocol::Resp2);
            requests.append(0, pipeline, &mut out);
            connection.send(out.as_bytes())?;
            connection.expect_replies(pipeline)?;
            ends.push(clock::mono_ns());
        }
        Ok(ends)
    }))
}
