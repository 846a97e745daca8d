//! Snapshots: all data in a file of the public format (RDB), which stock servers load, and back.
//!
//! ```text
//! REDIS0010
//! 250 name value          what is known of the file: who wrote it, and when; any number of these
//! 245 code                a library of functions
//! 254 number              the database of the keys that follow
//! 251 keys, with-deadline
//! [252 deadline] type key value [250 tidewheel-members deadlines]
//! 255 checksum
//! ```
//!
//! The values are those of DUMP. A key's deadline is wall time in milliseconds.
//!
//! Version 10 has no word for deadlines of members, and no version has one for those of sets and
//! sorted sets. They stand behind the value, in a field that other servers skip: eight bytes for
//! each member, in the order of the members, 0 for none. So these members live for ever where a
//! stock server loads the file. Versions 12 and 80 ([`FileFormat`](crate::FileFormat)) have a type
//! for fields with deadlines.
//!
//! # Without a stall
//!
//! [`Keyspace::save`](crate::Keyspace::save) needs the whole keyspace for as long as it takes. A
//! snapshot in the background shows one moment too, and nobody waits for it:
//!
//! 1. At that moment each database of each shard that holds something gets a [part](part). From
//!    here on the funnel calls it before each change.
//! 2. Each loop walks over its own shards in slices, in the order of the hashes, and copies entries
//!    as they lie in memory. An entry ahead of the walk is copied before it is changed for the
//!    first time.
//! 3. A collection with many members is *opened* instead: its members are walked over in the same
//!    way, at the end, one collection after the other.
//! 4. A thread that locks no shard takes the copies from a [channel](channel), and writes the file.
//!
//! A key that dies meanwhile need not be in the file: who reads it finds the key dead.
//!
//! **An object that is opened belongs to one part.** If its key is removed or overwritten, the
//! object goes to the thread. If it moves to another key, it belongs to the part there from then
//! on; if all was shown there already, a new part comes for it alone. The file has it under the key
//! that it had. A database that is emptied goes to the thread as a whole, with its part.
//!
//! | file | idea |
//! |---|---|
//! | `save.rs` | writes all data at once |
//! | `background.rs` | begins a snapshot in the background, and walks over a shard |
//! | `part.rs` | one database's part in it, and what it copies |
//! | `channel.rs` | from the loops to the thread that writes |
//! | `write.rs` | what that thread does |
//! | `batch.rs` | copies of entries |
//! | `output.rs` | the file, and its checksum |
//! | `reader.rs` | reads a file, and hands out what stands in it |
//! | `load.rs` | stores each key of a file |
//! | `value.rs` | shows a value of a file |
//! | `input.rs` | counts and sums the bytes that are read |
//! | `cut.rs` | where a value ends |

mod background;
mod batch;
mod channel;
mod cut;
mod error;
mod input;
mod load;
mod output;
mod part;
mod reader;
mod save;
mod value;
mod write;

pub use self::background::Walked;
pub use self::channel::{SnapshotCourse, SnapshotFailure, SnapshotLimits};
pub use self::error::SnapshotError;
pub use self::load::{Fields, LoadRules, Loaded};
pub use self::output::Saved;
pub(crate) use self::part::{MovedWalk, Part, Stays};
pub use self::reader::{Checksum, SnapshotItem, SnapshotKey, SnapshotReader};
pub use self::value::{SnapshotPart, SnapshotValue, SnapshotValues};
pub use self::write::Snapshot;

/// The field with the deadlines of the members of the key before it.
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
