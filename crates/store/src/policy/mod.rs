//! The eviction policy: new entries are tried on probation, proven ones stay in the main region.
//!
//! # The picture
//!
//! ```text
//! a new key ──► probation ── was hit ──► main region ── the hand finds no hits ──► evicted
//!     │         (a queue)                 (a clock) ▲
//!     │             │ was not hit                   │
//!     │             ▼                               │
//!     │          evicted, remembered as a ghost     │
//!     └── a key that a ghost remembers ─────────────┘
//! ```
//!
//! An example: a cache of 1,000 entries, and somebody reads 100,000 other keys once each. Those
//! keys go through probation, some 80 at a time, and leave. The entries of the main region stay.
//!
//! # The life of an entry
//!
//! 1. *It is stored.* It goes to the end of [`Probation`], a short queue. If its key was evicted
//!    lately and is remembered by the [`Ghost`], it goes to the main region at once.
//! 2. *It is hit.* Two bits of the entry count the hits, up to 3. Nothing else happens.
//! 3. *Its turn on probation comes*, when it is the oldest there and probation is over its share.
//!    If it was hit, it moves up to the main region. If not, it is evicted, and 15 bits of its
//!    key's hash become a ghost. While probation has a large share, an entry that was hit goes back
//!    to the end of its queue instead: the main region is small then, and the hand would come
//!    before the next hit.
//! 4. *The hand comes to it.* The main region is a CLOCK over the store's slots. The hand goes from
//!    slot to slot, and takes one hit from each entry that has some. It evicts the first entry that
//!    has none.
//!
//! The shape is that of S3-FIFO (Yang et al., SOSP 2023). The order of the clock is that of the
//! slots, which costs no links. A new entry takes the slot that was freed last, so the entries just
//! behind the hand are young, as they would be in a queue.
//!
//! While the cache fills, everything that leaves probation goes to the main region. An example: a
//! program reads 1,500 keys in turn, again and again, and the cache holds 1,000. Most of the 1,000
//! that came first stay, and are hit at each turn. FIFO and LRU would hit none, since they evict
//! each key shortly before it is read again.
//!
//! # What adapts
//!
//! The policy learns from insertions and evictions alone, so that a hit costs nothing more.
//!
//! - **Probation's share of the capacity** is twice the fraction of its entries that are hit there,
//!   between 0.7 and 8 %. If new keys are hardly ever asked for again soon, the main region has the
//!   rest. While the share goes up and down by 0.2 % of the capacity or less, nothing moves to the
//!   main region for that.
//! - **Beyond 8 %, up to 76 %**, it depends on which region would gain more hits from a little more
//!   room. A key that comes back just after it left probation would have been a hit there. An entry
//!   of the main region that has exactly one hit when the hand comes would have been lost in a
//!   slightly smaller region. Both are *marginal hits*. Probation grows while at least a quarter of
//!   them are its own, and shrinks while less than 15 % are. It also shrinks while the main region
//!   has no room to give: at least 70 % of its entries are in use, and that is more than one and a
//!   half times the fraction of probation's entries that are hit. So entries that are read a while
//!   after they were written get the room that the main region does not use. The policy only sees
//!   this if some of those reads come within the first 8 %. If all come later, but before LRU would
//!   evict the entry, LRU is better.
//! - **How many hits move an entry up**: one. It takes two while too few of those that moved up are
//!   hit again.
//! - **Up to which age a ghost is believed**: in proportion to how many of the entries that ghosts
//!   brought back are hit before the hand comes, and to how much of the main region is idle. A key
//!   that came back before, and was not believed, may have an older ghost. The head of `trust.rs`
//!   has the rule. An example is a loop that is a little longer than cache and ghosts together:
//!   nearly all that came back leave without a hit, so hardly a ghost is believed, and what is in
//!   the cache stays.
//! - **Idle entries of the main region.** At every 14th eviction from probation the hand probes
//!   one of them. If it has no hits, it is evicted in place of the entry whose turn had come, and
//!   that one moves up. So an entry that is not hit for long loses its place. The fraction of
//!   probes that find hits says how much of the main region is in use.
//!
//! # Cost
//!
//! An entry has four bits of state and no links: two bits count hits, two name its region. A hit
//! changes only these, and writes nothing once three hits are counted. Besides, there are 8 bytes
//! for each entry on probation and, once evictions begin, 2 bytes an entry for the ghosts.
//!
//! A call of [`Policy::victim`] looks at one or two entries on average, since all others that it
//! looks at pay with a hit. After [`CHOOSING_STEPS`] it takes the next one that is not pinned.
//!
//! `docs/decisions.md` has what else was tried, with figures.
//!
//! **Invariant: the weights of the two regions sum to the weight of all entries.** So an entry that
//! is evicted is subtracted here, and for every other entry that leaves, [`Policy::removed`] must
//! be called.

mod ghost;
mod probation;
mod rate;
mod region;
mod residents;
mod share;
#[cfg(test)]
mod tests;
mod trust;
mod turn;
mod weight;

use ghost::Ghost;
use probation::Probation;
pub(crate) use probation::QueuedEntry;
use rate::Rate;
use region::{Region, hits};
pub(crate) use residents::{Resident, Residents};
use share::Share;
use trust::Trust;
use turn::HandTurn;
use weight::Weight;

/// A search for a victim that has looked at this many slots and places stops choosing.
const CHOOSING_STEPS: u32 = 512;
/// It goes on for this many slots at most, and takes the first entry of the main region that is not
/// pinned.
const LAST_STEPS: u32 = 4096;
/// Entries that one insertion or eviction may move on because probation is over its share.
const SPILLED_PER_CALL: u32 = 2;
/// The hand probes the main region once in this many evictions from probation.
const EVICTIONS_PER_PROBE: u8 = 14;
/// Slots that a probe looks at, at most, to find an entry of the main region.
const PROBE_STEPS: u32 = 16;
/// Ghosts are not made for fewer keys than this.
const MIN_GHOSTS: usize = 64;

/// A key has *just left* while fewer than this many of the eight ghosts in its set are newer.
const JUST_LEFT: usize = 2;
/// Outcomes after which the rate of entries that are hit after they moved up fades.
const PROMOTED_WINDOW: u32 = 64;
/// While less than this percentage of the entries that moved up is hit again, it takes two hits to
/// move up.
const WORTHY_PERCENT: u32 = 20;

/// The state that an entry which was admitted is to have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Admitted(u8);

impl Admitted {
    #[inline]
    pub(crate) fn state(self) -> u8 {
        self.0
    }
}

/// The entry to evict.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Victim {
    pub(crate) id: u32,
    /// Its key's fingerprint, if it was on probation: then it is at hand. A key whose hash once
    /// panicked may have another one.
    pub(crate) fingerprint: Option<u32>,
}

impl Victim {
    fn of_main(id: u32) -> Self {
        Self {
            id,
            fingerprint: None,
        }
    }
}

/// The eviction policy of one shard.
#[derive(Debug)]
pub(crate) struct Policy {
    probation: Probation,
    ghost: Ghost,
    /// Entries in both regions.
    entries: usize,
    /// Weight of the main region.
    main: Weight,
    share: Share,
    /// The slot that the clock looks at next.
    hand: u32,
    /// Of those that moved up from probation: which were hit again before the hand came.
    promoted: Rate,
    trust: Trust,
    /// The hand's pace.
    turn: HandTurn,
    /// Evictions from probation since the last probe.
    since_probe: u8,
}

impl Policy {
    /// A policy without entries; allocates nothing.
    pub(crate) fn new() -> Self {
        Self {
            probation: Probation::default(),
            ghost: Ghost::default(),
            entries: 0,
            main: Weight::default(),
            share: Share::new(),
            hand: 0,
            promoted: Rate::default(),
            trust: Trust::default(),
            turn: HandTurn::default(),
            since_probe: 0,
        }
    }

    /// The state after a hit; `None` when nothing is to be written.
    #[inline(always)]
    pub(crate) fn hit(state: u8) -> Option<u8> {
        region::after_hit(state)
    }

    /// A new entry comes: decides its region, and counts its weight there. It has no slot yet, so
    /// that it may have the one of the [`victim`](Self::victim) that leaves for it.
    /// [`settle`](Self::settle) ends this. `total` and `capacity` are weights, the entry's
    /// included. O(1).
    #[inline]
    pub(crate) fn admit(
        &mut self,
        fingerprint: u32,
        weight: u32,
        total: u64,
        capacity: u64,
    ) -> Admitted {
        self.entries += 1;
        self.share.whole = total.min(capacity);
        if capacity == u64::MAX {
            // Nobody will ever be evicted: no queue is needed.
            self.main.add(weight);
            Admitted(Region::Main.with_hits(0))
        } else if self.recalls(fingerprint) {
            self.main.add(weight);
            Admitted(Region::Returned.with_hits(1))
        } else {
            self.probation.expect(weight);
            Admitted(Region::Probation.with_hits(0))
        }
    }

    /// An entry that was admitted has its slot, with the [state](Admitted::state).
    #[inline(always)]
    pub(crate) fn settle<R: Residents>(
        &mut self,
        residents: &R,
        place: QueuedEntry,
        admitted: Admitted,
    ) {
        if Region::of(admitted.state()) == Region::Probation {
            self.probation.push(residents, place);
        }
    }

    /// Entries move on if probation is over its share, though nobody has to leave. To be called for
    /// each new entry that finds room.
    #[inline(always)]
    pub(crate) fn make_way<R: Residents>(&mut self, residents: &mut R) {
        self.spill(residents, SPILLED_PER_CALL);
    }

    /// An entry has left, but not as a victim.
    pub(crate) fn removed(&mut self, state: u8, weight: u32) {
        self.count_out();
        match Region::of(state) {
            Region::Probation => self.probation.forget(weight),
            _ => self.main.subtract(weight),
        }
    }

    /// An entry's weight has changed where it is.
    pub(crate) fn reweighed(&mut self, state: u8, old: u32, new: u32) {
        match Region::of(state) {
            Region::Probation => self.probation.reweighed(old, new),
            _ => self.main.reweighed(old, new),
        }
    }

    /// The store moved an entry, state and all, to another slot.
    pub(crate) fn moved<R: Residents>(&mut self, residents: &R, to: u32, fingerprint: u32) {
        let Some(state) = residents.state(to) else {
            return;
        };
        if Region::of(state) == Region::Probation {
            // Queued again, at the end: the old place cannot be found without a search. That the
            // entry gets more time does not matter: stores move entries when they shrink, and then
            // nobody is evicted.
            let weight = residents.weight(to);
            self.probation.forget(weight);
            self.probation.expect(weight);
            let place = QueuedEntry {
                id: to,
                fingerprint,
            };
            self.probation.push(residents, place);
        }
    }

    /// Whom to evict now. The store removes that entry and does not tell the policy again.
    ///
    /// `None` when everything that it looked at is pinned or vacant. The next call goes on from
    /// there.
    #[inline(always)]
    pub(crate) fn victim<R: Residents>(&mut self, residents: &mut R) -> Option<Victim> {
        self.turn.count_eviction();
        let mut steps = CHOOSING_STEPS;
        while self.probation.weight() > self.share.weight() || self.main.total() == 0 {
            if steps == 0 {
                break;
            }
            steps -= 1;
            let Some(place) = self.probation.pop_place() else {
                break;
            };
            let Some(resident) = self.probation.leave(residents, place) else {
                continue;
            };
            let choosing = steps > 0;
            if let Some(victim) = self.decide(residents, place, resident, choosing) {
                // The victim made room for the new entry. One more moves on, so that probation
                // follows when its share shrinks for good.
                self.spill(residents, SPILLED_PER_CALL - 1);
                return Some(victim);
            }
        }
        self.turn_clock(residents, steps)
            .map(Victim::of_main)
            .or_else(|| self.oldest_on_probation(residents))
    }

    /// Asks for the ghosts that an insertion or eviction of `fingerprint` reads, and does not wait
    /// for them.
    #[inline]
    pub(crate) fn prefetch(&self, fingerprint: u32) {
        self.ghost.prefetch(fingerprint);
    }

    /// The id and the fingerprint of the entry that is likely to be evicted next.
    #[inline]
    pub(crate) fn next(&self) -> Option<(u32, u32)> {
        let place = self.probation.front()?;
        Some((place.id, place.fingerprint))
    }

    /// Bytes on the heap.
    pub(crate) fn bytes(&self) -> usize {
        self.probation.bytes() + self.ghost.bytes()
    }

    /// The turn of an entry on probation has come: it moves up, or the entry to evict is returned,
    /// mostly this one. Unless `choosing`, its hits do not count.
    #[inline(always)]
    fn decide<R: Residents>(
        &mut self,
        residents: &mut R,
        place: QueuedEntry,
        resident: Resident,
        choosing: bool,
    ) -> Option<Victim> {
        let hits = hits(resident.state);
        self.share.count_turn(hits > 0, self.entries);
        if hits > 0 && choosing && !resident.is_pinned && self.share.is_wide() {
            self.wait_again(residents, place, resident.weight);
            return None;
        }
        let needed = 1 + u8::from(self.promoted.is_below(WORTHY_PERCENT));
        if (hits >= needed && choosing) || resident.is_pinned {
            residents.set_state(place.id, Region::Promoted.with_hits(0));
            self.main.add(resident.weight);
            return None;
        }
        self.count_out();
        let idle = if choosing {
            self.probe(residents)
        } else {
            None
        };
        if let Some(idle) = idle {
            residents.set_state(place.id, Region::Main.with_hits(hits));
            self.main.add(resident.weight);
            self.main.subtract(residents.weight(idle));
            return Some(Victim::of_main(idle));
        }
        if self.probation.has_stale() {
            // Another place may name it: a stale one, from before its key was stored again. The
            // store still has the entry, so its state says that it is no longer on probation.
            residents.set_state(place.id, Region::Main.with_hits(0));
        }
        self.remember(place.fingerprint);
        Some(Victim {
            id: place.id,
            fingerprint: Some(place.fingerprint),
        })
    }

    /// An entry that was hit on probation stays there, at the end of the queue.
    #[inline(never)]
    fn wait_again<R: Residents>(&mut self, residents: &mut R, place: QueuedEntry, weight: u32) {
        residents.set_state(place.id, Region::Probation.with_hits(0));
        self.probation.expect(weight);
        self.probation.push(residents, place);
    }

    /// Once in [`EVICTIONS_PER_PROBE`] calls, looks at one entry of the main region. Returns it if
    /// it has no hits.
    #[inline(always)]
    fn probe<R: Residents>(&mut self, residents: &mut R) -> Option<u32> {
        self.since_probe += 1;
        if self.since_probe < EVICTIONS_PER_PROBE {
            return None;
        }
        self.since_probe = 0;
        self.probe_now(residents)
    }

    #[inline(never)]
    fn probe_now<R: Residents>(&mut self, residents: &mut R) -> Option<u32> {
        for _ in 0..PROBE_STEPS {
            let id = self.advance(residents.end());
            if let Some((region, was_hit)) = self.take_hit(residents, id) {
                if region == Region::Main {
                    self.trust.count_in_use(was_hit);
                }
                return (!was_hit).then_some(id);
            }
        }
        None
    }

    /// Moves the oldest entries of probation to the main region, with their hits, while probation
    /// is well over its share: `most` of them at most.
    #[inline(always)]
    fn spill<R: Residents>(&mut self, residents: &mut R, most: u32) {
        for _ in 0..most {
            let is_over = self.probation.weight() > self.share.spilling_weight();
            if !is_over || !self.spill_one(residents) {
                return;
            }
        }
    }

    #[inline(never)]
    fn spill_one<R: Residents>(&mut self, residents: &mut R) -> bool {
        let mut steps = CHOOSING_STEPS;
        let Some((place, resident)) = self.probation.pop(residents, &mut steps) else {
            return false;
        };
        let hits = hits(resident.state);
        residents.set_state(place.id, Region::Main.with_hits(hits));
        self.main.add(resident.weight);
        true
    }

    /// Turns the clock to the first entry without hits.
    #[inline(never)]
    fn turn_clock<R: Residents>(&mut self, residents: &mut R, choosing: u32) -> Option<u32> {
        let end = residents.end();
        let mut steps = choosing.saturating_add(LAST_STEPS);
        while steps > 0 {
            steps -= 1;
            let id = self.advance(end);
            match self.take_hit(residents, id) {
                Some((_, was_hit)) if !was_hit || steps < LAST_STEPS => {
                    self.count_out();
                    self.main.subtract(residents.weight(id));
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

    /// The hand comes to an entry and takes a hit from it. Tells the entry's region, and whether it
    /// had a hit. `None` if the entry is on probation or pinned.
    fn take_hit<R: Residents>(&mut self, residents: &mut R, id: u32) -> Option<(Region, bool)> {
        let state = residents.state(id)?;
        let region = Region::of(state);
        if region == Region::Probation || residents.is_pinned(id) {
            return None;
        }
        let hits = hits(state);
        self.turn.count_look(self.entries);
        match region {
            Region::Promoted => self.promoted.count(hits > 0, PROMOTED_WINDOW),
            // The first hit was given to it when it came back.
            Region::Returned => self.trust.count_returned(hits > 1, self.entries),
            Region::Main | Region::Probation => {}
        }
        if hits == 1 {
            // Hit once in a whole turn of the hand: a slightly smaller region would have lost it.
            self.share.count_mains_hit(self.entries);
        }
        if hits > 0 {
            residents.set_state(id, Region::Main.with_hits(hits - 1));
        }
        Some((region, hits > 0))
    }

    /// The last resort, when the clock finds only pinned entries and vacant slots.
    #[cold]
    #[inline(never)]
    fn oldest_on_probation<R: Residents>(&mut self, residents: &mut R) -> Option<Victim> {
        let mut steps = CHOOSING_STEPS;
        while let Some((place, resident)) = self.probation.pop(residents, &mut steps) {
            let victim = self.decide(residents, place, resident, false);
            if victim.is_some() {
                return victim;
            }
        }
        None
    }

    /// Returns whether a new key goes to the main region, because a ghost remembers it and is
    /// believed. Then the ghost is used up. If it is not believed, it is known from now on that the
    /// key was missed.
    #[inline]
    fn recalls(&mut self, fingerprint: u32) -> bool {
        self.ghost.remembers(fingerprint) && self.recall(fingerprint)
    }

    /// As [`recalls`](Self::recalls), where a ghost may remember the key.
    #[inline(never)]
    fn recall(&mut self, fingerprint: u32) -> bool {
        let Some(remembered) = self.ghost.recall(fingerprint) else {
            return false;
        };
        if remembered.newer < JUST_LEFT {
            let room = !self.trust.main_is_in_use(self.share.hit_on_probation());
            self.share.count_probations_hit(room, self.entries);
        }
        let age = self.ghost.age(remembered.newer);
        let turn = self.turn.evictions(self.entries);
        let is_believed =
            turn.is_none_or(|turn| self.trust.believes(age, turn, remembered.was_missed));
        if is_believed {
            self.ghost.forget(fingerprint, remembered);
        } else {
            self.ghost.missed(fingerprint, remembered);
        }
        is_believed
    }

    /// Keeps the fingerprint of an evicted key; the ghosts are made, and grown, here.
    #[inline]
    fn remember(&mut self, fingerprint: u32) {
        let entries = self.entries.max(MIN_GHOSTS);
        if self.ghost.capacity() < entries / 2 {
            self.ghost.resize(entries);
        }
        self.ghost.remember(fingerprint);
    }

    /// An entry has left.
    #[inline]
    fn count_out(&mut self) {
        debug_assert!(self.entries > 0, "more entries have left than came");
        self.entries = self.entries.saturating_sub(1);
    }
}
