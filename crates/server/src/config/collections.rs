//! Settings of packed collections: the limits up to which small collections stay packed.

use std::sync::atomic::Ordering;

use tidewheel_keyspace::{PackedLimit, Packing};

/// The settings of packed collections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Collections {
    pub(crate) hash: CollectionLimits,
    pub(crate) set: CollectionLimits,
    pub(crate) zset: CollectionLimits,
    pub(crate) intset_entries: u64,
    pub(crate) list_size: i32,
    /// A number without effect: lists are not compressed.
    pub(crate) list_compress_depth: u32,
    pub(crate) hll_sparse_bytes: u64,
    pub(crate) stream_bytes: u64,
    pub(crate) stream_entries: u64,
}

/// Limits of one type: the most members, and the most bytes of a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CollectionLimits {
    pub(crate) entries: u64,
    pub(crate) value: u64,
}

impl CollectionLimits {
    const fn new(entries: u64, value: u64) -> Self {
        Self { entries, value }
    }

    /// Converts the limits to the keyspace's 32 bits: no packed collection comes near.
    fn packed(&self) -> PackedLimit {
        let clamped = |number| u32::try_from(number).unwrap_or(u32::MAX);
        PackedLimit {
            entries: clamped(self.entries),
            value: clamped(self.value),
        }
    }
}

impl Default for Collections {
    fn default() -> Self {
        Self {
            hash: CollectionLimits::new(512, 64),
            set: CollectionLimits::new(128, 64),
            zset: CollectionLimits::new(128, 64),
            intset_entries: 512,
            list_size: -2,
            list_compress_depth: 0,
            hll_sparse_bytes: 3_000,
            stream_bytes: 4096,
            stream_entries: 100,
        }
    }
}

impl Collections {
    /// Puts them into force.
    pub(crate) fn apply(&self, packing: &Packing) {
        packing.hash.set(self.hash.packed());
        packing.set.set(self.set.packed());
        packing.zset.set(self.zset.packed());
        let stored = Ordering::Relaxed;
        packing.intset_entries.store(self.intset_entries, stored);
        packing
            .hll_sparse_bytes
            .store(self.hll_sparse_bytes, stored);
        packing.set_list(self.list_size);
        packing.stream_bytes.store(self.stream_bytes, stored);
        packing.stream_entries.store(self.stream_entries, stored);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_of_the_settings_are_those_of_the_keyspace() {
        let (set, fresh) = (Packing::default(), Packing::default());
        set.hash.set(CollectionLimits::new(1, 1).packed());
        set.set_list(1);
        Collections::default().apply(&set);
        assert_eq!(format!("{set:?}"), format!("{fresh:?}"));
    }

    #[test]
    fn numbers_beyond_32_bits_are_no_limit() {
        let limit = CollectionLimits::new(1 << 40, u64::MAX).packed();
        assert_eq!((limit.entries, limit.value), (u32::MAX, u32::MAX));
    }
}
