//! Measures the bytes per entry of streams, in a fresh server.

use std::thread;
use std::time::Duration;

use anyhow::Result;
use serde::Serialize;
use serde_json::json;
use tidewheel_resp::{Protocol, Writer};

use crate::proc;
use crate::progress;
use crate::report::Report;
use crate::rng::Rng;
use crate::runner::{Basics, count};
use crate::servers::server::{self, Target};

/// Entries under way while they are added.
const BATCH: u64 = 500;
/// Between the last XADD and the reading.
const REST: Duration = Duration::from_secs(1);

/// Options of `stream-memory`.
#[derive(Clone, Debug, clap::Args, Serialize)]
pub(crate) struct Args {
    /// Entries of all streams together (quick: 50000).
    #[arg(long, default_value_t = 1_000_000, value_parser = count::<u64>)]
    #[arg(default_value_if("quick", "true", "50000"))]
    entries: u64,
    /// Streams; entries go to each in turn.
    #[arg(long, default_value_t = 1, value_parser = count::<u64>)]
    streams: u64,
    /// Fields of an entry.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=3))]
    fields: u64,
    #[command(flatten)]
    #[serde(flatten)]
    basics: Basics,
}

pub(crate) fn run(args: &Args, target: Target) -> Result<Report> {
    let (mut connection, facts) = server::meet(target)?;
    let used = |connection: &mut _| server::info_number(connection, "memory", "used_memory");
    let rss = || proc::rss_bytes(target.pid).map(|bytes| bytes as f64);
    let (rss_empty, used_empty) = (rss(), used(&mut connection));

    progress::say("adding entries");
    let mut rng = Rng::new(args.basics.seed);
    let mut payload = 0;
    for first in (0..args.entries).step_by(BATCH as usize) {
        let batch = BATCH.min(args.entries - first);
        let mut out = Writer::new(Protocol::Resp2);
        for id in first..first + batch {
            payload += append(&mut out, id % args.streams, args.fields, &mut rng);
        }
        connection.send(out.as_bytes())?;
        connection.expect_replies(batch as usize)?;
    }
    thread::sleep(REST);
    let (rss, used_full) = (rss(), used(&mut connection));

    let mut report = facts.report("stream-memory", json!(args));
    let per_entry =
        |full: Option<f64>, empty: Option<f64>| Some((full? - empty?) / args.entries as f64);
    let figures = &mut report.figures;
    figures.push(
        "payload_bytes_per_entry",
        payload as f64 / args.entries as f64,
    );
    figures.push("used_bytes_per_entry", per_entry(used_full, used_empty));
    figures.push("rss_bytes_per_entry", per_entry(rss, rss_empty));
    Ok(report)
}

/// Appends one XADD; returns the bytes of its fields and values.
fn append(out: &mut Writer, stream: u64, fields: u64, rng: &mut Rng) -> usize {
    let values = [
        ("user", format!("user{}", rng.below(100_000))),
        (
            "action",
            ["view", "click", "order"][rng.below(3) as usize].to_owned(),
        ),
        ("amount", rng.below(10_000).to_string()),
    ];
    let values = &values[..fields as usize];
    let stream = format!("stream:{stream}");
    out.array(3 + 2 * values.len());
    out.bulk(b"XADD");
    out.bulk(stream.as_bytes());
    out.bulk(b"*");
    let mut bytes = 0;
    for (field, value) in values {
        out.bulk(field.as_bytes());
        out.bulk(value.as_bytes());
        bytes += field.len() + value.len();
    }
    bytes
}
