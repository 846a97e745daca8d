//! The queue of keyspace events, from the shards to the thread that publishes them.
//!
//! An event is queued under the lock of its key's shard, so events of one key stay in order. The
//! thread that runs the command queues it, so events of one client stay in order.
//!
//! An event counts as published when the thread that took it has handed it on, not when it was
//! taken. So a thread that finds no event pending after a batch of commands may answer them: all
//! their events are published.

use std::sync::atomic::{AtomicU64, Ordering};

use super::Event;
use crate::order::{Rank, Ranked};

/// The most events that wait. The shell drains the queue after every batch and every hold of
/// expiry, so only one command over very many keys can reach this.
const EVENTS_MAX: usize = 1 << 20;

/// The most bytes of keys that wait. One event always fits an empty queue.
const BYTES_MAX: usize = 64 << 20;

/// Events that wait to be published.
#[derive(Debug)]
pub(crate) struct EventQueue {
    /// Events that were ever queued, and how many of them were published.
    queued: AtomicU64,
    published: AtomicU64,
    waiting: Ranked<QueuedEvents>,
}

#[derive(Debug, Default)]
struct QueuedEvents {
    events: Vec<Event>,
    bytes: usize,
    dropped: u64,
}

impl Default for EventQueue {
    fn default() -> Self {
        Self {
            queued: AtomicU64::new(0),
            published: AtomicU64::new(0),
            waiting: Ranked::new(Rank::Events, QueuedEvents::default()),
        }
    }
}

impl EventQueue {
    /// Appends events; those beyond the caps are dropped and counted.
    pub(crate) fn push(&self, events: impl IntoIterator<Item = Event>) {
        let mut waiting = self.waiting.lock();
        let before = waiting.events.len();
        events.into_iter().for_each(|event| waiting.push(event));
        let added = waiting.events.len() - before;
        // Under the lock, so that no event is published before it is counted.
        self.queued.fetch_add(added as u64, Ordering::Release);
    }

    /// True if events wait, or another thread is just publishing some.
    #[inline]
    pub(crate) fn pending(&self) -> bool {
        let published = self.published.load(Ordering::Acquire);
        self.queued.load(Ordering::Relaxed) != published
    }

    /// How many events were ever queued.
    #[inline]
    pub(crate) fn queued(&self) -> u64 {
        self.queued.load(Ordering::Relaxed)
    }

    /// Publishes all that was queued before the call. The caller holds a lock of its own around it,
    /// so that no other thread publishes later events first.
    pub(crate) fn drain(&self, publish: &mut dyn FnMut(Event)) {
        let events = self.take();
        let _counted = PublishedOnDrop(&self.published, events.len() as u64);
        events.into_iter().for_each(publish);
    }

    fn take(&self) -> Vec<Event> {
        let mut waiting = self.waiting.lock();
        waiting.bytes = 0;
        std::mem::take(&mut waiting.events)
    }

    /// Events that wait, and how many were dropped.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let waiting = self.waiting.lock();
        (waiting.events.len() as u64, waiting.dropped)
    }

    pub(crate) fn reset_dropped(&self) {
        self.waiting.lock().dropped = 0;
    }
}

impl QueuedEvents {
    fn push(&mut self, event: Event) {
        let bytes = self.bytes + event.key.len();
        let full = bytes > BYTES_MAX && !self.events.is_empty();
        if full || self.events.len() >= EVENTS_MAX {
            self.dropped += 1;
        } else {
            self.bytes = bytes;
            self.events.push(event);
        }
    }
}

/// Counts events as published when it is dropped. After a panic too: no other thread can publish
/// them any more.
struct PublishedOnDrop<'a>(&'a AtomicU64, u64);

impl Drop for PublishedOnDrop<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(self.1, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::NotifyClass;

    fn event(len: usize) -> Event {
        Event {
            db: 0,
            class: NotifyClass::String,
            name: "set",
            key: vec![0; len].into(),
        }
    }

    #[test]
    fn waiting_events_are_bounded_in_number_and_bytes_and_dropped_ones_are_counted() {
        let queue = EventQueue::default();
        queue.push((0..EVENTS_MAX + 3).map(|_| event(1)));
        assert_eq!(queue.counts(), (EVENTS_MAX as u64, 3));
        queue.drain(&mut |_| {});
        queue.reset_dropped();
        queue.push([event(BYTES_MAX + 1), event(1)]);
        assert_eq!(queue.counts(), (1, 1));
        assert!(queue.pending());
        queue.drain(&mut |_| {});
        assert!(!queue.pending());
    }

    #[test]
    fn an_event_is_pending_until_it_is_published() {
        let queue = EventQueue::default();
        queue.push([event(1), event(2)]);
        queue.drain(&mut |_| assert!(queue.pending()));
        assert!(!queue.pending());
    }
}
