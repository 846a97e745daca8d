//! The caller's objects, by number: values that are not bytes, or too long for a block.

use crate::prefetch::prefetch;

/// A slab of objects.
#[derive(Debug)]
pub(crate) struct Objects<O> {
    slots: Vec<Option<O>>,
    free: Vec<u32>,
}

impl<O> Objects<O> {
    pub(crate) const fn new() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Heap bytes of the slab itself.
    pub(crate) fn bytes(&self) -> usize {
        self.slots.capacity() * size_of::<Option<O>>() + self.free.capacity() * 4
    }

    pub(crate) fn insert(&mut self, object: O) -> u32 {
        if let Some(number) = self.free.pop() {
            self.slots[number as usize] = Some(object);
            return number;
        }
        self.slots.push(Some(object));
        self.slots.len() as u32 - 1
    }

    pub(crate) fn get(&self, number: u32) -> &O {
        self.slots[number as usize]
            .as_ref()
            .expect("an entry's object exists")
    }

    /// Asks for an object's slot, and does not wait for it.
    pub(crate) fn prefetch(&self, number: u32) {
        if let Some(slot) = self.slots.get(number as usize) {
            prefetch(slot);
        }
    }

    pub(crate) fn get_mut(&mut self, number: u32) -> &mut O {
        self.slots[number as usize]
            .as_mut()
            .expect("an entry's object exists")
    }

    pub(crate) fn remove(&mut self, number: u32) -> O {
        let object = self.slots[number as usize]
            .take()
            .expect("an entry's object exists");
        self.free.push(number);
        if self.free.len() == self.slots.len() {
            self.slots = Vec::new();
            self.free = Vec::new();
        }
        object
    }
}
