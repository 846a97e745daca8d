//! HSCAN, SSCAN, ZSCAN: visit the members of one collection, call by call.

use tidewheel_resp::{Args, Writer, parse_i64, parse_u64};

use crate::context::{Context, Lookup};
use crate::error::CommandError;
use crate::glob::glob_match;
use crate::value::collection::Collection;

const INVALID_CURSOR: CommandError = CommandError::fixed("ERR invalid cursor");

/// Members that a call visits if it does not say.
const COUNT: usize = 10;

/// A type of collection that can be scanned.
pub(crate) trait Scanned: Collection {
    /// The value of a member.
    type Value<'a>;
    /// The word with which a call leaves it out; empty if there is none.
    const WITHOUT: &'static str;

    /// Visits at least `count` members from `cursor` on; returns the next cursor, 0 at the end.
    fn scan<'a>(
        of: Self::Ref<'a>,
        cursor: u64,
        count: usize,
        visit: impl FnMut(&'a [u8], Self::Value<'a>),
    ) -> u64;

    /// Writes a member's value, if it has one.
    fn write(out: &mut Writer, value: Self::Value<'_>);

    /// The number of reply elements that a member takes.
    const WIDTH: usize;
}

/// The options of a call.
struct MemberScanOptions<'b> {
    /// `None` is matched by all.
    pattern: Option<&'b [u8]>,
    count: usize,
    values: bool,
}

/// Replies with a part of a key's members, and the cursor of the next part.
pub(crate) fn scan<C: Scanned>(ctx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let key = ctx.key(1);
    let cursor = ctx.args.get(2).and_then(parse_u64).ok_or(INVALID_CURSOR)?;
    let words = ctx.args.from(3);
    ctx.read::<C, _>(key, Lookup::Read, |found, out| {
        let Some(of) = found else {
            reply_head(out, 0, 0);
            return Ok(());
        };
        let options = MemberScanOptions::parse(words, C::WITHOUT)?;
        options.reply::<C>(of, cursor, out);
        Ok(())
    })?
}

fn reply_head(out: &mut Writer, cursor: u64, elements: usize) {
    out.array(2);
    out.bulk(itoa::Buffer::new().format(cursor).as_bytes());
    out.array(elements);
}

impl<'b> MemberScanOptions<'b> {
    fn parse(words: Args<'b>, without: &str) -> Result<Self, CommandError> {
        let mut options = Self {
            pattern: None,
            count: COUNT,
            values: true,
        };
        let mut i = 0;
        while let Some(word) = words.get(i) {
            let value = words.get(i + 1);
            i += match value {
                Some(value) if word.eq_ignore_ascii_case(b"COUNT") => {
                    options.count = parse_count(value)?;
                    2
                }
                Some(value) if word.eq_ignore_ascii_case(b"MATCH") => {
                    options.pattern = (value != b"*").then_some(value);
                    2
                }
                _ if !without.is_empty() && word.eq_ignore_ascii_case(without.as_bytes()) => {
                    options.values = false;
                    1
                }
                _ => return Err(CommandError::SYNTAX),
            };
        }
        Ok(options)
    }

    fn wants(&self, member: &[u8]) -> bool {
        self.pattern
            .is_none_or(|pattern| glob_match(pattern, member))
    }

    fn reply<C: Scanned>(&self, of: C::Ref<'_>, cursor: u64, out: &mut Writer) {
        // The cursor comes first in the reply and is known last.
        let mut found = Vec::new();
        let next = C::scan(of, cursor, self.count, |member, value| {
            if self.wants(member) {
                found.push((member, value));
            }
        });
        let width = if self.values { C::WIDTH } else { 1 };
        reply_head(out, next, found.len() * width);
        for (member, value) in found {
            out.bulk(member);
            if self.values {
                C::write(out, value);
            }
        }
    }
}

fn parse_count(text: &[u8]) -> Result<usize, CommandError> {
    match parse_i64(text).ok_or(CommandError::NOT_AN_INTEGER)? {
        ..1 => Err(CommandError::SYNTAX),
        count => Ok(usize::try_from(count).unwrap_or(usize::MAX)),
    }
}
