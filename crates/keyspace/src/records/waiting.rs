//! Records that wait to be taken, and the places of those that were promised.

use std::collections::VecDeque;
use std::thread::ThreadId;

use super::{Encoder, TakenRecords};

#[derive(Debug, Default)]
pub(super) struct Waiting {
    /// Records that may be taken.
    last: Encoder,
    /// How many there ever were, up to the end of `last`.
    ready: u64,
    /// The first is not filled.
    places: VecDeque<Place>,
    /// What was cut off before: its bytes, and how many records there were by then.
    cut: VecDeque<(Vec<u8>, u64)>,
}

/// A promised record, and those that have come since.
#[derive(Debug)]
struct Place {
    owner: ThreadId,
    is_filled: bool,
    /// What it was filled with: nothing, if its owner had nothing to record.
    record: Encoder,
    behind: Encoder,
    /// How many stand behind it.
    count: u64,
}

impl Waiting {
    /// Records up to the first place that is not filled.
    pub(super) fn ready(&self) -> u64 {
        self.ready
    }

    /// All records, promised ones too.
    pub(super) fn pushed(&self) -> u64 {
        let behind = self.places.iter().map(|place| 1 + place.count);
        self.ready + behind.sum::<u64>()
    }

    /// Places that are not filled, and those behind them.
    pub(super) fn promised(&self) -> usize {
        self.places.len()
    }

    /// Bytes that wait, apart from those that were cut off.
    pub(super) fn bytes(&self) -> usize {
        let behind = self.places.iter();
        let behind = behind.map(|place| place.record.len() + place.behind.len());
        self.last.len() + behind.sum::<usize>()
    }

    /// Appends a record, or fills this thread's place with it.
    #[inline]
    pub(super) fn append(&mut self, write: impl FnOnce(&mut Encoder)) {
        if self.places.is_empty() {
            write(&mut self.last);
            self.ready += 1;
        } else {
            self.append_among_places(write);
        }
    }

    #[cold]
    fn append_among_places(&mut self, write: impl FnOnce(&mut Encoder)) {
        if let Some(place) = self.own_place() {
            write(&mut place.record);
            place.is_filled = true;
            self.settle();
        } else if let Some(place) = self.places.back_mut() {
            write(&mut place.behind);
            place.count += 1;
        }
    }

    /// Gives this thread a place, if it has none.
    pub(super) fn promise(&mut self) {
        if self.own_place().is_none() {
            self.places.push_back(Place {
                owner: std::thread::current().id(),
                is_filled: false,
                record: Encoder::default(),
                behind: Encoder::default(),
                count: 0,
            });
        }
    }

    /// Leaves this thread's place empty, if it has one.
    pub(super) fn release(&mut self) {
        if let Some(place) = self.own_place() {
            place.is_filled = true;
            self.settle();
        }
    }

    fn own_place(&mut self) -> Option<&mut Place> {
        let me = std::thread::current().id();
        let mut places = self.places.iter_mut();
        places.find(|place| !place.is_filled && place.owner == me)
    }

    /// What stands before the first place that is not filled may be taken.
    fn settle(&mut self) {
        while let Some(place) = self.places.pop_front_if(|place| place.is_filled) {
            self.last.append(&place.record);
            self.last.append(&place.behind);
            self.ready += 1 + place.count;
        }
    }

    /// Cuts off what waits. Nobody is inside the keyspace, so nothing is promised.
    pub(super) fn cut(&mut self) {
        debug_assert!(self.places.is_empty(), "somebody has something to record");
        let mut bytes = Vec::new();
        self.last.take(&mut bytes);
        self.cut.push_back((bytes, self.ready));
    }

    /// Takes all that may be taken, up to the first cut. Their bytes replace those of `into`.
    pub(super) fn take(&mut self, into: &mut Vec<u8>) -> TakenRecords {
        if let Some((bytes, until)) = self.cut.pop_front() {
            *into = bytes;
            let is_cut = true;
            return TakenRecords { until, is_cut };
        }
        self.last.take(into);
        TakenRecords {
            until: self.ready,
            is_cut: false,
        }
    }
}
