//! The log: each change, on disk. `tidewheel-log` has the files; here is what goes in and out.
//!
//! ```text
//! commands ──records──► queue ──take──► writer ──frames──► segment 8     base-8.rdb
//!                                          │                             (a snapshot)
//!                replies that are held ◄───┘ so many records are on disk
//! ```
//!
//! 1. A command records what it has changed before it unlocks (`tidewheel-keyspace`, `records`).
//! 2. The thread that writes takes all records that wait, and appends them as one frame.
//! 3. `appendfsync` says when it syncs: `always`, as soon as it has written; `everysec`, once a
//!    second; `no`, never. With `always`, what has come while a sync was under way is the next
//!    frame, so one sync serves all who wait. WAITAOF asks for a sync whatever the policy is.
//! 4. With `always`, bytes leave a connection only when all records are on disk that had been made
//!    before they were to leave. So no client sees what a crash takes back: neither its own changes
//!    nor those of others. That is at the only two places where bytes leave, `Turn::send` and
//!    `Link::send_output`. A script or a transaction is recorded at its end. If others are told of
//!    something before, by a message, an event or a monitor's line, its record counts from then on,
//!    and what they are told waits for it, and so does all that others record meanwhile.
//! 5. A new base (BGREWRITEAOF, or when the log has grown enough): the records are cut while nobody
//!    is inside, and a snapshot begins at the same moment. At the cut the writer begins a segment.
//!    When the snapshot is on disk under that segment's name, the log is synced, with the time: the
//!    snapshot may lack what has expired since it began. Then what is older goes.
//!
//! # A restart
//!
//! The base is loaded, and each record runs at its own time. Meanwhile nothing expires: a record
//! finds what its command has found. Engine time then goes on where the last frame has left it,
//! plus the time since, which a clock measures that nobody sets. So each key has the time left that
//! it had, less what has passed. What had died before the last frame was announced then, and leaves
//! in silence; what has died since is announced.
//!
//! An entry of a stream of expired keys is data, and is there once. `expired-stream` is recorded
//! when it changes, so a replay knows which keys owe an entry. A record that appends one pays: the
//! key leaves, if it is there, or its event, if another record has found it dead. Who still owes
//! one at the end is announced.
//!
//! # When it cannot be written
//!
//! Commands that change data are refused (`-MISCONF`), and reads go on. A write that has failed,
//! for example because the disk is full, is tried again ten times a second. After a sync has
//! failed, what the system still holds cannot be trusted; the first loop begins a new base, and
//! when it is on disk, changes are accepted again.
//!
//! | file | idea |
//! |---|---|
//! | `recover.rs` | what is on disk becomes the data |
//! | `writer.rs` | takes records, and brings them to disk |
//! | `thread.rs` | the thread that does so |
//! | `rewrite.rs` | a new base |
//! | `file.rs` | a file of the log's folder, from its beginning to its end |

mod file;
mod recover;
mod rewrite;
mod thread;
mod writer;

use tidewheel_keyspace::Time;
use tidewheel_log::Moment;

#[cfg(test)]
pub(crate) use self::recover::recover_from;
pub(crate) use self::recover::{Recovered, beginning, moment_of_base, recover};
#[cfg(test)]
pub(crate) use self::rewrite::{conclude, write_file};
pub(crate) use self::rewrite::{folder, is_due, rewrite};
pub(crate) use self::thread::LogThreads;
#[cfg(test)]
pub(crate) use self::thread::{Beside, LogThread, LogTurn};
use crate::config::{ConfigKey, Settings};
use crate::state::server::Server;
use crate::time::clock::Clock;

/// The setting that is recorded when it changes.
pub(crate) const STREAMS: &[u8] = b"expired-stream";

/// What a segment's header says: the form of the records, and which start of the machine it was.
fn header(clock: &Clock) -> String {
    format!("records 1 boot {}", clock.boot_id().unwrap_or_default())
}

/// The start of the machine that a header names.
fn boot_of(header: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(header).ok()?;
    text.strip_prefix("records 1 boot ")
}

/// True if this program knows the form of the records behind this header.
pub(crate) fn are_known(header: &[u8]) -> bool {
    boot_of(header).is_some()
}

/// Has it recorded where what expires goes from now on: a restart must know which keys owe an
/// entry.
pub(crate) fn record_streams(server: &Server, settings: &Settings, time: Time) {
    let text = settings.expired_streams.to_string();
    let words = [&b"CONFIG"[..], b"SET", STREAMS, text.as_bytes()];
    server.keyspace.record(time, &words);
}

/// Has those changes of settings recorded that a restart must know.
pub(crate) fn record_changes(
    server: &Server,
    changes: &[(&ConfigKey, &str)],
    settings: &Settings,
    time: Time,
) {
    if changes
        .iter()
        .any(|(key, _)| key.name.as_bytes() == STREAMS)
    {
        record_streams(server, settings, time);
    }
}

/// This moment, as frames say it. Its tick is engine time.
fn moment(server: &Server) -> Moment {
    let time = server.clock.now();
    Moment {
        tick: server.keyspace.engine_time(time).tick,
        wall_ms: time.wall_ms(),
        boot_us: server.clock.tick_to_boot_us(time.tick).unwrap_or(0),
    }
}
