//! The two policies between which others are judged: least recently used, and clairvoyance.

use std::collections::{BinaryHeap, HashMap, VecDeque};

/// Hits of a cache that evicts the least recently used.
pub(super) fn lru(keys: &[u64], capacity: usize) -> u64 {
    let mut last: HashMap<u64, usize> = HashMap::new();
    // Every use, oldest first; all but a key's last are passed over.
    let mut uses: VecDeque<(usize, u64)> = VecDeque::new();
    let mut hits = 0;
    for (now, &key) in keys.iter().enumerate() {
        hits += u64::from(last.insert(key, now).is_some());
        uses.push_back((now, key));
        while last.len() > capacity {
            let Some((at, key)) = uses.pop_front() else {
                break;
            };
            if last.get(&key) == Some(&at) {
                last.remove(&key);
            }
        }
    }
    hits
}

/// Hits of the optimum (Belady, 1966): evict whatever is needed latest.
pub(super) fn optimal(keys: &[u64], capacity: usize) -> u64 {
    let mut next_of: HashMap<u64, usize> = HashMap::new();
    let mut next = vec![usize::MAX; keys.len()];
    for (at, key) in keys.iter().enumerate().rev() {
        if let Some(later) = next_of.insert(*key, at) {
            next[at] = later;
        }
    }
    drop(next_of);
    let mut resident: HashMap<u64, usize> = HashMap::new();
    // When keys are needed, latest first; all but a key's last entry are passed over.
    let mut needed: BinaryHeap<(usize, u64)> = BinaryHeap::new();
    let mut hits = 0;
    for (&key, &later) in keys.iter().zip(&next) {
        hits += u64::from(resident.insert(key, later).is_some());
        needed.push((later, key));
        while resident.len() > capacity {
            let Some((later, key)) = needed.pop() else {
                break;
            };
            if resident.get(&key) == Some(&later) {
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
        let trace = [1, 2, 3, 1, 2, 3, 3, 1];
        // LRU with two places: 3 twice in a row.
        assert_eq!(lru(&trace, 2), 1);
        // The optimum keeps 1 (or 2) from the first turn on.
        assert_eq!(optimal(&trace, 2), 4);
        assert_eq!(lru(&trace, 3), 5);
        assert_eq!(optimal(&trace, 3), 5);
    }

    #[test]
    fn a_loop_defeats_lru_and_not_the_optimum() {
        let trace: Vec<u64> = (0..100_000).map(|at| at % 100).collect();
        assert_eq!(lru(&trace, 50), 0);
        let share = optimal(&trace, 50) as f64 / trace.len() as f64;
        assert!((0.48..0.51).contains(&share), "{share}");
    }
}
