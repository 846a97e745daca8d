//! BITFIELD and BITFIELD_RO: integers of any width in a string.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;

use tidewheel_resp::{Args, parse_i64};

use crate::bits::{Field, OnOverflow, Patch};
use crate::commands::bitmap::{allowed, offset};
use crate::commands::change::{StringChange, grow_with_zeros};
use crate::context::{Context, Lookup};
use crate::error::CommandError;
use crate::events::Cause;
use crate::value::{self, TAG_STRING_RAW};

type Outcome = Result<(), CommandError>;

const BAD_TYPE: CommandError = CommandError::fixed(
    "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.",
);
const BAD_RULE: CommandError = CommandError::fixed("ERR Invalid OVERFLOW type specified");
const ONLY_GET: CommandError =
    CommandError::fixed("ERR BITFIELD_RO only supports the GET subcommand");

/// One access to a field.
struct FieldAccess {
    field: Field,
    offset: u64,
    what: FieldOperation,
}

enum FieldOperation {
    Get,
    Set(i64, OnOverflow),
    Add(i64, OnOverflow),
}

/// The accesses of a call, in their order.
struct Accesses {
    all: Vec<FieldAccess>,
    /// Bytes that the string needs for all fields that may be written.
    needs: usize,
}

/// The results of all accesses.
struct Results {
    /// The number of each; `None` if it failed.
    numbers: Vec<Option<i64>>,
    words: BTreeMap<u64, u64>,
    /// True if a number was written that differs from the old one.
    changed: bool,
}

/// The end of the last field that a call may write; `None` if it is refused or writes nothing.
pub(crate) fn end_of_writes(args: Args<'_>, longest: u64) -> Option<usize> {
    let accesses = Accesses::parse(args, longest).ok()?;
    (accesses.needs > 0).then_some(accesses.needs)
}

pub(crate) fn bitfield(ctx: &mut Context<'_, '_>) -> Outcome {
    let accesses = Accesses::of_call(ctx)?;
    if accesses.needs == 0 {
        return read(ctx, &accesses);
    }
    let key = ctx.key(1);
    for attempt in 0.. {
        let slot = ctx.find(key, Lookup::Write);
        let (len, results) = match slot {
            Some(slot) => {
                let value = value::string(ctx.entries(key), slot)?;
                let bytes = value::bytes(&value);
                (bytes.len(), accesses.run(bytes))
            }
            None => (0, accesses.run(&[])),
        };
        let total = len.max(accesses.needs);
        let edit = StringChange {
            total,
            written: total - len + results.words.len(),
            tag_of_new: TAG_STRING_RAW,
            cause: Cause::SetBit,
            change: |bytes: &mut Vec<u8>| {
                grow_with_zeros(bytes, total);
                Patch::write(&results.words, bytes);
            },
        };
        let same = total == len && !results.changed;
        if same || edit.apply(ctx, key, slot, attempt)? {
            reply(ctx, &results);
            break;
        }
    }
    Ok(())
}

pub(crate) fn bitfield_ro(ctx: &mut Context<'_, '_>) -> Outcome {
    let accesses = Accesses::of_call(ctx)?;
    if accesses.needs > 0 {
        return Err(ONLY_GET);
    }
    read(ctx, &accesses)
}

fn read(ctx: &mut Context<'_, '_>, accesses: &Accesses) -> Outcome {
    let key = ctx.key(1);
    let results = match ctx.find(key, Lookup::Read) {
        Some(slot) => accesses.run(value::bytes(&value::string(ctx.entries(key), slot)?)),
        None => accesses.run(&[]),
    };
    reply(ctx, &results);
    Ok(())
}

fn reply(ctx: &mut Context<'_, '_>, results: &Results) {
    ctx.out.array(results.numbers.len());
    for number in &results.numbers {
        match number {
            Some(number) => ctx.out.integer(*number),
            None => ctx.out.null(),
        }
    }
}

impl Accesses {
    fn of_call(ctx: &Context<'_, '_>) -> Result<Self, CommandError> {
        let longest = ctx.keyspace.rules().proto_max_bulk_len.load(Relaxed);
        Self::parse(ctx.args, longest)
    }

    fn parse(args: Args<'_>, longest: u64) -> Result<Self, CommandError> {
        let mut all = Vec::new();
        let (mut needs, mut rule) = (0, OnOverflow::default());
        let mut i = 2;
        while i < args.len() {
            if is(args, i, "OVERFLOW") && i + 1 < args.len() {
                rule = parse_rule(args, i + 1)?;
                i += 2;
                continue;
            }
            let access = FieldAccess::parse(args, i, rule, longest)?;
            if access.writes() {
                needs = access.end().max(needs);
            }
            i += if access.writes() { 4 } else { 3 };
            all.push(access);
        }
        Ok(Self { all, needs })
    }

    fn run(&self, bytes: &[u8]) -> Results {
        let mut patch = Patch::new(bytes);
        let mut changed = false;
        let numbers = self.all.iter().map(|access| {
            let (number, different) = access.run(&mut patch);
            changed |= different;
            number
        });
        Results {
            numbers: numbers.collect(),
            words: patch.into_words(),
            changed,
        }
    }
}

impl FieldAccess {
    fn parse(
        args: Args<'_>,
        i: usize,
        rule: OnOverflow,
        longest: u64,
    ) -> Result<Self, CommandError> {
        let left = args.len() - i - 1;
        let (gets, sets) = (is(args, i, "GET"), is(args, i, "SET"));
        if !(gets && left >= 2 || (sets || is(args, i, "INCRBY")) && left >= 3) {
            return Err(CommandError::SYNTAX);
        }
        let field = Field::parse(args.get(i + 1).unwrap_or_default()).ok_or(BAD_TYPE)?;
        let offset = offset_of(args.get(i + 2).unwrap_or_default(), field, longest)?;
        let number = || {
            let text = args.get(i + 3).unwrap_or_default();
            parse_i64(text).ok_or(CommandError::NOT_AN_INTEGER)
        };
        let what = match (gets, sets) {
            (true, _) => FieldOperation::Get,
            (_, true) => FieldOperation::Set(number()?, rule),
            _ => FieldOperation::Add(number()?, rule),
        };
        Ok(Self {
            field,
            offset,
            what,
        })
    }

    fn writes(&self) -> bool {
        !matches!(self.what, FieldOperation::Get)
    }

    /// The length of a string that has the whole field.
    fn end(&self) -> usize {
        (self.offset + u64::from(self.field.bits)).div_ceil(8) as usize
    }

    /// The number to reply with, and whether the field has another one now.
    fn run(&self, patch: &mut Patch<'_>) -> (Option<i64>, bool) {
        let old = patch.get(self.field, self.offset);
        let (number, rule) = match self.what {
            FieldOperation::Get => return (Some(old), false),
            FieldOperation::Set(number, rule) => (self.field.given(number), rule),
            FieldOperation::Add(by, rule) => (i128::from(old) + i128::from(by), rule),
        };
        let Some(new) = self.field.fit(number, rule) else {
            return (None, false);
        };
        patch.set(self.field, self.offset, new);
        let shown = match self.what {
            FieldOperation::Set(..) => old,
            _ => new,
        };
        (Some(shown), new != old)
    }
}

/// An offset in bits, or after `#` in fields of that type.
fn offset_of(text: &[u8], field: Field, longest: u64) -> Result<u64, CommandError> {
    let Some(number) = text.strip_prefix(b"#") else {
        return offset(text, longest);
    };
    let index = parse_i64(number);
    let bits = index.and_then(|index| index.checked_mul(field.bits.into()));
    allowed(bits, longest)
}

fn parse_rule(args: Args<'_>, argument: usize) -> Result<OnOverflow, CommandError> {
    [
        ("WRAP", OnOverflow::Wrap),
        ("SAT", OnOverflow::Saturate),
        ("FAIL", OnOverflow::Fail),
    ]
    .into_iter()
    .find(|(name, _)| is(args, argument, name))
    .map(|(_, rule)| rule)
    .ok_or(BAD_RULE)
}

fn is(args: Args<'_>, argument: usize, word: &str) -> bool {
    args.get(argument)
        .is_some_and(|arg| arg.eq_ignore_ascii_case(word.as_bytes()))
}
