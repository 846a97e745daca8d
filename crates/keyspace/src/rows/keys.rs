//! Key specifications: the positions of a command's keys, and the use that it makes of them.

use std::ops::Range;

use tidewheel_resp::{Args, parse_i64};

use crate::word::{folded, named};

const STREAMS: u64 = named("STREAMS");
const COUNT: u64 = named("COUNT");
const BLOCK: u64 = named("BLOCK");
const GROUP: u64 = named("GROUP");
const NOACK: u64 = named("NOACK");

/// The positions of the keys: from argument `first` to `last` in steps of `step`; all zero without
/// keys. A call may say itself how many keys it has: then those follow that number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeySpec {
    /// The first key's position.
    pub first: u32,
    /// The last key's position; a negative one counts from the end (−1 is the last argument).
    pub last: i32,
    /// The distance between keys.
    pub step: u32,
    /// The position of the argument that says how many keys follow it; 0 if none does.
    pub counted: u32,
    /// The distance between keys that are counted: 2 if a value follows each.
    pub counted_step: u32,
    /// From this argument on, the word STORE or STOREDIST may stand before one key more; 0 if it
    /// may not.
    pub stored_from: u32,
    /// From this argument on, the word STREAMS may stand before keys and as many arguments more; 0
    /// if it may not.
    pub halves_from: u32,
    /// The use of each key, in COMMAND INFO's words: RO, RW, OW or RM, then access, update, insert
    /// or delete. Commas part the keys; the last part holds for all keys that follow.
    uses: &'static str,
}

impl KeySpec {
    /// No keys.
    pub const NONE: Self = Self {
        first: 0,
        last: 0,
        step: 0,
        counted: 0,
        counted_step: 1,
        stored_from: 0,
        halves_from: 0,
        uses: "",
    };

    /// One key.
    pub(crate) const fn one(position: u32, uses: &'static str) -> Self {
        Self {
            first: position,
            last: position as i32,
            step: 1,
            counted: 0,
            counted_step: 1,
            stored_from: 0,
            halves_from: 0,
            uses,
        }
    }

    /// All arguments from the first to the end, in steps.
    pub(crate) const fn all(step: u32, uses: &'static str) -> Self {
        Self {
            first: 1,
            last: -1,
            step,
            counted: 0,
            counted_step: 1,
            stored_from: 0,
            halves_from: 0,
            uses,
        }
    }

    /// All arguments from that position to the end.
    pub(crate) const fn from(position: u32, uses: &'static str) -> Self {
        Self {
            first: position,
            ..Self::all(1, uses)
        }
    }

    /// All arguments but the last.
    pub(crate) const fn but_last(uses: &'static str) -> Self {
        Self {
            first: 1,
            last: -2,
            step: 1,
            counted: 0,
            counted_step: 1,
            stored_from: 0,
            halves_from: 0,
            uses,
        }
    }

    /// Two keys.
    pub(crate) const fn two(uses: &'static str) -> Self {
        Self {
            first: 1,
            last: 2,
            step: 1,
            counted: 0,
            counted_step: 1,
            stored_from: 0,
            halves_from: 0,
            uses,
        }
    }

    /// As many keys as the argument at that position says, behind it.
    pub(crate) const fn counted(position: u32, uses: &'static str) -> Self {
        Self {
            first: position + 1,
            last: 0,
            step: 0,
            counted: position,
            counted_step: 1,
            stored_from: 0,
            halves_from: 0,
            uses,
        }
    }

    /// As many keys as the argument at that position says, behind it, each with a value.
    pub(crate) const fn counted_pairs(position: u32, uses: &'static str) -> Self {
        Self {
            counted_step: 2,
            ..Self::counted(position, uses)
        }
    }

    /// One key, then a number, then as many keys.
    pub(crate) const fn one_and_counted(uses: &'static str) -> Self {
        Self {
            first: 1,
            last: 1,
            step: 1,
            counted: 2,
            counted_step: 1,
            stored_from: 0,
            halves_from: 0,
            uses,
        }
    }

    /// One key, and one more behind the word STORE or STOREDIST, which may stand from an argument
    /// on.
    pub(crate) const fn one_and_stored(from: u32, uses: &'static str) -> Self {
        Self {
            stored_from: from,
            ..Self::one(1, uses)
        }
    }

    /// The first half of all behind the word STREAMS, which may stand from an argument on.
    pub(crate) const fn behind_streams(from: u32, uses: &'static str) -> Self {
        Self {
            first: from,
            halves_from: from,
            uses,
            ..Self::NONE
        }
    }

    /// True if every call has exactly one key.
    #[inline]
    pub(crate) const fn is_one(&self) -> bool {
        let only = self.first > 0 && self.last == self.first as i32;
        only && self.counted == 0 && self.stored_from == 0
    }

    /// The positions of the keys in a call.
    pub fn positions(&self, args: Args<'_>) -> impl Iterator<Item = usize> + Clone + use<> {
        let n_args = args.len();
        let end = if self.step == 0 {
            0
        } else if self.last < 0 {
            (n_args + 1).saturating_sub(self.last.unsigned_abs() as usize)
        } else {
            (self.last as usize + 1).min(n_args)
        };
        let counted_step = self.counted_step as usize;
        let counted = match self.counted {
            0 => 0..0,
            at => {
                let start = at as usize + 1;
                let count = args.get(at as usize).and_then(parse_i64).unwrap_or(0);
                let count = usize::try_from(count).unwrap_or(0);
                start
                    ..start
                        .saturating_add(count.saturating_mul(counted_step))
                        .min(n_args)
            }
        };
        (self.first as usize..end)
            .step_by(self.step.max(1) as usize)
            .chain(counted.step_by(counted_step))
            .chain(self.stored(args))
            .chain(self.halves(args))
    }

    /// The hash of the key at an argument. `hashes` has those of all keys, in their order. `None`
    /// if the position alone does not tell the key's number.
    #[inline]
    pub(crate) fn hash_at(&self, argument: usize, hashes: &[u64]) -> Option<u64> {
        let behind = argument.checked_sub(self.first as usize)?;
        let number = match (self.step, self.counted | self.stored_from) {
            (1, 0) => behind,
            (2, 0) if behind.is_multiple_of(2) => behind / 2,
            _ => return None,
        };
        hashes.get(number).copied()
    }

    /// True if a call has as many keys as it announces, and at least one unless it may have none.
    /// True for calls that announce no number.
    pub(crate) fn counts_right(&self, args: Args<'_>, may_have_none: bool) -> bool {
        let at = self.counted as usize;
        let said = args.get(at).and_then(parse_i64);
        let least = usize::from(!may_have_none);
        let room = args.len().saturating_sub(at + 1) / self.counted_step as usize;
        let fits =
            |count| usize::try_from(count).is_ok_and(|count| (least..=room).contains(&count));
        at == 0 || said.is_some_and(fits)
    }

    /// The position of the key behind STORE or STOREDIST. The last one is meant, if there are
    /// several.
    fn stored(&self, args: Args<'_>) -> Option<usize> {
        let (mut at, mut stored) = (self.stored_from as usize, None);
        while at != 0
            && let (Some(word), Some(_)) = (args.get(at), args.get(at + 1))
        {
            if word.eq_ignore_ascii_case(b"STORE") || word.eq_ignore_ascii_case(b"STOREDIST") {
                stored = Some(at + 1);
                at += 1;
            }
            at += 1;
        }
        stored
    }

    /// The positions of keys behind the word STREAMS: the first half of what follows it. None, if
    /// that has no two halves, or if something unknown stands before the word.
    pub(crate) fn halves(&self, args: Args<'_>) -> Range<usize> {
        if self.halves_from == 0 {
            return 0..0;
        }
        let mut at = 1;
        while let Some(word) = args.get(at) {
            at += match folded(word) {
                STREAMS => {
                    let behind = args.len() - at - 1;
                    return match behind % 2 {
                        0 => at + 1..at + 1 + behind / 2,
                        _ => 0..0,
                    };
                }
                COUNT | BLOCK => 2,
                GROUP => 3,
                NOACK => 1,
                _ => break,
            };
        }
        0..0
    }

    /// The positions of the keys that a call may change.
    pub(crate) fn written(&self, args: Args<'_>) -> impl Iterator<Item = usize> {
        let uses = self.uses();
        let used = self.positions(args).enumerate();
        used.filter_map(move |(i, at)| {
            let of_key = uses.get(i).or(uses.last());
            of_key
                .is_some_and(|uses| !uses.starts_with("RO"))
                .then_some(at)
        })
    }

    /// The use of each key. The last one holds for all keys that follow.
    pub(crate) fn uses(&self) -> Vec<&'static str> {
        match self.uses {
            "" => Vec::new(),
            uses => uses.split(", ").collect(),
        }
    }

    /// First, last and step as COMMAND INFO says them: keys that are counted are none of these.
    pub(crate) fn range(&self) -> (u32, i32, u32) {
        match self.step {
            0 => (0, 0, 0),
            step => (self.first, self.last, step),
        }
    }
}
