//! A set of commands, and the rules that have made it.

use std::sync::LazyLock;

use tidewheel_keyspace::rows::{COUNT, Flags, all_rows, lookup};
use tidewheel_keyspace::{CATEGORIES, Command};
use tidewheel_resp::Args;

use super::rule_error::{PARTS_MAX, RuleError};

const WORDS: usize = COUNT.div_ceil(64);

/// The rows of each category.
static ROWS_OF: LazyLock<Vec<(&str, Vec<&Command>)>> = LazyLock::new(|| {
    let of = |category| {
        let is_in = |row: &&Command| row.all_categories().any(|name| name == category);
        (category, all_rows().iter().filter(is_in).collect())
    };
    CATEGORIES.into_iter().map(of).collect()
});

/// Commands that may be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AllowedCommands {
    /// The last rule about all commands was `+@all`.
    from_all: bool,
    /// Rules since then, in their order: whether they allow, and what.
    rules: Vec<(bool, String)>,
    /// A bit for each row.
    rows: [u64; WORDS],
    /// Rows that may be called with one first argument, although they may not be called.
    first_arguments: Vec<(u16, Vec<u8>)>,
}

impl AllowedCommands {
    pub(super) const NONE: Self = Self {
        from_all: false,
        rules: Vec::new(),
        rows: [0; WORDS],
        first_arguments: Vec::new(),
    };

    pub(super) fn allow_all(&mut self) {
        *self = Self::NONE;
        self.from_all = true;
        all_rows().iter().for_each(|row| self.set(row, true));
    }

    pub(super) fn are_all(&self) -> bool {
        all_rows().iter().all(|row| self.has(row))
    }

    pub(super) fn allow(&self, row: &Command, args: Args<'_>) -> bool {
        let first = || args.get(1 + usize::from(row.name.contains('|')));
        let may_with = |first: &[u8]| {
            let allowed = self.first_arguments.iter();
            allowed
                .filter(|(number, _)| *number == row.number)
                .any(|(_, allowed)| allowed.eq_ignore_ascii_case(first))
        };
        // Who may not log in may do nothing else.
        self.has(row) || row.flags.has(Flags::NO_AUTH) || first().is_some_and(may_with)
    }

    fn has(&self, row: &Command) -> bool {
        let number = usize::from(row.number);
        self.rows[number / 64] >> (number % 64) & 1 == 1
    }

    fn set(&mut self, row: &Command, allow: bool) {
        let number = usize::from(row.number);
        let bit = 1 << (number % 64);
        match allow {
            true => self.rows[number / 64] |= bit,
            false => self.rows[number / 64] &= !bit,
        }
        self.first_arguments
            .retain(|(known, _)| *known != row.number);
    }

    /// Allows or denies a command with all its subcommands.
    fn set_whole(&mut self, row: &Command, allow: bool) {
        self.set(row, allow);
        for sub in row.subcommands() {
            self.set(sub, allow);
        }
    }

    /// Follows a rule: a name or an `@category`.
    pub(super) fn change(&mut self, allow: bool, what: &[u8]) -> Result<(), RuleError> {
        let text = std::str::from_utf8(what).map_err(|_| RuleError::UnknownCommand)?;
        let is_space = |letter: char| letter.is_whitespace() || letter == '\0';
        if text.contains(is_space) {
            return Err(RuleError::Syntax);
        }
        let text = text.to_ascii_lowercase();
        if text.starts_with('@') {
            self.change_category(allow, &text)?;
        } else if let Some(row) = find(&text) {
            self.set_whole(row, allow);
        } else if allow
            && !is_of_others(&text)
            && let Some((name, first)) = text.rsplit_once('|')
        {
            self.add_first_argument(name, first)?;
        } else if !is_of_others(&text) {
            return Err(RuleError::UnknownCommand);
        }
        self.note(allow, text);
        Ok(())
    }

    fn change_category(&mut self, allow: bool, category: &str) -> Result<(), RuleError> {
        if !CATEGORIES.contains(&category) {
            return Err(RuleError::UnknownCommand);
        }
        let rows = ROWS_OF.iter().find(|(name, _)| *name == category);
        for row in rows.into_iter().flat_map(|(_, rows)| rows) {
            self.set_whole(row, allow);
        }
        Ok(())
    }

    fn add_first_argument(&mut self, name: &str, first: &str) -> Result<(), RuleError> {
        let row = find(name).ok_or(RuleError::UnknownCommand)?;
        if row.name.contains('|') {
            return Err(RuleError::FirstArgumentOfSubcommand);
        }
        if first.is_empty() {
            return Err(RuleError::Syntax);
        }
        if row.has_subcommands() {
            return Err(RuleError::UnknownCommand);
        }
        let new = (row.number, first.as_bytes().to_vec());
        if !self.first_arguments.contains(&new) {
            if self.first_arguments.len() == PARTS_MAX {
                return Err(RuleError::TooMany);
            }
            self.first_arguments.push(new);
        }
        Ok(())
    }

    /// Notes a rule. It takes the place of an earlier one about the same, and about its
    /// subcommands.
    fn note(&mut self, allow: bool, what: String) {
        let is_same = |known: &str| {
            let rest = known.strip_prefix(what.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('|'))
        };
        self.rules.retain(|(_, known)| !is_same(known));
        self.rules.push((allow, what));
    }

    /// The rules that make it.
    pub(super) fn rules(&self) -> String {
        let mut text = (if self.from_all { "+@all" } else { "-@all" }).to_owned();
        for (allow, what) in &self.rules {
            text.push_str(if *allow { " +" } else { " -" });
            text.push_str(what);
        }
        text
    }
}

/// True if other servers have that command. Rules about it are kept, and mean nothing.
fn is_of_others(name: &str) -> bool {
    const NAMES: &[&str] = &[
        "asking",
        "cluster",
        "failover",
        "migrate",
        "module",
        "psync",
        "readonly",
        "readwrite",
        "replconf",
        "replicaof",
        "sentinel",
        "slaveof",
        "sync",
        // Here it has other subcommands.
        "debug",
    ];
    let (parent, sub) = name.split_once('|').unwrap_or((name, "all"));
    NAMES.contains(&parent) && !sub.is_empty() && !sub.contains('|')
}

/// The row of a full name, `parent|name` for subcommands.
fn find(name: &str) -> Option<&'static Command> {
    match name.split_once('|') {
        None => lookup(name.as_bytes()),
        Some((parent, sub)) => lookup(parent.as_bytes())?.subcommand(sub.as_bytes()),
    }
}
