//! One row of the command table. It describes a command; the function that runs it is elsewhere.

use super::cost::Cost;
use super::flags::Flags;
use super::keys::KeySpec;
use super::kinds::{Adds, Group};
use super::syntax;
use super::syntax::Argument;
use crate::records::Recorded;

/// One command or subcommand: its shape and its documentation.
///
/// COMMAND and its documentation, the positions of keys and the check of arity follow from these
/// rows. The function that runs a row is found by its number.
#[derive(Debug, Clone, Copy)]
pub struct Command {
    /// Its place in the table.
    pub number: u16,
    /// Lower-case full name; a subcommand's is `parent|name`.
    pub name: &'static str,
    /// Number of arguments, name included; `-n` means at least `n`.
    pub arity: i32,
    /// Its effects, and the places where it may run.
    pub flags: Flags,
    /// The positions of the keys among the arguments.
    pub keys: KeySpec,
    /// True if its time may depend on more than the size of its request and of its reply: it reads
    /// or moves whole values. Commands without keys count as slow without this.
    pub slow: bool,
    /// Its cost, where that grows with its arguments or its values.
    pub(crate) cost: Cost,
    /// True if a call may look at keys that none of its arguments names (SORT).
    pub(crate) reaches: bool,
    /// The argument that is stored as it is (the one after each key, if there are many keys); 0 if
    /// none. Large ones are copied before a lock is taken.
    pub(crate) stored_argument: u32,
    /// The data that it adds.
    pub(crate) adds: Adds,
    /// How it is recorded, if it changes data.
    pub(crate) recorded: Recorded,
    /// The number of its subcommands: the rows behind it. A row that has some is never run itself.
    pub(super) subcommands: u16,
    /// One sentence.
    pub summary: &'static str,
    /// The protocol version that introduced it.
    pub since: &'static str,
    /// Its cost, in words.
    pub complexity: &'static str,
    group: Option<Group>,
    categories: &'static str,
    tips: &'static str,
    syntax: &'static str,
    /// Changes in later versions: (version, change).
    pub history: &'static [(&'static str, &'static str)],
    /// The command that took its place: (version, command).
    pub replaced_by: Option<(&'static str, &'static str)>,
}

/// The rows of a chapter, of which most have this group and these categories.
pub(super) const fn chapter<const N: usize>(
    group: Group,
    categories: &'static str,
    mut rows: [Command; N],
) -> [Command; N] {
    let mut i = 0;
    while i < N {
        if rows[i].group.is_none() {
            rows[i].group = Some(group);
        }
        if rows[i].categories.is_empty() {
            rows[i].categories = categories;
        }
        i += 1;
    }
    rows
}

/// A command without keys, of which nothing else is said; see [`Argument`] for its syntax.
pub(super) const fn row(
    name: &'static str,
    arity: i32,
    flags: &str,
    syntax: &'static str,
) -> Command {
    Command {
        number: 0,
        name,
        arity,
        flags: Flags::of(flags),
        keys: KeySpec::NONE,
        slow: false,
        cost: Cost::NONE,
        reaches: false,
        stored_argument: 0,
        adds: Adds::Arguments,
        recorded: Recorded::AsSent,
        subcommands: 0,
        summary: "",
        since: "1.0.0",
        complexity: "O(1)",
        group: None,
        categories: "",
        tips: "",
        syntax,
        history: &[],
        replaced_by: None,
    }
}

/// Functions with which a chapter describes its rows.
impl Command {
    /// One sentence.
    pub(super) const fn says(self, summary: &'static str) -> Self {
        Self { summary, ..self }
    }

    /// The protocol version that introduced it, if not the first.
    pub(super) const fn since(self, since: &'static str) -> Self {
        Self { since, ..self }
    }

    /// Its cost in words, if it grows.
    pub(super) const fn complexity(self, complexity: &'static str) -> Self {
        Self { complexity, ..self }
    }

    /// The first argument is its only key, and this is done to it.
    pub(super) const fn key(self, uses: &'static str) -> Self {
        self.keys(KeySpec::one(1, uses))
    }

    pub(super) const fn keys(self, keys: KeySpec) -> Self {
        Self { keys, ..self }
    }

    pub(super) const fn cost(self, cost: Cost) -> Self {
        Self { cost, ..self }
    }

    pub(super) const fn slow(self) -> Self {
        Self { slow: true, ..self }
    }

    pub(super) const fn reaches(self) -> Self {
        Self {
            reaches: true,
            ..self
        }
    }

    pub(super) const fn stored_argument(self, stored_argument: u32) -> Self {
        Self {
            stored_argument,
            ..self
        }
    }

    pub(super) const fn adds(self, adds: Adds) -> Self {
        Self { adds, ..self }
    }

    /// It makes keys of others, so what it has made is recorded.
    pub(super) const fn recorded_as_result(self) -> Self {
        Self {
            recorded: Recorded::AsResult,
            ..self
        }
    }

    /// Its group, if not the chapter's.
    pub(super) const fn in_group(self, group: Group) -> Self {
        Self {
            group: Some(group),
            ..self
        }
    }

    /// Its categories, if not the chapter's, beyond those that follow from the flags; `-` for none.
    pub(super) const fn in_categories(self, categories: &'static str) -> Self {
        Self { categories, ..self }
    }

    /// Hints for clients that split requests over servers.
    pub(super) const fn hints(self, tips: &'static str) -> Self {
        Self { tips, ..self }
    }

    pub(super) const fn history(self, history: &'static [(&'static str, &'static str)]) -> Self {
        Self { history, ..self }
    }

    pub(super) const fn replaced_by(self, since: &'static str, by: &'static str) -> Self {
        Self {
            replaced_by: Some((since, by)),
            ..self
        }
    }
}

impl Command {
    /// True if `n_args`, name included, is an acceptable number of arguments.
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

    /// True if a call may look at keys that none of its arguments names (SORT).
    #[must_use]
    pub fn reaches_others(&self) -> bool {
        self.reaches
    }

    /// True if it has subcommands. Then it is never run itself.
    #[inline]
    #[must_use]
    pub fn has_subcommands(&self) -> bool {
        self.subcommands != 0
    }

    /// The name without the parent's.
    #[must_use]
    pub fn short_name(&self) -> &'static str {
        self.name
            .split_once('|')
            .map_or(self.name, |(_, short)| short)
    }

    /// The documentation's chapter.
    #[must_use]
    pub fn group(&self) -> Group {
        self.group.unwrap_or(Group::Generic)
    }

    /// Access-control categories beyond those that follow from the flags.
    pub fn categories(&self) -> impl Iterator<Item = &'static str> {
        self.categories.split(' ').filter(|name| *name != "-")
    }

    /// Hints for clients that split requests over servers.
    pub fn tips(&self) -> impl Iterator<Item = &'static str> {
        self.tips.split(' ').filter(|tip| !tip.is_empty())
    }

    /// Its syntax. Reads the row's text anew.
    #[must_use]
    pub fn arguments(&self) -> Vec<Argument> {
        syntax::read(self.syntax)
    }
}
