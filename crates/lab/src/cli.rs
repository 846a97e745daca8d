//! The command line: what to run, against whom, and where the results go.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::{Parser, Subcommand};
use serde_json::Value;

use crate::caches::{self, Caches};
use crate::client::Address;
use crate::compare;
use crate::machine;
use crate::progress::Progress;
use crate::server::Target;
use crate::simulate;
use crate::table;
use crate::tasks;
use crate::timers;
use crate::workload::Workload;

const DEFAULT_HOST: &str = "127.0.0.1";
const DEFAULT_PORT: u16 = 6_379;

/// Experiments and load generators for Tidewheel and any server that speaks the Redis protocol.
///
/// A workload prints one line of JSON on standard output and a table on standard error; with
/// --json the line is appended to a file and the table goes to standard output.
#[derive(Debug, Parser)]
#[command(name = "tidewheel-lab", version)]
struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Args)]
struct Global {
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
    /// Append the line of JSON to this file.
    #[arg(long, global = true, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Command {
    #[command(flatten)]
    Workload(Workload),
    /// One workload against several servers in turn, each in a fresh process.
    Compare(compare::Args),
    /// The timer structures themselves, without a server: time and bytes per timer.
    Timers(timers::Args),
    /// Tasks by key, ours and (with the feature `peers`) other people's: time, bytes and lateness per task.
    Tasks(tasks::Args),
    /// In-process caches, ours and (with the feature `peers`) other people's.
    #[command(subcommand)]
    Caches(Caches),
    /// Hit ratios: traces replayed on our cache, beside bounds and (with the feature `peers`) peers.
    Simulate(simulate::Args),
}

pub(crate) fn run() -> Result<()> {
    let cli = Cli::parse();
    let mut progress = Progress::new();
    let (json, text) = match &cli.command {
        Command::Workload(workload) => {
            let report = workload.run(&cli.global.target(), &progress)?;
            let title = format!("{} · {}\n", report.workload, machine::line());
            (report.to_json(), title + &table::of_report(&report))
        }
        Command::Compare(args) => {
            if cli.global.host.is_some() || cli.global.port.is_some() || cli.global.pid.is_some() {
                bail!("compare starts its servers itself: --host, --port and --pid do not apply");
            }
            let comparison = compare::run(args, &mut progress)?;
            (comparison.to_json(), comparison.to_table())
        }
        Command::Timers(args) => {
            let comparison = timers::run(args, &mut progress)?;
            (comparison.to_json(), comparison.to_table())
        }
        Command::Tasks(args) => {
            let comparison = tasks::run(args, &mut progress)?;
            (comparison.to_json(), comparison.to_table())
        }
        Command::Simulate(args) => {
            let simulation = simulate::run(args, &progress)?;
            let (lines, text) = (simulation.lines(), simulation.text());
            return emit(&lines, &text, cli.global.json.as_deref());
        }
        Command::Caches(caches) => {
            let Some(outcome) = caches::run(caches, &mut progress)? else {
                return Ok(());
            };
            return emit(outcome.lines(), &outcome.text(), cli.global.json.as_deref());
        }
    };
    emit(&[json], &text, cli.global.json.as_deref())
}

impl Global {
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
    let mut file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .with_context(|| format!("cannot write {}", path.display()))?;
    for line in lines {
        writeln!(file, "{line}").with_context(|| format!("cannot write {}", path.display()))?;
    }
    print!("{text}");
    Ok(())
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
        let Command::Compare(args) = cli.command else {
            panic!("a comparison")
        };
        assert_eq!((args.runs, args.workload.name()), (3, "sparse"));
    }
}
