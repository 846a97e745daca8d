//! Hit ratios: traces replayed at fixed sizes on Tidewheel's cache, beside bounds and peers.

use std::path::Path;
use std::str::FromStr;

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use serde_json::json;

use super::mixes;
use super::policy::Policy;
use super::trace;
use crate::outcome::Outcome;
use crate::progress::Progress;
use crate::report::Report;

/// The recorded traces that are replayed unless others are asked for, and at which sizes.
const RECORDED: [(&str, &[usize]); 6] = [
    ("web12", &[250, 1_000, 4_000]),
    ("OLTP", &[1_000, 5_000]),
    ("scarab-recs", &[5_000, 25_000]),
    ("loop", &[250, 500]),
    ("P3", &[50_000, 200_000]),
    ("multi2", &[250, 1_000, 3_000]),
];

/// What is replayed on what.
#[derive(Clone, Debug, clap::Args)]
// Two structures of one name would be two groups of one name.
#[group(skip)]
pub(super) struct Options {
    /// Hit ratios: a trace and its sizes in entries, such as `OLTP=1000,5000`; may be given several times.
    #[arg(long, value_name = "TRACE=SIZE,…")]
    sizes: Vec<Sizes>,
    /// Hit ratios: policies (default all that were built).
    #[arg(long, value_enum, value_delimiter = ',', value_name = "POLICY,…")]
    policies: Option<Vec<Policy>>,
}

impl Options {
    /// Whether something was asked for.
    pub(super) fn asked(&self) -> bool {
        !self.sizes.is_empty() || self.policies.is_some()
    }
}

/// A trace and the capacities at which it is replayed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Sizes {
    trace: String,
    entries: Vec<usize>,
}

impl FromStr for Sizes {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let (trace, sizes) = text
            .split_once('=')
            .context("not of the form TRACE=SIZE,SIZE")?;
        let size = |text: &str| match text.trim().parse() {
            Ok(0) | Err(_) => bail!("{text:?} is no size"),
            Ok(size) => Ok(size),
        };
        Ok(Self {
            trace: trace.to_owned(),
            entries: sizes.split(',').map(size).collect::<Result<_>>()?,
        })
    }
}

/// One trace at one size: hit ratios in percent, in the order of the policies.
#[derive(Clone, Debug)]
struct Cell {
    trace: String,
    size: usize,
    requests: usize,
    ratios: Vec<f64>,
}

/// All cells.
#[derive(Clone, Debug)]
struct Simulation {
    policies: Vec<Policy>,
    cells: Vec<Cell>,
    recorded: bool,
}

/// A table of all cells; recorded traces if a folder of them is given.
pub(super) fn run(
    options: &Options,
    traces: Option<&Path>,
    seed: u64,
    quick: bool,
    progress: &Progress,
) -> Result<Outcome> {
    let simulation = simulate(options, traces, seed, quick, progress)?;
    let mut outcome = Outcome::default();
    let title = format!("hit-ratios: {}", simulation.kind());
    outcome.push_grid(&title, &simulation.grid(), simulation.reports());
    outcome.notes = simulation.notes();
    Ok(outcome)
}

fn simulate(
    options: &Options,
    traces: Option<&Path>,
    seed: u64,
    quick: bool,
    progress: &Progress,
) -> Result<Simulation> {
    let policies = match &options.policies {
        Some(policies) => policies.clone(),
        None => Policy::value_variants().to_vec(),
    };
    let defaults: &[(&str, &[usize])] = match traces {
        Some(_) => &RECORDED,
        None => &mixes::MIXES,
    };
    let most = if quick { 1 } else { usize::MAX };
    let sizes = if options.sizes.is_empty() {
        let own = |(trace, entries): &(&str, &[usize])| Sizes {
            trace: (*trace).to_owned(),
            entries: entries[..entries.len().min(most)].to_vec(),
        };
        defaults.iter().map(own).collect()
    } else {
        options.sizes.clone()
    };
    let mut cells = Vec::new();
    for Sizes { trace, entries } in &sizes {
        let keys = match traces {
            Some(folder) => trace::load(folder, trace)?,
            None => mixes::make(trace, seed),
        };
        if keys.is_empty() {
            bail!("{trace} has no requests: name a mix, or a folder with --traces");
        }
        for &size in entries {
            progress.phase(format!("{trace} {size}"), policies.len() as u64);
            let mut ratios = Vec::new();
            for (done, policy) in (1..).zip(&policies) {
                let hits = policy.hits(&keys, size)?;
                ratios.push(hits as f64 * 100.0 / keys.len() as f64);
                progress.set(done);
            }
            cells.push(Cell {
                trace: trace.clone(),
                size,
                requests: keys.len(),
                ratios,
            });
        }
    }
    progress.clear();
    Ok(Simulation {
        policies,
        cells,
        recorded: traces.is_some(),
    })
}

impl Simulation {
    /// The best of somebody else's caches in a cell.
    fn best_peer(&self, cell: &Cell) -> Option<f64> {
        self.policies
            .iter()
            .zip(&cell.ratios)
            .filter(|(policy, _)| policy.is_peer())
            .map(|(_, ratio)| *ratio)
            .reduce(f64::max)
    }

    /// Mean ratio of a policy; mean and worst of what it is short of the best peer, if there are any.
    fn summary(&self, policy: usize) -> (f64, Option<(f64, f64)>) {
        let count = self.cells.len().max(1) as f64;
        let mean = self
            .cells
            .iter()
            .map(|cell| cell.ratios[policy])
            .sum::<f64>()
            / count;
        let short = |cell| self.best_peer(cell).map(|best| best - cell.ratios[policy]);
        let regrets: Option<Vec<f64>> = self.cells.iter().map(short).collect();
        let spread = regrets.and_then(|regrets| {
            let worst = regrets.iter().copied().reduce(f64::max)?;
            Some((regrets.iter().sum::<f64>() / count, worst))
        });
        (mean, spread)
    }

    fn kind(&self) -> &'static str {
        if self.recorded {
            "recorded traces"
        } else {
            "made-up mixes, not recorded traces"
        }
    }

    /// One report per cell and policy.
    fn reports(&self) -> Vec<Report> {
        let mut reports = Vec::new();
        for cell in &self.cells {
            let best = self.best_peer(cell);
            for (policy, &ratio) in self.policies.iter().zip(&cell.ratios) {
                let params = json!({
                    "trace": cell.trace,
                    "entries": cell.size,
                    "requests": cell.requests,
                    "recorded": self.recorded,
                });
                let mut report = Report::new("hit-ratios", None, params);
                report.cell = format!("{} {} entries", cell.trace, cell.size);
                report.subject = policy.to_string();
                report.version = policy.version().to_owned();
                let regret = best.map(|best| best - ratio);
                report.figures.push("hit_percent", "hits %", ratio);
                report
                    .figures
                    .push("regret", "points below the best peer", regret);
                if !self.recorded {
                    report
                        .notes
                        .push("the requests are made up, not recorded".to_owned());
                }
                reports.push(report.finish());
            }
        }
        reports
    }

    /// A row per cell, a column per policy; means and regrets below.
    fn grid(&self) -> Vec<Vec<String>> {
        let mut grid = vec![vec!["hits %: trace, entries".to_owned()]];
        grid[0].extend(self.policies.iter().map(Policy::to_string));
        for cell in &self.cells {
            let mut row = vec![format!("{} {}", cell.trace, cell.size)];
            row.extend(cell.ratios.iter().map(|ratio| format!("{ratio:.1}")));
            grid.push(row);
        }
        let mut rows = [
            vec!["mean".to_owned()],
            vec!["mean regret".to_owned()],
            vec!["worst regret".to_owned()],
        ];
        for policy in 0..self.policies.len() {
            let (mean, spread) = self.summary(policy);
            let signed = |value: f64| format!("{value:.2}");
            rows[0].push(format!("{mean:.2}"));
            rows[1].push(spread.map_or_else(|| "–".to_owned(), |(mean, _)| signed(mean)));
            rows[2].push(spread.map_or_else(|| "–".to_owned(), |(_, worst)| signed(worst)));
        }
        grid.extend(rows);
        grid
    }

    fn notes(&self) -> Vec<String> {
        let regret = if self.policies.iter().any(|policy| policy.is_peer()) {
            "regret: points below the best peer of the cell; less than 0 is above it"
        } else {
            "build with the feature peers to compare with other caches"
        };
        vec![
            "hits: one thread, get else insert".to_owned(),
            regret.to_owned(),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_a_name_and_numbers() {
        let sizes: Sizes = "OLTP=1000,5000".parse().expect("parses");
        assert_eq!(
            (sizes.trace.as_str(), sizes.entries),
            ("OLTP", vec![1_000, 5_000])
        );
        for wrong in ["OLTP", "OLTP=", "OLTP=0", "OLTP=x"] {
            assert!(wrong.parse::<Sizes>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_made_up_mix_is_replayed_on_the_cache() {
        let options = Options {
            sizes: vec!["loop=750".parse().expect("parses")],
            policies: Some(vec![Policy::Opt, Policy::Lru, Policy::Tidewheel]),
        };
        let outcome = run(&options, None, 1, false, &Progress::new()).expect("runs");
        let ratio = |at: usize| outcome.reports[at].figures.value("hit_percent");
        let (best, lru, ours) = (ratio(0), ratio(1), ratio(2));
        assert!(
            lru == Some(0.0) && ours > Some(70.0) && ours <= best,
            "{ours:?} of {best:?}"
        );
        assert_eq!(outcome.reports.len(), 3);
        assert_eq!(outcome.reports[2].cell, "loop 750 entries");
        assert!(!outcome.reports[2].notes.is_empty());
        assert!(outcome.text().contains("made-up"));
        // Peers alone have something to fall short of.
        assert_eq!(outcome.reports[2].figures.value("regret"), None);
    }
}
