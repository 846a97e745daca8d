//! The channel from those who copy to the thread that writes.
//!
//! Who copies never waits here. A walk looks [how much is on the way](Shared::is_full) before it
//! copies more. What is kept because it changes is bounded: beyond the limit the snapshot fails,
//! and the server goes on.

use std::fmt::{self, Debug};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, channel};

use tidewheel_collections::CopiedMembers;

use super::batch::Batch;
use super::output::Opened;
use crate::value::Object;

/// Bytes on the way from which on walks wait.
const FULL: usize = 8 << 20;

/// What a snapshot in the background may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SnapshotLimits {
    /// Bytes that are kept in memory because they change before they are in the file. If it would
    /// be more, the snapshot fails.
    pub kept_bytes: usize,
    /// A large collection of fewer members is copied at once.
    pub members_at_once: usize,
}

impl SnapshotLimits {
    /// A quarter of the memory in use, and 64 MiB at least; 128 members.
    #[must_use]
    pub fn of(used_memory: u64) -> Self {
        Self {
            kept_bytes: usize::try_from(used_memory / 4)
                .unwrap_or(usize::MAX)
                .max(64 << 20),
            members_at_once: 128,
        }
    }
}

/// The reason why there will be no file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum SnapshotFailure {
    /// Somebody has cancelled it.
    Cancelled = 1,
    /// More has changed meanwhile than may be kept.
    TooManyChanges = 2,
    /// The file cannot be written.
    NotWritten = 3,
    /// What was to be shown is not there: a flaw of ours.
    Confused = 4,
}

impl fmt::Display for SnapshotFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cancelled => "it was cancelled",
            Self::TooManyChanges => {
                "more has changed meanwhile than may be kept in memory: is the disk too slow?"
            }
            Self::NotWritten => "the file cannot be written",
            Self::Confused => "a collection is not where it should be",
        })
    }
}

/// What is on the way.
#[derive(Debug)]
pub(super) enum Item {
    /// Whole entries.
    Entries(u32, Batch),
    /// The members of a collection come next.
    Begin(Opened),
    /// Some of its members.
    Members(CopiedMembers),
    /// That were all.
    End,
    /// A collection that its key has left: all of it, or what was not shown of the one whose
    /// members come.
    Left {
        opened: Opened,
        has_begun: bool,
        /// Its walk goes on.
        rest: Object,
    },
    /// A database that was emptied.
    Emptied(Box<dyn Emptied>),
    /// All is shown.
    Done,
    /// There is nothing more to be had.
    Failed,
}

/// A database that was emptied, with its part in the snapshot.
pub(super) trait Emptied: Debug + Send {
    /// True if the members of one of its collections are being shown.
    fn shows_members(&self) -> bool;

    /// Shows all that is left. What goes on with that collection comes first.
    fn show(self: Box<Self>, to: &mut dyn FnMut(Item) -> io::Result<()>) -> io::Result<()>;
}

/// What those who copy and the thread that writes have in common.
#[derive(Debug)]
pub(super) struct Shared {
    to: Sender<Item>,
    /// Bytes on the way, and those that are kept.
    on_the_way: AtomicUsize,
    kept: AtomicUsize,
    /// The most of both together.
    peak: AtomicUsize,
    pub(super) limits: SnapshotLimits,
    /// The tick of the first instant.
    pub(super) tick: u64,
    /// Parts that are not shown yet.
    parts: AtomicUsize,
    /// Parts whose entries are not all walked over. Members are shown when there are none: what
    /// comes beside a collection's members must wait in memory for its end.
    with_entries: AtomicUsize,
    /// True while somebody shows the members of a collection.
    is_taken: AtomicBool,
    /// A [`SnapshotFailure`], or 0.
    failure: AtomicU8,
    /// Entries that were walked over, and all.
    walked: AtomicU64,
    all: u64,
}

impl Shared {
    pub(super) fn new(
        parts: usize,
        all: u64,
        (tick, limits): (u64, SnapshotLimits),
    ) -> (Arc<Self>, Receiver<Item>) {
        let (to, from) = channel();
        let shared = Self {
            to,
            on_the_way: AtomicUsize::new(0),
            kept: AtomicUsize::new(0),
            peak: AtomicUsize::new(0),
            limits,
            tick,
            parts: AtomicUsize::new(parts),
            with_entries: AtomicUsize::new(parts),
            is_taken: AtomicBool::new(false),
            failure: AtomicU8::new(0),
            walked: AtomicU64::new(0),
            all,
        };
        if parts == 0 {
            shared.send(Item::Done);
        }
        (Arc::new(shared), from)
    }

    /// Sends something. If nobody takes it, the snapshot has failed.
    pub(super) fn send(&self, item: Item) {
        self.on_the_way.fetch_add(item.bytes(), Relaxed);
        self.note_peak();
        if self.to.send(item).is_err() {
            self.fail(SnapshotFailure::NotWritten);
        }
    }

    /// The thread has taken something.
    pub(super) fn taken(&self, item: &Item) {
        self.on_the_way.fetch_sub(item.bytes(), Relaxed);
    }

    /// Counts bytes that are kept in a shard until they are shown.
    pub(super) fn count_kept(&self, before: usize, after: usize) {
        // Both are sums of the same parts, so their difference wraps around to the right one.
        self.kept.fetch_add(after.wrapping_sub(before), Relaxed);
        self.note_peak();
    }

    fn note_peak(&self) {
        let held = self.held_bytes();
        if held > self.peak.load(Relaxed) {
            self.peak.fetch_max(held, Relaxed);
        }
    }

    /// Bytes that are kept in memory until they are in the file, about.
    fn held_bytes(&self) -> usize {
        let kept = self.kept.load(Relaxed);
        kept.saturating_add(self.on_the_way.load(Relaxed))
    }

    /// False if there will be no file: also if too much is kept by now.
    pub(super) fn may_keep(&self) -> bool {
        if self.held_bytes() > self.limits.kept_bytes {
            self.fail(SnapshotFailure::TooManyChanges);
        }
        self.failure().is_none()
    }

    /// True if walks wait until the thread has taken more.
    pub(super) fn is_full(&self) -> bool {
        self.on_the_way.load(Relaxed) > FULL
    }

    /// Takes the right to show members. False if another one has it, or if entries are left to be
    /// walked over.
    pub(super) fn take_turn(&self) -> bool {
        self.with_entries.load(Relaxed) == 0 && !self.is_taken.swap(true, Relaxed)
    }

    /// All entries of a part are walked over.
    pub(super) fn end_entries(&self) {
        self.with_entries.fetch_sub(1, Relaxed);
    }

    pub(super) fn end_turn(&self) {
        self.is_taken.store(false, Relaxed);
    }

    /// One more part is to be shown. Its entries are walked over.
    pub(super) fn add_part(&self) {
        self.parts.fetch_add(1, Relaxed);
    }

    /// A part is shown.
    pub(super) fn end_part(&self) {
        if self.parts.fetch_sub(1, Relaxed) == 1 {
            self.send(Item::Done);
        }
    }

    pub(super) fn count_walked(&self, entries: u64) {
        self.walked.fetch_add(entries, Relaxed);
    }

    pub(super) fn fail(&self, why: SnapshotFailure) {
        let first = self
            .failure
            .compare_exchange(0, why as u8, Relaxed, Relaxed);
        if first.is_ok() {
            // If the thread is gone, it needs no word.
            let _ = self.to.send(Item::Failed);
        }
    }

    pub(super) fn failure(&self) -> Option<SnapshotFailure> {
        Some(match self.failure.load(Relaxed) {
            0 => return None,
            1 => SnapshotFailure::Cancelled,
            2 => SnapshotFailure::TooManyChanges,
            4 => SnapshotFailure::Confused,
            _ => SnapshotFailure::NotWritten,
        })
    }
}

impl Item {
    /// Bytes that were copied for it.
    fn bytes(&self) -> usize {
        match self {
            Self::Entries(_, batch) => batch.bytes(),
            Self::Members(members) => members.bytes(),
            Self::Left { .. }
            | Self::Emptied(_)
            | Self::Begin(_)
            | Self::End
            | Self::Done
            | Self::Failed => 0,
        }
    }
}

/// How far a snapshot in the background has come. It may be cancelled.
#[derive(Debug, Clone)]
pub struct SnapshotCourse(pub(super) Arc<Shared>);

impl SnapshotCourse {
    /// Ends it without a file.
    pub fn cancel(&self) {
        self.0.fail(SnapshotFailure::Cancelled);
    }

    /// The reason why there will be no file, if so.
    #[must_use]
    pub fn failure(&self) -> Option<SnapshotFailure> {
        self.0.failure()
    }

    /// True if there is nothing left to walk over: who writes waits for nobody.
    #[must_use]
    pub fn is_shown(&self) -> bool {
        self.0.parts.load(Relaxed) == 0 || self.failure().is_some()
    }

    /// Keys that were walked over, and all that there were at its moment.
    #[must_use]
    pub fn walked(&self) -> (u64, u64) {
        (self.0.walked.load(Relaxed).min(self.0.all), self.0.all)
    }

    /// Bytes that are kept in memory until they are in the file, about.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.0.held_bytes()
    }

    /// The most that these were so far.
    #[must_use]
    pub fn peak_held_bytes(&self) -> usize {
        self.0.peak.load(Relaxed)
    }
}
