//! A packed sorted set: pairs of member and score, in order.

use std::ops::{Bound, Range};

use tidewheel_store::Progress;

use super::Scored;
use super::score::{ScoreBytes, score_of};
use crate::packed::{Member, Packed, PackedRef, Place};

impl<'a> From<Member<'a>> for Scored<'a> {
    fn from(pair: Member<'a>) -> Self {
        Self {
            member: pair.first,
            score: score_of(pair.second),
            deadline: pair.deadline,
        }
    }
}

/// Where a pair belongs.
fn place_for(packed: PackedRef<'_>, score: f64, member: &[u8]) -> Place {
    let behind = packed.iter().find(|pair| {
        let own = score_of(pair.second);
        own > score || (own == score && pair.first > member)
    });
    behind.map_or(packed.back(), |pair| pair.place)
}

/// Adds a member that is not there.
pub(super) fn add(packed: &mut Packed, member: &[u8], score: f64, deadline: Option<u64>) {
    let place = place_for(packed.get(), score, member);
    let place = packed.insert(place, member, ScoreBytes::of(score).as_slice());
    if deadline.is_some() {
        packed.set_deadline(place, deadline);
    }
}

/// Gives a member that is there another score and deadline.
pub(super) fn update(packed: &mut Packed, place: Place, score: f64, deadline: Option<u64>) {
    let pair = packed.get().member(place);
    if score_of(pair.second).to_bits() != score.to_bits() {
        if !stays(packed.get(), place, score) {
            let member = pair.first.to_vec();
            packed.remove(place);
            return add(packed, &member, score, deadline);
        }
        packed.set_second(place, ScoreBytes::of(score).as_slice());
    }
    if packed.get().deadline(place) != deadline {
        packed.set_deadline(place, deadline);
    }
}

/// Whether a member keeps its place with another score.
fn stays(packed: PackedRef<'_>, place: Place, score: f64) -> bool {
    let member = packed.member(place).first;
    let others = packed.iter().filter(|pair| pair.place != place);
    let before = others.take_while(|pair| {
        let own = score_of(pair.second);
        own < score || (own == score && pair.first < member)
    });
    before.count() == place.index()
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

pub(super) fn expire(
    packed: &mut Packed,
    now: u64,
    budget: u32,
    mut sink: impl FnMut(Scored<'_>),
) -> Progress {
    let (fired, backlog) = packed.expire(now, budget, |pair| sink(pair.into()));
    Progress {
        fired,
        moved: 0,
        backlog,
        next_deadline: packed.get().earliest(),
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
