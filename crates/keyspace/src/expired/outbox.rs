//! The queue of events for streams of expired keys, from the shards of the keys to those of the
//! streams.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use super::{
    APPENDED_BYTES_MAX, APPENDED_MAX, ExpiredStream, ExpiredStreamStats, ExpiredStreamTrouble,
    QUEUED_BYTES_MAX, QUEUED_MAX, WAITING_BYTES_MAX, WAITING_MAX,
};
use crate::order::{Rank, Ranked};

/// A key that has expired.
#[derive(Debug)]
pub(crate) struct ExpiredEvent {
    /// Where it goes.
    pub(crate) stream: Arc<ExpiredStream>,
    pub(crate) key: Box<[u8]>,
    /// In engine ticks.
    pub(crate) deadline: u64,
    /// The tick at which it was removed.
    pub(crate) fired: u64,
    pub(crate) tag: u8,
    /// The string, if it is wanted.
    pub(crate) value: Option<Box<[u8]>>,
}

impl ExpiredEvent {
    fn bytes(&self) -> usize {
        size_of::<Self>() + self.key.len() + self.value.as_ref().map_or(0, |value| value.len())
    }
}

/// Events that wait to be appended.
#[derive(Debug)]
pub(crate) struct Outbox {
    /// Events and bytes that wait, for those who have not locked it.
    waiting: AtomicUsize,
    waiting_bytes: AtomicUsize,
    /// True while records are replayed: no event is appended, since a record may come that has done
    /// so.
    is_held: AtomicBool,
    state: Ranked<OutboxState>,
}

#[derive(Debug, Default)]
struct OutboxState {
    /// The events of each database, in the order in which they have happened; none is empty.
    queues: BTreeMap<u32, VecDeque<ExpiredEvent>>,
    /// The database whose turn it is to be appended.
    turn: u32,
    stats: ExpiredStreamStats,
    /// What the log has not said yet.
    troubles: Vec<ExpiredStreamTrouble>,
    /// It has said that events fail, and that they are dropped.
    told_failed: bool,
    told_dropped: bool,
}

impl Default for Outbox {
    fn default() -> Self {
        Self {
            waiting: AtomicUsize::new(0),
            waiting_bytes: AtomicUsize::new(0),
            is_held: AtomicBool::new(false),
            state: Ranked::new(Rank::Expired, OutboxState::default()),
        }
    }
}

impl Outbox {
    /// True if events wait that may be appended. Lock-free.
    #[inline]
    pub(crate) fn pending(&self) -> bool {
        self.waiting.load(Relaxed) > 0 && !self.is_held.load(Relaxed)
    }

    /// True if passes of expiry wait, since so many events do, or since all are held. Lock-free.
    pub(crate) fn is_full(&self) -> bool {
        self.waiting.load(Relaxed) >= WAITING_MAX
            || self.waiting_bytes.load(Relaxed) >= WAITING_BYTES_MAX
            || self.is_held.load(Relaxed)
    }

    /// Holds all events back, or no longer.
    pub(crate) fn hold(&self, is_held: bool) {
        self.is_held.store(is_held, Relaxed);
    }

    /// Takes an event of a database out: a record has appended it.
    pub(crate) fn settle(&self, db: u32, is_it: impl Fn(&ExpiredEvent) -> bool) {
        let mut state = self.state.lock();
        let state = &mut *state;
        let Some(queue) = state.queues.get_mut(&db) else {
            return;
        };
        let place = queue.iter().rposition(is_it);
        if let Some(event) = place.and_then(|place| queue.remove(place)) {
            state.stats.queued -= 1;
            state.stats.queued_bytes -= event.bytes();
        }
        if queue.is_empty() {
            state.queues.remove(&db);
        }
        self.publish(state);
    }

    /// Queues events of one database. The shard of their keys is locked.
    pub(crate) fn push(&self, db: u32, events: impl IntoIterator<Item = ExpiredEvent>) {
        let mut state = self.state.lock();
        let state = &mut *state;
        let queue = state.queues.entry(db).or_default();
        for event in events {
            let bytes = state.stats.queued_bytes + event.bytes();
            if state.stats.queued >= QUEUED_MAX || bytes > QUEUED_BYTES_MAX {
                state.stats.dropped += 1;
                if !std::mem::replace(&mut state.told_dropped, true) {
                    state.troubles.push(ExpiredStreamTrouble::Dropped);
                }
                continue;
            }
            state.stats.queued += 1;
            state.stats.queued_bytes = bytes;
            queue.push_back(event);
        }
        if queue.is_empty() {
            state.queues.remove(&db);
        }
        self.publish(state);
    }

    fn publish(&self, state: &OutboxState) {
        self.waiting.store(state.stats.queued, Relaxed);
        self.waiting_bytes.store(state.stats.queued_bytes, Relaxed);
    }

    /// The database whose events are appended next, and the stream of the first of them.
    pub(crate) fn next(&self) -> Option<(u32, Arc<ExpiredStream>)> {
        let mut state = self.state.lock();
        let from = state.turn;
        let mut queues = state.queues.range(from..).chain(state.queues.range(..from));
        let (db, queue) = queues.next()?;
        let next = (*db, Arc::clone(&queue.front()?.stream));
        // Another database comes next, also if this stream is blocked.
        state.turn = next.0.wrapping_add(1);
        Some(next)
    }

    /// Takes the first events of a database, as many as fit one hold, if they are for that stream.
    /// The stream's shard is locked.
    pub(crate) fn take(&self, db: u32, stream: &Arc<ExpiredStream>) -> Vec<ExpiredEvent> {
        let mut state = self.state.lock();
        let state = &mut *state;
        let Some(queue) = state.queues.get_mut(&db) else {
            return Vec::new();
        };
        let (mut count, mut bytes) = (0, 0);
        for event in queue.iter().take(APPENDED_MAX) {
            let is_full = count > 0 && bytes + event.bytes() > APPENDED_BYTES_MAX;
            if is_full || !Arc::ptr_eq(&event.stream, stream) {
                break;
            }
            count += 1;
            bytes += event.bytes();
        }
        let taken: Vec<_> = queue.drain(..count).collect();
        if queue.is_empty() {
            state.queues.remove(&db);
        }
        state.stats.queued -= count;
        state.stats.queued_bytes -= bytes;
        self.publish(state);
        taken
    }

    /// Events of a database leave with its keys.
    pub(crate) fn flush(&self, databases: Range<u32>) {
        let mut state = self.state.lock();
        let state = &mut *state;
        for (_, queue) in state.queues.extract_if(databases, |_, _| true) {
            state.stats.flushed += queue.len() as u64;
            state.stats.queued -= queue.len();
            state.stats.queued_bytes -= queue.iter().map(ExpiredEvent::bytes).sum::<usize>();
        }
        self.publish(state);
    }

    /// Events of two databases go with their keys.
    pub(crate) fn swap(&self, first: u32, second: u32) {
        let mut state = self.state.lock();
        let queues = [first, second].map(|db| state.queues.remove(&db));
        for (db, queue) in [second, first].into_iter().zip(queues) {
            state
                .queues
                .extend(queue.into_iter().map(|queue| (db, queue)));
        }
    }

    /// Counts entries that were appended, and old ones that have left for them.
    pub(crate) fn count(&self, appended: u64, trimmed: u64) {
        let mut state = self.state.lock();
        state.stats.appended += appended;
        state.stats.trimmed += trimmed;
        state.told_failed &= appended == 0;
    }

    /// Counts events that could not be appended.
    pub(crate) fn count_failed(&self, stream: &ExpiredStream, failed: u64) {
        let mut state = self.state.lock();
        state.stats.failed += failed;
        if !std::mem::replace(&mut state.told_failed, true) {
            let trouble = ExpiredStreamTrouble::Failed(stream.name.clone());
            state.troubles.push(trouble);
        }
    }

    /// Counts a hold of expiry that has removed nothing, because too many events wait.
    pub(crate) fn count_wait(&self) {
        self.state.lock().stats.waits += 1;
    }

    /// What the log should say now.
    pub(crate) fn take_troubles(&self) -> Vec<ExpiredStreamTrouble> {
        std::mem::take(&mut self.state.lock().troubles)
    }

    pub(crate) fn stats(&self) -> ExpiredStreamStats {
        self.state.lock().stats
    }

    pub(crate) fn reset_stats(&self) {
        let mut state = self.state.lock();
        let ExpiredStreamStats {
            queued,
            queued_bytes,
            ..
        } = state.stats;
        state.stats = ExpiredStreamStats {
            queued,
            queued_bytes,
            ..ExpiredStreamStats::default()
        };
        state.told_dropped = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(name: &str) -> Arc<ExpiredStream> {
        Arc::new(ExpiredStream {
            db: 0,
            name: name.as_bytes().into(),
            max_len: 10,
            values: false,
        })
    }

    fn event(stream: &Arc<ExpiredStream>, deadline: u64, len: usize) -> ExpiredEvent {
        ExpiredEvent {
            stream: Arc::clone(stream),
            key: vec![0; len].into(),
            deadline,
            fired: deadline,
            tag: 0,
            value: None,
        }
    }

    fn deadlines(taken: &[ExpiredEvent]) -> Vec<u64> {
        taken.iter().map(|event| event.deadline).collect()
    }

    #[test]
    fn too_many_events_are_dropped_and_counted_and_said_once() {
        let (outbox, to) = (Outbox::default(), stream("s"));
        let most = QUEUED_MAX as u64;
        outbox.push(0, (0..most + 3).map(|i| event(&to, i, 0)));
        let stats = outbox.stats();
        assert_eq!((stats.queued, stats.dropped), (QUEUED_MAX, 3));
        assert!(outbox.is_full() && outbox.pending());
        outbox.push(1, [event(&to, 0, 0)]);
        assert_eq!(outbox.stats().dropped, 4);
        assert_eq!(outbox.take_troubles(), [ExpiredStreamTrouble::Dropped]);
        outbox.flush(0..1);
        assert_eq!(outbox.stats().flushed, most);
        assert_eq!(outbox.stats().queued_bytes, 0);
        outbox.push(0, [event(&to, 0, QUEUED_BYTES_MAX)]);
        assert_eq!((outbox.stats().queued, outbox.stats().dropped), (0, 5));
        assert_eq!(outbox.take_troubles(), []);
        assert!(!outbox.pending());
    }

    #[test]
    fn a_hold_takes_events_of_one_stream_in_their_order_and_not_too_many() {
        let outbox = Outbox::default();
        let (old, new) = (stream("old"), stream("new"));
        outbox.push(3, (0..70).map(|i| event(&old, i, 1)));
        outbox.push(3, [event(&new, 70, 1), event(&old, 71, 1)]);
        assert_eq!(outbox.take(3, &new).len(), 0, "others are first");
        assert_eq!(outbox.take(2, &old).len(), 0);
        let first = outbox.take(3, &old);
        assert_eq!(deadlines(&first), (0..64).collect::<Vec<_>>());
        assert_eq!(deadlines(&outbox.take(3, &old)), [64, 65, 66, 67, 68, 69]);
        assert_eq!(outbox.next().map(|(db, to)| (db, to.name.clone())), {
            Some((3, (*b"new").into()))
        });
        assert_eq!(deadlines(&outbox.take(3, &new)), [70]);
        assert_eq!(deadlines(&outbox.take(3, &old)), [71]);
        assert_eq!(outbox.next(), None);
        outbox.push(0, (0..3).map(|i| event(&old, i, APPENDED_BYTES_MAX / 2)));
        assert_eq!(outbox.take(0, &old).len(), 1);
        assert_eq!(outbox.stats().queued, 2);
    }

    #[test]
    fn databases_take_turns_and_swap() {
        let (outbox, to) = (Outbox::default(), stream("s"));
        outbox.push(1, (0..2).map(|i| event(&to, i, 1)));
        outbox.push(4, [event(&to, 2, 1)]);
        let next = || outbox.next().map(|(db, _)| db);
        assert_eq!([next(), next(), next()], [Some(1), Some(4), Some(1)]);
        outbox.swap(1, 2);
        outbox.swap(4, 2);
        assert_eq!(outbox.take(4, &to).len(), 2);
        assert_eq!(outbox.take(2, &to).len(), 1);
        assert_eq!(next(), None);
    }
}
