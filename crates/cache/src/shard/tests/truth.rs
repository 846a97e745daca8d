//! A naive model of a shard's contents, which knows which entry may leave, and why.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::removal::{Removal, RemovalCause};

/// The entry of a key.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) value: u64,
    /// The tick from which readers no longer see it.
    pub(super) end: Option<u64>,
    pub(super) soft: Option<u64>,
    /// The tick before which no load is tried, since one has failed.
    pub(super) again: Option<u64>,
    pub(super) weight: u32,
    /// Its tag, and how often that was invalidated before.
    pub(super) tag: Option<(usize, u32)>,
}

/// A remembered error or absence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Negative {
    Absent,
    Failed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Running,
    Vacant,
    /// With what those who wait are told.
    Over(Option<Told>),
}

/// The result of a load, for those who wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Told {
    Value(u64),
    Negative,
    Private,
}

#[derive(Debug)]
pub(super) struct Flight {
    pub(super) phase: Phase,
    pub(super) waiting: usize,
}

/// The expected answer to who asks for a key.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Nothing,
    Value { value: u64, is_stale: bool },
    Old(u64),
    Negative(Negative),
}

type Left = (u32, u64, RemovalCause);

#[derive(Default)]
pub(super) struct Truth {
    pub(super) tick: u64,
    pub(super) entries: BTreeMap<u32, Entry>,
    pub(super) negatives: BTreeMap<u32, (Negative, u64)>,
    /// How often each tag was invalidated.
    pub(super) invalidated: [u32; super::calls::TAGS],
    pub(super) capacity: Option<u64>,
    pub(super) grace: u64,
    /// The number of the load of each key that is in progress.
    pub(super) table: BTreeMap<u32, usize>,
    pub(super) latches: BTreeSet<u32>,
    pub(super) flights: Vec<Flight>,
    /// The entries that must leave by this call, in this order.
    pub(super) due: VecDeque<Left>,
}

fn is_over(end: Option<u64>, tick: u64) -> bool {
    end.is_some_and(|end| end <= tick)
}

impl Truth {
    pub(super) fn is_current(&self, tag: Option<(usize, u32)>) -> bool {
        tag.is_none_or(|(tag, seen)| self.invalidated[tag] == seen)
    }

    pub(super) fn kept_until(&self, entry: &Entry) -> Option<u64> {
        entry.end.map(|end| end + self.grace)
    }

    pub(super) fn live(&self, key: u32) -> Option<&Entry> {
        let entry = self.entries.get(&key)?;
        let is_live = !is_over(entry.end, self.tick) && self.is_current(entry.tag);
        is_live.then_some(entry)
    }

    /// True if a load of a live entry's next value is to be tried.
    pub(super) fn is_due(&self, entry: &Entry) -> bool {
        is_over(entry.again.or(entry.soft), self.tick)
    }

    /// The entry of a key, if there is one, leaves by this call; for `alive` if it is live.
    pub(super) fn removes(&mut self, key: u32, alive: RemovalCause) {
        let cause = match self.live(key) {
            Some(_) => alive,
            None => self.dead_cause(key),
        };
        if let Some(entry) = self.entries.remove(&key) {
            self.due.push_back((key, entry.value, cause));
        }
    }

    fn dead_cause(&self, key: u32) -> RemovalCause {
        let tag = self.entries.get(&key).and_then(|entry| entry.tag);
        match self.is_current(tag) {
            true => RemovalCause::Expired,
            false => RemovalCause::Invalidated,
        }
    }

    /// An entry is stored; what was there leaves, and so does itself if nobody could ever see it.
    pub(super) fn stores(&mut self, key: u32, entry: Entry) {
        self.removes(key, RemovalCause::Replaced);
        if self
            .capacity
            .is_some_and(|most| u64::from(entry.weight) > most)
        {
            self.due
                .push_back((key, entry.value, RemovalCause::Evicted));
        } else if is_over(self.kept_until(&entry), self.tick) {
            self.due
                .push_back((key, entry.value, RemovalCause::Expired));
        } else {
            self.entries.insert(key, entry);
        }
    }

    /// A writer changes a key: its load is superseded, what is remembered of it forgotten. False if
    /// it has to wait for a latch.
    pub(super) fn writes(&mut self, key: u32) -> bool {
        if self.latches.contains(&key) {
            return false;
        }
        self.table.remove(&key);
        self.negatives.remove(&key);
        true
    }

    pub(super) fn weight(&self) -> u64 {
        self.entries
            .values()
            .map(|entry| u64::from(entry.weight))
            .sum()
    }

    /// An entry has left.
    ///
    /// # Panics
    ///
    /// If it should not have.
    pub(super) fn has_left(&mut self, removal: &Removal<u32, u64>) {
        let (key, value, cause) = (removal.key, removal.value, removal.cause);
        let late = removal.lateness.map(|late| late.as_millis());
        assert_eq!(late.is_some(), cause == RemovalCause::Expired, "lateness");
        if self.due.front() == Some(&(key, value, cause)) {
            self.due.pop_front();
            return;
        }
        let weight = self.weight();
        let entry = self.entries.remove(&key);
        let entry = entry.unwrap_or_else(|| panic!("{key} leaves twice, or out of order"));
        assert_eq!(entry.value, value, "of {key}, which leaves out of order");
        let end = self.kept_until(&entry);
        let expected = match self.is_current(entry.tag) {
            false => RemovalCause::Invalidated,
            true if is_over(end, self.tick) => RemovalCause::Expired,
            true => RemovalCause::Evicted,
        };
        assert_eq!(cause, expected, "why {key} leaves");
        match cause {
            RemovalCause::Expired => {
                let since = self.tick - end.unwrap_or(0);
                assert_eq!(late, Some(u128::from(since)), "lateness of {key}");
            }
            RemovalCause::Evicted => {
                let most = self.capacity.unwrap_or(u64::MAX);
                assert!(weight > most, "{key} is evicted, though there is room");
            }
            _ => {}
        }
    }

    /// As [`has_left`](Self::has_left), of one that nobody was told of.
    pub(super) fn is_gone(&mut self, key: u32) {
        let is_over = is_over(self.kept_until(&self.entries[&key]), self.tick);
        let may_go = is_over || !self.is_current(self.entries[&key].tag) || self.capacity.is_some();
        assert!(may_go, "{key} is lost");
        self.entries.remove(&key);
    }

    /// The answer for a caller whose loader may fail. An absence is an answer if
    /// `absent`.
    pub(super) fn answer(&self, key: u32, absent: bool) -> Answer {
        if let Some(entry) = self.live(key) {
            let (value, is_stale) = (
                entry.value,
                is_over(entry.soft, self.tick) || entry.again.is_some(),
            );
            return Answer::Value { value, is_stale };
        }
        let old = self.entries.get(&key).filter(|entry| {
            let is_kept = !is_over(self.kept_until(entry), self.tick) && self.is_current(entry.tag);
            is_kept && entry.again.is_some_and(|again| self.tick < again)
        });
        if let Some(old) = old {
            return Answer::Old(old.value);
        }
        match self.negatives.get(&key) {
            Some((negative, until))
                if self.tick < *until && (absent || *negative == Negative::Failed) =>
            {
                Answer::Negative(*negative)
            }
            _ => Answer::Nothing,
        }
    }

    /// A load has failed: an old value is served for a while.
    pub(super) fn is_put_off(&mut self, key: u32, backoff: u64) {
        let tick = self.tick;
        let is_live = self.live(key).is_some();
        let Some(entry) = self.entries.get(&key) else {
            return;
        };
        let is_kept = !is_over(self.kept_until(entry), tick) && self.is_current(entry.tag);
        if is_kept && (!is_live || self.is_due(entry)) {
            let left = match entry.end {
                _ if !is_live => 0,
                Some(end) => (end - tick) / 2,
                None => 60_000,
            };
            let again = tick + left.max(backoff);
            self.entries
                .entry(key)
                .and_modify(|entry| entry.again = Some(again));
        }
    }

    /// The tick at which the next entry leaves by itself.
    pub(super) fn first_to_leave(&self) -> Option<u64> {
        let entries = self.entries.values();
        entries.filter_map(|entry| self.kept_until(entry)).min()
    }

    pub(super) fn next_deadline(&self) -> Option<u64> {
        let negatives = self.negatives.values().map(|(_, until)| *until);
        // One that is over may be forgotten already.
        let negatives = negatives.filter(|until| *until > self.tick);
        negatives.chain(self.first_to_leave()).min()
    }
}
