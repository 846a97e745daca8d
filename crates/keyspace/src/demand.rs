//! What a command will need of `maxmemory`, before it runs.

use std::sync::atomic::Ordering::Relaxed;

use tidewheel_resp::{Args, parse_i64};
use tidewheel_store::Value;

use crate::command::{Adds, Command};
use crate::commands::edit::room_for;
use crate::keyspace::Keyspace;
use crate::value::{self, LARGE};

/// What nobody knows before the shard is locked: a look is needed, whatever is used.
const UNKNOWN: usize = usize::MAX / 2;

/// What a command will need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Demand {
    /// Bytes that must fit though everything else went.
    pub(crate) whole: usize,
    /// Bytes by which the data grows.
    pub(crate) added: usize,
}

/// A string that is there: how long it is, and how many bytes it holds.
struct There {
    len: usize,
    held: usize,
}

impl Keyspace {
    /// No less than the bytes that a command will add. Locks nothing.
    #[inline]
    pub(crate) fn at_most_added(&self, row: &Command, args: Args<'_>) -> usize {
        match row.adds {
            Adds::Range => self.range_end(args).unwrap_or(0).max(args.bytes()),
            Adds::Arguments | Adds::Tail => args.bytes(),
            Adds::Copy => UNKNOWN,
        }
    }

    /// What a command will need. Locks the shard of its key.
    pub(crate) fn demand(&self, row: &Command, db: u32, args: Args<'_>) -> Demand {
        match row.adds {
            Adds::Arguments => self.stored_demand(row, db, args),
            Adds::Tail => {
                let tail = args.get(2).map(<[u8]>::len);
                self.grown_demand(db, args, tail, |len, tail| len.saturating_add(tail))
            }
            Adds::Range => self.grown_demand(db, args, self.range_end(args), usize::max),
            Adds::Copy => {
                let there = self.there(db, args.get(1).unwrap_or_default());
                let copied = there.map_or(0, |there| there.held.max(there.len));
                Demand::of(copied + args.bytes())
            }
        }
    }

    /// As what a [demand](Self::demand) adds, less what goes for it, however small that is: small values are not
    /// worth the look before it matters. Locks the shard of the command's key.
    pub(crate) fn growth(&self, row: &Command, db: u32, args: Args<'_>) -> usize {
        let added = self.demand(row, db, args).added;
        if row.stored_argument == 0 {
            return added;
        }
        let replaced = self.there(db, args.get(row.keys.first as usize).unwrap_or_default());
        let freed = replaced.map_or(0, |there| there.held.max(there.len));
        added.min(args.bytes().saturating_sub(freed))
    }

    /// Of a command that makes a string of `len` bytes `total(len, bytes)` bytes long.
    fn grown_demand(
        &self,
        db: u32,
        args: Args<'_>,
        bytes: Option<usize>,
        total: fn(usize, usize) -> usize,
    ) -> Demand {
        let there = self.there(db, args.get(1).unwrap_or_default());
        match (bytes, there) {
            (Some(bytes), Some(there)) => there.demand(total(there.len, bytes)),
            (Some(bytes), None) => Demand::of(bytes.max(args.bytes())),
            // What is refused or writes nothing needs nothing but its arguments.
            (None, _) => Demand::of(args.bytes()),
        }
    }

    /// Where the piece ends that SETRANGE writes; `None` if it will write nothing.
    fn range_end(&self, args: Args<'_>) -> Option<usize> {
        let piece = args.get(3).filter(|piece| !piece.is_empty())?;
        let offset = usize::try_from(parse_i64(args.get(2)?)?).ok()?;
        let end = offset.checked_add(piece.len())?;
        let longest = self.settings().proto_max_bulk_len.load(Relaxed);
        (end as u64 <= longest).then_some(end)
    }

    /// Of a command that stores its arguments. A large value takes the place of another one.
    fn stored_demand(&self, row: &Command, db: u32, args: Args<'_>) -> Demand {
        let brought = args.bytes();
        let replaces = brought > LARGE && row.stored_argument != 0;
        let key = args.get(row.keys.first as usize).unwrap_or_default();
        let there = replaces.then(|| self.there(db, key)).flatten();
        Demand {
            whole: brought,
            added: brought.saturating_sub(there.map_or(0, |there| there.held)),
        }
    }

    /// The string of a key, as a value of its own.
    fn there(&self, db: u32, key: &[u8]) -> Option<There> {
        let key = self.key(key);
        let hold = self.shards[key.shard].lock();
        let entries = hold.entries(db);
        let slot = entries.find(key.hash, key.bytes)?;
        let value = entries.value(slot);
        Some(There {
            len: value::bytes(&value).len(),
            held: match value {
                Value::Object(object) => object.bytes(),
                // A block is not what a large value is put into.
                Value::Inline(_) => 0,
            },
        })
    }
}

impl Demand {
    fn of(bytes: usize) -> Self {
        Self {
            whole: bytes,
            added: bytes,
        }
    }
}

impl There {
    /// To make it so long.
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
