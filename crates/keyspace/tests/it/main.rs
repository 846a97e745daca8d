//! The keyspace as its users see it: one binary, so that its code is linked once.

mod against_model;
#[cfg(unix)]
mod against_redis;
mod bitmaps;
mod common;
mod compare;
mod concurrency;
mod deadlines;
mod dumps;
mod eviction;
mod expired_streams;
mod geo;
mod hashes;
mod hyperloglogs;
mod key_positions;
mod keys;
mod lists;
mod long;
mod member_deadlines;
mod memory_limit;
mod memory_room;
mod notifications;
#[cfg(unix)]
mod portable;
mod records;
mod redis;
mod reply_limits;
mod rows;
mod scripts;
mod sets;
mod snapshots;
mod sorting;
mod streams;
mod strings;
mod tracking;
mod transactions;
mod waiting;
mod walks;
mod whole_keyspace;
mod zsets;
