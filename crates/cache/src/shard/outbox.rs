//! The events that a shard keeps under its lock until they are delivered.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::emptied::Emptied;
use crate::planted::{Fault, is_planted};
use crate::quiet::forget_quietly;
use crate::removal::{Removal, RemovalCause};

/// Events in the order in which things happened.
///
/// Those that no listener was told of are dropped one by one, so that a panic harms nothing else.
pub(crate) struct Events<K, V>(VecDeque<Event<K, V>>);

pub(crate) enum Event<K, V> {
    One(Removal<K, V>),
    /// A whole shard, taken out in one step. Its entries leave one by one.
    All(Emptied<K, V>, RemovalCause),
}

impl<K, V> Events<K, V> {
    pub(crate) const fn new() -> Self {
        Self(VecDeque::new())
    }

    /// Takes the next removal.
    pub(crate) fn next(&mut self) -> Option<Removal<K, V>> {
        loop {
            if let Event::All(entries, cause) = self.0.front_mut()? {
                if let Some((key, value)) = entries.next() {
                    return Some(Removal {
                        key,
                        value,
                        cause: *cause,
                        lateness: None,
                    });
                }
            }
            if let Event::One(removal) = self.0.pop_front()? {
                return Some(removal);
            }
        }
    }

    /// Shards that were taken out whole.
    pub(crate) fn shards(&self) -> impl Iterator<Item = &Emptied<K, V>> {
        self.0.iter().filter_map(|event| match event {
            Event::One(_) => None,
            Event::All(entries, _) => Some(entries),
        })
    }
}

impl<K, V> Drop for Events<K, V> {
    fn drop(&mut self) {
        while let Some(Removal { key, value, .. }) = self.next() {
            discard_pair(key, value);
        }
    }
}

/// Events of one shard, pushed under its lock.
pub(crate) struct Outbox<K, V> {
    events: Events<K, V>,
    /// True if an event was pushed since `take_news` was last called.
    news: bool,
}

impl<K, V> Outbox<K, V> {
    pub(crate) const fn new() -> Self {
        Self {
            events: Events::new(),
            news: false,
        }
    }

    #[inline]
    pub(crate) fn push(&mut self, event: Event<K, V>) {
        let Events(events) = &mut self.events;
        match is_planted(Fault::EventOrder) {
            true => events.push_front(event),
            false => events.push_back(event),
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

    #[inline]
    pub(crate) fn has_news(&self) -> bool {
        self.news
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.events.0.is_empty()
    }

    /// Shards that have left whole, and whose tags are released when they are announced.
    pub(crate) fn shards(&self) -> impl Iterator<Item = &Emptied<K, V>> {
        self.events.shards()
    }

    /// Takes up to `limit` events.
    pub(crate) fn take(&mut self, limit: usize) -> Events<K, V> {
        let Events(events) = &mut self.events;
        if events.len() <= limit {
            Events(std::mem::take(events))
        } else {
            Events(events.drain(..limit).collect())
        }
    }
}

/// Drops a key and a value of a cache that is gone with its counters.
fn discard_pair<K, V>(key: K, value: V) {
    for dropped in [
        catch_unwind(AssertUnwindSafe(|| drop(key))),
        catch_unwind(AssertUnwindSafe(|| drop(value))),
    ] {
        if let Err(panic) = dropped {
            forget_quietly(panic);
        }
    }
}
