//! Measures resident bytes per key, with and without a time to live.
//!
//! The server must be fresh: what an earlier load left behind in its allocator would be counted as
//! free. `compare` starts one for every run.

use std::thread;
use std::time::Duration;

use anyhow::Result;
use serde::Serialize;
use serde_json::json;

use crate::proc;
use crate::report::Report;
use crate::rng::Rng;
use crate::runner::{Basics, count};
use crate::servers::keys::{Key, PAYLOAD_BYTES, Ttl};
use crate::servers::loader::{load, long_ttl};
use crate::servers::server::{self, Target};

/// Between the last SET and the reading.
const REST: Duration = Duration::from_secs(3);
const QUICK_REST: Duration = Duration::from_millis(300);

/// Options of `memory`.
#[derive(Clone, Debug, clap::Args, Serialize)]
pub(crate) struct Args {
    /// Keys to load (quick: 50000).
    #[arg(long, default_value_t = 1_000_000, value_parser = count::<u64>)]
    #[arg(default_value_if("quick", "true", "50000"))]
    keys: u64,
    /// Load them without a TTL; else each has one of 1–2 h.
    #[arg(long)]
    no_ttl: bool,
    #[command(flatten)]
    #[serde(flatten)]
    basics: Basics,
}

pub(crate) fn run(args: &Args, target: Target) -> Result<Report> {
    let keys = args.keys;
    let (mut connection, facts) = server::meet(target)?;
    let used = |connection: &mut _| server::info_number(connection, "memory", "used_memory");
    let rss = || proc::rss_bytes(target.pid).map(|bytes| bytes as f64);
    let (rss_empty, used_empty) = (rss(), used(&mut connection));

    let mut rng = Rng::new(args.basics.seed);
    let mut ttl = || match args.no_ttl {
        true => Ttl::None,
        false => long_ttl(&mut rng),
    };
    let entries = (0..keys).map(|id| (Key::live(id), ttl()));
    load(&mut connection, entries, "loading keys")?;
    thread::sleep(if args.basics.quick { QUICK_REST } else { REST });
    let (rss, used_full) = (rss(), used(&mut connection));
    let stored = server::dbsize(&mut connection)?;

    let mut report = facts.report("memory", json!(args));
    report.params["payload_bytes"] = json!(PAYLOAD_BYTES);
    if stored != keys {
        let note = format!("{stored} keys are stored, not {keys}");
        report.notes.push(note);
    }
    let mb = |bytes: Option<f64>| Some(bytes? / 1e6);
    let per_key = |full: Option<f64>, empty: Option<f64>| Some((full? - empty?) / keys as f64);
    let rss_per_key = per_key(rss, rss_empty);
    let overhead = rss_per_key.map(|bytes| bytes - PAYLOAD_BYTES as f64);
    let figures = &mut report.figures;
    figures.push("rss_mb_empty", mb(rss_empty));
    figures.push("rss_mb", mb(rss));
    figures.push("rss_bytes_per_key", rss_per_key);
    figures.push("overhead_bytes_per_key", overhead);
    figures.push("used_bytes_per_key", per_key(used_full, used_empty));
    Ok(report)
}
