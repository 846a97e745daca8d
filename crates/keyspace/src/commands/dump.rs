//! DUMP and RESTORE: a value as bytes in the public format.

use std::sync::atomic::Ordering::Relaxed;

use tidewheel_store::{INLINE_MAX, NewValue, Slot};

use crate::access::Recency;
use crate::context::{Context, Key, Lookup};
use crate::dump::{self, Malformed, ReadParameters, RestoredValue, SkippedChecks};
use crate::error::CommandError;
use crate::events::Cause;
use crate::shard::Stored;
use crate::time::{Now, TimeOrigin, Unit};
use crate::value::collection::{Collection, Owned};
use crate::value::{self, Entries, LARGE, Object, TAG_STRING};

type Outcome = Result<(), CommandError>;

const BUSY_KEY: CommandError = CommandError::fixed("BUSYKEY Target key name already exists.");
const BAD_TTL: CommandError = CommandError::fixed("ERR Invalid TTL value, must be >= 0");
const BAD_IDLE_TIME: CommandError = CommandError::fixed("ERR Invalid IDLETIME value, must be >= 0");
const BAD_FREQUENCY: CommandError =
    CommandError::fixed("ERR Invalid FREQ value, must be >= 0 and <= 255");
const BAD_ENVELOPE: CommandError =
    CommandError::fixed("ERR DUMP payload version or checksum are wrong");
const BAD_VALUE: CommandError = CommandError::fixed("ERR Bad data format");

/// Payloads of more bytes are read without the lock.
const ASIDE_MIN: usize = 4096;

pub(crate) fn dump(ctx: &mut Context<'_, '_>) -> Outcome {
    let key = ctx.key(1);
    let Some(slot) = ctx.find(key, Lookup::Read) else {
        ctx.out.null();
        return Ok(());
    };
    let payload = payload(ctx, key, slot)?;
    ctx.out.bulk(&payload);
    Ok(())
}

/// The payload of a value. A large string is copied without the lock.
fn payload(ctx: &mut Context<'_, '_>, key: Key<'_>, slot: Slot) -> Result<Vec<u8>, CommandError> {
    let now = ctx.now;
    let entries = ctx.entries(key);
    if value::is_string(entries.tag(slot)) {
        let value = value::string(entries, slot)?;
        if value::bytes(&value).len() > LARGE {
            let bytes = value::shared(&value);
            let payload = ctx.outside(|| dump::of_string(&bytes));
            ctx.let_go(bytes);
            return Ok(payload);
        }
    }
    Ok(payload_of(entries, slot, &now))
}

/// The payload of a value, whatever its size.
pub(crate) fn payload_of(entries: &Entries, slot: Slot, now: &Now) -> Vec<u8> {
    let (tag, value) = entries.tagged(slot);
    dump::of_value(tag, &value, now)
}

/// RESTORE's options.
#[derive(Default)]
struct RestoreOptions {
    replace: bool,
    absolute: bool,
    access: Option<RestoredAccess>,
}

/// The access history that RESTORE, or a file, gives to the key.
#[derive(Debug)]
pub(crate) enum RestoredAccess {
    IdleSeconds(u64),
    Frequency(u8),
}

impl RestoreOptions {
    fn parse(ctx: &Context<'_, '_>) -> Result<Self, CommandError> {
        let mut options = Self::default();
        let mut i = 4;
        while i < ctx.args.len() {
            let has_number = i + 1 < ctx.args.len();
            if ctx.is(i, "REPLACE") {
                options.replace = true;
            } else if ctx.is(i, "ABSTTL") {
                options.absolute = true;
            } else if ctx.is(i, "IDLETIME") && has_number && !options.has_frequency() {
                i += 1;
                let seconds = u64::try_from(ctx.integer(i)?).map_err(|_| BAD_IDLE_TIME)?;
                options.access = Some(RestoredAccess::IdleSeconds(seconds));
            } else if ctx.is(i, "FREQ") && has_number && !options.has_idle_time() {
                i += 1;
                let frequency = u8::try_from(ctx.integer(i)?).map_err(|_| BAD_FREQUENCY)?;
                options.access = Some(RestoredAccess::Frequency(frequency));
            } else {
                return Err(CommandError::SYNTAX);
            }
            i += 1;
        }
        Ok(options)
    }

    fn has_frequency(&self) -> bool {
        matches!(self.access, Some(RestoredAccess::Frequency(_)))
    }

    fn has_idle_time(&self) -> bool {
        matches!(self.access, Some(RestoredAccess::IdleSeconds(_)))
    }

    /// The deadline that the second argument means; 0 is none.
    fn deadline(&self, ctx: &Context<'_, '_>) -> Result<Option<u64>, CommandError> {
        let number = ctx.integer(2)?;
        if number < 0 {
            return Err(BAD_TTL);
        }
        let base = match self.absolute {
            true => TimeOrigin::Epoch,
            false => TimeOrigin::Now,
        };
        let deadline = ctx.now.positive_deadline(number, Unit::Milliseconds, base);
        if number > 0 && deadline.is_none() {
            return Err(BAD_TTL);
        }
        Ok(deadline)
    }
}

/// The access history of a new key. What the policy in force does not record is ignored.
fn history(ctx: &Context<'_, '_>, access: Option<&RestoredAccess>) -> u32 {
    let (recency, clock) = (ctx.recency(), ctx.now.time.tick);
    match (access, recency) {
        (Some(RestoredAccess::IdleSeconds(seconds)), Recency::Clock) => {
            Recency::of_idle(*seconds, clock)
        }
        (Some(RestoredAccess::Frequency(frequency)), Recency::Frequency { .. }) => {
            Recency::of_frequency(*frequency, clock)
        }
        _ => recency.of_new(clock),
    }
}

pub(crate) fn restore(ctx: &mut Context<'_, '_>) -> Outcome {
    let options = RestoreOptions::parse(ctx)?;
    let key = ctx.key(1);
    refuse_busy(ctx, key, &options)?;
    options.deadline(ctx)?;
    let loaded = load(ctx, key)?;
    refuse_busy(ctx, key, &options)?;
    // It may be later by now.
    let deadline = options.deadline(ctx)?;
    let history = history(ctx, options.access.as_ref());
    store(ctx, key, loaded, deadline, history);
    ctx.out.ok();
    Ok(())
}

/// The time and the limits with which collections are read.
fn read_parameters<'a>(ctx: &Context<'a, '_>) -> ReadParameters<'a> {
    let packing = &ctx.keyspace.rules().packing;
    ReadParameters {
        now: ctx.now,
        hash: ctx.change(packing.hash.get()),
        set: ctx.change(packing.set.get()),
        zset: ctx.change(packing.zset.get()),
        list: packing.list(),
        members: &[],
        may_be_empty: false,
    }
}

/// As for RESTORE, of a value in a file whose deadlines count from another time.
pub(crate) fn read_from_file<'a>(
    ctx: &Context<'a, '_>,
    value: &[u8],
    version: u16,
    (now, members): (Now, &'a [u8]),
) -> Result<RestoredValue, Malformed> {
    let read_parameters = ReadParameters {
        now,
        members,
        may_be_empty: true,
        ..read_parameters(ctx)
    };
    dump::load_from_file(value, version, &read_parameters)
}

/// Stores a value under a key, in silence. If the key is there, the value replaces its own or
/// nothing is done, which returns false.
pub(crate) fn put_loaded(
    ctx: &mut Context<'_, '_>,
    key: &[u8],
    loaded: RestoredValue,
    (deadline, access): (Option<u64>, Option<&RestoredAccess>),
    replaces: bool,
) -> bool {
    let locked = ctx.step_in(key);
    debug_assert!(locked.is_ok(), "no client of it can be parked");
    let key = ctx.only_key(key);
    if replaces {
        // A dead one is announced first, unless nothing expires now.
        ctx.find_at(key, ctx.session.db);
    }
    if let Some(slot) = ctx.entries(key).find(key.hash, key.bytes) {
        if !replaces {
            ctx.drop_object(loaded.into_object());
            return false;
        }
        ctx.remove(key, slot, Cause::Silent);
    }
    let history = history(ctx, access);
    insert(ctx, key, loaded, deadline, (history, Cause::Silent));
    // What is loaded was recorded when it was changed.
    ctx.locked().take_changed();
    true
}

fn refuse_busy(ctx: &mut Context<'_, '_>, key: Key<'_>, options: &RestoreOptions) -> Outcome {
    if !options.replace && ctx.find(key, Lookup::Write).is_some() {
        return Err(BUSY_KEY);
    }
    Ok(())
}

/// Reads the payload; a large one without the lock.
fn load(ctx: &mut Context<'_, '_>, key: Key<'_>) -> Result<RestoredValue, CommandError> {
    let payload = ctx.args.get(3).unwrap_or_default();
    let rules = ctx.keyspace.rules();
    let lenience = SkippedChecks {
        any_version: rules.any_dump_version.load(Relaxed),
        any_checksum: rules.skip_checksums.load(Relaxed),
    };
    let longest = rules.proto_max_bulk_len.load(Relaxed) as usize;
    let read_parameters = read_parameters(ctx);
    let read = || {
        let opened = dump::open(payload, lenience).ok_or(BAD_ENVELOPE)?;
        match dump::load(opened, &read_parameters) {
            Ok(RestoredValue::String(bytes)) if bytes.len() > longest => Err(BAD_VALUE),
            Ok(loaded) => Ok(loaded),
            Err(Malformed) => Err(BAD_VALUE),
        }
    };
    if dump::measure(payload) <= ASIDE_MIN {
        return read();
    }
    ctx.step_out();
    // Members take more than their bytes: only now it is known how much.
    let loaded = read().and_then(|loaded| ctx.make_room(loaded.bytes()).map(|()| loaded));
    ctx.step_in(key.bytes)?;
    loaded
}

/// Stores a value in place of any other one. If its deadline is reached, the key is only removed;
/// so is it if the deadlines of all its members are.
fn store(
    ctx: &mut Context<'_, '_>,
    key: Key<'_>,
    loaded: RestoredValue,
    deadline: Option<u64>,
    history: u32,
) {
    let db = ctx.session.db;
    let reached = deadline.is_some_and(|deadline| ctx.now.reached(deadline));
    let dead = reached || loaded.is_over();
    if let Some(slot) = ctx.find_at(key, db) {
        let cause = if dead { Cause::Del } else { Cause::Silent };
        ctx.remove(key, slot, cause);
    }
    if dead {
        return ctx.drop_object(loaded.into_object());
    }
    insert(ctx, key, loaded, deadline, (history, Cause::Restore));
}

/// Adds a value under a key that does not exist.
fn insert(
    ctx: &mut Context<'_, '_>,
    key: Key<'_>,
    loaded: RestoredValue,
    deadline: Option<u64>,
    (history, cause): (u32, Cause),
) {
    match loaded {
        RestoredValue::String(bytes) => store_string(ctx, key, bytes, deadline, (history, cause)),
        RestoredValue::Hash(hash) => store_collection(ctx, key, hash, deadline, (history, cause)),
        RestoredValue::List(list) => store_collection(ctx, key, list, deadline, (history, cause)),
        RestoredValue::Set(set) => store_collection(ctx, key, set, deadline, (history, cause)),
        RestoredValue::ZSet(zset) => store_collection(ctx, key, zset, deadline, (history, cause)),
        RestoredValue::Stream(stream) => {
            store_collection(ctx, key, stream, deadline, (history, cause));
        }
    }
}

fn store_string(
    ctx: &mut Context<'_, '_>,
    key: Key<'_>,
    bytes: Vec<u8>,
    deadline: Option<u64>,
    (history, cause): (u32, Cause),
) {
    let value = if bytes.len() <= INLINE_MAX {
        NewValue::Inline(&bytes)
    } else {
        NewValue::Object(Object::new(bytes))
    };
    let stored = Stored {
        tag: TAG_STRING,
        value,
        deadline,
    };
    let (at, hold) = ctx.on(key);
    hold.insert(at, stored, history, cause);
}

fn store_collection<C: Collection>(
    ctx: &mut Context<'_, '_>,
    key: Key<'_>,
    of: C,
    own_deadline: Option<u64>,
    (history, cause): (u32, Cause),
) {
    let owned = Owned { own_deadline, of };
    let (at, hold) = ctx.on(key);
    hold.insert_owned(at, owned, history, cause);
}

impl RestoredValue {
    /// True if it is a collection whose members' deadlines are all reached.
    pub(crate) fn is_over(&self) -> bool {
        match self {
            // A stream may be empty.
            Self::String(_) | Self::Stream(_) => false,
            Self::Hash(hash) => Collection::len(hash) == 0,
            Self::List(list) => Collection::len(list) == 0,
            Self::Set(set) => Collection::len(set) == 0,
            Self::ZSet(zset) => Collection::len(zset) == 0,
        }
    }

    /// Bytes on the heap.
    fn bytes(&self) -> usize {
        match self {
            Self::String(bytes) => bytes.capacity(),
            Self::Hash(hash) => Collection::heap_bytes(hash),
            Self::List(list) => Collection::heap_bytes(list),
            Self::Set(set) => Collection::heap_bytes(set),
            Self::ZSet(zset) => Collection::heap_bytes(zset),
            Self::Stream(stream) => stream.heap_bytes(),
        }
    }

    fn into_object(self) -> Object {
        fn owned<C: Collection>(of: C) -> Object {
            let own_deadline = None;
            C::into_object(Box::new(Owned { own_deadline, of }))
        }
        match self {
            Self::String(bytes) => Object::new(bytes),
            Self::Hash(hash) => owned(hash),
            Self::List(list) => owned(list),
            Self::Set(set) => owned(set),
            Self::ZSet(zset) => owned(zset),
            Self::Stream(stream) => owned(stream),
        }
    }
}
