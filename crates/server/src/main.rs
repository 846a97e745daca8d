//! The server: `tidewheel` speaks the Redis protocol and lets keys expire on time.
//!
//! The data and its commands are `tidewheel-keyspace`. Here are the sockets, the threads and the
//! clock around it.
//!
//! # The folders, from the top down
//!
//! - `simulation/`: tests. Loops over streams in memory, in virtual time, under a seeded schedule.
//!   Episodes differ in passwords, `timeout`, `maxmemory` and output limits; the oracle says what
//!   data commands answer. Histories of clients that die: a bank (MULTI), counting (WATCH), queues
//!   (BLPOP). Caches of clients (CLIENT TRACKING) equal the data whenever all is quiet. Each
//!   expired key is in its stream once. A server that logs to a simulated disk crashes, and has
//!   lost nothing that a client was told.
//! - `tools/`: what the program does beside serving: `check` and `dump` read a snapshot file, and
//!   `top/` is the page of time as text in a terminal.
//! - `start/`: starting and stopping the loops; signals.
//! - `loops/`: `event_loop/` is the shell of a loop, with poller, alarm and listeners. `loop_core/`
//!   is the loop without sockets and clock: a turn over its connections, and expiry. `worker/`
//!   serves one connection: read, run what is whole, send. `handshakes/` has the threads that
//!   accept at the port for TLS.
//! - `commands/`: `dispatch.rs` runs one command, `turn.rs` is what it runs with. `host/` has the
//!   commands about connections and the server. `foreign_protocol.rs` recognises input of other
//!   protocols, which is not run.
//! - `persistence/`: all data in a file, and back.
//! - `upkeep/`: expiry within a turn, expired keys in streams, tidying, the watch over loops that
//!   are stuck, the shards of each loop.
//! - `state/`: the state that all loops share, and each loop's own. In tests, an observer of the
//!   commands.
//! - `clients/`: connections and their limits, the commands that they queue after MULTI (within
//!   `client-query-buffer-limit` and `maxmemory-clients`), the registry of all of them, CLIENT
//!   PAUSE, MONITOR.
//! - `scripts/`: the bodies of scripts, each loop's Lua state, the script that a loop runs.
//! - `pubsub/`: channels, patterns, keyspace events. A message is encoded once and shared.
//!   `loops/loop_core/invalidate.rs` tells clients that what they have cached is invalid.
//! - `loop_handle/`: a loop's handle for other threads, with its alarm and its inbox.
//! - `net/`, `process/`: accepting, streams (plain, Unix, TLS), and output that is not sent yet;
//!   open files, the log, a thread that frees big memory, those that run long commands, what
//!   systemd is told.
//! - `pages/`: metrics over HTTP. A thread that asks the server as any client does.
//! - `users/`: who a client is, and what it may do (ACL).
//! - `config/`: one table of keys; flag, file, environment, CONFIG and help follow from it.
//! - `counters/`, `time/`: counters for INFO, the slow log, LATENCY; engine time in step with the
//!   wall clock, and a sleep that ends exactly.
//!
//! # A turn
//!
//! 1. The loop that owns a connection reads its socket into the loop's buffer, which is lent to the
//!    connection for this turn.
//! 2. `resp` cuts up to 32 commands of the common shape at once, and others one at a time. Their
//!    rows and the hashes of their keys are found, and the memory of their keys is prefetched,
//!    before the first of them runs: see `worker/prefetch.rs`. A call of four keys or more
//!    prefetches its own keys when it has locked their shards.
//! 3. Commands run one after the other. A connection's turn ends after a millisecond, but a running
//!    command is finished first. The loop reads the clock again after each read of the socket, and
//!    after each command that may have taken long.
//! 4. A walk over all keys stays with its connection, and takes its next step when the others have
//!    had their turn. A command over very many names (SUBSCRIBE, UNSUBSCRIBE, RESET, WATCH) is run
//!    in parts of 128 names or 64 KiB (`commands/host/parts.rs`). Between two parts it stays at the
//!    start of its connection's input, with what the parser has found; so nothing of it is copied,
//!    and it counts as input.
//! 5. After the batch the loop publishes the queued keyspace events and writes all replies with one
//!    write.
//!
//! # Expiry
//!
//! Loop `i mod N` expires the keys of shard `i`. It sleeps until the earliest of its shards'
//! published deadlines and its connections' time-outs; a timerfd wakes it at the instant at which
//! that tick begins. As long as it expires keys in time, a turn spends at most `expiry-turn-us` (25
//! µs) on expiry, in holds of `expiry-hold-keys` (32) keys. Then the loop looks at the sockets.
//! `upkeep/expiry.rs` says what changes when it is behind, `loops/event_loop/yielding.rs` when it
//! yields its processor. `upkeep/guard.rs` says which loop expires its keys while it runs a long
//! command.
//!
//! # Expired keys in a stream
//!
//! With `expired-stream`, each key that expires becomes an entry of a stream. The keyspace queues
//! it under the key's lock, and loops append it when nothing is locked (`upkeep/expired.rs`): after
//! each hold of expiry, within the microseconds of its pass, and at the end of a turn. All loops
//! append; those who have the stream's shard take the events from the queue, so they stay in order.
//! The keyspace's page `expired` says what happens when the queue is full.
//!
//! # Invariants
//!
//! - **When a connection's turn begins, the loop's buffers hold nothing of another connection.**
//!   Code reaches the buffers only through a loan. The end of the loan clears them, after success,
//!   error and panic.
//! - **A command sent after CONFIG SET was answered runs with the new setting**, on every loop. Who
//!   may come in (password, protected mode) follows from the settings in force, never from a loop's
//!   copy.
//! - **Commands that arrived whole before the end of the input are run and answered.** A client
//!   that closes only its sending side still gets the reply of a long command, but none of one that
//!   waits for a key or for the log.
//! - **A message that a key is invalid follows every reply that was written before it** to its
//!   client, and its author's reply. Loops take such messages from their inbox, between two turns.
//! - **Background work never holds a shard's lock for more than its budget of records.** INFO
//!   `expiry` has a histogram of how long the locks were held.
//! - **Every queue has a cap, and a defined behaviour at the cap.** `SECURITY.md` lists them.

#![forbid(unsafe_code)]

mod clients;
mod commands;
mod config;
mod counters;
mod loop_handle;
mod loops;
mod net;
mod pages;
mod persistence;
mod process;
mod pubsub;
mod scripts;
#[cfg(test)]
mod simulation;
mod start;
mod state;
mod time;
mod tools;
mod upkeep;
mod users;

use std::io::{ErrorKind, Write as _};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::config::{Asked, ConfigFile, Invocation, Port, Refusal, Settings};
use crate::loops::handshakes;
use crate::net::listener::ListenerFacts;
use crate::net::tls::terms::TlsTerms;
use crate::process::sd_notify;
use crate::start::Running;
use crate::state::server::{Server, StopReason};
use crate::time::clock::Clock;

/// Chosen by measurement, configured in `.cargo/config.toml`: see `Cargo.toml` beside the
/// dependency.
#[cfg(target_os = "linux")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// The exit code of a server that could not start, or that failed while it ran.
const FAILED: u8 = 1;

/// The exit code for a wrong command line or configuration.
const MISUSED: u8 = 2;

fn main() -> ExitCode {
    let invocation = match config::asked(std::env::args_os()) {
        Ok(Asked::Server(invocation)) => invocation,
        Ok(Asked::Verdict(invocation)) => return check(&invocation),
        Ok(Asked::Text(text)) => return print(&text),
        Ok(Asked::Tool(tool)) => return ExitCode::from(tools::run(&tool)),
        Err(Refusal::Usage(why)) => {
            // Help and version are asked for, not mistakes, and go to standard output.
            let misuse = why.use_stderr();
            return match why.print() {
                Ok(()) if !misuse => ExitCode::SUCCESS,
                _ => ExitCode::from(MISUSED),
            };
        }
        Err(Refusal::Configuration(wrong)) => {
            wrong.iter().for_each(|why| eprintln!("tidewheel: {why}"));
            return ExitCode::from(MISUSED);
        }
    };
    serve(*invocation)
}

fn print(text: &str) -> ExitCode {
    match std::io::stdout().write_all(text.as_bytes()) {
        // Who reads has read enough.
        Err(why) if why.kind() != ErrorKind::BrokenPipe => ExitCode::from(FAILED),
        _ => ExitCode::SUCCESS,
    }
}

/// Reads the files that the settings name, and says whether all is right.
fn check(invocation: &Invocation) -> ExitCode {
    let now_s = Clock::start().now().wall_ms() / 1_000;
    match TlsTerms::default().renew(&invocation.settings, now_s) {
        Ok(()) => print(&invocation.verdict()),
        Err(why) => {
            eprintln!("tidewheel: {why:#}");
            ExitCode::from(MISUSED)
        }
    }
}

fn serve(invocation: Invocation) -> ExitCode {
    let Invocation {
        settings,
        file,
        foreign,
    } = invocation;
    if let Err(why) = process::log::start(&settings.log) {
        eprintln!(
            "tidewheel: --logfile '{}': cannot open the file: {why}",
            settings.log.file
        );
        return ExitCode::from(FAILED);
    }
    if let (Some(text), Some(file)) = (foreign.text(), &file) {
        let file = file.path().display();
        tracing::warn!("{file}: these lines mean nothing here: {text}");
    }
    match run(settings, file) {
        Ok(StopReason::Failure) => ExitCode::from(FAILED),
        Ok(_) => ExitCode::SUCCESS,
        Err(why) => {
            if process::log::is_in_a_file() {
                tracing::error!("{why:#}");
            }
            eprintln!("tidewheel: {why:#}");
            ExitCode::from(FAILED)
        }
    }
}

fn run(mut settings: Settings, file: Option<ConfigFile>) -> anyhow::Result<StopReason> {
    let listeners = listening_files(&settings) + pages::files(&settings);
    let own_files = process::system::own_files(settings.loops(), listeners);
    fit_open_files(&mut settings, own_files)?;
    if !process::system::refuse_huge_pages() {
        tracing::warn!(
            "huge pages stay on for this process: keys that are gone may leave memory in use"
        );
    }
    let has_port = settings.port != Port::Off || settings.tls.port != Port::Off;
    let exposed = has_port && settings.bind.iter().any(|bind| !bind.ip().is_loopback());
    let protected = settings.protected_mode;
    let mut running = start::start(settings, file, own_files)?;
    tell_start(&running);
    if exposed && running.server.config.needs_no_password() {
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
    match running.load() {
        Ok(None) => announce(&running),
        Ok(Some(why)) => {
            tell_stop(why);
            running.stop();
            return Ok(why);
        }
        Err(why) => {
            running.stop();
            return Err(why);
        }
    }
    loop {
        let why = running.wait();
        tell_stop(why);
        if why != StopReason::Failure && !running.save(why) {
            // Who asks again asks for the same.
            running.server.is_signalled.store(false, Ordering::SeqCst);
            tracing::error!(
                "the server goes on, since its data is not saved: free the disk and stop it again, or stop it with \
                 SHUTDOWN NOSAVE"
            );
            sd_notify::status("goes on, since its data is not saved: see the log");
            continue;
        }
        let server = Arc::clone(&running.server);
        running.stop();
        let uptime_s = server.clock.now().tick - server.started.load(Ordering::Relaxed);
        tracing::info!(uptime_s = uptime_s / 1000, "stopped");
        return Ok(why);
    }
}

/// Returns the descriptors with which the server listens.
fn listening_files(settings: &Settings) -> usize {
    let each = |port| {
        if port == Port::Off {
            0
        } else {
            settings.bind.len()
        }
    };
    let unix = usize::from(!settings.unix_socket.is_empty());
    // The threads for handshakes have each a descriptor of each socket.
    let tls = match each(settings.tls.port) {
        0 => 0,
        sockets => handshakes::THREADS * (sockets + handshakes::FILES),
    };
    each(settings.port) + tls + unix
}

/// Returns where a server listens, in words.
fn listens_at(server: &Server) -> String {
    let shown = |listener: &ListenerFacts| {
        let tls = if listener.name == "tls" { " (TLS)" } else { "" };
        listener.addresses.join(" and ") + tls
    };
    let addresses: Vec<String> = server.listeners.iter().map(shown).collect();
    addresses.join(" and ")
}

/// Logs what a server is that has begun to listen.
fn tell_start(running: &Running) {
    let server = &running.server;
    let file = server.config.file.as_ref();
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        pid = std::process::id(),
        listens = listens_at(server),
        loops = server.loops.len(),
        shards = server.keyspace.shards(),
        maxmemory = server.config.current().max_memory,
        file = file.map(|file| tracing::field::display(file.path().display())),
        "started"
    );
}

fn tell_stop(why: StopReason) {
    tracing::info!(?why, "stopping");
    sd_notify::stopping();
}

/// Lowers `maxclients` to what the limit of open files allows. Not even one client is an error.
fn fit_open_files(settings: &mut Settings, own: usize) -> anyhow::Result<()> {
    let files = process::system::raise_open_files(settings.max_clients, own);
    let (limit, fit, wanted) = (files.limit, files.connections, settings.max_clients);
    if fit == 0 {
        let (pages, fewer) = match pages::files(settings) {
            0 => (String::new(), ""),
            files => (
                format!(", {files} of them for HTTP"),
                ", or do without --http-port",
            ),
        };
        anyhow::bail!(
            "the limit of open files is {limit} (see ulimit -n), and {} event loops need {own} before the first \
             client{pages}: raise the limit, or start fewer with --threads{fewer}",
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
    let server = &running.server;
    let first = server
        .listeners
        .first()
        .map(|listener| match listener.name {
            "tls" => format!("--tls -p {}", listener.port),
            "unix" => format!("-s {}", listener.addresses.join("")),
            _ => format!("-p {}", listener.port),
        });
    let text = format!(
        "tidewheel {} listens on {} ({} event loops, {} shards)\n{}{}\ntry: redis-cli {} SET tea hot PX 3000\n",
        env!("CARGO_PKG_VERSION"),
        listens_at(server),
        server.loops.len(),
        server.keyspace.shards(),
        persistence::what_is_kept(server),
        (running.pages()).map_or(String::new(), |address| format!(
            "\nlook: http://{address}/ (metrics: /metrics)"
        )),
        first.unwrap_or_default(),
    );
    tracing::info!("ready: {}", persistence::what_is_kept(server));
    sd_notify::ready(&format!("listens on {}", listens_at(server)));
    if let Err(why) = std::io::stdout().write_all(text.as_bytes()) {
        tracing::debug!(%why, "nobody reads where the server listens");
    }
}
