//! A batch of events that have left the shards and that the listener has not seen.

use std::collections::VecDeque;

use super::listener::ListenerFuture;
use crate::removal::{Removal, RemovalCause};
use crate::shard::emptied::Emptied;
use crate::shard::outbox::{Event, discard_pair};

/// Events in order. It passes from one who delivers to the next.
pub(crate) struct EventBatch<K, V> {
    events: VecDeque<Event<K, V>>,
    /// The rest of a whole shard's entries. They come before `events`.
    shard: Option<(Emptied<K, V>, RemovalCause)>,
    /// The async listener's answer to the event before all these, while it is awaited.
    pub(crate) answer: Option<ListenerFuture>,
}

impl<K, V> EventBatch<K, V> {
    pub(crate) const fn new() -> Self {
        Self {
            events: VecDeque::new(),
            shard: None,
            answer: None,
        }
    }

    /// The next event.
    pub(crate) fn next(&mut self) -> Option<Removal<K, V>> {
        loop {
            if let Some(removal) = self.next_of_shard() {
                return Some(removal);
            }
            match self.events.pop_front()? {
                Event::One(removal) => return Some(removal),
                Event::All(entries, cause) => self.shard = Some((entries, cause)),
            }
        }
    }

    fn next_of_shard(&mut self) -> Option<Removal<K, V>> {
        let (entries, cause) = self.shard.as_mut()?;
        let cause = *cause;
        let Some((key, value)) = entries.next() else {
            self.shard = None;
            return None;
        };
        Some(Removal {
            key,
            value,
            cause,
            lateness: None,
        })
    }

    /// Takes more events, when there are none left.
    pub(crate) fn take(&mut self, events: VecDeque<Event<K, V>>) {
        debug_assert!(self.events.is_empty(), "they come after the others");
        self.events = events;
    }
}

impl<K, V> Drop for EventBatch<K, V> {
    fn drop(&mut self) {
        while let Some(Removal { key, value, .. }) = self.next() {
            discard_pair(key, value);
        }
    }
}
