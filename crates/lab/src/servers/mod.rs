//! Servers that speak the Redis protocol, and the workloads that run against them.

use anyhow::{Context, Result};
use clap::Subcommand;

use self::launch::{Running, ServerSpec};
use self::server::Target;
use crate::outcome::Outcome;
use crate::progress;
use crate::report::Report;
use crate::runner::{Basics, count};

mod background;
mod burst;
mod churn;
mod client;
mod crowd;
mod driver;
mod event_lag;
mod expired_stream;
mod fan_out;
mod getter;
mod hand_over;
mod keys;
mod launch;
mod loader;
mod memory;
mod ops;
mod resp;
mod server;
mod stream_memory;
mod throughput;
mod undeclared;

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum Servers {
    /// One workload against several servers in turn, each in a fresh process.
    Compare(Compare),
}

/// Options of `servers compare`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Compare {
    /// A server as NAME=COMMAND; the flags of the Redis family for port, address and no persistence
    /// are appended. Repeat for each server.
    #[arg(long = "server", required = true, value_name = "NAME=COMMAND")]
    servers: Vec<ServerSpec>,
    /// Runs per server.
    #[arg(long, default_value_t = 1, value_parser = count::<usize>)]
    runs: usize,
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
    /// The delay of each key's `expired` event.
    EventLag(event_lag::Args),
    /// A million keys due within one second that become entries of a stream.
    ExpiredStream(expired_stream::Args),
    /// Server processor time per request and requests a second, by pipeline and connections.
    Throughput(throughput::Args),
    /// The time that an element takes to one of very many clients that wait for a key.
    HandOver(hand_over::Args),
    /// The time until the last of very many clients that wait for a stream has its newest entry.
    FanOut(fan_out::Args),
    /// The latency of GETs beside scripts over keys that they do not declare.
    Undeclared(undeclared::Args),
    /// Bytes per entry of streams.
    StreamMemory(stream_memory::Args),
    /// Resident bytes per key.
    Memory(memory::Args),
    /// SETs with short times to live, flat out: what is stored against what is alive.
    Churn(Basics),
}

impl Workload {
    fn run(&self, target: Target) -> Result<Report> {
        match self {
            Self::MassExpiry(args) => burst::run(&args.plan(true), target),
            Self::Sparse(args) => burst::run(&args.plan(false), target),
            Self::EventLag(args) => event_lag::run(args, target),
            Self::ExpiredStream(args) => expired_stream::run(args, target),
            Self::Throughput(args) => throughput::run(args, target),
            Self::HandOver(args) => hand_over::run(args, target),
            Self::FanOut(args) => fan_out::run(args, target),
            Self::Undeclared(args) => undeclared::run(args, target),
            Self::StreamMemory(args) => stream_memory::run(args, target),
            Self::Memory(args) => memory::run(args, target),
            Self::Churn(args) => churn::run(args, target),
        }
    }
}

impl Servers {
    /// The servers alternate (A B A B, not A A B B), so that a machine that slows down slows all.
    pub(crate) fn run(&self) -> Result<Outcome> {
        let Self::Compare(compare) = self;
        let mut reports = Vec::new();
        for round in 1..=compare.runs {
            for spec in &compare.servers {
                progress::say(format!("{} {round}/{}", spec.name, compare.runs));
                let running = Running::start(spec)?;
                let report = compare.workload.run(running.target());
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
