//! All consumer groups of a stream.

use std::collections::HashSet;

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

    /// Forgets, in all groups, that any of these entries was given to anybody; returns whether one
    /// was. The ids are in order. Takes a step for each group, and in those that have entries
    /// between the first and the last one for each of these, or for each id if these are fewer.
    pub fn forget_all(&mut self, ids: &[StreamId]) -> bool {
        let mut some = false;
        for place in 0..self.all.len() {
            let pending = self.all[place].pending_among(ids);
            if pending.is_empty() {
                continue;
            }
            some = true;
            self.edit_at(place, |group| {
                pending.into_iter().for_each(|id| {
                    group.acknowledge(id);
                });
            });
        }
        some
    }

    /// Those of these entries that some group [`needs`](Self::needs). The ids are in order. Takes
    /// as many steps as [`forget_all`](Self::forget_all).
    #[must_use]
    pub fn needed_among(&self, ids: &[StreamId]) -> Needed {
        Needed {
            given_to_all: self.given_to_all(),
            pending: self
                .iter()
                .flat_map(|group| group.pending_among(ids))
                .collect(),
        }
    }

    fn given_to_all(&self) -> Option<StreamId> {
        self.iter().map(|group| group.last).min()
    }

    /// What [`needs`](Self::needs) answers for any entry, until a group changes. Takes a step for
    /// each group and for each of its entries that are not acknowledged.
    #[must_use]
    pub fn needed(&self) -> Needed {
        let pending = |group: &Group| {
            group
                .pending_from(StreamId::MIN)
                .map(|(id, _)| id)
                .collect()
        };
        Needed {
            given_to_all: self.given_to_all(),
            pending: self
                .iter()
                .flat_map(|group| -> Vec<_> { pending(group) })
                .collect(),
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

/// The entries that some group needs.
#[derive(Debug)]
pub struct Needed {
    /// The last entry that each group was given; `None` without groups.
    given_to_all: Option<StreamId>,
    pending: HashSet<StreamId>,
}

impl Needed {
    /// True if some group needs the entry.
    #[must_use]
    pub fn has(&self, id: StreamId) -> bool {
        self.given_to_all.is_some_and(|last| id > last) || self.pending.contains(&id)
    }
}

#[cfg(test)]
mod tests {
    use super::super::group::Pending;
    use super::*;

    fn groups() -> Groups {
        let mut groups = Groups::default();
        for (name, step) in [(&b"a"[..], 1), (b"b", 3), (b"none", 0), (b"c", 50)] {
            groups.create(name, StreamId::new(90, 0), None);
            groups.edit(name, |group| {
                let (consumer, _) = group.consumer_or_new(b"one", 0);
                for ms in (1..100).filter(|ms| step > 0 && ms % step == 0) {
                    let pending = Pending {
                        consumer,
                        delivered_ms: 0,
                        deliveries: 1,
                    };
                    group.assign(StreamId::new(ms, 0), pending);
                }
            });
        }
        groups
    }

    /// One by one, 990,000 entries and 10,000 groups took more than a minute.
    #[test]
    fn many_entries_at_once_are_treated_as_each_alone() {
        for (from, to, step) in [
            (1, 100, 1),
            (5, 40, 7),
            (50, 51, 1),
            (98, 130, 2),
            (9, 9, 1),
        ] {
            let ids: Vec<_> = (from..to)
                .step_by(step)
                .map(|ms| StreamId::new(ms, 0))
                .collect();
            let (mut at_once, mut alone) = (groups(), groups());
            let needed = at_once.needed();
            let among = at_once.needed_among(&ids);
            for id in &ids {
                assert_eq!(needed.has(*id), alone.needs(*id), "{id}");
                assert_eq!(among.has(*id), alone.needs(*id), "{id}");
            }
            let some = alone
                .iter()
                .any(|group| ids.iter().any(|id| group.pending(*id).is_some()));
            assert_eq!(at_once.forget_all(&ids), some);
            ids.iter().for_each(|id| alone.forget(*id));
            at_once.validate();
            let left = |groups: &Groups| -> Vec<Vec<StreamId>> {
                let pending = |group: &Group| {
                    group
                        .pending_from(StreamId::MIN)
                        .map(|(id, _)| id)
                        .collect()
                };
                groups.iter().map(pending).collect()
            };
            assert_eq!(left(&at_once), left(&alone));
        }
        assert!(!Groups::default().needed().has(StreamId::MAX));
    }
}
