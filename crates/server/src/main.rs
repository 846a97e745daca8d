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

use std::io::Write as _;
use std::process::ExitCode;

use crate::config::{Invocation, Refusal, Settings};
use crate::start::Running;
use crate::state::server::Stop;

/// Chosen by measurement, configured in `.cargo/config.toml`: see `Cargo.toml` beside the
/// dependency.
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
    let own_files = process::system::own_files(settings.loops(), settings.bind.len());
    fit_open_files(&mut settings, own_files)?;
    let exposed = settings.bind.iter().any(|bind| !bind.ip().is_loopback());
    let protected = settings.protected_mode;
    let running = start::start(settings, file, own_files)?;
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

/// Lowers `maxclients` to what the limit of open files allows. Not even one client is an error.
fn fit_open_files(settings: &mut Settings, own: usize) -> anyhow::Result<()> {
    let files = process::system::raise_open_files(settings.max_clients, own);
    let (limit, fit, wanted) = (files.limit, files.connections, settings.max_clients);
    if fit == 0 {
        anyhow::bail!(
            "the limit of open files is {limit} (see ulimit -n), and {} event loops need {own} before the first \
             client: raise the limit, or start fewer with --threads",
            settings.loops(),
        );
    }
    if fit < wanted {
        tracing::warn!(
            maxclients = fit,
            "maxclients is lowered from {wanted}: the limit of open files is {limit} (see ulimit -n), of which the \
             server needs {own} itself"
        );
        settings.max_clients = fit;
    }
    Ok(())
}

/// Says where the server listens and what to try first. It serves whether anybody reads that or
/// not.
fn announce(running: &Running) {
    let addresses: Vec<String> = running.addresses.iter().map(ToString::to_string).collect();
    let server = &running.server;
    let text = format!(
        "tidewheel {} listens on {} ({} event loops, {} shards)\ntry: redis-cli -p {} SET tea hot PX 3000\n",
        env!("CARGO_PKG_VERSION"),
        addresses.join(" and "),
        server.loops.len(),
        server.keyspace.shards(),
        server.port,
    );
    if let Err(why) = std::io::stdout().write_all(text.as_bytes()) {
        tracing::debug!(%why, "nobody reads where the server listens");
    }
}
