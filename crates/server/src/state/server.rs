//! The state that all event loops share.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::mpsc::Sender;

use parking_lot::Mutex;
use tidewheel_keyspace::{Event, Garbage, Hooks, Keyspace, Options, Served, Ticket, Waiter};

use crate::clients::checks;
use crate::clients::monitors::Monitors;
use crate::clients::pause::Pause;
use crate::clients::registry::Clients;
use crate::config::{ConfigFile, Live, Settings};
use crate::counters::latency::Latency;
use crate::counters::memory_marks::MemoryMarks;
use crate::counters::metrics::{ExpiryRate, LoopTally};
use crate::counters::slow_log::SlowLog;
use crate::counters::tls::TlsCounts;
use crate::loop_handle::LoopHandle;
use crate::loop_handle::inbox::{InboxItem, Invalidations, Target, encode_keys};
use crate::net::listener::ListenerFacts;
use crate::net::tls::terms::TlsTerms;
use crate::process::long_work::LongWork;
use crate::process::reclaim::Reclaimer;
use crate::pubsub::hub::Hub;
use crate::scripts::bodies::Bodies;
use crate::scripts::libraries::Libraries;
use crate::state::loading::Loading;
use crate::state::log::LogState;
use crate::state::long_scripts::LongScripts;
use crate::state::observer::Observe as _;
use crate::state::snapshots::Snapshots;
use crate::time::clock::Clock;
use crate::users::{Denials, Place};

/// The state that all loops share.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) keyspace: Keyspace,
    pub(crate) clock: Arc<Clock>,
    pub(crate) config: Live,
    pub(crate) hub: Hub,
    pub(crate) monitors: Monitors,
    pub(crate) clients: Clients,
    pub(crate) loops: Arc<[LoopHandle]>,
    pub(crate) pause: Pause,
    pub(crate) reclaimer: Reclaimer,
    pub(crate) long_work: Arc<LongWork>,
    pub(crate) scripts: Bodies,
    pub(crate) long_scripts: LongScripts,
    pub(crate) libraries: Libraries,
    /// Scripts may call DEBUG PROTOCOL and DEBUG SLEEP: for tests (`DEBUG
    /// SET-DISABLE-DENY-SCRIPTS`).
    pub(crate) scripts_debug: AtomicBool,
    pub(crate) run_id: String,
    /// Where it listens.
    pub(crate) listeners: Vec<ListenerFacts>,
    pub(crate) tls_terms: TlsTerms,
    /// Held by a command that reads or writes the file of users. It waits for nothing but the disk
    /// then.
    pub(crate) users_file: Mutex<()>,
    pub(crate) tls_counts: TlsCounts,
    /// Descriptors that are no connections.
    pub(crate) own_files: usize,
    /// The tick at which the server started.
    pub(crate) started: AtomicU64,
    /// Counters at the last CONFIG RESETSTAT.
    pub(crate) stats_base: Mutex<LoopTally>,
    pub(crate) memory_marks: MemoryMarks,
    pub(crate) expiry_rate: ExpiryRate,
    pub(crate) slow_log: SlowLog,
    pub(crate) denials: Denials,
    pub(crate) latency: Latency,
    pub(crate) snapshots: Snapshots,
    pub(crate) loading: Loading,
    pub(crate) log: LogState,
    /// Connections that were accepted and not yet closed.
    pub(crate) connected: AtomicUsize,
    pub(crate) stopping: AtomicBool,
    /// A signal has asked it to stop: the next one ends it at once.
    pub(crate) is_signalled: AtomicBool,
    stop: Sender<StopReason>,
    pub(crate) observer: crate::state::observer::Observer,
}

/// The reason for which the server stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StopReason {
    Signal,
    Command,
    /// A loop ended although nobody had asked it to.
    Failure,
}

/// The parts from which a server is built.
#[derive(Debug)]
pub(crate) struct ServerParts {
    pub(crate) settings: Settings,
    pub(crate) file: Option<ConfigFile>,
    /// Descriptors that are no connections.
    pub(crate) own_files: usize,
    /// Where it listens.
    pub(crate) listeners: Vec<ListenerFacts>,
    pub(crate) clock: Clock,
    pub(crate) loops: Arc<[LoopHandle]>,
    pub(crate) reclaimer: Reclaimer,
    pub(crate) stop: Sender<StopReason>,
    /// Seeds the keyspace's hashes and samples.
    pub(crate) seed: u128,
}

/// The server's answers to what the keyspace asks: waking loops, freeing memory, serving clients.
#[derive(Debug)]
struct KeyspaceHooks {
    clock: Arc<Clock>,
    loops: Arc<[LoopHandle]>,
    reclaimer: Reclaimer,
    long_work: Arc<LongWork>,
}

impl Hooks for KeyspaceHooks {
    fn wake(&self, shard: usize, deadline: u64) {
        self.loops[shard % self.loops.len()].deadline_lowered(deadline);
    }

    fn reclaim(&self, garbage: Garbage) {
        self.reclaimer.drop_later(Box::new(garbage));
    }

    fn served(&self, served: Served) {
        let (Served::Reply { ticket, .. } | Served::Retry(ticket)) = &served;
        self.loops[ticket.waiter.owner].post(InboxItem::Served(Box::new(served)));
    }

    fn run_long(&self, ticket: Arc<Ticket>) {
        self.long_work.push(ticket);
    }

    fn go_on(&self, waiter: Waiter) {
        let target = Target {
            id: waiter.id,
            slot: waiter.slot,
        };
        self.loops[waiter.owner].post(InboxItem::GoOn(target));
    }

    fn invalidate(&self, clients: &[Waiter], keys: Option<&[&[u8]]>) {
        let keys = encode_keys(keys);
        let mut by_loop: BTreeMap<usize, Vec<Target>> = BTreeMap::new();
        for client in clients {
            let target = Target {
                id: client.id,
                slot: client.slot,
            };
            by_loop.entry(client.owner).or_default().push(target);
        }
        for (owner, targets) in by_loop {
            self.loops[owner].invalidate(Invalidations {
                targets,
                keys: Arc::clone(&keys),
                redirected: false,
            });
        }
    }

    fn stopwatch_ns(&self) -> u64 {
        self.clock.monotonic_ns()
    }
}

impl Server {
    /// Publishes the keyspace events that have happened, by whatever thread.
    #[inline]
    pub(crate) fn publish_events(&self) {
        if self.keyspace.events_pending() {
            let observe = |event: &Event| self.observer.published(event);
            self.hub.flush(&self.keyspace, observe);
        }
    }

    /// Puts a server together. Its loops are for the caller to run.
    pub(crate) fn new(parts: ServerParts) -> Self {
        let clock = Arc::new(parts.clock);
        let long_work = Arc::<LongWork>::default();
        let shell = KeyspaceHooks {
            long_work: Arc::clone(&long_work),
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
        crate::config::engine::apply(&parts.settings, &keyspace);
        let log = LogState::default();
        log.follow(&parts.settings, keyspace.records(), &parts.loops);
        let snapshots = Snapshots::new(
            &parts.settings,
            clock.now().wall_ms() / 1000,
            clock.now().tick,
        );
        Self {
            started: AtomicU64::new(clock.now().tick),
            clock,
            config: Live::new(parts.settings, parts.file),
            hub: Hub::new(Arc::clone(&parts.loops)),
            monitors: Monitors::new(Arc::clone(&parts.loops), Arc::clone(keyspace.gate())),
            clients: Clients::default(),
            loops: parts.loops,
            pause: Pause::new(Arc::clone(keyspace.gate())),
            keyspace,
            reclaimer: parts.reclaimer,
            long_work,
            scripts: Bodies::default(),
            long_scripts: LongScripts::default(),
            libraries: Libraries::default(),
            scripts_debug: AtomicBool::new(false),
            run_id: run_id(),
            listeners: parts.listeners,
            tls_terms: TlsTerms::default(),
            users_file: Mutex::default(),
            tls_counts: TlsCounts::default(),
            own_files: parts.own_files,
            stats_base: Mutex::default(),
            memory_marks: MemoryMarks::default(),
            expiry_rate: ExpiryRate::default(),
            slow_log: SlowLog::default(),
            denials: Denials::default(),
            latency: Latency::default(),
            snapshots,
            loading: Loading::default(),
            log,
            connected: AtomicUsize::new(0),
            stopping: AtomicBool::new(false),
            is_signalled: AtomicBool::new(false),
            stop: parts.stop,
            observer: crate::state::observer::Observer::default(),
        }
    }

    /// Returns its TCP port: the one for TLS if there is no plain one, 0 if there is neither.
    pub(crate) fn port(&self) -> u16 {
        self.listeners.first().map_or(0, |listener| listener.port)
    }

    /// Asks the main thread to stop the server.
    pub(crate) fn ask_to_stop(&self, why: StopReason) {
        if self.stop.send(why).is_err() {
            tracing::debug!(?why, "the server is stopping already");
        }
    }

    /// A database among all.
    pub(crate) fn place(&self, db: u32) -> Place {
        let databases = self.keyspace.databases();
        Place { db, databases }
    }

    /// Keys of all databases, dead ones that are not yet removed included.
    pub(crate) fn keys(&self) -> u64 {
        let stats = self.keyspace.stats(self.clock.now());
        stats.databases.iter().map(|database| database.keys).sum()
    }

    /// Makes every loop look at shared state.
    pub(crate) fn nudge_all(&self) {
        for handle in self.loops.iter() {
            handle.nudge();
        }
    }

    /// Returns true if keys are removed when they expire. If not, reads still hide them.
    pub(crate) fn expires(&self) -> bool {
        !self.pause.is_on() && !self.is_loading() && self.keyspace.rules().active_expire()
    }

    /// Returns true while the snapshot is loaded: clients must not see a part of it.
    pub(crate) fn is_loading(&self) -> bool {
        self.keyspace.gate().bits() & checks::LOADING != 0
    }

    /// Wakes all loops after a pause has begun, ended or changed: none must sleep beyond its end.
    pub(crate) fn pause_changed(&self) {
        self.nudge_all();
    }

    /// Counters of all loops since the start.
    pub(crate) fn totals(&self) -> LoopTally {
        let mut sum = LoopTally::default();
        for handle in self.loops.iter() {
            handle.counters.add_to(&mut sum);
        }
        sum
    }
}

/// Bits that differ from start to start, from the seed that the standard library takes from the
/// system for its hash maps.
pub(crate) fn random() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one("tidewheel")
}

/// Returns forty hexadecimal digits that name this run.
fn run_id() -> String {
    let mut digits: String = (0..3).map(|_| format!("{:016x}", random())).collect();
    digits.truncate(40);
    digits
}
