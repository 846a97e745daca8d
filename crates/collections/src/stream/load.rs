//! Streams from and to the public form.

use super::Stream;
use super::chunk::Chunk;
use super::id::StreamId;
use super::log::Log;

impl Log {
    /// Appends a chunk in the public form, which comes from anywhere: all of it is checked. `None`
    /// if it is none, or not behind the ids that are here. A chunk without living entries is left
    /// out.
    pub fn push_public(&mut self, first: StreamId, public: &[u8]) -> Option<()> {
        let chunk = Chunk::read(first, public)?;
        if self
            .chunks
            .back()
            .and_then(Chunk::last)
            .is_some_and(|last| first <= last)
        {
            return None;
        }
        self.last = self.last.max(chunk.last()?);
        if chunk.live() > 0 {
            self.len += chunk.live() as u64;
            self.held += chunk.heap_bytes();
            self.chunks.push_back(chunk);
        }
        if self.chunks.len() == 1 {
            self.find_first();
        }
        Some(())
    }

    /// Calls `sink` with each chunk's first id and its public form.
    pub fn for_each_public(&self, mut sink: impl FnMut(StreamId, &[u8])) {
        let mut public = Vec::new();
        for chunk in &self.chunks {
            public.clear();
            chunk.write(&mut public);
            sink(chunk.first(), &public);
        }
    }
}

impl Stream {
    /// Panics if the structure is broken. O(n).
    pub fn validate(&self) {
        self.log.validate();
        self.groups.validate();
    }
}
