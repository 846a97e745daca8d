//! Removal causes, and the outbox and garbage that a shard keeps under its lock.

use std::collections::VecDeque;
use std::future::Future;
use std::mem::needs_drop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use crate::core::emptied::Emptied;
use crate::core::negative::Forgotten;
use crate::quiet::forget_quietly;
use crate::stats::Counters;

/// Timer records that one hold of a shard's lock may touch. At most this many entries leave in one
/// hold.
pub(crate) const RECORDS_PER_HOLD: u32 = 16;

/// Why an entry is no longer in the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RemovalCause {
    /// Its time was over.
    Expired,
    /// Room was needed, or it was heavier than the whole capacity. (Entries that are over, and are
    /// only kept for [`stale_on_error`](crate::Builder::stale_on_error), may be evicted too.)
    Evicted,
    /// A new value took its place.
    Replaced,
    /// The caller removed it by its key.
    Removed,
    /// The caller invalidated it by a predicate or a tag: by a tag, also if its time was over, room
    /// was needed, or the cache was emptied or closed before it was removed.
    Invalidated,
    /// The caller emptied the cache. (Also for what was over and still kept for
    /// [`stale_on_error`](crate::Builder::stale_on_error).)
    Cleared,
    /// The cache was closed. (Also for the same.)
    Closed,
}

impl RemovalCause {
    /// Returns whether the cache itself removed the entry, and no caller did.
    #[must_use]
    pub fn is_automatic(self) -> bool {
        matches!(self, Self::Expired | Self::Evicted)
    }
}

/// An entry that has left the cache, as the listener gets it.
#[derive(Debug)]
#[non_exhaustive]
pub struct Removal<K, V> {
    /// Its key.
    pub key: K,
    /// Its value.
    pub value: V,
    /// Why.
    pub cause: RemovalCause,
    /// The time between its deadline and its removal, in whole milliseconds; for expired entries
    /// only.
    pub lateness: Option<Duration>,
}

/// The behaviour of a full listener queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum OnFull {
    /// No event is lost. A call that causes an event delivers the whole queue to the listener
    /// before it returns, or waits until another thread has done so. The driver removes nothing
    /// more until there is room; entries that are due stay invisible.
    ///
    /// A thread that others may be waiting for never waits here. A listener, a loader and a closure
    /// (of [`Cache::get_or_load`](crate::Cache::get_or_load),
    /// [`Cache::update`](crate::Cache::update) and similar calls) may write although the queue is
    /// full. The queue is delivered when they end. A closure of [`Cache::view`](crate::Cache::view)
    /// of another cache leaves the delivery to the next writer. So the queue exceeds its limit by
    /// at most two things: the events of the listener, loaders and closures that run now, and the
    /// events of one operation of each other thread.
    ///
    /// Nobody but a task can call an async listener, and no writer waits for a task. With such a
    /// listener only the driver waits. What callers cause while the queue is full (with 64 events
    /// more than its limit) is dropped and counted in
    /// [`Stats::events_dropped`](crate::Stats::events_dropped), except what leaves because the
    /// cache is closed.
    #[default]
    Wait,
    /// The event is dropped and counted. When a shard is emptied at once, its events are treated as
    /// one: all are queued, or all are dropped.
    Drop,
}

/// An async listener's answer to one event.
pub(crate) type ListenerFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The listener that the builder was given.
pub(crate) enum Listener<K, V> {
    Blocking(Box<dyn Fn(Removal<K, V>) + Send + Sync>),
    Async(Box<dyn Fn(Removal<K, V>) -> ListenerFuture + Send + Sync>),
}

impl<K, V> Listener<K, V> {
    pub(crate) fn is_async(&self) -> bool {
        matches!(self, Self::Async(_))
    }
}

/// Events of one shard, pushed under its lock, in the order in which things happened.
pub(crate) struct Outbox<K, V> {
    events: VecDeque<Event<K, V>>,
    /// True if an event was pushed since `take_news` was last called.
    news: bool,
}

pub(crate) enum Event<K, V> {
    One(Removal<K, V>),
    /// A whole shard, taken out in one step.
    All(Emptied<K, V>, RemovalCause),
}

impl<K, V> Outbox<K, V> {
    pub(crate) const fn new() -> Self {
        Self {
            events: VecDeque::new(),
            news: false,
        }
    }

    #[inline]
    pub(crate) fn push(&mut self, event: Event<K, V>) {
        self.events.push_back(event);
        self.news = true;
    }

    /// Returns whether an event was pushed since the last call, and forgets it. A hold that pushed
    /// none reports none: a driver that works while the listener is awaited would otherwise wake
    /// itself without end.
    #[inline]
    pub(crate) fn take_news(&mut self) -> bool {
        std::mem::take(&mut self.news)
    }

    /// Returns whether an event was pushed since the last [`take_news`](Self::take_news).
    #[inline]
    pub(crate) fn has_news(&self) -> bool {
        self.news
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// The labels of entries that have left, and whose tags are released when they are announced.
    pub(crate) fn each_label(&self, visit: &mut dyn FnMut(u64)) {
        for event in &self.events {
            if let Event::All(entries, _) = event {
                entries.each_label(visit);
            }
        }
    }

    /// Takes up to `limit` events.
    pub(crate) fn take(&mut self, limit: usize) -> VecDeque<Event<K, V>> {
        if self.events.len() <= limit {
            std::mem::take(&mut self.events)
        } else {
            self.events.drain(..limit).collect()
        }
    }
}

/// Events that no listener was told of are dropped one by one, so that a panic harms nothing else.
impl<K, V> Drop for Outbox<K, V> {
    fn drop(&mut self) {
        while let Some(event) = self.events.pop_front() {
            event.discard();
        }
    }
}

impl<K, V> Event<K, V> {
    pub(crate) fn discard(self) {
        match self {
            Self::One(Removal { key, value, .. }) => discard_pair(key, value),
            Self::All(mut entries, _) => {
                while let Some((key, value)) = entries.next() {
                    discard_pair(key, value);
                }
            }
        }
    }
}

/// Drops a key and a value of a cache that is gone with its counters.
pub(crate) fn discard_pair<K, V>(key: K, value: V) {
    for dropped in [
        catch_unwind(AssertUnwindSafe(|| drop(key))),
        catch_unwind(AssertUnwindSafe(|| drop(value))),
    ] {
        if let Err(panic) = dropped {
            forget_quietly(panic);
        }
    }
}

/// The keys and values to drop once the shard's lock is released. Most holds leave nothing: that
/// takes three tests.
pub(crate) struct Garbage<K, V> {
    one: Option<(K, V)>,
    /// The pairs after `one`.
    pairs: Vec<(K, V)>,
    /// Keys of loads that were superseded.
    pub(crate) keys: Vec<Arc<K>>,
    rare: Option<Box<Rare<K, V>>>,
}

/// Garbage that few holds leave.
pub(crate) struct Rare<K, V> {
    pub(crate) stores: Vec<Emptied<K, V>>,
    /// Forgotten errors and absences.
    negatives: Vec<Forgotten>,
}

impl<K, V> Garbage<K, V> {
    pub(crate) const fn new() -> Self {
        Self {
            one: None,
            pairs: Vec::new(),
            keys: Vec::new(),
            rare: None,
        }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        // What nobody drops is never kept.
        let has_pairs = needs_drop::<(K, V)>() && self.one.is_some();
        !has_pairs && self.keys.is_empty() && self.rare.is_none()
    }

    /// Everything, if there is anything.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<Self> {
        if self.is_empty() {
            return None;
        }
        Some(std::mem::replace(self, Self::new()))
    }

    /// The entries of a shard that was just emptied, to be dropped by the caller.
    pub(crate) fn take_store(&mut self) -> Option<Emptied<K, V>> {
        self.rare.as_mut()?.stores.pop()
    }

    /// Entries that were taken out with their stores.
    pub(crate) fn stores(&self) -> &[Emptied<K, V>] {
        self.rare.as_ref().map_or(&[], |rare| &rare.stores)
    }

    #[cold]
    pub(crate) fn rare(&mut self) -> &mut Rare<K, V> {
        self.rare.get_or_insert_with(|| {
            Box::new(Rare {
                stores: Vec::new(),
                negatives: Vec::new(),
            })
        })
    }

    /// An error or absence was forgotten.
    #[inline]
    pub(crate) fn forgotten(&mut self, negative: Option<Forgotten>) {
        if let Some(negative) = negative {
            self.rare().negatives.push(negative);
        }
    }

    /// Drops everything, outside all locks; the panics of what is dropped are counted and go no
    /// further.
    pub(crate) fn discard(self, counters: &Counters) {
        let Self {
            one,
            pairs,
            keys,
            rare,
        } = self;
        if let Some((key, value)) = one {
            counters.discard_pair(key, value);
        }
        if !pairs.is_empty() {
            counters.discard_pairs(pairs.into_iter());
        }
        for key in keys {
            counters.discard(key);
        }
        if let Some(rare) = rare {
            rare.discard(counters);
        }
    }

    /// The first pair needs no allocation; those after it need one for all that a hold of the
    /// driver brings. What nobody drops is not kept.
    #[inline]
    pub(crate) fn push(&mut self, key: K, value: V) {
        if !needs_drop::<(K, V)>() {
            return;
        }
        if self.one.is_none() {
            self.one = Some((key, value));
            return;
        }
        if self.pairs.len() == self.pairs.capacity() {
            self.make_room();
        }
        self.pairs.push((key, value));
    }

    #[cold]
    fn make_room(&mut self) {
        self.pairs.reserve(RECORDS_PER_HOLD as usize);
    }
}

impl<K, V> Rare<K, V> {
    #[cold]
    fn discard(self, counters: &Counters) {
        for entries in self.stores {
            entries.discard(counters);
        }
        for negative in self.negatives {
            negative.discard(counters);
        }
    }
}
