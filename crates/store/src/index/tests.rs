//! The index beside a naive model, with kind places and with hostile ones.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};

use proptest::prelude::*;

use super::resize::DIRECTORY_SLOTS_MIN;
use super::*;

fn mix(i: u64) -> u32 {
    let x = (i ^ i >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (x >> 32) as u32
}

#[test]
fn grows_and_shrinks_and_finds_everything() {
    let mut index = Index::new();
    let mut model = HashMap::new();
    for round in 0..3 {
        for id in 1..20_000u32 {
            let place = mix(u64::from(id) * 7 + round);
            if model.insert(id, place).is_none() {
                index.insert(place, id);
            } else {
                unreachable!("ids are removed between rounds");
            }
        }
        index.validate();
        assert!(
            index.bytes() < model.len() * 14 + 4096,
            "{} bytes",
            index.bytes()
        );
        for (&id, &place) in &model {
            assert_eq!(find(&index, place, |found| found == id), Some(id));
        }
        for (id, place) in model.drain() {
            assert!(index.remove(place, id));
            assert!(!index.remove(place, id));
            if id % 997 == 0 {
                index.validate();
            }
        }
        assert_eq!(index.len(), 0);
        assert!(
            index.bytes() < 16_384,
            "{} bytes are held by an empty index",
            index.bytes()
        );
    }
}

/// Entries 1 to `count` are all drawn, and none of them much more often than the others.
fn check_samples(index: &Index, count: u32) {
    let mut drawn = vec![0u32; count as usize + 1];
    for i in 0..100 * u64::from(count) {
        let random = u64::from(mix(i * 3 + 1)) << 32 | u64::from(mix(i * 5 + 2));
        drawn[index.sample(random).expect("not empty") as usize] += 1;
    }
    let most = drawn.iter().max().copied().unwrap_or(0);
    let never = drawn[1..].iter().filter(|times| **times == 0).count();
    assert!(
        most < 250 && never == 0,
        "most {most} of 100, {never} never"
    );
}

/// The first pair of a bucket was sampled several times as often as the others.
#[test]
fn every_entry_is_sampled_about_as_often() {
    let mut index = Index::new();
    for id in 1..=2000 {
        index.insert(mix(u64::from(id)), id);
    }
    check_samples(&index, 2000);
}

#[test]
fn ids_with_equal_places_are_told_apart_by_the_callers_comparison() {
    let mut index = Index::new();
    for id in 1..3000 {
        index.insert(42, id);
    }
    index.validate();
    assert_eq!(find(&index, 42, |id| id == 2999), Some(2999));
    for id in 1..3000 {
        assert!(index.remove(42, id));
    }
    assert_eq!(index.len(), 0);
}

#[test]
fn scan_visits_each_entry_once_though_the_index_grows_and_shrinks() {
    let mut index = Index::new();
    for id in 1..=5000 {
        index.insert(mix(u64::from(id)), id);
    }
    let mut seen = HashSet::new();
    let mut cursor = Some(0);
    let mut extra = 10_000;
    let mut calls = 0;
    while let Some(at) = cursor {
        cursor = index.scan(at, 10, |id| {
            assert!(seen.insert(id), "{id} was visited twice");
        });
        calls += 1;
        for _ in 0..100 {
            if calls < 100 {
                extra += 1;
                index.insert(mix(extra), extra as u32);
            } else if extra > 10_000 {
                index.remove(mix(extra), extra as u32);
                extra -= 1;
            }
        }
    }
    assert!((1..=5000).all(|id| seen.contains(&id)));
}

/// Where stores look, one after the other.
fn find(index: &Index, place: u32, mut is: impl FnMut(u32) -> bool) -> Option<u32> {
    match index.find(place, &mut is) {
        Ok(id) => Some(id),
        Err(Elsewhere::Nowhere) => None,
        Err(Elsewhere::Crowd) => index.find_crowded(place, is),
    }
}

/// A name, and a way from the number of an entry to its place.
type Hostile = (&'static str, fn(u64) -> u32);

/// Hashes as a hostile or careless caller may give them.
const HOSTILE: [Hostile; 8] = [
    ("all equal", |_| 42),
    ("all equal to the last place", |_| u32::MAX),
    ("equal high 26 bits", |i| 0xdead_be40 | mix(i) & 0x3f),
    ("equal high 16 bits", |i| 0xbeef_0000 | mix(i) & 0xffff),
    ("equal low 26 bits", |i| mix(i) << 26 | 77),
    ("seven places", |i| mix(i % 7)),
    ("counted", |i| i as u32),
    ("half of them equal", |i| {
        if i % 2 == 0 { 1 << 31 } else { mix(i) }
    }),
];

/// An index may take a little memory to begin with, and 24 bytes an entry.
fn check_bytes(index: &Index, name: &str) {
    let (bytes, len) = (index.bytes(), index.len());
    assert!(
        bytes <= 24 * len + 16_384,
        "{name}: {len} entries take {bytes} bytes"
    );
}

/// 3,700 equal hashes took 257 MiB, because their segment was split until the directory reached its
/// maximal depth.
#[test]
fn memory_is_in_proportion_to_entries_whatever_their_hashes() {
    for (name, place) in HOSTILE {
        let mut index = Index::new();
        for i in 1..=12_000 {
            index.insert(place(i), i as u32);
            check_bytes(&index, name);
        }
        index.validate();
        for i in 1..=12_000 {
            assert!(index.remove(place(i), i as u32), "{name}: {i} is lost");
            if i % 1_000 == 0 {
                index.validate();
            }
        }
        assert!(index.bytes() < 16_384, "{name}: {} bytes", index.bytes());
    }
}

#[derive(Debug, Clone)]
enum Op {
    Insert(u16),
    Remove(u16),
    Move(u16),
    Scan { count: usize, changes: u16 },
    Sample(u64),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (0u16..4_000).prop_map(Op::Insert),
        3 => (0u16..4_000).prop_map(Op::Remove),
        2 => (0u16..40).prop_map(Op::Move),
        1 => (0usize..900, 0u16..60).prop_map(|(count, changes)| Op::Scan { count, changes }),
        1 => any::<u64>().prop_map(Op::Sample),
    ]
}

/// An index and what it should hold: by place, then by id.
struct IndexAndModel {
    index: Index,
    model: BTreeMap<u32, BTreeSet<u32>>,
    place: fn(u64) -> u32,
    next_id: u32,
    /// Ids in the order in which they came; removal takes from both ends.
    ids: VecDeque<u32>,
}

impl IndexAndModel {
    fn insert(&mut self) {
        let id = self.next_id;
        self.next_id += 1;
        let place = (self.place)(id.into());
        self.index.insert(place, id);
        self.model.entry(place).or_default().insert(id);
        self.ids.push_back(id);
    }

    /// Where an id is: it may have been moved there from another one.
    fn place_of(&self, id: u32) -> u32 {
        (self.place)((id & ID_BITS).into())
    }

    fn remove(&mut self, newest: bool) {
        let id = if newest {
            self.ids.pop_back()
        } else {
            self.ids.pop_front()
        };
        let Some(id) = id else { return };
        let place = self.place_of(id);
        assert!(self.index.remove(place, id));
        assert!(!self.index.remove(place, id));
        let alike = self.model.get_mut(&place).expect("the model has it");
        alike.remove(&id);
        if alike.is_empty() {
            self.model.remove(&place);
        }
    }

    /// Exchanges the id of the oldest entry for one that keeps its place.
    fn relocate(&mut self) {
        let Some(old) = self.ids.pop_front() else {
            return;
        };
        let (place, new) = (self.place_of(old), old ^ MOVED);
        self.index.replace(place, old, new);
        let alike = self.model.get_mut(&place).expect("the model has it");
        alike.remove(&old);
        alike.insert(new);
        self.ids.push_back(new);
    }

    /// Walks the whole index while entries come and go.
    fn scan(&mut self, count: usize, changes: u16) {
        let stays: HashSet<u32> = self.ids.iter().copied().collect();
        let (mut seen, mut cursor) = (HashSet::new(), Some(0));
        let (mut came, mut places) = (0, 0);
        while let Some(from) = cursor {
            let (mut visited, mut last) = (0, None);
            cursor = self.index.scan(from, count, |id| {
                assert!(seen.insert(id), "{id} was visited twice");
                visited += 1;
                last = Some(id);
            });
            assert!(cursor.is_none_or(|cursor| cursor > from && visited >= count));
            // In order, and a place is never parted.
            let last = last.map(|id| self.place_of(id));
            assert!(last.is_none_or(|last| last >= from && cursor.is_none_or(|c| last < c)));
            places += 1;
            if came < changes && places % 2 == 0 {
                came += 1;
                self.insert();
            }
        }
        assert!(stays.is_subset(&seen), "an entry that stayed was not met");
        (0..came).for_each(|_| self.remove(true));
    }

    fn check(&self, name: &str) {
        self.index.validate();
        check_bytes(&self.index, name);
        assert_eq!(self.index.len(), self.ids.len());
        for id in self.ids.iter().step_by(37) {
            let place = self.place_of(*id);
            assert_eq!(find(&self.index, place, |found| found == *id), Some(*id));
            assert_eq!(find(&self.index, place, |_| false), None);
        }
    }
}

const MOVED: u32 = 1 << 31;
const ID_BITS: u32 = MOVED - 1;

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases / 16, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn hostile_places_are_found_scanned_and_given_back(
        kind in 0..HOSTILE.len(),
        ops in prop::collection::vec(op(), 1..25),
    ) {
        let (name, place) = HOSTILE[kind];
        let mut beside = IndexAndModel {
            index: Index::new(),
            model: BTreeMap::new(),
            place,
            next_id: 1,
            ids: VecDeque::new(),
        };
        for (step, op) in ops.into_iter().enumerate() {
            match op {
                Op::Insert(times) => (0..times).for_each(|_| beside.insert()),
                Op::Remove(times) => (0..times).for_each(|_| beside.remove(step % 2 == 0)),
                Op::Move(times) => (0..times).for_each(|_| beside.relocate()),
                Op::Scan { count, changes } => beside.scan(count, changes),
                Op::Sample(random) => {
                    let met = beside.index.sample(random);
                    prop_assert_eq!(met.is_some(), !beside.ids.is_empty());
                    prop_assert!(met.is_none_or(|id| beside.model[&beside.place_of(id)].contains(&id)));
                }
            }
            beside.check(name);
        }
    }
}

/// Of entries with the same place, a search for the nearest would always find the same one.
#[test]
fn every_entry_of_a_crowd_is_sampled_about_as_often() {
    let mut index = Index::new();
    for id in 1..=4_000 {
        index.insert(7, id);
    }
    check_samples(&index, 4_000);
}

/// A crowd costs other entries next to nothing. Its segment is split off from theirs, and a small
/// directory is enough.
#[test]
fn a_crowd_leaves_the_segments_of_others_alone() {
    let mut alone = Index::new();
    let mut beside = Index::new();
    for id in 1..=100_000 {
        let place = mix(u64::from(id));
        alone.insert(place, id);
        beside.insert(place, id);
        if id % 4 == 0 {
            beside.insert(0x1234_5678, 1_000_000 + id);
        }
    }
    beside.validate();
    assert!(beside.directory.len() <= DIRECTORY_SLOTS_MIN);
    assert!(beside.segments.len() <= alone.segments.len() + 10);
}
