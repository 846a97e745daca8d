//! Random changes of a packed collection against a vector of members, compared after every step.

use proptest::prelude::*;
use tidewheel_collections::{DEADLINE_MAX, Packed, PackedRef, overwrite};

const START: u64 = 1 << 40;

#[derive(Debug, Clone)]
enum Op {
    Insert {
        at: u16,
        first: Vec<u8>,
        second: Vec<u8>,
    },
    Remove {
        at: u16,
    },
    SetFirst {
        at: u16,
        first: Vec<u8>,
    },
    SetSecond {
        at: u16,
        second: Vec<u8>,
    },
    SetDeadline {
        at: u16,
        ttl: Option<u64>,
    },
    Expire {
        ahead: u64,
        budget: u32,
    },
    Mark(bool),
    Refill(u16),
}

fn element() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        8 => prop::collection::vec(97u8..100, 0..4),
        4 => prop::collection::vec(97u8..99, 8..10),
        1 => (126usize..130).prop_map(|len| vec![b'x'; len]),
        1 => (16_382usize..16_386).prop_map(|len| vec![b'y'; len]),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        10 => (any::<u16>(), element(), element())
            .prop_map(|(at, first, second)| Op::Insert { at, first, second }),
        4 => any::<u16>().prop_map(|at| Op::Remove { at }),
        2 => (any::<u16>(), element()).prop_map(|(at, first)| Op::SetFirst { at, first }),
        3 => (any::<u16>(), element()).prop_map(|(at, second)| Op::SetSecond { at, second }),
        5 => (any::<u16>(), prop_oneof![2 => (0u64..50).prop_map(Some), 1 => Just(None), 1 => Just(Some(u64::MAX - START))])
            .prop_map(|(at, ttl)| Op::SetDeadline { at, ttl }),
        2 => (0u64..20, 0u32..8).prop_map(|(ahead, budget)| Op::Expire { ahead, budget }),
        1 => any::<bool>().prop_map(Op::Mark),
        1 => (0u16..200).prop_map(Op::Refill),
    ]
}

#[derive(Debug, Clone, PartialEq)]
struct Kept {
    first: Vec<u8>,
    second: Vec<u8>,
    deadline: Option<u64>,
}

struct Beside {
    packed: Packed,
    model: Vec<Kept>,
    marked: bool,
    pairs: bool,
    now: u64,
}

impl Beside {
    fn new(pairs: bool) -> Self {
        let packed = if pairs {
            Packed::of_pairs()
        } else {
            Packed::of_singles()
        };
        Self {
            packed,
            model: Vec::new(),
            marked: false,
            pairs,
            now: START,
        }
    }

    fn insert(&mut self, at: u16, first: Vec<u8>, second: Vec<u8>) {
        let second = if self.pairs { second } else { Vec::new() };
        let at = usize::from(at) % (self.model.len() + 1);
        let place = self
            .packed
            .get()
            .nth(at)
            .unwrap_or_else(|| self.packed.get().back());
        let new = self.packed.insert(place, &first, &second);
        let member = self.packed.get().member(new);
        assert_eq!((member.first, member.second), (&first[..], &second[..]));
        self.model.insert(
            at,
            Kept {
                first,
                second,
                deadline: None,
            },
        );
    }

    fn apply(&mut self, op: Op) {
        if let Op::Insert { at, first, second } = op {
            return self.insert(at, first, second);
        }
        match op {
            Op::Expire { ahead, budget } => return self.expire(ahead, budget),
            Op::Mark(marked) => {
                self.packed.set_mark(marked);
                self.marked = marked;
                return;
            }
            Op::Refill(count) => {
                return (0..count).for_each(|i| self.insert(i, vec![b'r'; 2], vec![b's'; 3]));
            }
            _ => {}
        }
        if self.model.is_empty() {
            return;
        }
        let nth = |at: u16| usize::from(at) % self.model.len();
        match op {
            Op::Remove { at } => {
                let at = nth(at);
                let place = self.packed.get().nth(at).expect("it is there");
                self.packed.remove(place);
                self.model.remove(at);
            }
            Op::SetFirst { at, first } => {
                let at = nth(at);
                let place = self.packed.get().nth(at).expect("it is there");
                self.packed.set_first(place, &first);
                self.model[at].first = first;
            }
            Op::SetSecond { at, second } if self.pairs => {
                let at = nth(at);
                let place = self.packed.get().nth(at).expect("it is there");
                self.packed.set_second(place, &second);
                self.model[at].second = second;
            }
            Op::SetDeadline { at, ttl } => {
                let at = nth(at);
                let place = self.packed.get().nth(at).expect("it is there");
                let deadline = ttl.map(|ttl| self.now.saturating_add(ttl));
                self.packed.set_deadline(place, deadline);
                self.model[at].deadline = deadline.map(|at| at.min(DEADLINE_MAX));
            }
            _ => {}
        }
    }

    fn expire(&mut self, ahead: u64, budget: u32) {
        self.now += ahead;
        let now = self.now;
        let mut due: Vec<(u64, usize)> = self
            .model
            .iter()
            .enumerate()
            .filter_map(|(i, kept)| Some((kept.deadline.filter(|at| *at <= now)?, i)))
            .collect();
        due.sort_unstable();
        let more = due.len() > budget as usize;
        due.truncate(budget as usize);
        let expected: Vec<Kept> = due.iter().map(|(_, i)| self.model[*i].clone()).collect();
        let mut met = Vec::new();
        let outcome = self.packed.expire(now, budget, |member| {
            met.push(Kept {
                first: member.first.to_vec(),
                second: member.second.to_vec(),
                deadline: member.deadline,
            });
        });
        assert_eq!((outcome.fired, outcome.backlog), (due.len() as u32, more));
        assert_eq!(outcome.next_deadline, self.packed.get().earliest());
        assert_eq!(met, expected);
        let mut gone: Vec<usize> = due.iter().map(|(_, i)| *i).collect();
        gone.sort_unstable();
        for i in gone.into_iter().rev() {
            self.model.remove(i);
        }
    }

    fn compare(&self) {
        let packed = PackedRef::new(self.packed.get().bytes());
        assert_eq!(packed.len(), self.model.len());
        assert_eq!(
            (packed.is_marked(), packed.is_pairs()),
            (self.marked, self.pairs)
        );
        let earliest = self.model.iter().filter_map(|kept| kept.deadline).min();
        assert_eq!(packed.earliest(), earliest);
        assert_eq!(
            packed.is_timed(),
            earliest.is_some(),
            "the column comes and goes with deadlines"
        );
        assert_eq!(packed.iter().len(), self.model.len());
        for (i, (member, kept)) in packed.iter().zip(&self.model).enumerate() {
            assert_eq!(
                (member.first, member.second),
                (&kept.first[..], &kept.second[..])
            );
            assert_eq!(member.deadline, kept.deadline);
            assert_eq!(member.place.index(), i);
            assert_eq!(packed.nth(i), Some(member.place));
            assert_eq!(packed.member(member.place), member);
            let found = self
                .model
                .iter()
                .position(|other| other.first == kept.first);
            assert_eq!(packed.find(member.first).map(|place| place.index()), found);
        }
        assert_eq!(packed.nth(self.model.len()), None);
        assert_eq!(packed.find(b"never"), None);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases / 4, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn packed_behaves_like_a_vector_of_members(
        pairs in any::<bool>(),
        ops in prop::collection::vec(op(), 1..60),
    ) {
        let mut beside = Beside::new(pairs);
        for op in ops {
            beside.apply(op);
            beside.compare();
        }
    }
}

#[test]
fn no_bytes_are_no_members() {
    let packed = PackedRef::new(&[]);
    assert_eq!((packed.len(), packed.iter().count()), (0, 0));
    assert_eq!(
        (packed.find(b""), packed.nth(0), packed.earliest()),
        (None, None, None)
    );
}

/// A small collection costs two bytes, and a length for each element.
#[test]
fn a_packed_hash_of_ten_costs_two_bytes_and_two_a_field() {
    let mut packed = Packed::of_pairs();
    for i in 0..10 {
        packed.push(&[i; 16], &[i; 16]);
    }
    assert_eq!(packed.get().bytes().len(), 2 + 10 * (2 + 32));
}

#[test]
fn a_value_of_the_same_length_is_overwritten_where_it_lies() {
    let mut packed = Packed::of_pairs();
    packed.push(b"before", b"1");
    let place = packed.push(b"field", b"old");
    packed.set_deadline(place, Some(START));
    let mut bytes = packed.into_bytes();
    assert!(!overwrite(&mut bytes, place, b"older"));
    assert!(overwrite(&mut bytes, place, b"new"));
    let member = PackedRef::new(&bytes).member(place);
    assert_eq!((member.second, member.deadline), (&b"new"[..], Some(START)));
}
