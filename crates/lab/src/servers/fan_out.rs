//! Measures the time from the XADD of an entry until the last of very many clients has it that wait
//! for the stream.
//!
//! All who wait are connections of one thread. Each entry is the time at which it was sent, and is
//! added once all wait. Whoever got an entry waits for the next one.

use anyhow::{Context, Result, bail, ensure};
use serde::Serialize;
use serde_json::json;
use tidewheel_resp::Reply;

use crate::clock;
use crate::proc::Meter;
use crate::progress;
use crate::report::Report;
use crate::runner::Basics;
use crate::servers::crowd::{Crowd, Wait};
use crate::servers::server::{self, Target};
use crate::stats;

const WAIT: &[u8] = b"*6\r\n$5\r\nXREAD\r\n$5\r\nBLOCK\r\n$1\r\n0\r\n$7\r\nSTREAMS\r\n\
    $4\r\nnews\r\n$1\r\n$\r\n";

/// Options of `fan-out`.
#[derive(Clone, Debug, clap::Args, Serialize)]
pub(crate) struct Args {
    /// Clients that wait for the one stream (quick: 100).
    #[arg(long, default_value_t = 10_000)]
    #[arg(default_value_if("quick", "true", "100"))]
    waiters: usize,
    /// Entries, each for all of them (quick: 3).
    #[arg(long, default_value_t = 20)]
    #[arg(default_value_if("quick", "true", "3"))]
    entries: u64,
    #[command(flatten)]
    #[serde(flatten)]
    basics: Basics,
}

pub(crate) fn run(args: &Args, target: Target) -> Result<Report> {
    let (mut connection, facts) = server::meet(target)?;
    progress::say("connecting those who wait");
    let wait = Wait {
        request: WAIT,
        sent_ns,
    };
    let waiters = args.waiters as u64;
    let crowd = Crowd::start(target.port, args.waiters, u64::MAX, wait)?;

    progress::say("adding");
    let mut meter = Meter::start(target.pid);
    let (mut until_last_ms, mut received) = (Vec::new(), 0);
    for _ in 0..args.entries {
        crowd.await_waiting(&mut connection)?;
        let start_ns = clock::mono_ns();
        connection.call(&["XADD", "news", "*", "sent", &start_ns.to_string()])?;
        received += waiters;
        crowd.await_received(received)?;
        until_last_ms.push(crowd.last_ns().saturating_sub(start_ns) as f64 / 1e6);
    }
    crowd.await_waiting(&mut connection)?;
    let taken = meter.read();
    let (latencies, answers) = crowd.finish()?;
    let each = args.entries;
    ensure!(
        answers.iter().all(|&count| count == each),
        "not everybody got each entry once"
    );

    let mut report = facts.report("fan-out", json!(args));
    let figures = &mut report.figures;
    figures.push("received", received as f64);
    figures.push("until_last_median_ms", stats::median(&until_last_ms));
    let least = until_last_ms.iter().copied().reduce(f64::min);
    figures.push("until_last_least_ms", least);
    for (name, us) in latencies.percentiles() {
        figures.push(format!("answer_{name}_ms"), us.map(|us| us / 1e3));
    }
    let cpu = taken.server_ns.map(|ns| ns / 1e3 / received.max(1) as f64);
    figures.push("server_cpu_us_per_answer", cpu);
    figures.push_noise(taken);
    Ok(report)
}

/// The time at which the entry of a reply was added.
fn sent_ns(reply: &Reply) -> Result<u64> {
    let Some(value) = value(reply) else {
        bail!("XREAD was answered with {reply:?}");
    };
    let text = String::from_utf8_lossy(value);
    text.parse().context("an entry that nobody has added")
}

/// The value of the only field of the only entry of the only stream.
fn value(reply: &Reply) -> Option<&[u8]> {
    fn only(reply: &Reply) -> Option<&Reply> {
        match reply {
            Reply::Array(items) if items.len() == 1 => Some(&items[0]),
            _ => None,
        }
    }
    // Streams with their entries, entries with their fields.
    let Reply::Array(stream) = only(reply)? else {
        return None;
    };
    let Reply::Array(entry) = only(stream.get(1)?)? else {
        return None;
    };
    let Reply::Array(fields) = entry.get(1)? else {
        return None;
    };
    match fields.get(1)? {
        Reply::Bulk(value) => Some(value),
        _ => None,
    }
}
