//! Starts the server's loops, each in a thread of its own, has the snapshot loaded, and stops them.

#[cfg(unix)]
mod reload;
pub(crate) mod signals;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Context as _;
use mio::net::TcpListener;
use mio::{Poll, Waker};

use crate::clients::checks;
use crate::config::{ConfigFile, Settings};
#[cfg(test)]
use crate::config::{Port, SavePoints, SyncPolicy};
use crate::loop_handle::LoopHandle;
use crate::loops::event_loop::{EventLoop, WAKER};
use crate::loops::handshakes::{self, Handshakes};
use crate::net::listener::{self, Listener};
#[cfg(unix)]
use crate::net::unix_socket::SocketFile;
use crate::pages::{self, Pages};
use crate::persistence;
use crate::persistence::log::{self, LogThreads, Recovered};
use crate::process::long_threads;
use crate::process::reclaim::Reclaimer;
use crate::state::log::Trouble;
use crate::state::server::{Server, ServerParts, StopReason, random};
use crate::time::clock::Clock;

/// The time between two attempts to have the whole keyspace.
const WAIT: Duration = Duration::from_millis(1);

/// For so long the loops wait for the data, so that who connects to a server that has just begun,
/// and has little to load, is served and not refused.
const PATIENCE: Duration = Duration::from_millis(200);

/// A running server.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) server: Arc<Server>,
    loops: Vec<JoinHandle<()>>,
    /// They wake the threads for handshakes when the server stops.
    wakers: Vec<Waker>,
    log: Option<LogThreads>,
    pages: Option<Pages>,
    stopped: Receiver<StopReason>,
    /// Removes the Unix socket's file at the end.
    #[cfg(unix)]
    _socket_file: Option<SocketFile>,
}

/// Opens the sockets and starts the loops. `own_files`: descriptors that are no connections.
pub(crate) fn start(
    settings: Settings,
    file: Option<ConfigFile>,
    own_files: usize,
) -> anyhow::Result<Running> {
    let mut listeners = listener::open(&settings)?;
    let pages = pages::open(&settings)?;
    let polls: Vec<Poll> = (0..settings.loops())
        .map(|_| Poll::new())
        .collect::<Result<_, _>>()
        .context("cannot create the event loops' pollers")?;
    let loops: Arc<[LoopHandle]> = polls
        .iter()
        .map(|poll| Waker::new(poll.registry(), WAKER))
        .map(|waker| Ok(LoopHandle::new(waker?)))
        .collect::<Result<_, std::io::Error>>()
        .context("cannot create the event loops' wakers")?;
    let (reclaimer, _) = Reclaimer::start().context("cannot start a thread")?;
    let (stop, stopped) = channel();
    let parts = ServerParts {
        settings,
        file,
        own_files,
        listeners: listeners.facts(),
        clock: Clock::start(),
        loops,
        reclaimer,
        stop,
        seed: u128::from(random()) << 64 | u128::from(random()),
    };
    let server = Arc::new(Server::new(parts));
    // Clients come before the data.
    server.keyspace.gate().set(checks::LOADING);
    let now_s = server.clock.now().wall_ms() / 1_000;
    server.tls_terms.renew(&server.config.current(), now_s)?;
    long_threads::start(&server).context("cannot start a thread")?;
    #[cfg(unix)]
    let socket_file = listeners.file.take();
    let for_tls = std::mem::take(&mut listeners.tls);
    let mut loops = spawn(&server, polls, listeners.into_plain())?;
    let (handshakes, wakers) = spawn_handshakes(&server, for_tls)?;
    loops.extend(handshakes);
    let pages = pages
        .map(|listener| Pages::start(&server, listener))
        .transpose()?;
    Ok(Running {
        server,
        loops,
        wakers,
        log: None,
        pages,
        stopped,
        #[cfg(unix)]
        _socket_file: socket_file,
    })
}

/// Starts the threads for handshakes, if TLS is spoken. All accept at the same sockets.
fn spawn_handshakes(
    server: &Arc<Server>,
    listeners: Vec<TcpListener>,
) -> anyhow::Result<(Vec<JoinHandle<()>>, Vec<Waker>)> {
    let (mut threads, mut wakers) = (Vec::new(), Vec::new());
    if listeners.is_empty() {
        return Ok((threads, wakers));
    }
    for number in 0..handshakes::THREADS {
        let own = listeners.iter().map(listener::duplicate);
        let own = own.collect::<Result<_, _>>();
        let own = own.context("cannot share the sockets for TLS")?;
        let (handshakes, waker) = Handshakes::new(Arc::clone(server), own)
            .context("cannot set a thread for handshakes up")?;
        wakers.push(waker);
        threads.push(watched(server, format!("tls-{number}"), || {
            handshakes.run();
        })?);
    }
    Ok((threads, wakers))
}

/// Starts a thread for each loop.
fn spawn(
    server: &Arc<Server>,
    polls: Vec<Poll>,
    listeners: Vec<Listener>,
) -> anyhow::Result<Vec<JoinHandle<()>>> {
    let mut listeners = Some(listeners);
    let mut handles = Vec::new();
    for (index, poll) in polls.into_iter().enumerate() {
        // The first loop accepts for all: the kernel's own sharing gives few connections unevenly.
        let listeners = listeners.take().unwrap_or_default();
        let event_loop = EventLoop::new(Arc::clone(server), index, poll, listeners)
            .context("cannot set an event loop up")?;
        let waiting = Arc::clone(server);
        handles.push(watched(server, format!("loop-{index}"), move || {
            if waiting.is_loading() {
                std::thread::park_timeout(PATIENCE);
            }
            drop(waiting);
            event_loop.run();
        })?);
    }
    Ok(handles)
}

/// Runs a loop, or handshakes, in a thread of its own. If it ends without being asked, the whole
/// server stops: connections and shards would wait for ever.
fn watched(
    server: &Arc<Server>,
    name: String,
    run: impl FnOnce() + Send + 'static,
) -> anyhow::Result<JoinHandle<()>> {
    let server = Arc::clone(server);
    let thread = std::thread::Builder::new().name(name);
    let run = move || {
        let alarm = OnEnd(server);
        run();
        drop(alarm);
    };
    thread.spawn(run).context("cannot start a thread")
}

/// Tells the main thread when a loop ends without being asked, by panic or by error.
struct OnEnd(Arc<Server>);

impl Drop for OnEnd {
    fn drop(&mut self) {
        if !self.0.stopping.load(Ordering::Acquire) {
            self.0.ask_to_stop(StopReason::Failure);
        }
    }
}

impl Running {
    /// Loads the data. Clients wait for it a moment, are refused then, and served at the end. If
    /// somebody asks the server to stop before all is loaded, returns why.
    pub(crate) fn load(&mut self) -> anyhow::Result<Option<StopReason>> {
        let stops = || self.stopped.try_recv().ok();
        let settings = self.server.config.current();
        persistence::claim_if_it_saves(&self.server)?;
        let stopped = match settings.append_only {
            false => {
                let folder = log::folder(&settings);
                if folder.join("manifest").exists() {
                    tracing::warn!(
                        "the log in {} is not loaded, since --appendonly is no: what it has beyond the snapshot is not \
                         there",
                        folder.display()
                    );
                }
                persistence::load(&self.server, &stops)?
            }
            true => match log::recover(&self.server, &stops)? {
                Recovered::Stopped(why) => Some(why),
                Recovered::Log(log) => {
                    self.log = Some(LogThreads::start(&self.server, log)?);
                    None
                }
            },
        };
        if stopped.is_none() {
            self.server.keyspace.gate().clear(checks::LOADING);
            // They look for what is due by now.
            self.begin_loops();
            self.server.nudge_all();
        }
        Ok(stopped)
    }

    /// Ends the loops' wait for the data.
    fn begin_loops(&self) {
        for handle in &self.loops {
            handle.thread().unpark();
        }
    }

    /// Returns where pages are served over HTTP, if they are.
    pub(crate) fn pages(&self) -> Option<std::net::SocketAddr> {
        self.pages.as_ref().map(|pages| pages.address)
    }

    /// Waits until somebody asks the server to stop.
    pub(crate) fn wait(&self) -> StopReason {
        self.stopped.recv().unwrap_or(StopReason::Failure)
    }

    /// Saves all data, if the server keeps it, and says what becomes of it. False if it could not
    /// be saved: then the server goes on.
    pub(crate) fn save(&self, why: StopReason) -> bool {
        let server = &self.server;
        if why == StopReason::Command {
            // SHUTDOWN has said what becomes of it.
            return true;
        }
        if server.log.is_on() && server.log.trouble() != Trouble::None {
            // What it does not have was acknowledged, unless replies wait for it.
            return false;
        }
        // What is in the log is kept, with or without a snapshot.
        let is_kept = server.log.is_on();
        if is_kept {
            tracing::info!(keys = server.keys(), "all data is in the log");
        } else if !server.config.current().save_points.are_any() {
            tracing::info!(
                keys = server.keys(),
                "all data is discarded, since there are no save points (--save)"
            );
        }
        if !server.config.current().save_points.are_any() {
            return true;
        }
        let mut seat = server.keyspace.seat();
        loop {
            let saved = server.keyspace.without_long_commands().and_then(|no_long| {
                let alone = no_long.alone(&mut seat)?;
                let time = server.clock.now();
                Ok(persistence::save_and_pause(server, &alone, time, is_kept))
            });
            match saved {
                Ok(saved) => return saved.is_ok() || is_kept,
                // A script runs, or a command that takes long.
                Err(_) => server.clock.sleep(WAIT),
            }
        }
    }

    /// Ends the loops. They finish their batches and send what is left.
    pub(crate) fn stop(self) {
        self.server.stopping.store(true, Ordering::Release);
        self.server.long_work.end();
        self.begin_loops();
        self.server.nudge_all();
        for waker in &self.wakers {
            if let Err(why) = waker.wake() {
                tracing::error!(%why, "cannot wake a thread for handshakes");
            }
        }
        if let Some(pages) = self.pages {
            pages.stop();
        }
        for handle in self.loops {
            if handle.join().is_err() {
                tracing::error!("an event loop, or a thread for handshakes, ended by a panic");
            }
        }
        // Loops that end send what they have held back until then.
        if let Some(log) = self.log {
            log.stop(&self.server);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpStream;

    use super::*;

    /// The thread that writes said so when it first ran: what came before was answered at once.
    #[test]
    fn with_always_replies_are_held_from_the_first_command_on() {
        let folder = std::env::temp_dir().join(format!("tidewheel-first-{}", std::process::id()));
        let settings = Settings {
            port: Port::Any,
            threads: 1,
            folder: folder.to_string_lossy().into_owned(),
            append_only: true,
            sync_policy: SyncPolicy::Always,
            ..Settings::default()
        };
        let mut running = start(settings, None, 0).expect("a server");
        running.load().expect("an empty folder");
        assert!(running.server.log.holds_replies());
        running.stop();
        std::fs::remove_dir_all(folder).expect("it was made");
    }

    /// Tools start a server, connect as soon as they can, and expect a reply that tells of no load.
    #[test]
    fn who_connects_at_once_waits_for_little_data() {
        // A machine may stop between the lines of a test, but not each time.
        let is_served = |_| {
            let settings = Settings {
                port: Port::Any,
                threads: 1,
                save_points: SavePoints::parse("").expect("none"),
                ..Settings::default()
            };
            let mut running = start(settings, None, 0).expect("a server");
            let port = running.server.listeners[0].port;
            let mut client = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
            client.write_all(b"PING\r\n").expect("sent");
            std::thread::sleep(PATIENCE / 10);
            running.load().expect("nothing to load");
            let mut reply = [0; 7];
            client.read_exact(&mut reply).expect("a reply");
            running.stop();
            &reply == b"+PONG\r\n"
        };
        assert!((0..10).any(is_served));
    }

    #[test]
    fn a_loop_that_ends_by_itself_stops_the_server_with_an_error() {
        let ends: [fn(); 2] = [|| (), || panic!("as a flaw of ours might")];
        for end in ends {
            let settings = Settings {
                port: Port::Any,
                threads: 2,
                save_points: SavePoints::parse("").expect("none"),
                ..Settings::default()
            };
            let mut running = start(settings, None, 0).expect("a server");
            let thread = watched(&running.server, "loop-2".to_owned(), end).expect("a thread");
            running.loops.push(thread);
            let patience = Duration::from_secs(60);
            assert_eq!(
                running.stopped.recv_timeout(patience),
                Ok(StopReason::Failure)
            );
            running.stop();
        }
    }
}
