//! The workloads that run against a server.

use anyhow::Result;
use clap::Subcommand;

use crate::progress::Progress;
use crate::report::Report;
use crate::server::Target;

pub(crate) mod burst;
pub(crate) mod churn;
pub(crate) mod event_lag;
pub(crate) mod memory;
pub(crate) mod throughput;

/// One experiment against one server.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum Workload {
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
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::MassExpiry(_) => "mass-expiry",
            Self::Sparse(_) => "sparse",
            Self::EventLag(_) => "event-lag",
            Self::Throughput(_) => "throughput",
            Self::Memory(_) => "memory",
            Self::Churn(_) => "churn",
        }
    }

    /// Runs it; the server is left without keys.
    pub(crate) fn run(&self, target: &Target, progress: &Progress) -> Result<Report> {
        let report = match self {
            Self::MassExpiry(args) => burst::run(
                &args.plan(burst::Preset::MassExpiry),
                self.name(),
                target,
                progress,
            ),
            Self::Sparse(args) => burst::run(
                &args.plan(burst::Preset::Sparse),
                self.name(),
                target,
                progress,
            ),
            Self::EventLag(args) => event_lag::run(args, target, progress),
            Self::Throughput(args) => throughput::run(args, target, progress),
            Self::Memory(args) => memory::run(args, target, progress),
            Self::Churn(args) => churn::run(args, target, progress),
        };
        progress.clear();
        Ok(report?.finish())
    }
}

/// What the user asked for, else the quick or the full size.
fn sized<T>(asked: Option<T>, quick: bool, full: T, small: T) -> T {
    asked.unwrap_or(if quick { small } else { full })
}
