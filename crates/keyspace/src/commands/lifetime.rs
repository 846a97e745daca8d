//! The options that say how long a string lives: EX, PX, EXAT, PXAT, KEEPTTL, PERSIST.

use tidewheel_resp::Args;

use crate::context::Context;
use crate::error::CommandError;
use crate::time::{Base, Unit};

/// An option as it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LifetimeOption {
    /// A number of that unit, counted from there; at this argument.
    Number {
        unit: Unit,
        base: Base,
        argument: usize,
    },
    /// KEEPTTL.
    Keep,
    /// PERSIST.
    Persist,
}

/// What it means now.
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
    /// Reads the option at argument `i` and returns it with the number of arguments that it takes. One that
    /// contradicts an `earlier` one is a syntax error; the same again takes its place.
    pub(crate) fn parse(
        args: Args<'_>,
        i: usize,
        earlier: Option<Self>,
    ) -> Result<(Self, usize), CommandError> {
        let word = args.get(i).unwrap_or_default();
        let number = |unit, base| Self::Number {
            unit,
            base,
            argument: i + 1,
        };
        let is = |name: &str| word.eq_ignore_ascii_case(name.as_bytes());
        let option = match word.len() {
            2 if is("EX") => number(Unit::Seconds, Base::Now),
            2 if is("PX") => number(Unit::Milliseconds, Base::Now),
            4 if is("EXAT") => number(Unit::Seconds, Base::Epoch),
            4 if is("PXAT") => number(Unit::Milliseconds, Base::Epoch),
            7 if is("KEEPTTL") => Self::Keep,
            7 if is("PERSIST") => Self::Persist,
            _ => return Err(CommandError::SYNTAX),
        };
        let used = match option {
            Self::Number { argument, .. } if argument >= args.len() => {
                return Err(CommandError::SYNTAX);
            }
            Self::Number { .. } => 2,
            Self::Keep | Self::Persist => 1,
        };
        match earlier {
            Some(earlier) if !earlier.same_kind(option) => Err(CommandError::SYNTAX),
            _ => Ok((option, used)),
        }
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

    /// What it means now.
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
