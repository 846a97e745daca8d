//! Entries by key, in places that are used again, and the strategy that finds the dead among them.

use std::collections::HashMap;
use std::collections::hash_map::Entry as Place;

use tidewheel_timer::{Timer, Timers};

use crate::caches::subject::{Hasher, Key};
use crate::studies::expiry::strategies::{Entries, Expiry, Left, NEVER};

/// Key and value with what a strategy knows of them.
pub(crate) struct Entry<K, V> {
    pub(crate) key: K,
    pub(crate) value: V,
    pub(crate) deadline_ms: u64,
    registration: u32,
}

/// Entries by place, and the places that are free.
pub(crate) struct Slab<K, V> {
    entries: Vec<Option<Entry<K, V>>>,
    free: Vec<u32>,
}

/// An entry that left, and what the map had of it.
pub(crate) type Removed<K, V> = (Entry<K, V>, Option<(K, u32)>);

/// The entries by key.
pub(crate) struct Keyed<K, V> {
    map: HashMap<K, u32, Hasher>,
    slab: Slab<K, V>,
    expiry: Box<dyn Expiry<Slab<K, V>>>,
}

impl<K: Key, V> Keyed<K, V> {
    pub(crate) fn new(expiry: Box<dyn Expiry<Slab<K, V>>>) -> Self {
        Self {
            map: HashMap::default(),
            slab: Slab {
                entries: Vec::new(),
                free: Vec::new(),
            },
            expiry,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.map.len()
    }

    pub(crate) fn get(&self, key: &K) -> Option<&Entry<K, V>> {
        self.slab.entries[*self.map.get(key)? as usize].as_ref()
    }

    /// Puts an entry in. Returns the value that was there.
    pub(crate) fn insert(&mut self, key: K, value: V, deadline_ms: u64, now_ms: u64) -> Option<V> {
        match self.map.entry(key) {
            Place::Vacant(place) => {
                let id = self.slab.add(place.key().clone(), value);
                place.insert(id);
                self.set_deadline(id, deadline_ms, now_ms);
                None
            }
            Place::Occupied(place) => {
                let id = *place.get();
                self.set_deadline(id, deadline_ms, now_ms);
                let entry = self.slab.entries[id as usize].as_mut()?;
                Some(std::mem::replace(&mut entry.value, value))
            }
        }
    }

    /// Takes an entry out, dead or alive.
    pub(crate) fn remove(&mut self, key: &K) -> Option<V> {
        let id = self.map.remove(key)?;
        self.set_deadline(id, NEVER, 0);
        self.slab.take(id).map(|entry| entry.value)
    }

    fn set_deadline(&mut self, id: u32, deadline_ms: u64, now_ms: u64) {
        let (slab, expiry) = (&mut self.slab, &mut self.expiry);
        match (slab.timer(id), deadline_ms) {
            (None, NEVER) => {}
            (None, _) => expiry.insert(slab, id, deadline_ms, now_ms),
            (Some(old), NEVER) => expiry.cancel(slab, id, old),
            (Some(old), _) => expiry.reschedule(slab, id, old, deadline_ms, now_ms),
        }
        slab.set(id, deadline_ms);
    }

    /// Removes what the strategy finds: `due` is room for its places.
    pub(crate) fn advance(
        &mut self,
        now_ms: u64,
        budget: u32,
        due: &mut Vec<u32>,
        removed: &mut Vec<Removed<K, V>>,
    ) -> Left {
        loop {
            let left = self.expiry.advance(&mut self.slab, now_ms, budget, due);
            for entry in due.drain(..).filter_map(|id| self.slab.take(id)) {
                let of_map = self.map.remove_entry(&entry.key);
                removed.push((entry, of_map));
            }
            if left != Left::Unfinished {
                return left;
            }
        }
    }

    /// The time at which the strategy wants to be called next.
    pub(crate) fn wake(&self) -> Option<u64> {
        self.expiry.wake()
    }

    /// Places that hold an entry.
    #[cfg(test)]
    pub(super) fn places(&self) -> usize {
        self.slab.entries.iter().flatten().count()
    }
}

impl<K, V> Slab<K, V> {
    /// The place that the entry gets; it has no deadline.
    fn add(&mut self, key: K, value: V) -> u32 {
        let entry = Some(Entry {
            key,
            value,
            deadline_ms: NEVER,
            registration: 0,
        });
        if let Some(id) = self.free.pop() {
            self.entries[id as usize] = entry;
            return id;
        }
        self.entries.push(entry);
        u32::try_from(self.entries.len() - 1).expect("fewer than 2^32 entries fit into memory")
    }

    /// Empties a place.
    fn take(&mut self, id: u32) -> Option<Entry<K, V>> {
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

    fn set(&mut self, id: u32, deadline_ms: u64) {
        if let Some(entry) = &mut self.entries[id as usize] {
            entry.deadline_ms = deadline_ms;
        }
    }
}
