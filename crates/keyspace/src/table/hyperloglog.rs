//! Rows: HyperLogLogs.

use crate::command::{Adds, Argument, Command, Flags, Group, Handler, KeySpec, KeyUse};
use crate::commands::hyperloglog;
use crate::long::Cost;

const GROWS: Flags = Flags::WRITE.or(Flags::DENYOOM);

const HYPERLOGLOG: Command = Command {
    group: Group::HyperLogLog,
    categories: &["@hyperloglog"],
    since: "2.8.9",
    slow: true,
    ..Command::BASE
};

const READ: KeyUse = KeyUse {
    flags: &["RO", "access"],
};
/// Counting keeps the estimate in the value.
const COUNT: KeyUse = KeyUse {
    flags: &["RW", "access"],
};
const ADD: KeyUse = KeyUse {
    flags: &["RW", "insert"],
};
const MERGE: KeyUse = KeyUse {
    flags: &["RW", "access", "insert"],
};

const KEY: Argument = Argument::key("key");

pub(super) static ROWS: &[Command] = &[
    Command {
        name: "pfadd",
        cost: Cost::arguments(200),
        summary: "Adds elements to a HyperLogLog key. Creates the key if it doesn't exist.",
        complexity: "O(1) to add every element.",
        arity: -2,
        flags: GROWS.or(Flags::FAST),
        keys: KeySpec::one(1, &[ADD]),
        adds: Adds::Registers,
        arguments: &[KEY, Argument::string("element").multiple().optional()],
        handler: Handler::Keys(hyperloglog::pfadd),
        ..HYPERLOGLOG
    },
    Command {
        name: "pfcount",
        cost: Cost::arguments(5_000),
        summary: "Returns the approximated cardinality of the set(s) observed by the HyperLogLog key(s).",
        complexity: "O(1) with a very small average constant time when called with a single key. O(N) \
                     with N being the number of keys, and much bigger constant times, when called with \
                     multiple keys.",
        arity: -2,
        flags: Flags::READONLY.or(Flags::MAY_REPLICATE),
        keys: KeySpec::all(1, &[COUNT]),
        arguments: &[KEY.multiple()],
        handler: Handler::Keys(hyperloglog::pfcount),
        ..HYPERLOGLOG
    },
    Command {
        name: "pfdebug",
        summary: "Internal commands for debugging HyperLogLog values.",
        complexity: "N/A",
        arity: 3,
        flags: GROWS.or(Flags::ADMIN),
        keys: KeySpec::one(2, &[COUNT]),
        adds: Adds::Registers,
        arguments: &[Argument::string("subcommand"), KEY],
        handler: Handler::Keys(hyperloglog::pfdebug),
        ..HYPERLOGLOG
    },
    Command {
        name: "pfmerge",
        cost: Cost::arguments(5_000),
        summary: "Merges one or more HyperLogLog values into a single key.",
        complexity: "O(N) to merge N HyperLogLogs, but with high constant times.",
        arity: -2,
        flags: GROWS,
        keys: KeySpec::all(1, &[MERGE, READ]),
        adds: Adds::Registers,
        arguments: &[
            Argument::key("destkey"),
            Argument::key_of("sourcekey", 1).multiple().optional(),
        ],
        handler: Handler::Keys(hyperloglog::pfmerge),
        ..HYPERLOGLOG
    },
    Command {
        name: "pfselftest",
        summary: "An internal command for testing HyperLogLog values.",
        complexity: "N/A",
        arity: 1,
        flags: Flags::ADMIN,
        handler: Handler::Keys(hyperloglog::pfselftest),
        ..HYPERLOGLOG
    },
];
