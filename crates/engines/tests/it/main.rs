//! The harness itself: servers start, are killed, paused and joined.

mod valkey;
