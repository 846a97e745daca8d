//! Snapshots: all data in a file, and back.
//!
//! SAVE, and the server when it stops, write the file while nobody else uses the keyspace. BGSAVE,
//! and the server at save points, write it while everybody goes on: loops walk over their shards
//! (`upkeep/snapshot.rs`), and a thread writes. It is written beside the old one and takes its place when it is whole and on disk, so there is a whole file at any
//! time. The server loads it before it lets clients in; a file that it cannot load keeps it from
//! starting.
//!
//! | file | idea |
//! |---|---|
//! | `anchor.rs` | how much time has passed since a file was written |
//! | `save.rs`, `load.rs` | write the file, and read it |

mod anchor;
mod load;
mod save;

pub(crate) use self::load::{Stays, check, load, load_functions, load_keys, offset_of, read};
pub(crate) use self::save::{begin, save, save_and_pause};
