//! The cost of finding what has expired, and the stalls that it causes.
//!
//! The load is that of "Killing O(n): How Timing Wheels Expire 10 Million Keys" (October 2025): N
//! entries inserted within one second, TTLs of 30 to 59 s, so that N/30 fall due in each second
//! from 30 to 60. Its tables are measured as it ran them (`calm`: nothing is due while its readers
//! read) and with expiry going on.

use std::fs::File;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;

use crate::caches::kind::CacheKind;
use crate::outcome::Outcome;
use crate::page;
use crate::runner::{Common, count};

pub(crate) mod caches;
mod course;
mod readers;
mod scan;
pub(crate) mod strategies;
mod tally;
mod ticks;

const SECOND_NS: u64 = 1_000_000_000;
/// Below this many entries readers are measured only when asked for.
const READERS_FROM: u64 = 100_000;
/// The caches that are measured while nothing is due: the two of the published tables, and ours.
const CALM: [CacheKind; 3] = [
    CacheKind::NaiveScan,
    CacheKind::SlotWheel,
    CacheKind::Tidewheel,
];

/// Options of `study expiry`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    common: Common,
    /// Parts (default all).
    #[arg(long, value_enum, value_delimiter = ',', value_name = "PART,…")]
    only: Option<Vec<Part>>,
    /// Numbers of entries (default 1000 to 10000000; readers from 100000 on).
    #[arg(long, value_delimiter = ',', value_name = "N,…", value_parser = count::<u64>)]
    entries: Option<Vec<u64>>,
    /// Caches that readers read (default naive-scan, slot-wheel, tidewheel and every strategy).
    #[arg(long, value_enum, value_delimiter = ',', value_name = "CACHE,…")]
    subjects: Option<Vec<CacheKind>>,
    /// Path of the page with the pictures.
    #[arg(long, value_name = "FILE", default_value = "expiry.html")]
    out: PathBuf,
}

/// One part of the study.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// The time of one walk over everything.
    Scan,
    /// The cost of each strategy, in virtual time.
    Ticks,
    /// Its effect on readers, in real time.
    Readers,
}

/// `None` in a process that measures for another.
pub(crate) fn run(args: &Args) -> Result<Option<Outcome>> {
    let common = &args.common;
    let sizes = sizes(args);
    let kinds = kinds(args)?;
    let wanted = |size: &u64| args.entries.is_some() || *size >= READERS_FROM;
    let read: Vec<u64> = sizes.iter().copied().filter(wanted).collect();
    if common.share.is_none() {
        // An hour's figures must not be lost because a page cannot be written.
        let out = args.out.display();
        File::create(&args.out).with_context(|| format!("cannot write {out}"))?;
    }
    let mut outcome = Outcome::default();
    for part in args.only.as_deref().unwrap_or(Part::value_variants()) {
        let found = match part {
            Part::Scan => scan::run(common, &sizes)?,
            Part::Ticks => ticks::run(common, &sizes)?,
            Part::Readers => readers::run(common, &read, &kinds)?,
        };
        let Some(found) = found else {
            return Ok(None);
        };
        outcome.append(found);
    }
    outcome.note_counting();
    page::write(&outcome.reports, &args.out)?;
    let note = format!("the page with the pictures is {}", args.out.display());
    outcome.notes.push(note);
    Ok(Some(outcome))
}

fn sizes(args: &Args) -> Vec<u64> {
    let usual = [1_000, 10_000, 100_000, 1_000_000, 10_000_000];
    let usual = usual[..if args.common.basics.quick { 3 } else { 5 }].to_vec();
    let mut sizes = args.entries.clone().unwrap_or(usual);
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// The caches that readers read. A quick run leaves most strategies to the virtual clock.
fn kinds(args: &Args) -> Result<Vec<CacheKind>> {
    let usual = || {
        let strategies = CacheKind::value_variants().iter().copied();
        let strategies = strategies.filter(|kind| kind.is_strategy());
        let quick_too = [CacheKind::Sampling, CacheKind::HierarchicalWheel];
        let chosen =
            strategies.filter(|kind| !args.common.basics.quick || quick_too.contains(kind));
        CALM.into_iter().chain(chosen).collect()
    };
    let kinds: Vec<CacheKind> = args.subjects.clone().unwrap_or_else(usual);
    for kind in &kinds {
        ensure!(kind.has_ttl(), "{kind} has no TTL per entry");
    }
    Ok(kinds)
}
