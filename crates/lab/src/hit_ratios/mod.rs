//! Hit ratios: traces are replayed at fixed sizes on Tidewheel's cache, on bounds and on peers.

use std::path::PathBuf;

use anyhow::{Result, ensure};
use serde_json::json;

use self::policy::Policy;
use crate::outcome::Outcome;
use crate::progress;
use crate::report::Report;
use crate::runner::Basics;
use crate::stats;

pub(crate) mod bounds;
mod mixes;
#[cfg(feature = "peers")]
mod peers;
mod policy;
mod trace;

/// A trace and the sizes in entries at which it is replayed.
type Sizes = (&'static str, &'static [usize]);

/// The recorded traces.
const RECORDED: [Sizes; 8] = [
    ("web12", &[250, 1_000, 4_000]),
    ("OLTP", &[1_000, 5_000]),
    ("scarab-recs", &[5_000, 25_000]),
    ("loop", &[250, 500]),
    ("P3", &[50_000, 200_000]),
    ("multi2", &[250, 1_000, 3_000]),
    ("sprite", &[200, 400, 800]),
    ("P6", &[50_000, 100_000, 200_000]),
];

/// Options of `hit-ratios`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// Folder of recorded requests: one key a line (.txt) or blocks (.lis), plain or compressed
    /// (.xz); without it, made-up mixes are replayed.
    #[arg(long, value_name = "DIR")]
    traces: Option<PathBuf>,
    #[command(flatten)]
    basics: Basics,
    /// Policies (default all that were built).
    #[arg(long, value_parser = policy::named, value_delimiter = ',', value_name = "POLICY,…")]
    policies: Option<Vec<Policy>>,
}

/// One trace at one size: hit ratios in percent, in the order of the policies.
#[derive(Clone, Debug)]
struct Cell {
    trace: &'static str,
    size: usize,
    ratios: Vec<f64>,
}

/// A table of all cells; recorded traces if a folder of them is given.
pub(crate) fn run(args: &Args) -> Result<Outcome> {
    let traces = args.traces.as_deref();
    let (kind, sizes): (_, &[Sizes]) = match traces {
        Some(_) => ("recorded traces", &RECORDED),
        None => ("made-up mixes, not recorded traces", &mixes::MIXES),
    };
    let policies = args.policies.clone().unwrap_or_else(policy::all);
    // Quick: one size a trace.
    let most = if args.basics.quick { 1 } else { usize::MAX };
    let load = |trace: &str| match traces {
        Some(folder) => trace::load(folder, trace),
        None => Ok(mixes::make(trace, mixes::REQUESTS, args.basics.seed)),
    };
    let cells = replayed(&load, sizes, most, &policies)?;
    let mut reports = reports(&policies, &cells);
    for report in &mut reports {
        report.params = json!({ "requests": kind, "seed": args.basics.seed });
    }
    let mut outcome = Outcome::of(&format!("hit-ratios: {kind}"), reports);
    let compared = match policies.iter().any(|policy| !policy.is_ours()) {
        true => "regret: points below the best peer of the cell; less than 0 is above it",
        false => "build with the feature peers to compare with other caches",
    };
    let notes = ["one thread, get else insert", compared];
    outcome.notes.extend(notes.map(str::to_owned));
    if args.basics.quick {
        outcome.note_quick();
    }
    Ok(outcome)
}

/// Every policy on every trace, at so many of its sizes.
fn replayed(
    load: &dyn Fn(&str) -> Result<Vec<u64>>,
    sizes: &[Sizes],
    most: usize,
    policies: &[Policy],
) -> Result<Vec<Cell>> {
    let mut cells = Vec::new();
    for &(trace, entries) in sizes {
        let keys = load(trace)?;
        ensure!(!keys.is_empty(), "{trace} has no requests");
        for &size in entries.iter().take(most) {
            progress::say(format!("{trace} {size}"));
            let ratio = |policy: &Policy| {
                let hits = (policy.what)(&keys, size)?;
                Ok(hits as f64 * 100.0 / keys.len() as f64)
            };
            let ratios = policies.iter().map(ratio).collect::<Result<_>>()?;
            cells.push(Cell {
                trace,
                size,
                ratios,
            });
        }
    }
    Ok(cells)
}

/// Makes one report for each policy.
fn reports(policies: &[Policy], cells: &[Cell]) -> Vec<Report> {
    let best_peer = |cell: &Cell| {
        let peers = policies.iter().zip(&cell.ratios);
        let peers = peers.filter(|(policy, _)| !policy.is_ours());
        peers.map(|(_, ratio)| *ratio).reduce(f64::max)
    };
    let report = |(at, policy): (usize, &Policy)| {
        let is_bound = ["opt", "lru"].contains(&policy.name);
        let version = if is_bound { "" } else { policy.version() };
        let mut report = Report::new("hit-ratios", json!({})).of(policy, version);
        let figures = &mut report.figures;
        let (mut ratios, mut regrets) = (Vec::new(), Vec::new());
        for cell in cells {
            let ratio = cell.ratios[at];
            figures.push(format!("hit_percent_{}_{}", cell.trace, cell.size), ratio);
            ratios.push(ratio);
            regrets.extend(best_peer(cell).map(|best| best - ratio));
        }
        figures.push("mean_hit_percent", stats::mean(&ratios));
        figures.push("mean_regret", stats::mean(&regrets));
        figures.push("worst_regret", regrets.into_iter().reduce(f64::max));
        report
    };
    policies.iter().enumerate().map(report).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_made_up_mix_is_replayed_and_no_policy_beats_the_optimum() {
        let all = policy::all();
        let load = |name: &str| Ok(mixes::make(name, 60_000, 1));
        let cells = replayed(&load, &[("loop", &[750, 1])], 1, &all).expect("runs");
        let [opt, lru, ours] = [0, 1, 2].map(|at| cells[0].ratios[at]);
        assert!(lru == 0.0 && ours > 0.9 * opt, "{lru} {ours} {opt}");
        assert!(cells[0].ratios.iter().all(|ratio| *ratio <= opt));
        // Peers alone have something to fall short of.
        let policies = &all[..3];
        let reports = reports(policies, &cells);
        assert_eq!((reports.len(), cells.len()), (3, 1));
        let value = |key: &str| reports[2].figures.value(key);
        assert_eq!(value("hit_percent_loop_750"), Some(ours));
        assert_eq!(value("mean_hit_percent"), Some(ours));
        assert_eq!(value("worst_regret"), None);
        let none = |_: &str| Ok(Vec::new());
        replayed(&none, &RECORDED, 1, policies).expect_err("no requests");
    }
}
