//! Entries between two ids, in either order.

use super::chunk::StreamEntry;
use super::id::StreamId;
use super::log::Log;

impl Log {
    /// The entries from `start` to `end`, both inclusive. To find the first takes O(chunk).
    pub fn range(&self, start: StreamId, end: StreamId) -> impl Iterator<Item = StreamEntry<'_>> {
        let mut number = self.chunk_of(start).unwrap_or(0);
        let mut at = self.chunks.get(number).map_or(0, |chunk| chunk.start());
        std::iter::from_fn(move || {
            loop {
                let chunk = self.chunks.get(number)?;
                let Some(place) = chunk.entry(at) else {
                    number += 1;
                    at = self.chunks.get(number)?.start();
                    continue;
                };
                at = place.end;
                if place.entry.id > end {
                    number = self.chunks.len();
                    return None;
                }
                if place.entry.id >= start && !place.is_deleted {
                    return Some(place.entry);
                }
            }
        })
    }

    /// The entries from `end` down to `start`, both inclusive.
    pub fn range_back(
        &self,
        start: StreamId,
        end: StreamId,
    ) -> impl Iterator<Item = StreamEntry<'_>> {
        let mut number = self.chunk_of(end);
        let mut at = number.map_or(0, |number| self.chunks[number].end());
        std::iter::from_fn(move || {
            loop {
                let chunk = &self.chunks[number?];
                let Some(place) = chunk.entry_before(at) else {
                    number = number?.checked_sub(1);
                    at = self.chunks[number?].end();
                    continue;
                };
                at = place.at;
                if place.entry.id < start {
                    number = None;
                    return None;
                }
                if place.entry.id <= end && !place.is_deleted {
                    return Some(place.entry);
                }
            }
        })
    }

    /// The entry with an id.
    #[must_use]
    pub fn get(&self, id: StreamId) -> Option<StreamEntry<'_>> {
        self.range(id, id).next()
    }
}
