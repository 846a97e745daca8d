//! Simulations in virtual time: hit ratios, and memory held under times to live.

use std::path::PathBuf;

use anyhow::Result;
use clap::ValueEnum;

use crate::outcome::Outcome;
use crate::progress::Progress;

mod bounds;
mod hits;
mod memory;
mod mixes;
#[cfg(feature = "peers")]
mod peers;
mod policy;
mod trace;

/// Options of `simulate`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// Run this one alone (default both).
    #[arg(long, value_enum)]
    only: Option<Only>,
    /// Folder of recorded requests. Hit ratios: one key a line (.txt), blocks (.lis) or a column named
    /// `key` (.csv), plain or compressed (.xz); without it, made-up mixes are replayed.
    /// Memory: requests with times and times to live (kvcache-1.csv, kvcache-2.csv) beside the made-up ones.
    #[arg(long, value_name = "DIR")]
    traces: Option<PathBuf>,
    /// Seed of what is made up.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    hits: hits::Options,
    #[command(flatten)]
    memory: memory::Options,
}

/// Which simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Only {
    /// Hit ratios at fixed sizes.
    Hits,
    /// Memory held over time under times to live, and hit ratios under a limit.
    Memory,
}

pub(crate) fn run(args: &Args, progress: &Progress) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let traces = args.traces.as_deref();
    if args.only.is_none_or(|only| only == Only::Hits) {
        outcome.append(hits::run(&args.hits, traces, args.seed, progress)?);
    }
    if args.only.is_none_or(|only| only == Only::Memory) {
        outcome.append(memory::run(&args.memory, traces, args.seed, progress)?);
    }
    Ok(outcome)
}
