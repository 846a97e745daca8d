//! The entries of a cache whose dead are found by a strategy: by places that are used again.

use tidewheel_timer::{Timer, Timers};

use crate::studies::expiry::strategies::Entries;

/// The deadline of what lives for ever.
pub(super) const NEVER: u64 = u64::MAX;

/// Entries by place, and the places that are free.
pub(super) struct Slab<K, V> {
    entries: Vec<Option<Entry<K, V>>>,
    free: Vec<u32>,
}

/// Key and value with what a strategy knows of them.
pub(super) struct Entry<K, V> {
    pub(super) key: K,
    pub(super) value: V,
    pub(super) deadline_ms: u64,
    registration: u32,
}

impl<K, V> Entry<K, V> {
    /// An entry without a deadline.
    pub(super) fn new(key: K, value: V) -> Self {
        Self {
            key,
            value,
            deadline_ms: NEVER,
            registration: 0,
        }
    }
}

impl<K, V> Slab<K, V> {
    pub(super) fn new() -> Self {
        Self {
            entries: Vec::new(),
            free: Vec::new(),
        }
    }

    pub(super) fn get(&self, id: u32) -> Option<&Entry<K, V>> {
        self.entries[id as usize].as_ref()
    }

    pub(super) fn get_mut(&mut self, id: u32) -> Option<&mut Entry<K, V>> {
        self.entries[id as usize].as_mut()
    }

    /// The place that the entry gets.
    pub(super) fn add(&mut self, entry: Entry<K, V>) -> u32 {
        if let Some(id) = self.free.pop() {
            self.entries[id as usize] = Some(entry);
            return id;
        }
        self.entries.push(Some(entry));
        u32::try_from(self.entries.len() - 1).expect("fewer than 2^32 entries fit into memory")
    }

    /// Empties a place.
    pub(super) fn take(&mut self, id: u32) -> Option<Entry<K, V>> {
        let entry = self.entries[id as usize].take()?;
        self.free.push(id);
        Some(entry)
    }
}

impl<K, V> Timers for Slab<K, V> {
    fn timer(&self, id: u32) -> Option<Timer> {
        let entry = self.entries[id as usize].as_ref()?;
        (entry.deadline_ms != NEVER).then_some(Timer {
            deadline: entry.deadline_ms,
            registration: entry.registration,
        })
    }

    fn set_registration(&mut self, id: u32, registration: u32) {
        if let Some(entry) = &mut self.entries[id as usize] {
            entry.registration = registration;
        }
    }
}

impl<K, V> Entries for Slab<K, V> {
    fn bound(&self) -> u32 {
        self.entries.len() as u32
    }

    fn clear(&mut self, id: u32) {
        if let Some(entry) = &mut self.entries[id as usize] {
            entry.deadline_ms = NEVER;
        }
    }
}
