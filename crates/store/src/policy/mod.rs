//! Whom to evict: a short probation queue, a clock over the entries' own slots, and ghosts.
//!
//! # Structure
//!
//! The shape is S3-FIFO's (Yang et al., SOSP 2023). A new entry waits in [`Probation`], a short FIFO. Was
//! it hit when its turn comes, it moves to the main region, else it is evicted and its fingerprint kept in
//! [`Ghost`]; a key that comes back while it is remembered goes to the main region at once. The main
//! region is a CLOCK whose order is the slab's: the hand takes a life from every entry that it meets and
//! evicts the first that has none. A new entry takes the slot that was freed last, so slots behind the
//! hand hold young entries, which is as much order as the clock needs.
//!
//! While the cache fills, the main region takes what leaves probation unconditionally: a loop larger
//! than the cache then finds most of its first entries at each turn, where FIFO and LRU find none.
//!
//! # What adapts
//!
//! All from what insertions and evictions see anyway; a hit tells the policy nothing.
//!
//! - **Probation's share** is twice the fraction of its entries that are hit in it, between 1 and 8 % of
//!   the capacity: where new keys are hardly ever asked for again soon, the room is the main region's.
//! - **How far beyond 8 %**, up to 90, goes by which region would use a little more room better. A key
//!   that comes back when it has just left probation is a hit that probation would have had; an entry
//!   with exactly one life when the hand comes is a hit that the main region would nearly not have
//!   had. Probation may grow while it has a third of both together, and gives room back below a tenth.
//!   So what is read once, within a while after it was written, finds the room that the main region has
//!   no use for. It takes some reads within the first 8 % to see that: where none comes so early, and
//!   all before the room is turned over once, LRU remains better.
//! - **How many hits move an entry up**: one, and two while too few of those that moved are hit again.
//! - **Whether ghosts are believed**: not while nearly all entries that came back in that way leave again
//!   without a hit, as in a loop a little longer than cache and ghosts together, nor while nearly all of
//!   the main region is hit time and again. One in 64 is still believed, to notice when that ends.
//! - **Who need not stay**: at every eighth eviction the hand looks at one entry of the main region. If
//!   that has no life, it leaves in the place of the one whose turn had come, which moves up. So what
//!   was not hit while the cache was turned over eight times does not keep its place, whatever it once
//!   earned; and the fraction with lives says how much of the main region is in use.
//!
//! # Cost
//!
//! An entry pays the bits of its state, no links: two count hits, two name its region. A hit changes
//! those alone and writes nothing once three hits are counted. Beside the entries there are 8 bytes
//! for each entry on probation and, once evictions begin, 2 per entry for the ghosts.
//!
//! One call of [`Policy::victim`] looks at no more than [`CHOOSING_STEPS`] slots before it takes the next
//! that it may. On average it looks at one or two.
//!
//! What else was tried, with figures: `docs/decisions.md`.
//!
//! **Invariant: the weights of the two regions sum to the weight of all entries**, so every entry that
//! leaves otherwise than as a victim must be told to [`Policy::removed`].

mod ghost;
mod probation;
mod rate;
#[cfg(test)]
mod tests;

use ghost::Ghost;
use probation::{Place, Probation};
use rate::Rate;

/// The bits of a state that count hits.
const HITS: u8 = 0b11;
/// A hit beyond this count writes nothing.
const MAX_HITS: u8 = 3;
/// Where a state keeps its region.
const REGION_SHIFT: u32 = 2;
/// Slots and places that one search for a victim looks at before it stops choosing.
const CHOOSING_STEPS: u32 = 512;
/// Steps after that in which an entry that is neither pinned nor on probation must turn up.
const LAST_STEPS: u32 = 4096;
/// Entries that one insertion or eviction may move on because probation is over its share.
const SPILLED_PER_CALL: u32 = 2;
/// Evictions from probation until the hand glances at the main region.
const EVICTIONS_PER_GLANCE: u8 = 8;
/// Slots that a glance looks at to find an entry of the main region.
const GLANCE_STEPS: u32 = 16;
/// Ghosts are not made for fewer keys than this.
const MIN_GHOSTS: usize = 64;

/// Probation's share of the capacity is counted in parts of this.
const WHOLE: u16 = 1024;
/// Probation's least share: 1 %.
const MIN_SHARE: u32 = 10;
/// Probation's largest share while the main region makes better use of the room, and what it starts
/// with: 8 %.
const MAX_SHARE: u32 = 82;
/// What it may have beyond that when probation makes better use of it: 82 %.
const MAX_EXTRA: u32 = 840;
/// The extra share is counted in so many parts of those of [`WHOLE`].
const FINE: u32 = 1024;
/// Entries by which the extra share grows or shrinks at a time.
const EXTRA_STEP: u32 = 2;
/// A ghost was made just now while fewer than so many of its set's eight are newer.
const JUST_LEFT: usize = 2;
/// Percentage of the marginal hits that must be probation's, lest its extra share stop growing.
const GROWING_PERCENT: u32 = 34;
/// Percentage of the marginal hits below which the extra share shrinks.
const SHRINKING_PERCENT: u32 = 10;
/// Outcomes after which the rate of marginal hits fades.
const MARGINAL_WINDOW: u32 = 1024;
/// Probation's share is its entries' rate of being hit, times this.
const SHARE_PER_HIT_RATE: u32 = 2;
/// Outcomes after which the rate of hits on probation fades: as many as there are entries, within this.
const PROBATION_WINDOW: (u32, u32) = (64, 4096);
/// Outcomes after which the rates of return fade.
const RETURN_WINDOW: u32 = 64;
/// Percentage of entries moved up from probation that must be hit again, lest it take two hits.
const WORTHY_PERCENT: u32 = 20;
/// Percentage of entries come back from the ghosts that must be hit, lest ghosts be doubted.
const BELIEVED_PERCENT: u32 = 15;
/// Percentage of the main region that must be in use, lest newcomers from the ghosts be welcome.
const BUSY_PERCENT: u32 = 80;
/// While ghosts are doubted, one in so many is believed.
const DOUBTED_PART: u32 = 64;

/// What the policy may know of the entries.
pub(crate) trait Residents {
    /// The entry's state, of which the policy uses the low four bits; `None` when the slot is vacant.
    fn state(&self, id: u32) -> Option<u8>;
    /// Overwrites the entry's state.
    fn set_state(&mut self, id: u32, state: u8);
    /// Whether the entry must stay.
    fn is_pinned(&self, id: u32) -> bool;
    /// The entry's share of the capacity.
    fn weight(&self, id: u32) -> u32;
    /// 32 well-mixed bits of the key's hash. Costs a hash of the key: asked for when a slot of an entry
    /// on probation may have changed hands. `None` when the key cannot be hashed.
    fn fingerprint(&self, id: u32) -> Option<u32>;
    /// All ids are below this; there may be vacant slots between.
    fn end(&self) -> u32;
}

/// Where an entry is, and for the unproven how it came there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Region {
    Probation,
    Main,
    /// In main, moved up from probation, not met by the hand yet.
    Promoted,
    /// In main, remembered by the ghosts, not met by the hand yet.
    Returned,
}

impl Region {
    fn of(state: u8) -> Self {
        match (state >> REGION_SHIFT) & 0b11 {
            0 => Self::Probation,
            1 => Self::Main,
            2 => Self::Promoted,
            _ => Self::Returned,
        }
    }

    fn with_hits(self, hits: u8) -> u8 {
        let region: u8 = match self {
            Self::Probation => 0,
            Self::Main => 1,
            Self::Promoted => 2,
            Self::Returned => 3,
        };
        region << REGION_SHIFT | hits
    }
}

/// The eviction policy of one shard. New entries start with state 0.
#[derive(Debug)]
pub(crate) struct Policy {
    probation: Probation,
    ghost: Ghost,
    /// Entries in both regions.
    entries: usize,
    /// Weight of the main region.
    main: u64,
    /// The weight that probation's share is of.
    room: u64,
    /// Probation's share of it, in parts of [`WHOLE`].
    share: u32,
    /// What probation may have beyond [`MAX_SHARE`], in parts of [`WHOLE`] times [`FINE`].
    extra: u32,
    /// Of the hits that a region would win or lose with a little more or less room: which are probation's.
    marginal: Rate,
    /// The slot that the clock looks at next.
    hand: u32,
    /// Of the entries whose turn on probation came: which had been hit.
    hit_on_probation: Rate,
    /// Of those that moved up from probation: which were hit again before the hand came.
    promoted: Rate,
    /// Of those that the ghosts remembered: which were hit before the hand came.
    returned: Rate,
    /// Of the main region's entries at which the hand glanced: which had a life.
    in_use: Rate,
    /// Evictions from probation since the last glance.
    since_glance: u8,
    /// Ghosts not believed since the last that was.
    doubted: u32,
}

impl Policy {
    /// A policy without entries; allocates nothing.
    pub(crate) fn new() -> Self {
        Self {
            probation: Probation::default(),
            ghost: Ghost::default(),
            entries: 0,
            main: 0,
            room: 0,
            share: MAX_SHARE,
            extra: 0,
            marginal: Rate::default(),
            hand: 0,
            hit_on_probation: Rate::default(),
            promoted: Rate::default(),
            returned: Rate::default(),
            in_use: Rate::default(),
            since_glance: 0,
            doubted: 0,
        }
    }

    /// The state after a hit; `None` when nothing is to be written.
    #[inline]
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
        self.room = total.min(capacity);
        if capacity == u64::MAX {
            // Nobody will ever be evicted: no queue is needed.
            residents.set_state(id, Region::Main.with_hits(0));
            self.main += u64::from(weight);
        } else if self.recalls(fingerprint) && self.believes_ghosts() {
            residents.set_state(id, Region::Returned.with_hits(1));
            self.main += u64::from(weight);
        } else {
            residents.set_state(id, Region::Probation.with_hits(0));
            let place = Place { id, fingerprint };
            self.probation.push(residents, place, weight);
        }
        if total <= capacity {
            self.spill(residents, SPILLED_PER_CALL);
        }
    }

    /// An entry left otherwise than as a victim.
    pub(crate) fn removed(&mut self, state: u8, weight: u32) {
        self.entries = self.entries.saturating_sub(1);
        match Region::of(state) {
            Region::Probation => self.probation.left(weight),
            _ => self.main = self.main.saturating_sub(weight.into()),
        }
    }

    /// An entry's weight has changed where it is.
    pub(crate) fn reweighed(&mut self, state: u8, old: u32, new: u32) {
        match Region::of(state) {
            Region::Probation => self.probation.reweighed(old, new),
            _ => self.main = self.main.saturating_sub(old.into()) + u64::from(new),
        }
    }

    /// The store moved an entry, state and all, to another slot.
    pub(crate) fn moved<R: Residents>(&mut self, residents: &R, to: u32, fingerprint: u32) {
        let Some(state) = residents.state(to) else {
            return;
        };
        if Region::of(state) == Region::Probation {
            // Queued anew: the old place cannot be found without a search. Stores move entries when
            // they shrink, and then nobody is being evicted.
            let weight = residents.weight(to);
            self.probation.left(weight);
            let place = Place {
                id: to,
                fingerprint,
            };
            self.probation.push(residents, place, weight);
        }
    }

    /// Whom to evict now. The store removes that entry and does not tell the policy again.
    ///
    /// `None` when all that it looked at is pinned or vacant; the next call goes on from there.
    pub(crate) fn victim<R: Residents>(&mut self, residents: &mut R) -> Option<u32> {
        let mut steps = CHOOSING_STEPS;
        while self.probation.weight() > self.share() || self.main == 0 {
            let Some(place) = self.probation.pop(residents, &mut steps) else {
                break;
            };
            let choosing = steps > 0;
            if let Some(id) = self.judge(residents, place, choosing) {
                // One more than the newcomer needs: so probation follows when its share shrinks.
                self.spill(residents, SPILLED_PER_CALL - 1);
                return Some(id);
            }
        }
        self.turn_clock(residents, steps)
            .or_else(|| self.oldest_on_probation(residents))
    }

    /// Loads what the next insertion of `fingerprint` and the next eviction will read of the ghosts, so
    /// that their cache misses overlap. Returns something of what was loaded, and the id and the
    /// fingerprint of the entry that is likely to be evicted next.
    #[inline]
    pub(crate) fn touch(&self, fingerprint: u32) -> (u32, Option<(u32, u32)>) {
        let mut loaded = self.ghost.touch(fingerprint);
        let next = self.probation.front().map(|place| {
            loaded ^= self.ghost.touch(place.fingerprint);
            (place.id, place.fingerprint)
        });
        (loaded, next)
    }

    /// Bytes on the heap.
    pub(crate) fn bytes(&self) -> usize {
        self.probation.bytes() + self.ghost.bytes()
    }

    /// The turn of an entry on probation has come: it moves up, or its id is returned to be evicted.
    /// Without `choosing` its hits do not count.
    fn judge<R: Residents>(
        &mut self,
        residents: &mut R,
        place: Place,
        choosing: bool,
    ) -> Option<u32> {
        let hits = residents.state(place.id).unwrap_or_default() & HITS;
        let (least, most) = PROBATION_WINDOW;
        let window = u32::try_from(self.entries).unwrap_or(most);
        self.hit_on_probation
            .count(hits > 0, window.clamp(least, most));
        if let Some(rate) = self.hit_on_probation.of(WHOLE) {
            let most = MAX_SHARE + self.extra / FINE;
            self.share = (rate * SHARE_PER_HIT_RATE).clamp(MIN_SHARE, most);
        }
        let needed = 1 + u8::from(self.promoted.is_below(WORTHY_PERCENT));
        if (hits >= needed && choosing) || residents.is_pinned(place.id) {
            residents.set_state(place.id, Region::Promoted.with_hits(0));
            self.main += u64::from(residents.weight(place.id));
            return None;
        }
        self.entries = self.entries.saturating_sub(1);
        if choosing && let Some(idle) = self.glance(residents) {
            residents.set_state(place.id, Region::Main.with_hits(hits));
            self.main += u64::from(residents.weight(place.id));
            self.main = self.main.saturating_sub(residents.weight(idle).into());
            return Some(idle);
        }
        self.remember(place.fingerprint);
        Some(place.id)
    }

    /// Once in [`EVICTIONS_PER_GLANCE`] calls, looks at one entry of the main region; returns it if it has
    /// no life.
    fn glance<R: Residents>(&mut self, residents: &mut R) -> Option<u32> {
        self.since_glance += 1;
        if self.since_glance < EVICTIONS_PER_GLANCE {
            return None;
        }
        self.since_glance = 0;
        for _ in 0..GLANCE_STEPS {
            let id = self.advance(residents.end());
            if let Some((region, lives)) = self.meet(residents, id) {
                if region == Region::Main {
                    self.in_use.count(lives, RETURN_WINDOW);
                }
                return (!lives).then_some(id);
            }
        }
        None
    }

    /// Moves the oldest entries of probation, hits and all, to the main region while it is over its share.
    fn spill<R: Residents>(&mut self, residents: &mut R, most: u32) {
        for _ in 0..most {
            if self.probation.weight() <= self.share() {
                return;
            }
            let mut steps = CHOOSING_STEPS;
            let Some(place) = self.probation.pop(residents, &mut steps) else {
                return;
            };
            let hits = residents.state(place.id).unwrap_or_default() & HITS;
            residents.set_state(place.id, Region::Main.with_hits(hits));
            self.main += u64::from(residents.weight(place.id));
        }
    }

    /// Turns the clock to the first entry without a life.
    fn turn_clock<R: Residents>(&mut self, residents: &mut R, choosing: u32) -> Option<u32> {
        let end = residents.end();
        let mut left = choosing.saturating_add(LAST_STEPS);
        while left > 0 {
            left -= 1;
            let id = self.advance(end);
            match self.meet(residents, id) {
                Some((_, lives)) if !lives || left < LAST_STEPS => {
                    self.entries = self.entries.saturating_sub(1);
                    self.main = self.main.saturating_sub(residents.weight(id).into());
                    return Some(id);
                }
                _ => {}
            }
        }
        None
    }

    /// The slot under the hand, which moves on.
    fn advance(&mut self, end: u32) -> u32 {
        let id = if self.hand < end { self.hand } else { 0 };
        self.hand = id.saturating_add(1);
        id
    }

    /// The hand meets an entry: takes a life from it. Tells its region and whether it had a life; `None`
    /// unless it is in the main region and may leave.
    fn meet<R: Residents>(&mut self, residents: &mut R, id: u32) -> Option<(Region, bool)> {
        let state = residents.state(id)?;
        let region = Region::of(state);
        if region == Region::Probation || residents.is_pinned(id) {
            return None;
        }
        let hits = state & HITS;
        match region {
            Region::Promoted => self.promoted.count(hits > 0, RETURN_WINDOW),
            // One life was a present.
            Region::Returned => self.returned.count(hits > 1, RETURN_WINDOW),
            Region::Main | Region::Probation => {}
        }
        if hits == 1 {
            // Hit once in a whole turn of the hand.
            self.weigh_regions(false);
        }
        if hits > 0 {
            residents.set_state(id, Region::Main.with_hits(hits - 1));
        }
        Some((region, hits > 0))
    }

    /// The last resort, when the clock finds pinned entries and vacant slots only.
    fn oldest_on_probation<R: Residents>(&mut self, residents: &mut R) -> Option<u32> {
        let mut steps = CHOOSING_STEPS;
        while let Some(place) = self.probation.pop(residents, &mut steps) {
            if let Some(id) = self.judge(residents, place, false) {
                return Some(id);
            }
        }
        None
    }

    /// The weight that probation may have before its oldest entry is judged.
    fn share(&self) -> u64 {
        let share = u64::from(self.share);
        // Beyond 2^54 the quotient alone is exact enough.
        let part = match self.room.checked_mul(share) {
            Some(product) => product / u64::from(WHOLE),
            None => self.room / u64::from(WHOLE) * share,
        };
        part.max(1)
    }

    /// Whether the ghosts remember a new key.
    fn recalls(&mut self, fingerprint: u32) -> bool {
        let newer = self.ghost.recall(fingerprint);
        if newer.is_some_and(|newer| newer < JUST_LEFT) {
            self.weigh_regions(true);
        }
        newer.is_some()
    }

    /// A hit that probation would have had with a little more room, or that the main region would not have
    /// had with a little less.
    fn weigh_regions(&mut self, is_probations: bool) {
        self.marginal.count(is_probations, MARGINAL_WINDOW);
        let entries = u32::try_from(self.entries).unwrap_or(u32::MAX);
        let step = (EXTRA_STEP * u32::from(WHOLE) * FINE).div_ceil(entries.max(PROBATION_WINDOW.0));
        if is_probations && self.marginal.reaches(GROWING_PERCENT) {
            self.extra = (self.extra + step).min(MAX_EXTRA * FINE);
        } else if !is_probations && self.marginal.is_below(SHRINKING_PERCENT) {
            self.extra = self.extra.saturating_sub(step);
        }
    }

    /// Whether a key that the ghosts remember goes to the main region.
    fn believes_ghosts(&mut self) -> bool {
        if !self.returned.is_below(BELIEVED_PERCENT) && !self.in_use.reaches(BUSY_PERCENT) {
            return true;
        }
        self.doubted += 1;
        if self.doubted < DOUBTED_PART {
            return false;
        }
        self.doubted = 0;
        true
    }

    /// Keeps the fingerprint of an evicted key; the ghosts are made, and grown, here.
    fn remember(&mut self, fingerprint: u32) {
        let entries = self.entries.max(MIN_GHOSTS);
        if self.ghost.capacity() < entries / 2 {
            self.ghost.resize(entries);
        }
        self.ghost.remember(fingerprint);
    }
}
