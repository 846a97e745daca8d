//! Removes the oldest entries.

use std::collections::VecDeque;

use super::chunk::Chunk;
use super::id::StreamId;
use super::log::Log;

/// The entries that stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// So many of the newest entries.
    Len(u64),
    /// Entries from this id on.
    From(StreamId),
}

/// The way in which entries are trimmed.
#[derive(Debug, Clone, Copy)]
pub struct Trim {
    /// The entries that stay.
    pub keep: Keep,
    /// Only whole chunks leave.
    pub approximate: bool,
    /// The most entries that leave; 0 is no limit.
    pub limit: u64,
}

/// Chunks that were trimmed. Dropping them frees them.
#[derive(Debug)]
pub struct Trimmed {
    chunks: VecDeque<Chunk>,
    /// The number of entries that have left.
    pub entries: u64,
}

impl Trimmed {
    /// The chunks as a log, which somebody else may drop.
    #[must_use]
    pub fn into_log(self) -> Log {
        let held = self.chunks.iter().map(Chunk::heap_bytes).sum();
        Log {
            chunks: self.chunks,
            held,
            ..Log::default()
        }
    }

    /// The number of chunks.
    #[must_use]
    pub fn chunks(&self) -> usize {
        self.chunks.len()
    }
}

impl Log {
    /// Removes entries from the front: whole chunks, which are handed back, and then some of one
    /// chunk. Takes a step for each chunk.
    pub fn trim(&mut self, trim: Trim) -> Trimmed {
        let (mut whole, mut entries, mut is_enough) = (0, 0, false);
        for chunk in &self.chunks {
            let live = chunk.live() as u64;
            is_enough = match trim.keep {
                Keep::Len(most) => self.len - entries <= most,
                Keep::From(_) => false,
            } || trim.limit > 0 && entries + live > trim.limit;
            let leaves = match trim.keep {
                Keep::Len(most) => (self.len - entries).saturating_sub(live) >= most,
                Keep::From(id) => chunk.last().is_some_and(|last| last < id),
            };
            if is_enough || !leaves {
                break;
            }
            entries += live;
            whole += 1;
        }
        let chunks: VecDeque<_> = self.chunks.drain(..whole).collect();
        self.held -= chunks.iter().map(Chunk::heap_bytes).sum::<usize>();
        self.len -= entries;
        if !trim.approximate && !is_enough && !self.chunks.is_empty() {
            entries += self.trim_chunk(trim.keep);
        }
        if entries > 0 {
            self.tighten();
            self.find_first();
        }
        Trimmed { chunks, entries }
    }

    /// Deletes entries of the first chunk.
    fn trim_chunk(&mut self, keep: Keep) -> u64 {
        let (mut at, mut gone) = (self.chunks[0].start(), 0);
        while let Some(place) = self.chunks[0].entry(at) {
            let stays = match keep {
                Keep::Len(most) => self.len <= most,
                Keep::From(id) => place.entry.id >= id,
            };
            if stays {
                break;
            }
            let (this, is_deleted) = (place.at, place.is_deleted);
            at = place.end;
            if !is_deleted {
                gone += 1;
                let is_last = self.chunks[0].live() == 1;
                self.mark_deleted(0, this);
                if is_last {
                    break;
                }
            }
        }
        gone
    }
}
