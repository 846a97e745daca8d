//! One command alone, on some keys: for callers that keep the keys themselves.

use super::{Entry, Event, Kind, Model, Place};

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
    /// Puts a key there, as it was elsewhere.
    pub fn lay(&mut self, place: Place, entry: Entry) {
        self.entries.insert(place, entry);
    }

    /// Takes a key away again.
    pub fn lift(&mut self, place: &Place) -> Option<Entry> {
        self.entries.remove(place)
    }

    /// Whether a command has looked at a key.
    pub fn has_met(&self, place: &Place) -> bool {
        self.met.contains(place)
    }

    /// Whether a command has put another value in the place of a key's.
    pub fn has_replaced(&self, place: &Place) -> bool {
        self.replaced.contains(place)
    }

    /// What has happened to a key.
    pub fn events_of<'a>(&'a self, place: &'a Place) -> impl Iterator<Item = &'static str> + 'a {
        let of_it = |event: &&Event| (event.0, &event.1) == (place.0, &place.1);
        self.events.iter().filter(of_it).map(|event| event.2)
    }
}
