//! Records: each change of data that a command has made, in the order of the changes, for a log
//! from which the same data can be made again.
//!
//! 1. While [`Keyspace::start_recording`](crate::Keyspace::start_recording) is on, the funnel marks
//!    the hold of a shard in which something has changed.
//! 2. Before a command releases its locks, it writes what has changed it into the [queue](queue):
//!    itself, as it was sent, for most rows ([`Recorded`]). A hold that is marked and released
//!    without that panics in debug builds.
//! 3. The shell [takes](crate::Keyspace::take_records) what waits, in the order in which it came.
//! 4. [`Keyspace::replay`](crate::Keyspace::replay) runs a record at the time at which it was
//!    written.
//!
//! # Why nothing is recorded when something expires
//!
//! A key is dead once its deadline is reached, whether or not it was removed. A record has the time
//! at which its command ran, and a shard's time never goes back. So the command finds the same keys
//! dead when it runs again at that time.
//!
//! # What a record may depend on
//!
//! On its own time, and on the keys that it changes. SUNIONSTORE reads keys that it does not
//! change, SPOP draws lots, BLPOP takes from one of several keys: such rows are recorded as what
//! they have done.
//!
//! # The bytes
//!
//! ```text
//! 1  engine tick (8 bytes), microseconds (2), wall time in ms (8), database (number)
//! 2  words (number), and for each its length (number) and bytes
//! 3  length (number) of what follows and is one: a transaction's or a script's records
//! ```
//!
//! A command (2) ran at the time and in the database that the last 1 names. Fixed numbers are
//! little-endian. The others have seven bits in each byte, the lowest first, and the highest bit
//! set in all but the last. What is taken at once begins with a 1, so it can be read by itself.

mod encoder;
mod queue;
mod reader;
mod waiting;

pub(crate) use self::encoder::Encoder;
pub(crate) use self::queue::RecordQueue;
pub use self::queue::TakenRecords;
pub use self::reader::{DamagedRecords, Record, RecordReader};

const WHEN: u8 = 1;
const COMMAND: u8 = 2;
const GROUP: u8 = 3;

/// How a row that changes data is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Recorded {
    /// As it was sent.
    AsSent,
    /// As the values of the keys that it has written, which it has made of others.
    AsResult,
}

/// The moment of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct When {
    tick: u64,
    micros: u16,
    wall_ms: i64,
    db: u32,
}
