//! Estimates the memory that a command will need, before it runs. `maxmemory` is checked with the
//! estimate.

use std::sync::atomic::Ordering::Relaxed;

use tidewheel_resp::{Args, parse_i64};
use tidewheel_store::Value;

use crate::commands::bitfield;
use crate::dump;
use crate::hyperloglog::DENSE_LEN;
use crate::keyspace::Keyspace;
use crate::rows::Adds;
use crate::rows::Command;
use crate::value::{LARGE, Object, room_for};

/// A size that is unknown before the shard is locked. It fits nowhere, so the shard is always
/// looked at.
const UNKNOWN: usize = usize::MAX / 2;

/// The memory that a command will need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Demand {
    /// Bytes that must fit even into an empty keyspace.
    pub(crate) whole: usize,
    /// Bytes by which the data grows.
    pub(crate) added: usize,
}

/// The value that a key holds now. `len` is the length of the string, or of the bytes beside the
/// key.
struct StoredValue {
    len: usize,
    /// Bytes of the heap that it holds.
    held: usize,
}

/// An upper bound of the bytes that a command will add. Locks nothing.
#[inline]
pub(crate) fn at_most_added(keyspace: &Keyspace, row: &Command, args: Args<'_>) -> usize {
    match row.adds {
        Adds::Range | Adds::Bit | Adds::Fields => end_of_write(keyspace, row, args)
            .unwrap_or(0)
            .max(args.bytes()),
        Adds::Arguments | Adds::Tail => args.bytes(),
        Adds::Registers => args.bytes() + DENSE_LEN,
        Adds::Payload => bytes_of_payload(args),
        Adds::Longest | Adds::Sources | Adds::Copy => UNKNOWN,
    }
}

/// Bytes by which the data grows, less the value that is replaced, however small it is. Small
/// values are only looked up where a few bytes decide. Locks the shard of the command's key.
pub(crate) fn growth(keyspace: &Keyspace, row: &Command, db: u32, args: Args<'_>) -> usize {
    let added = Demand::of_call(keyspace, row, db, args).added;
    if row.stored_argument == 0 {
        return added;
    }
    let replaced = StoredValue::of(keyspace, db, first_key(row, args));
    let freed = replaced.map_or(0, |present| present.held.max(present.len));
    added.min(args.bytes().saturating_sub(freed))
}

impl Demand {
    /// Computes the memory that a call will need. Locks the shard of its key.
    pub(crate) fn of_call(keyspace: &Keyspace, row: &Command, db: u32, args: Args<'_>) -> Self {
        match row.adds {
            Adds::Arguments => Self::of_stored(keyspace, row, db, args),
            Adds::Tail => {
                let tail = args.get(2).map(<[u8]>::len);
                Self::of_grown(keyspace, db, args, tail, |len, tail| {
                    len.saturating_add(tail)
                })
            }
            Adds::Range | Adds::Bit | Adds::Fields => {
                let end = end_of_write(keyspace, row, args);
                Self::of_grown(keyspace, db, args, end, usize::max)
            }
            Adds::Registers => Self::of(args.bytes() + DENSE_LEN),
            Adds::Payload => Self::of(bytes_of_payload(args)),
            Adds::Longest => {
                let sources = (3..args.len()).filter_map(|i| args.get(i));
                let lens = sources.filter_map(|key| StoredValue::of(keyspace, db, key));
                let longest = lens.map(|present| present.len).max();
                Self::of(longest.unwrap_or(0) + args.bytes())
            }
            Adds::Sources => {
                let keys = row.keys.positions(args).filter_map(|at| args.get(at));
                let held = keys.filter_map(|key| StoredValue::of(keyspace, db, key));
                let held = held.fold(0, |sum: usize, present| {
                    sum.saturating_add(present.held.max(present.len))
                });
                Self::of(held.saturating_add(args.bytes()))
            }
            Adds::Copy => {
                let present = StoredValue::of(keyspace, db, args.get(1).unwrap_or_default());
                let copied = present.map_or(0, |present| present.held.max(present.len));
                Self::of(copied + args.bytes())
            }
        }
    }

    fn of(bytes: usize) -> Self {
        Self {
            whole: bytes,
            added: bytes,
        }
    }

    /// The demand of a command that makes a string of `len` bytes `total(len, bytes)` bytes long.
    fn of_grown(
        keyspace: &Keyspace,
        db: u32,
        args: Args<'_>,
        bytes: Option<usize>,
        total: fn(usize, usize) -> usize,
    ) -> Self {
        let present = StoredValue::of(keyspace, db, args.get(1).unwrap_or_default());
        match (bytes, present) {
            (Some(bytes), Some(present)) => present.demand(total(present.len, bytes)),
            (Some(bytes), None) => Self::of(bytes.max(args.bytes())),
            // A call that is refused or writes nothing needs its arguments only.
            (None, _) => Self::of(args.bytes()),
        }
    }

    /// The demand of a command that stores its arguments. A large value reuses the bytes of the
    /// value that it replaces.
    fn of_stored(keyspace: &Keyspace, row: &Command, db: u32, args: Args<'_>) -> Self {
        let brought = args.bytes();
        let replaces = brought > LARGE && row.stored_argument != 0;
        let present = replaces
            .then(|| StoredValue::of(keyspace, db, first_key(row, args)))
            .flatten();
        Self {
            whole: brought,
            added: brought.saturating_sub(present.map_or(0, |present| present.held)),
        }
    }
}

impl StoredValue {
    /// The value of a key, whether or not its deadline is reached.
    fn of(keyspace: &Keyspace, db: u32, key: &[u8]) -> Option<Self> {
        let key = keyspace.key(key);
        // The command will not run before it has the lock.
        let hold = keyspace.shards[key.shard].lock_briefly()?;
        let entries = hold.entries(db);
        let slot = entries.find(key.hash, key.bytes)?;
        let value = entries.value(slot);
        Some(Self {
            len: match &value {
                Value::Inline(bytes) => bytes.len(),
                Value::Object(Object::Bytes(bytes)) => bytes.len(),
                Value::Object(_) => 0,
            },
            held: match value {
                Value::Object(object) => object.bytes(),
                // No large value is ever written into the entry's block.
                Value::Inline(_) => 0,
            },
        })
    }

    /// The memory that it takes to make the value `total` bytes long.
    fn demand(&self, total: usize) -> Demand {
        let room = match total > self.held {
            true => room_for(self.len, total),
            false => total,
        };
        Demand {
            whole: room,
            added: room.saturating_sub(self.held),
        }
    }
}

fn first_key<'b>(row: &Command, args: Args<'b>) -> &'b [u8] {
    args.get(row.keys.first as usize).unwrap_or_default()
}

/// The end of the command's last write in the string; `None` if it will write nothing.
fn end_of_write(keyspace: &Keyspace, row: &Command, args: Args<'_>) -> Option<usize> {
    let longest = keyspace.rules().proto_max_bulk_len.load(Relaxed);
    let end = match row.adds {
        Adds::Range => end_of_range(args)?,
        Adds::Bit => parse_usize(args.get(2)?)? / 8 + 1,
        Adds::Fields => return bitfield::end_of_writes(args, longest),
        _ => return None,
    };
    (end as u64 <= longest).then_some(end)
}

/// Bytes of the value that RESTORE reads, and of its key.
fn bytes_of_payload(args: Args<'_>) -> usize {
    let payload = args.get(3).unwrap_or_default();
    dump::measure(payload) + args.get(1).map_or(0, <[u8]>::len)
}

/// The end of the piece that SETRANGE writes.
fn end_of_range(args: Args<'_>) -> Option<usize> {
    let piece = args.get(3).filter(|piece| !piece.is_empty())?;
    parse_usize(args.get(2)?)?.checked_add(piece.len())
}

fn parse_usize(text: &[u8]) -> Option<usize> {
    usize::try_from(parse_i64(text)?).ok()
}
