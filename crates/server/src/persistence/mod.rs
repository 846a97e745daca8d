//! Snapshots: all data in a file, and back.
//!
//! SAVE, and the server when it stops, write the file while nobody else uses the keyspace. BGSAVE,
//! and the server at save points, write it while everybody goes on: loops walk over their shards
//! (`upkeep/snapshot.rs`), and a thread writes. It is written beside the old one and takes its
//! place when it is whole and on disk, so there is a whole file at any time.
//!
//! The server listens first, and then loads the file. Clients are answered `-LOADING` meanwhile, so
//! they see no key before all are there: a bit of the gate says so, which each command reads
//! anyway. Nothing expires and nothing is evicted until the end. A file that cannot be loaded ends
//! the server. If it is asked to stop, it stops at the next read of the file, and saves nothing.
//!
//! | file | idea |
//! |---|---|
//! | `anchor.rs` | how much time has passed since a file was written |
//! | `save.rs`, `load.rs` | write the file, and read it |
//! | `log/` | each change, on disk |
//! | `watched.rs` | how much of the file is read while it is loaded |

mod anchor;
mod load;
pub(crate) mod log;
mod save;
mod watched;

use crate::state::server::Server;

/// Says for people how many keys there are, and what keeps them over a restart.
pub(crate) fn what_is_kept(server: &Server) -> String {
    let (settings, keys) = (server.config.current(), server.keys());
    let by = match (settings.append_only, settings.save_points.are_any()) {
        (true, _) => format!("kept by the log in {}", log::folder(&settings).display()),
        (false, true) => format!("kept by snapshots in {}", server.snapshots.path().display()),
        (false, false) => "none are kept over a restart (see --save, --appendonly)".to_owned(),
    };
    format!("{keys} keys, {by}")
}

pub(crate) use self::anchor::Anchor;
pub(crate) use self::load::{Stays, check, load, load_functions, load_keys, offset_of, read};
#[cfg(test)]
pub(crate) use self::save::preface;
pub(crate) use self::save::{begin, claim, save, save_and_pause};

/// Takes the snapshot file for this server, if it saves there by itself and its folder is there. If
/// nothing can be written there, nobody writes there, and who tries is told.
///
/// # Errors
///
/// If another server has it: each would write over what the other has saved.
pub(crate) fn claim_if_it_saves(server: &Server) -> std::io::Result<()> {
    let snapshots = &server.snapshots;
    if !server.config.current().save_points.are_any() || !snapshots.folder.is_dir() {
        return Ok(());
    }
    match snapshots.claim() {
        Err(why) if why.kind() == std::io::ErrorKind::WouldBlock => Err(why),
        _ => Ok(()),
    }
}
