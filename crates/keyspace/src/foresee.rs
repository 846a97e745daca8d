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

/// The most keys of one call that are asked for ahead. Of a call with as many, there may be more.
const KEYS_MAX: usize = 16;

/// A call whose row is found.
#[derive(Debug, Clone, Copy)]
pub struct Call<'h> {
    /// Its row.
    pub row: &'static Command,
    /// The hash of its first key, if that is known.
    pub(crate) hash: Option<u64>,
    /// The hashes of all its keys, in their order; empty if they are not known.
    pub(crate) hashes: &'h [u64],
}

impl From<&'static Command> for Call<'_> {
    fn from(row: &'static Command) -> Self {
        Self {
            row,
            hash: None,
            hashes: &[],
        }
    }
}

/// What is known of some calls.
#[derive(Debug, Default)]
pub struct Foreseen {
    calls: Vec<Option<Known>>,
    /// The hashes of their keys.
    hashes: Vec<u64>,
}

/// A call, and where the hashes of its keys are.
#[derive(Debug, Clone, Copy)]
struct Known {
    row: &'static Command,
    from: u32,
    keys: u32,
}

impl Foreseen {
    /// What is known of a call; `None` if it will be answered with an error.
    #[inline]
    #[must_use]
    pub fn call(&self, i: usize) -> Option<Call<'_>> {
        let Known { row, from, keys } = (*self.calls.get(i)?)?;
        let hashes = &self.hashes[from as usize..(from + keys) as usize];
        let are_all = hashes.len() < KEYS_MAX;
        Some(Call {
            row,
            hash: hashes.first().copied(),
            hashes: if are_all { hashes } else { &[] },
        })
    }

    /// Whether there are several keys, whose misses can overlap.
    #[must_use]
    pub fn are_several(&self) -> bool {
        self.hashes.len() > 1
    }

    /// Forgets them, but keeps their memory.
    pub fn clear(&mut self) {
        self.calls.clear();
        self.hashes.clear();
    }
}

impl Keyspace {
    /// Whether there is so much data that it pays to [`warm`](Self::warm) it.
    #[must_use]
    pub fn is_worth_warming(&self) -> bool {
        self.used_memory() > WORTH_WARMING
    }

    /// Finds the row of a call and hashes its keys, the first of them if they are many, and adds it to the others. Nothing is
    /// locked.
    #[inline]
    pub fn foresee(&self, args: Args<'_>, foreseen: &mut Foreseen) {
        let Ok(row) = resolve(args) else {
            return foreseen.calls.push(None);
        };
        let from = foreseen.hashes.len();
        if row.keys.is_one() {
            let key = args.get(row.keys.first as usize);
            foreseen.hashes.extend(key.map(|key| self.hash(key)));
        } else if row.keys.first != 0 {
            let keys = row.keys.positions(args).take(KEYS_MAX);
            let keys = keys.filter_map(|at| args.get(at));
            foreseen.hashes.extend(keys.map(|key| self.hash(key)));
        }
        let keys = (foreseen.hashes.len() - from) as u32;
        let from = from as u32;
        foreseen.calls.push(Some(Known { row, from, keys }));
    }

    /// Asks for the index and the entries of the keys of these calls in a database, and waits for neither. A shard that is
    /// locked is passed over, and so is everything if the seat is not [inside](Seat::enter).
    pub fn warm(&self, seat: &Seat, db: u32, foreseen: &Foreseen) {
        if !seat.is_inside() {
            return;
        }
        for &hash in &foreseen.hashes {
            if let Some(hold) = self.shards[self.shard_of(hash)].try_lock() {
                hold.entries(db).warm_index(hash);
            }
        }
        for &hash in &foreseen.hashes {
            if let Some(hold) = self.shards[self.shard_of(hash)].try_lock() {
                hold.entries(db).warm_entry(hash);
            }
        }
    }
}
