//! The limits up to which a collection stays packed. A packed one is a short piece of memory, which
//! is read from its start.

use std::sync::atomic::{AtomicI32, AtomicU64, Ordering::Relaxed};

use tidewheel_collections::{ListLimits, StreamLimits};

/// The most that a packed collection may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PackedLimit {
    /// Members; of a hash, fields.
    pub entries: u32,
    /// Bytes of one member; of a hash, of one field or value.
    pub value: u32,
}

/// The limits in force. Each is read with one relaxed load.
#[derive(Debug)]
pub struct Packing {
    /// `hash-max-listpack-entries` and `hash-max-listpack-value`.
    pub hash: AtomicPackedLimit,
    /// `set-max-listpack-entries` and `set-max-listpack-value`.
    pub set: AtomicPackedLimit,
    /// `zset-max-listpack-entries` and `zset-max-listpack-value`.
    pub zset: AtomicPackedLimit,
    /// Members of a set of whole numbers (`set-max-intset-entries`).
    pub intset_entries: AtomicU64,
    /// Bytes of a sparse HyperLogLog (`hll-sparse-max-bytes`).
    pub hll_sparse_bytes: AtomicU64,
    list: AtomicI32,
    /// Bytes of a part of a stream (`stream-node-max-bytes`); 0 is no limit.
    pub stream_bytes: AtomicU64,
    /// Entries of a part of a stream (`stream-node-max-entries`); 0 is no limit.
    pub stream_entries: AtomicU64,
}

/// A [`PackedLimit`] that may change. Readers never see half of a change.
#[derive(Debug)]
pub struct AtomicPackedLimit(AtomicU64);

impl AtomicPackedLimit {
    const fn new(limit: PackedLimit) -> Self {
        Self(AtomicU64::new(limit.as_bits()))
    }

    /// The limit in force.
    #[inline]
    #[must_use]
    pub fn get(&self) -> PackedLimit {
        let bits = self.0.load(Relaxed);
        PackedLimit {
            entries: (bits >> 32) as u32,
            value: bits as u32,
        }
    }

    /// Puts another one into force.
    pub fn set(&self, limit: PackedLimit) {
        self.0.store(limit.as_bits(), Relaxed);
    }
}

impl PackedLimit {
    const fn as_bits(self) -> u64 {
        (self.entries as u64) << 32 | self.value as u64
    }
}

impl Default for Packing {
    fn default() -> Self {
        let limit = |entries, value| AtomicPackedLimit::new(PackedLimit { entries, value });
        Self {
            hash: limit(512, 64),
            set: limit(128, 64),
            zset: limit(128, 64),
            intset_entries: AtomicU64::new(512),
            hll_sparse_bytes: AtomicU64::new(3_000),
            list: AtomicI32::new(-2),
            stream_bytes: AtomicU64::new(4096),
            stream_entries: AtomicU64::new(100),
        }
    }
}

impl Packing {
    /// The limits of lists.
    #[inline]
    #[must_use]
    pub fn list(&self) -> ListLimits {
        ListLimits::new(self.list.load(Relaxed).into())
    }

    /// The limits of a part of a stream.
    #[inline]
    #[must_use]
    pub fn stream(&self) -> StreamLimits {
        let of = |limit: &AtomicU64| usize::try_from(limit.load(Relaxed)).unwrap_or(usize::MAX);
        StreamLimits {
            bytes: of(&self.stream_bytes),
            entries: of(&self.stream_entries),
        }
    }

    /// Sets the limits of lists, as `list-max-listpack-size` writes it.
    pub fn set_list(&self, size: i32) {
        self.list.store(size, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_numbers_of_a_limit_change_at_once() {
        let packing = Packing::default();
        let (entries, value) = (u32::MAX, 7);
        packing.hash.set(PackedLimit { entries, value });
        assert_eq!(packing.hash.get(), PackedLimit { entries, value });
    }
}
