//! Snapshots: all data in a file of the public format (RDB), which stock servers load, and back.
//!
//! ```text
//! REDIS0010
//! 250 name value          what is known of the file: who wrote it, and when; any number of these
//! 245 code                a library of functions
//! 254 number              the database of the keys that follow
//! 251 keys, with-deadline
//! [250 tidewheel-members deadlines] [252 deadline] type key value
//! 255 checksum
//! ```
//!
//! The values are those of DUMP. A key's deadline is wall time in milliseconds.
//!
//! Version 10 has no word for deadlines of members. They stand in front of the key, in a field that
//! other servers skip: eight bytes for each member, in the order of the members, 0 for none. So
//! these members live for ever where a stock server loads the file.
//!
//! | file | idea |
//! |---|---|
//! | `save.rs` | walks the keyspace, and writes each key |
//! | `load.rs` | reads a file, and stores each key |
//! | `input.rs` | counts and sums the bytes that are read |
//! | `cut.rs` | where a value ends |

mod cut;
mod error;
mod input;
mod load;
mod save;

pub use self::error::SnapshotError;
pub use self::load::{Fields, Loaded};
pub use self::save::Saved;

/// The magic bytes and the version.
const HEADER: &[u8; 9] = b"REDIS0010";

/// The field with the deadlines of the members of the key that follows.
const MEMBERS: &[u8] = b"tidewheel-members";

/// The marks between the keys.
mod mark {
    pub(super) const SLOT_INFO: u8 = 244;
    pub(super) const FUNCTION: u8 = 245;
    pub(super) const MODULE_AUX: u8 = 247;
    pub(super) const IDLE: u8 = 248;
    pub(super) const FREQUENCY: u8 = 249;
    pub(super) const AUX: u8 = 250;
    pub(super) const SIZES: u8 = 251;
    pub(super) const DEADLINE_MS: u8 = 252;
    pub(super) const DEADLINE_S: u8 = 253;
    pub(super) const DATABASE: u8 = 254;
    pub(super) const END: u8 = 255;
}
