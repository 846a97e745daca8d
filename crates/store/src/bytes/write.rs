//! Writes: a new entry, another value, another deadline.

use tidewheel_timer::TimerQueue;

use super::blocks::Blocks;
use super::entry::{self, Form, NO_END};
use super::store::Store;
use super::value::{INLINE_MAX, NewValue, Seen};
use crate::slot::Slot;

impl<O> Store<O> {
    /// Adds a key that [`find`](Self::find) does not find, with an access history of 0. O(1).
    ///
    /// # Panics
    ///
    /// When inline bytes are longer than [`INLINE_MAX`], or the tag is above 15.
    pub fn insert(
        &mut self,
        hash: u64,
        key: &[u8],
        tag: u8,
        value: NewValue<'_, O>,
        deadline: Option<u64>,
        now: u64,
    ) -> Slot {
        let form = Form::of(deadline);
        let id = self.write_new(key, tag, 0, form, value);
        self.index.insert(hash as u32, id);
        if let Some(deadline) = deadline {
            self.timed += 1;
            self.start_timer(id, deadline, now);
        }
        Slot(id)
    }

    /// Replaces tag, value and deadline; keeps key and access history. The entry may move: use the
    /// slot that comes back. Returns the old object, if there was one. O(1).
    ///
    /// # Panics
    ///
    /// As [`insert`](Self::insert).
    pub fn replace(
        &mut self,
        slot: Slot,
        tag: u8,
        value: NewValue<'_, O>,
        deadline: Option<u64>,
        now: u64,
    ) -> (Slot, Option<O>) {
        let id = slot.0;
        let old_object = self
            .object_of(slot)
            .map(|number| self.objects.remove(number));
        let block = self.blocks.block_mut(id);
        // Nearly the same length: the new bytes go where the old ones were.
        let in_place = match &value {
            NewValue::Inline(bytes) if old_object.is_none() => Some(bytes),
            _ => None,
        };
        let in_place = in_place.filter(|_| entry::form(block).holds(deadline));
        if let Some(bytes) = in_place {
            let layout = entry::layout(block);
            if entry::resize_value(block, &layout, bytes.len()) {
                let at = layout.value_at();
                // If the block has become twice as large as needed, the entry gets another one,
                // below.
                let fits = Blocks::rounded(at + bytes.len()) * 2 > block.len();
                if fits {
                    block[at..at + bytes.len()].copy_from_slice(bytes);
                    entry::set_tag(block, tag);
                    return (self.set_deadline(slot, deadline, now), None);
                }
                entry::resize_value(block, &entry::layout(block), layout.value_len);
            }
        }
        let mut key = std::mem::take(&mut self.scratch);
        key.clear();
        key.extend_from_slice(self.key(slot));
        let access = self.access(slot);
        self.stop_timer(id);
        let place = self.place(&key);
        self.blocks.release(id);
        let new = self.write_new(&key, tag, access, Form::of(deadline), value);
        self.index.replace(place, id, new);
        key.shrink_to(4096);
        self.scratch = key;
        if let Some(deadline) = deadline {
            self.timed += 1;
            self.start_timer(new, deadline, now);
        }
        (Slot(new), old_object)
    }

    /// Replaces tag, value and deadline of an entry that has not changed since the look-up, if it
    /// need not move: the new value has the length of the old one, and there is room for the
    /// deadline. False, and nothing is done, if it must. O(1).
    ///
    /// # Panics
    ///
    /// When the tag is above 15.
    #[inline(always)]
    pub fn overwrite(
        &mut self,
        seen: &Seen,
        tag: u8,
        bytes: &[u8],
        deadline: Option<u64>,
        now: u64,
    ) -> bool {
        let (at, len) = (seen.value_at as usize, seen.value_len as usize);
        if at == 0 || len != bytes.len() {
            return false;
        }
        let block = self.blocks.start_mut(seen.slot.0);
        let end = entry::end_of(deadline);
        if end != seen.end && !entry::form(block).holds_end(end) {
            return false;
        }
        let Some(old) = block.get_mut(at..at + len) else {
            return false;
        };
        old.copy_from_slice(bytes);
        if seen.tag != tag {
            assert!(tag < 16, "a tag has four bits");
            entry::set_tag(block, tag);
        }
        if end != seen.end {
            // Of a later deadline the wheel learns when it meets the old one.
            if end > seen.end && end != NO_END && seen.end != NO_END {
                entry::set_end(block, entry::form(block), end);
            } else {
                self.set_deadline(seen.slot, deadline, now);
            }
        }
        true
    }

    /// Gives the entry a deadline, moves it, or takes it away. The entry may move. O(1).
    pub fn set_deadline(&mut self, slot: Slot, deadline: Option<u64>, now: u64) -> Slot {
        let id = slot.0;
        let block = self.blocks.start(id);
        let old = entry::timer(block);
        if !entry::form(block).holds(deadline) {
            return self.widen(slot, deadline, now);
        }
        match (old, deadline) {
            (Some(old), Some(deadline)) => {
                if old.deadline != deadline {
                    self.filed = self.filed.wrapping_add(u32::from(deadline < old.deadline));
                    self.wheel
                        .reschedule(&mut self.blocks, id, old, deadline, now);
                    entry::set_deadline(self.blocks.start_mut(id), Some(deadline));
                }
            }
            (Some(_), None) => self.stop_timer(id),
            (None, Some(deadline)) => {
                self.timed += 1;
                self.start_timer(id, deadline, now);
            }
            (None, None) => {}
        }
        slot
    }

    /// Changes the tag (0–15).
    ///
    /// # Panics
    ///
    /// When the tag is above 15.
    pub fn set_tag(&mut self, slot: Slot, tag: u8) {
        assert!(tag < 16, "a tag has four bits");
        entry::set_tag(self.blocks.start_mut(slot.0), tag);
    }

    /// The entry's inline bytes for change in place (the length stays); `None` for an object.
    pub fn inline_mut(&mut self, slot: Slot) -> Option<&mut [u8]> {
        let block = self.blocks.start_mut(slot.0);
        if entry::is_object(block) {
            return None;
        }
        let layout = entry::layout(block);
        Some(&mut block[layout.value_at()..layout.value_at() + layout.value_len])
    }

    /// The entry's object for change in place; `None` for inline bytes.
    pub fn object_mut(&mut self, slot: Slot) -> Option<&mut O> {
        let number = self.object_of(slot)?;
        Some(self.objects.get_mut(number))
    }

    fn write_new(
        &mut self,
        key: &[u8],
        tag: u8,
        access: u32,
        form: Form,
        value: NewValue<'_, O>,
    ) -> u32 {
        assert!(tag < 16, "a tag has four bits");
        let value_len = match &value {
            NewValue::Inline(bytes) => Some(bytes.len()),
            NewValue::Object(_) => None,
        };
        assert!(
            value_len.is_none_or(|len| len <= INLINE_MAX),
            "a long value must be an object"
        );
        let id = self
            .blocks
            .allocate(entry::bytes(form, key.len(), value_len));
        let block = self.blocks.block_mut(id);
        let at = entry::write(block, tag, access, form, key, value_len);
        match value {
            NewValue::Inline(bytes) => block[at..at + bytes.len()].copy_from_slice(bytes),
            NewValue::Object(object) => {
                let number = self.objects.insert(object);
                block[at..at + 4].copy_from_slice(&number.to_le_bytes());
            }
        }
        id
    }

    /// Copies an entry into a block with room for the deadline.
    fn widen(&mut self, slot: Slot, deadline: Option<u64>, now: u64) -> Slot {
        let id = slot.0;
        self.stop_timer(id);
        let mut old = std::mem::take(&mut self.scratch);
        old.clear();
        old.extend_from_slice(self.blocks.block(id));
        self.blocks.release(id);

        let layout = entry::layout(&old);
        let key = &old[layout.key_at..layout.value_at()];
        let value = &old[layout.value_at()..layout.value_at() + layout.value_len];
        let value_len = (!entry::is_object(&old)).then_some(value.len());
        let form = Form::of(deadline);
        let new = self
            .blocks
            .allocate(entry::bytes(form, key.len(), value_len));
        let block = self.blocks.block_mut(new);
        let at = entry::write(
            block,
            entry::tag(&old),
            entry::access(&old),
            form,
            key,
            value_len,
        );
        block[at..at + value.len()].copy_from_slice(value);
        self.index.replace(self.place(key), id, new);
        old.shrink_to(4096);
        self.scratch = old;
        if let Some(deadline) = deadline {
            self.timed += 1;
            self.start_timer(new, deadline, now);
        }
        Slot(new)
    }
}
