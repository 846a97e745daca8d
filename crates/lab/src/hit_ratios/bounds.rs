//! The two policies between which others are judged: least recently used, and clairvoyance.
//!
//! Both know which reads a cache without a limit would answer: each hit is won by keeping one
//! object from one request to the next, so the optimum is Belady's rule (1966) over those.

use std::collections::{BTreeSet, BinaryHeap, HashMap, HashSet, VecDeque};

/// A hasher without a seed, so that a replay can be repeated.
pub(crate) type Hasher = foldhash::fast::FixedState;

/// A stored object, with the time at which it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Object {
    /// Key and value together.
    pub(crate) bytes: u32,
    pub(crate) deadline_ms: u64,
}

/// The kind of a request where there is room for everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestKind {
    /// A read that finds this object alive.
    Hit(Object),
    /// A read that finds nothing alive.
    Miss,
    /// A write: after a miss, or of its own accord.
    Store(Object),
}

/// An event of one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) at_ms: u64,
    pub(crate) key: u64,
    pub(crate) what: RequestKind,
}

/// A trace whose objects have no end: the first request stores a key, all others are hits.
pub(super) fn events(trace: &[u64]) -> Vec<Event> {
    let object = Object {
        bytes: 1,
        deadline_ms: u64::MAX,
    };
    let mut seen: HashSet<u64, Hasher> = HashSet::default();
    let event = |&key: &u64| Event {
        at_ms: 0,
        key,
        what: match seen.insert(key) {
            true => RequestKind::Store(object),
            false => RequestKind::Hit(object),
        },
    };
    trace.iter().map(event).collect()
}

/// Belady's rule: what has no hit before its end goes at once, else what is hit last.
pub(crate) fn optimum(events: &[Event], capacity: usize) -> u64 {
    let mut next_of: HashMap<u64, usize, Hasher> = HashMap::default();
    let mut next = vec![None; events.len()];
    for (at, event) in events.iter().enumerate().rev() {
        next[at] = match event.what {
            RequestKind::Hit(_) => next_of.insert(event.key, at),
            RequestKind::Store(_) => next_of.remove(&event.key),
            RequestKind::Miss => None,
        };
    }
    drop(next_of);
    // By the next hit, which belongs to one key alone.
    let mut resident: BTreeSet<usize> = BTreeSet::new();
    let mut hits = 0;
    for (at, next) in next.into_iter().enumerate() {
        hits += u64::from(resident.remove(&at));
        if let Some(later) = next {
            resident.insert(later);
            if resident.len() > capacity {
                resident.pop_last();
            }
        }
    }
    hits
}

/// Exact LRU; with `expired_first` the dead are evicted before any that is alive.
pub(crate) fn lru(events: &[Event], capacity: usize, expired_first: bool) -> u64 {
    let mut resident: HashMap<u64, (usize, Object), Hasher> = HashMap::default();
    // Every use, oldest first, and every deadline, earliest first; what is out of date is passed
    // over.
    let mut uses: VecDeque<(usize, u64)> = VecDeque::new();
    let mut deadlines: BinaryHeap<(std::cmp::Reverse<u64>, u64)> = BinaryHeap::new();
    let mut hits = 0;
    for (at, event) in events.iter().enumerate() {
        let (key, now_ms) = (event.key, event.at_ms);
        let object = match event.what {
            RequestKind::Hit(object) => {
                hits += u64::from(resident.contains_key(&key));
                object
            }
            RequestKind::Store(object) => object,
            RequestKind::Miss => {
                resident.remove(&key);
                continue;
            }
        };
        resident.insert(key, (at, object));
        uses.push_back((at, key));
        if expired_first {
            deadlines.push((std::cmp::Reverse(object.deadline_ms), key));
        }
        while resident.len() > capacity {
            let earliest = deadlines.peek().copied();
            if let Some((_, key)) = earliest.filter(|(deadline_ms, _)| deadline_ms.0 <= now_ms) {
                deadlines.pop();
                let now = resident.get(&key);
                if now.is_some_and(|(_, object)| object.deadline_ms <= now_ms) {
                    resident.remove(&key);
                }
                continue;
            }
            let Some((at, key)) = uses.pop_front() else {
                break;
            };
            if resident.get(&key).is_some_and(|(last, _)| *last == at) {
                resident.remove(&key);
            }
        }
    }
    hits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_trace_by_hand() {
        let trace = events(&[1, 2, 3, 1, 2, 3, 3, 1]);
        // LRU with two places: 3 twice in a row.
        assert_eq!(lru(&trace, 2, false), 1);
        // The optimum keeps 1 (or 2) from the first turn on.
        assert_eq!(optimum(&trace, 2), 4);
        assert_eq!(lru(&trace, 3, true), 5);
        assert_eq!(optimum(&trace, 3), 5);
    }
}
