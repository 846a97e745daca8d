//! What it costs to find out what has expired, and whom that stalls.
//!
//! The load is that of "Killing O(n): How Timing Wheels Expire 10 Million Keys" (October 2025): N entries
//! inserted within one second, TTLs of 30 to 59 s, so that N/30 fall due in each second from 30 to 60. Its
//! tables are measured as it ran them (`calm`: nothing is due while its readers read) and with expiry going on.

use std::fs::File;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;

use self::readers::Plan;
use crate::caches::kind::{Kind, TtlOf};
use crate::outcome::Outcome;
use crate::page;
use crate::runner::Common;

pub(crate) mod caches;
mod course;
mod readers;
mod scan;
pub(crate) mod strategies;
mod tally;
mod ticks;

const MAX_ENTRIES: u64 = 100_000_000;
const MAX_READERS: usize = 1_024;
const SECOND_NS: u64 = 1_000_000_000;
/// Below this many entries readers are measured only when asked for.
const READERS_FROM: u64 = 100_000;
/// From here on a fill takes so long that TTLs begin at 30 s; below, at 12.
const MANY: u64 = 5_000_000;
/// Who is measured while nothing is due: the two caches of the published tables, and ours.
const CALM: [Kind; 3] = [Kind::NaiveScan, Kind::SlotWheel, Kind::Tidewheel];

/// Options of `study expiry`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    common: Common,
    /// Parts (default all).
    #[arg(long, value_enum, value_delimiter = ',', value_name = "PART,…")]
    only: Option<Vec<Part>>,
    /// Numbers of entries (default 1000 to 10000000; readers from 100000 on).
    #[arg(long, value_delimiter = ',', value_name = "N,…")]
    entries: Option<Vec<u64>>,
    /// Caches that readers read (default naive-scan, slot-wheel, tidewheel and every strategy).
    #[arg(long, value_enum, value_delimiter = ',', value_name = "CACHE,…")]
    subjects: Option<Vec<Kind>>,
    /// Readers.
    #[arg(long, default_value_t = 10)]
    readers: usize,
    /// Milliseconds between two reads of one reader.
    #[arg(long, default_value_t = 10)]
    pace_ms: u64,
    /// Where the page with the pictures goes.
    #[arg(long, value_name = "FILE", default_value = "expiry.html")]
    out: PathBuf,
}

/// One part of the study.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// How long one walk over everything takes.
    Scan,
    /// What each strategy costs, in virtual time.
    Ticks,
    /// What readers see of it, in real time.
    Readers,
}

/// `None` in a process that measures for another.
pub(crate) fn run(args: &Args) -> Result<Option<Outcome>> {
    let common = &args.common;
    let sizes = sizes(args)?;
    let (plans, kinds) = args.readers_of(&sizes)?;
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
            Part::Readers => readers::run(common, &plans, &kinds)?,
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

fn sizes(args: &Args) -> Result<Vec<u64>> {
    let usual = [1_000, 10_000, 100_000, 1_000_000, 10_000_000];
    let usual = usual[..if args.common.quick { 3 } else { 5 }].to_vec();
    let mut sizes = args.entries.clone().unwrap_or(usual);
    sizes.sort_unstable();
    sizes.dedup();
    ensure!(
        sizes.iter().all(|size| (1..=MAX_ENTRIES).contains(size)),
        "--entries lies in 1..={MAX_ENTRIES}"
    );
    Ok(sizes)
}

impl Args {
    fn readers_of(&self, sizes: &[u64]) -> Result<(Vec<Plan>, Vec<Kind>)> {
        ensure!(
            (1..=MAX_READERS).contains(&self.readers),
            "--readers lies in 1..={MAX_READERS}"
        );
        ensure!(
            (1..=1_000).contains(&self.pace_ms),
            "--pace-ms lies in 1..=1000"
        );
        let quick = self.common.quick;
        let kinds = self.subjects.clone().unwrap_or_else(|| usual_kinds(quick));
        for kind in &kinds {
            ensure!(kind.ttl_of() == TtlOf::Entry, "{kind} has no TTL per entry");
        }
        let wanted = |size: &&u64| self.entries.is_some() || **size >= READERS_FROM;
        let plan = |(entries, fair)| Plan {
            entries,
            fair,
            readers: self.readers,
            pace: Duration::from_millis(self.pace_ms),
            lead_ns: lead_s(entries, fair, quick) * SECOND_NS,
            window_ns: match (quick, fair && entries >= MANY) {
                (true, _) => SECOND_NS / 2,
                (false, false) => 10 * SECOND_NS,
                (false, true) => 20 * SECOND_NS,
            },
            seed: self.common.seed,
        };
        let sizes = sizes.iter().filter(wanted);
        let cells = sizes.flat_map(|&size| [(size, false), (size, true)]);
        Ok((cells.map(plan).collect(), kinds))
    }
}

/// A quick run leaves most strategies to the virtual clock.
fn usual_kinds(quick: bool) -> Vec<Kind> {
    let strategies = Kind::value_variants().iter().copied();
    let strategies = strategies.filter(|kind| kind.is_strategy());
    let quick_too = [Kind::Sampling, Kind::HierarchicalWheel];
    let chosen = strategies.filter(|kind| !quick || quick_too.contains(kind));
    CALM.into_iter().chain(chosen).collect()
}

/// The shortest TTL.
fn lead_s(entries: u64, fair: bool, quick: bool) -> u64 {
    match (fair, quick) {
        (true, true) => 2,
        (true, false) if entries < MANY => 12,
        _ => scan::SHORTEST_TTL_S,
    }
}
