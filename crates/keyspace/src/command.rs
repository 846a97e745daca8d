//! One row of the command table: what a command looks like, what it needs, and who runs it.

use tidewheel_resp::Args;

use crate::context::Context;
pub use crate::error::CommandError;
use crate::long::Cost;
pub(crate) use crate::shape::Adds;
pub use crate::shape::{Argument, ArgumentKind, Flags, Group, KeySpec, KeyUse};
use crate::steps::WalkFn;

/// One command or subcommand: its shape, its documentation and who runs it.
///
/// COMMAND, its documentation, key extraction, arity checks and dispatch all follow from these
/// rows.
#[derive(Debug)]
pub struct Command {
    /// Lower-case full name; a subcommand's is `parent|name`.
    pub name: &'static str,
    /// One sentence.
    pub summary: &'static str,
    /// The protocol version that introduced it.
    pub since: &'static str,
    /// The documentation's chapter.
    pub group: Group,
    /// Its cost, in words.
    pub complexity: &'static str,
    /// Number of arguments, name included; `-n` means at least `n`.
    pub arity: i32,
    /// What it does and where it may run.
    pub flags: Flags,
    /// Access-control categories beyond those that follow from the flags.
    pub categories: &'static [&'static str],
    /// Hints for clients that split requests over servers.
    pub tips: &'static [&'static str],
    /// Whether its time may depend on more than the size of its request and of its reply: it reads
    /// or moves whole values. Commands without keys count as slow without this.
    pub slow: bool,
    /// Where the keys are among the arguments.
    pub keys: KeySpec,
    /// What it costs, where that grows with what it is about.
    pub(crate) cost: Cost,
    /// Whether a call may look at keys that none of its arguments names (SORT).
    pub(crate) reaches: bool,
    /// The argument that is stored as it is (the one after each key, if there are many keys); 0 if
    /// none. Large ones are copied before a lock is taken.
    pub(crate) stored_argument: u32,
    /// What it adds to the data.
    pub(crate) adds: Adds,
    /// Syntax.
    pub arguments: &'static [Argument],
    /// What later versions added: (version, change).
    pub history: &'static [(&'static str, &'static str)],
    /// The command that took its place: (version, command).
    pub replaced_by: Option<(&'static str, &'static str)>,
    /// Its subcommands; a row that has some is never run itself.
    pub subcommands: &'static [Self],
    /// Who runs it.
    pub handler: Handler,
}

impl Command {
    /// The row that others are written as differences from.
    pub(crate) const BASE: Self = Self {
        name: "",
        summary: "",
        since: "1.0.0",
        group: Group::Generic,
        complexity: "O(1)",
        arity: 1,
        flags: Flags::NONE,
        categories: &[],
        tips: &[],
        slow: false,
        cost: Cost::NONE,
        keys: KeySpec::NONE,
        reaches: false,
        stored_argument: 0,
        adds: Adds::Arguments,
        arguments: &[],
        history: &[],
        replaced_by: None,
        subcommands: &[],
        handler: Handler::Container,
    };

    /// Whether a call with `n_args` arguments (name included) has an acceptable number of them.
    #[inline]
    #[must_use]
    pub fn check_arity(&self, n_args: usize) -> bool {
        let least = self.arity.unsigned_abs() as usize;
        if self.arity >= 0 {
            n_args == least
        } else {
            n_args >= least
        }
    }

    /// The subcommand of that name (case-insensitive), without its parent's name.
    #[must_use]
    pub fn subcommand(&self, name: &[u8]) -> Option<&'static Self> {
        self.subcommands
            .iter()
            .find(|sub| sub.short_name().as_bytes().eq_ignore_ascii_case(name))
    }

    /// The row that a call of this one means: its subcommand, if the call names one. `None` if
    /// there is none of that name.
    #[inline]
    pub(crate) fn for_call(&'static self, args: Args<'_>) -> Option<&'static Self> {
        match (self.subcommands, args.get(1)) {
            ([], _) | (_, None) => Some(self),
            (_, Some(name)) => self.subcommand(name),
        }
    }

    /// The name without the parent's.
    #[must_use]
    pub fn short_name(&self) -> &'static str {
        self.name
            .split_once('|')
            .map_or(self.name, |(_, short)| short)
    }

    /// The parent's name; empty without a parent.
    pub(crate) fn parent_name(&self) -> &'static str {
        self.name.split_once('|').map_or("", |(parent, _)| parent)
    }
}

/// Who runs a command.
#[derive(Debug, Clone, Copy)]
pub enum Handler {
    /// The keyspace.
    Keys(HandlerFn),
    /// The keyspace, while no other thread uses it.
    Whole(HandlerFn),
    /// The keyspace, in steps.
    Walk(WalkFn),
    /// The keyspace, from the table of commands.
    Table(TableFn),
    /// The keyspace: the reply is made of these subcommands' rows.
    Help(&'static &'static [Command]),
    /// The server around the keyspace, which finds its handler by the row's name.
    Host,
    /// Nobody: the row only holds subcommands.
    Container,
}

/// A keyspace command's body. It runs with its keys' shards locked, or alone.
pub type HandlerFn = fn(&mut Context<'_, '_>) -> Result<(), CommandError>;

/// The body of a command that replies with rows of the table.
pub type TableFn = fn(&mut Context<'_, '_>, &Rows) -> Result<(), CommandError>;

/// The table, as the commands see it that reply with its rows.
#[derive(Debug)]
pub struct Rows {
    /// The rows without a parent, in their order.
    pub(crate) all: &'static [&'static Command],
    /// Finds one of them by its name, whatever its case.
    pub(crate) find: fn(&[u8]) -> Option<&'static Command>,
}
