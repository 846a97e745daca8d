//! Any split of the budget gives the same sequence of deadlines and the same set for each: two
//! lanes.

use std::collections::{BTreeMap, BTreeSet};

use super::lane::{Lane, Traits};
use super::ops::Op;
use super::subject::Subject;

/// Does the same to both, but one advances without a budget and the other in pieces.
pub(crate) fn twins<S: Subject>(make: impl Fn() -> S, traits: Traits, start: u64, ops: &[Op]) {
    let mut whole = Lane::new(make(), traits, start);
    let mut split = Lane::new(make(), traits, start);
    let (mut now, mut seq) = (start, 0);
    for op in ops {
        let tick = |when: super::ops::When, own| when.resolve(now, own, &whole.deadlines());
        match *op {
            Op::Insert(when) => {
                let deadline = tick(when, None);
                seq += 1;
                whole.insert(seq, deadline, now);
                split.insert(seq, deadline, now);
            }
            Op::Burst { when, count, gap } => {
                let first = tick(when, None);
                for i in 0..u64::from(count) {
                    seq += 1;
                    let deadline = first.saturating_add(i * gap);
                    whole.insert(seq, deadline, now);
                    split.insert(seq, deadline, now);
                }
            }
            Op::Reschedule { pick, when } => {
                if let Some(seq) = whole.pick(pick) {
                    let deadline = tick(when, whole.deadline(seq));
                    whole.reschedule(seq, deadline, now);
                    split.reschedule(seq, deadline, now);
                }
            }
            Op::Cancel { pick } => {
                if let Some(seq) = whole.pick(pick) {
                    whole.cancel(seq);
                    split.cancel(seq);
                }
            }
            Op::Storm { nth } => {
                for seq in whole.every(nth) {
                    whole.cancel(seq);
                    split.cancel(seq);
                }
            }
            Op::Advance { jump, budget } => {
                let to = jump.resolve(now, whole.earliest(), whole.subject.next_deadline());
                now = whole.reach(now, to);
                compare(&mut whole, &mut split, now, &[budget.max(1)]);
            }
            Op::Finish { jump, ref budgets } => {
                let to = jump.resolve(now, whole.earliest(), whole.subject.next_deadline());
                now = whole.reach(now, to);
                compare(&mut whole, &mut split, now, budgets);
            }
            Op::Drain => {
                whole.drain();
                split.drain();
            }
            Op::Maintain { budget } => {
                split.subject.maintain(budget);
            }
            Op::Tidy { budget } => split.tidy(budget),
            Op::Clock(_) | Op::Ticks { .. } | Op::Sleep | Op::Churn { .. } | Op::Gone { .. } => {}
        }
        whole.check();
        split.check();
    }
}

fn compare<S: Subject>(whole: &mut Lane<S>, split: &mut Lane<S>, now: u64, budgets: &[u32]) {
    let (at_once, _) = whole.advance(now, u32::MAX);
    let in_pieces = split.finish(now, budgets);
    // Both lanes have checked that their deadlines ascend.
    assert_eq!(sets(&at_once), sets(&in_pieces));
}

fn sets(fired: &[(u64, u64)]) -> BTreeMap<u64, BTreeSet<u64>> {
    let mut sets = BTreeMap::<u64, BTreeSet<u64>>::new();
    for &(due, seq) in fired {
        sets.entry(due).or_default().insert(seq);
    }
    sets
}
