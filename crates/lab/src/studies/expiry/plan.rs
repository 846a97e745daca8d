//! What a run of `seeds` measures, in which order, and how long that takes.

use std::time::Duration;

use anyhow::{Result, bail};
use clap::ValueEnum;

use super::{Args, readers, scan, ticks};
use crate::caches::kind::{Kind, TtlOf};
use crate::report::Report;
use crate::strategies::Strategy;

/// One part of the experiments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Part {
    /// How long one walk over everything takes.
    Scan,
    /// What each strategy costs, in virtual time.
    Ticks,
    /// What readers see of it, in real time.
    Readers,
}

/// One measurement, in a process of its own.
#[derive(Clone, Copy, Debug)]
pub(super) enum Work {
    Scan(u64),
    Ticks(Strategy, u64),
    Readers(Kind, readers::Plan),
}

/// A measurement and its round.
#[derive(Clone, Copy, Debug)]
pub(super) struct Job {
    pub(super) work: Work,
    pub(super) round: usize,
}

const SECOND_NS: u64 = 1_000_000_000;
/// From here on a fill takes so long that TTLs begin at the article's 30 s; below, at 12.
const MANY: u64 = 5_000_000;
const MAX_ENTRIES: u64 = 100_000_000;
const MAX_READERS: usize = 1_024;
/// The article's tables of readers begin here.
const READERS_FROM: u64 = 100_000;
const FILL_NS_PER_ENTRY: f64 = 1_500.0;

/// All measurements, round after round, so that a machine that slows down slows all of them.
pub(super) fn jobs(args: &Args) -> Result<Vec<Job>> {
    let sizes = sizes(args);
    let readers = args.readers.unwrap_or(10);
    let runs = args.runs.unwrap_or(if args.quick { 1 } else { 3 });
    if sizes.iter().any(|&size| size == 0 || size > MAX_ENTRIES) {
        bail!("--entries lies in 1..={MAX_ENTRIES}");
    }
    if runs == 0 || readers == 0 || readers > MAX_READERS {
        bail!("--runs starts at 1, --readers lies in 1..={MAX_READERS}");
    }
    if !(1..=1_000).contains(&args.pace_ms) {
        bail!("--pace-ms lies in 1..=1000");
    }
    let parts = args
        .only
        .clone()
        .unwrap_or_else(|| Part::value_variants().to_vec());
    if !parts.contains(&Part::Readers) && (args.subjects.is_some() || args.readers.is_some()) {
        bail!("--subjects and --readers are about readers, which --only leaves out");
    }
    let subjects = match &args.subjects {
        Some(subjects) => subjects.clone(),
        None => defaults(args.quick),
    };
    if let Some(kind) = subjects.iter().find(|kind| kind.ttl_of() != TtlOf::Entry) {
        bail!("{kind} has no TTL per entry");
    }
    let mut works = Vec::new();
    if parts.contains(&Part::Scan) {
        works.extend(sizes.iter().map(|&size| Work::Scan(size)));
    }
    if parts.contains(&Part::Ticks) {
        for &size in &sizes {
            let strategies = Strategy::value_variants().iter();
            works.extend(strategies.map(|&strategy| Work::Ticks(strategy, size)));
        }
    }
    if parts.contains(&Part::Readers) {
        let asked = args.entries.is_some();
        for &entries in sizes.iter().filter(|&&size| asked || size >= READERS_FROM) {
            for fair in [false, true] {
                let plan = readers::Plan {
                    entries,
                    fair,
                    readers,
                    pace: Duration::from_millis(args.pace_ms),
                    lead_ns: lead_ns(entries, fair, args.quick),
                    window_ns: window_ns(entries, fair, args.quick),
                    seed: args.seed,
                };
                let takes_part = |kind: &&Kind| fair || AS_RUN.contains(kind);
                let kinds = subjects.iter().filter(takes_part);
                works.extend(kinds.map(|&kind| Work::Readers(kind, plan)));
            }
        }
    }
    let rounds = (1..=runs).flat_map(|round| works.iter().map(move |&work| Job { work, round }));
    Ok(rounds.collect())
}

/// Sizes of the tables.
pub(super) fn sizes(args: &Args) -> Vec<u64> {
    let usual: &[u64] = match args.quick {
        true => &[1_000, 10_000, 100_000],
        false => &[1_000, 10_000, 100_000, 1_000_000, 10_000_000],
    };
    let mut sizes = args.entries.clone().unwrap_or_else(|| usual.to_vec());
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// Who is measured as the article measured: its two caches, and ours.
const AS_RUN: [Kind; 3] = [Kind::NaiveScan, Kind::ArticleWheel, Kind::Tidewheel];

/// A quick run leaves most strategies to the virtual clock.
fn defaults(quick: bool) -> Vec<Kind> {
    let strategies = Kind::value_variants()
        .iter()
        .copied()
        .filter(|kind| kind.is_strategy());
    let quick_too = [Kind::Sampling, Kind::HierarchicalWheel];
    let chosen = strategies.filter(|kind| !quick || quick_too.contains(kind));
    AS_RUN.into_iter().chain(chosen).collect()
}

fn lead_ns(entries: u64, fair: bool, quick: bool) -> u64 {
    let seconds = match (fair, quick) {
        (false, _) => scan::SHORTEST_TTL_S,
        (true, true) => 2,
        (true, false) if entries >= MANY => scan::SHORTEST_TTL_S,
        (true, false) => 12,
    };
    seconds * SECOND_NS
}

fn window_ns(entries: u64, fair: bool, quick: bool) -> u64 {
    match (quick, fair && entries >= MANY) {
        (true, _) => SECOND_NS / 2,
        (false, false) => 10 * SECOND_NS,
        (false, true) => 20 * SECOND_NS,
    }
}

impl Job {
    pub(super) fn title(&self) -> String {
        match &self.work {
            Work::Scan(entries) => format!("scan of {entries}"),
            Work::Ticks(strategy, entries) => format!("ticks, {strategy}, {entries}"),
            Work::Readers(kind, plan) => {
                let how = if plan.fair {
                    "expiring"
                } else {
                    "as the article"
                };
                format!("readers, {kind}, {}, {how}", plan.entries)
            }
        }
    }

    /// About how long it takes on a machine of today; only proportions matter.
    pub(super) fn expected_s(&self) -> f64 {
        let million = |entries: u64| entries as f64 / 1e6;
        match &self.work {
            Work::Scan(entries) => 0.02 + million(*entries) * 2.0,
            Work::Ticks(strategy, entries) => 0.02 + ticks::expected_s(*strategy, *entries),
            Work::Readers(_, plan) => {
                let fill_s = (plan.entries as f64 * FILL_NS_PER_ENTRY / 1e9).max(1.0);
                let window_s = plan.window_ns as f64 / 1e9;
                match plan.fair {
                    true => plan.lead_ns as f64 / 1e9 + fill_s + window_s + 0.1,
                    false => fill_s + window_s + 0.4,
                }
            }
        }
    }

    /// Whether it is a window of real time rather than work.
    pub(super) fn is_window(&self) -> bool {
        matches!(self.work, Work::Readers(..))
    }

    pub(super) fn measure(&self, seed: u64) -> Result<Report> {
        let mut report = match &self.work {
            Work::Scan(entries) => scan::measure(*entries),
            Work::Ticks(strategy, entries) => {
                ticks::measure(*strategy, *entries, seed.wrapping_add(self.round as u64))
            }
            Work::Readers(kind, plan) => readers::measure(*kind, plan),
        }?;
        report.run = self.round;
        Ok(report)
    }
}
