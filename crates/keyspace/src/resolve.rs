//! Resolves a call: finds its row, or the error that answers it.

use tidewheel_resp::Args;

use crate::error::CommandError;
use crate::rows::Command;

/// The most bytes of a name or of all arguments that an error quotes.
const QUOTE_MAX: usize = 128;

/// Clients of clusters begin with these, and know a server that is none by its answer.
const CLUSTER: [&str; 4] = ["asking", "cluster", "readonly", "readwrite"];

const NO_CLUSTER: CommandError =
    CommandError::fixed("ERR This instance has cluster support disabled");

/// Finds the row that a call means, subcommands included, and checks its number of arguments.
///
/// # Errors
/// The exact reply for an unknown command or subcommand, or a wrong number of arguments.
#[inline]
pub fn resolve(args: Args<'_>) -> Result<&'static Command, CommandError> {
    match args.get(0).and_then(crate::rows::lookup) {
        Some(row) if !row.has_subcommands() && row.check_arity(args.len()) => Ok(row),
        row => resolve_further(row, args),
    }
}

/// As [`resolve`], of a call whose name leads to this row, or to none.
#[inline(never)]
fn resolve_further(
    row: Option<&'static Command>,
    args: Args<'_>,
) -> Result<&'static Command, CommandError> {
    let Some(row) = row else {
        return Err(unknown_command(args));
    };
    let row = row
        .for_call(args)
        .ok_or_else(|| unknown_subcommand(row, args))?;
    if row.check_arity(args.len()) {
        Ok(row)
    } else {
        Err(CommandError::wrong_arity(row.name))
    }
}

#[cold]
fn unknown_command(args: Args<'_>) -> CommandError {
    let name = args.get(0).unwrap_or_default();
    if CLUSTER
        .iter()
        .any(|known| name.eq_ignore_ascii_case(known.as_bytes()))
    {
        return NO_CLUSTER;
    }
    let mut quoted = String::new();
    for arg in args.iter().skip(1) {
        if quoted.len() >= QUOTE_MAX {
            break;
        }
        let room = QUOTE_MAX - quoted.len();
        let shown = String::from_utf8_lossy(&arg[..arg.len().min(room)]);
        quoted.push('\'');
        quoted.push_str(&shown);
        quoted.push_str("' ");
    }
    CommandError::quoting(format!(
        "ERR unknown command '{}', with args beginning with: {quoted}",
        String::from_utf8_lossy(&name[..name.len().min(QUOTE_MAX)]),
    ))
}

#[cold]
fn unknown_subcommand(row: &Command, args: Args<'_>) -> CommandError {
    let name = args.get(1).unwrap_or_default();
    CommandError::quoting(format!(
        "ERR unknown subcommand '{}'. Try {} HELP.",
        String::from_utf8_lossy(&name[..name.len().min(QUOTE_MAX)]),
        row.name.to_ascii_uppercase(),
    ))
}
