//! Tracking: clients are told when what they have read may have changed (CLIENT TRACKING).
//!
//! A client keeps what it reads in a cache of its own. An example: it reads `tea`, and a minute
//! later the key reaches its deadline, and nobody touches it. At that deadline the client is told
//! that its copy of `tea` is invalid.
//!
//! # The parts
//!
//! - Each shard has a table of the keys that tracking clients have read
//!   (`tracked.rs`). A command that only reads puts its keys into it, under the lock under
//!   which it reads them (`invalidation.rs`).
//! - The funnel takes a key out of the table when it changes, expires or is evicted. The key and
//!   its readers then wait in the shard.
//! - Whoever unlocks the shard takes what waits, and hands it to the shell
//!   ([`Hooks::invalidate`](crate::Hooks::invalidate)), with no lock held. Only here it is known
//!   who has caused the change: a client may ask not to be told of its own changes (NOLOOP).
//! - [`Registry`] has all tracking clients, and the prefixes of those that read nothing and are
//!   told of every change of a key with such a prefix (BCAST). Nothing but a key's name is noted
//!   for these in the funnel. The prefixes are looked up after unlocking; the cost grows with the
//!   bytes that the key shares with some prefix, and not with the number of clients or prefixes.
//!
//! The observers of a shard are bits, so a change costs nothing more while nobody tracks. A read
//! costs one test.
//!
//! # Order
//!
//! - **A client that was told that a key is invalid reads the new value.** The funnel notes the key
//!   after the change, under the same lock.
//! - **No client keeps an old value without being told.** Reading and noting are one step under
//!   the lock, so a change either comes before and is read, or comes after and finds the note.
//! - **The message follows the reply with the old value.** The shell hands messages to the loop of
//!   the reader, which takes them in between two turns, when all replies of the turn are in the
//!   output. The reply of a [long](crate::long) command takes another way, and could be late: it is
//!   not noted, and its client is told right after the reply that what it has read is invalid
//!   ([`Ticket::untracked_keys`](crate::Ticket::untracked_keys)).
//! - **The author's own message follows the reply**, for the same reason.
//!
//! # Bounds
//!
//! The tables have `tracking-table-max-keys` keys. A key that comes to a full table makes room in
//! its own shard; if there is none, the shell lets others leave within the turn
//! ([`Keyspace::bound_tracked`](crate::Keyspace::bound_tracked)). So it does when the limit becomes
//! lower, a slice in each turn. A key that has to leave is announced as invalid. A client that is
//! gone stays in the tables until its keys change; of a key with many readers those that are gone
//! are removed before their number has doubled. When no client tracks any more, the tables are
//! emptied. The registry bounds the prefixes of a client.
//!
//! # Locks
//!
//! The registry's lock stands behind those of the shards: a table asks for clients that are gone
//! while its shard is locked.

mod registry;
mod tracked;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

pub(crate) use self::registry::Registry;
pub use self::registry::{PREFIX_BYTES_MAX, PREFIXES_MAX, PrefixError};
pub(crate) use self::tracked::{Readers, TableSize, Tracked};

/// A key that is invalid, before its readers were told.
#[derive(Debug)]
pub(crate) struct Invalid {
    pub(crate) key: Arc<[u8]>,
    /// Those who have read it.
    pub(crate) readers: Option<Readers>,
    /// True if nobody's command has changed it: its time is over, or there was no room for it.
    pub(crate) by_itself: bool,
}

/// The way in which a client wants to be told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrackingMode {
    /// Not of its own changes.
    pub no_loop: bool,
    /// Of all keys with one of these prefixes, instead of those that it has read. They are added
    /// to those that it has.
    pub prefixes: Option<Vec<Box<[u8]>>>,
}

/// Sizes of all that is tracked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TrackingStats {
    /// Clients that track.
    pub clients: usize,
    /// Keys in the tables.
    pub keys: usize,
    /// Readers of all these keys.
    pub items: usize,
    /// Different prefixes.
    pub prefixes: usize,
    /// Bytes that the tables and the prefixes take, roughly.
    pub bytes: usize,
}

/// The sizes of all tables.
#[derive(Debug, Default)]
pub(crate) struct TrackingTotals {
    keys: AtomicUsize,
    items: AtomicUsize,
    bytes: AtomicUsize,
}

impl TrackingTotals {
    pub(crate) fn add(&self, size: TableSize) {
        let to = |total: &AtomicUsize, by: isize| {
            // Wrapping: a negative change is a big positive one.
            total.fetch_add(by as usize, Relaxed);
        };
        to(&self.keys, size.keys);
        to(&self.items, size.items);
        to(&self.bytes, size.bytes);
    }

    pub(crate) fn keys(&self) -> usize {
        self.keys.load(Relaxed)
    }

    pub(crate) fn items(&self) -> usize {
        self.items.load(Relaxed)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Relaxed)
    }
}
