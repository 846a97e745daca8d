//! Resolves calls ahead of their turn and prefetches their entries, so that cache misses overlap.
//!
//! An example: a client sends 16 GETs at once. Each would wait for the index, and then for its
//! entry, 32 times in all. With the hashes of all keys at hand, the index is asked for all of them
//! first, and then for all entries. Their memory comes while the commands before them run.

use tidewheel_resp::Args;

use crate::call::{Call, MANY_KEYS};
use crate::gate::Seat;
use crate::keyspace::Keyspace;
use crate::resolve::resolve;
use crate::rows::Command;
use crate::value::Entries;
use crate::word::folded;

/// Data of fewer bytes than this is in the processor's cache anyway.
const PREFETCH_MIN_BYTES: u64 = 2 << 20;

/// The most keys of one call whose hashes are found ahead. Of a call with as many, there may be
/// more.
const KEYS_MAX: usize = 64;

/// The calls of a batch, each with its row and the hashes of its keys.
#[derive(Debug, Default)]
pub struct ResolvedCalls {
    calls: Vec<Option<ResolvedCall>>,
    /// The row of the last call. The next call's row is compared with it.
    last: Option<LastRow>,
    /// The hashes of the keys of calls with few.
    few: Vec<u64>,
    /// The hashes of the keys of calls with [many](MANY_KEYS).
    many: Vec<u64>,
}

/// The row of a call before: mostly the next one's too.
#[derive(Debug, Clone, Copy)]
struct LastRow {
    row: &'static Command,
    /// Its name, [`folded`].
    name: u64,
    has_one_key: bool,
}

/// A call, and where the hashes of its keys are.
#[derive(Debug, Clone, Copy)]
struct ResolvedCall {
    row: &'static Command,
    from: u32,
    /// The number of keys; 0 if not all are known.
    keys: u32,
}

impl ResolvedCalls {
    /// The resolved call; `None` if it will be answered with an error.
    #[inline]
    #[must_use]
    pub fn call(&self, i: usize) -> Option<Call<'_>> {
        let known = (*self.calls.get(i)?)?;
        Some(Call {
            row: known.row,
            hashes: self.hashes_of(&known),
        })
    }

    /// The row of a call, and whether every call of it has one key. Mostly it is that of the call
    /// before.
    #[inline(always)]
    fn row(&mut self, args: Args<'_>) -> Option<(&'static Command, bool)> {
        let name = args.get(0).unwrap_or_default();
        match self.last {
            Some(last) if last.name == folded(name) && last.row.check_arity(args.len()) => {
                Some((last.row, last.has_one_key))
            }
            _ => self.other_row(args),
        }
    }

    /// As [`row`](Self::row), of another call than the last.
    #[inline(never)]
    fn other_row(&mut self, args: Args<'_>) -> Option<(&'static Command, bool)> {
        let row = resolve(args).ok()?;
        let has_one_key = row.keys.is_one();
        let name = row.name.as_bytes();
        // A subcommand's row has another name than the call, and one whose row has subcommands was
        // not found.
        if name.len() < 8 && name.iter().all(u8::is_ascii_alphabetic) {
            self.last = Some(LastRow {
                row,
                name: folded(name),
                has_one_key,
            });
        }
        Some((row, has_one_key))
    }

    /// True if there are several keys: only then can misses overlap.
    #[must_use]
    pub fn has_several_keys(&self) -> bool {
        self.few.len() > 1
    }

    fn hashes_of(&self, known: &ResolvedCall) -> &[u64] {
        let of = match known.keys as usize {
            0..MANY_KEYS => &self.few,
            _ => &self.many,
        };
        &of[known.from as usize..(known.from + known.keys) as usize]
    }

    /// Removes all calls, but keeps the memory.
    pub fn clear(&mut self) {
        self.calls.clear();
        self.few.clear();
        self.many.clear();
    }
}

impl Keyspace {
    /// True if there is so much data that [`prefetch`](Self::prefetch) saves time.
    #[must_use]
    pub fn is_worth_prefetching(&self) -> bool {
        self.used_memory() > PREFETCH_MIN_BYTES
    }

    /// Finds the row of a call and hashes its keys, the first of them if they are many, and adds it
    /// to the others. Nothing is locked.
    #[inline]
    pub fn resolve_ahead(&self, args: Args<'_>, resolved: &mut ResolvedCalls) {
        let known = match resolved.row(args) {
            Some((row, true)) if let Some(key) = args.get(row.keys.first as usize) => {
                let from = resolved.few.len() as u32;
                resolved.few.push(self.hash(key));
                Some(ResolvedCall { row, from, keys: 1 })
            }
            Some((row, _)) => Some(self.hash_keys(row, args, resolved)),
            None => None,
        };
        resolved.calls.push(known);
    }

    /// Hashes the keys of a call whose row does not fix their number.
    #[inline(never)]
    fn hash_keys(
        &self,
        row: &'static Command,
        args: Args<'_>,
        resolved: &mut ResolvedCalls,
    ) -> ResolvedCall {
        let mut from = resolved.few.len();
        if row.keys.first != 0 {
            let keys = row.keys.positions(args).take(KEYS_MAX);
            let keys = keys.filter_map(|at| args.get(at));
            resolved.few.extend(keys.map(|key| self.hash(key)));
        }
        let keys = resolved.few.len() - from;
        if keys >= MANY_KEYS {
            let many = resolved.few.drain(from..);
            from = resolved.many.len();
            resolved.many.extend(many);
        }
        // Of as many there may be more.
        let keys = if keys < KEYS_MAX { keys } else { 0 };
        let (from, keys) = (from as u32, keys as u32);
        ResolvedCall { row, from, keys }
    }

    /// Prefetches index and entries of the keys of these calls in a database, of calls with few
    /// keys only. Waits for nothing. A shard that is locked is passed over, and so is everything if
    /// the seat is not [inside](Seat::enter).
    pub fn prefetch(&self, seat: &Seat, db: u32, resolved: &ResolvedCalls) {
        if !seat.is_inside() {
            return;
        }
        self.prefetch_each(resolved, |hash, entries| entries.warm_index(hash), db);
        self.prefetch_each(resolved, |hash, entries| entries.warm_entry(hash), db);
    }

    /// Prefetches what is looked at first to find a key. Waits for nothing.
    pub(crate) fn prefetch_index(&self, db: u32, key: &[u8]) {
        let hash = self.hash(key);
        if let Some(hold) = self.shards[self.shard_of(hash)].try_lock() {
            hold.entries(db).warm_index(hash);
        }
    }

    /// Calls `prefetch` with the entries of each key's shard. Of neighbours that are one key, one
    /// is enough.
    #[inline(always)]
    fn prefetch_each(&self, resolved: &ResolvedCalls, prefetch: impl Fn(u64, &Entries), db: u32) {
        let mut last = None;
        for &hash in &resolved.few {
            if last != Some(hash)
                && let Some(hold) = self.shards[self.shard_of(hash)].try_lock()
            {
                prefetch(hash, hold.entries(db));
            }
            last = Some(hash);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keyspace::Options;

    struct Nobody;

    impl crate::hooks::Hooks for Nobody {
        fn wake(&self, _: usize, _: u64) {}
        fn reclaim(&self, _: crate::garbage::Garbage) {}
        fn stopwatch_ns(&self) -> u64 {
            0
        }
    }

    /// The calls as resolved one after another: their rows' names, and the hashes of their keys.
    fn resolved(calls: &[&[&[u8]]]) -> Vec<Option<(&'static str, Vec<u64>)>> {
        let keyspace = Keyspace::new(Options::default(), Box::new(Nobody));
        let mut resolved = ResolvedCalls::default();
        for call in calls {
            keyspace.resolve_ahead(Args::from_slices(call), &mut resolved);
        }
        let call = |i| {
            let call = resolved.call(i)?;
            Some((call.row.name, call.hashes.to_vec()))
        };
        (0..calls.len()).map(call).collect()
    }

    #[test]
    fn a_call_means_the_same_whatever_the_call_before_it_was() {
        let calls: &[&[&[u8]]] = &[
            &[b"GET", b"k"],
            &[b"get", b"k"],
            &[b"GET"],
            &[b"MGET", b"k"],
            &[b"MGET", b"a", b"b", b"c", b"d", b"e"],
            &[b"CONFIG", b"GET", b"x"],
            &[b"CONFIG"],
            &[b"CONFIG|GET", b"x"],
            &[b"OBJECT", b"FREQ", b"k"],
            &[b"nothing"],
            &[],
        ];
        for one in calls {
            for other in calls {
                let [alone_one, alone_other] =
                    [one, other].map(|call| resolved(&[call])[0].clone());
                assert_eq!(
                    resolved(&[one, other, one]),
                    [&alone_one, &alone_other, &alone_one].map(Clone::clone)
                );
            }
        }
    }

    #[test]
    fn all_hashes_are_known_of_calls_with_few_keys_and_with_many() {
        for keys in [1, 3, 4, 5, 63] {
            let names: Vec<String> = (0..keys).map(|i| format!("key:{i}")).collect();
            let call: Vec<&[u8]> = std::iter::once(&b"MGET"[..])
                .chain(names.iter().map(|name| name.as_bytes()))
                .collect();
            let get: &[&[u8]] = &[b"GET", b"key:0"];
            let found = resolved(&[get, &call, get, &call]);
            let hashes = |i: usize| found[i].as_ref().map(|(_, hashes)| hashes.clone());
            let mget = hashes(1).expect("a command");
            assert_eq!(mget.len(), keys);
            assert_eq!(hashes(0), Some(vec![mget[0]]));
            assert_eq!((hashes(2), hashes(3)), (hashes(0), hashes(1)));
        }
    }
}
