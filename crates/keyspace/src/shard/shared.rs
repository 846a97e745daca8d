//! Totals, events and settings that all shards share.

use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};

use crate::events::{EventQueue, NotifyFlags};
use crate::expired::Outbox;
use crate::records::RecordQueue;
use crate::tracking::{Registry, TrackingTotals};
use crate::waiters::AwaitedCount;

/// Bytes of the tables of tracked keys. A million keys of fifty bytes take less.
const TRACKED_BYTES_MAX: usize = 256 << 20;

/// The totals, events and settings that all shards share.
#[derive(Debug, Default)]
pub(crate) struct SharedState {
    /// Bytes of all shards, to within [`BYTES_STEP`](super::upkeep::BYTES_STEP) each.
    pub(crate) used_bytes: AtomicI64,
    /// Events that wait to be published.
    pub(crate) events: EventQueue,
    /// Expired keys that wait to become entries of a stream.
    pub(crate) expired: Outbox,
    /// Changes that wait to be logged.
    pub(crate) records: RecordQueue,
    /// The clients that track.
    pub(crate) registry: Registry,
    /// The keys that somebody waits for.
    pub(crate) awaited: AwaitedKeys,
    /// The sizes of the tables of tracked keys.
    pub(crate) tracking: TrackingTotals,
    /// The most keys in all these tables; 0 is no limit.
    pub(crate) tracking_keys_max: AtomicUsize,
    /// [`NotifyFlags::bits`].
    notify: AtomicU32,
    /// The next number of [`next_note`](Self::next_note).
    notes: AtomicU64,
}

/// Numbers of keys that somebody waits for.
#[derive(Debug, Default)]
pub(crate) struct AwaitedKeys {
    keys: AtomicUsize,
    ending: AtomicUsize,
}

impl AwaitedKeys {
    pub(crate) fn add(&self, growth: AwaitedCount) {
        for (total, by) in [(&self.keys, growth.keys), (&self.ending, growth.ending)] {
            if by != 0 {
                // Wrapping: a negative change is a big positive one.
                total.fetch_add(by as usize, Relaxed);
            }
        }
    }

    /// All keys, and those of which some end the wait when the key is gone.
    pub(crate) fn numbers(&self) -> (usize, usize) {
        (self.keys.load(Relaxed), self.ending.load(Relaxed))
    }
}

impl SharedState {
    /// The events that are enabled.
    pub(crate) fn notify_flags(&self) -> NotifyFlags {
        NotifyFlags::from_bits(self.notify.load(Relaxed))
    }

    /// True if the tables of tracked keys have more than they may.
    pub(crate) fn tracks_too_many(&self) -> bool {
        let max = self.tracking_keys_max.load(Relaxed);
        max > 0 && self.tracking.keys() > max || self.tracking.bytes() > TRACKED_BYTES_MAX
    }

    /// The place of one more key that came to hold what somebody waits for.
    pub(crate) fn next_note(&self) -> u64 {
        self.notes.fetch_add(1, Relaxed)
    }

    /// Enables these events, and disables all others. Shards learn of it by
    /// [`observe_events`](super::Hold::observe_events).
    pub(crate) fn set_notify_flags(&self, flags: NotifyFlags) {
        self.notify.store(flags.bits(), Relaxed);
    }
}
