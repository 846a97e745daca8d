//! Random operations on a list against a `VecDeque`, compared after every step, in both forms.

use std::collections::VecDeque;

use proptest::prelude::*;
use tidewheel_collections::{List, ListLimits, ListRef, Occurrences, PackedList};

#[derive(Debug, Clone)]
enum Op {
    Push {
        front: bool,
        element: Vec<u8>,
    },
    PushMany {
        front: bool,
        count: usize,
        len: usize,
    },
    Insert {
        at: usize,
        element: Vec<u8>,
    },
    Set {
        at: usize,
        element: Vec<u8>,
    },
    Drop {
        front: bool,
        count: usize,
    },
    Remove {
        at: usize,
        count: usize,
    },
    RemoveValue {
        value: u8,
        max: usize,
        from_back: bool,
    },
    Trim {
        start: usize,
        count: usize,
    },
    Pack,
    Limits(i64),
}

/// Short ones that repeat, longer ones, and a few that are longer than a chunk.
fn element() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        6 => (0u8..6).prop_map(|byte| vec![byte]),
        4 => prop::collection::vec(any::<u8>(), 0..40),
        2 => (100usize..300).prop_map(|len| vec![b'm'; len]),
        1 => (2_000usize..20_000).prop_map(|len| vec![b'l'; len]),
        1 => prop_oneof![Just(127usize), Just(128), Just(16_383), Just(16_384)]
            .prop_map(|len| vec![b'e'; len]),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    let at = 0usize..1 << 16;
    prop_oneof![
        8 => (any::<bool>(), element()).prop_map(|(front, element)| Op::Push { front, element }),
        3 => (any::<bool>(), 1usize..300, 0usize..130)
            .prop_map(|(front, count, len)| Op::PushMany { front, count, len }),
        4 => (at.clone(), element()).prop_map(|(at, element)| Op::Insert { at, element }),
        3 => (at.clone(), element()).prop_map(|(at, element)| Op::Set { at, element }),
        4 => (any::<bool>(), 0usize..400).prop_map(|(front, count)| Op::Drop { front, count }),
        3 => (at.clone(), 0usize..200).prop_map(|(at, count)| Op::Remove { at, count }),
        2 => (0u8..6, prop_oneof![Just(usize::MAX), 0usize..8], any::<bool>())
            .prop_map(|(value, max, from_back)| Op::RemoveValue { value, max, from_back }),
        1 => (0usize..50, 0usize..2_000).prop_map(|(start, count)| Op::Trim { start, count }),
        2 => Just(Op::Pack),
        1 => prop_oneof![Just(-1i64), Just(-2), Just(3), Just(64), Just(0), Just(-5)].prop_map(Op::Limits),
    ]
}

fn remove_value(model: &mut VecDeque<Vec<u8>>, value: &[u8], max: usize, back: bool) -> usize {
    let mut at: Vec<usize> = (0..model.len()).filter(|i| model[*i] == value).collect();
    if back {
        at.reverse();
    }
    at.truncate(max);
    at.sort_unstable();
    for i in at.iter().rev() {
        model.remove(*i);
    }
    at.len()
}

fn apply(list: &mut List, model: &mut VecDeque<Vec<u8>>, limits: &mut ListLimits, op: Op) {
    match op {
        Op::Push {
            front: true,
            element,
        } => {
            list.push_front(&element, limits);
            model.push_front(element);
        }
        Op::Push { element, .. } => {
            list.push_back(&element, limits);
            model.push_back(element);
        }
        Op::PushMany { front, count, len } => {
            for i in 0..count {
                let element = vec![i as u8; len];
                apply(list, model, limits, Op::Push { front, element });
            }
        }
        Op::Insert { at, element } => {
            let at = at % (model.len() + 1);
            list.insert(at, &element, limits);
            model.insert(at, element);
        }
        Op::Set { at, element } => {
            let at = at % (model.len() + 1);
            assert_eq!(list.set(at, &element, limits), at < model.len());
            if at < model.len() {
                model[at] = element;
            }
        }
        Op::Drop { front, count } => {
            let end = count.min(model.len());
            if front {
                list.drop_front(count, limits);
                model.drain(..end);
            } else {
                list.drop_back(count, limits);
                model.truncate(model.len() - end);
            }
        }
        Op::Remove { at, count } => {
            let at = at % (model.len() + 1);
            list.remove(at, count, limits);
            model.drain(at..(at + count).min(model.len()));
        }
        Op::RemoveValue {
            value,
            max,
            from_back,
        } => {
            let removed = list.remove_value(&[value], max, from_back, limits);
            assert_eq!(removed, remove_value(model, &[value], max, from_back));
        }
        Op::Trim { start, count } => {
            list.trim(start, count, limits);
            let start = start.min(model.len());
            model.drain(..start);
            model.truncate(count);
        }
        Op::Pack => {
            list.pack(limits);
        }
        Op::Limits(setting) => *limits = ListLimits::new(setting),
    }
}

fn compare(list: ListRef<'_>, model: &VecDeque<Vec<u8>>, step: usize) {
    let len = model.len();
    assert_eq!(list.len(), len);
    assert!(list.forward(0).eq(model.iter()));
    for index in [0, step % (len + 1), len / 2, len.saturating_sub(1), len] {
        assert_eq!(list.get(index), model.get(index).map(Vec::as_slice));
        assert!(list.forward(index).eq(model.range(index..)));
        if index < len {
            assert!(list.backward(index).eq(model.range(..=index).rev()));
        }
    }
    for from_back in [false, true] {
        let (skip, count, elements) = (step % 3, 1 + step % 5, 1 + step % 900);
        let sought = Occurrences {
            skip,
            count,
            elements,
            from_back,
        };
        let mut shown = Vec::new();
        list.positions(&[step as u8 % 6], sought, |index| {
            shown.push(index);
            true
        });
        let mut at: Vec<usize> = (0..len).collect();
        if from_back {
            at.reverse();
        }
        at.truncate(elements);
        at.retain(|index| model[*index] == [step as u8 % 6]);
        let expected: Vec<usize> = at.into_iter().skip(skip).take(count).collect();
        assert_eq!(shown, expected);
    }
}

fn run(ops: Vec<Op>, setting: i64) {
    let (mut list, mut model) = (List::new(), VecDeque::new());
    let mut limits = ListLimits::new(setting);
    let mut changed = false;
    for (step, op) in ops.into_iter().enumerate() {
        changed |= matches!(op, Op::Limits(_));
        apply(&mut list, &mut model, &mut limits, op);
        compare(list.get(), &model, step);
        // Chunks keep the size that they had under other limits.
        let of_all = ListLimits::new(-5);
        list.validate(if changed { &of_all } else { &limits });
        if let List::Packed(packed) = &list {
            let again = PackedList::from_bytes(packed.get().bytes().to_vec());
            compare(ListRef::Packed(again.get()), &model, step);
        }
    }
    list.trim(0, 1, &limits);
    list.tighten();
    // A chunk may hold four times what it uses.
    let most = 1_100 + 4 * model.front().map_or(0, Vec::len);
    assert!(
        list.heap_bytes() < most,
        "{} bytes are held by nothing",
        list.heap_bytes()
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases / 4, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn lists_behave_like_a_deque(ops in prop::collection::vec(op(), 1..60), setting in prop_oneof![Just(-2i64), Just(4), Just(100)]) {
        run(ops, setting);
    }
}
