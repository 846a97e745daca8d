//! A packed sorted set: pairs of member and score, in order.

use std::ops::{Bound, Range};

use super::Scored;
use super::score::{ScoreBytes, score_in, score_of};
use crate::packed::{Member, Packed, PackedPosition, PackedRef};

impl<'a> From<Member<'a>> for Scored<'a> {
    fn from(pair: Member<'a>) -> Self {
        Self {
            member: pair.first,
            score: score_of(pair.second),
            deadline: pair.deadline,
        }
    }
}

/// Where a pair belongs, if it does not belong before `from`.
fn place_for(
    packed: PackedRef<'_>,
    from: PackedPosition,
    score: f64,
    member: &[u8],
) -> PackedPosition {
    packed.seek_pair(from, |first, second| {
        let own = score_in(packed.bytes(), second);
        own > score || (own == score && first > member)
    })
}

/// Adds a member that is not there.
pub(super) fn add(packed: &mut Packed, member: &[u8], score: f64, deadline: Option<u64>) {
    let place = place_for(packed.get(), packed.get().front(), score, member);
    let place = packed.insert(place, member, ScoreBytes::of(score).as_slice());
    if deadline.is_some() {
        packed.set_deadline(place, deadline);
    }
}

/// Gives a member that is there another score and deadline.
pub(super) fn update(
    packed: &mut Packed,
    place: PackedPosition,
    score: f64,
    deadline: Option<u64>,
) {
    let old = score_of(packed.get().member(place).second);
    let place = match old.to_bits() == score.to_bits() {
        true => place,
        false => rescore(packed, place, old, score),
    };
    if packed.get().deadline(place) != deadline {
        packed.set_deadline(place, deadline);
    }
}

/// Gives a member another score. Returns where it is then.
fn rescore(packed: &mut Packed, place: PackedPosition, old: f64, score: f64) -> PackedPosition {
    packed.set_second(place, ScoreBytes::of(score).as_slice());
    let view = packed.get();
    let member = view.member(place).first;
    let behind = view.behind(place);
    // From the front it stops at the member itself, if at no other.
    let target = match score < old {
        true => view.seek_pair(view.front(), |first, second| {
            let own = score_in(view.bytes(), second);
            own > score || (own == score && first >= member)
        }),
        false => place_for(view, behind, score, member),
    };
    match target == place || target == behind {
        true => place,
        false => packed.shift(place, target),
    }
}

pub(super) fn remove_range(
    packed: &mut Packed,
    ranks: Range<usize>,
    mut sink: impl FnMut(Scored<'_>),
) {
    for pair in packed.get().iter().take(ranks.end).skip(ranks.start) {
        sink(pair.into());
    }
    for rank in ranks.rev() {
        if let Some(place) = packed.get().nth(rank) {
            packed.remove(place);
        }
    }
}

pub(super) fn by_score(packed: PackedRef<'_>, min: Bound<f64>, max: Bound<f64>) -> Range<usize> {
    let scores = || packed.iter().map(|pair| score_of(pair.second));
    let start = scores()
        .take_while(|score| super::below_start(*score, min))
        .count();
    let end = scores()
        .take_while(|score| super::within_end(*score, max))
        .count();
    start..end.max(start)
}

pub(super) fn by_lex(packed: PackedRef<'_>, min: Bound<&[u8]>, max: Bound<&[u8]>) -> Range<usize> {
    let members = || packed.iter().map(|pair| pair.first);
    let start = members()
        .take_while(|member| super::below_start(*member, min))
        .count();
    let end = members()
        .take_while(|member| super::within_end(*member, max))
        .count();
    start..end.max(start)
}
