//! The funnel for due members: removes them, and files their entry again.

use tidewheel_collections::{Hash, Set, ZSet};
use tidewheel_store::{HandedBack, Progress, Slot};

use super::Hold;
use super::collections::TIDYING;
use super::prefetch::TOGETHER;
use crate::events::Cause;
use crate::time::Now;
use crate::value::collection::{Collection, Owned};
use crate::value::{self, Object, TAG_HASH_TIMED, TAG_SET_TIMED, TAG_ZSET_TIMED};

/// The outcome of a removal of due members.
#[derive(Debug, Default)]
pub(crate) struct MemberExpiryOutcome {
    /// Members that were removed.
    pub(crate) members: u32,
    /// True if other members are due too.
    pub(crate) backlog: bool,
    /// True if the key is gone.
    pub(crate) gone: bool,
    pub(crate) garbage: Option<Object>,
}

/// The parameters of a removal of due members.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MemberExpiry {
    pub(crate) tick: u64,
    /// About how many members.
    pub(crate) budget: u32,
    /// True if nobody is told before the next pass of expiry. A key that is left without members
    /// stays until then: its callers hide it.
    pub(crate) quiet: bool,
}

/// Members that were removed quietly. They are counted and announced later.
#[derive(Debug)]
pub(crate) struct PendingEvent {
    db: u32,
    key: Box<[u8]>,
    cause: Cause,
    members: u64,
}

impl Hold<'_> {
    /// Removes due members of a key, at most about `budget` of them; the key itself, if its own
    /// deadline was reached or no member is left. `sink` gets each deadline.
    pub(crate) fn expire_members(
        &mut self,
        db: u32,
        slot: Slot,
        work: MemberExpiry,
        sink: &mut dyn FnMut(u64),
    ) -> MemberExpiryOutcome {
        match self.entries(db).tag(slot) {
            TAG_HASH_TIMED => self.expire_members_of::<Hash>(db, slot, work, sink),
            TAG_SET_TIMED => self.expire_members_of::<Set>(db, slot, work, sink),
            TAG_ZSET_TIMED => self.expire_members_of::<ZSet>(db, slot, work, sink),
            _ => MemberExpiryOutcome::default(),
        }
    }

    fn expire_members_of<C: Collection>(
        &mut self,
        db: u32,
        slot: Slot,
        work: MemberExpiry,
        sink: &mut dyn FnMut(u64),
    ) -> MemberExpiryOutcome {
        let own = value::own_deadline(self.entries(db), slot);
        if let Some(own) = own.filter(|own| *own <= work.tick) {
            sink(own);
            return self.remove_due_key(db, slot, work.tick);
        }
        if self.entries(db).is_inline(slot) {
            self.expire_beside::<C>(db, slot, own, work, sink)
        } else {
            self.expire_object::<C>(db, slot, own, work, sink)
        }
    }

    fn expire_beside<C: Collection>(
        &mut self,
        db: u32,
        slot: Slot,
        own_deadline: Option<u64>,
        work: MemberExpiry,
        sink: &mut dyn FnMut(u64),
    ) -> MemberExpiryOutcome {
        let tick = work.tick;
        let mut of: C = self.unpack(db, slot);
        let progress = of.expire(tick, work.budget, sink);
        self.members_left::<C>(db, slot, progress.fired, work.quiet);
        if of.len() == 0 {
            self.keep_scratch(of);
            return self.remove_emptied_by_time(db, slot, progress.fired);
        }
        let owned = Owned { own_deadline, of };
        let next = due_next(&progress, work);
        self.with_stored(owned, next, |hold, stored| {
            let database = hold.database(db);
            database.forget_members_only(slot);
            let (tag, deadline) = (stored.tag, stored.deadline);
            let (slot, _) = database
                .entries
                .replace(slot, tag, stored.value, deadline, tick);
            database.note_members_only(slot, tag);
            hold.settle(db, slot, stored.deadline);
        });
        MemberExpiryOutcome::of(&progress)
    }

    fn expire_object<C: Collection>(
        &mut self,
        db: u32,
        slot: Slot,
        own_deadline: Option<u64>,
        work: MemberExpiry,
        sink: &mut dyn FnMut(u64),
    ) -> MemberExpiryOutcome {
        let tick = work.tick;
        let kept = self.kept_bytes(db, slot);
        let database = self.database(db);
        let object = database.entries.object_mut(slot);
        let Some(of) = object.and_then(C::of_object_mut).map(|owned| &mut owned.of) else {
            unreachable!("the tag is the type's");
        };
        if of.is_large() && of.is_over(tick) && !work.quiet {
            let members = u32::try_from(of.len()).unwrap_or(u32::MAX);
            of.next_deadline().into_iter().for_each(sink);
            return self.remove_with_members::<C>(db, slot, members);
        }
        let before = of.heap_bytes();
        let progress = of.expire(tick, work.budget, sink);
        of.maintain(TIDYING + progress.fired);
        let (after, is_empty) = (of.heap_bytes(), of.len() == 0);
        database.object_bytes = database.object_bytes + after - before;
        self.count_kept(db, slot, kept);
        self.members_left::<C>(db, slot, progress.fired, work.quiet);
        if is_empty && !work.quiet {
            return self.remove_emptied_by_time(db, slot, progress.fired);
        }
        let next = due_next(&progress, work);
        self.file_members::<C>(db, slot, own_deadline, next, tick);
        MemberExpiryOutcome::of(&progress)
    }

    /// Counts and announces members that were removed.
    fn members_left<C: Collection>(&mut self, db: u32, slot: Slot, fired: u32, quiet: bool) {
        let cause = Cause::Of(C::CLASS, C::EXPIRED);
        if fired == 0 {
            return;
        }
        if quiet {
            let (key, members) = (self.entries(db).key(slot).into(), fired.into());
            self.state.pending.push(PendingEvent {
                db,
                key,
                cause,
                members,
            });
            return;
        }
        self.state.counters.expired_members += u64::from(fired);
        self.state.changes += u64::from(fired);
        if let Some(key) = self.observed_key(db, slot) {
            self.tell(db, &key, cause);
        }
    }

    /// Counts and announces members that were removed quietly.
    #[inline]
    pub(super) fn tell_pending(&mut self) {
        for pending in std::mem::take(&mut self.state.pending) {
            self.state.counters.expired_members += pending.members;
            self.state.changes += pending.members;
            self.tell(pending.db, &pending.key, pending.cause);
        }
    }

    /// The key's own deadline was reached.
    fn remove_due_key(&mut self, db: u32, slot: Slot, tick: u64) -> MemberExpiryOutcome {
        self.state.counters.expired += 1;
        self.note_expired(db, slot, tick);
        MemberExpiryOutcome {
            gone: true,
            garbage: self.remove_due(db, slot, Cause::Expired),
            ..MemberExpiryOutcome::default()
        }
    }

    /// A victim's own deadline was reached.
    #[cold]
    pub(super) fn evict_dead(&mut self, db: u32, slot: Slot, tick: u64) -> Option<Object> {
        self.remove_due_key(db, slot, tick).garbage
    }

    /// All members are due: they leave with their key, at once.
    fn remove_with_members<C: Collection>(
        &mut self,
        db: u32,
        slot: Slot,
        members: u32,
    ) -> MemberExpiryOutcome {
        self.members_left::<C>(db, slot, members, false);
        self.remove_emptied_by_time(db, slot, members)
    }

    /// The last member has left, and the key leaves too.
    fn remove_emptied_by_time(&mut self, db: u32, slot: Slot, members: u32) -> MemberExpiryOutcome {
        MemberExpiryOutcome {
            members,
            backlog: false,
            gone: true,
            garbage: self.remove_due(db, slot, Cause::Emptied),
        }
    }

    /// Removes an entry during a pass of expiry.
    fn remove_due(&mut self, db: u32, slot: Slot, cause: Cause) -> Option<Object> {
        let key = self.observed_key(db, slot).unwrap_or_default();
        let hash = self.entries(db).hash(slot);
        let object = self.take_out(db, slot, hash);
        self.tell(db, &key, cause);
        object
    }

    /// The key, if somebody observes changes.
    fn observed_key(&self, db: u32, slot: Slot) -> Option<Vec<u8>> {
        let observed = self.state.observers != 0;
        observed.then(|| self.entries(db).key(slot).to_vec())
    }

    /// Deals with entries whose members may be due, within a budget. Those for which it does not
    /// suffice are due as they were.
    pub(super) fn expire_handed(
        &mut self,
        db: u32,
        handed: &[HandedBack],
        now: &Now,
        budget: u32,
        sink: &mut dyn FnMut(Option<u64>, Option<Object>),
    ) -> (u32, bool) {
        let (mut members, mut backlog) = (0, false);
        for (i, entry) in handed.iter().enumerate() {
            if i.is_multiple_of(TOGETHER) {
                self.prefetch_members(db, &handed[i..handed.len().min(i + TOGETHER)]);
            }
            let left = budget.saturating_sub(members);
            if left == 0 {
                let as_before = Some(entry.deadline);
                let entries = &mut self.database(db).entries;
                let slot = entries.set_deadline(entry.slot, as_before, now.tick);
                self.settle(db, slot, as_before);
                backlog = true;
                continue;
            }
            let work = MemberExpiry {
                tick: now.tick,
                budget: left,
                quiet: false,
            };
            let due = self.expire_members(db, entry.slot, work, &mut |deadline| {
                sink(Some(deadline), None);
            });
            sink(None, due.garbage);
            members += due.members.max(1);
            backlog |= due.backlog;
        }
        (members, backlog)
    }
}

impl MemberExpiryOutcome {
    /// The key stays.
    fn of(progress: &Progress) -> Self {
        Self {
            members: progress.fired,
            backlog: progress.backlog,
            ..Self::default()
        }
    }
}

/// The tick at which the entry is next looked at for its members: at once, while some are due or
/// somebody must be told. Never later than the earliest deadline of those that are left: a loop
/// whose reading of the clock is older must see that they are dead.
fn due_next(progress: &Progress, work: MemberExpiry) -> Option<u64> {
    let next = progress.next_deadline;
    match progress.backlog || work.quiet {
        true => Some(next.map_or(work.tick, |next| next.min(work.tick))),
        false => next,
    }
}
