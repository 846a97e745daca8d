//! The tasks of many threads are in shards of keys. Each has a lock, and publishes its next
//! deadline.

use std::hash::{BuildHasher, Hash};

use equivalent::Equivalent;
use tidewheel_time::{NEVER, Soonest};

use crate::core::hash::hash_of;
use crate::core::tasks::{Due, Step, Tasks};
use crate::ground::panics::survive;
use crate::ground::reentry::ReentryGuard;
use crate::ground::sync::{Mutex, MutexGuard, lock};

/// Counts of tasks, kept under their shard's lock.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counts {
    /// Tasks that are there: of a total only.
    pub(crate) pending: usize,
    pub(crate) set: u64,
    pub(crate) moved: u64,
    pub(crate) removed: u64,
    pub(crate) fired: u64,
    pub(crate) missed: u64,
    /// Runs of periodic tasks that were lost because a copy panicked.
    pub(crate) uncopied: u64,
}

/// The state that the lock of a shard protects.
#[derive(Debug)]
pub(crate) struct State<K, V, S> {
    pub(crate) tasks: Tasks<K, V, S>,
    pub(crate) counts: Counts,
    /// No task is taken any more.
    pub(crate) closed: bool,
}

/// On a cache line of its own: `next` is read by the timing thread and written under other threads'
/// locks.
#[derive(Debug)]
#[repr(align(128))]
struct Shard<K, V, S> {
    /// The shard's next deadline.
    next: Soonest,
    state: Mutex<State<K, V, S>>,
}

/// All shards of one scheduler.
#[derive(Debug)]
pub(crate) struct Shards<K, V, S> {
    shards: Box<[Shard<K, V, S>]>,
    hasher: S,
    shift: u32,
}

/// A locked shard. [`publish`](Locked::publish) unlocks it.
pub(crate) struct Locked<'a, K, V, S> {
    pub(crate) state: MutexGuard<'a, State<K, V, S>>,
    next: &'a Soonest,
    _inside: ReentryGuard,
}

/// The message of the panic when the rule about re-entry is broken.
const FROM_WITHIN: &str =
    "a scheduler was called from within its own Hash, Eq, Clone, peek or move_or_set";

impl<K, V, S> Locked<'_, K, V, S> {
    /// Publishes the shard's next deadline if it has changed, and unlocks it. Returns the deadline
    /// if it has become earlier: a thread that sleeps longer must be woken.
    pub(crate) fn publish(self) -> Option<u64> {
        let next = self.state.tasks.next_deadline().unwrap_or(NEVER);
        self.next.publish(next).then_some(next)
    }
}

impl<K, V, S> Shards<K, V, S> {
    /// `count` is a power of two.
    pub(crate) fn new(count: usize, hasher: S) -> Self
    where
        S: Clone,
    {
        let shard = |_| Shard {
            next: Soonest::new(),
            state: Mutex::new(State {
                tasks: Tasks::with_hasher(hasher.clone()),
                counts: Counts::default(),
                closed: false,
            }),
        };
        Self {
            shards: (0..count).map(shard).collect(),
            shift: 64 - count.trailing_zeros(),
            hasher,
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.shards.len()
    }

    pub(crate) fn hold(&self, at: usize) -> Locked<'_, K, V, S> {
        let inside = ReentryGuard::enter(self, FROM_WITHIN);
        let shard = &self.shards[at];
        Locked {
            state: lock(&shard.state),
            next: &shard.next,
            _inside: inside,
        }
    }

    /// True if a shard may have something due.
    pub(crate) fn is_due(&self, at: usize, now: u64) -> bool {
        self.shards[at].next.get() <= now
    }

    /// The earliest published deadline of all shards.
    pub(crate) fn next(&self) -> u64 {
        let all = self.shards.iter().map(|shard| shard.next.get());
        all.min().unwrap_or(NEVER)
    }

    pub(crate) fn len(&self) -> usize {
        (0..self.count())
            .map(|at| self.hold(at).state.tasks.len())
            .sum()
    }

    pub(crate) fn counts(&self) -> Counts {
        let mut total = Counts::default();
        for at in 0..self.count() {
            let held = self.hold(at);
            let counts = held.state.counts;
            // In the same hold: a task that fires is in one of the two.
            total.pending += held.state.tasks.len();
            total.set += counts.set;
            total.moved += counts.moved;
            total.removed += counts.removed;
            total.fired += counts.fired;
            total.missed += counts.missed;
            total.uncopied += counts.uncopied;
        }
        total
    }

    pub(crate) fn forecast(&self, now: u64) -> [u64; 65] {
        let mut total = [0; 65];
        for at in 0..self.count() {
            let part = self.hold(at).state.tasks.forecast(now);
            for (sum, n) in total.iter_mut().zip(part) {
                *sum += n;
            }
        }
        total
    }
}

impl<K: Hash + Eq, V, S: BuildHasher> Shards<K, V, S> {
    /// Locks the shard of a key.
    pub(crate) fn of<Q: Hash + Equivalent<K> + ?Sized>(&self, key: &Q) -> Locked<'_, K, V, S> {
        // The top bits; the place within the shard has the low ones.
        let at = hash_of(&self.hasher, key)
            .checked_shr(self.shift)
            .unwrap_or(0);
        self.hold(at as usize)
    }

    /// Takes what is due out of one shard. A periodic task's copy may panic: that costs its run
    /// alone.
    pub(crate) fn advance(
        &self,
        at: usize,
        now: u64,
        budget: u32,
        batch: &mut Vec<Due<K, V>>,
    ) -> Step {
        let mut held = self.hold(at);
        let State { tasks, counts, .. } = &mut *held.state;
        let before = batch.len();
        let progress = survive(|| {
            tasks.advance(now, budget, |due| {
                counts.fired += 1;
                counts.missed += due.missed;
                batch.push(due);
            })
        });
        let progress = progress.unwrap_or_else(|| {
            counts.uncopied += 1;
            Step {
                fired: (batch.len() - before) as u32,
                backlog: true,
                ..Step::default()
            }
        });
        held.publish();
        progress
    }
}
