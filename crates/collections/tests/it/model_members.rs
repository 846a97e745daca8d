//! Random changes of hashes and sets against a map, compared after every step, in virtual time.

use std::collections::{BTreeMap, HashSet};

use proptest::prelude::*;
use tidewheel_collections::{
    Change, DEADLINE_MAX, Entry, Hash, HashRef, Limits, NewDeadline, Set, SetForm, SetRef,
};
use tidewheel_store::{KeyHasher, Progress};

const START: u64 = 1 << 40;

#[derive(Debug, Clone)]
enum Op {
    Insert {
        key: u16,
        len: usize,
        deadline: NewDeadline,
    },
    Fill {
        from: u16,
        count: u16,
    },
    Remove {
        key: u16,
    },
    Pop {
        bits: u64,
    },
    Thin {
        residue: u16,
        of: u16,
    },
    SetDeadline {
        key: u16,
        ttl: Option<u64>,
    },
    Expire {
        ahead: u64,
        budget: u32,
    },
    Maintain {
        budget: u32,
    },
    Scan {
        count: usize,
        changes: u16,
    },
    Random {
        bits: u64,
    },
    Distinct {
        count: usize,
        bits: u64,
    },
    Copy,
}

fn ttl() -> impl Strategy<Value = u64> {
    prop_oneof![4 => 0u64..60, 2 => 0u64..100_000, 1 => Just(u64::MAX - START)]
}

fn op() -> impl Strategy<Value = Op> {
    let len = prop_oneof![6 => 0usize..20, 2 => 60usize..70, 1 => 2_040usize..2_060];
    let deadline = prop_oneof![
        2 => Just(NewDeadline::None), 2 => Just(NewDeadline::Keep), 3 => ttl().prop_map(NewDeadline::At),
    ];
    let budget = || prop_oneof![0u32..20, Just(u32::MAX)];
    prop_oneof![
        12 => (0u16..300, len, deadline)
            .prop_map(|(key, len, deadline)| Op::Insert { key, len, deadline }),
        2 => (0u16..300, 1u16..200).prop_map(|(from, count)| Op::Fill { from, count }),
        4 => (0u16..300).prop_map(|key| Op::Remove { key }),
        2 => any::<u64>().prop_map(|bits| Op::Pop { bits }),
        1 => (0u16..4, 2u16..5).prop_map(|(residue, of)| Op::Thin { residue, of }),
        5 => (0u16..300, prop::option::of(ttl())).prop_map(|(key, ttl)| Op::SetDeadline { key, ttl }),
        4 => (prop_oneof![0u64..3, 0u64..60, 0u64..100_000], budget())
            .prop_map(|(ahead, budget)| Op::Expire { ahead, budget }),
        1 => (0u32..200).prop_map(|budget| Op::Maintain { budget }),
        2 => (1usize..50, 0u16..20).prop_map(|(count, changes)| Op::Scan { count, changes }),
        1 => any::<u64>().prop_map(|bits| Op::Random { bits }),
        1 => (0usize..350, any::<u64>()).prop_map(|(count, bits)| Op::Distinct { count, bits }),
        1 => Just(Op::Copy),
    ]
}

/// A member whose form depends on its number: integers, short and long strings.
fn key_of(key: u16, kind: Kind) -> Vec<u8> {
    if kind.integers && key < 290 {
        return (i64::from(key) - 100).to_string().into_bytes();
    }
    let mut bytes = format!("member:{key}").into_bytes();
    if key % 50 == 49 {
        bytes.resize(bytes.len() + usize::from(key), b'.');
    }
    bytes
}

#[derive(Debug, Clone, Copy)]
struct Kind {
    set: bool,
    integers: bool,
}

#[derive(Debug)]
enum Subject {
    Hash(Hash),
    Set(Set),
}

/// The same calls for both.
macro_rules! both {
    ($subject:expr, $collection:ident => $call:expr) => {
        match $subject {
            Subject::Hash($collection) => $call,
            Subject::Set($collection) => $call,
        }
    };
}

type Kept = (Vec<u8>, Option<u64>);

struct Beside {
    subject: Subject,
    model: BTreeMap<Vec<u8>, Kept>,
    kind: Kind,
    limits: Limits,
    hasher: KeyHasher,
    now: u64,
    was_large: bool,
    was_other: bool,
}

fn owned(entry: Entry<'_>) -> (Vec<u8>, Kept) {
    (entry.key.to_vec(), (entry.value.to_vec(), entry.deadline))
}

impl Beside {
    fn new(kind: Kind, limits: Limits) -> Self {
        let subject = if kind.set {
            Subject::Set(Set::new())
        } else {
            Subject::Hash(Hash::new())
        };
        Self {
            subject,
            model: BTreeMap::new(),
            kind,
            limits,
            hasher: KeyHasher::new(9),
            now: START,
            was_large: false,
            was_other: false,
        }
    }

    fn insert(&mut self, key: u16, len: usize, deadline: NewDeadline) {
        let key = key_of(key, self.kind);
        let deadline = match deadline {
            NewDeadline::At(ttl) => NewDeadline::At(self.now.saturating_add(ttl)),
            other => other,
        };
        let value = if self.kind.set {
            Vec::new()
        } else {
            vec![key.len() as u8; len]
        };
        self.expect_form(&key, &value);
        let change = Change {
            now: self.now,
            limits: self.limits,
            hasher: &self.hasher,
        };
        let new = match &mut self.subject {
            Subject::Hash(hash) => hash.insert(&key, &value, deadline, &change),
            Subject::Set(set) => set.insert(&key, deadline, &change),
        };
        let old = self.model.get(&key);
        assert_eq!(new, old.is_none());
        let deadline = deadline.over(old.and_then(|old| old.1));
        self.model
            .insert(key, (value, deadline.map(|at| at.min(DEADLINE_MAX))));
    }

    /// Notes what form the subject must have after an insert.
    fn expect_form(&mut self, key: &[u8], value: &[u8]) {
        let new = !self.model.contains_key(key);
        let len = self.model.len() + usize::from(new);
        let longest = |keys: &BTreeMap<Vec<u8>, Kept>| keys.keys().map(Vec::len).max().unwrap_or(0);
        if !self.kind.set {
            let long = key.len().max(value.len()) > self.limits.value;
            self.was_large |= len > self.limits.entries || long;
            return;
        }
        if !new {
            return;
        }
        let integer = std::str::from_utf8(key).is_ok_and(|text| text.parse::<i64>().is_ok());
        if !self.was_other && integer {
            self.was_large |= len > self.limits.integers;
            return;
        }
        let longest = longest(&self.model).max(key.len());
        self.was_large |= len > self.limits.entries || longest > self.limits.value;
        self.was_other = true;
    }

    fn remove(&mut self, key: &[u8]) {
        let removed = both!(&mut self.subject, it => it.remove(key));
        assert_eq!(removed, self.model.remove(key).is_some());
    }

    fn pop(&mut self, bits: u64) {
        let Subject::Set(set) = &mut self.subject else {
            let key = self.model.keys().next().cloned().unwrap_or_default();
            let Subject::Hash(hash) = &mut self.subject else {
                return;
            };
            let taken = hash.take(&key, owned);
            assert_eq!(taken, self.model.remove_entry(&key));
            return;
        };
        let popped = set.pop(bits, owned);
        assert_eq!(popped.is_some(), !self.model.is_empty());
        if let Some((key, kept)) = popped {
            assert_eq!(self.model.remove(&key), Some(kept));
        }
    }

    fn set_deadline(&mut self, key: u16, ttl: Option<u64>) {
        let key = key_of(key, self.kind);
        let (now, deadline) = (self.now, ttl.map(|ttl| self.now.saturating_add(ttl)));
        let there = both!(&mut self.subject, it => it.set_deadline(&key, deadline, now));
        assert_eq!(there, self.model.contains_key(&key));
        if let Some(kept) = self.model.get_mut(&key) {
            kept.1 = deadline.map(|at| at.min(DEADLINE_MAX));
        }
    }

    fn expire(&mut self, ahead: u64, budget: u32) {
        let before = self.now;
        self.now += ahead;
        let now = self.now;
        let mut gone = Vec::new();
        let progress: Progress = both!(&mut self.subject, it => {
            it.expire(now, budget, |entry| gone.push(owned(entry)))
        });
        assert_eq!(progress.fired as usize, gone.len());
        // What was overdue when the collection became large comes first, in any order.
        assert!(gone.is_sorted_by_key(|gone| gone.1.1.max(Some(before))));
        for (key, kept) in gone {
            assert!(kept.1.is_some_and(|at| at <= now), "expired early");
            assert_eq!(self.model.remove(&key), Some(kept));
        }
        let overdue = self
            .model
            .values()
            .any(|kept| kept.1.is_some_and(|at| at <= now));
        assert!(
            !overdue || progress.backlog,
            "something due is left, and nobody says so"
        );
        assert!(
            !overdue || budget == 0 || progress.fired + progress.moved > 0,
            "no progress"
        );
    }

    /// Walks while members come, go, move and grow.
    fn scan(&mut self, count: usize, changes: u16) {
        let mut stays: HashSet<Vec<u8>> = self.model.keys().cloned().collect();
        let mut seen = Vec::new();
        let (mut cursor, mut step) = (0, 0);
        loop {
            cursor = both!(&self.subject, it => {
                it.get().scan(cursor, count, |entry| seen.push(entry.key.to_vec()))
            });
            if cursor == 0 {
                break;
            }
            if step < changes {
                step += 1;
                self.insert(step * 13 % 300, 30, NewDeadline::Keep);
                let key = key_of(step * 7 % 300, self.kind);
                self.remove(&key);
                stays.remove(&key);
                both!(&mut self.subject, it => it.maintain(20));
            }
        }
        let met: HashSet<Vec<u8>> = seen.iter().cloned().collect();
        assert!(stays.is_subset(&met), "a member that stayed was not met");
        let twice = |key: &&Vec<u8>| seen.iter().filter(|seen| seen == key).count() > 1;
        assert_eq!(
            stays.iter().find(twice),
            None,
            "a member that stayed was met twice"
        );
    }

    fn distinct(&self, count: usize, bits: u64) {
        let mut state = bits;
        let random = || {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            state ^ state >> 31
        };
        let mut met = Vec::new();
        both!(&self.subject, it => {
            it.get().random_distinct(count, random, |entry| met.push(owned(entry)));
        });
        let different: HashSet<&Vec<u8>> = met.iter().map(|met| &met.0).collect();
        assert_eq!(met.len(), count.min(self.model.len()));
        assert_eq!(different.len(), met.len(), "a member was chosen twice");
        assert!(
            met.iter()
                .all(|(key, kept)| self.model.get(key) == Some(kept))
        );
    }

    fn apply(&mut self, op: Op) {
        match op {
            Op::Insert { key, len, deadline } => self.insert(key, len, deadline),
            Op::Fill { from, count } => {
                (from..from + count).for_each(|key| self.insert(key % 300, 8, NewDeadline::Keep));
            }
            Op::Remove { key } => self.remove(&key_of(key, self.kind)),
            Op::Pop { bits } => self.pop(bits),
            Op::Thin { residue, of } => (0..300)
                .filter(|key| key % of == residue)
                .for_each(|key| self.remove(&key_of(key, self.kind))),
            Op::SetDeadline { key, ttl } => self.set_deadline(key, ttl),
            Op::Expire { ahead, budget } => self.expire(ahead, budget),
            Op::Maintain { budget } => {
                both!(&mut self.subject, it => it.maintain(budget));
            }
            Op::Scan { count, changes } => self.scan(count, changes),
            Op::Random { bits } => {
                let met = both!(&self.subject, it => it.get().random(bits).map(owned));
                assert_eq!(met.is_some(), !self.model.is_empty());
                assert!(met.is_none_or(|(key, kept)| self.model.get(&key) == Some(&kept)));
            }
            Op::Distinct { count, bits } => self.distinct(count, bits),
            Op::Copy => {
                let now = self.now;
                match &mut self.subject {
                    Subject::Hash(hash) => *hash = hash.get().copy(now),
                    Subject::Set(set) => *set = set.get().copy(now),
                }
            }
        }
    }

    fn compare(&self) {
        both!(&self.subject, it => it.get().validate());
        both!(&self.subject, it => self.compare_reading(
            it.get().len(), it.get().is_timed(), it.get().next_deadline(),
        ));
        let mut all = BTreeMap::new();
        both!(&self.subject, it => it.get().for_each(|entry| {
            let (key, kept) = owned(entry);
            assert_eq!(all.insert(key, kept), None, "a member is there twice");
        }));
        assert_eq!(all, self.model);
        for (key, kept) in &self.model {
            let found = both!(&self.subject, it => it.get().find(key).map(owned));
            assert_eq!(found.map(|found| found.1).as_ref(), Some(kept));
        }
        assert!(!both!(&self.subject, it => it.get().contains(b"never")));
        match &self.subject {
            Subject::Hash(hash) => {
                assert_eq!(matches!(hash.get(), HashRef::Large(_)), self.was_large);
            }
            Subject::Set(set) => self.compare_form(set.get()),
        }
    }

    fn compare_reading(&self, len: usize, timed: bool, next: Option<u64>) {
        assert_eq!(len, self.model.len());
        let earliest = self.model.values().filter_map(|kept| kept.1).min();
        assert_eq!(timed, earliest.is_some());
        match (next, earliest) {
            // What is overdue is due now.
            (Some(next), Some(earliest)) => assert!(next <= earliest.max(self.now)),
            (None, Some(_)) => panic!("a deadline is pending, and nobody would wake up"),
            _ => {}
        }
    }

    fn compare_form(&self, set: SetRef<'_>) {
        let form = match (self.was_large, self.was_other) {
            (true, _) => SetForm::Large,
            (false, true) => SetForm::Packed,
            (false, false) => SetForm::Integers,
        };
        assert_eq!(set.form(), form);
    }
}

fn run(kind: Kind, limits: Limits, ops: Vec<Op>) {
    let mut beside = Beside::new(kind, limits);
    for op in ops {
        beside.apply(op);
        beside.compare();
    }
    // Whatever the history, all deadlines come to an end.
    while both!(&mut beside.subject, it => it.expire(u64::MAX, 50, |_| {})).backlog {}
    beside.model.retain(|_, kept| kept.1.is_none());
    beside.now = u64::MAX;
    beside.compare();
}

fn limits(scale: usize) -> Limits {
    Limits {
        entries: 8 * scale,
        value: 16 * scale,
        integers: 32 * scale,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases / 4, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn hashes_and_sets_behave_like_maps(
        set in any::<bool>(),
        integers in any::<bool>(),
        scale in prop_oneof![Just(0usize), 1usize..5, Just(1_000)],
        ops in prop::collection::vec(op(), 1..80),
    ) {
        run(Kind { set, integers }, limits(scale), ops);
    }
}
