//! One workload against several servers in turn, each run in a fresh process of its own.
//!
//! The servers alternate (A B A B, not A A B B), so that a machine that slows down slows all.

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::launch::{Running, ServerSpec};
use crate::machine;
use crate::progress::Progress;
use crate::report::Report;
use crate::table::{self, Column};
use crate::workload::Workload;

/// Options of `compare`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// A server as NAME=COMMAND; `{port}` in the command is replaced, else the flags of the Redis
    /// family for port, address and no persistence are appended. Repeat for each server.
    #[arg(long = "server", required = true, value_name = "NAME=COMMAND")]
    servers: Vec<ServerSpec>,
    /// Runs per server.
    #[arg(long, default_value_t = 1)]
    pub(crate) runs: usize,
    /// Look for a free port from here on; 0 leaves the choice to the system.
    #[arg(long, default_value_t = 0)]
    first_port: u16,
    #[command(subcommand)]
    pub(crate) workload: Workload,
}

/// All runs of all servers.
#[derive(Debug)]
pub(crate) struct Comparison {
    workload: &'static str,
    servers: Vec<Series>,
}

#[derive(Debug)]
struct Series {
    name: String,
    command: String,
    reports: Vec<Report>,
}

pub(crate) fn run(args: &Args, progress: &mut Progress) -> Result<Comparison> {
    if args.runs == 0 {
        bail!("--runs must be at least 1");
    }
    let mut servers: Vec<Series> = args
        .servers
        .iter()
        .map(|spec| Series {
            name: spec.name.clone(),
            command: String::new(),
            reports: Vec::new(),
        })
        .collect();
    for round in 1..=args.runs {
        for (spec, series) in args.servers.iter().zip(&mut servers) {
            progress.set_title(format!("{} {round}/{}", spec.name, args.runs));
            let running = Running::start(spec, args.first_port)?;
            series.command = running.command().to_owned();
            let report = args
                .workload
                .run(&running.target(), progress)
                .with_context(|| format!("{} failed on {}", args.workload.name(), spec.name))?;
            series.reports.push(report);
            running.stop()?;
        }
    }
    Ok(Comparison {
        workload: args.workload.name(),
        servers,
    })
}

impl Comparison {
    pub(crate) fn to_json(&self) -> Value {
        json!({
            "tool": concat!("tidewheel-lab ", env!("CARGO_PKG_VERSION")),
            "compare": self.workload,
            "machine": machine::facts(),
            "servers": self.servers.iter().map(|series| json!({
                "name": series.name,
                "command": series.command,
                "runs": series.reports.iter().map(Report::to_json).collect::<Vec<_>>(),
            })).collect::<Vec<_>>(),
        })
    }

    pub(crate) fn to_table(&self) -> String {
        let columns: Vec<Column<'_>> = self
            .servers
            .iter()
            .map(|series| Column {
                head: format!("{} (n={})", series.name, series.reports.len()),
                runs: series
                    .reports
                    .iter()
                    .map(|report| &report.figures)
                    .collect(),
            })
            .collect();
        let mut text = format!("{} · {}\n", self.workload, machine::line());
        text.push_str(&table::of_columns(&columns));
        for series in &self.servers {
            let title = series
                .reports
                .first()
                .and_then(|report| report.server.as_ref());
            let title = title.map(|facts| facts.title()).unwrap_or_default();
            text.push_str(&format!("{} = {title}: {}\n", series.name, series.command));
            for (at, report) in series.reports.iter().enumerate() {
                for note in &report.notes {
                    text.push_str(&format!("note: {} run {}: {note}\n", series.name, at + 1));
                }
            }
        }
        text
    }
}
