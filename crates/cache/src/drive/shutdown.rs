//! Empties a cache, and ends it: stops its workers, empties its shards, and delivers the last
//! events. Entries that readers no longer see leave first, for their own cause.

use std::hash::{BuildHasher, Hash};
use std::mem::needs_drop;
use std::panic::{AssertUnwindSafe, catch_unwind};

use tidewheel_time::NEVER;

use crate::core::hooks::ListenerHook;
use crate::core::inner::{Inner, ShardCell};
use crate::core::reentrancy;
use crate::core::workers::{Shutdown, Workers};
use crate::drive::step::TurnBudget;
#[cfg(feature = "system")]
use crate::drive::worker_threads::Telling;
use crate::quiet::forget_quietly;
use crate::removal::RemovalCause;
use crate::shard::effects::{Emptied, RECORDS_PER_HOLD};
use crate::sync::Ordering::SeqCst;

impl<K, V, S> ListenerHook<K, V, S>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Send + Sync + 'static,
    S: BuildHasher + Send + Sync + 'static,
{
    pub(crate) fn new() -> Self {
        Self {
            deliver: Inner::tell,
            #[cfg(feature = "system")]
            drive: |inner, events, guard| Box::new(Telling::new(inner, events, guard)),
        }
    }
}

impl<K, V, S> Shutdown for Inner<K, V, S>
where
    K: Hash + Eq + Send + Sync,
    V: Send + Sync,
    S: BuildHasher + Send + Sync,
{
    fn workers(&self) -> &Workers {
        &self.workers
    }

    fn stop(&self) {
        self.closed.store(true, SeqCst);
        self.requests.stop();
        if let Some(hook) = &self.hooks.refresh {
            (hook.stop)(self);
        }
    }

    fn finish(&self) {
        let finished = catch_unwind(AssertUnwindSafe(|| {
            self.close_shards();
            self.deliver(false);
        }));
        if let Err(panic) = finished {
            forget_quietly(panic);
        }
    }
}

impl<K, V, S> Inner<K, V, S>
where
    K: Hash + Eq + Send + Sync,
    V: Send + Sync,
    S: BuildHasher + Send + Sync,
{
    /// Ends the cache and waits for that, except for what may be waiting for this thread.
    pub(crate) fn close(&self) {
        let first = !self.closed.swap(true, SeqCst);
        self.stop();
        if reentrancy::is_free() {
            self.workers.wait_for_threads();
        }
        if first {
            self.close_shards();
            self.deliver(true);
        }
    }

    /// As [`close`](Self::close), as a future.
    pub(crate) async fn close_async(&self) {
        self.stop();
        let mut threads = self.workers.place();
        std::future::poll_fn(|context| self.workers.poll_threads(&mut threads, context)).await;
        drop(threads);
        self.close_shards();
        self.tell_all(TurnBudget::SHARED.events).await;
    }
}

/// A cache is being emptied for good, a few entries at a time: other caches of the same driver
/// wait meanwhile.
pub(crate) struct Emptying<K, V> {
    shard: usize,
    stage: Stage<K, V>,
}

/// The treatment of a shard.
enum Stage<K, V> {
    /// Entries that are due leave, for their own cause.
    Expire,
    /// So does what was invalidated: the slots before this one.
    Sweep(u32),
    /// All other entries have left, and are dropped.
    Drop(Emptied<K, V>),
}

impl<K: Hash + Eq, V> Emptying<K, V> {
    pub(crate) fn new() -> Self {
        Self {
            shard: 0,
            stage: Stage::Expire,
        }
    }

    /// Removes the entries of one hold of a shard's lock, or drops up to `drops` of them; returns
    /// whether there are more.
    pub(crate) fn turn<S: BuildHasher>(&mut self, inner: &Inner<K, V, S>, drops: usize) -> bool {
        let Some(cell) = inner.shards.get(self.shard) else {
            inner.requests.emptied();
            return false;
        };
        match &mut self.stage {
            Stage::Expire if inner.remove_due_of(cell) => {}
            Stage::Expire => self.stage = Stage::Sweep(u32::MAX),
            Stage::Sweep(before) => match inner.sweep_some(cell, *before) {
                Some(next) => *before = next,
                None => match inner.close_shard(cell) {
                    Some(entries) => self.stage = Stage::Drop(entries),
                    None => self.next_shard(),
                },
            },
            Stage::Drop(entries) => match entries.next() {
                Some((key, value)) => {
                    inner.counters.discard_pair(key, value);
                    let some = std::iter::from_fn(|| entries.next());
                    inner.counters.discard_pairs(some.take(drops - 1));
                }
                None => self.next_shard(),
            },
        }
        true
    }

    fn next_shard(&mut self) {
        self.shard += 1;
        self.stage = Stage::Expire;
    }
}

impl<K: Hash + Eq, V, S: BuildHasher> Inner<K, V, S> {
    /// Empties the cache.
    pub(crate) fn clear(&self) {
        for cell in &self.shards {
            // What readers do not see any more has left before the rest, for a cause of its own.
            while self.remove_due_of(cell) {}
            let mut before = Some(u32::MAX);
            while let Some(at) = before {
                before = self.sweep_some(cell, at);
            }
            self.change(cell, |shard, _| {
                shard.clear(RemovalCause::Cleared);
            });
        }
    }

    /// Empties the cache for good: what comes later is dropped.
    pub(crate) fn close_shards(&self) {
        let mut emptying = Emptying::new();
        while emptying.turn(self, usize::MAX) {}
    }

    /// Empties a shard for good; its entries, if no listener is to get them and somebody drops
    /// them.
    fn close_shard(&self, cell: &ShardCell<K, V, S>) -> Option<Emptied<K, V>> {
        let store = self.hold(cell, |shard| {
            shard.closed = true;
            shard.clear(RemovalCause::Closed);
            shard.effects.garbage.take_store()
        })?;
        self.release_tags(&*store);
        needs_drop::<(K, V)>().then_some(store)
    }

    /// Removes some of what is due in one short hold; whether there is more.
    fn remove_due_of(&self, cell: &ShardCell<K, V, S>) -> bool {
        let has_deadlines = cell.next_deadline.get() != NEVER;
        has_deadlines
            && self
                .hold_now(cell, |shard, now| {
                    shard.expire(now.tick(), RECORDS_PER_HOLD)
                })
                .backlog
    }
}
