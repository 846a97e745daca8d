//! SETs with short times to live, flat out: the keys that are stored against those that are alive.
//!
//! Every SET makes a new key. The laboratory knows each key's time to live, so it knows how many
//! are alive at any time; the server tells how many it stores.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use anyhow::Result;
use serde_json::json;

use self::ledger::Ledger;
use crate::clock;
use crate::proc::{self, Meter};
use crate::progress;
use crate::report::{Figures, Report};
use crate::rng::Rng;
use crate::runner::Basics;
use crate::servers::background::Background;
use crate::servers::driver::{self, Traffic};
use crate::servers::keys::{Key, Ttl, encode_set};
use crate::servers::server::{self, Target};
use crate::stats;

mod ledger;

const SAMPLE_NS: u64 = 100_000_000;
/// Connections that SET, and how many SETs each has under way.
const CONNS: usize = 4;
const PIPELINE: u64 = 64;

/// A view of the server at one moment.
#[derive(Clone, Copy, Debug)]
struct Sample {
    at_ns: u64,
    /// SETs confirmed by then.
    confirmed: u64,
    stored: u64,
    rss_bytes: Option<u64>,
}

pub(crate) fn run(basics: &Basics, target: Target) -> Result<Report> {
    let &Basics { seed, quick } = basics;
    // How long it takes, and the shortest and longest times to live.
    let (seconds, px_ms) = match quick {
        true => (1.5, (200, 500)),
        false => (60.0, (1_000, 5_000)),
    };
    let settled_ms = px_ms.1 + px_ms.1 / 5;
    let (mut connection, facts) = server::meet(target)?;
    let rss_empty = proc::rss_bytes(target.pid);
    let expired = |connection: &mut _| server::info_number(connection, "stats", "expired_keys");
    let expired_start = expired(&mut connection);
    let start_ns = clock::mono_ns();
    let end_ns = start_ns + (seconds * 1e9) as u64;
    let ledger = Arc::new(Ledger::new(start_ns, (seconds * 1e3) as u64, px_ms.1));
    let mut meter = Meter::start(target.pid);
    let mut load = Load {
        rng: Rng::new(seed),
        px_ms,
        under_way: vec![Vec::new(); CONNS],
        next_id: 0,
        ledger: Arc::clone(&ledger),
    };
    let port = target.port;
    let sender = Background::start(move |stop| driver::drive(port, CONNS, &mut load, stop));

    progress::say("setting");
    let mut samples = Vec::new();
    let mut next_ns = start_ns + SAMPLE_NS;
    while next_ns <= end_ns && !sender.has_ended() {
        clock::sleep_until(next_ns);
        let stored = server::dbsize(&mut connection)?;
        let at_ns = clock::mono_ns();
        samples.push(Sample {
            at_ns,
            confirmed: ledger.confirmed.load(Ordering::Relaxed),
            stored,
            rss_bytes: proc::rss_bytes(target.pid),
        });
        next_ns = (next_ns + SAMPLE_NS).max(at_ns);
    }
    let taken = meter.read();
    let confirmed = ledger.confirmed.load(Ordering::Relaxed);
    let expired = expired_start.zip(expired(&mut connection));
    sender.finish()?;

    let params = json!({
        "seconds": seconds,
        "px_ms": px_ms,
        "conns": CONNS,
        "pipeline": PIPELINE,
        "steady_from_s": settled_ms as f64 / 1e3,
        "seed": seed,
    });
    let mut report = facts.report("churn", params);
    let figures = &mut report.figures;
    let wall_s = taken.wall_ns as f64 / 1e9;
    let expired_per_s = expired.map(|(start, end)| (end - start) / wall_s);
    figures.push("sets_per_s", confirmed as f64 / wall_s);
    figures.push("expired_per_s", expired_per_s);
    let steady_ns = start_ns + settled_ms * 1_000_000;
    samples.retain(|sample: &Sample| sample.at_ns >= steady_ns);
    populations(figures, &samples, &ledger, rss_empty);
    let cpu_per_set = taken.server_ns.map(|ns| ns / 1e3 / confirmed.max(1) as f64);
    figures.push("server_cpu_percent", taken.server_percent());
    figures.push("server_cpu_us_per_set", cpu_per_set);
    figures.push_noise(taken);
    Ok(report)
}

fn populations(figures: &mut Figures, steady: &[Sample], ledger: &Ledger, rss_empty: Option<u64>) {
    let of = |figure: &dyn Fn(&Sample) -> Option<f64>| -> Vec<f64> {
        steady.iter().filter_map(figure).collect()
    };
    let live_then = |sample: &Sample| ledger.live(sample.at_ns, sample.confirmed) as f64;
    let live = of(&|sample| Some(live_then(sample)));
    let stored = of(&|sample| Some(sample.stored as f64));
    let ratios = of(&|s| (s.stored > 0).then(|| live_then(s) / s.stored as f64));
    let dead = of(&|sample| Some((sample.stored as f64 - live_then(sample)).max(0.0)));
    let rss = of(&|sample| sample.rss_bytes.map(|bytes| bytes as f64));
    let ratio = stats::spread(&ratios);
    let (rss_mean, live_mean) = (stats::mean(&rss), stats::mean(&live));
    let rss_per_key = rss_mean.zip(live_mean).map(|(rss, live)| rss / live);
    figures.push("live_mean", live_mean);
    figures.push("stored_mean", stats::mean(&stored));
    figures.push("live_over_stored_median", ratio.map(|r| r.median));
    figures.push("live_over_stored_min", ratio.map(|r| r.min));
    figures.push("dead_mean", stats::mean(&dead));
    figures.push("rss_mb_empty", rss_empty.map(|bytes| bytes as f64 / 1e6));
    figures.push("rss_mb_mean", rss_mean.map(|bytes| bytes / 1e6));
    figures.push("rss_bytes_per_live_key", rss_per_key);
}

/// New keys without end, each with a time to live of its own.
#[derive(Debug)]
struct Load {
    rng: Rng,
    px_ms: (u64, u64),
    /// Times to live of the batch that each connection has under way.
    under_way: Vec<Vec<u64>>,
    next_id: u64,
    ledger: Arc<Ledger>,
}

impl Traffic for Load {
    fn fill(&mut self, connection: usize, out: &mut Vec<u8>) -> usize {
        let batch = &mut self.under_way[connection];
        batch.clear();
        for id in self.next_id..self.next_id + PIPELINE {
            let px = self.rng.between(self.px_ms.0, self.px_ms.1);
            batch.push(px);
            encode_set(out, Key::dying(id), Ttl::Px(px));
        }
        self.next_id += PIPELINE;
        PIPELINE as usize
    }

    fn answered(&mut self, connection: usize, sent_ns: u64, _: u64) {
        self.ledger.book(sent_ns, &self.under_way[connection]);
    }
}
