//! Rows: MEMORY and DEBUG, which look inside.

use crate::command::{Argument, Command, Flags, Group, Handler, KeySpec, KeyUse};
use crate::commands;

const ANYTIME: Flags = Flags::LOADING.or(Flags::STALE);
const ADMIN: Flags = Flags::ADMIN.or(Flags::NOSCRIPT).or(ANYTIME);
const READ: &[KeyUse] = &[KeyUse { flags: &["RO"] }];

const SERVER: Command = Command {
    group: Group::Server,
    ..Command::BASE
};

pub(super) static ROWS: &[Command] = &[
    Command {
        name: "debug",
        summary: "A container for debugging commands.",
        complexity: "Depends on subcommand.",
        arity: -2,
        subcommands: DEBUG,
        ..SERVER
    },
    Command {
        name: "memory",
        summary: "A container for memory diagnostics commands.",
        since: "4.0.0",
        complexity: "Depends on subcommand.",
        arity: -2,
        subcommands: MEMORY,
        ..SERVER
    },
];

const DEBUG_BASE: Command = Command {
    arity: 2,
    flags: ADMIN,
    handler: Handler::Host,
    ..SERVER
};

static DEBUG: &[Command] = &[
    Command {
        name: "debug|digest",
        summary: "Returns a digest of all data: equal data has an equal digest.",
        complexity: "O(N) where N is the size of the data",
        slow: true,
        handler: Handler::Whole(commands::debug::digest),
        ..DEBUG_BASE
    },
    Command {
        name: "debug|digest-value",
        summary: "Returns a digest of each key's value.",
        complexity: "O(N) where N is the size of the values",
        arity: -2,
        slow: true,
        keys: KeySpec {
            first: 2,
            last: -1,
            step: 1,
            counted: 0,
            stored_from: 0,
            uses: READ,
        },
        arguments: &[Argument::key("key").optional().multiple()],
        handler: Handler::Keys(commands::debug::digest_value),
        ..DEBUG_BASE
    },
    Command {
        name: "debug|error",
        summary: "Returns an error with this text.",
        arity: 3,
        arguments: &[Argument::string("message")],
        ..DEBUG_BASE
    },
    Command {
        name: "debug|help",
        summary: "Returns helpful text about the different subcommands.",
        ..DEBUG_BASE
    },
    Command {
        name: "debug|listpack",
        summary: "Returns the size of a collection that is packed into one block.",
        arity: 3,
        keys: KeySpec::one(2, READ),
        arguments: &[Argument::key("key")],
        handler: Handler::Keys(commands::debug::listpack),
        ..DEBUG_BASE
    },
    Command {
        name: "debug|loadaof",
        summary: "Is refused: there is no append-only file.",
        ..DEBUG_BASE
    },
    Command {
        name: "debug|log",
        summary: "Writes a line to the server's log.",
        arity: 3,
        arguments: &[Argument::string("message")],
        ..DEBUG_BASE
    },
    Command {
        name: "debug|object",
        summary: "Returns what is known of a key's value inside.",
        complexity: "O(N) where N is the size of the value",
        arity: 3,
        slow: true,
        keys: KeySpec::one(2, READ),
        arguments: &[Argument::key("key")],
        handler: Handler::Keys(commands::debug::object),
        ..DEBUG_BASE
    },
    Command {
        name: "debug|pause-cron",
        summary: "Is accepted without effect: nothing is done periodically.",
        arity: 3,
        arguments: &[Argument::integer("enabled")],
        ..DEBUG_BASE
    },
    Command {
        name: "debug|protocol",
        summary: "Returns an example of a type of the protocol.",
        arity: 3,
        arguments: &[Argument::string("type")],
        ..DEBUG_BASE
    },
    Command {
        name: "debug|quicklist-packed-threshold",
        summary: "Is accepted without effect: lists decide by themselves.",
        arity: 3,
        arguments: &[Argument::string("size")],
        ..DEBUG_BASE
    },
    Command {
        name: "debug|reload",
        summary: "Is refused: there are no snapshots.",
        arity: -2,
        arguments: &[Argument::string("option").optional().multiple()],
        ..DEBUG_BASE
    },
    Command {
        name: "debug|set-active-expire",
        summary: "Switches the active side of expiry on (1) or off (0); reads still see dead keys as gone.",
        arity: 3,
        arguments: &[Argument::integer("enabled")],
        ..DEBUG_BASE
    },
    Command {
        name: "debug|set-skip-checksum-validation",
        summary: "Lets RESTORE take payloads whose checksum is wrong (1), or not (0).",
        arity: 3,
        arguments: &[Argument::integer("enabled")],
        ..DEBUG_BASE
    },
    Command {
        name: "debug|sleep",
        summary: "Holds up the calling connection's event loop.",
        arity: 3,
        slow: true,
        arguments: &[Argument::double("seconds")],
        ..DEBUG_BASE
    },
    Command {
        name: "debug|stringmatch-len",
        summary: "Returns whether a pattern matches a string.",
        complexity: "O(N*M) where N and M are the lengths of pattern and string",
        arity: 4,
        slow: true,
        arguments: &[Argument::pattern("pattern"), Argument::string("string")],
        ..DEBUG_BASE
    },
];

const MEMORY_BASE: Command = Command {
    since: "4.0.0",
    arity: 2,
    handler: Handler::Host,
    ..SERVER
};

const REPORT_TIPS: &[&str] = &[
    "nondeterministic_output",
    "request_policy:all_shards",
    "response_policy:special",
];

static MEMORY: &[Command] = &[
    Command {
        name: "memory|doctor",
        summary: "Says in words what is wrong with the memory.",
        tips: REPORT_TIPS,
        ..MEMORY_BASE
    },
    Command {
        name: "memory|help",
        summary: "Returns helpful text about the different subcommands.",
        flags: ANYTIME,
        handler: Handler::Help(&MEMORY),
        ..MEMORY_BASE
    },
    Command {
        name: "memory|malloc-stats",
        summary: "Returns what the allocator says of itself.",
        tips: REPORT_TIPS,
        ..MEMORY_BASE
    },
    Command {
        name: "memory|purge",
        summary: "Has memory tidied and given back soon.",
        tips: &["request_policy:all_shards", "response_policy:all_succeeded"],
        ..MEMORY_BASE
    },
    Command {
        name: "memory|stats",
        summary: "Returns where the memory is.",
        tips: REPORT_TIPS,
        ..MEMORY_BASE
    },
    Command {
        name: "memory|usage",
        summary: "Estimates the memory usage of a key.",
        complexity: "O(N) where N is the number of samples.",
        arity: -3,
        flags: Flags::READONLY,
        keys: KeySpec::one(2, READ),
        arguments: &[
            Argument::key("key"),
            Argument::integer("count").after("SAMPLES").optional(),
        ],
        handler: Handler::Keys(commands::object::memory_usage),
        ..MEMORY_BASE
    },
];
