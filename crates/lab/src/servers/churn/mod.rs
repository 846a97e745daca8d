//! SETs with short times to live, flat out: what is stored against what is alive.
//!
//! Every SET makes a new key. The laboratory knows each key's time to live, so it knows how many
//! are alive at any time; the server tells how many it stores. A slow loop of GETs on another
//! connection asks for keys that were set a moment ago and cannot have fallen due.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::Result;
use serde_json::json;

use self::ledger::Ledger;
use self::traffic::Load;
use crate::clock;
use crate::proc::{self, Meter};
use crate::progress;
use crate::report::{Figures, Report};
use crate::rng::Rng;
use crate::servers::background::Background;
use crate::servers::client::Connection;
use crate::servers::driver;
use crate::servers::getter::{self, Pick, Seen};
use crate::servers::keys::Key;
use crate::servers::server::{self, Basics, Target};
use crate::stats;

mod ledger;
mod traffic;

const SAMPLE_NS: u64 = 100_000_000;
const DRAIN_POLL_NS: u64 = 20_000_000;
/// The slow reader's pause between a reply and the next request.
const GET_PAUSE: Duration = Duration::from_micros(200);

/// Connections that SET, and how many SETs each has under way.
const CONNS: usize = 4;
const PIPELINE: usize = 64;

/// Options of `churn`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    basics: Basics,
}

/// How long a run takes, and the shortest and longest times to live.
#[derive(Clone, Copy, Debug)]
struct Course {
    seconds: f64,
    px_ms: (u64, u64),
    /// The dead are awaited this long after the last deadline.
    drain_s: u64,
}

const FULL: Course = Course {
    seconds: 60.0,
    px_ms: (1_000, 5_000),
    drain_s: 60,
};
const QUICK: Course = Course {
    seconds: 2.5,
    px_ms: (400, 1_000),
    drain_s: 5,
};

/// What was seen of the server at one moment.
#[derive(Clone, Copy, Debug)]
struct Sample {
    at_ns: u64,
    /// SETs confirmed by then.
    confirmed: u64,
    stored: u64,
    rss_bytes: Option<u64>,
}

pub(crate) fn run(args: &Args, target: &Target) -> Result<Report> {
    let Basics { seed, quick } = args.basics;
    let course = if quick { QUICK } else { FULL };
    let Course { seconds, px_ms, .. } = course;
    let settled_ms = px_ms.1 + px_ms.1 / 5;
    let (mut connection, facts) = server::meet(target)?;
    let pid = facts.pid;
    let rss_empty = pid.and_then(proc::rss_bytes);
    let expired = |connection: &mut _| server::info_number(connection, "stats", "expired_keys");
    let expired_start = expired(&mut connection);
    let start_ns = clock::mono_ns();
    let end_ns = start_ns + (seconds * 1e9) as u64;
    let length_ms = (seconds * 1e3) as u64 + course.drain_s;
    let ledger = Arc::new(Ledger::new(start_ns, length_ms, px_ms.1));
    let mut meter = Meter::start(pid);

    let address = target.address.clone();
    let mut load = Load::new(Rng::new(seed), px_ms, CONNS, PIPELINE, Arc::clone(&ledger));
    let sender = Background::start(move |stop| driver::drive(&address, CONNS, &mut load, stop));
    let getter = start_getter(target, &ledger, px_ms.0, seed)?;

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
            rss_bytes: pid.and_then(proc::rss_bytes),
        });
        next_ns = (next_ns + SAMPLE_NS).max(at_ns);
    }
    let taken = meter.read();
    let confirmed = ledger.confirmed.load(Ordering::Relaxed);
    let expired_end = expired(&mut connection);
    sender.finish()?;
    let seen = getter.finish()?;

    let last_ns = ledger.last_deadline_ns.load(Ordering::Relaxed);
    let drained = drain(&mut connection, last_ns, course.drain_s as f64)?;
    let left = server::dbsize(&mut connection)?;
    connection.call(&["FLUSHALL"])?;

    let params = json!({
        "seconds": seconds,
        "px_ms": px_ms,
        "conns": CONNS,
        "pipeline": PIPELINE,
        "get_pause_us": GET_PAUSE.as_micros() as u64,
        "steady_from_s": settled_ms as f64 / 1e3,
        "seed": seed,
    });
    let mut report = facts.report("churn", params);
    let figures = &mut report.figures;
    let wall_s = taken.wall_ns as f64 / 1e9;
    figures.push("sets_per_s", confirmed as f64 / wall_s);
    let expired = expired_start.zip(expired_end);
    let expired_per_s = expired.map(|(start, end)| (end - start) / wall_s);
    figures.push("expired_per_s", expired_per_s);
    let steady_ns = start_ns + settled_ms * 1_000_000;
    samples.retain(|sample: &Sample| sample.at_ns >= steady_ns);
    populations(figures, &samples, &ledger, rss_empty);
    reads(figures, &seen, start_ns, start_ns + taken.wall_ns);
    let cpu_per_set = taken.server_ns.map(|ns| ns / 1e3 / confirmed.max(1) as f64);
    figures.push("server_cpu_percent", taken.server_percent());
    figures.push("server_cpu_us_per_set", cpu_per_set);
    figures.push_or_never("drained_s", drained);
    figures.push("dead_left", left as f64);
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
    figures.push("stored_max", stats::spread(&stored).map(|s| s.max));
    figures.push("live_over_stored_median", ratio.map(|r| r.median));
    figures.push("live_over_stored_min", ratio.map(|r| r.min));
    figures.push("live_over_stored_max", ratio.map(|r| r.max));
    figures.push("dead_mean", stats::mean(&dead));
    figures.push("rss_mb_empty", rss_empty.map(|bytes| bytes as f64 / 1e6));
    figures.push("rss_mb_mean", rss_mean.map(|bytes| bytes / 1e6));
    figures.push("rss_mb_max", stats::spread(&rss).map(|s| s.max / 1e6));
    figures.push("rss_bytes_per_live_key", rss_per_key);
}

fn reads(figures: &mut Figures, seen: &Seen, from_ns: u64, to_ns: u64) {
    let gets = seen.log.within(from_ns, to_ns);
    figures.push("get_p50_us", gets.at_us(0.5));
    figures.push("get_p99_us", gets.at_us(0.99));
    figures.push("get_p999_ms", gets.at_us(0.999).map(|us| us / 1e3));
    figures.push("get_max_ms", gets.max_ms());
    figures.push("gets_over_10ms", gets.over_10ms as f64);
    figures.push("gets_missing_or_wrong", (seen.missing + seen.wrong) as f64);
}

/// Asks for keys confirmed within the last two fifths of the shortest time to live.
fn start_getter(
    target: &Target,
    ledger: &Arc<Ledger>,
    px_min: u64,
    seed: u64,
) -> Result<Background<Seen>> {
    let ledger = Arc::clone(ledger);
    let mut rng = Rng::new(seed ^ 1);
    let recent_ns = px_min * 400_000;
    let mut history: VecDeque<(u64, u64)> = VecDeque::new();
    getter::start(&target.address, Some(GET_PAUSE), move || {
        let (now, newest) = (clock::mono_ns(), ledger.settled.load(Ordering::Relaxed));
        history.push_back((now, newest));
        while history.front().is_some_and(|&(at, _)| at + recent_ns < now) {
            history.pop_front();
        }
        let &(since, oldest) = history.front()?;
        let key = Key::dying(oldest + rng.below(newest - oldest));
        // Confirmed after `since`, and set at most a round trip before: a tenth is left for that.
        let alive_until_ns = since + px_min * 900_000;
        (newest > oldest).then_some(Pick {
            key,
            alive_until_ns,
        })
    })
}

/// Waits for an empty server; the seconds from the last deadline on.
fn drain(connection: &mut Connection, last_ns: u64, drain_s: f64) -> Result<Option<f64>> {
    clock::sleep_until(last_ns);
    progress::say("waiting for what is dead to go");
    loop {
        let gone = server::dbsize(connection)? == 0;
        let now = clock::mono_ns();
        let after_s = now.saturating_sub(last_ns) as f64 / 1e9;
        if gone || after_s >= drain_s {
            return Ok(gone.then_some(after_s));
        }
        clock::sleep_until(now + DRAIN_POLL_NS);
    }
}
