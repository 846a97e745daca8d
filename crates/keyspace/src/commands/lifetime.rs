//! The options that say how long a string lives: EX, PX, EXAT, PXAT, KEEPTTL, PERSIST.

use tidewheel_resp::Args;

use crate::context::Context;
use crate::error::CommandError;
use crate::time::{TimeOrigin, Unit};
use crate::word::{folded, named};

/// An option as it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LifetimeOption {
    /// A number of that unit, counted from there; at this argument.
    Number {
        unit: Unit,
        base: TimeOrigin,
        argument: usize,
    },
    /// KEEPTTL.
    Keep,
    /// PERSIST.
    Persist,
}

/// A lifetime, evaluated at one point in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lifetime {
    /// Without a deadline.
    Forever,
    /// As long as before.
    Keep,
    /// Until that engine tick.
    Until(u64),
}

impl LifetimeOption {
    /// Reads the option at argument `i` and returns it with the number of arguments that it takes.
    /// One that contradicts an `earlier` one is a syntax error; the same again takes its place.
    pub(crate) fn parse(
        args: Args<'_>,
        i: usize,
        earlier: Option<Self>,
    ) -> Result<(Self, usize), CommandError> {
        let word = folded(args.get(i).unwrap_or_default());
        Self::of_word(word, args.len(), i, earlier).ok_or(CommandError::SYNTAX)
    }

    /// As [`parse`](Self::parse), of a word that is [`folded`] already, in a call of so many
    /// arguments. `None` is a syntax error.
    #[inline(always)]
    pub(crate) fn of_word(
        word: u64,
        arguments: usize,
        i: usize,
        earlier: Option<Self>,
    ) -> Option<(Self, usize)> {
        const EX: u64 = named("EX");
        const PX: u64 = named("PX");
        const EXAT: u64 = named("EXAT");
        const PXAT: u64 = named("PXAT");
        const KEEPTTL: u64 = named("KEEPTTL");
        const PERSIST: u64 = named("PERSIST");
        let number = |unit, base| Self::Number {
            unit,
            base,
            argument: i + 1,
        };
        let (option, used) = match word {
            EX => (number(Unit::Seconds, TimeOrigin::Now), 2),
            PX => (number(Unit::Milliseconds, TimeOrigin::Now), 2),
            EXAT => (number(Unit::Seconds, TimeOrigin::Epoch), 2),
            PXAT => (number(Unit::Milliseconds, TimeOrigin::Epoch), 2),
            KEEPTTL => (Self::Keep, 1),
            PERSIST => (Self::Persist, 1),
            _ => return None,
        };
        let is_whole = i + used <= arguments;
        let fits = earlier.is_none_or(|earlier| earlier.same_kind(option));
        (is_whole && fits).then_some((option, used))
    }

    fn same_kind(self, other: Self) -> bool {
        match (self, other) {
            (
                Self::Number { unit, base, .. },
                Self::Number {
                    unit: u, base: b, ..
                },
            ) => unit == u && base == b,
            _ => self == other,
        }
    }

    /// Evaluates the option at the current time.
    #[inline(always)]
    pub(crate) fn evaluate(self, ctx: &Context<'_, '_>) -> Result<Lifetime, CommandError> {
        match self {
            Self::Keep => Ok(Lifetime::Keep),
            Self::Persist => Ok(Lifetime::Forever),
            Self::Number {
                unit,
                base,
                argument,
            } => {
                let number = ctx.integer(argument)?;
                let deadline = ctx.now.positive_deadline(number, unit, base);
                deadline
                    .map(Lifetime::Until)
                    .ok_or_else(|| invalid_expire_time(ctx.name()))
            }
        }
    }
}

/// `invalid expire time in '…' command`.
#[cold]
pub(crate) fn invalid_expire_time(command: &str) -> CommandError {
    CommandError::quoting(format!("ERR invalid expire time in '{command}' command"))
}
