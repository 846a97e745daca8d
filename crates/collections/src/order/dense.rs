//! Nodes numbered from 0 without holes, so that each freed node's memory goes back.
//!
//! They lie in short chunks: growth copies a chunk at most, never the whole. A node that is removed
//! leaves its number to the last one, and the caller corrects whatever named that one.

use std::ops::{Index, IndexMut};

/// Nodes of a chunk.
const CHUNK: usize = 16;

#[derive(Debug)]
pub(super) struct Dense<T> {
    chunks: Vec<Vec<T>>,
    len: usize,
}

impl<T> Dense<T> {
    pub(super) fn new() -> Self {
        Self {
            chunks: Vec::new(),
            len: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Heap bytes held. O(1).
    pub(super) fn bytes(&self) -> usize {
        let last = self.chunks.last().map_or(0, Vec::capacity);
        let nodes = self.chunks.len().saturating_sub(1) * CHUNK + last;
        nodes * size_of::<T>() + self.chunks.capacity() * size_of::<Vec<T>>()
    }

    pub(super) fn push(&mut self, node: T) -> u32 {
        if self.len.is_multiple_of(CHUNK) {
            self.chunks.push(Vec::with_capacity(1));
        }
        let number = self.len;
        let chunk = &mut self.chunks[number / CHUNK];
        if chunk.len() == chunk.capacity() {
            let more = (chunk.len() / 2).max(1).min(CHUNK - chunk.len());
            chunk.reserve_exact(more);
        }
        chunk.push(node);
        self.len += 1;
        number as u32
    }

    /// Removes a node. The last one takes its number: returns the number that this one had, if it
    /// is another one.
    pub(super) fn swap_remove(&mut self, number: u32) -> Option<u32> {
        self.len -= 1;
        let chunk = self.chunks.last_mut()?;
        let last = chunk.pop()?;
        if chunk.is_empty() {
            self.chunks.pop();
            if self.chunks.capacity() > 4 * self.chunks.len() {
                self.chunks.shrink_to(2 * self.chunks.len());
            }
        } else if chunk.capacity() >= 2 * chunk.len() {
            chunk.shrink_to(chunk.len() + chunk.len() / 4);
        }
        if number as usize == self.len {
            return None;
        }
        self[number] = last;
        Some(self.len as u32)
    }
}

impl<T> Index<u32> for Dense<T> {
    type Output = T;

    #[inline]
    fn index(&self, number: u32) -> &T {
        &self.chunks[number as usize / CHUNK][number as usize % CHUNK]
    }
}

impl<T> IndexMut<u32> for Dense<T> {
    #[inline]
    fn index_mut(&mut self, number: u32) -> &mut T {
        &mut self.chunks[number as usize / CHUNK][number as usize % CHUNK]
    }
}
