//! Totals, events and settings that all shards share.

use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering::Relaxed};

use crate::events::{EventQueue, NotifyFlags};

/// The totals, events and settings that all shards share.
#[derive(Debug, Default)]
pub(crate) struct SharedState {
    /// Bytes of all shards, to within [`BYTES_STEP`](super::upkeep::BYTES_STEP) each.
    pub(crate) used_bytes: AtomicI64,
    /// Events that wait to be published.
    pub(crate) events: EventQueue,
    /// [`NotifyFlags::bits`].
    notify: AtomicU32,
    /// The next number of [`next_note`](Self::next_note).
    notes: AtomicU64,
}

impl SharedState {
    /// The events that are enabled.
    pub(crate) fn notify_flags(&self) -> NotifyFlags {
        NotifyFlags::from_bits(self.notify.load(Relaxed))
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
