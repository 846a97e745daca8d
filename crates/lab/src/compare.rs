//! One workload against several servers in turn, each run in a fresh process of its own.
//!
//! The servers alternate (A B A B, not A A B B), so that a machine that slows down slows all.

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::launch::{Running, ServerSpec};
use crate::machine;
use crate::progress::Progress;
use crate::report::Report;
use crate::server::Facts;
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

/// All runs of everything that is compared.
#[derive(Debug)]
pub(crate) struct Comparison {
    workload: &'static str,
    /// What is compared, in the plural.
    kind: &'static str,
    series: Vec<Series>,
}

/// The runs of one server, or of one structure.
#[derive(Debug)]
pub(crate) struct Series {
    pub(crate) name: String,
    /// How it was started, if it was.
    pub(crate) command: Option<String>,
    pub(crate) reports: Vec<Report>,
}

impl Series {
    pub(crate) fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            command: None,
            reports: Vec::new(),
        }
    }
}

pub(crate) fn run(args: &Args, progress: &mut Progress) -> Result<Comparison> {
    if args.runs == 0 {
        bail!("--runs must be at least 1");
    }
    let mut all: Vec<Series> = args
        .servers
        .iter()
        .map(|spec| Series::new(&spec.name))
        .collect();
    for round in 1..=args.runs {
        for (spec, series) in args.servers.iter().zip(&mut all) {
            progress.set_title(format!("{} {round}/{}", spec.name, args.runs));
            let running = Running::start(spec, args.first_port)?;
            series.command = Some(running.command().to_owned());
            let report = args
                .workload
                .run(&running.target(), progress)
                .with_context(|| format!("{} failed on {}", args.workload.name(), spec.name))?;
            series.reports.push(report);
            running.stop()?;
        }
    }
    Ok(Comparison::new(args.workload.name(), "servers", all))
}

impl Comparison {
    pub(crate) fn new(workload: &'static str, kind: &'static str, series: Vec<Series>) -> Self {
        Self {
            workload,
            kind,
            series,
        }
    }

    pub(crate) fn to_json(&self) -> Value {
        json!({
            "tool": concat!("tidewheel-lab ", env!("CARGO_PKG_VERSION")),
            "compare": self.workload,
            "machine": machine::facts(),
            (self.kind): self.series.iter().map(|series| json!({
                "name": series.name,
                "command": series.command,
                "runs": series.reports.iter().map(Report::to_json).collect::<Vec<_>>(),
            })).collect::<Vec<_>>(),
        })
    }

    pub(crate) fn to_table(&self) -> String {
        let columns: Vec<Column<'_>> = self
            .series
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
        for series in &self.series {
            if let Some(command) = &series.command {
                let server = series
                    .reports
                    .first()
                    .and_then(|report| report.server.as_ref());
                let title = server.map(Facts::title).unwrap_or_default();
                text.push_str(&format!("{} = {title}: {command}\n", series.name));
            }
            for (at, report) in series.reports.iter().enumerate() {
                for note in &report.notes {
                    text.push_str(&format!("note: {} run {}: {note}\n", series.name, at + 1));
                }
            }
        }
        text
    }
}
