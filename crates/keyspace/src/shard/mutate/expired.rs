//! The observer that queues what has expired for a stream: the page is
//! [`expired`](crate::expired).

use std::sync::Arc;

use tidewheel_store::{Expired, Slot, Value};

use super::{EXPIRED, Hold};
use crate::expired::{ExpiredEvent, ExpiredStream, ExpiredStreams, VALUE_MAX};
use crate::value::{self, Object};

/// What a pass of expiry has met of a database that has a stream.
pub(super) struct ExpiredNotes {
    stream: Arc<ExpiredStream>,
    fired: u64,
    events: Vec<ExpiredEvent>,
}

impl ExpiredNotes {
    /// Notes a key that leaves.
    pub(super) fn add(&mut self, expired: &Expired<'_, Object>) {
        if *expired.key == *self.stream.name {
            return;
        }
        let of = (expired.inline(), expired.object.as_ref());
        let value = match (value::is_string(expired.tag), of) {
            (true, (Some(bytes), _)) => self.stream.shown(bytes),
            (true, (_, Some(Object::Bytes(bytes)))) => self.stream.shown(bytes),
            _ => None,
        };
        self.events.push(ExpiredEvent {
            stream: Arc::clone(&self.stream),
            key: expired.key.into(),
            deadline: expired.deadline,
            // Another thread's clock may have found it due, a moment ahead of this one's.
            fired: self.fired.max(expired.deadline),
            tag: expired.tag,
            value,
        });
    }
}

impl ExpiredStream {
    /// What an entry shows of a string.
    fn shown(&self, bytes: &[u8]) -> Option<Box<[u8]>> {
        let shows = self.values && bytes.len() <= VALUE_MAX;
        shows.then(|| bytes.into())
    }
}

impl Hold<'_> {
    /// Follows a change of the streams that are wanted.
    pub(crate) fn observe_expired(&mut self, streams: &Arc<ExpiredStreams>) {
        self.state.expired_streams = None;
        self.state.observers &= !EXPIRED;
        if !streams.is_empty() {
            self.state.expired_streams = Some(Arc::clone(streams));
            self.state.observers |= EXPIRED;
        }
    }

    /// The stream of what expires in a database, if it has one.
    fn expired_stream(&self, db: u32) -> Option<&Arc<ExpiredStream>> {
        self.state.expired_streams.as_ref()?.get(&db)
    }

    /// True if a database has a stream of what expires.
    pub(crate) fn has_expired_stream(&self, db: u32) -> bool {
        self.expired_stream(db).is_some()
    }

    /// True if keys of a database cannot expire now, because too many events wait.
    #[inline]
    pub(crate) fn waits_for_stream(&self, db: u32) -> bool {
        self.state.observers & EXPIRED != 0 && self.must_wait_for_stream(db)
    }

    #[cold]
    fn must_wait_for_stream(&self, db: u32) -> bool {
        let outbox = &self.shard.shared.expired;
        let waits = self.expired_stream(db).is_some() && outbox.is_full();
        if waits {
            outbox.count_wait();
        }
        waits
    }

    /// Prepares to note what a pass of expiry meets at a tick.
    pub(super) fn expired_notes(&self, db: u32, fired: u64) -> Option<ExpiredNotes> {
        let stream = self.expired_stream(db)?;
        Some(ExpiredNotes {
            stream: Arc::clone(stream),
            fired,
            events: Vec::new(),
        })
    }

    /// Queues what a pass of expiry has met.
    #[cold]
    pub(super) fn queue_expired(&mut self, db: u32, notes: ExpiredNotes) {
        if !notes.events.is_empty() {
            self.shard.shared.expired.push(db, notes.events);
        }
    }

    /// Queues a key that is about to leave because its time is over.
    #[inline]
    pub(super) fn note_expired(&mut self, db: u32, slot: Slot, tick: u64) {
        if self.state.observers & EXPIRED != 0 {
            self.queue_expired_key(db, slot, tick);
        }
    }

    #[cold]
    fn queue_expired_key(&self, db: u32, slot: Slot, tick: u64) {
        let Some(stream) = self.expired_stream(db) else {
            return;
        };
        let entries = self.entries(db);
        let key = entries.key(slot);
        if *key == *stream.name {
            return;
        }
        let tag = entries.tag(slot);
        let value = match entries.value(slot) {
            Value::Inline(bytes) if value::is_string(tag) => stream.shown(bytes),
            Value::Object(Object::Bytes(bytes)) => stream.shown(bytes),
            _ => None,
        };
        let deadline = value::own_deadline(entries, slot).unwrap_or(tick);
        let event = ExpiredEvent {
            stream: Arc::clone(stream),
            key: key.into(),
            deadline,
            fired: tick.max(deadline),
            tag,
            value,
        };
        self.shard.shared.expired.push(db, [event]);
    }
}
