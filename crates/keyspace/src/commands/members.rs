//! The names of members in a call, and their deadlines: HEXPIRE and its relatives, for every type
//! whose members may have deadlines.
//!
//! The words are those of the public server's hashes: `FIELDS 2 a b`. `MEMBERS` means the same.

use std::ops::Range;

use tidewheel_collections::{DEADLINE_MAX, Hash, Set, ZSet};
use tidewheel_resp::parse_i64;

use crate::commands::expire::Conditions;
use crate::commands::lifetime::invalid_expire_time;
use crate::context::{Context, Lookup};
use crate::error::CommandError;
use crate::events::Cause;
use crate::time::{Now, TimeOrigin, Unit, rounded_seconds};
use crate::value::collection::{self, Collection};

type Outcome = Result<(), CommandError>;

pub(crate) const NO_FIELDS: CommandError =
    CommandError::fixed("ERR Mandatory argument FIELDS is missing or not at the right position");
pub(crate) const NO_COUNT: CommandError =
    CommandError::fixed("ERR Number of fields must be a positive integer");
const NO_COUNT_TO_EXPIRE: CommandError =
    CommandError::fixed("ERR Parameter `numFields` should be greater than 0");
const WRONG_COUNT: CommandError =
    CommandError::fixed("ERR The `numfields` parameter must match the number of arguments");
pub(crate) const NEGATIVE: CommandError =
    CommandError::fixed("ERR invalid expire time, must be >= 0");

/// The first wall time that no deadline of a member may have, as in Redis.
const WALL_END_MS: i64 = 1 << 46;

/// The answer for a member that is not there.
const NO_MEMBER: i64 = -2;
/// The answer for a member without a deadline.
const NO_DEADLINE: i64 = -1;

/// A type whose members may have deadlines.
pub(crate) trait TimedMembers: Collection {
    /// The events of its members: given a deadline, without one, removed.
    const EXPIRE: &'static str;
    const PERSIST: &'static str;
    const REMOVED: &'static str;

    /// A member's deadline; `None` if it is not there.
    fn deadline_of(view: Self::Ref<'_>, member: &[u8]) -> Option<Option<u64>>;
    fn file(&mut self, member: &[u8], deadline: Option<u64>, now: u64);
    fn take_out(&mut self, member: &[u8]);

    fn event(name: &'static str) -> Cause {
        Cause::Of(Self::CLASS, name)
    }
}

impl TimedMembers for Hash {
    const EXPIRE: &'static str = "hexpire";
    const PERSIST: &'static str = "hpersist";
    const REMOVED: &'static str = "hdel";

    fn deadline_of(view: Self::Ref<'_>, member: &[u8]) -> Option<Option<u64>> {
        Some(view.find(member)?.deadline)
    }

    fn file(&mut self, member: &[u8], deadline: Option<u64>, now: u64) {
        self.set_deadline(member, deadline, now);
    }

    fn take_out(&mut self, member: &[u8]) {
        self.remove(member);
    }
}

impl TimedMembers for Set {
    const EXPIRE: &'static str = "sexpire";
    const PERSIST: &'static str = "spersist";
    const REMOVED: &'static str = "srem";

    fn deadline_of(view: Self::Ref<'_>, member: &[u8]) -> Option<Option<u64>> {
        Some(view.find(member)?.deadline)
    }

    fn file(&mut self, member: &[u8], deadline: Option<u64>, now: u64) {
        self.set_deadline(member, deadline, now);
    }

    fn take_out(&mut self, member: &[u8]) {
        self.remove(member);
    }
}

impl TimedMembers for ZSet {
    const EXPIRE: &'static str = "zexpire";
    const PERSIST: &'static str = "zpersist";
    const REMOVED: &'static str = "zrem";

    fn deadline_of(view: Self::Ref<'_>, member: &[u8]) -> Option<Option<u64>> {
        Some(view.find(member)?.deadline)
    }

    fn file(&mut self, member: &[u8], deadline: Option<u64>, now: u64) {
        self.set_deadline(member, deadline, now);
    }

    fn take_out(&mut self, member: &[u8]) {
        self.remove(member);
    }
}

/// True if an argument is the word in front of members.
pub(crate) fn names_begin(ctx: &Context<'_, '_>, at: usize) -> bool {
    ctx.is(at, "FIELDS") || ctx.is(at, "MEMBERS")
}

/// The arguments that name members: those behind `FIELDS` and a number at argument `at`. `no_count`
/// says that it is none.
pub(crate) fn named(
    ctx: &Context<'_, '_>,
    at: usize,
    no_count: CommandError,
) -> Result<Range<usize>, CommandError> {
    if !names_begin(ctx, at) {
        return Err(NO_FIELDS);
    }
    let count = ctx.args.get(at + 1).and_then(parse_i64).unwrap_or(0);
    let count = usize::try_from(count).ok().filter(|count| *count > 0);
    let members = at + 2..ctx.args.len();
    if count.ok_or(no_count)? != members.len() {
        return Err(WRONG_COUNT);
    }
    Ok(members)
}

/// The deadline that a number means for members.
fn member_deadline(
    ctx: &Context<'_, '_>,
    number: i64,
    unit: Unit,
    base: TimeOrigin,
) -> Result<u64, CommandError> {
    if number < 0 {
        return Err(NEGATIVE);
    }
    let deadline = ctx.now.deadline(number, unit, base);
    let deadline = deadline.filter(|at| is_of_members(&ctx.now, *at));
    deadline.ok_or_else(|| invalid_expire_time(ctx.name()))
}

/// True if a member may have this deadline: it is not too far away.
pub(crate) fn is_of_members(now: &Now, deadline: u64) -> bool {
    deadline <= DEADLINE_MAX && now.wall_of(deadline) < WALL_END_MS
}

/// HEXPIRE and its relatives.
pub(crate) fn expire<C: TimedMembers>(
    ctx: &mut Context<'_, '_>,
    unit: Unit,
    base: TimeOrigin,
) -> Outcome {
    let (key, args, now) = (ctx.key(1), ctx.args, ctx.now);
    // The type is looked at first, and the number next, as in Redis.
    let slot = ctx.find_of::<C>(key, Lookup::Write)?;
    let number = ctx.integer(2)?;
    let deadline = member_deadline(ctx, number, unit, base)?;
    let conditioned = !names_begin(ctx, 3);
    let at = 3 + usize::from(conditioned);
    let conditions = Conditions::parse(ctx.args.from(3), usize::from(conditioned));
    let conditions = conditions.map_err(|_| NO_FIELDS)?;
    let members = named(ctx, at, NO_COUNT_TO_EXPIRE)?;
    let mut both = false;
    ctx.edit(key, slot, |of: &mut C, out| {
        let (mut filed, mut removed) = (false, false);
        out.array(members.len());
        for member in members.filter_map(|at| args.get(at)) {
            out.integer(match C::deadline_of(of.view(), member) {
                None => NO_MEMBER,
                Some(old) if !conditions.allow(old, deadline) => 0,
                Some(_) if now.reached(deadline) => {
                    of.take_out(member);
                    removed = true;
                    2
                }
                Some(_) => {
                    of.file(member, Some(deadline), now.tick);
                    filed = true;
                    1
                }
            });
        }
        both = filed && removed;
        let cause = match (filed, removed) {
            (_, true) => Some(C::event(C::REMOVED)),
            (true, false) => Some(C::event(C::EXPIRE)),
            (false, false) => None,
        };
        ((), cause)
    });
    if both {
        ctx.event(key, C::event(C::EXPIRE));
    }
    Ok(())
}

/// HPERSIST and its relatives.
pub(crate) fn persist<C: TimedMembers>(ctx: &mut Context<'_, '_>) -> Outcome {
    let members = named(ctx, 2, NO_COUNT)?;
    let (key, args, now) = (ctx.key(1), ctx.args, ctx.now);
    let slot = ctx.find_of::<C>(key, Lookup::Write)?;
    ctx.edit(key, slot, |of: &mut C, out| {
        let mut changed = false;
        out.array(members.len());
        for member in members.filter_map(|at| args.get(at)) {
            out.integer(match C::deadline_of(of.view(), member) {
                None => NO_MEMBER,
                Some(None) => NO_DEADLINE,
                Some(Some(_)) => {
                    of.file(member, None, now.tick);
                    changed = true;
                    1
                }
            });
        }
        ((), changed.then(|| C::event(C::PERSIST)))
    });
    Ok(())
}

/// HTTL and its relatives: what `say` makes of a deadline in milliseconds from now, or since the
/// epoch.
pub(crate) fn report<C: TimedMembers>(
    ctx: &mut Context<'_, '_>,
    unit: Unit,
    base: TimeOrigin,
) -> Outcome {
    let members = named(ctx, 2, NO_COUNT)?;
    let (key, args, now) = (ctx.key(1), ctx.args, ctx.now);
    let say = |deadline: u64| {
        let ms = match base {
            TimeOrigin::Now => now.remaining_ms(deadline),
            TimeOrigin::Epoch => now.wall_of(deadline),
        };
        match unit {
            Unit::Seconds => rounded_seconds(ms),
            Unit::Milliseconds => ms,
        }
    };
    ctx.read::<C, _>(key, Lookup::Read, |view, out| {
        out.array(members.len());
        for member in members.filter_map(|at| args.get(at)) {
            let found = view.and_then(|view| C::deadline_of(view, member));
            out.integer(found.map_or(NO_MEMBER, |deadline| deadline.map_or(NO_DEADLINE, say)));
        }
    })
}

/// EXPIREMEMBER and its relatives: one member of a key of any of the types. `ms` is the unit unless
/// the call names one.
pub(crate) fn expire_member(ctx: &mut Context<'_, '_>, unit: Unit, base: TimeOrigin) -> Outcome {
    let unit = match ctx.args.get(4) {
        None => unit,
        Some(word) if word.eq_ignore_ascii_case(b"s") => Unit::Seconds,
        Some(word) if word.eq_ignore_ascii_case(b"ms") => Unit::Milliseconds,
        Some(_) => return Err(CommandError::SYNTAX),
    };
    let number = ctx.integer(3)?;
    let deadline = member_deadline(ctx, number, unit, base)?;
    let key = ctx.key(1);
    let tag = ctx
        .find(key, Lookup::Write)
        .map(|slot| ctx.entries(key).tag(slot));
    match tag {
        None => {
            ctx.out.integer(0);
            Ok(())
        }
        Some(tag) if collection::is::<Hash>(tag) => expire_one::<Hash>(ctx, deadline),
        Some(tag) if collection::is::<Set>(tag) => expire_one::<Set>(ctx, deadline),
        Some(tag) if collection::is::<ZSet>(tag) => expire_one::<ZSet>(ctx, deadline),
        Some(_) => Err(CommandError::WRONG_TYPE),
    }
}

fn expire_one<C: TimedMembers>(ctx: &mut Context<'_, '_>, deadline: u64) -> Outcome {
    let (key, args, now) = (ctx.key(1), ctx.args, ctx.now);
    let member = args.get(2).unwrap_or_default();
    let slot = ctx.find_of::<C>(key, Lookup::Write)?;
    ctx.edit(key, slot, |of: &mut C, out| {
        let cause = match C::deadline_of(of.view(), member) {
            None => None,
            Some(_) if now.reached(deadline) => {
                of.take_out(member);
                Some(C::event(C::REMOVED))
            }
            Some(_) => {
                of.file(member, Some(deadline), now.tick);
                Some(C::event(C::EXPIRE))
            }
        };
        out.integer(cause.is_some().into());
        ((), cause)
    });
    Ok(())
}
