//! Hit ratios: traces replayed at fixed sizes on Tidewheel's cache, beside bounds and peers.

use std::fmt::Write;
use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use serde_json::{Value, json};

use self::policy::Policy;
use crate::machine;
use crate::progress::Progress;
use crate::table;

mod bounds;
mod mixes;
#[cfg(feature = "peers")]
mod peers;
mod policy;
mod trace;

/// The recorded traces that are replayed unless others are asked for, and at which sizes.
const RECORDED: [(&str, &[usize]); 6] = [
    ("web12", &[250, 1_000, 4_000]),
    ("OLTP", &[1_000, 5_000]),
    ("scarab-recs", &[5_000, 25_000]),
    ("loop", &[250, 500]),
    ("P3", &[50_000, 200_000]),
    ("multi2", &[250, 1_000, 3_000]),
];

/// Options of `simulate`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// Folder of traces: one key a line (.txt), blocks (.lis) or a column named `key` (.csv), plain
    /// or compressed (.xz). Without it, made-up mixes are replayed.
    #[arg(long, value_name = "DIR")]
    traces: Option<PathBuf>,
    /// A trace and its sizes in entries, such as `OLTP=1000,5000`; may be given several times.
    #[arg(long, value_name = "TRACE=SIZE,…")]
    sizes: Vec<Sizes>,
    /// Policies (default all that were built).
    #[arg(long, value_enum, value_delimiter = ',')]
    policies: Option<Vec<Policy>>,
    /// Seed of the made-up mixes.
    #[arg(long, default_value_t = 1)]
    seed: u64,
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
pub(crate) struct Simulation {
    policies: Vec<Policy>,
    cells: Vec<Cell>,
    recorded: bool,
}

pub(crate) fn run(args: &Args, progress: &Progress) -> Result<Simulation> {
    let policies = match &args.policies {
        Some(policies) => policies.clone(),
        None => Policy::value_variants().to_vec(),
    };
    let defaults: &[(&str, &[usize])] = match args.traces {
        Some(_) => &RECORDED,
        None => &mixes::MIXES,
    };
    let sizes = if args.sizes.is_empty() {
        let own = |(trace, entries): &(&str, &[usize])| Sizes {
            trace: (*trace).to_owned(),
            entries: entries.to_vec(),
        };
        defaults.iter().map(own).collect()
    } else {
        args.sizes.clone()
    };
    let mut cells = Vec::new();
    for Sizes { trace, entries } in &sizes {
        let keys = match &args.traces {
            Some(folder) => trace::load(folder, trace)?,
            None => mixes::make(trace, args.seed),
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
        recorded: args.traces.is_some(),
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

    /// One line per cell.
    pub(crate) fn lines(&self) -> Vec<Value> {
        let line = |cell: &Cell| {
            let ratios: serde_json::Map<String, Value> = self
                .policies
                .iter()
                .zip(&cell.ratios)
                .map(|(policy, ratio)| (policy.to_string(), json!(ratio)))
                .collect();
            json!({
                "experiment": "simulate",
                "version": env!("CARGO_PKG_VERSION"),
                "machine": machine::facts(),
                "recorded": self.recorded,
                "trace": cell.trace,
                "entries": cell.size,
                "requests": cell.requests,
                "hit_percent": ratios,
                "best_peer_percent": self.best_peer(cell),
            })
        };
        self.cells.iter().map(line).collect()
    }

    pub(crate) fn text(&self) -> String {
        let kind = if self.recorded {
            "recorded traces"
        } else {
            "made-up mixes, not recorded traces"
        };
        let mut text = format!("hit ratio in percent: {kind}; one thread, get else insert\n");
        let mut grid = vec![vec!["trace, entries".to_owned()]];
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
        text.push_str(&table::lay_out(&grid));
        let note = if self.policies.iter().any(|policy| policy.is_peer()) {
            "regret: points below the best peer of the cell; less than 0 is above it"
        } else {
            "build with the feature peers to compare with other caches"
        };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "note: {note}");
        text
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
        let args = Args {
            traces: None,
            sizes: vec!["loop=750".parse().expect("parses")],
            policies: Some(vec![Policy::Opt, Policy::Lru, Policy::Tidewheel]),
            seed: 1,
        };
        let simulation = run(&args, &Progress::new()).expect("runs");
        let ratios = &simulation.cells[0].ratios;
        assert!(
            ratios[1] == 0.0 && ratios[2] > 70.0 && ratios[2] <= ratios[0],
            "{ratios:?}"
        );
        assert!(simulation.text().contains("made-up"));
        assert_eq!(simulation.lines().len(), 1);
    }
}
