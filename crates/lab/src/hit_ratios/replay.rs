//! How a trace is replayed on any cache: get, else insert.

/// A hasher without a seed, so that a replay can be repeated.
pub(crate) type Hasher = foldhash::fast::FixedState;

/// Counts the keys that `find` finds; the others are handed to `add`.
pub(super) fn replay(
    keys: &[u64],
    mut find: impl FnMut(u64) -> bool,
    mut add: impl FnMut(u64),
) -> u64 {
    let mut hits = 0;
    for &key in keys {
        if find(key) {
            hits += 1;
        } else {
            add(key);
        }
    }
    hits
}
