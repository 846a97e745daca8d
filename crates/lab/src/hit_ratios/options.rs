//! Simulations in virtual time: hit ratios, and memory held under times to live.

use std::path::PathBuf;

use anyhow::{Result, bail};
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
    /// A run of seconds that shows whether all works: one size a trace, one hour.
    #[arg(long)]
    quick: bool,
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
    match args.only {
        Some(Only::Hits) if args.memory.asked() => bail!("--mixes and --hours are about memory"),
        Some(Only::Memory) if args.hits.asked() => bail!("--sizes and --policies are about hits"),
        _ => {}
    }
    let mut outcome = Outcome::default();
    let traces = args.traces.as_deref();
    if let Some(folder) = traces.filter(|folder| !folder.is_dir()) {
        bail!("--traces {}: there is no such folder", folder.display());
    }
    if args.only.is_none_or(|only| only == Only::Hits) {
        outcome.append(hits::run(
            &args.hits, traces, args.seed, args.quick, progress,
        )?);
    }
    if args.only.is_none_or(|only| only == Only::Memory) {
        outcome.append(memory::run(
            &args.memory,
            traces,
            args.seed,
            args.quick,
            progress,
        )?);
    }
    if args.quick {
        let note = "a quick run: too small and too short to quote";
        for report in &mut outcome.reports {
            report.notes.push(note.to_owned());
        }
        outcome.notes.push(note.to_owned());
    }
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::report::Report;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    #[test]
    fn a_quick_run_of_both_has_lines_of_every_kind_and_says_what_it_is() {
        let line = "simulate --quick --policies opt,lru --sizes loop=250 --mixes days --scale 0.1";
        let line = Line::try_parse_from(line.split(' ')).expect("parses");
        let outcome = run(&line.args, &Progress::new()).expect("runs");
        for workload in ["hit-ratios", "ttl-memory", "ttl-memory limit"] {
            let mut own = outcome
                .reports
                .iter()
                .filter(|report| report.workload == workload);
            assert!(own.next().is_some(), "{workload}");
        }
        for report in &outcome.reports {
            assert!(
                report
                    .notes
                    .iter()
                    .any(|note| note.starts_with("a quick run"))
            );
            assert_eq!(Report::from_json(&report.to_json()).as_ref(), Some(report));
        }
        let memory = outcome
            .reports
            .iter()
            .find(|report| report.workload == "ttl-memory");
        assert_eq!(memory.expect("a report").params["hours"], 1.0);
        let line = Line::try_parse_from(["simulate", "--only", "neither"]);
        assert!(line.is_err());
        for (refused, reason) in [
            ("--only hits --hours 2", "about memory"),
            ("--only memory --policies lru", "about hits"),
            ("--quick --traces no/such/folder", "there is no such folder"),
        ] {
            let words = ["simulate"].into_iter().chain(refused.split(' '));
            let line = Line::try_parse_from(words).expect("parses");
            let error = run(&line.args, &Progress::new()).expect_err(refused);
            assert!(error.to_string().contains(reason), "{refused}: {error}");
        }
    }
}
