//! Servers that speak the Redis protocol, and the workloads that run against them.

use anyhow::{Context, Result, bail};
use clap::Subcommand;

use self::client::Address;
use self::launch::{Running, ServerSpec};
use self::server::Target;
use crate::outcome::Outcome;
use crate::progress;
use crate::report::Report;
use crate::runner::count;

mod background;
mod burst;
mod churn;
mod client;
mod driver;
mod event_lag;
mod getter;
mod keys;
mod launch;
mod loader;
mod memory;
mod resp;
mod server;
mod throughput;

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Servers {
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

#[derive(Clone, Debug, Subcommand)]
enum OnServers {
    #[command(flatten)]
    Workload(Workload),
    /// One workload against several servers in turn, each in a fresh process.
    Compare(Compare),
}

/// Options of `compare`.
#[derive(Clone, Debug, clap::Args)]
struct Compare {
    /// A server as NAME=COMMAND; `{port}` in the command is replaced, else the flags of the Redis
    /// family for port, address and no persistence are appended. Repeat for each server.
    #[arg(long = "server", required = true, value_name = "NAME=COMMAND")]
    servers: Vec<ServerSpec>,
    /// Runs per server.
    #[arg(long, default_value_t = 1, value_parser = count::<usize>)]
    runs: usize,
    /// Look for a free port from here on; 0 leaves the choice to the system.
    #[arg(long, default_value_t = 0)]
    first_port: u16,
    #[command(subcommand)]
    workload: Workload,
}

/// One experiment against one server.
#[derive(Clone, Debug, Subcommand)]
enum Workload {
    /// A million keys due within one second beside live keys that are being read.
    MassExpiry(burst::Args),
    /// A few keys due within one second among many that are not, nobody touching them.
    Sparse(burst::Args),
    /// How late the `expired` event of each key arrives.
    EventLag(event_lag::Args),
    /// Server processor time per request and requests a second, by pipeline and connections.
    Throughput(throughput::Args),
    /// Resident bytes per key.
    Memory(memory::Args),
    /// SETs with short times to live, flat out: what is stored against what is alive.
    Churn(churn::Args),
}

impl Workload {
    /// Runs it; the server is left without keys.
    fn run(&self, target: &Target) -> Result<Report> {
        let report = match self {
            Self::MassExpiry(args) => burst::run(&args.plan(true), target),
            Self::Sparse(args) => burst::run(&args.plan(false), target),
            Self::EventLag(args) => event_lag::run(args, target),
            Self::Throughput(args) => throughput::run(args, target),
            Self::Memory(args) => memory::run(args, target),
            Self::Churn(args) => churn::run(args, target),
        };
        progress::clear();
        report
    }
}

impl Servers {
    pub(crate) fn run(&self) -> Result<Outcome> {
        match &self.command {
            OnServers::Workload(workload) => {
                let report = workload.run(&self.target())?;
                Ok(Outcome::of(&report.workload.clone(), vec![report]))
            }
            OnServers::Compare(_) if self.names_a_server() => {
                bail!("compare starts its servers itself: --host, --port and --pid do not apply")
            }
            OnServers::Compare(compare) => compare.run(),
        }
    }

    fn names_a_server(&self) -> bool {
        self.host.is_some() || self.port.is_some() || self.pid.is_some()
    }

    fn target(&self) -> Target {
        let mut address = Address::loopback(self.port.unwrap_or(6_379));
        address.host = self.host.clone().unwrap_or(address.host);
        address.password.clone_from(&self.password);
        Target {
            address,
            pid: self.pid,
            flush: self.flush,
        }
    }
}

impl Compare {
    /// The servers alternate (A B A B, not A A B B), so that a machine that slows down slows all.
    fn run(&self) -> Result<Outcome> {
        let mut reports = Vec::new();
        for round in 1..=self.runs {
            for spec in &self.servers {
                progress::say(format!("{} {round}/{}", spec.name, self.runs));
                let running = Running::start(spec, self.first_port)?;
                let report = self.workload.run(&running.target());
                let mut report = report.with_context(|| format!("failed on {}", spec.name))?;
                report.subject.clone_from(&spec.name);
                report.command = Some(running.command().to_owned());
                report.run = round;
                reports.push(report);
                running.stop()?;
            }
        }
        Ok(Outcome::of(&reports[0].workload.clone(), reports))
    }
}
