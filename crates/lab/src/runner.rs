//! Runs an experiment over subjects, cells and rounds, each measurement in a process of its own.

use std::fmt;
use std::str::FromStr;

use anyhow::{Context, Result, anyhow, bail};
use clap::ValueEnum;

use super::kind::Kind;
use crate::child;
use crate::clock;
use crate::outcome::Outcome;
use crate::proc::OwnNoiseMeter;
use crate::progress::Progress;
use crate::report::Report;

/// What every experiment with caches takes.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Common {
    /// Caches (default all that can take part, without those that differ in their strategy alone).
    #[arg(long, value_enum, value_delimiter = ',', value_name = "CACHE,…")]
    pub(crate) subjects: Option<Vec<Kind>>,
    /// Runs of each (default 3, quick 1).
    #[arg(long)]
    pub(crate) runs: Option<usize>,
    /// Seed of keys, deadlines and orders.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Small sizes, for a look at whether it works.
    #[arg(long)]
    pub(crate) quick: bool,
    /// The share of a child process.
    #[arg(long, hide = true)]
    pub(super) share: Option<Share>,
}

impl Common {
    pub(super) fn runs(&self) -> Result<usize> {
        let runs = self.runs.unwrap_or(if self.quick { 1 } else { 3 });
        if runs == 0 {
            bail!("--runs starts at 1");
        }
        Ok(runs)
    }

    /// Those asked for, else all but the strategies; without those that cannot take part, whose names
    /// come second.
    pub(super) fn subjects(&self, takes: impl Fn(Kind) -> bool) -> (Vec<Kind>, Vec<Kind>) {
        self.subjects
            .clone()
            .unwrap_or_else(|| {
                let all = Kind::value_variants().iter().copied();
                all.filter(|kind| !kind.is_strategy()).collect()
            })
            .into_iter()
            .partition(|&kind| takes(kind))
    }
}

/// One measurement: which cache, which cell of the experiment, which round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Share {
    pub(super) kind: Kind,
    pub(super) cell: usize,
    pub(super) round: usize,
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.kind, self.cell, self.round)
    }
}

impl FromStr for Share {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut parts = text.split('/');
        let (Some(kind), Some(cell), Some(round), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            bail!("a share is CACHE/CELL/ROUND");
        };
        Ok(Self {
            kind: Kind::from_str(kind, false).map_err(|error| anyhow!(error))?,
            cell: cell.parse()?,
            round: round.parse()?,
        })
    }
}

/// An experiment that measures one cache at a time.
pub(super) trait Experiment {
    fn name(&self) -> &'static str;

    /// What is measured of every cache, each with a table of its own; their titles.
    fn cells(&self) -> Vec<String>;

    /// Why a cache cannot take part.
    fn excludes(&self, kind: Kind) -> Option<&'static str>;

    fn measure(&self, share: Share, progress: &Progress) -> Result<Report>;
}

/// All shares in child processes; in a child, its own share and `None`.
pub(super) fn run(
    experiment: &dyn Experiment,
    common: &Common,
    progress: &mut Progress,
) -> Result<Option<Outcome>> {
    if let Some(share) = common.share {
        let report = measured(experiment, share, progress)?;
        progress.clear();
        println!("{}", report.to_json());
        return Ok(None);
    }
    all_shares(experiment, common, progress, &in_child).map(Some)
}

/// How one share is measured.
type Measure = dyn Fn(&dyn Experiment, Share, &Progress) -> Result<Report>;

fn all_shares(
    experiment: &dyn Experiment,
    common: &Common,
    progress: &mut Progress,
    measure: &Measure,
) -> Result<Outcome> {
    let runs = common.runs()?;
    let (kinds, excluded) = common.subjects(|kind| experiment.excludes(kind).is_none());
    let mut outcome = Outcome::default();
    for kind in excluded {
        let reason = experiment.excludes(kind).unwrap_or_default();
        outcome.notes.push(format!("{kind} is left out: {reason}"));
    }
    let cells = experiment.cells();
    for (cell, title) in cells.iter().enumerate() {
        let mut reports = Vec::new();
        for round in 1..=runs {
            for &kind in &kinds {
                progress.set_title(format!("{kind} {round}/{runs}"));
                progress.phase(title.clone(), (cells.len() * runs) as u64);
                progress.set((cell * runs + round - 1) as u64);
                let share = Share { kind, cell, round };
                reports.push(
                    measure(experiment, share, progress)
                        .with_context(|| format!("{} failed on {kind}", experiment.name()))?,
                );
            }
        }
        outcome.push(&format!("{}: {title}", experiment.name()), reports);
    }
    progress.clear();
    Ok(outcome)
}

/// The measurement with what others took of the machine meanwhile, in a report that says whose it is.
pub(super) fn measured(
    experiment: &dyn Experiment,
    share: Share,
    progress: &Progress,
) -> Result<Report> {
    let start_ns = clock::mono_ns();
    let noise = OwnNoiseMeter::start();
    let mut report = experiment.measure(share, progress)?;
    let wall_ns = clock::mono_ns() - start_ns;
    report.figures.push_noise(noise.others_ns(), wall_ns);
    report.subject = share.kind.to_string();
    report.version = share.kind.version().to_owned();
    report.run = share.round;
    report.cell = experiment.cells().swap_remove(share.cell);
    Ok(report.finish())
}

fn in_child(_: &dyn Experiment, share: Share, _: &Progress) -> Result<Report> {
    child::measure(&share.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Reports its share as figures.
    struct Echo;

    impl Experiment for Echo {
        fn name(&self) -> &'static str {
            "echo"
        }

        fn cells(&self) -> Vec<String> {
            vec!["first".to_owned(), "second".to_owned()]
        }

        fn excludes(&self, kind: Kind) -> Option<&'static str> {
            (kind == Kind::ArticleWheel).then_some("it is left out")
        }

        fn measure(&self, share: Share, _: &Progress) -> Result<Report> {
            let mut report = Report::new("echo", None, json!({}));
            report.figures.push("cell", "cell", share.cell as f64);
            Ok(report)
        }
    }

    #[test]
    fn there_is_a_line_for_every_cache_cell_and_run() {
        let common = Common {
            subjects: Some(vec![Kind::Tidewheel, Kind::ArticleWheel, Kind::NaiveScan]),
            runs: Some(2),
            seed: 1,
            quick: false,
            share: None,
        };
        let outcome = all_shares(&Echo, &common, &mut Progress::new(), &measured).expect("runs");
        let found: Vec<_> = outcome
            .lines()
            .iter()
            .map(|line| {
                assert!(line["machine"]["arch"].is_string() && line["version"].is_string());
                format!("{} {} {}", line["cell"], line["run"], line["subject"])
            })
            .collect();
        assert_eq!(found.len(), 8, "{found:?}");
        assert!(
            found.contains(&r#""second" 2 "naive-scan""#.to_owned()),
            "{found:?}"
        );
        let text = outcome.text();
        assert!(text.contains("article-wheel is left out"), "{text}");
    }

    #[test]
    fn a_share_reads_what_it_writes() {
        let share = Share {
            kind: Kind::ArticleWheel,
            cell: 3,
            round: 2,
        };
        assert_eq!(share.to_string().parse::<Share>().expect("reads"), share);
        assert!("article-wheel/1".parse::<Share>().is_err());
        assert!("nobody/1/1".parse::<Share>().is_err());
    }
}
