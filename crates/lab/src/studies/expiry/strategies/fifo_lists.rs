//! A queue for each distinct time to live: within one, the first that came is the first that is
//! due.
//!
//! A deadline that is set is appended, O(1), and a call looks at the head of every queue; so it is
//! excellent while there are few distinct times to live, and O(number of them) a call where every
//! entry draws its own. It is exact as long as the clock does not run backwards. A deadline that
//! moves is appended again, to the queue of its new time to live, and the old record stays until
//! its own time comes or such records outnumber the others. Memory is 16 bytes a record. Node.js
//! and libev's users keep connection timeouts so, and James Smith's "Build Your Own Redis with
//! C/C++" its idle timers.

use std::collections::{HashMap, VecDeque};

use foldhash::fast::RandomState;
use tidewheel_timer::Timer;

use super::{Entries, Expiry, Left};

/// Stale records that are tolerated whatever the number of the others.
const STALE_FLOOR: usize = 1_024;

#[derive(Clone, Copy, Debug)]
struct Record {
    deadline_ms: u64,
    id: u32,
}

#[derive(Debug)]
struct List {
    ttl_ms: u64,
    records: VecDeque<Record>,
}

/// Queues by time to live.
#[derive(Debug, Default)]
pub(super) struct FifoLists {
    lists: Vec<List>,
    /// The index in `lists` of the queue of a time to live.
    places: HashMap<u64, usize, RandomState>,
    /// No record is due before this.
    next_ms: Option<u64>,
    latest_ms: u64,
    records: usize,
    stale: usize,
}

impl FifoLists {
    fn is_live<E: Entries>(entries: &E, record: Record) -> bool {
        let timer = entries.timer(record.id);
        timer.is_some_and(|timer| timer.deadline == record.deadline_ms)
    }

    fn append(&mut self, id: u32, deadline_ms: u64, now_ms: u64) {
        // By the latest clock: a time to live counted from an earlier one would break a queue's
        // order.
        self.latest_ms = self.latest_ms.max(now_ms);
        let ttl_ms = deadline_ms.saturating_sub(self.latest_ms);
        let place = *self.places.entry(ttl_ms).or_insert(self.lists.len());
        if place == self.lists.len() {
            let records = VecDeque::new();
            self.lists.push(List { ttl_ms, records });
        }
        let record = Record { deadline_ms, id };
        self.lists[place].records.push_back(record);
        self.records += 1;
        self.next_ms = earlier(self.next_ms, deadline_ms);
    }

    fn remove_list(&mut self, place: usize) {
        let gone = self.lists.swap_remove(place);
        self.places.remove(&gone.ttl_ms);
        if let Some(moved) = self.lists.get(place) {
            self.places.insert(moved.ttl_ms, place);
        }
    }

    /// Drops stale records once they outnumber the others: O(1) for each, all told.
    fn compact<E: Entries>(&mut self, entries: &E) {
        if self.stale <= self.records / 2 + STALE_FLOOR {
            return;
        }
        for place in (0..self.lists.len()).rev() {
            let records = &mut self.lists[place].records;
            records.retain(|&record| Self::is_live(entries, record));
            records.shrink_to(records.len() * 2);
            if records.is_empty() {
                self.remove_list(place);
            }
        }
        self.records = self.lists.iter().map(|list| list.records.len()).sum();
        self.stale = 0;
    }
}

fn earlier(next_ms: Option<u64>, deadline_ms: u64) -> Option<u64> {
    Some(next_ms.map_or(deadline_ms, |at_ms| at_ms.min(deadline_ms)))
}

impl<E: Entries> Expiry<E> for FifoLists {
    fn insert(&mut self, entries: &mut E, id: u32, deadline_ms: u64, now_ms: u64) {
        self.compact(entries);
        self.append(id, deadline_ms, now_ms);
    }

    fn cancel(&mut self, _: &mut E, _: u32, _: Timer) {
        self.stale += 1;
    }

    fn advance(&mut self, entries: &mut E, now_ms: u64, budget: u32, due: &mut Vec<u32>) -> Left {
        self.latest_ms = self.latest_ms.max(now_ms);
        let now_ms = self.latest_ms;
        if self.next_ms.is_none_or(|at| now_ms < at) {
            return Left::Nothing;
        }
        let mut left = budget;
        let mut next_ms = None::<u64>;
        // From the back, so that an emptied queue's place is taken by one that was looked at.
        for place in (0..self.lists.len()).rev() {
            while let Some(&record) = self.lists[place].records.front() {
                let deadline_ms = record.deadline_ms;
                if now_ms < deadline_ms {
                    next_ms = earlier(next_ms, deadline_ms);
                    break;
                }
                if left == 0 {
                    return Left::Backlog;
                }
                left -= 1;
                self.records -= 1;
                self.lists[place].records.pop_front();
                if Self::is_live(entries, record) {
                    entries.clear(record.id);
                    due.push(record.id);
                } else {
                    self.stale = self.stale.saturating_sub(1);
                }
            }
            if self.lists[place].records.is_empty() {
                self.remove_list(place);
            }
        }
        self.next_ms = next_ms;
        Left::Nothing
    }

    fn wake(&self) -> Option<u64> {
        self.next_ms
    }

    fn bytes(&self) -> usize {
        let records: usize = self.lists.iter().map(|l| l.records.capacity()).sum();
        records * size_of::<Record>()
            + self.lists.capacity() * size_of::<List>()
            + self.places.capacity() * (size_of::<(u64, usize)>() + 1)
    }
}
