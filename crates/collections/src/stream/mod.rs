//! Streams: entries with growing ids, and groups of consumers that share them.
//!
//! Entries lie in chunks of at most 4 KiB or 100 of them, in the form in which the public servers
//! store and dump them. The chunks are in the order of their ids, in a deque. A deleted entry is
//! marked, and leaves with its chunk.
//!
//! | operation | cost |
//! |---|---|
//! | append | O(1), where a chunk grows O(chunk) |
//! | find or delete an entry | O(log n), and O(chunk) |
//! | the next entry in a range | O(1) |
//! | trim | a step for each chunk that leaves; the chunks are handed back |
//! | find, give or acknowledge a pending entry | O(log n) |
//!
//! A chunk all of whose entries were deleted leaves the deque from the middle: that moves the
//! shorter side of a table of 56 bytes for each hundred entries.

mod chunk;
mod element;
mod group;
mod groups;
mod id;
mod id_map;
mod load;
mod log;
mod range;
mod trim;

pub use chunk::{Fields, StreamEntry, StreamLimits};
pub use element::Element;
pub use group::{Consumer, Group, Pending};
pub use groups::{Groups, Needed};
pub use id::StreamId;
pub use log::Log;
pub use trim::{Keep, Trim, Trimmed};

/// A stream.
#[derive(Debug, Clone, Default)]
pub struct Stream {
    /// Its entries.
    pub log: Log,
    /// Its groups of consumers.
    pub groups: Groups,
}

impl Stream {
    /// No entries, no groups.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A stream with the same content, which shares the bytes of its entries until one of the two
    /// is changed. A step for each chunk, and for each pending entry.
    #[must_use]
    pub fn share(&mut self) -> Self {
        Self {
            log: self.log.share(),
            groups: self.groups.clone(),
        }
    }

    /// Heap bytes held. O(1).
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        size_of::<Self>() + self.log.heap_bytes() + self.groups.heap_bytes()
    }
}
