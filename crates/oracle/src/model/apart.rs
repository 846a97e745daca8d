//! Keys as others see them who run commands on a model: what is there, and what leaves by itself.

use super::{Entry, Kind, Model, Place};

impl Entry {
    /// The tick at which it dies.
    pub fn deadline(&self) -> Option<u64> {
        let tick = |at: i128| at.clamp(0, u64::MAX.into()) as u64;
        self.deadline.map(tick)
    }

    /// The bytes of its elements, or of its members.
    pub fn weight(&self) -> usize {
        match &self.kind {
            Kind::Text(text) => text.len(),
            Kind::List(list) => list.iter().map(Vec::len).sum(),
            Kind::Hash(of) => of
                .iter()
                .map(|(field, one)| field.len() + one.value.len())
                .sum(),
            Kind::Set(of) => of.keys().map(Vec::len).sum(),
            Kind::ZSet(of) => of.keys().map(Vec::len).sum(),
            Kind::Stream(stream) => stream.weight(),
        }
    }
}

impl Model {
    /// What is stored under a key.
    pub fn entry_at(&self, place: &Place) -> Option<&Entry> {
        self.entries.get(place)
    }

    /// Takes a key away, without an event.
    pub fn lift(&mut self, place: &Place) -> Option<Entry> {
        self.entries.remove(place)
    }
}
