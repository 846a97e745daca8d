//! All consumer groups of a stream.

use super::group::Group;
use super::id::StreamId;

/// The groups, in the order of their names.
#[derive(Debug, Clone, Default)]
pub struct Groups {
    all: Vec<Group>,
    /// Bytes that the groups hold elsewhere.
    held: usize,
}

impl Groups {
    pub(super) fn heap_bytes(&self) -> usize {
        self.held + self.all.capacity() * size_of::<Group>()
    }

    fn place_of(&self, name: &[u8]) -> Result<usize, usize> {
        self.all.binary_search_by(|group| group.name().cmp(name))
    }

    /// The groups, in the order of their names.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Group> {
        self.all.iter()
    }

    /// The group of that name.
    #[must_use]
    pub fn get(&self, name: &[u8]) -> Option<&Group> {
        self.place_of(name).ok().map(|place| &self.all[place])
    }

    /// Changes the group of that name, if there is one.
    pub fn edit<R>(&mut self, name: &[u8], change: impl FnOnce(&mut Group) -> R) -> Option<R> {
        let place = self.place_of(name).ok()?;
        Some(self.edit_at(place, change))
    }

    fn edit_at<R>(&mut self, place: usize, change: impl FnOnce(&mut Group) -> R) -> R {
        let group = &mut self.all[place];
        let before = group.bytes();
        let result = change(group);
        self.held = self.held + group.bytes() - before;
        result
    }

    /// Adds a group; returns false if there is one of that name.
    pub fn create(&mut self, name: &[u8], last: StreamId, entries_read: Option<u64>) -> bool {
        let Err(place) = self.place_of(name) else {
            return false;
        };
        let group = Group::new(name, last, entries_read);
        self.held += group.bytes() - size_of::<Group>();
        self.all.insert(place, group);
        true
    }

    /// Removes a group, and returns it if it was there.
    pub fn destroy(&mut self, name: &[u8]) -> Option<Group> {
        let group = self.all.remove(self.place_of(name).ok()?);
        self.held -= group.bytes() - size_of::<Group>();
        Some(group)
    }

    /// Forgets that an entry was given to anybody, in all groups.
    pub fn forget(&mut self, id: StreamId) {
        for place in 0..self.all.len() {
            self.edit_at(place, |group| group.acknowledge(id));
        }
    }

    /// True if some group was not yet given an entry, or has not acknowledged it.
    #[must_use]
    pub fn needs(&self, id: StreamId) -> bool {
        self.iter()
            .any(|group| id > group.last || group.pending(id).is_some())
    }

    pub(super) fn validate(&self) {
        self.all.iter().for_each(|group| group.validate());
        assert!(
            self.all.is_sorted_by(|a, b| a.name() < b.name()),
            "order of groups"
        );
        let held: usize = self
            .all
            .iter()
            .map(|group| group.bytes() - size_of::<Group>())
            .sum();
        assert_eq!(held, self.held, "bytes of groups");
    }
}
