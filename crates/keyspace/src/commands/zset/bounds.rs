//! Parses the bounds of a range: `(1.5`, `+inf`, `[abc`, `-`.

use std::ops::{Bound, Range, RangeBounds};

use tidewheel_collections::ZSetRef;

use crate::error::CommandError;

const NOT_A_SCORE: CommandError = CommandError::fixed("ERR min or max is not a float");
const NOT_A_MEMBER: CommandError =
    CommandError::fixed("ERR min or max not valid string range item");

/// Scores from one to another.
pub(super) struct ScoreRange {
    min: Bound<f64>,
    max: Bound<f64>,
}

impl ScoreRange {
    pub(super) fn parse(min: &[u8], max: &[u8]) -> Result<Self, CommandError> {
        Ok(Self {
            min: score_bound(min)?,
            max: score_bound(max)?,
        })
    }

    pub(super) fn ranks(&self, zset: ZSetRef<'_>) -> Range<usize> {
        zset.by_score(self.min, self.max)
    }
}

fn score_bound(text: &[u8]) -> Result<Bound<f64>, CommandError> {
    match text.strip_prefix(b"(") {
        Some(text) => score(text).map(Bound::Excluded),
        None => score(text).map(Bound::Included),
    }
}

/// Unlike a score that is stored, a bound may be too large: it is infinite then. An empty one is 0.
fn score(text: &[u8]) -> Result<f64, CommandError> {
    if text.is_empty() {
        return Ok(0.0);
    }
    let number = std::str::from_utf8(text)
        .ok()
        .and_then(|text| text.trim_ascii_start().parse::<f64>().ok());
    number.filter(|score| !score.is_nan()).ok_or(NOT_A_SCORE)
}

type Pair<'b> = (Bound<&'b [u8]>, Bound<&'b [u8]>);

/// Members from one to another, byte by byte.
pub(super) struct LexRange<'b> {
    min: Edge<'b>,
    max: Edge<'b>,
}

enum Edge<'b> {
    /// `-`: before all members.
    Before,
    /// `+`: behind all members.
    Behind,
    At(Bound<&'b [u8]>),
}

impl<'b> LexRange<'b> {
    pub(super) fn parse(min: &'b [u8], max: &'b [u8]) -> Result<Self, CommandError> {
        Ok(Self {
            min: Edge::parse(min)?,
            max: Edge::parse(max)?,
        })
    }

    pub(super) fn ranks(&self, zset: ZSetRef<'_>) -> Range<usize> {
        match self.bounds() {
            Some((min, max)) => zset.by_lex(min, max),
            None => 0..0,
        }
    }

    /// As [`ranks`](Self::ranks), but each member lies within the bounds, also where scores differ
    /// and the order is not the members' own: those that follow the first one without a gap.
    pub(super) fn ranks_within(&self, zset: ZSetRef<'_>) -> Range<usize> {
        let ranks = self.ranks(zset);
        let members = zset.forward(ranks.start).take(ranks.len());
        let within = members.take_while(|scored| {
            let bounds = self.bounds();
            bounds.is_some_and(|bounds| RangeBounds::<[u8]>::contains(&bounds, scored.member))
        });
        ranks.start..ranks.start + within.count()
    }

    /// `None` if nothing lies within.
    fn bounds(&self) -> Option<Pair<'b>> {
        let min = match self.min {
            Edge::Before => Bound::Unbounded,
            Edge::Behind => return None,
            Edge::At(bound) => bound,
        };
        let max = match self.max {
            Edge::Before => return None,
            Edge::Behind => Bound::Unbounded,
            Edge::At(bound) => bound,
        };
        Some((min, max))
    }
}

impl<'b> Edge<'b> {
    fn parse(text: &'b [u8]) -> Result<Self, CommandError> {
        match text {
            b"-" => Ok(Self::Before),
            b"+" => Ok(Self::Behind),
            [b'[', member @ ..] => Ok(Self::At(Bound::Included(member))),
            [b'(', member @ ..] => Ok(Self::At(Bound::Excluded(member))),
            _ => Err(NOT_A_MEMBER),
        }
    }
}
