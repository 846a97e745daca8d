//! The server: `tidewheel` speaks the Redis protocol and lets keys expire on time.

#![forbid(unsafe_code)]

mod clients;
mod commands;
mod config;
mod counters;
mod loop_handle;
mod loops;
mod net;
mod process;
mod pubsub;
#[cfg(test)]
mod simulation;
mod start;
mod state;
mod time;
mod upkeep;

use std::process::ExitCode;

use crate::config::{Invocation, Refusal, Settings};
use crate::start::Running;
use crate::state::server::Stop;

/// Chosen by measurement, configured in `.cargo/config.toml`: see `Cargo.toml` beside the dependency.
#[cfg(target_os = "linux")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// It could not start, or something failed while it ran.
const FAILED: u8 = 1;

/// The command line or the configuration is wrong.
const MISUSED: u8 = 2;

fn main() -> ExitCode {
    let Invocation {
        settings,
        file,
        check,
    } = match config::invocation(std::env::args_os()) {
        Ok(invocation) => invocation,
        Err(Refusal::Usage(why)) => {
            // Help and version are asked for, not mistakes, and go to standard output.
            let misuse = why.use_stderr();
            return match why.print() {
                Ok(()) if !misuse => ExitCode::SUCCESS,
                _ => ExitCode::from(MISUSED),
            };
        }
        Err(Refusal::Configuration(why)) => {
            eprintln!("tidewheel: {why}");
            return ExitCode::from(MISUSED);
        }
    };
    if check {
        println!("the configuration is right");
        return ExitCode::SUCCESS;
    }
    process::log::start(settings.log_level);
    match run(settings, file) {
        Ok(Stop::Failure) => ExitCode::from(FAILED),
        Ok(_) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("tidewheel: {why:#}");
            ExitCode::from(FAILED)
        }
    }
}

fn run(mut settings: Settings, file: Option<std::path::PathBuf>) -> anyhow::Result<Stop> {
    let fit = process::system::raise_open_files(settings.max_clients);
    if fit < settings.max_clients {
        tracing::warn!(
            maxclients = fit,
            "the limit of open files does not allow more connections (see ulimit -n)"
        );
        settings.max_clients = fit.max(1);
    }
    let exposed = settings.bind.iter().any(|bind| !bind.ip().is_loopback());
    let protected = settings.protected_mode;
    let running = start::start(settings, file)?;
    if exposed && !running.server.config.asks_password() {
        tracing::warn!(
            "other machines can reach this server, and no password is set (--requirepass){}",
            if protected {
                ": they are refused, because protected mode is on (--protected-mode)"
            } else {
                ""
            }
        );
    }
    start::signals::watch(&running.server)?;
    announce(&running);
    let why = running.wait();
    tracing::info!(?why, "stopping");
    running.stop();
    Ok(why)
}

/// Says where the server listens and what to try first.
fn announce(running: &Running) {
    let addresses: Vec<String> = running.addresses.iter().map(ToString::to_string).collect();
    let server = &running.server;
    println!(
        "tidewheel {} listens on {} ({} event loops, {} shards)",
        env!("CARGO_PKG_VERSION"),
        addresses.join(" and "),
        server.loops.len(),
        server.keyspace.shards(),
    );
    println!("try: redis-cli -p {} SET tea hot PX 3000", server.port);
}
