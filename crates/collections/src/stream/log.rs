//! The entries of a stream: chunks in the order of their ids.

use std::collections::VecDeque;

use super::chunk::{Chunk, StreamLimits};
use super::id::StreamId;

/// The entries, and what is known of those that were there.
#[derive(Debug, Clone, Default)]
pub struct Log {
    pub(super) chunks: VecDeque<Chunk>,
    pub(super) len: u64,
    pub(super) first: StreamId,
    pub(super) last: StreamId,
    pub(super) max_deleted: StreamId,
    pub(super) added: u64,
    /// Bytes of all chunks.
    pub(super) held: usize,
}

impl Log {
    /// A log with the same entries, which shares their bytes until one of the two is changed.
    pub(super) fn share(&mut self) -> Self {
        Self {
            chunks: self.chunks.iter_mut().map(Chunk::share).collect(),
            ..*self
        }
    }

    /// The number of entries.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// True if there are no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The number of chunks.
    #[must_use]
    pub fn chunks(&self) -> usize {
        self.chunks.len()
    }

    /// The lowest id of an entry; 0-0 if there is none.
    #[must_use]
    pub fn first_id(&self) -> StreamId {
        self.first
    }

    /// The highest id that there has been, or that XSETID has set.
    #[must_use]
    pub fn last_id(&self) -> StreamId {
        self.last
    }

    /// The highest id that was deleted in any other way than by trimming.
    #[must_use]
    pub fn max_deleted_id(&self) -> StreamId {
        self.max_deleted
    }

    /// The number of entries that were added in all.
    #[must_use]
    pub fn entries_added(&self) -> u64 {
        self.added
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.held + self.chunks.capacity() * size_of::<Chunk>()
    }

    /// The id of a new entry at a wall time.
    #[must_use]
    pub fn next_id(&self, wall_ms: u64) -> Option<StreamId> {
        match wall_ms > self.last.ms {
            true => Some(StreamId::new(wall_ms, 0)),
            false => self.last.next(),
        }
    }

    /// Appends an entry. Its id must be higher than [`last_id`](Self::last_id); `words` are names
    /// and values in turn. O(1), and at times a chunk is moved.
    pub fn append<'f>(
        &mut self,
        id: StreamId,
        words: impl ExactSizeIterator<Item = &'f [u8]> + Clone,
        limits: &StreamLimits,
    ) {
        debug_assert!(id > self.last, "ids grow");
        let bytes: usize = words.clone().map(<[u8]>::len).sum();
        let fits = self
            .chunks
            .back()
            .is_some_and(|last| last.admits(bytes, limits));
        if !fits {
            self.add_chunk(id, words.clone(), bytes);
        }
        if let Some(last) = self.chunks.back_mut() {
            let before = last.heap_bytes();
            last.append(id, words, limits);
            self.held += last.heap_bytes() - before;
        }
        if self.len == 0 {
            self.first = id;
        }
        self.len += 1;
        self.added += 1;
        self.last = id;
    }

    fn add_chunk<'f>(
        &mut self,
        id: StreamId,
        words: impl ExactSizeIterator<Item = &'f [u8]>,
        bytes: usize,
    ) {
        if let Some(full) = self.chunks.back_mut() {
            let before = full.heap_bytes();
            full.close();
            self.held = self.held + full.heap_bytes() - before;
        }
        let chunk = Chunk::new(id, words.step_by(2), bytes);
        self.held += chunk.heap_bytes();
        self.chunks.push_back(chunk);
    }

    /// The number of the chunk in which an id is or would be.
    pub(super) fn chunk_of(&self, id: StreamId) -> Option<usize> {
        let behind = self.chunks.partition_point(|chunk| chunk.first() <= id);
        behind.checked_sub(1)
    }

    /// The chunk and the place of an entry that lives.
    fn locate(&self, id: StreamId) -> Option<(usize, usize)> {
        let number = self.chunk_of(id)?;
        let places = self.chunks[number].places();
        let place = places.take_while(|place| place.entry.id <= id).last()?;
        (place.entry.id == id && !place.is_deleted).then_some((number, place.at))
    }

    /// True if an entry is there.
    #[must_use]
    pub fn contains(&self, id: StreamId) -> bool {
        self.locate(id).is_some()
    }

    /// Deletes an entry; returns whether it was there. O(chunk).
    pub fn delete(&mut self, id: StreamId) -> bool {
        let Some((number, at)) = self.locate(id) else {
            return false;
        };
        self.mark_deleted(number, at);
        self.max_deleted = self.max_deleted.max(id);
        if id == self.first {
            self.find_first();
        }
        true
    }

    pub(super) fn mark_deleted(&mut self, number: usize, at: usize) {
        self.chunks[number].mark_deleted(at);
        self.len -= 1;
        if self.chunks[number].live() == 0 {
            self.drop_chunk(number);
        }
    }

    fn drop_chunk(&mut self, number: usize) {
        if let Some(chunk) = self.chunks.remove(number) {
            self.held -= chunk.heap_bytes();
        }
        self.tighten();
    }

    pub(super) fn tighten(&mut self) {
        if self.chunks.len() < self.chunks.capacity() / 4 {
            self.chunks.shrink_to(self.chunks.len() * 2);
        }
    }

    /// Reads the lowest id anew.
    pub(super) fn find_first(&mut self) {
        let first = self.chunks.front().and_then(Chunk::first_live);
        self.first = first.unwrap_or_default();
    }

    /// Sets the highest id, as XSETID does.
    pub fn set_last_id(&mut self, id: StreamId) {
        self.last = id;
    }

    /// Sets how many entries were added.
    pub fn set_entries_added(&mut self, added: u64) {
        self.added = added;
    }

    /// Sets the highest deleted id.
    pub fn set_max_deleted_id(&mut self, id: StreamId) {
        self.max_deleted = id;
    }

    pub(super) fn validate(&self) {
        let (mut len, mut above) = (0, None);
        for chunk in &self.chunks {
            chunk.validate();
            assert!(chunk.live() > 0, "a chunk without living entries");
            assert!(
                above.is_none_or(|above| above < chunk.first()),
                "order of chunks"
            );
            above = chunk.last();
            len += chunk.live() as u64;
        }
        assert_eq!(len, self.len, "entries");
        assert!(above.is_none_or(|above| above <= self.last), "the last id");
        let first = self.chunks.front().and_then(Chunk::first_live);
        assert_eq!(first.unwrap_or_default(), self.first, "the first id");
        let held: usize = self.chunks.iter().map(Chunk::heap_bytes).sum();
        assert_eq!(held, self.held, "bytes of chunks");
    }
}
