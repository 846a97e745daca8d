//! Random operations on a sorted set against a sorted vector, compared after every step, in both
//! forms and in virtual time.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use proptest::prelude::*;
use tidewheel_collections::{Change, Limits, NewDeadline, Scored, ZSet, ZSetRef};
use tidewheel_store::KeyHasher;

const START: u64 = 1 << 40;

#[derive(Debug, Clone)]
enum Op {
    Insert {
        member: u16,
        score: f64,
        deadline: Deadline,
    },
    InsertMany {
        first: u16,
        count: u16,
        step: i16,
        deadline: Deadline,
    },
    Add {
        member: u16,
        more: f64,
    },
    Remove {
        member: u16,
    },
    RemoveRange {
        start: usize,
        count: usize,
    },
    /// Removes all members of a residue class, so that pages become sparse.
    Thin {
        residue: u16,
        of: u16,
    },
    SetDeadline {
        member: u16,
        ttl: Option<u64>,
    },
    Expire {
        ahead: u64,
        budget: u32,
    },
    Maintain {
        budget: u32,
    },
    Copy,
}

#[derive(Debug, Clone, Copy)]
enum Deadline {
    None,
    Keep,
    In(u64),
}

fn score() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => (-3i32..4).prop_map(f64::from),
        2 => any::<i32>().prop_map(f64::from),
        2 => any::<f64>(),
        1 => prop_oneof![
            Just(0.0), Just(-0.0), Just(f64::INFINITY), Just(f64::NEG_INFINITY), Just(f64::NAN),
            Just(1e18), Just(9_007_199_254_740_993.0),
        ],
    ]
}

fn deadline() -> impl Strategy<Value = Deadline> {
    prop_oneof![
        3 => Just(Deadline::None),
        3 => Just(Deadline::Keep),
        2 => prop_oneof![0u64..500, 0u64..100_000_000].prop_map(Deadline::In),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    let member = 0u16..600;
    prop_oneof![
        12 => (member.clone(), score(), deadline())
            .prop_map(|(member, score, deadline)| Op::Insert { member, score, deadline }),
        3 => (member.clone(), 1u16..400, -2i16..3, deadline()).prop_map(
            |(first, count, step, deadline)| Op::InsertMany { first, count, step, deadline }
        ),
        4 => (member.clone(), score()).prop_map(|(member, more)| Op::Add { member, more }),
        4 => member.clone().prop_map(|member| Op::Remove { member }),
        2 => (0usize..700, 0usize..100).prop_map(|(start, count)| Op::RemoveRange { start, count }),
        1 => (0u16..7, 2u16..7).prop_map(|(residue, of)| Op::Thin { residue, of }),
        4 => (member, prop::option::of(0u64..1000))
            .prop_map(|(member, ttl)| Op::SetDeadline { member, ttl }),
        3 => (0u64..400, prop_oneof![0u32..40, Just(u32::MAX)])
            .prop_map(|(ahead, budget)| Op::Expire { ahead, budget }),
        3 => (0u32..300).prop_map(|budget| Op::Maintain { budget }),
        1 => Just(Op::Copy),
    ]
}

/// Members of different lengths, some of them prefixes of others. The long ones fill several pages,
/// so that tidying has something to do.
fn name(member: u16) -> Vec<u8> {
    let mut name = (member / 3).to_string().into_bytes();
    name.resize(name.len() + [0, 5, 600][(member % 3) as usize], b'x');
    name
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Kept {
    score: f64,
    deadline: Option<u64>,
}

struct Run {
    set: ZSet,
    model: BTreeMap<Vec<u8>, Kept>,
    hasher: KeyHasher,
    limits: Limits,
    now: u64,
}

impl Run {
    fn insert(&mut self, member: u16, deadline: Deadline, decide: impl Fn(Option<f64>) -> f64) {
        let name = name(member);
        let change = Change {
            now: self.now,
            limits: self.limits,
            hasher: &self.hasher,
        };
        let before = self.model.get(&name).copied();
        let old = before.map(|kept| kept.score);
        let score = decide(old);
        let (given, after) = match deadline {
            Deadline::None => (NewDeadline::None, None),
            Deadline::Keep => (NewDeadline::Keep, before.and_then(|kept| kept.deadline)),
            Deadline::In(ttl) => {
                let at = self.now + ttl;
                (NewDeadline::At(at), Some(at))
            }
        };
        let updated = self
            .set
            .update(&name, given, &change, |old| Some(decide(old)));
        assert_eq!(updated.old, old);
        assert_eq!(updated.new, Some(score).filter(|score| !score.is_nan()));
        if !score.is_nan() {
            let deadline = after;
            self.model.insert(name, Kept { score, deadline });
        }
    }

    fn remove(&mut self, member: u16) {
        let name = name(member);
        let removed = self.model.remove(&name).map(|kept| kept.score);
        assert_eq!(self.set.remove(&name), removed);
    }

    fn apply(&mut self, op: Op) {
        // As a command does: it never meets the dead.
        if !matches!(op, Op::Expire { .. } | Op::Maintain { .. }) {
            while self.expire(0, 100) {}
        }
        match op {
            Op::Insert {
                member,
                score,
                deadline,
            } => self.insert(member, deadline, |_| score),
            Op::InsertMany {
                first,
                count,
                step,
                deadline,
            } => {
                for i in 0..count {
                    let score = f64::from(step) * f64::from(i);
                    self.insert((first + i) % 600, deadline, |_| score);
                }
            }
            Op::Add { member, more } => {
                self.insert(member, Deadline::Keep, |old| old.unwrap_or(0.0) + more);
            }
            Op::Remove { member } => self.remove(member),
            Op::RemoveRange { start, count } => {
                let sorted = self.sorted();
                let mut expected = sorted.into_iter().skip(start).take(count);
                let model = &mut self.model;
                self.set.remove_range(start..start + count, |gone| {
                    let (name, kept) = expected.next().expect("no more than asked for");
                    assert_eq!((gone.member, gone.score), (&name[..], kept.score));
                    assert_eq!(gone.deadline, kept.deadline);
                    model.remove(&name);
                });
                assert!(expected.next().is_none(), "fewer than asked for");
            }
            Op::Thin { residue, of } => {
                (0..600)
                    .filter(|m| m % of == residue)
                    .for_each(|m| self.remove(m));
            }
            Op::SetDeadline { member, ttl } => {
                let deadline = ttl.map(|ttl| self.now + ttl);
                let kept = self.model.get_mut(&name(member));
                let is = self.set.set_deadline(&name(member), deadline, self.now);
                assert_eq!(is, kept.is_some());
                if let Some(kept) = kept {
                    kept.deadline = deadline;
                }
            }
            Op::Expire { ahead, budget } => {
                self.expire(ahead, budget);
            }
            Op::Maintain { budget } => {
                self.set.maintain(budget);
            }
            Op::Copy => self.set = self.set.get().copy(self.now),
        }
    }

    /// Returns whether more is due.
    fn expire(&mut self, ahead: u64, budget: u32) -> bool {
        self.now += ahead;
        let (now, model) = (self.now, &mut self.model);
        let (mut last, mut fired) = (0, 0);
        let progress = self.set.expire(now, budget, |gone| {
            let kept = model.remove(gone.member).expect("what expires was there");
            assert_eq!((gone.score, gone.deadline), (kept.score, kept.deadline));
            let deadline = gone.deadline.expect("what expires has a deadline");
            assert!(deadline <= now, "expired early");
            assert!(deadline >= last, "out of the order of deadlines");
            last = deadline;
            fired += 1;
        });
        assert_eq!(progress.fired, fired);
        assert!(fired <= budget);
        let due = |kept: &Kept| kept.deadline.is_some_and(|deadline| deadline <= now);
        if self.model.values().any(due) {
            assert!(
                progress.backlog,
                "something due is left, and nobody says so"
            );
            assert!(
                budget == 0 || progress.fired + progress.moved > 0,
                "no progress"
            );
        }
        progress.backlog
    }

    /// The members in their order.
    fn sorted(&self) -> Vec<(Vec<u8>, Kept)> {
        let pairs = self.model.iter().map(|(name, kept)| (name.clone(), *kept));
        let mut sorted: Vec<_> = pairs.collect();
        // The names are in order, and the sort is stable. −0 and 0 are equal.
        sorted.sort_by(|a, b| a.1.score.partial_cmp(&b.1.score).expect("no NaN"));
        sorted
    }

    fn compare(&self, step: usize) {
        let (set, sorted) = (self.set.get(), self.sorted());
        set.validate();
        assert_eq!(set.len(), sorted.len());
        let same = |found: Scored<'_>, (name, kept): &(Vec<u8>, Kept)| {
            found.member == name
                && found.score.to_bits() == kept.score.to_bits()
                && found.deadline == kept.deadline
        };
        assert!(set.forward(0).zip(&sorted).all(|(a, b)| same(a, b)));
        assert_eq!(set.forward(0).count(), sorted.len());
        let len = sorted.len();
        for rank in [0, step % (len + 1), len / 2, len.saturating_sub(1), len] {
            let there = sorted.get(rank);
            assert_eq!(set.nth(rank).is_some(), there.is_some());
            assert!(set.nth(rank).zip(there).is_none_or(|(a, b)| same(a, b)));
            assert!(
                set.forward(rank)
                    .zip(&sorted[rank..])
                    .all(|(a, b)| same(a, b))
            );
            assert_eq!(set.forward(rank).count(), len - rank);
            if let Some((name, kept)) = there {
                assert_eq!(set.rank(name), Some((rank, kept.score)));
                let back = sorted[..=rank].iter().rev();
                assert!(set.backward(rank).zip(back).all(|(a, b)| same(a, b)));
                assert_eq!(set.backward(rank).count(), rank + 1);
            }
        }
        let earliest = sorted.iter().filter_map(|(_, kept)| kept.deadline).min();
        assert_eq!(set.is_timed(), earliest.is_some());
        let next = set.next_deadline();
        assert!(earliest.is_none_or(|at| next.is_some_and(|next| next <= at.max(self.now))));
        compare_ranges(set, &sorted, step);
        self.compare_visits(set, step);
    }

    fn compare_visits(&self, set: ZSetRef<'_>, step: usize) {
        let (mut seen, mut cursor) = (Vec::new(), 0);
        loop {
            cursor = set.scan(cursor, 1 + step % 20, |entry| {
                seen.push(entry.member.to_vec());
            });
            if cursor == 0 {
                break;
            }
        }
        seen.sort();
        assert!(seen.iter().eq(self.model.keys()), "a scan meets each once");
        let count = step % 50;
        let mut random = step as u64;
        let bits = || {
            random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(11);
            random ^ random >> 29
        };
        let mut drawn = BTreeSet::new();
        set.random_distinct(count, bits, |entry| {
            assert!(drawn.insert(entry.member.to_vec()));
        });
        assert_eq!(drawn.len(), count.min(set.len()));
        assert!(drawn.iter().all(|name| self.model.contains_key(name)));
        assert_eq!(set.random(random).is_some(), !set.is_empty());
    }
}

fn compare_ranges(set: ZSetRef<'_>, sorted: &[(Vec<u8>, Kept)], step: usize) {
    let score = |i: usize| sorted.get(i).map_or(0.5, |(_, kept)| kept.score);
    let (a, b) = (score(step % 97), score(step % 31));
    let name = |i: usize| sorted.get(i).map_or(&b"1"[..], |(name, _)| name);
    let (first, last) = (name(step % 89), name(step % 29));
    for (min, max) in [(a, b), (b, a), (f64::NEG_INFINITY, b), (a, f64::INFINITY)] {
        for (min, max) in [
            (Bound::Included(min), Bound::Included(max)),
            (Bound::Excluded(min), Bound::Excluded(max)),
            (Bound::Unbounded, Bound::Included(max)),
            (Bound::Included(min), Bound::Unbounded),
        ] {
            let within = |score: f64| {
                let above = match min {
                    Bound::Included(min) => score >= min,
                    Bound::Excluded(min) => score > min,
                    Bound::Unbounded => true,
                };
                let below = match max {
                    Bound::Included(max) => score <= max,
                    Bound::Excluded(max) => score < max,
                    Bound::Unbounded => true,
                };
                above && below
            };
            let ranks = set.by_score(min, max);
            let expected = sorted.iter().filter(|(_, kept)| within(kept.score)).count();
            assert_eq!(ranks.len(), expected);
            assert!(ranks.clone().all(|rank| within(sorted[rank].1.score)));
        }
    }
    if sorted
        .windows(2)
        .all(|pair| pair[0].1.score == pair[1].1.score)
    {
        for (min, max) in [
            (Bound::Included(first), Bound::Included(last)),
            (Bound::Excluded(first), Bound::Excluded(last)),
            (Bound::Unbounded, Bound::Excluded(last)),
            (Bound::Excluded(first), Bound::Unbounded),
        ] {
            let names = sorted.iter().map(|(name, _)| &name[..]);
            let start = names.clone().filter(|name| match min {
                Bound::Included(min) => *name < min,
                Bound::Excluded(min) => *name <= min,
                Bound::Unbounded => false,
            });
            let end = names.clone().filter(|name| match max {
                Bound::Included(max) => *name <= max,
                Bound::Excluded(max) => *name < max,
                Bound::Unbounded => true,
            });
            let (start, end) = (start.count(), end.count());
            assert_eq!(set.by_lex(min, max), start..end.max(start));
        }
    }
}

fn run(ops: Vec<Op>, entries: usize, one_score: bool) {
    let mut run = Run {
        set: ZSet::new(),
        model: BTreeMap::new(),
        hasher: KeyHasher::new(3),
        limits: Limits {
            entries,
            value: 650,
            integers: 0,
        },
        now: START,
    };
    for (step, op) in ops.into_iter().enumerate() {
        let op = match op {
            Op::Insert {
                member, deadline, ..
            } if one_score => Op::Insert {
                member,
                score: 1.0,
                deadline,
            },
            Op::InsertMany { .. } | Op::Add { .. } if one_score => Op::Copy,
            op => op,
        };
        run.apply(op);
        run.compare(step);
    }
    // Whatever the history, everything can be removed, and its memory comes back.
    run.set.remove_range(0..usize::MAX, |_| {});
    run.model.clear();
    run.compare(0);
    while run.set.maintain(100) {}
    let held = match run.set.get() {
        ZSetRef::Packed(packed) => packed.bytes().len(),
        ZSetRef::Large(_) => run.set.bytes(),
    };
    assert!(held < 40_000, "{held} bytes are held by nothing");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases / 4, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn sorted_sets_behave_like_a_sorted_vector(ops in prop::collection::vec(op(), 1..100), entries in prop_oneof![Just(0usize), Just(40), Just(1_000)]) {
        run(ops, entries, false);
    }

    #[test]
    fn members_of_one_score_are_in_the_order_of_their_bytes(ops in prop::collection::vec(op(), 1..150), entries in prop_oneof![Just(0usize), Just(1_000)]) {
        run(ops, entries, true);
    }
}
