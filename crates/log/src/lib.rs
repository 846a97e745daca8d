//! A durable log of byte records in files, and a simulated disk to test it.
//!
//! The log knows nothing of what the records mean. It keeps a *base*, a file with all data at some
//! moment, and frames: what came after it, in order. Its promises, after a crash of the process or
//! of the machine at any moment:
//!
//! 1. Everything up to [`Log::synced`] is there, in order and unaltered.
//! 2. What else is there is a beginning of what was appended after it: whole frames, no gap.
//! 3. If the disk has lost or altered what was synced, and the log can know that, then it is not
//!    opened; the error says where. It never passes for a shorter log.
//!
//! ```no_run
//! use tidewheel_log::{Log, Moment, RealFolder};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let folder = RealFolder::new("tidewheel-data/log".as_ref())?;
//! let mut opened = Log::open(folder)?;
//! // Load the file `opened.base()` first, if there is one.
//! while let Some(frame) = opened.next_frame()? {
//!     println!("{} bytes of {:?}", frame.payload.len(), frame.moment);
//! }
//! println!("{} bytes were torn", opened.cut());
//!
//! let mut log = opened.begin_writing(b"version 1 of the records")?;
//! log.append(Moment::default(), b"SET tea hot")?;
//! log.sync()?; // from here on no crash takes it
//!
//! let segment = log.roll()?;
//! // Write a file `base_name(segment)` with all data, and sync it. Append meanwhile.
//! log.rebase(segment)?; // older files are gone
//! # Ok(())
//! # }
//! ```
//!
//! # The files
//!
//! ```text
//! lock           held while a process uses the folder
//! manifest       tidewheel-log manifest 1      a new one is written beside it, synced, renamed,
//!                base base-7.rdb               and the folder is synced
//!                first 7
//!                last 8
//!                crc32c 0a1b2c3d
//! base-7.rdb     all data in front of segment 7: the caller writes it
//! segment-7      header, frame, frame, …       finished: segment 8 says where it ends
//! segment-8      header, frame, frame, …       the last one: its end may be torn
//! ```
//!
//! A segment. Numbers are little-endian; a frame begins at a multiple of 8.
//!
//! ```text
//! header, 4096 bytes
//!    0 "tidewheellog"        12 version: 1        16 number of the segment
//!   24 id: 16 random bytes   40 id of the segment in front
//!   56 how long that one is  64 1 = all of it is on disk, 0 = a hole is behind that length
//!   72 length of the text    80 the caller's text, zeros   4092 CRC32C of all that
//!
//! frame, 56 bytes and the payload
//!    0 marker: the first 8 bytes of the id
//!    8 CRC32C of the id, the frame's place, and all that follows
//!   12 the CRC32C of the frame in front, or of the header
//!   16 length of the payload
//!   24 how much of this segment was on disk when the frame was written
//!   32 the caller's moment: tick, wall ms, boot us
//!   56 the payload, zeros up to a multiple of 8
//! ```
//!
//! - The *id* is in each checksum, so the old bytes of a file that is used again never fit.
//! - The *place* is in it too, so a payload that is a copy of a segment holds no frame that fits.
//! - The *CRC of the frame in front*: a write that failed may have reached the disk, and another
//!   frame of the same length may be written in its place. If a crash brings the first one back,
//!   what follows the second one does not follow the first.
//! - The *header takes a page* that no later write touches. It is on disk before the manifest
//!   names the segment, and the manifest before a frame is written. So a newest segment that it
//!   does not name has no frames, and may be a half one.
//! - A *payload* may have any length. A frame is read into memory as a whole.
//!
//! # What a crash may leave, and what is damage
//!
//! The last segment ends at the first frame that does not fit. The rest is a *torn end*: zeros,
//! garbage, frames behind a lost one. It is cut. But if a frame behind that place says that the
//! place was on disk, something has altered it since: that is damage. It is damage too if a segment
//! is shorter than the next one says, and if the manifest, a segment that it names, or the header
//! of one is missing or altered.
//!
//! What was synced last, and of which no later frame says so, cannot be told from a torn end. A
//! caller keeps that short by an empty frame now and then: each says how far the one before was
//! synced.
//!
//! # A sync that failed
//!
//! Then the system may have dropped what it could not write, and the next sync succeeds without it.
//! So no sync is tried again: the log is *poisoned*.
//!
//! **Invariant: a frame counts, and [`Log::synced`] goes on, only while no sync of any segment from
//! the manifest's first one on has failed.** [`Log::roll`] begins a segment *behind a hole*, and
//! its header says so. Recovery stops in front of it, if the manifest is still the old one. When
//! [`Log::rebase`] has put a base in force that holds everything in front of this segment, the hole
//! is in what the manifest no longer needs, and the invariant holds again.
//!
//! A process may also be killed after a sync has failed, and the next one reads what the system
//! shows and the disk does not have. So [`Opened::begin_writing`] writes again what is not known to
//! be on disk.
//!
//! # Invariants
//!
//! - A segment's header is written when the segment in front is on disk up to the length that it
//!   says. Nothing is appended to that one any more, unless the new segment has no frames: then
//!   making it had failed, and it is ignored.
//! - The numbers from the manifest's first segment on have no gap: a name is on disk before the
//!   next one is made, and those that are dropped go from the last one down, one by one.
//! - A manifest is in force, on disk, before what it no longer names is removed; and what it names
//!   is on disk before. Nothing is appended to a segment that it does not name.
//! - One thread at a time syncs a segment: the system tells of a failure only once.
//!
//! # What it costs
//!
//! One write a frame, and two more if the payload is longer than 64 KiB. `cargo bench -p
//! tidewheel-log --bench append` prints what that takes on your disk, and how long a sync does.
//!
//! # Where to look
//!
//! From the top down: `repair.rs`; `reader.rs`, who only reads; `open.rs`, recovery; `log.rs`, the
//! writer; `sync.rs`; `chain.rs`, which segments count; `manifest.rs`; `segment.rs`; `frame.rs`;
//! `real.rs` and `folder.rs`, what is asked of a file system. `simulated/` has a disk in memory.

#![forbid(unsafe_code)]

mod chain;
mod error;
mod folder;
mod frame;
mod log;
mod manifest;
mod names;
mod open;
mod planted;
mod reader;
#[cfg(unix)]
mod real;
mod repair;
mod segment;
#[cfg(any(test, feature = "simulated"))]
pub mod simulated;
mod sync;
#[cfg(test)]
mod tests;
mod window;

pub use error::{Damage, Error, OpenError};
pub use folder::{File, Folder};
pub use frame::Moment;
pub use log::Log;
pub use names::base_name;
pub use open::{Frame, Opened};
pub use reader::LogReader;
#[cfg(unix)]
pub use real::{RealFile, RealFolder};
pub use repair::{Cut, repair};
pub use segment::MAX_TEXT;
pub use sync::{Sync, Synced};
