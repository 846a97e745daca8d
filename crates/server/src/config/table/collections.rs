//! Rows about packed collections.

use super::{ChangeTime, ConfigKey, Group, put};
use crate::config::value::{integer, memory_within, signed};

/// The largest number that the protocol's servers take for these.
const MAX: u64 = i64::MAX as u64;

pub(super) static KEYS: &[ConfigKey] = &[
    ConfigKey {
        name: "hash-max-listpack-entries",
        value: "N",
        help: "fields of a hash that is stored in one piece",
        group: Group::Collections,
        change: ChangeTime::Live,
        get: |s| s.collections.hash.entries.to_string(),
        set: |s, v| put(&mut s.collections.hash.entries, integer(v, 0, MAX)?),
    },
    ConfigKey {
        name: "hash-max-listpack-value",
        value: "BYTES",
        help: "longest field or value of a hash that is stored in one piece",
        group: Group::Collections,
        change: ChangeTime::Live,
        get: |s| s.collections.hash.value.to_string(),
        set: |s, v| put(&mut s.collections.hash.value, memory_within(v, 0, MAX)?),
    },
    ConfigKey {
        name: "list-max-listpack-size",
        value: "N",
        help: "size of a piece of a list: elements, or -1 to -5 for 4 to 64 KiB",
        group: Group::Collections,
        change: ChangeTime::Live,
        get: |s| s.collections.list_size.to_string(),
        set: |s, v| {
            let (min, max) = (i32::MIN.into(), i32::MAX.into());
            put(&mut s.collections.list_size, signed(v, min, max)? as i32)
        },
    },
    ConfigKey {
        name: "list-compress-depth",
        value: "N",
        help: "accepted, without effect: lists are not compressed",
        group: Group::Ignored,
        change: ChangeTime::Live,
        get: |s| s.collections.list_compress_depth.to_string(),
        set: |s, v| {
            let depth = integer(v, 0, i32::MAX as u64)? as u32;
            put(&mut s.collections.list_compress_depth, depth)
        },
    },
    ConfigKey {
        name: "set-max-intset-entries",
        value: "N",
        help: "members of a set of whole numbers that is stored in one piece",
        group: Group::Collections,
        change: ChangeTime::Live,
        get: |s| s.collections.intset_entries.to_string(),
        set: |s, v| put(&mut s.collections.intset_entries, integer(v, 0, MAX)?),
    },
    ConfigKey {
        name: "set-max-listpack-entries",
        value: "N",
        help: "members of a set that is stored in one piece",
        group: Group::Collections,
        change: ChangeTime::Live,
        get: |s| s.collections.set.entries.to_string(),
        set: |s, v| put(&mut s.collections.set.entries, integer(v, 0, MAX)?),
    },
    ConfigKey {
        name: "set-max-listpack-value",
        value: "BYTES",
        help: "longest member of a set that is stored in one piece",
        group: Group::Collections,
        change: ChangeTime::Live,
        get: |s| s.collections.set.value.to_string(),
        set: |s, v| put(&mut s.collections.set.value, memory_within(v, 0, MAX)?),
    },
    ConfigKey {
        name: "zset-max-listpack-entries",
        value: "N",
        help: "members of a sorted set that is stored in one piece",
        group: Group::Collections,
        change: ChangeTime::Live,
        get: |s| s.collections.zset.entries.to_string(),
        set: |s, v| put(&mut s.collections.zset.entries, integer(v, 0, MAX)?),
    },
    ConfigKey {
        name: "zset-max-listpack-value",
        value: "BYTES",
        help: "longest member of a sorted set that is stored in one piece",
        group: Group::Collections,
        change: ChangeTime::Live,
        get: |s| s.collections.zset.value.to_string(),
        set: |s, v| put(&mut s.collections.zset.value, memory_within(v, 0, MAX)?),
    },
    ConfigKey {
        name: "hll-sparse-max-bytes",
        value: "BYTES",
        help: "longest HyperLogLog in the sparse form",
        group: Group::Collections,
        change: ChangeTime::Live,
        get: |s| s.collections.hll_sparse_bytes.to_string(),
        set: |s, v| {
            let bytes = memory_within(v, 0, MAX)?;
            put(&mut s.collections.hll_sparse_bytes, bytes)
        },
    },
    ConfigKey {
        name: "stream-node-max-bytes",
        value: "BYTES",
        help: "size of a piece of a stream; 0 is no limit",
        group: Group::Collections,
        change: ChangeTime::Live,
        get: |s| s.collections.stream_bytes.to_string(),
        set: |s, v| put(&mut s.collections.stream_bytes, memory_within(v, 0, MAX)?),
    },
    ConfigKey {
        name: "stream-node-max-entries",
        value: "N",
        help: "entries of a piece of a stream; 0 is no limit",
        group: Group::Collections,
        change: ChangeTime::Live,
        get: |s| s.collections.stream_entries.to_string(),
        set: |s, v| put(&mut s.collections.stream_entries, integer(v, 0, MAX)?),
    },
];
