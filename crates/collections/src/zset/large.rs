//! A large sorted set: its members are the keys of a small store, their order is a tree of the
//! store's ids.
//!
//! A member's block has its score, so a score is found as a hash's value is. The tree follows a
//! block that moves: when its member gets a deadline for the first time, or when it leaves a sparse
//! page.

use std::ops::{Bound, Range};

use tidewheel_store::{HandedBack, KeyHasher, NewValue, Progress, Slot, Store, Value};

use super::Scored;
use crate::order::Order;
use crate::packed::DEADLINE_MAX;
use crate::walk::{CopiedMembers, Walk, Walked};

/// The members of a large sorted set. It is read by [`ZSetRef`](super::ZSetRef) and changed by
/// [`ZSet`](super::ZSet).
#[derive(Debug)]
pub struct LargeZSet {
    members: Store<()>,
    order: Order,
    /// The latest deadline that a member was ever given.
    latest: u64,
    /// The walk of a snapshot, while there is one.
    walk: Walk,
}

/// Returns whether a member comes before (score, member) in the order.
fn before(members: &Store<()>, score: f64, member: &[u8]) -> impl Fn(f64, u32) -> bool {
    move |own, id| own < score || (own == score && members.key(Slot::from_bits(id)) < member)
}

#[inline]
fn score_at(members: &Store<()>, id: u32) -> f64 {
    match members.value(Slot::from_bits(id)) {
        Value::Inline(bytes) => bytes.try_into().map_or(0.0, f64::from_le_bytes),
        Value::Object(()) => 0.0,
    }
}

impl LargeZSet {
    pub(super) fn new(hasher: &KeyHasher) -> Self {
        Self {
            members: Store::new(hasher.clone()),
            order: Order::new(),
            latest: 0,
            walk: Walk::default(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    /// Members that have a deadline.
    pub(super) fn timed(&self) -> usize {
        self.members.timed()
    }

    pub(super) fn next_deadline(&self) -> Option<u64> {
        self.members.next_deadline()
    }

    /// Returns whether the deadlines of all members are known to be at or before `now`. O(1).
    pub(super) fn is_over(&self, now: u64) -> bool {
        self.len() == 0 || self.timed() == self.len() && self.latest <= now
    }

    /// Heap bytes held. O(1).
    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>() + self.members.held_bytes() + self.order.bytes()
    }

    pub(super) fn find(&self, member: &[u8]) -> Option<Slot> {
        self.members
            .find(self.members.hasher().hash(member), member)
    }

    pub(super) fn score(&self, slot: Slot) -> f64 {
        score_at(&self.members, slot.to_bits())
    }

    pub(super) fn scored(&self, slot: Slot) -> Scored<'_> {
        Scored {
            member: self.members.key(slot),
            score: self.score(slot),
            deadline: self.members.deadline(slot),
        }
    }

    fn by_id(&self, id: u32) -> Scored<'_> {
        self.scored(Slot::from_bits(id))
    }

    /// Returns the number of members before one that is there.
    pub(super) fn rank(&self, slot: Slot) -> usize {
        let own = slot.to_bits();
        let before = before(&self.members, self.score(slot), self.members.key(slot));
        self.order.rank(|score, id| id != own && before(score, id))
    }

    pub(super) fn nth(&self, rank: usize) -> Option<Scored<'_>> {
        let id = match rank {
            0 => self.order.first(),
            _ if rank + 1 == self.len() => self.order.last(),
            _ => self.order.at(rank),
        };
        id.map(|id| self.by_id(id))
    }

    pub(super) fn forward(&self, rank: usize) -> impl Iterator<Item = Scored<'_>> {
        let ids = self.order.forward(rank, |id| self.ask_for(id));
        ids.map(|id| self.by_id(id))
    }

    pub(super) fn backward(&self, rank: usize) -> impl Iterator<Item = Scored<'_>> {
        let ids = self.order.backward(rank, |id| self.ask_for(id));
        ids.map(|id| self.by_id(id))
    }

    /// Asks the memory for a member ahead of its use.
    #[inline]
    fn ask_for(&self, id: u32) {
        self.members.warm(Slot::from_bits(id));
    }

    pub(super) fn by_score(&self, min: Bound<f64>, max: Bound<f64>) -> Range<usize> {
        let start = self.order.rank(|score, _| super::below_start(score, min));
        let end = self.order.rank(|score, _| super::within_end(score, max));
        start..end.max(start)
    }

    pub(super) fn by_lex(&self, min: Bound<&[u8]>, max: Bound<&[u8]>) -> Range<usize> {
        let key = |id| self.members.key(Slot::from_bits(id));
        let start = self.order.rank(|_, id| super::below_start(key(id), min));
        let end = self.order.rank(|_, id| super::within_end(key(id), max));
        start..end.max(start)
    }

    /// Visits at least `count` members from `cursor` on; returns the next cursor, or 0 at the end.
    pub(super) fn scan<'a>(
        &'a self,
        cursor: u64,
        count: usize,
        mut visit: impl FnMut(Scored<'a>),
    ) -> u64 {
        // A cursor of somebody's invention is at the end.
        let Ok(cursor) = u32::try_from(cursor) else {
            return 0;
        };
        let next = self
            .members
            .scan(cursor, count.max(1), |slot| visit(self.scored(slot)));
        next.map_or(0, u64::from)
    }

    /// Adds a member that is not there.
    pub(super) fn add(&mut self, member: &[u8], score: f64, deadline: Option<u64>, now: u64) {
        let hash = self.members.hasher().hash(member);
        let bytes = score.to_le_bytes();
        let deadline = self.noted(deadline);
        self.walk.claim(hash);
        let slot = self
            .members
            .insert(hash, member, 0, NewValue::Inline(&bytes), deadline, now);
        self.enter(slot, score, member);
    }

    fn enter(&mut self, slot: Slot, score: f64, member: &[u8]) {
        let Self { members, order, .. } = self;
        let before = before(members, score, member);
        order.insert(slot.to_bits(), score, before);
    }

    fn leave(&mut self, slot: Slot) {
        let Self { members, order, .. } = self;
        let own = slot.to_bits();
        let before = before(members, score_at(members, own), members.key(slot));
        let found = order.remove(own, |score, id| id != own && before(score, id));
        debug_assert!(found, "a member is in the order");
    }

    /// Gives a member that is there another score and deadline.
    pub(super) fn update(
        &mut self,
        slot: Slot,
        member: &[u8],
        score: f64,
        deadline: Option<u64>,
        now: u64,
    ) {
        if self.score(slot).to_bits() != score.to_bits() {
            self.set_score(slot, member, score);
        }
        self.set_deadline(slot, deadline, now);
    }

    fn set_score(&mut self, slot: Slot, member: &[u8], score: f64) {
        self.keep(slot);
        self.leave(slot);
        if let Some(bytes) = self.members.inline_mut(slot) {
            bytes.copy_from_slice(&score.to_le_bytes());
        }
        self.enter(slot, score, member);
    }

    pub(super) fn set_deadline(&mut self, slot: Slot, deadline: Option<u64>, now: u64) {
        self.keep(slot);
        let deadline = self.noted(deadline);
        let moved = self.members.set_deadline(slot, deadline, now);
        if moved != slot {
            self.follow(slot, moved);
        }
    }

    /// A deadline as the store takes it.
    fn noted(&mut self, deadline: Option<u64>) -> Option<u64> {
        let deadline = deadline.map(representable);
        self.latest = self.latest.max(deadline.unwrap_or(0));
        deadline
    }

    /// The order takes note of a member's new block. The old one may hold anything now.
    fn follow(&mut self, old: Slot, new: Slot) {
        let Self { members, order, .. } = self;
        let score = score_at(members, new.to_bits());
        let before = before(members, score, members.key(new));
        let stale = old.to_bits();
        order.replace(stale, new.to_bits(), score, |score, id| {
            id != stale && before(score, id)
        });
    }

    pub(super) fn remove(&mut self, slot: Slot) {
        self.keep(slot);
        self.leave(slot);
        self.members.remove(slot);
    }

    /// Removes members by rank, and shows each before. O(log n) for those of one leaf, and O(1) for
    /// each.
    pub(super) fn remove_range(&mut self, ranks: Range<usize>, mut sink: impl FnMut(Scored<'_>)) {
        let mut left = ranks.end.min(self.len()).saturating_sub(ranks.start);
        let mut gone = Vec::new();
        while left > 0 {
            self.order.remove_run(ranks.start, left, &mut gone);
            left -= gone.len();
            for id in gone.drain(..) {
                sink(self.by_id(id));
                self.keep(Slot::from_bits(id));
                self.members.remove(Slot::from_bits(id));
            }
        }
    }

    pub(super) fn expire(
        &mut self,
        now: u64,
        budget: u32,
        mut sink: impl FnMut(Scored<'_>),
    ) -> Progress {
        // The store hands back all of them: the order can compare members only while they are
        // there.
        let mut due = Vec::new();
        let members = &mut self.members;
        let progress = members.expire_or_hand_back(now, budget, |_| true, |_| {}, &mut due);
        for HandedBack { slot, deadline } in due {
            if self.walk.is_on() {
                self.keep_until(slot, Some(deadline));
            }
            self.leave(slot);
            sink(Scored {
                deadline: Some(deadline),
                ..self.scored(slot)
            });
            self.members.remove(slot);
        }
        progress
    }

    pub(super) fn maintain(&mut self, budget: u32) -> bool {
        for _ in 0..budget {
            let mut moved = None;
            // One at a time: the order compares members, so it may know of no block that is gone.
            let more = self
                .members
                .maintain_and_tell(1, |old, new| moved = Some((old, new)));
            if let Some((old, new)) = moved {
                self.follow(old, new);
            }
            if !more {
                return false;
            }
        }
        budget > 0
    }

    /// Keeps a member for the walk before it changes.
    #[inline]
    fn keep(&mut self, slot: Slot) {
        if self.walk.is_on() {
            self.keep_until(slot, self.members.deadline(slot));
        }
    }

    fn keep_until(&mut self, slot: Slot, deadline: Option<u64>) {
        let Self { members, walk, .. } = self;
        let (hash, score) = (members.hash(slot), score_at(members, slot.to_bits()));
        walk.keep(hash, members.key(slot), &score.to_le_bytes(), deadline);
    }

    /// A set of its own with the same members. O(n).
    pub(super) fn copy(&self, now: u64) -> Self {
        let mut copy = Self::new(self.members.hasher());
        for entry in self.forward(0) {
            copy.add(entry.member, entry.score, entry.deadline, now);
        }
        copy
    }

    /// Panics if the structure is broken. O(n).
    pub(super) fn validate(&self) {
        self.members.validate();
        assert_eq!(
            self.members.len(),
            self.order.len(),
            "members and their order"
        );
        self.order.validate(
            |id| score_at(&self.members, id),
            |a, b| {
                let (a, b) = (self.by_id(a), self.by_id(b));
                a.score < b.score || (a.score == b.score && a.member < b.member)
            },
        );
    }
}

impl Walked for LargeZSet {
    fn begin_walk(&mut self) {
        self.walk.begin();
    }

    fn walk_on(&mut self, count: usize, into: &mut CopiedMembers) -> bool {
        let Self { members, walk, .. } = self;
        let score = |slot: Slot| score_at(members, slot.to_bits()).to_le_bytes();
        walk.go_on(members, count, score, into)
    }

    fn take_kept(&mut self) -> CopiedMembers {
        self.walk.take_kept()
    }

    fn walk_bytes(&self) -> usize {
        self.walk.bytes()
    }

    fn end_walk(&mut self) {
        self.walk.end();
    }
}

/// Both forms end at the same tick.
fn representable(deadline: u64) -> u64 {
    deadline.min(DEADLINE_MAX)
}
