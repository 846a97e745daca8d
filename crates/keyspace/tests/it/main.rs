//! The keyspace as its users see it: one binary, so that its code is linked once.

mod common;
mod concurrency;
mod deadlines;
mod keys;
mod memory_limit;
mod memory_room;
mod model_keyspace;
mod notifications;
mod reply_limits;
mod strings;
mod walks;
mod whole_keyspace;
