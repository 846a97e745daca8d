//! What is known of calls before they run, so that their cache misses overlap.
//!
//! An example: a client sends 16 GETs at once. Each would wait for the index, and then for its entry, 32 times in all. With
//! the hashes of all keys at hand, the index is asked for all of them first, and then for all entries. Their memory comes
//! while the commands before them run.

use tidewheel_resp::Args;

use crate::command::Command;
use crate::gate::Seat;
use crate::keyspace::Keyspace;
use crate::resolve::resolve;

/// Data of fewer bytes than this is in the processor's cache anyway.
const WORTH_WARMING: u64 = 2 << 20;

/// The most keys of one call that are asked for ahead.
const KEYS_MAX: usize = 16;

/// A call whose row is found.
#[derive(Debug, Clone, Copy)]
pub struct Call {
    /// Its row.
    pub row: &'static Command,
    /// The hash of its first key, if that is known.
    pub(crate) hash: Option<u64>,
}

impl From<&'static Command> for Call {
    fn from(row: &'static Command) -> Self {
        Self { row, hash: None }
    }
}

/// The hashes of the keys of some calls.
#[derive(Debug, Default)]
pub struct Foreseen(Vec<u64>);

impl Foreseen {
    /// Whether there are several, whose misses can overlap.
    #[must_use]
    pub fn are_several(&self) -> bool {
        self.0.len() > 1
    }

    /// Forgets them, but keeps their memory.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

impl Keyspace {
    /// Whether there is so much data that it pays to [`warm`](Self::warm) it.
    #[must_use]
    pub fn is_worth_warming(&self) -> bool {
        self.used_memory() > WORTH_WARMING
    }

    /// Finds the row of a call, and hashes its key if it has exactly one; `None` if it will be answered with an error. Nothing
    /// is locked.
    pub fn foresee(&self, args: Args<'_>) -> Option<Call> {
        let row = resolve(args).ok()?;
        let key = row.keys.is_one().then(|| args.get(row.keys.first as usize));
        let hash = key.flatten().map(|key| self.hash(key));
        Some(Call { row, hash })
    }

    /// Adds the hashes of a call's keys to those that will be [warmed](Self::warm).
    pub fn add_keys(&self, call: &mut Call, args: Args<'_>, foreseen: &mut Foreseen) {
        if let Some(hash) = call.hash {
            return foreseen.0.push(hash);
        }
        if call.row.keys.first == 0 {
            return;
        }
        let before = foreseen.0.len();
        let keys = call.row.keys.positions(args).take(KEYS_MAX);
        let keys = keys.filter_map(|at| args.get(at));
        foreseen.0.extend(keys.map(|key| self.hash(key)));
        call.hash = foreseen.0.get(before).copied();
    }

    /// Asks for the index and the entries of the keys of these calls in a database, and waits for neither. A shard that is
    /// locked is passed over, and so is everything if the seat is not [inside](Seat::enter).
    pub fn warm(&self, seat: &Seat, db: u32, foreseen: &Foreseen) {
        if !seat.is_inside() {
            return;
        }
        for &hash in &foreseen.0 {
            if let Some(hold) = self.shards[self.shard_of(hash)].try_lock() {
                hold.entries(db).warm_index(hash);
            }
        }
        for &hash in &foreseen.0 {
            if let Some(hold) = self.shards[self.shard_of(hash)].try_lock() {
                hold.entries(db).warm_entry(hash);
            }
        }
    }
}
