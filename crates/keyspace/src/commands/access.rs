//! What access control asks of rows: their categories, and what a call does to the keys that it
//! names.

use tidewheel_resp::Args;

use super::sort;
use crate::rows::{Command, Flags, Group};

/// All access-control categories, in the order in which they are reported.
pub const CATEGORIES: [&str; 21] = [
    "@keyspace",
    "@read",
    "@write",
    "@set",
    "@sortedset",
    "@list",
    "@hash",
    "@string",
    "@bitmap",
    "@hyperloglog",
    "@geo",
    "@stream",
    "@pubsub",
    "@admin",
    "@fast",
    "@slow",
    "@blocking",
    "@dangerous",
    "@connection",
    "@transaction",
    "@scripting",
];

/// SORT's use of the key behind STORE, which no key specification can find.
const STORED: &str = "OW update";

/// Marks a key of which the options say how the command uses it.
const VARIABLE_FLAGS: &str = "variable_flags";

/// A key that a call names, and what the call does to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyUse {
    /// Its position among the arguments.
    pub at: usize,
    /// The reply depends on the value.
    pub reads: bool,
    /// The value may come, change or go.
    pub writes: bool,
}

impl Command {
    /// Access-control categories: those that the row names, and those that follow from its flags.
    pub fn all_categories(&self) -> impl Iterator<Item = &'static str> + '_ {
        let implied = [
            ("@write", self.flags.has(Flags::WRITE)),
            (
                "@read",
                self.flags.has(Flags::READONLY) && self.group() != Group::Scripting,
            ),
            ("@admin", self.flags.has(Flags::ADMIN)),
            ("@dangerous", self.flags.has(Flags::ADMIN)),
            ("@pubsub", self.flags.has(Flags::PUBSUB)),
            ("@fast", self.flags.has(Flags::FAST)),
            ("@slow", !self.flags.has(Flags::FAST)),
            ("@blocking", self.flags.has(Flags::BLOCKING)),
        ];
        let named = move |wanted| self.categories().any(|name| name == wanted);
        CATEGORIES
            .into_iter()
            .filter(move |name| named(*name) || implied.contains(&(name, true)))
    }

    /// The keys that a call names, and what it does to each.
    pub fn uses_of_keys(&self, call: Args<'_>) -> impl Iterator<Item = KeyUse> {
        let positions = self.positions_of_keys(call).enumerate();
        positions.map(move |(i, at)| {
            let words = self.use_of_key(i, call);
            let does =
                |wanted: &[&str]| words.split_whitespace().any(|word| wanted.contains(&word));
            KeyUse {
                at,
                reads: does(&["access"]),
                writes: does(&["insert", "update", "delete"]),
            }
        })
    }

    /// The positions of the keys that a call names.
    pub(crate) fn positions_of_keys(&self, call: Args<'_>) -> impl Iterator<Item = usize> {
        let stores = self.reaches && self.flags.has(Flags::WRITE);
        let stored = stores.then(|| sort::stored_at(call)).flatten();
        self.keys.positions(call).chain(stored)
    }

    /// What a call does to its key of that number, in COMMAND INFO's words.
    pub(crate) fn use_of_key(&self, number: usize, call: Args<'_>) -> &'static str {
        let uses = self.keys.uses();
        // Each specification covers one key, and the last one the rest.
        match uses.get(number).or(uses.last()) {
            _ if self.reaches && number > 0 => STORED,
            Some(flags) => flags_of_call(flags, call),
            None => "",
        }
    }
}

/// The use that a call makes of its key.
fn flags_of_call(flags: &'static str, call: Args<'_>) -> &'static str {
    if !flags.ends_with(VARIABLE_FLAGS) {
        flags
    } else if call
        .get(0)
        .is_some_and(|name| name.eq_ignore_ascii_case(b"bitfield"))
    {
        flags_of_bitfield(call)
    } else {
        flags_of_set(call)
    }
}

/// BITFIELD changes its key, unless all that it does is GET.
fn flags_of_bitfield(call: Args<'_>) -> &'static str {
    let mut i = 2;
    while let Some(word) = call.get(i) {
        let left = call.len() - i - 1;
        i += match () {
            () if word.eq_ignore_ascii_case(b"GET") && left >= 2 => 3,
            () if word.eq_ignore_ascii_case(b"OVERFLOW") && left >= 1 => 2,
            () => return "RW access update",
        };
    }
    "RO access"
}

/// SET reads the old value to reply it, or to compare it: the reply says how that ended. A time
/// that is spelt as such an option counts too, as in the public servers.
fn flags_of_set(call: Args<'_>) -> &'static str {
    let reads = |option: &[u8]| {
        let options: [&[u8]; 3] = [b"GET", b"IFEQ", b"IFNE"];
        options.iter().any(|one| option.eq_ignore_ascii_case(one))
    };
    match call.iter().skip(3).any(reads) {
        true => "RW access update",
        false => "OW update",
    }
}
