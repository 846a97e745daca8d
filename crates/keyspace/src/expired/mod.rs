//! Expired events that stay: each key that expires becomes an entry of a stream.
//!
//! Keyspace notifications reach who listens at that moment. A stream keeps them: its readers may
//! come later, share the work as a group, and acknowledge. An example: `expired-stream` is `0 gone
//! 1000000 values`, and a client sends `SET session:7 anna PX 3000`. Three seconds later XRANGE
//! shows in the stream `gone` of database 0:
//!
//! ```text
//! key session:7 deadline 1700000003000 fired 1700000003000 type string value anna
//! ```
//!
//! # The way of an entry
//!
//! 1. The funnel removes a key whose time is over, and queues the event in the [`Outbox`]
//!    (`shard/mutate/expired.rs`). The key's shard is locked. So a key that both a command and a
//!    pass of expiry meet becomes one entry: one of the two removes it.
//! 2. Whoever has unlocked appends ([`Keyspace::append_expired`](crate::Keyspace::append_expired)):
//!    it locks the stream's shard, takes the first events of the queue, and appends them, at most
//!    [`APPENDED_MAX`] in a hold. Events are taken while the stream's shard is locked, so those of
//!    a stream keep their order although many threads append.
//! 3. In the same hold whole chunks of old entries leave, if the stream is longer than it may be.
//!    They are counted. Then those who wait for the stream are served.
//!
//! Until it is appended, an event counts as if it were in the stream: FLUSHDB drops the events of
//! its database, and SWAPDB moves them with their database. An event knows the stream that was
//! configured when it happened.
//!
//! # What is an event, and what is none
//!
//! An event is the removal of a key because its own deadline was reached. A collection of which all
//! members have expired leaves as `del`, as for keyspace notifications, and so do keys that a
//! command gives a deadline in the past. The stream's own expiry is none: else a stream that may
//! live for a minute would come back each minute to tell of its own end.
//!
//! # Bounds
//!
//! The queue is nearly always empty after a hold of expiry. It fills up if a script or a long
//! command has the stream's shard. From [`WAITING_MAX`] events or [`WAITING_BYTES_MAX`] on, *passes
//! of expiry wait* in databases that have a stream: their dead keys stay invisible in memory, which
//! is where they are anyway, and expire when the stream is free. Commands that meet dead keys
//! cannot wait. They queue more, up to [`QUEUED_MAX`] events or [`QUEUED_BYTES_MAX`]. What comes
//! then is dropped and counted, and the server's log says so.
//!
//! Entries are appended beyond `maxmemory` too, since that is where expiry frees memory; the next
//! command makes room. The length of the stream bounds them. The stream is a key like others for
//! everything else. `allkeys-*` policies may evict it, and its next entry begins a new one.
//!
//! If the name holds another type, events cannot be kept. They are counted as failed, and the
//! server's log says so once.
//!
//! # Order
//!
//! Entries are in the order in which keys of a shard were removed, and a pass of expiry removes
//! keys of a shard in the order of their deadlines. Never is an entry there before its deadline.

mod outbox;

use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) use self::outbox::{ExpiredEvent, Outbox};

/// The most entries that are appended in one hold of the stream's shard, and bytes of their keys
/// and values.
pub(crate) const APPENDED_MAX: usize = 64;
pub(crate) const APPENDED_BYTES_MAX: usize = 64 << 10;

/// Entries that leave a stream that is too long in one hold.
pub(crate) const TRIMMED_MAX: u64 = 1_000;

/// Events and bytes in the queue from which on passes of expiry wait.
pub(crate) const WAITING_MAX: usize = 1 << 16;
pub(crate) const WAITING_BYTES_MAX: usize = 16 << 20;

/// Events and bytes in the queue beyond which events of commands are dropped.
pub(crate) const QUEUED_MAX: usize = 1 << 20;
pub(crate) const QUEUED_BYTES_MAX: usize = 128 << 20;

/// The longest string that an entry shows: a longer one is left out.
pub(crate) const VALUE_MAX: usize = 16 << 10;

/// A stream that gets an entry for each key of a database that expires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpiredStream {
    /// The database whose keys are meant, and in which the stream is.
    pub db: u32,
    /// The stream's key.
    pub name: Box<[u8]>,
    /// About the most entries of it: whole chunks leave, so it may have one chunk more.
    pub max_len: u64,
    /// Entries have the type of what has expired too, and a string of up to 16 KiB itself.
    pub values: bool,
}

/// The streams of all databases that have one.
pub(crate) type ExpiredStreams = BTreeMap<u32, Arc<ExpiredStream>>;

/// What became of events for streams of expired keys since the start, or the last reset.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExpiredStreamStats {
    /// Events that wait to be appended.
    pub queued: usize,
    /// Bytes of these.
    pub queued_bytes: usize,
    /// Entries that were appended.
    pub appended: u64,
    /// Entries that have left streams that were too long.
    pub trimmed: u64,
    /// Events that could not be appended: the name holds another type, or no id is left.
    pub failed: u64,
    /// Events that were dropped because too many waited.
    pub dropped: u64,
    /// Events that left with their database (FLUSHDB, FLUSHALL).
    pub flushed: u64,
    /// Holds of expiry that removed nothing because too many events waited.
    pub waits: u64,
}

/// What a call of [`Keyspace::append_expired`](crate::Keyspace::append_expired) has come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AppendedExpired {
    /// Nothing is queued any more.
    All,
    /// Others are queued.
    Some,
    /// Nothing can be appended now: others have the stream's shard, or a pause is on.
    Blocked,
}

/// Something that the server's log should say once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExpiredStreamTrouble {
    /// Events cannot be appended: the key of that name has another type, or no id is left.
    Failed(Box<[u8]>),
    /// Events were dropped, because too many waited.
    Dropped,
}
