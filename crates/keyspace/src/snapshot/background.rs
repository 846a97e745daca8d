//! Begins a snapshot in the background, and walks over shards.

use super::channel::{Shared, SnapshotLimits};
use super::output::Setting;
use super::part::{Part, Stays};
use super::write::Snapshot;
use crate::gate::{Exclusive, Seat};
use crate::keyspace::Keyspace;
use crate::shard::Hold;
use crate::time::{Now, Time};

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
        let (shared, from) = Shared::new(parts, setting.keys(), (now.tick, limits));
        for shard in &*self.shards {
            let mut hold = shard.lock();
            for db in filled(&hold) {
                hold.begin_part(db, Part::new(db, now.tick, &shared));
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
