//! Sorted sets and sets that are combined, member by member.

use std::collections::HashMap;

use tidewheel_collections::{Set, SetRef, ZSet, ZSetRef};
use tidewheel_store::Slot;

use crate::value::Entries;
use crate::value::collection;

/// The way in which several scores of a member become one.
#[derive(Clone, Copy)]
pub(super) enum Aggregate {
    Sum,
    Min,
    Max,
}

impl Aggregate {
    pub(super) fn parse(text: &[u8]) -> Option<Self> {
        match text.to_ascii_uppercase().as_slice() {
            b"SUM" => Some(Self::Sum),
            b"MIN" => Some(Self::Min),
            b"MAX" => Some(Self::Max),
            _ => None,
        }
    }

    /// ∞ − ∞ is 0.
    fn join(self, a: f64, b: f64) -> f64 {
        match self {
            Self::Sum => number(a + b),
            Self::Min => a.min(b),
            Self::Max => a.max(b),
        }
    }
}

/// 0 in place of NaN and of −0.
fn number(score: f64) -> f64 {
    if score.is_nan() { 0.0 } else { score + 0.0 }
}

/// One of the keys that are combined.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    pub(super) of: SourceMembers<'a>,
    /// `None` is 1.
    pub(super) weight: Option<f64>,
}

#[derive(Clone, Copy)]
pub(super) enum SourceMembers<'a> {
    None,
    Set(SetRef<'a>),
    ZSet(ZSetRef<'a>),
}

impl<'a> SourceMembers<'a> {
    pub(super) fn of(entries: &'a Entries, slot: Option<Slot>) -> Self {
        let Some(slot) = slot else {
            return Self::None;
        };
        match collection::read::<ZSet>(entries, slot) {
            Ok(zset) => Self::ZSet(zset),
            Err(_) => collection::read::<Set>(entries, slot).map_or(Self::None, Self::Set),
        }
    }

    pub(super) fn len(self) -> usize {
        match self {
            Self::None => 0,
            Self::Set(set) => set.len(),
            Self::ZSet(zset) => zset.len(),
        }
    }

    fn score(self, member: &[u8]) -> Option<f64> {
        match self {
            Self::None => None,
            Self::Set(set) => set.contains(member).then_some(1.0),
            Self::ZSet(zset) => zset.score(member),
        }
    }

    fn for_each(self, mut visit: impl FnMut(&'a [u8], f64)) {
        match self {
            Self::None => {}
            Self::Set(set) => set.for_each(|entry| visit(entry.key, 1.0)),
            Self::ZSet(zset) => zset
                .forward(0)
                .for_each(|entry| visit(entry.member, entry.score)),
        }
    }
}

impl<'a> Source<'a> {
    fn weighted(&self, score: f64) -> f64 {
        self.weight.map_or(score, |weight| number(weight * score))
    }

    fn score(&self, member: &[u8]) -> Option<f64> {
        self.of.score(member).map(|score| self.weighted(score))
    }

    fn for_each(&self, mut visit: impl FnMut(&'a [u8], f64)) {
        self.of
            .for_each(|member, score| visit(member, self.weighted(score)));
    }
}

/// Members with their scores, in no order.
pub(super) type SourceScores<'a> = Vec<(&'a [u8], f64)>;

pub(super) fn union<'a>(sources: &[Source<'a>], aggregate: Aggregate) -> SourceScores<'a> {
    let mut scores: HashMap<&[u8], f64> = HashMap::new();
    for source in sources {
        source.for_each(|member, score| {
            scores
                .entry(member)
                .and_modify(|joined| *joined = aggregate.join(*joined, score))
                .or_insert(score);
        });
    }
    scores.into_iter().collect()
}

/// The first source has the fewest members.
pub(super) fn intersection<'a>(sources: &[Source<'a>], aggregate: Aggregate) -> SourceScores<'a> {
    let mut result = Vec::new();
    if let Some((first, others)) = sources.split_first() {
        first.for_each(|member, score| {
            let mut joined = Some(score);
            for other in others {
                let Some(so_far) = joined else { return };
                let score = other.score(member);
                joined = score.map(|score| aggregate.join(so_far, score));
            }
            result.extend(joined.map(|score| (member, score)));
        });
    }
    result
}

pub(super) fn difference<'a>(sources: &[Source<'a>]) -> SourceScores<'a> {
    let mut result = Vec::new();
    if let Some((first, others)) = sources.split_first() {
        first.for_each(|member, score| {
            if others.iter().all(|other| other.of.score(member).is_none()) {
                result.push((member, score));
            }
        });
    }
    result
}

/// The number of members that all sources have, up to a limit.
pub(super) fn count_of_common(mut sources: Vec<Source<'_>>, limit: usize) -> usize {
    sources.sort_by_key(|source| source.of.len());
    let Some((first, others)) = sources.split_first() else {
        return 0;
    };
    let is_common = |member: &[u8]| others.iter().all(|other| other.of.score(member).is_some());
    let mut n = 0;
    first.of.for_each(|member, _| {
        n += usize::from(n < limit && is_common(member));
    });
    n
}
