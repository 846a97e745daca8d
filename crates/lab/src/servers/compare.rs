//! One workload against several servers in turn, each run in a fresh process of its own.
//!
//! The servers alternate (A B A B, not A A B B), so that a machine that slows down slows all.

use anyhow::{Context, Result, bail};

use crate::launch::{Running, ServerSpec};
use crate::outcome::Outcome;
use crate::progress::Progress;
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

pub(crate) fn run(args: &Args, progress: &mut Progress) -> Result<Outcome> {
    if args.runs == 0 {
        bail!("--runs must be at least 1");
    }
    let mut reports = Vec::new();
    for round in 1..=args.runs {
        for spec in &args.servers {
            progress.set_title(format!("{} {round}/{}", spec.name, args.runs));
            let running = Running::start(spec, args.first_port)?;
            let mut report = args
                .workload
                .run(&running.target(), progress)
                .with_context(|| format!("{} failed on {}", args.workload.name(), spec.name))?;
            report.subject.clone_from(&spec.name);
            report.command = Some(running.command().to_owned());
            report.run = round;
            reports.push(report);
            running.stop()?;
        }
    }
    Ok(Outcome::of(args.workload.name(), reports))
}
