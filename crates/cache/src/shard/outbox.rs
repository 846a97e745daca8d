//! The events that a shard keeps under its lock until they are delivered.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::emptied::Emptied;
use crate::planted::{Fault, is_planted};
use crate::quiet::forget_quietly;
use crate::removal::{Removal, RemovalCause};

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
        match is_planted(Fault::EventOrder) {
            true => self.events.push_front(event),
            false => self.events.push_back(event),
        }
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
