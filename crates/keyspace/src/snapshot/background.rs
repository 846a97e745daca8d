//! Begins a snapshot in the background, and walks over shards.

use super::channel::Shared;
use super::output::Setting;
use super::part::{Part, Stays};
use super::write::Snapshot;
use crate::gate::{Exclusive, Seat};
use crate::keyspace::Keyspace;
use crate::shard::Hold;
use crate::time::{Now, Time};

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

/// How far a walk over a shard has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Walked {
    /// There is more at once.
    More,
    /// There is more, but others are to go on first: the thread that writes, who shows the members
    /// of a collection, or who has the shard for long.
    Waits,
    /// The shard is shown.
    Done,
}

impl Keyspace {
    /// Begins a snapshot of this moment. The caller lets a thread [write](Snapshot::write) it, and
    /// [walks](Self::walk_snapshot) over each shard until it is done. There is one at a time.
    pub fn begin_snapshot(
        &self,
        _alone: &Exclusive<'_>,
        time: Time,
        limits: SnapshotLimits,
    ) -> Snapshot {
        let now = Now::of(&self.timeline, time);
        self.append_all_expired(now);
        let setting = Setting::of(self, now);
        let filled = |hold: &Hold<'_>| {
            let filled = (0..hold.databases()).filter(|db| !hold.entries(*db).is_empty());
            filled.collect::<Vec<_>>()
        };
        let parts = self
            .shards
            .iter()
            .map(|shard| filled(&shard.lock()).len())
            .sum();
        let (shared, from) = Shared::new(parts, setting.keys(), limits);
        for shard in &*self.shards {
            let mut hold = shard.lock();
            for db in filled(&hold) {
                hold.begin_part(db, Part::new(db, &now, &shared));
            }
        }
        Snapshot::new(shared, from, setting)
    }

    /// Walks over about `count` entries of a shard, for the snapshot that is being taken.
    pub fn walk_snapshot(&self, seat: &mut Seat, shard: usize, count: usize) -> Walked {
        if !seat.try_give_way() && seat.is_shut_out() {
            return Walked::Waits;
        }
        let _visit = seat.visit();
        let Some(mut hold) = self.shards[shard].try_lock() else {
            return Walked::Waits;
        };
        let since = self.hooks.stopwatch_ns();
        let stays = hold.walk_part(count);
        self.record_hold(since);
        match stays {
            Some(Stays::More) => Walked::More,
            Some(Stays::Waits) => Walked::Waits,
            Some(Stays::Done) | None => Walked::Done,
        }
    }
}
