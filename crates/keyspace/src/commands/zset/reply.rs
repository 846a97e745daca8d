//! Writes members into a reply, with their scores or without.

use tidewheel_resp::{Protocol, Writer};

/// The layout of members in a reply.
#[derive(Clone, Copy)]
pub(super) enum Layout {
    /// Members only.
    Members,
    /// Members and scores in turn.
    Flat,
    /// Members and scores in turn, in a list that has begun.
    Bare,
    /// A pair for each.
    Pairs,
}

impl Layout {
    /// Scores are in pairs where the protocol is new enough for that.
    pub(super) fn new(out: &Writer, scores: bool) -> Self {
        match (scores, out.protocol()) {
            (false, _) => Self::Members,
            (true, Protocol::Resp2) => Self::Flat,
            (true, Protocol::Resp3) => Self::Pairs,
        }
    }

    /// The head of a list; so many members must follow.
    pub(super) fn head(self, out: &mut Writer, members: usize) {
        out.array(match self {
            Self::Bare => return,
            Self::Flat => members.saturating_mul(2),
            Self::Members | Self::Pairs => members,
        });
    }

    #[inline]
    pub(super) fn put(self, out: &mut Writer, member: &[u8], score: f64) {
        if let Self::Pairs = self {
            out.array(2);
        }
        out.bulk(member);
        if !matches!(self, Self::Members) {
            out.double(score);
        }
    }
}
