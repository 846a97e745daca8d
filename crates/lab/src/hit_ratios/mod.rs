//! Hit ratios: traces replayed at fixed sizes on Tidewheel's cache, beside bounds and peers.

use std::path::PathBuf;

use anyhow::{Context, Error, Result, ensure};
use serde_json::json;

use self::policy::Policy;
use crate::outcome::Outcome;
use crate::progress;
use crate::report::Report;
use crate::runner::count;
use crate::stats;
use crate::table;

pub(crate) mod bounds;
mod mixes;
#[cfg(feature = "peers")]
mod peers;
mod policy;
pub(crate) mod replay;
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

/// Options of `hit-ratios`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// Folder of recorded requests: one key a line (.txt) or blocks (.lis),
    /// plain or compressed (.xz); without it, made-up mixes are replayed.
    #[arg(long, value_name = "DIR")]
    traces: Option<PathBuf>,
    /// Seed of what is made up.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// A run of seconds that shows whether all works: one size a trace.
    #[arg(long)]
    quick: bool,
    /// A trace and its sizes in entries, such as `OLTP=1000,5000`; may be given several times.
    #[arg(long, value_name = "TRACE=SIZE,…", value_parser = sizes)]
    sizes: Vec<Sizes>,
    /// Policies (default all that were built).
    #[arg(long, value_parser = policy::named, value_delimiter = ',', value_name = "POLICY,…")]
    policies: Option<Vec<Policy>>,
}

/// A trace and the capacities at which it is replayed.
type Sizes = (String, Vec<usize>);

fn sizes(text: &str) -> Result<Sizes> {
    let form = "not of the form TRACE=SIZE,SIZE";
    let (trace, sizes) = text.split_once('=').context(form)?;
    let sizes = sizes.split(',').map(|size| count(size.trim()));
    let sizes = sizes.collect::<Result<_, _>>().map_err(Error::msg)?;
    Ok((trace.to_owned(), sizes))
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
pub(crate) fn run(args: &Args) -> Result<Outcome> {
    let simulation = simulate(args)?;
    let kind = match simulation.recorded {
        true => "recorded traces",
        false => "made-up mixes, not recorded traces",
    };
    let mut outcome = Outcome::default();
    let (title, grid) = (
        format!("hit-ratios: {kind}"),
        table::lay_out(&simulation.grid()),
    );
    outcome.push_text(&title, &grid, simulation.reports());
    let compared = match simulation.policies.iter().any(|policy| !policy.is_ours()) {
        true => "regret: points below the best peer of the cell; less than 0 is above it",
        false => "build with the feature peers to compare with other caches",
    };
    let notes = ["one thread, get else insert", compared];
    outcome.notes.extend(notes.map(str::to_owned));
    if args.quick {
        outcome.note_quick();
    }
    Ok(outcome)
}

fn simulate(args: &Args) -> Result<Simulation> {
    let traces = args.traces.as_deref();
    if let Some(folder) = traces {
        let shown = folder.display();
        ensure!(folder.is_dir(), "--traces {shown}: there is no such folder");
    }
    let policies = args.policies.clone().unwrap_or_else(policy::all);
    let defaults: &[(&str, &[usize])] = match traces {
        Some(_) => &RECORDED,
        None => &mixes::MIXES,
    };
    let most = if args.quick { 1 } else { usize::MAX };
    let usual = |(trace, entries): &(&str, &[usize])| {
        let entries = entries.iter().copied().take(most).collect();
        ((*trace).to_owned(), entries)
    };
    let sizes: Vec<Sizes> = match args.sizes.is_empty() {
        true => defaults.iter().map(usual).collect(),
        false => args.sizes.clone(),
    };
    let mut cells = Vec::new();
    for (trace, entries) in &sizes {
        let keys = match traces {
            Some(folder) => trace::load(folder, trace)?,
            None => mixes::make(trace, args.seed),
        };
        let some = !keys.is_empty();
        ensure!(
            some,
            "{trace} has no requests: name a mix, or a folder with --traces"
        );
        for &size in entries {
            progress::say(format!("{trace} {size}"));
            let ratio = |policy: &Policy| {
                let hits = (policy.what)(&keys, size)?;
                Ok(hits as f64 * 100.0 / keys.len() as f64)
            };
            cells.push(Cell {
                trace: trace.clone(),
                size,
                requests: keys.len(),
                ratios: policies.iter().map(ratio).collect::<Result<_>>()?,
            });
        }
    }
    progress::clear();
    Ok(Simulation {
        policies,
        cells,
        recorded: traces.is_some(),
    })
}

impl Simulation {
    /// The best of somebody else's caches in a cell.
    fn best_peer(&self, cell: &Cell) -> Option<f64> {
        let all = self.policies.iter().zip(&cell.ratios);
        let peers = all.filter(|(policy, _)| !policy.is_ours());
        peers.map(|(_, ratio)| *ratio).reduce(f64::max)
    }

    /// One report per cell and policy.
    fn reports(&self) -> Vec<Report> {
        let mut reports = Vec::new();
        for cell in &self.cells {
            let best = self.best_peer(cell);
            for (policy, &ratio) in self.policies.iter().zip(&cell.ratios) {
                let is_bound = ["opt", "lru"].contains(&policy.name);
                let version = if is_bound { "" } else { policy.version() };
                let params = json!({
                    "trace": cell.trace,
                    "entries": cell.size,
                    "requests": cell.requests,
                    "recorded": self.recorded,
                });
                let mut report = Report::new("hit-ratios", params).of(policy, version);
                report.cell = format!("{} {} entries", cell.trace, cell.size);
                report.figures.push("hit_percent", ratio);
                report.figures.push("regret", best.map(|best| best - ratio));
                let made_up = (!self.recorded).then_some("the requests are made up, not recorded");
                report.notes.extend(made_up.map(str::to_owned));
                reports.push(report);
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
        let mut rows = ["mean", "mean regret", "worst regret"].map(|name| vec![name.to_owned()]);
        for policy in 0..self.policies.len() {
            let ratios: Vec<f64> = self.cells.iter().map(|cell| cell.ratios[policy]).collect();
            let short = |cell: &Cell| Some(self.best_peer(cell)? - cell.ratios[policy]);
            let regrets: Vec<f64> = self.cells.iter().filter_map(short).collect();
            let worst = regrets.iter().copied().reduce(f64::max);
            let values = [stats::mean(&ratios), stats::mean(&regrets), worst];
            for (row, value) in rows.iter_mut().zip(values) {
                row.push(value.map_or_else(|| "–".to_owned(), |value| format!("{value:.2}")));
            }
        }
        grid.extend(rows);
        grid
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_a_name_and_numbers() {
        let (trace, entries) = sizes("OLTP=1000,5000").expect("parses");
        assert_eq!((trace.as_str(), entries), ("OLTP", vec![1_000, 5_000]));
        for wrong in ["OLTP", "OLTP=", "OLTP=0", "OLTP=x"] {
            assert!(sizes(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_made_up_mix_is_replayed_on_the_cache() {
        let args = Args {
            traces: None,
            seed: 1,
            quick: true,
            sizes: vec![("loop".to_owned(), vec![750])],
            policies: Some(policy::all()[..3].to_vec()),
        };
        let outcome = run(&args).expect("runs");
        let [best, lru, ours] = [0, 1, 2].map(|at| &outcome.reports[at]);
        let ratio = |report: &Report| report.figures.value("hit_percent");
        assert!(ratio(lru) == Some(0.0) && ratio(ours) > Some(70.0) && ratio(ours) <= ratio(best));
        assert_eq!(outcome.reports.len(), 3);
        assert_eq!(ours.cell, "loop 750 entries");
        assert!(outcome.text().contains("made-up") && ours.notes.len() == 2);
        // Peers alone have something to fall short of.
        assert_eq!(ours.figures.value("regret"), None);
        let traces = Some("no/such/folder".into());
        run(&Args { traces, ..args }).expect_err("no such folder");
    }
}
