//! The command line: what to run, against whom, and where the results go.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::{Parser, Subcommand};
use serde_json::Value;

use crate::caches::{self, Caches};
use crate::client::Address;
use crate::compare;
use crate::outcome::Outcome;
use crate::page;
use crate::progress::Progress;
use crate::seeds;
use crate::server::Target;
use crate::simulate;
use crate::tasks;
use crate::timers;
use crate::workload::Workload;

const DEFAULT_HOST: &str = "127.0.0.1";
const DEFAULT_PORT: u16 = 6_379;

/// The laboratory: Tidewheel's parts and other people's, put through the same experiments.
///
/// An experiment prints lines of JSON on standard output and tables on standard error; with --json
/// the lines are appended to a file and the tables go to standard output.
#[derive(Debug, Parser)]
#[command(name = "tidewheel-lab", version)]
struct Cli {
    /// Append the lines of JSON to this file.
    #[arg(long, global = true, value_name = "FILE")]
    json: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// The first article's tables, as it ran them and fairly, and every strategy under the same load.
    Seeds(seeds::Args),
    /// Servers that speak the Redis protocol: ours and other people's.
    Servers(Servers),
    /// The timer structures themselves, without a server: time and bytes per timer.
    Timers(timers::Args),
    /// Tasks by key, ours and (with the feature `peers`) other people's: time, bytes and lateness per task.
    Tasks(tasks::Args),
    /// In-process caches, ours and (with the feature `peers`) other people's.
    #[command(subcommand)]
    Caches(Caches),
    /// In virtual time: hit ratios beside bounds and peers, and memory held under times to live.
    Simulate(simulate::Args),
    /// Draw files of results as one page of pictures and tables.
    Report(page::Args),
}

#[derive(Debug, clap::Args)]
struct Servers {
    /// Server to measure (default 127.0.0.1).
    #[arg(long, global = true)]
    host: Option<String>,
    /// Its port (default 6379).
    #[arg(long, short, global = true)]
    port: Option<u16>,
    /// Its process on this machine, 0 to watch none (default: by INFO, when the server is local).
    #[arg(long, global = true)]
    pid: Option<u32>,
    /// Its password.
    #[arg(
        long,
        global = true,
        env = "TIDEWHEEL_LAB_PASSWORD",
        hide_env_values = true
    )]
    password: Option<String>,
    /// Delete the keys that the server holds.
    #[arg(long, global = true)]
    flush: bool,
    #[command(subcommand)]
    command: OnServers,
}

#[derive(Debug, Subcommand)]
enum OnServers {
    #[command(flatten)]
    Workload(Workload),
    /// One workload against several servers in turn, each in a fresh process.
    Compare(compare::Args),
}

pub(crate) fn run() -> Result<()> {
    let cli = Cli::parse();
    if let (Command::Report(_), Some(path)) = (&cli.command, &cli.json) {
        bail!(
            "report writes no lines of JSON, so --json {} does not apply",
            path.display()
        );
    }
    // Nothing is measured that could not be kept.
    if let Some(path) = &cli.json {
        drop(open(path)?);
    }
    let mut progress = Progress::new();
    let mut outcome = match &cli.command {
        Command::Seeds(args) => match seeds::run(args, &mut progress)? {
            Some(outcome) => outcome,
            None => return Ok(()),
        },
        Command::Servers(servers) => servers.run(&mut progress)?,
        Command::Timers(args) => timers::run(args, &mut progress)?,
        Command::Tasks(args) => tasks::run(args, &mut progress)?,
        Command::Simulate(args) => simulate::run(args, &progress)?,
        Command::Caches(caches) => match caches::run(caches, &mut progress)? {
            Some(outcome) => outcome,
            None => return Ok(()),
        },
        Command::Report(args) => return page::run(args),
    };
    outcome.note_build();
    emit(&outcome.lines(), &outcome.text(), cli.json.as_deref())?;
    if !outcome.failures.is_empty() {
        bail!("not everything succeeded: {}", outcome.failures.join("; "));
    }
    Ok(())
}

impl Servers {
    fn run(&self, progress: &mut Progress) -> Result<Outcome> {
        match &self.command {
            OnServers::Workload(workload) => {
                let report = workload.run(&self.target(), progress)?;
                Ok(Outcome::of(workload.name(), vec![report]))
            }
            OnServers::Compare(_)
                if self.host.is_some() || self.port.is_some() || self.pid.is_some() =>
            {
                bail!("compare starts its servers itself: --host, --port and --pid do not apply")
            }
            OnServers::Compare(args) => compare::run(args, progress),
        }
    }

    fn target(&self) -> Target {
        let address = Address {
            host: self.host.clone().unwrap_or_else(|| DEFAULT_HOST.to_owned()),
            port: self.port.unwrap_or(DEFAULT_PORT),
            password: self.password.clone(),
        };
        Target {
            address,
            pid: self.pid,
            flush: self.flush,
        }
    }
}

fn emit(lines: &[Value], text: &str, file: Option<&Path>) -> Result<()> {
    let Some(path) = file else {
        eprint!("{text}");
        lines.iter().for_each(|line| println!("{line}"));
        return Ok(());
    };
    let mut file = open(path)?;
    for line in lines {
        writeln!(file, "{line}").with_context(|| format!("cannot write {}", path.display()))?;
    }
    print!("{text}");
    Ok(())
}

fn open(path: &Path) -> Result<File> {
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_comparison_takes_a_workload_with_its_own_options() {
        let cli = Cli::try_parse_from([
            "tidewheel-lab",
            "servers",
            "compare",
            "--server",
            "redis=redis-server",
            "--runs",
            "3",
            "sparse",
            "--keys",
            "7",
        ])
        .expect("parses");
        let Command::Servers(Servers {
            command: OnServers::Compare(args),
            ..
        }) = cli.command
        else {
            panic!("a comparison")
        };
        assert_eq!((args.runs, args.workload.name()), (3, "sparse"));
    }
}
