//! The slow log: the newest calls that took long, for SLOWLOG.

use std::collections::VecDeque;

use parking_lot::Mutex;
use tidewheel_keyspace::Command;

/// One slow call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SlowCall {
    /// Wall time in seconds.
    pub(crate) at_s: i64,
    pub(crate) took_us: u64,
    /// Its shortened arguments.
    pub(crate) args: Vec<Vec<u8>>,
    /// The client's address.
    pub(crate) peer: String,
    /// The client's name.
    pub(crate) name: Vec<u8>,
}

/// A call that has begun and not ended, with its time so far.
#[derive(Debug)]
pub(crate) struct UnfinishedCall {
    pub(crate) row: &'static Command,
    /// Its shortened arguments; empty if neither the slow log nor LATENCY is on.
    pub(crate) args: Vec<Vec<u8>>,
    pub(crate) ns: u64,
}

impl UnfinishedCall {
    /// Returns the memory held, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Self>() + self.args.iter().map(Vec::capacity).sum::<usize>()
    }
}

/// The log. It is locked only for slow calls, and to be read.
#[derive(Debug, Default)]
pub(crate) struct SlowLog {
    state: Mutex<SlowLogState>,
}

#[derive(Debug, Default)]
struct SlowLogState {
    /// The number of the next entry; none is used twice.
    next: u64,
    /// The newest first.
    entries: VecDeque<(u64, SlowCall)>,
}

impl SlowLog {
    /// Adds an entry. No more than `most` are kept.
    pub(crate) fn add(&self, entry: SlowCall, most: usize) {
        let mut state = self.state.lock();
        let number = state.next;
        state.next += 1;
        state.entries.push_front((number, entry));
        state.entries.truncate(most);
    }

    /// Returns the newest entries with their numbers, newest first.
    pub(crate) fn newest(&self, count: usize) -> Vec<(u64, SlowCall)> {
        let state = self.state.lock();
        state.entries.iter().take(count).cloned().collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.state.lock().entries.len()
    }

    /// Forgets all entries. The numbers go on.
    pub(crate) fn reset(&self) {
        self.state.lock().entries = VecDeque::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(took_us: u64) -> SlowCall {
        SlowCall {
            at_s: 0,
            took_us,
            args: Vec::new(),
            peer: "127.0.0.1:1".to_owned(),
            name: Vec::new(),
        }
    }

    #[test]
    fn the_newest_are_kept_and_numbers_are_never_used_twice() {
        let log = SlowLog::default();
        let numbers = |count| {
            log.newest(count)
                .iter()
                .map(|(n, _)| *n)
                .collect::<Vec<_>>()
        };
        (0..5).for_each(|us| log.add(entry(us), 3));
        assert_eq!(numbers(usize::MAX), [4, 3, 2]);
        assert_eq!(numbers(1), [4]);
        log.add(entry(9), 1);
        assert_eq!((numbers(9), log.len()), (vec![5], 1));
        log.reset();
        log.add(entry(9), 1);
        assert_eq!(numbers(9), [6]);
        log.add(entry(9), 0);
        assert_eq!(log.len(), 0);
    }
}
