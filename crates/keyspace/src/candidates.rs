//! Candidates: the keys of a shard that should be evicted next, as far as the shard was searched.
//!
//! Each visit of a shard by an evicting thread *searches* a little: under `volatile-ttl` it reads
//! some timer records, one chunk after the other, again and again; under the policies of use it
//! draws some entries at random. What is more urgent than the least urgent candidate becomes one.
//! So a few visits know the most urgent keys of the whole shard, whatever its size:
//!
//! - A shard of 30,000 keys with deadlines has 230 candidates. 150 records or more are read for
//!   each victim, so all of them are read before more keys are evicted than are known. Until all
//!   were read once, 1,020 are read for each, for fewer candidates.
//! - The place of a record says before which tick its key is not due. Most are not urgent enough by
//!   that alone, and no key is looked at.
//!
//! A key that is given a near deadline becomes a candidate at once.
//!
//! The shard publishes how urgent its first candidate is, and the most urgent of all shards is
//! evicted. Every search looks at one other shard too, in turn, so that none is forgotten.
//!
//! A candidate is a slot, which may hold another key by the time it is taken, or none. So it is
//! looked at again then. A key that became less urgent, because it was used or its deadline moved,
//! stays a candidate as what it is now.

use tidewheel_store::Slot;

use crate::eviction::{NOTHING, Policy, VictimChoice};
use crate::value::{Entries, own_deadline};

/// The most urgent of a shard is not known.
pub(crate) const UNKNOWN: u64 = 0;

/// The reason why there is no victim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoVictim {
    /// The first candidate is less urgent than others elsewhere.
    LessUrgent,
    /// None was found.
    Nothing {
        /// True if there are entries that may be evicted.
        candidates: bool,
    },
}

/// Candidates of a policy that draws at random.
const DRAWN: usize = 64;

/// Keys with deadlines for each candidate of a shard.
const KEYS_PER_CANDIDATE: usize = 128;

/// Bounds of that number of candidates, and the number as long as not all records were read once.
const FEWEST: usize = 128;
const MOST: usize = 1_024;
const FIRST: usize = 64;

/// The most chunks of 30 timer records that are read for one victim: enough for a million keys with
/// deadlines in a shard.
const CHUNKS_MAX: u32 = 34;

/// Chunks that are read at a time, as long as not all were read once.
const FIRST_CHUNKS: u32 = CHUNKS_MAX;

/// One key that may be evicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Candidate {
    /// The lower, the sooner it goes.
    pub(crate) urgency: u64,
    pub(crate) db: u32,
    slot: u32,
}

impl Candidate {
    pub(crate) fn slot(self) -> Slot {
        Slot::from_bits(self.slot)
    }
}

/// The candidates of one shard.
#[derive(Debug, Default)]
pub(crate) struct Candidates {
    policy: Policy,
    /// The most urgent one stands last.
    sorted: Vec<Candidate>,
    most: usize,
    /// The position at which reading of timer records goes on: the database, the chunk.
    pub(crate) place: (u32, u32),
    /// True if all timer records were read once.
    pub(crate) all_read: bool,
}

impl Candidates {
    /// Prepares for a policy, in a shard of `timed` keys with deadlines. Forgets candidates of
    /// another policy.
    pub(crate) fn prepare(&mut self, choice: &VictimChoice, timed: usize) {
        if self.policy != choice.policy {
            *self = Self {
                policy: choice.policy,
                ..Self::default()
            };
        }
        self.most = match choice.goes_by_deadline() {
            true if self.all_read => (timed / KEYS_PER_CANDIDATE).clamp(FEWEST, MOST),
            true => FIRST,
            false => DRAWN,
        };
    }

    /// The number of chunks, of so many, that are read for one victim. So all are read before more
    /// keys are evicted than are known.
    pub(crate) fn chunks_to_read(&self, chunks: u32) -> u32 {
        match self.all_read {
            true => (1 + chunks / self.most as u32).min(CHUNKS_MAX),
            false => FIRST_CHUNKS,
        }
    }

    /// True if a key of this urgency would be a candidate.
    #[inline]
    pub(crate) fn wants(&self, urgency: u64) -> bool {
        self.sorted.len() < self.most
            || self
                .sorted
                .first()
                .is_some_and(|least| urgency < least.urgency)
    }

    /// True if a key that was just given this deadline would be a candidate.
    #[inline]
    pub(crate) fn wants_deadline(&self, deadline: u64) -> bool {
        self.go_by_deadline() && self.wants(deadline)
    }

    /// True if keys with near deadlines are sought.
    #[inline]
    pub(crate) fn go_by_deadline(&self) -> bool {
        self.policy == Policy::VolatileTtl
    }

    /// Adds a key, if it is urgent enough.
    pub(crate) fn offer(&mut self, urgency: u64, db: u32, slot: Slot) {
        if !self.wants(urgency) {
            return;
        }
        let slot = slot.to_bits();
        let new = Candidate { urgency, db, slot };
        let at = self.sorted.partition_point(|other| *other > new);
        if self.sorted.get(at) == Some(&new) {
            return;
        }
        if self.sorted.len() < self.most {
            self.sorted.insert(at, new);
        } else {
            // The least urgent one, which stands first, makes room.
            self.sorted[..at].rotate_left(1);
            self.sorted[at - 1] = new;
        }
    }

    /// Entries have moved: those with near deadlines are candidates where they are now.
    pub(crate) fn follow(&mut self, db: u32, entries: &Entries, moved: &[Slot]) {
        for slot in moved.iter().filter(|slot| entries.is_in_use(**slot)) {
            if let Some(deadline) = own_deadline(entries, *slot) {
                self.offer(deadline, db, *slot);
            }
        }
    }

    /// Takes the most urgent one out.
    pub(crate) fn pop(&mut self) -> Option<Candidate> {
        self.sorted.pop()
    }

    /// The urgency of the first candidate.
    pub(crate) fn urgency(&self) -> u64 {
        self.sorted.last().map_or(NOTHING, |first| first.urgency)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Recency;

    fn of(policy: Policy, timed: usize) -> Candidates {
        let mut candidates = Candidates::default();
        let choice = VictimChoice {
            policy,
            recency: Recency::Clock,
            samples: 5,
        };
        candidates.prepare(&choice, timed);
        candidates.all_read = true;
        candidates.prepare(&choice, timed);
        candidates
    }

    #[test]
    fn the_most_urgent_ones_are_kept_each_once_and_come_in_order() {
        let mut candidates = of(Policy::VolatileTtl, 50_000);
        for _ in 0..2 {
            for i in 0..100_000_u32 {
                let urgency = u64::from(i).wrapping_mul(7_919) % 100_000;
                candidates.offer(urgency, 0, Slot::from_bits(i));
            }
        }
        let most = 50_000 / KEYS_PER_CANDIDATE as u64;
        assert!(!candidates.wants(most) && candidates.wants(most - 2));
        assert_eq!(candidates.urgency(), 0);
        let order: Vec<_> = std::iter::from_fn(|| candidates.pop()).collect();
        let urgencies: Vec<_> = order.iter().map(|one| one.urgency).collect();
        assert_eq!(urgencies, (0..most).collect::<Vec<_>>());
        assert_eq!(candidates.urgency(), NOTHING);
    }

    #[test]
    fn all_records_are_read_before_the_candidates_are_used_up() {
        for timed in [1, 100, 3_000, 100_000, 1_000_000] {
            let candidates = of(Policy::VolatileTtl, timed);
            let chunks = (timed / 30) as u32;
            let read = candidates.chunks_to_read(chunks) as usize;
            assert!(read * candidates.most >= chunks as usize, "{timed}");
        }
    }

    #[test]
    fn another_policy_begins_anew() {
        let mut candidates = of(Policy::AllKeysLru, 10);
        candidates.offer(1, 0, Slot::from_bits(1));
        let choice = VictimChoice {
            policy: Policy::AllKeysLfu,
            recency: Recency::Clock,
            samples: 5,
        };
        candidates.prepare(&choice, 10);
        assert_eq!(candidates.pop(), None);
    }
}
