//! The keyspace: its shards, and the state that all of them share.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize};

use parking_lot::Mutex;
use tidewheel_store::KeyHasher;
use tidewheel_time::{Histogram, Timeline};

use crate::access::Recency;
use crate::claims::{Claims, SHARDS_MAX};
use crate::events::{Event, NotifyFlags};
use crate::garbage::Garbage;
use crate::gate::{Gate, PAUSED, Seat};
use crate::hooks::Hooks;
use crate::key::Key;
use crate::reading::ShardReading;
use crate::rules::Rules;
use crate::shard::{NEVER, Shard, SharedState};
use crate::value::{LARGE, Object};

/// The most databases.
const DATABASES_MAX: usize = 1 << 16;

/// The fixed parameters of a keyspace.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Locks; a power of two up to 1024 (others are rounded up and capped).
    pub shards: usize,
    /// Databases that SELECT can choose, at least 1.
    pub databases: usize,
    /// The secret under which keys are hashed; take it from the system's entropy where keys are not
    /// to be trusted.
    pub seed: u128,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            shards: 64,
            databases: 16,
            seed: 0,
        }
    }
}

/// All data: shards, which hold databases, which hold keys.
///
/// Its methods are called in this order:
///
/// 1. [`new`](Self::new) makes it. [`rules`](Self::rules) and
///    [`set_notify_flags`](Self::set_notify_flags) configure it, then and later.
/// 2. Each thread takes a [`seat`](Self::seat) for itself, and passes it to most calls.
/// 3. For each batch of commands the thread calls [`Seat::enter`]. Before each command it calls
///    [`Seat::give_way`].
/// 4. [`resolve`](crate::resolve()) finds a command's row, [`begin`](Self::begin) runs it. If an
///    incremental command comes back, the thread calls [`go_on`](Self::go_on) until none comes
///    back; other commands may run in between. [`execute`](Self::execute) does both without a
///    pause.
/// 5. After the batch, if [`events_pending`](Self::events_pending), the thread calls
///    [`drain_events`](Self::drain_events), and then [`Seat::leave`].
/// 6. Between batches, [`next_deadline`](Self::next_deadline) says for each shard when
///    [`expire`](Self::expire) is due; [`Hooks::wake`] says that it became earlier.
///    [`shrink`](Self::shrink) is due while [`exceeds_limit`](Self::exceeds_limit), and
///    [`maintain`](Self::maintain) uses idle time.
/// 7. [`stats`](Self::stats) reads the counters at any time.
pub struct Keyspace {
    gate: Arc<Gate>,
    pub(crate) shards: Box<[Shard]>,
    pub(crate) hooks: Box<dyn Hooks>,
    pub(crate) timeline: Timeline,
    pub(crate) lateness_us: Histogram,
    pub(crate) lock_hold_ns: Histogram,
    pub(crate) shared: Arc<SharedState>,
    /// The shard at which the next search for a victim starts.
    pub(crate) eviction_turn: AtomicU64,
    /// The policy for which the shards say how urgent their candidates are.
    pub(crate) eviction_policy: AtomicU8,
    /// The number of the next ticket, and how many wait.
    pub(crate) next_ticket: AtomicU64,
    pub(crate) waiting: AtomicUsize,
    pub(crate) claims: Claims,
    /// Scripts that have run for so long that others are refused.
    pub(crate) long_scripts: AtomicUsize,
    /// The last reading of each shard's counters.
    pub(crate) readings: Mutex<Vec<ShardReading>>,
    rules: Rules,
    pub(crate) hasher: KeyHasher,
    databases: usize,
    shard_shift: u32,
}

impl std::fmt::Debug for Keyspace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keyspace")
            .field("shards", &self.shards.len())
            .field("databases", &self.databases)
            .field("rules", &self.rules)
            .finish_non_exhaustive()
    }
}

impl Keyspace {
    /// An empty keyspace.
    #[must_use]
    pub fn new(options: Options, hooks: Box<dyn Hooks>) -> Self {
        let shards = options.shards.clamp(1, SHARDS_MAX).next_power_of_two();
        let databases = options.databases.clamp(1, DATABASES_MAX);
        let hasher = KeyHasher::new(options.seed);
        let shared = Arc::new(SharedState::default());
        Self {
            gate: Arc::default(),
            shards: (0..shards)
                .map(|number| Shard::new(number, databases, &hasher, Arc::clone(&shared)))
                .collect(),
            shared,
            hooks,
            timeline: Timeline::new(),
            lateness_us: Histogram::default(),
            lock_hold_ns: Histogram::default(),
            eviction_turn: AtomicU64::new(0),
            eviction_policy: AtomicU8::default(),
            // Claims for transactions have the numbers of their shards.
            next_ticket: AtomicU64::new(SHARDS_MAX as u64),
            waiting: AtomicUsize::new(0),
            claims: Claims::default(),
            long_scripts: AtomicUsize::new(0),
            readings: Mutex::default(),
            rules: Rules::default(),
            hasher,
            databases,
            shard_shift: 32 - shards.trailing_zeros(),
        }
    }

    /// The settings that may change while the keyspace runs.
    #[must_use]
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Number of shards.
    #[must_use]
    pub fn shards(&self) -> usize {
        self.shards.len()
    }

    /// Number of databases.
    #[must_use]
    pub fn databases(&self) -> usize {
        self.databases
    }

    /// The gate. Every user of the keyspace looks at it between two commands.
    #[must_use]
    pub fn gate(&self) -> &Arc<Gate> {
        &self.gate
    }

    /// A seat for one more thread. All that reads or changes keys takes one as an argument.
    #[must_use]
    pub fn seat(&self) -> Seat {
        self.gate.seat()
    }

    /// Lower bound of a shard's earliest deadline, in clock ticks; `u64::MAX` if nothing is to be
    /// done: no deadlines, time stands still, or active expiry is off. Lock-free.
    #[must_use]
    pub fn next_deadline(&self, shard: usize) -> u64 {
        if !self.rules.active_expire() {
            return NEVER;
        }
        let deadline = self.shards[shard].next_deadline();
        if deadline == NEVER {
            NEVER
        } else {
            self.timeline.clock_of(deadline)
        }
    }

    /// The classes of keyspace events that are enabled.
    #[must_use]
    pub fn notify_flags(&self) -> NotifyFlags {
        self.shared.notify_flags()
    }

    /// Enables classes of keyspace events, and disables all others. Locks shard after shard.
    pub fn set_notify_flags(&self, flags: NotifyFlags) {
        self.shared.set_notify_flags(flags);
        for shard in 0..self.shards.len() {
            drop(self.act_on(shard, Box::new(|hold| hold.observe_events())));
        }
    }

    /// The most keys of which is known who has read them (`tracking-table-max-keys`); 0 is no
    /// limit. Those beyond a lower limit leave by [`bound_tracked`](Self::bound_tracked).
    pub fn set_tracking_keys_max(&self, keys: usize) {
        self.shared.tracking_keys_max.store(keys, Relaxed);
    }

    /// True if events wait to be drained, or another thread is draining them. If there are none
    /// after a command, all events that the command caused are published. Lock-free.
    #[must_use]
    #[inline]
    pub fn events_pending(&self) -> bool {
        self.shared.events.pending()
    }

    /// How many events there ever were. Lock-free.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.shared.events.queued()
    }

    /// Hands over all events that wait. Those of one key are in the order in which they happened,
    /// and so are those of one thread. No two threads may drain at once: the caller holds a lock of
    /// its own around the call. Locks no shard.
    pub fn drain_events(&self, publish: &mut dyn FnMut(Event)) {
        self.shared.events.drain(publish);
    }

    /// Switches the active side of expiry (DEBUG SET-ACTIVE-EXPIRE). Reads see dead keys as gone
    /// either way.
    pub fn set_active_expire(&self, enabled: bool) {
        self.rules.active_expire.store(enabled, Relaxed);
        if enabled {
            self.wake_all();
        }
    }

    /// True while a pause of the shell holds back all changes of data.
    pub(crate) fn is_paused(&self) -> bool {
        self.gate.bits() & PAUSED != 0
    }

    #[inline(always)]
    pub(crate) fn hash(&self, key: &[u8]) -> u64 {
        self.hasher.hash(key)
    }

    /// The top bits choose the shard; the store uses the low 32.
    #[inline]
    pub(crate) fn shard_of(&self, hash: u64) -> usize {
        ((hash >> 32) >> self.shard_shift) as usize
    }

    #[inline]
    pub(crate) fn key<'k>(&self, bytes: &'k [u8]) -> Key<'k> {
        self.hashed_key(self.hash(bytes), bytes)
    }

    #[inline]
    pub(crate) fn hashed_key<'k>(&self, hash: u64, bytes: &'k [u8]) -> Key<'k> {
        Key {
            bytes,
            hash,
            shard: self.shard_of(hash),
        }
    }

    pub(crate) fn database_index(&self, index: i64) -> Option<u32> {
        let index = u32::try_from(index).ok()?;
        ((index as usize) < self.databases).then_some(index)
    }

    /// The way in which accesses are recorded.
    #[inline]
    pub(crate) fn recency(&self) -> Recency {
        self.rules.recency()
    }

    /// Drops objects that left the keyspace. If one of them is large, the shell drops them, away
    /// from the loop. An object that others share is released at once: while it is shared it cannot
    /// be changed in place.
    pub(crate) fn discard(&self, objects: Vec<Object>) {
        let last: Vec<Object> = objects.into_iter().filter_map(Object::into_last).collect();
        if last.iter().any(|object| object.bytes() > LARGE) {
            self.hooks.reclaim(Garbage::objects(last));
        }
    }

    pub(crate) fn wake(&self, shard: usize) {
        let deadline = self.next_deadline(shard);
        if deadline != NEVER {
            self.hooks.wake(shard, deadline);
        }
    }

    pub(crate) fn wake_all(&self) {
        (0..self.shards.len()).for_each(|shard| self.wake(shard));
    }

    pub(crate) fn record_hold(&self, since_ns: u64) {
        let held = self.hooks.stopwatch_ns().saturating_sub(since_ns);
        self.lock_hold_ns.record(held, 1);
    }

    /// Adds the bytes that shards have not reported yet. So the total is exact, except for shards
    /// that a long command has. Locks shard after shard.
    pub(crate) fn flush_bytes(&self) {
        for mut hold in self.shards.iter().filter_map(Shard::lock_briefly) {
            hold.flush_bytes();
        }
    }

    /// Bytes held by stores and objects, to within 4 KiB a shard. Lock-free.
    #[must_use]
    pub fn used_memory(&self) -> u64 {
        self.shared.used_bytes.load(Relaxed).max(0) as u64
    }
}
