//! Random operations on a typed store against a naive map, compared after every step, in virtual
//! time.

use std::collections::BTreeMap;
use std::fmt::Debug;

use proptest::prelude::*;
use tidewheel_store::{Attributes, Removed, Slot, Soft, TypedStore};

/// Keys are below this.
const KEYS: u16 = 300;

/// The latest deadline that is kept.
const DEADLINE_MAX: u64 = (1 << 40) - 2;

/// The model of one entry.
#[derive(Debug, Clone, PartialEq)]
struct Kept {
    value: u64,
    attributes: Attributes,
    pinned: bool,
    version: Option<u64>,
}

#[derive(Debug, Clone)]
enum Op {
    Put {
        key: u16,
        attributes: Attributes,
    },
    Remove {
        key: u16,
    },
    SetDeadline {
        key: u16,
        deadline: Option<u64>,
    },
    Slide {
        key: u16,
        by: u64,
    },
    SetLimit {
        key: u16,
        limit: Option<u64>,
    },
    SetNotes {
        key: u16,
        notes: [u64; 2],
    },
    SetSoft {
        key: u16,
        soft: Soft,
    },
    Pin {
        key: u16,
        pinned: bool,
    },
    Version {
        key: u16,
    },
    Hit {
        key: u16,
    },
    Evict {
        count: u8,
        keep: u16,
    },
    Expire {
        ahead: u64,
        budget: u32,
    },
    Maintain {
        budget: u32,
    },
    /// Removes all keys of a residue class, so that pages become sparse.
    Thin {
        residue: u16,
        of: u16,
    },
    Scan {
        count: usize,
    },
}

fn deadline() -> impl Strategy<Value = Option<u64>> {
    prop_oneof![
        2 => Just(None),
        6 => (0u64..600).prop_map(Some),
        2 => (0u64..100_000_000).prop_map(Some),
        1 => prop_oneof![
            Just(Some(DEADLINE_MAX - 1)), Just(Some(DEADLINE_MAX)), Just(Some(DEADLINE_MAX + 1)),
            Just(Some(u64::MAX)), Just(Some(1 << 32)), Just(Some((1 << 32) - 1)),
        ],
    ]
}

fn attributes() -> impl Strategy<Value = Attributes> {
    let weight = prop_oneof![6 => Just(1u32), 2 => 0u32..50, 1 => Just(u32::MAX)];
    let soft = prop_oneof![5 => Just(Soft::NEVER), 1 => (0u64..1000).prop_map(Soft::at), 1 => Just(Soft::at(1 << 50))];
    let label = prop_oneof![5 => Just(0u64), 2 => any::<u64>()];
    let limit = prop_oneof![5 => Just(None), 2 => (1u64..10_000).prop_map(Some)];
    let notes = prop_oneof![5 => Just([0u64; 2]), 1 => any::<[u64; 2]>()];
    let grace = prop_oneof![5 => Just(0u64), 1 => any::<u64>()];
    (deadline(), weight, soft, label, limit, notes, grace).prop_map(
        |(deadline, weight, soft, label, limit, notes, grace)| Attributes {
            deadline,
            weight,
            soft,
            label,
            limit,
            notes,
            grace,
        },
    )
}

fn op() -> impl Strategy<Value = Op> {
    let key = || 0..KEYS;
    prop_oneof![
        14 => (key(), attributes()).prop_map(|(key, attributes)| Op::Put { key, attributes }),
        3 => key().prop_map(|key| Op::Remove { key }),
        4 => (key(), deadline()).prop_map(|(key, deadline)| Op::SetDeadline { key, deadline }),
        3 => (key(), prop_oneof![0u64..100, Just(1 << 33)]).prop_map(|(key, by)| Op::Slide { key, by }),
        1 => (key(), prop_oneof![Just(None), (1u64..1000).prop_map(Some)])
            .prop_map(|(key, limit)| Op::SetLimit { key, limit }),
        1 => (key(), any::<[u64; 2]>()).prop_map(|(key, notes)| Op::SetNotes { key, notes }),
        1 => (key(), prop_oneof![Just(Soft::NEVER), (0u64..100).prop_map(Soft::at)])
            .prop_map(|(key, soft)| Op::SetSoft { key, soft }),
        2 => (key(), any::<bool>()).prop_map(|(key, pinned)| Op::Pin { key, pinned }),
        3 => key().prop_map(|key| Op::Version { key }),
        3 => key().prop_map(|key| Op::Hit { key }),
        3 => (1u8..10, key()).prop_map(|(count, keep)| Op::Evict { count, keep }),
        3 => (prop_oneof![0u64..3, 0u64..1000, 0u64..100_000_000], prop_oneof![0u32..40, Just(u32::MAX)])
            .prop_map(|(ahead, budget)| Op::Expire { ahead, budget }),
        3 => (0u32..200).prop_map(|budget| Op::Maintain { budget }),
        1 => (0u16..7, 2u16..7).prop_map(|(residue, of)| Op::Thin { residue, of }),
        1 => (1usize..50).prop_map(|count| Op::Scan { count }),
    ]
}

/// A value that carries its number, small or large.
trait Carrier: Debug {
    fn carry(number: u64) -> Self;
    fn number(&self) -> u64;
}

impl Carrier for u64 {
    fn carry(number: u64) -> Self {
        number
    }

    fn number(&self) -> u64 {
        *self
    }
}

/// Sixteen of these fill a page.
#[derive(Debug)]
struct Large([u64; 100]);

impl Carrier for Large {
    fn carry(number: u64) -> Self {
        Self([number; 100])
    }

    fn number(&self) -> u64 {
        assert!(self.0.iter().all(|word| *word == self.0[0]), "torn");
        self.0[0]
    }
}

/// Well-mixed bits, or very few different ones.
fn place(key: u16, weak: bool) -> u32 {
    if weak {
        u32::from(key % 32)
    } else {
        (u32::from(key) + 1).wrapping_mul(0x9e37_79b9).swap_bytes()
    }
}

struct Run<V> {
    store: TypedStore<u16, V>,
    model: BTreeMap<u16, Kept>,
    now: u64,
    values: u64,
    /// The largest version that was ever seen.
    version: u64,
    weak: bool,
}

impl<V: Carrier> Run<V> {
    fn new(weak: bool) -> Self {
        Self {
            store: TypedStore::new(),
            model: BTreeMap::new(),
            now: 1000,
            values: 0,
            version: 0,
            weak,
        }
    }

    fn place_of(&self) -> impl Fn(&u16) -> u32 + use<V> {
        let weak = self.weak;
        move |key| place(*key, weak)
    }

    fn find(&self, key: u16) -> Option<Slot> {
        let slot = self
            .store
            .find(place(key, self.weak), |stored| *stored == key);
        assert_eq!(
            slot.is_some(),
            self.model.contains_key(&key),
            "whether {key} is there"
        );
        slot
    }

    fn step(&mut self, op: Op) {
        let place_of = self.place_of();
        match op {
            Op::Put {
                key,
                mut attributes,
            } => {
                attributes.deadline = attributes.deadline.map(|by| by.saturating_add(self.now));
                attributes.limit = attributes.limit.map(|by| by + self.now);
                self.put(key, attributes);
            }
            Op::Remove { key } => self.remove(key),
            Op::Thin { residue, of } => {
                for key in (0..KEYS).filter(|key| key % of == residue) {
                    self.remove(key);
                }
            }
            Op::SetDeadline { key, deadline } => {
                if let Some(slot) = self.find(key) {
                    let deadline = deadline.map(|by| by.saturating_add(self.now));
                    self.store.set_deadline(slot, deadline, self.now);
                    self.kept(key).attributes.deadline = deadline.map(clamp);
                }
            }
            Op::Slide { key, by } => self.slide(key, by),
            Op::SetLimit { key, limit } => {
                if let Some(slot) = self.find(key) {
                    let limit = limit.map(|by| by + self.now);
                    self.store.set_limit(slot, limit);
                    self.kept(key).attributes.limit = limit;
                }
            }
            Op::SetNotes { key, notes } => {
                if let Some(slot) = self.find(key) {
                    self.store.set_notes(slot, notes);
                    self.kept(key).attributes.notes = notes;
                }
            }
            Op::SetSoft { key, soft } => {
                if let Some(slot) = self.find(key) {
                    self.store.set_soft(slot, soft);
                    assert_eq!(self.store.soft(slot), soft);
                    self.kept(key).attributes.soft = soft;
                }
            }
            Op::Pin { key, pinned } => {
                if let Some(slot) = self.find(key) {
                    self.store.set_pinned(slot, pinned);
                    self.kept(key).pinned = pinned;
                }
            }
            Op::Version { key } => {
                if let Some(slot) = self.find(key) {
                    let version = self.store.assign_version(slot);
                    let known = self.kept(key).version.replace(version);
                    assert!(known.is_none_or(|known| known == version), "it had one");
                    self.see_version(known, version);
                }
            }
            Op::Hit { key } => {
                if let Some(slot) = self.find(key) {
                    self.store.hit(slot);
                }
            }
            Op::Evict { count, keep } => self.evict(count, keep),
            Op::Expire { ahead, budget } => self.expire(ahead, budget),
            Op::Maintain { budget } => {
                self.store.maintain(budget, &place_of);
            }
            Op::Scan { count } => self.scan(count),
        }
    }

    fn kept(&mut self, key: u16) -> &mut Kept {
        self.model.get_mut(&key).expect("the same keys")
    }

    /// A version that is given is later than all before.
    fn see_version(&mut self, before: Option<u64>, version: u64) {
        if before != Some(version) {
            assert!(version > self.version, "version {version} was given before");
            self.version = version;
        }
    }

    fn put(&mut self, key: u16, attributes: Attributes) {
        self.values += 1;
        let value = self.values;
        let mut kept = Kept {
            value,
            attributes,
            pinned: false,
            version: None,
        };
        kept.attributes.deadline = kept.attributes.deadline.map(clamp);
        if let Some(slot) = self.find(key) {
            let old = self
                .store
                .replace(slot, V::carry(value), attributes, self.now);
            let before = self.model[&key].clone();
            assert_eq!(old.number(), before.value);
            kept.pinned = before.pinned;
            kept.version = self.store.version(slot);
            assert_eq!(before.version.is_some(), kept.version.is_some());
            if let Some(version) = kept.version {
                self.see_version(None, version);
            }
        } else {
            let place_of = self.place_of();
            let (place, now) = (place_of(&key), self.now);
            let capacity = if self.values.is_multiple_of(3) {
                u64::MAX
            } else {
                1000
            };
            let value = V::carry(value);
            let store = &mut self.store;
            let slot = if self.values % 3 == 1 && attributes.is_plain() {
                let deadline = attributes.deadline;
                let (slot, evicted) =
                    store.exchange(place, key, value, deadline, now, capacity, &place_of);
                match evicted {
                    Some(evicted) => self.evicted(&evicted),
                    None => assert!(self.model.values().all(|kept| kept.pinned)),
                }
                slot
            } else {
                store.insert(place, key, value, attributes, now, capacity, &place_of)
            };
            assert_eq!(self.store.version(slot), None, "a version of another entry");
            assert!(!self.store.is_pinned(slot), "pinned like another entry");
        }
        self.model.insert(key, kept);
    }

    fn remove(&mut self, key: u16) {
        let Some(slot) = self.find(key) else { return };
        let removed = self.store.remove(slot, place(key, self.weak));
        let kept = self.model.remove(&key).expect("the same keys");
        assert_eq!((removed.key, removed.value.number()), (key, kept.value));
        assert_eq!(removed.deadline, kept.attributes.deadline);
        assert_eq!(removed.weight, kept.attributes.weight);
        assert_eq!(removed.label, kept.attributes.label);
    }

    fn slide(&mut self, key: u16, by: u64) {
        let Some(slot) = self.find(key) else { return };
        let old = self.model[&key].attributes.deadline;
        let new = old.unwrap_or(self.now).saturating_add(by);
        let slid = self.store.slide(slot, new);
        let expected = match old {
            Some(old) if slid => Some(clamp(new).max(old)),
            old => old,
        };
        assert!(!slid || old.is_some(), "there was no deadline to slide");
        if let Some(old) = old.filter(|_| !slid) {
            assert_ne!(old >> 32, clamp(new) >> 32, "it could have slid");
        }
        self.kept(key).attributes.deadline = expected;
    }

    fn evict(&mut self, count: u8, keep: u16) {
        let place_of = self.place_of();
        for _ in 0..count {
            let keep_slot = self.find(keep);
            let evicted = self.store.evict_other(keep_slot, &place_of);
            let Some(evicted) = evicted else {
                let others = self.model.iter().filter(|(key, _)| **key != keep);
                for (key, kept) in others {
                    assert!(kept.pinned, "{key} could have been evicted");
                }
                return;
            };
            assert_ne!(evicted.key, keep, "was to be kept");
            self.evicted(&evicted);
        }
    }

    fn evicted(&mut self, evicted: &Removed<u16, V>) {
        let kept = self.model.remove(&evicted.key).expect("evicted twice");
        assert!(!kept.pinned, "a pinned entry was evicted");
        assert_eq!(evicted.value.number(), kept.value);
        assert_eq!(evicted.deadline, kept.attributes.deadline);
        assert_eq!(evicted.weight, kept.attributes.weight);
        assert_eq!(evicted.label, kept.attributes.label);
    }

    fn expire(&mut self, ahead: u64, budget: u32) {
        self.now += ahead;
        let (now, place_of) = (self.now, self.place_of());
        let model = &mut self.model;
        let (mut last, mut fired) = (0, 0);
        let progress = self.store.expire(now, budget, &place_of, |gone| {
            let deadline = gone.deadline.expect("what expires has a deadline");
            assert!(deadline <= now, "expired early");
            assert!(deadline >= last, "out of the order of deadlines");
            last = deadline;
            fired += 1;
            let kept = model.remove(&gone.key).expect("what expires was there");
            assert_eq!(kept.attributes.deadline, Some(deadline));
            assert_eq!(gone.value.number(), kept.value);
            assert_eq!(gone.weight, kept.attributes.weight);
            assert_eq!(gone.label, kept.attributes.label);
        });
        assert_eq!(progress.fired, fired);
        let mut deadlines = self
            .model
            .values()
            .filter_map(|kept| kept.attributes.deadline);
        if deadlines.any(|deadline| deadline <= now) {
            assert!(
                progress.backlog,
                "something due is left, and nobody says so"
            );
            assert!(
                budget == 0 || progress.fired + progress.moved > 0,
                "no progress"
            );
        }
    }

    fn scan(&self, count: usize) {
        let mut seen = Vec::new();
        let mut cursor = Some(0);
        while let Some(from) = cursor {
            cursor = self
                .store
                .scan(from, count, |slot| seen.push(*self.store.key(slot)));
        }
        seen.sort_unstable();
        assert_eq!(seen, self.model.keys().copied().collect::<Vec<_>>());
    }

    fn compare(&self) {
        assert_eq!(self.store.len(), self.model.len());
        let weight: u64 = self
            .model
            .values()
            .map(|kept| u64::from(kept.attributes.weight))
            .sum();
        assert_eq!(self.store.weight(), weight);
        let deadlines = self
            .model
            .values()
            .filter_map(|kept| kept.attributes.deadline);
        match (self.store.next_deadline(), deadlines.min()) {
            (Some(next), Some(earliest)) => assert!(next <= earliest, "a wake-up is late"),
            (None, Some(_)) => panic!("a deadline is pending, and nobody would wake up"),
            _ => {}
        }
        let last = self.model.keys().next_back().copied().unwrap_or(0);
        for key in 0..KEYS.max(last) {
            let Some(slot) = self.find(key) else { continue };
            let kept = &self.model[&key];
            assert_eq!(*self.store.key(slot), key);
            assert_eq!(self.store.value(slot).number(), kept.value);
            assert_eq!(self.store.attributes(slot), kept.attributes);
            assert_eq!(self.store.is_pinned(slot), kept.pinned, "pin of {key}");
            assert_eq!(self.store.version(slot), kept.version, "version of {key}");
            if !self.store.has_attributes(slot) {
                let plain = Attributes {
                    deadline: kept.attributes.deadline,
                    ..Attributes::default()
                };
                assert_eq!(kept.attributes, plain, "there are attributes");
            }
        }
        self.store.validate(&self.place_of());
    }

    /// Whatever the history, everything can be expired, and its memory comes back.
    fn finish(mut self) {
        let timed = |kept: &&Kept| kept.attributes.deadline.is_some();
        let dead_later = self.model.values().filter(timed).count();
        let place_of = self.place_of();
        let mut fired = 0;
        while self
            .store
            .expire(u64::MAX, 100, &place_of, |_| fired += 1)
            .backlog
        {}
        assert_eq!(fired, dead_later);
        self.model
            .retain(|_, kept| kept.attributes.deadline.is_none());
        self.compare();
        for key in self.model.keys().copied().collect::<Vec<_>>() {
            self.remove(key);
        }
        assert!(self.store.is_empty());
        assert_eq!(self.store.weight(), 0);
        self.store.validate(&place_of);
        for _ in 0..10_000 {
            if !self.store.maintain(100, &place_of) {
                break;
            }
        }
        // The page that the next entries go to stays.
        let held = self.store.held_bytes();
        assert!(held < 150_000, "{held} bytes are held by nothing");
    }
}

fn clamp(deadline: u64) -> u64 {
    deadline.min(DEADLINE_MAX)
}

fn run<V: Carrier>(ops: Vec<Op>, weak: bool) {
    let mut run = Run::<V>::new(weak);
    for op in ops {
        run.step(op);
        run.compare();
    }
    run.finish();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases / 4, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_typed_store_behaves_like_a_map(ops in prop::collection::vec(op(), 1..250)) {
        run::<u64>(ops, false);
    }

    #[test]
    fn a_typed_store_of_many_pages_behaves_like_a_map(ops in prop::collection::vec(op(), 1..400)) {
        run::<Large>(ops, false);
    }

    #[test]
    fn a_typed_store_whose_hashes_collide_behaves_like_a_map(ops in prop::collection::vec(op(), 1..250)) {
        run::<u64>(ops, true);
    }
}

/// Entries that are moved keep their attributes, and those without stay without.
#[test]
fn entries_keep_every_attribute_when_sparse_pages_are_emptied() {
    const MANY: u16 = 3000;
    let mut run = Run::<Large>::new(false);
    for key in 0..MANY {
        let attributes = Attributes {
            deadline: (!key.is_multiple_of(3)).then(|| 5000 + u64::from(key)),
            weight: u32::from(key),
            soft: match key % 5 {
                0 => Soft::NEVER,
                more => Soft::at(u64::from(more)),
            },
            notes: [u64::from(key % 2), u64::from(key % 3)],
            label: u64::from(key) << 40,
            limit: key.is_multiple_of(4).then(|| 9000 + u64::from(key)),
            grace: u64::from(key % 11),
        };
        run.put(key, attributes);
        if key.is_multiple_of(2) {
            run.step(Op::Version { key });
        }
        if key.is_multiple_of(7) {
            run.step(Op::Pin { key, pinned: true });
        }
    }
    let full = run.store.held_bytes();
    for key in (0..MANY).filter(|key| key % 10 != 9) {
        run.remove(key);
    }
    let place_of = run.place_of();
    for round in 0..MANY {
        let more = run.store.maintain(1, &place_of);
        if !more || round.is_multiple_of(16) {
            run.compare();
        }
        if !more {
            break;
        }
    }
    let sparse = run.store.held_bytes();
    assert!(
        sparse < full / 4,
        "{sparse} of {full} bytes for a tenth of the entries"
    );
    run.finish();
}
