//! One shard: a lock over its databases, and what can be read without it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use parking_lot::Mutex;
use tidewheel_store::KeyHasher;

use crate::events::Event;
use crate::random::Random;
use crate::value::Entries;

/// No deadline.
pub(crate) const NEVER: u64 = u64::MAX;

/// The most events that wait in one shard; more are dropped and counted. The shell drains after every
/// batch and every budgeted pass, so only a single command over millions of keys can reach it.
pub(crate) const EVENTS_MAX: usize = 1 << 17;

/// Two cache lines, so that neighbours never share one (adjacent lines are fetched in pairs).
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Shard {
    pub(crate) state: Mutex<ShardState>,
    /// Lower bound of the earliest deadline, in engine ticks. Written under the lock.
    pub(crate) next_deadline: AtomicU64,
    /// Whether events wait. Written under the lock.
    pub(crate) has_events: AtomicBool,
}

/// What a shard's lock protects.
#[derive(Debug)]
pub(crate) struct ShardState {
    pub(crate) databases: Box<[Database]>,
    /// For each database a lower bound of its earliest deadline, in engine ticks. Apart from the databases,
    /// so that a pass over a shard reads two cache lines and not all databases.
    pub(crate) due: Box<[u64]>,
    /// What `next_deadline` was last set to.
    pub(crate) published: u64,
    /// Whether `published` became earlier since the lock was taken.
    pub(crate) wake: bool,
    pub(crate) events: Vec<Event>,
    /// Whether drainers were told of the events.
    pub(crate) events_announced: bool,
    pub(crate) counters: Counters,
    pub(crate) random: Random,
    /// Where the search for evictable keys with deadlines goes on.
    pub(crate) eviction_cursor: u32,
    /// Change in bytes that the keyspace's total does not know yet.
    pub(crate) unflushed_bytes: i64,
    /// Lock holds so far, for sampling.
    pub(crate) holds: u32,
}

/// One database's part in a shard.
#[derive(Debug)]
pub(crate) struct Database {
    pub(crate) entries: Entries,
    /// Bytes of objects that live outside the entries' blocks.
    pub(crate) object_bytes: usize,
    /// Bytes that were reported to the shard.
    pub(crate) counted_bytes: usize,
}

/// What happened in a shard since the last reset.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counters {
    pub(crate) hits: u64,
    pub(crate) misses: u64,
    pub(crate) expired: u64,
    pub(crate) evicted: u64,
    pub(crate) budget_hits: u64,
    pub(crate) events_dropped: u64,
}

impl Shard {
    pub(crate) fn new(databases: usize, seed: u64, hasher: &KeyHasher) -> Self {
        Self {
            state: Mutex::new(ShardState {
                databases: (0..databases).map(|_| Database::new(hasher)).collect(),
                due: vec![NEVER; databases].into(),
                published: NEVER,
                wake: false,
                events: Vec::new(),
                events_announced: false,
                counters: Counters::default(),
                random: Random::new(seed),
                eviction_cursor: 0,
                unflushed_bytes: 0,
                holds: 0,
            }),
            next_deadline: AtomicU64::new(NEVER),
            has_events: AtomicBool::new(false),
        }
    }

    /// Publishes the earliest of the databases' bounds. The caller holds the lock.
    pub(crate) fn publish_due(&self, state: &mut ShardState) {
        let earliest = state.due.iter().copied().min().unwrap_or(NEVER);
        if earliest != state.published {
            state.wake |= earliest < state.published;
            state.published = earliest;
            self.next_deadline.store(earliest, Relaxed);
        }
    }

    /// Lowers the published bound after an entry was given a deadline. The caller holds the lock.
    ///
    /// The bound is the wheel's, which may be before the deadline: a slot of many records asks to be
    /// split ahead of its start.
    #[inline]
    pub(crate) fn note_deadline(&self, state: &mut ShardState, db: u32) {
        let next = state.databases[db as usize].entries.next_deadline();
        let deadline = next.unwrap_or(NEVER);
        let due = &mut state.due[db as usize];
        *due = deadline.min(*due);
        if deadline < state.published {
            state.published = deadline;
            state.wake = true;
            self.next_deadline.store(deadline, Relaxed);
        }
    }
}

impl Database {
    pub(crate) fn new(hasher: &KeyHasher) -> Self {
        let entries = Entries::new(hasher.clone());
        Self {
            entries,
            object_bytes: 0,
            counted_bytes: 0,
        }
    }

    /// Bytes held by entries and objects.
    pub(crate) fn bytes(&self) -> usize {
        self.entries.bytes() + self.object_bytes
    }

    /// Reports a change in bytes since the last report.
    pub(crate) fn count_bytes(&mut self) -> i64 {
        let bytes = self.bytes();
        let change = bytes as i64 - self.counted_bytes as i64;
        self.counted_bytes = bytes;
        change
    }
}
