//! The keys of a shard that should be evicted next, as far as it was searched.
//!
//! Each visit of a shard by an evicting thread *searches* a little: under `volatile-ttl` it reads some timer records, one chunk
//! after the other, again and again; under the policies of use it draws some entries at random. What is more urgent than the
//! least urgent candidate becomes one. So a few visits know the most urgent keys of the whole shard, whatever its size:
//!
//! - A shard of 100,000 keys with deadlines has 98 candidates. A visit reads 1,020 records, all in 98 visits, so that no
//!   more of them are evicted than are known. The first visits read eight times as many.
//! - A record says before which tick its key is not due. Most are not urgent enough by that alone, and no key is looked at.
//!
//! A key that is given a near deadline becomes a candidate at once.
//!
//! The shard publishes how urgent its first candidate is, and the most urgent of all shards is evicted. Every search looks at
//! one other shard too, in turn, so that none is forgotten.
//!
//! A candidate is a slot, which may hold another key by the time it is taken, or none. So it is looked at again then. A key that
//! became less urgent, because it was used or its deadline moved, stays a candidate as what it is now.

use tidewheel_store::Slot;

use crate::eviction::{Choice, Policy};

/// The most urgent of a shard is not known.
pub(crate) const UNKNOWN: u64 = 0;

/// Nothing that was found may be evicted.
pub(crate) const NOTHING: u64 = u64::MAX;

/// Why there is no victim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Want {
    /// The first candidate is less urgent than others elsewhere.
    LessUrgent,
    /// None was found.
    Nothing {
        /// Whether there are entries that may be evicted.
        candidates: bool,
    },
}

/// Candidates of a policy that draws at random.
const DRAWN: usize = 64;

/// A shard has a candidate for so many keys with deadlines.
const KEYS_PER_CANDIDATE: usize = 1_024;

/// Bounds of that number of candidates.
const FEWEST: usize = 64;
const MOST: usize = 1_024;

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
    /// Where reading of timer records goes on: the database, the chunk.
    pub(crate) place: (u32, u32),
    /// Whether all timer records were read once.
    pub(crate) all_read: bool,
}

impl Candidates {
    /// Those for a policy, in a shard of so many keys with deadlines. What was found for another policy is forgotten.
    pub(crate) fn prepare(&mut self, choice: &Choice, timed: usize) {
        if self.policy != choice.policy {
            *self = Self {
                policy: choice.policy,
                ..Self::default()
            };
        }
        self.most = match choice.goes_by_deadline() {
            true => (timed / KEYS_PER_CANDIDATE).clamp(FEWEST, MOST),
            false => DRAWN,
        };
    }

    /// Whether a key of this urgency would be one.
    #[inline]
    pub(crate) fn wants(&self, urgency: u64) -> bool {
        self.sorted.len() < self.most
            || self
                .sorted
                .first()
                .is_some_and(|least| urgency < least.urgency)
    }

    /// Whether a key that was just given this deadline would be one.
    #[inline]
    pub(crate) fn wants_deadline(&self, deadline: u64) -> bool {
        self.policy == Policy::VolatileTtl && self.wants(deadline)
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

    /// Takes the most urgent one out.
    pub(crate) fn pop(&mut self) -> Option<Candidate> {
        self.sorted.pop()
    }

    /// How urgent the first one is.
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
        let choice = Choice {
            policy,
            recency: Recency::Clock,
            samples: 5,
        };
        candidates.prepare(&choice, timed);
        candidates
    }

    #[test]
    fn the_most_urgent_ones_are_kept_each_once_and_come_in_order() {
        let mut candidates = of(Policy::VolatileTtl, 1_000_000);
        for _ in 0..2 {
            for i in 0..100_000_u32 {
                let urgency = u64::from(i).wrapping_mul(7_919) % 100_000;
                candidates.offer(urgency, 0, Slot::from_bits(i));
            }
        }
        let most = 1_000_000 / KEYS_PER_CANDIDATE as u64;
        assert!(!candidates.wants(most) && candidates.wants(most - 2));
        assert_eq!(candidates.urgency(), 0);
        let order: Vec<_> = std::iter::from_fn(|| candidates.pop()).collect();
        let urgencies: Vec<_> = order.iter().map(|one| one.urgency).collect();
        assert_eq!(urgencies, (0..most).collect::<Vec<_>>());
        assert_eq!(candidates.urgency(), NOTHING);
    }

    #[test]
    fn another_policy_begins_anew() {
        let mut candidates = of(Policy::AllKeysLru, 10);
        candidates.offer(1, 0, Slot::from_bits(1));
        let choice = Choice {
            policy: Policy::AllKeysLfu,
            recency: Recency::Clock,
            samples: 5,
        };
        candidates.prepare(&choice, 10);
        assert_eq!(candidates.pop(), None);
    }
}
