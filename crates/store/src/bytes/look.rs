//! Look-ups: finds an entry, and prefetches its memory.
//!
//! Nearly every look-up ends at the first entry of the home bucket that may be the key's. So this
//! way has no loops, and reads the entry's header at once. All others begin anew.

use super::entry::{self, Head};
use super::store::Store;
use super::value::Seen;
use crate::index::{Elsewhere, First};
use crate::slot::Slot;

impl<O> Store<O> {
    /// Finds a key, dead or alive. `hash` is the hasher's hash of the key. O(1).
    #[inline]
    #[must_use]
    pub fn find(&self, hash: u64, key: &[u8]) -> Option<Slot> {
        self.look(hash, key).map(|seen| seen.slot)
    }

    /// As [`find`](Self::find), with what most callers read next.
    #[inline(always)]
    #[must_use]
    pub fn look(&self, hash: u64, key: &[u8]) -> Option<Seen> {
        match self.index.first(hash as u32) {
            First::Likely(0) | First::Nowhere => None,
            First::Likely(id) => self.look_at(id, hash, key),
            First::Elsewhere => self.look_further(hash, key),
        }
    }

    /// Looks at the entry that is most likely the key's: no other is looked at in nearly all calls.
    #[inline(always)]
    fn look_at(&self, id: u32, hash: u64, key: &[u8]) -> Option<Seen> {
        let block = self.blocks.start(id);
        let Some(head) = block.first_chunk().and_then(entry::short_head) else {
            return self.look_at_long(id, hash, key);
        };
        let layout = &head.layout;
        let its_key = block.get(layout.key_at..layout.value_at());
        if its_key.is_some_and(|its_key| entry::are_equal(its_key, key)) {
            return Some(seen(id, &head));
        }
        self.look_further(hash, key)
    }

    /// As [`look_at`](Self::look_at), for a header that is not read at once.
    #[inline(never)]
    fn look_at_long(&self, id: u32, hash: u64, key: &[u8]) -> Option<Seen> {
        let block = self.blocks.start(id);
        let head = entry::head(block);
        match entry::are_equal(&block[head.layout.key_at..head.layout.value_at()], key) {
            true => Some(seen(id, &head)),
            false => self.look_further(hash, key),
        }
    }

    /// The look-up of any key, from the beginning.
    #[inline(never)]
    fn look_further(&self, hash: u64, key: &[u8]) -> Option<Seen> {
        let holds = |id| self.holds(id, key);
        let id = match self.index.find(hash as u32, holds) {
            Ok(id) => id,
            Err(Elsewhere::Nowhere) => return None,
            Err(Elsewhere::Crowd) => self.index.find_crowded(hash as u32, holds)?,
        };
        Some(seen(id, &entry::head(self.blocks.start(id))))
    }

    /// Returns whether an entry has this key.
    #[inline(always)]
    fn holds(&self, id: u32, key: &[u8]) -> bool {
        let block = self.blocks.start(id);
        let layout = entry::layout(block);
        layout.key_len == key.len() && &block[layout.key_at..layout.value_at()] == key
    }

    /// Returns what a look-up reads of an entry.
    #[inline]
    #[must_use]
    pub fn seen(&self, slot: Slot) -> Seen {
        seen(slot.0, &entry::head(self.blocks.start(slot.0)))
    }

    /// The value's bytes of an entry that has not changed since the look-up; `None` for an object.
    #[inline]
    #[must_use]
    pub fn seen_bytes(&self, seen: &Seen) -> Option<&[u8]> {
        let at = seen.value_at as usize;
        let block = self.blocks.start(seen.slot.0);
        let bytes = block.get(at..at + seen.value_len as usize);
        bytes.filter(|_| at != 0)
    }

    /// As [`seen_bytes`](Self::seen_bytes), for change in place.
    #[inline]
    pub fn seen_bytes_mut(&mut self, seen: &Seen) -> Option<&mut [u8]> {
        let at = seen.value_at as usize;
        let block = self.blocks.start_mut(seen.slot.0);
        let bytes = block.get_mut(at..at + seen.value_len as usize);
        bytes.filter(|_| at != 0)
    }

    /// The first of two steps ahead of a look-up: asks for what the index knows of this hash. Waits
    /// for nothing.
    #[inline]
    pub fn warm_index(&self, hash: u64) {
        self.index.prefetch(hash as u32);
    }

    /// The second step, when the first has had its time: asks for the entry.
    #[inline]
    pub fn warm_entry(&self, hash: u64) {
        if let First::Likely(id @ 1..) = self.index.first(hash as u32) {
            self.blocks.prefetch(id);
        }
    }

    /// Asks for an entry, and waits for nothing.
    #[inline]
    pub fn warm(&self, slot: Slot) {
        self.blocks.prefetch(slot.0);
    }

    /// Asks for where the entry's object is, if it has one. Waits for nothing but the entry.
    #[inline]
    pub fn warm_object(&self, slot: Slot) {
        if let Some(number) = self.object_of(slot) {
            self.objects.prefetch(number);
        }
    }
}

#[inline(always)]
fn seen(id: u32, head: &Head) -> Seen {
    Seen {
        slot: Slot(id),
        access: head.access,
        tag: head.tag,
        end: head.end,
        value_at: if head.is_object {
            0
        } else {
            head.layout.value_at() as u32
        },
        value_len: head.layout.value_len as u32,
    }
}
