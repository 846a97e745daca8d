//! What a change leaves to be done after the lock is released, and what it has counted.

use std::time::Duration;

use tidewheel_store::Removed;

use super::garbage::Garbage;
use super::outbox::{Event, Outbox};
use super::rules::Rules;
use crate::removal::{Removal, RemovalCause};
use crate::stats::{Count, LATENESS_WINDOWS};

/// A change's request to other shards.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ShardRequest {
    #[default]
    Nothing,
    /// Weight that the entry stored last lacks.
    Room(u64),
    /// The debt since the capacity shrank.
    RepayDebt,
}

/// What changes of a shard have left to be done.
pub(crate) struct Effects<K, V> {
    /// The request of the entry that was stored last.
    pub(crate) wanted: ShardRequest,
    pub(crate) outbox: Outbox<K, V>,
    pub(crate) garbage: Garbage<K, V>,
    pub(crate) counts: ShardCounts,
}

/// What is counted under the lock of a shard.
#[derive(Default)]
pub(crate) struct ShardCounts {
    counts: [u64; Count::KINDS],
    /// Entries that have expired, by how late: in the tick, and by powers of two.
    lateness: [u64; LATENESS_WINDOWS],
}

impl ShardCounts {
    #[inline]
    pub(crate) fn add(&mut self, count: Count, by: u64) {
        self.counts[count as usize] += by;
    }

    /// Adds all to sums.
    pub(crate) fn add_to(
        &self,
        counts: &mut [u64; Count::KINDS],
        lateness: &mut [u64; LATENESS_WINDOWS],
    ) {
        let pairs = self.counts.iter().zip(counts);
        for (own, sum) in pairs.chain(self.lateness.iter().zip(lateness)) {
            *sum += own;
        }
    }

    /// An entry has expired so many ticks after its deadline.
    #[inline]
    fn late(&mut self, ticks: u64) {
        let window = (u64::BITS - ticks.leading_zeros()) as usize;
        self.lateness[window.min(LATENESS_WINDOWS - 1)] += 1;
    }
}

impl<K, V> Effects<K, V> {
    pub(crate) fn new() -> Self {
        Self {
            wanted: ShardRequest::Nothing,
            outbox: Outbox::new(),
            garbage: Garbage::new(),
            counts: ShardCounts::default(),
        }
    }

    /// Counts and files an entry that has left the store.
    pub(crate) fn removed<S>(
        &mut self,
        rules: &Rules<K, V, S>,
        removed: Removed<K, V>,
        cause: RemovalCause,
        now: u64,
    ) {
        self.count(rules, &removed, cause, now);
        self.file(rules, removed, cause, now);
    }

    /// Files an entry that was refused: it has not been in the store.
    pub(crate) fn refused<S>(&mut self, rules: &Rules<K, V, S>, refused: Removed<K, V>, now: u64) {
        self.counts.add(Count::Rejected, 1);
        rules.tags.release(refused.label);
        self.file(rules, refused, RemovalCause::Evicted, now);
    }

    /// As [`removed`](Self::removed), of an entry that counts nowhere: it is for the
    /// listener, or to be dropped outside the lock.
    #[inline]
    pub(crate) fn file<S>(
        &mut self,
        rules: &Rules<K, V, S>,
        entry: Removed<K, V>,
        cause: RemovalCause,
        now: u64,
    ) {
        let Removed {
            key,
            value,
            deadline,
            ..
        } = entry;
        if !rules.events.has_listener() {
            self.garbage.push(key, value);
            return;
        }
        if rules.events.is_full_and_lossy(cause) {
            self.counts.add(Count::EventDropped, 1);
            self.garbage.push(key, value);
            return;
        }
        let lateness = match (cause, deadline) {
            (RemovalCause::Expired, Some(deadline)) => {
                Some(Duration::from_millis(now.saturating_sub(deadline)))
            }
            _ => None,
        };
        self.outbox.push(Event::One(Removal {
            key,
            value,
            cause,
            lateness,
        }));
        rules.events.add(1);
    }

    /// Counts an entry that has left the store, and its use of its tags no longer.
    pub(crate) fn count<S>(
        &mut self,
        rules: &Rules<K, V, S>,
        removed: &Removed<K, V>,
        cause: RemovalCause,
        now: u64,
    ) {
        rules.tags.release(removed.label);
        let kind = match cause {
            RemovalCause::Expired => {
                if let Some(deadline) = removed.deadline {
                    self.counts.late(now.saturating_sub(deadline));
                }
                Count::Expiration
            }
            RemovalCause::Evicted => Count::Eviction,
            RemovalCause::Replaced => return,
            _ => Count::Removal,
        };
        self.counts.add(kind, 1);
    }
}
