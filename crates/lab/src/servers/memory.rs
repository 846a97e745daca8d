//! Resident bytes per key, with and without a time to live.
//!
//! The server must be fresh: what an earlier load left behind in its allocator would be counted as
//! free. `compare` starts one for every run.

use anyhow::{Result, ensure};
use serde_json::json;

use crate::clock;
use crate::proc;
use crate::report::Report;
use crate::rng::Rng;
use crate::servers::keys::{Key, PAYLOAD_BYTES, Ttl};
use crate::servers::loader::{load, long_ttl};
use crate::servers::server::{self, Target};

const MB: f64 = 1e6;

/// Options of `memory`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// Keys to load (quick: 50000).
    #[arg(long, default_value_t = 1_000_000)]
    #[arg(default_value_if("quick", "true", "50000"))]
    keys: u64,
    /// Load them without a TTL; else each has one of 1–2 h.
    #[arg(long)]
    no_ttl: bool,
    /// Seconds between the last SET and the reading (quick: 0.3).
    #[arg(long, default_value_t = 3.0)]
    #[arg(default_value_if("quick", "true", "0.3"))]
    settle_s: f64,
    /// Seed of the times to live.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// A small run of a few seconds.
    #[arg(long)]
    quick: bool,
}

pub(crate) fn run(args: &Args, target: &Target) -> Result<Report> {
    let keys = args.keys;
    ensure!(keys > 0, "--keys must be at least 1");
    let (mut connection, facts) = server::meet(target)?;
    let pid = facts.pid;
    let used = |connection: &mut _| server::info_number(connection, "memory", "used_memory");
    let rss_empty = pid.and_then(proc::rss_bytes);
    let used_empty = used(&mut connection);

    let mut rng = Rng::new(args.seed);
    let mut ttl = || match args.no_ttl {
        true => Ttl::None,
        false => long_ttl(&mut rng),
    };
    let entries = (0..keys as usize).map(|id| (Key::live(id as u64), ttl()));
    let load_s = load(&mut connection, entries, "loading keys")?;
    let settled_ns = clock::mono_ns() + (args.settle_s * 1e9) as u64;
    clock::sleep_until(settled_ns);
    let rss = pid.and_then(proc::rss_bytes);
    let peak = pid.and_then(proc::peak_rss_bytes);
    let used_full = used(&mut connection);
    let stored = server::dbsize(&mut connection)?;
    connection.call(&["FLUSHALL"])?;

    let params = json!({
        "keys": keys,
        "ttl": !args.no_ttl,
        "payload_bytes": PAYLOAD_BYTES,
        "settle_s": args.settle_s,
        "seed": args.seed,
    });
    let mut report = facts.report("memory", params);
    if stored != keys {
        report
            .notes
            .push(format!("{stored} keys are stored, not {keys}"));
    }
    let mb = |bytes: Option<u64>| bytes.map(|bytes| bytes as f64 / MB);
    let per_key = |full: Option<f64>, empty: Option<f64>| {
        full.zip(empty)
            .map(|(full, empty)| (full - empty) / keys as f64)
    };
    let float = |bytes: Option<u64>| bytes.map(|bytes| bytes as f64);
    let rss_per_key = per_key(float(rss), float(rss_empty));
    let overhead = rss_per_key.map(|bytes| bytes - PAYLOAD_BYTES as f64);
    let peak_per_key = per_key(float(peak), float(rss_empty));
    let figures = &mut report.figures;
    figures.push("rss_mb_empty", mb(rss_empty));
    figures.push("rss_mb", mb(rss));
    figures.push("rss_bytes_per_key", rss_per_key);
    figures.push("overhead_bytes_per_key", overhead);
    figures.push("peak_rss_bytes_per_key", peak_per_key);
    figures.push("used_bytes_per_key", per_key(used_full, used_empty));
    figures.push("load_k_per_s", keys as f64 / load_s / 1e3);
    Ok(report)
}
