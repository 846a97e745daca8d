//! The harness itself: servers start, are killed, paused and joined.

mod nats;
mod postgres;
mod valkey;
