//! The state that all event loops share, and starting and stopping them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use anyhow::Context as _;
use mio::{Poll, Waker};
use parking_lot::Mutex;
use tidewheel_keyspace::{Garbage, Hooks, Keyspace, Options};

use crate::clients::Clients;
use crate::clock::Clock;
use crate::config::{Live, Settings};
use crate::event_loop::{EventLoop, WAKER};
use crate::hub::Hub;
use crate::listener;
use crate::loop_handle::LoopHandle;
use crate::metrics::{ExpiryRate, Tally};
use crate::pause::Pause;
use crate::reclaim::Reclaimer;

/// What all loops see.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) keyspace: Keyspace,
    pub(crate) clock: Arc<Clock>,
    pub(crate) config: Live,
    pub(crate) hub: Hub,
    pub(crate) clients: Clients,
    pub(crate) loops: Arc<[LoopHandle]>,
    pub(crate) pause: Pause,
    pub(crate) reclaimer: Reclaimer,
    pub(crate) run_id: String,
    pub(crate) port: u16,
    /// The tick at which the server started.
    pub(crate) started: u64,
    /// Counters at the last CONFIG RESETSTAT.
    pub(crate) stats_base: Mutex<Tally>,
    /// The most memory ever seen in use, by whoever asked.
    pub(crate) peak_memory: AtomicU64,
    pub(crate) expiry_rate: ExpiryRate,
    /// Connections that were accepted and not yet closed.
    pub(crate) connected: AtomicUsize,
    pub(crate) stopping: AtomicBool,
    stop: Sender<Stop>,
    #[cfg(test)]
    pub(crate) witness: crate::simulation::Witness,
}

/// Why the server should stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    Signal,
    Command,
    /// A loop ended although nobody asked it to.
    Failure,
}

/// What a server is made of.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) settings: Settings,
    pub(crate) file: Option<std::path::PathBuf>,
    pub(crate) port: u16,
    pub(crate) clock: Clock,
    pub(crate) loops: Arc<[LoopHandle]>,
    pub(crate) reclaimer: Reclaimer,
    pub(crate) stop: Sender<Stop>,
    /// Seeds the keyspace's hashes and samples.
    pub(crate) seed: u128,
}

/// A running server.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) server: Arc<Server>,
    /// Where it listens.
    pub(crate) addresses: Vec<std::net::SocketAddr>,
    loops: Vec<JoinHandle<()>>,
    stopped: Receiver<Stop>,
}

/// What the keyspace asks of its shell.
#[derive(Debug)]
struct Shell {
    clock: Arc<Clock>,
    loops: Arc<[LoopHandle]>,
    reclaimer: Reclaimer,
}

impl Hooks for Shell {
    fn wake(&self, shard: usize, deadline: u64) {
        self.loops[shard % self.loops.len()].deadline_lowered(deadline);
    }

    fn reclaim(&self, garbage: Garbage) {
        self.reclaimer.drop_later(Box::new(garbage));
    }

    fn stopwatch_ns(&self) -> u64 {
        self.clock.monotonic_ns()
    }
}

/// Opens the sockets and starts the loops.
pub(crate) fn start(
    settings: Settings,
    file: Option<std::path::PathBuf>,
) -> anyhow::Result<Running> {
    let listeners = listener::open(&settings)?;
    let addresses = listeners
        .iter()
        .map(mio::net::TcpListener::local_addr)
        .collect::<Result<Vec<_>, _>>()
        .context("cannot ask where the server listens")?;
    let threads = match settings.threads {
        0 => std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        threads => threads,
    };
    let polls: Vec<Poll> = (0..threads)
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
    let parts = Parts {
        settings,
        file,
        port: addresses.first().map_or(0, std::net::SocketAddr::port),
        clock: Clock::start(),
        loops,
        reclaimer,
        stop,
        seed: u128::from(random()) << 64 | u128::from(random()),
    };
    let server = Arc::new(Server::new(parts));
    let loops = spawn(&server, polls, listeners)?;
    Ok(Running {
        server,
        addresses,
        loops,
        stopped,
    })
}

/// Starts a thread for each loop.
fn spawn(
    server: &Arc<Server>,
    polls: Vec<Poll>,
    listeners: Vec<mio::net::TcpListener>,
) -> anyhow::Result<Vec<JoinHandle<()>>> {
    let mut listeners = Some(listeners);
    let mut handles = Vec::new();
    for (index, poll) in polls.into_iter().enumerate() {
        // The first loop accepts for all: the kernel's own sharing gives few connections unevenly.
        let listeners = listeners.take().unwrap_or_default();
        let event_loop = EventLoop::new(Arc::clone(server), index, poll, listeners)
            .context("cannot set an event loop up")?;
        handles.push(watched(server, index, || event_loop.run())?);
    }
    Ok(handles)
}

/// Runs a loop in a thread of its own. Should it end without being asked, the whole server stops: its
/// connections and shards would wait for it for ever.
fn watched(
    server: &Arc<Server>,
    index: usize,
    run: impl FnOnce() + Send + 'static,
) -> anyhow::Result<JoinHandle<()>> {
    let server = Arc::clone(server);
    let thread = std::thread::Builder::new().name(format!("loop-{index}"));
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
            self.0.ask_to_stop(Stop::Failure);
        }
    }
}

impl Running {
    /// Waits until somebody asks the server to stop.
    pub(crate) fn wait(&self) -> Stop {
        self.stopped.recv().unwrap_or(Stop::Failure)
    }

    /// Has the loops finish their batches, send what is left and end.
    pub(crate) fn stop(self) {
        self.server.stopping.store(true, Ordering::Release);
        self.server.nudge_all();
        for handle in self.loops {
            if handle.join().is_err() {
                tracing::error!("an event loop ended by a panic");
            }
        }
    }
}

impl Server {
    /// Puts a server together. Its loops are for the caller to run.
    pub(crate) fn new(parts: Parts) -> Self {
        let clock = Arc::new(parts.clock);
        let shell = Shell {
            clock: Arc::clone(&clock),
            loops: Arc::clone(&parts.loops),
            reclaimer: parts.reclaimer.clone(),
        };
        let options = Options {
            shards: parts.settings.shards,
            databases: parts.settings.databases,
            seed: parts.seed,
        };
        let keyspace = Keyspace::new(options, Box::new(shell));
        crate::engine::apply(&parts.settings, &keyspace);
        Self {
            started: clock.now().tick,
            clock,
            config: Live::new(parts.settings, parts.file),
            hub: Hub::new(Arc::clone(&parts.loops)),
            clients: Clients::default(),
            loops: parts.loops,
            pause: Pause::new(Arc::clone(keyspace.gate())),
            keyspace,
            reclaimer: parts.reclaimer,
            run_id: run_id(),
            port: parts.port,
            stats_base: Mutex::default(),
            peak_memory: AtomicU64::new(0),
            expiry_rate: ExpiryRate::default(),
            connected: AtomicUsize::new(0),
            stopping: AtomicBool::new(false),
            stop: parts.stop,
            #[cfg(test)]
            witness: crate::simulation::Witness::default(),
        }
    }

    /// Asks the main thread to stop the server.
    pub(crate) fn ask_to_stop(&self, why: Stop) {
        if self.stop.send(why).is_err() {
            tracing::debug!(?why, "the server is stopping already");
        }
    }

    /// Makes every loop look at shared state.
    pub(crate) fn nudge_all(&self) {
        for handle in self.loops.iter() {
            handle.nudge();
        }
    }

    /// Whether keys are removed when they expire. If not, reads still hide them.
    pub(crate) fn expires(&self) -> bool {
        !self.pause.is_on() && self.keyspace.settings().active_expire()
    }

    /// A pause has begun, ended or changed: loops must not sleep beyond its end.
    pub(crate) fn pause_changed(&self) {
        self.nudge_all();
    }

    /// Counters of all loops since the start.
    pub(crate) fn totals(&self) -> Tally {
        let mut sum = Tally::default();
        for handle in self.loops.iter() {
            handle.counters.add_to(&mut sum);
        }
        sum
    }
}

/// Bits that differ from start to start, from the seed that the standard library takes from the
/// system for its hash maps.
fn random() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one("tidewheel")
}

/// Forty hexadecimal digits that name this run.
fn run_id() -> String {
    let mut digits: String = (0..3).map(|_| format!("{:016x}", random())).collect();
    digits.truncate(40);
    digits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_that_ends_by_itself_stops_the_server_with_an_error() {
        let ends: [fn(); 2] = [|| (), || panic!("as a flaw of ours might")];
        for end in ends {
            let settings = Settings {
                port: 0,
                threads: 2,
                ..Settings::default()
            };
            let mut running = start(settings, None).expect("a server");
            let thread = watched(&running.server, 2, end).expect("a thread");
            running.loops.push(thread);
            let patience = std::time::Duration::from_secs(60);
            assert_eq!(running.stopped.recv_timeout(patience), Ok(Stop::Failure));
            running.stop();
        }
    }
}
