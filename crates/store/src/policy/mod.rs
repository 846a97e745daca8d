//! Whom to evict: a short probation queue, a clock over the entries' own slots, and ghosts.
//!
//! # Structure
//!
//! The shape is S3-FIFO's (Yang et al., SOSP 2023). A new entry waits in [`Probation`], a FIFO of a
//! tenth of the cache. Was it hit when its turn comes, it moves to the main region, else it is evicted
//! and its fingerprint kept in [`Ghost`]; a key that comes back while it is remembered goes to the main
//! region at once. The main region is a CLOCK whose order is the slab's: the hand takes a life from every
//! entry that it meets and evicts the first that has none. A new entry takes the slot that was freed
//! last, so slots behind the hand hold young entries, which is as much order as the clock needs.
//!
//! While the cache fills, the main region takes what leaves probation unconditionally: a loop larger
//! than the cache then finds most of its first entries at each turn, where FIFO and LRU find none.
//!
//! # Cost
//!
//! An entry pays the six bits that the store keeps for it, no links: two for its queue, the rest for the
//! hits counted. A hit sets bits of the entry alone and nothing once they are saturated. Beside the
//! entries there are 8 bytes for each entry on probation and, once evictions begin, 2 per entry for the
//! ghosts.
//!
//! One call of [`Policy::victim`] looks at no more than [`MAX_STEPS`] slots, then takes the next that it may.
//!
//! **Invariant: the weights of the two regions sum to the weight of all entries**, so every entry that
//! leaves otherwise than as a victim must be told to [`Policy::removed`].

mod ghost;
mod probation;

use ghost::Ghost;
use probation::{Place, Probation};

/// The bits of a state that count hits.
const HITS: u8 = 0b111;
/// A hit beyond this count writes nothing.
const MAX_HITS: u8 = 3;
/// Where a state keeps its queue.
const QUEUE_SHIFT: u32 = 4;
/// Slots and places that one search for a victim looks at before it stops choosing.
const MAX_STEPS: u32 = 256;
/// Steps after choosing ended in which an entry that may be evicted must turn up.
const LAST_STEPS: u32 = 256;
/// Probation's share of the cache is one part in so many.
const PROBATION_PART: u64 = 10;
/// Ghosts are not made for fewer keys than this.
const MIN_GHOSTS: usize = 64;

/// What the policy may know of the entries.
pub(crate) trait Residents {
    /// The entry's six bits; `None` when the slot is vacant.
    fn state(&self, id: u32) -> Option<u8>;
    /// Overwrites the entry's six bits.
    fn set_state(&mut self, id: u32, state: u8);
    /// Whether the entry must stay.
    fn is_pinned(&self, id: u32) -> bool;
    /// The entry's share of the capacity.
    fn weight(&self, id: u32) -> u32;
    /// 32 well-mixed bits of the key's hash. Costs a hash of the key: asked for at evictions only.
    fn fingerprint(&self, id: u32) -> u32;
    /// All ids are below this; there may be vacant slots between.
    fn end(&self) -> u32;
}

/// The region that an entry belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Queue {
    Probation,
    Main,
}

impl Queue {
    fn of(state: u8) -> Self {
        match state >> QUEUE_SHIFT {
            0 => Self::Probation,
            _ => Self::Main,
        }
    }

    fn with_hits(self, hits: u8) -> u8 {
        let queue: u8 = match self {
            Self::Probation => 0,
            Self::Main => 1,
        };
        queue << QUEUE_SHIFT | hits
    }
}

/// The eviction policy of one shard. New entries start with state 0.
#[derive(Debug, Default)]
pub(crate) struct Policy {
    probation: Probation,
    ghost: Ghost,
    /// Entries in both regions.
    entries: usize,
    /// Weight of the main region.
    main: u64,
    /// The weight that probation may have before its oldest entry is looked at.
    target: u64,
    /// The slot that the clock looks at next.
    hand: u32,
}

impl Policy {
    /// A policy without entries; allocates nothing.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// The state after a hit; `None` when nothing is to be written.
    pub(crate) fn hit(state: u8) -> Option<u8> {
        (state & HITS < MAX_HITS).then_some(state + 1)
    }

    /// A new entry came: decides its region and sets its state. `total` and `capacity` are weights, the
    /// entry's included. O(1).
    pub(crate) fn inserted<R: Residents>(
        &mut self,
        residents: &mut R,
        id: u32,
        fingerprint: u32,
        total: u64,
        capacity: u64,
    ) {
        let weight = residents.weight(id);
        self.entries += 1;
        self.target = (total.min(capacity) / PROBATION_PART).max(1);
        if self.ghost.recall(fingerprint) {
            residents.set_state(id, Queue::Main.with_hits(0));
            self.main += u64::from(weight);
        } else {
            residents.set_state(id, Queue::Probation.with_hits(0));
            self.probation
                .push(residents, Place { id, fingerprint }, weight);
        }
        if total <= capacity {
            self.fill(residents);
        }
    }

    /// An entry left otherwise than as a victim.
    pub(crate) fn removed(&mut self, state: u8, weight: u32) {
        self.entries = self.entries.saturating_sub(1);
        match Queue::of(state) {
            Queue::Probation => self.probation.left(weight),
            Queue::Main => self.main = self.main.saturating_sub(weight.into()),
        }
    }

    /// An entry's weight has changed where it is.
    pub(crate) fn reweighed(&mut self, state: u8, old: u32, new: u32) {
        match Queue::of(state) {
            Queue::Probation => self.probation.reweighed(old, new),
            Queue::Main => self.main = self.main.saturating_sub(old.into()) + u64::from(new),
        }
    }

    /// The store moved an entry, state and all, from one slot to another.
    pub(crate) fn moved<R: Residents>(&mut self, residents: &R, _from: u32, to: u32) {
        let Some(state) = residents.state(to) else {
            return;
        };
        if Queue::of(state) == Queue::Probation {
            // Queued anew: the old place cannot be found without a search. Stores move entries when
            // they shrink, and then nobody is being evicted.
            let weight = residents.weight(to);
            self.probation.left(weight);
            let fingerprint = residents.fingerprint(to);
            let place = Place {
                id: to,
                fingerprint,
            };
            self.probation.push(residents, place, weight);
        }
    }

    /// Whom to evict now. The store removes that entry and does not tell the policy again.
    ///
    /// `None` when every slot that was looked at is vacant or pinned; the next call goes on from there.
    pub(crate) fn victim<R: Residents>(&mut self, residents: &mut R) -> Option<u32> {
        let mut steps = MAX_STEPS;
        while self.probation.weight() > self.target || self.main == 0 {
            let Some(place) = self.probation.pop(residents, &mut steps) else {
                break;
            };
            let hits = residents.state(place.id).unwrap_or_default() & HITS;
            let weight = residents.weight(place.id);
            // Without steps left the hits no longer count.
            let earned = hits > 0 && steps > 0;
            if earned || residents.is_pinned(place.id) {
                residents.set_state(place.id, Queue::Main.with_hits(0));
                self.main += u64::from(weight);
                continue;
            }
            self.entries = self.entries.saturating_sub(1);
            self.remember(place.fingerprint);
            return Some(place.id);
        }
        self.main_victim(residents, steps)
    }

    /// Bytes on the heap.
    pub(crate) fn bytes(&self) -> usize {
        self.probation.bytes() + self.ghost.bytes()
    }

    /// While there is room, whoever leaves probation stays.
    fn fill<R: Residents>(&mut self, residents: &mut R) {
        // Two, so that probation also shrinks when the capacity does.
        for _ in 0..2 {
            if self.probation.weight() <= self.target {
                return;
            }
            let mut steps = MAX_STEPS;
            let Some(place) = self.probation.pop(residents, &mut steps) else {
                return;
            };
            let hits = residents.state(place.id).unwrap_or_default() & HITS;
            residents.set_state(place.id, Queue::Main.with_hits(hits));
            self.main += u64::from(residents.weight(place.id));
        }
    }

    /// Turns the clock to the first entry without a life.
    fn main_victim<R: Residents>(&mut self, residents: &mut R, steps: u32) -> Option<u32> {
        let end = residents.end();
        let mut left = steps.saturating_add(LAST_STEPS);
        while left > 0 {
            left -= 1;
            if self.hand >= end {
                self.hand = 0;
            }
            let id = self.hand;
            self.hand = self.hand.saturating_add(1);
            let Some(state) = residents.state(id) else {
                continue;
            };
            if Queue::of(state) != Queue::Main || residents.is_pinned(id) {
                continue;
            }
            let hits = state & HITS;
            if hits > 0 && left >= LAST_STEPS {
                residents.set_state(id, Queue::Main.with_hits(hits - 1));
                continue;
            }
            self.entries = self.entries.saturating_sub(1);
            self.main = self.main.saturating_sub(residents.weight(id).into());
            return Some(id);
        }
        None
    }

    /// Keeps the fingerprint of an evicted key; the ghosts are made, and grown, here.
    fn remember(&mut self, fingerprint: u32) {
        if self.ghost.capacity() < self.entries.max(MIN_GHOSTS) / 2 {
            self.ghost.resize(self.entries.max(MIN_GHOSTS));
        }
        self.ghost.remember(fingerprint);
    }
}
