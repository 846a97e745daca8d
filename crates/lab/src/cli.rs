//! The command line chooses what runs, and where the results go.

use std::fs::{File, OpenOptions};
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::{Parser, Subcommand};

use crate::caches::{self, Caches};
use crate::hit_ratios;
use crate::outcome::Outcome;
use crate::page;
use crate::progress;
use crate::servers::Servers;
use crate::studies::{self, Study};
use crate::tasks;
use crate::timers;

/// The laboratory: Tidewheel's parts and other people's, put through the same experiments.
///
/// An experiment prints a table on a terminal or with --table; else lines of JSON on standard
/// output and the table on standard error. With --json the lines are appended to a file, whoever
/// reads.
#[derive(Debug, Parser)]
#[command(name = "tidewheel-lab", version)]
struct Cli {
    /// Append the lines of JSON to this file.
    #[arg(long, global = true, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Print the table on standard output, even where that is no terminal.
    #[arg(long, global = true)]
    table: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Servers that speak the Redis protocol: ours and other people's.
    #[command(subcommand)]
    Servers(Servers),
    /// The timer structures themselves, without a server: time and bytes per timer.
    Timers(timers::Options),
    /// Tasks by key, ours and (with the feature `peers`) other people's: time, bytes and lateness
    /// per task.
    Tasks(timers::Options),
    /// In-process caches, ours and (with the feature `peers`) other people's.
    #[command(subcommand)]
    Caches(Caches),
    /// Hit ratios of traces at fixed sizes, beside bounds and peers.
    HitRatios(hit_ratios::Args),
    /// Questions that are studied beside the products: how to find what has expired, what the dead
    /// cost.
    #[command(subcommand)]
    Study(Study),
    /// Draw files of results as one page of pictures and tables.
    Report(page::Args),
}

pub(crate) fn run() -> Result<()> {
    let cli = Cli::parse();
    if let (Command::Report(_), Some(path)) = (&cli.command, &cli.json) {
        let path = path.display();
        bail!("report writes no lines of JSON, so --json {path} does not apply");
    }
    // Nothing is measured that could not be kept.
    if let Some(path) = &cli.json {
        drop(open(path)?);
    }
    let outcome = measure(&cli.command);
    progress::clear();
    // A process that measures for another has answered already.
    let Some(outcome) = outcome? else {
        return Ok(());
    };
    emit(&outcome, cli.json.as_deref(), cli.table)?;
    if !outcome.failures.is_empty() {
        bail!("not everything succeeded: {}", outcome.failures.join("; "));
    }
    Ok(())
}

/// `None` in a process that measures for another, and where nothing is measured.
fn measure(command: &Command) -> Result<Option<Outcome>> {
    match command {
        Command::Servers(servers) => servers.run().map(Some),
        Command::Timers(args) => timers::run(args),
        Command::Tasks(args) => tasks::run(args),
        Command::HitRatios(args) => hit_ratios::run(args).map(Some),
        Command::Caches(caches) => caches::run(caches),
        Command::Study(study) => studies::run(study),
        Command::Report(args) => page::run(args).map(|()| None),
    }
}

fn emit(outcome: &Outcome, file: Option<&Path>, table: bool) -> Result<()> {
    let lines = outcome.reports.iter().map(serde_json::to_string);
    let lines: Vec<String> = lines.collect::<Result<_, _>>()?;
    if let Some(path) = file {
        let mut file = open(path)?;
        for line in &lines {
            writeln!(file, "{line}").with_context(|| format!("cannot write {}", path.display()))?;
        }
    }
    if file.is_some() || table || std::io::stdout().is_terminal() {
        print!("{}", outcome.text());
        return Ok(());
    }
    eprint!("{}", outcome.text());
    lines.iter().for_each(|line| println!("{line}"));
    Ok(())
}

fn open(path: &Path) -> Result<File> {
    let file = OpenOptions::new().create(true).append(true).open(path);
    file.with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
        let words =
            "tidewheel-lab servers compare --server r=redis-server --runs 3 sparse --keys 7";
        Cli::try_parse_from(words.split(' ')).expect("a comparison takes a workload's options");
    }
}
