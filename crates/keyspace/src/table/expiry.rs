//! Rows: how long keys live.

use crate::command::{Argument, Command, Flags, Group, Handler, KeySpec, KeyUse};
use crate::commands::{expire, expiry};

const READ: KeyUse = KeyUse {
    flags: &["RO", "access"],
};
const UPDATE: KeyUse = KeyUse {
    flags: &["RW", "update"],
};

const FAST_READ: Flags = Flags::READONLY.or(Flags::FAST);
const FAST_WRITE: Flags = Flags::WRITE.or(Flags::FAST);

const GENERIC: Command = Command {
    categories: &["@keyspace"],
    ..Command::BASE
};
const SETS_DEADLINE: Command = Command {
    arity: -3,
    flags: FAST_WRITE,
    keys: KeySpec::one(1, &[UPDATE]),
    history: &[("7.0.0", "Added options: `NX`, `XX`, `GT` and `LT`.")],
    ..GENERIC
};
const READS_DEADLINE: Command = Command {
    arity: 2,
    flags: FAST_READ,
    keys: KeySpec::one(1, &[READ]),
    arguments: &[KEY],
    ..GENERIC
};
const EXPIRY: Command = Command {
    group: Group::Expiry,
    since: "7.2.0",
    ..Command::BASE
};

const KEY: Argument = Argument::key("key");
const CONDITION: Argument = Argument::one_of(
    "condition",
    &[
        Argument::word("nx", "NX"),
        Argument::word("xx", "XX"),
        Argument::word("gt", "GT"),
        Argument::word("lt", "LT"),
    ],
)
.optional()
.since("7.0.0");

pub(super) static ROWS: &[Command] = &[
    Command {
        name: "expire",
        summary: "Sets the expiration time of a key in seconds.",
        arguments: &[KEY, Argument::integer("seconds"), CONDITION],
        handler: Handler::Keys(expire::expire),
        ..SETS_DEADLINE
    },
    Command {
        name: "expireat",
        summary: "Sets the expiration time of a key to a Unix timestamp.",
        since: "1.2.0",
        arguments: &[KEY, Argument::unix_time("unix-time-seconds"), CONDITION],
        handler: Handler::Keys(expire::expireat),
        ..SETS_DEADLINE
    },
    Command {
        name: "expiretime",
        summary: "Returns the expiration time of a key as a Unix timestamp.",
        since: "7.0.0",
        handler: Handler::Keys(expire::expiretime),
        ..READS_DEADLINE
    },
    Command {
        name: "expiry",
        summary: "A container for commands on expiry as a whole.",
        complexity: "Depends on subcommand.",
        arity: -2,
        subcommands: EXPIRY_SUBCOMMANDS,
        ..EXPIRY
    },
    Command {
        name: "persist",
        summary: "Removes the expiration time of a key.",
        since: "2.2.0",
        arity: 2,
        flags: FAST_WRITE,
        keys: KeySpec::one(1, &[UPDATE]),
        arguments: &[KEY],
        handler: Handler::Keys(expire::persist),
        ..GENERIC
    },
    Command {
        name: "pexpire",
        summary: "Sets the expiration time of a key in milliseconds.",
        since: "2.6.0",
        arguments: &[KEY, Argument::integer("milliseconds"), CONDITION],
        handler: Handler::Keys(expire::pexpire),
        ..SETS_DEADLINE
    },
    Command {
        name: "pexpireat",
        summary: "Sets the expiration time of a key to a Unix milliseconds timestamp.",
        since: "2.6.0",
        arguments: &[
            KEY,
            Argument::unix_time("unix-time-milliseconds"),
            CONDITION,
        ],
        handler: Handler::Keys(expire::pexpireat),
        ..SETS_DEADLINE
    },
    Command {
        name: "pexpiretime",
        summary: "Returns the expiration time of a key as a Unix milliseconds timestamp.",
        since: "7.0.0",
        handler: Handler::Keys(expire::pexpiretime),
        ..READS_DEADLINE
    },
    Command {
        name: "pttl",
        summary: "Returns the expiration time in milliseconds of a key.",
        since: "2.6.0",
        tips: &["nondeterministic_output"],
        history: &[("2.8.0", "Added the -2 reply.")],
        handler: Handler::Keys(expire::pttl),
        ..READS_DEADLINE
    },
    Command {
        name: "ttl",
        summary: "Returns the expiration time in seconds of a key.",
        tips: &["nondeterministic_output"],
        history: &[("2.8.0", "Added the -2 reply.")],
        handler: Handler::Keys(expire::ttl),
        ..READS_DEADLINE
    },
];

static EXPIRY_SUBCOMMANDS: &[Command] = &[
    Command {
        name: "expiry|forecast",
        summary: "Returns how many keys of the database expire in each coming window; each \
                  window is twice as long as the one before.",
        complexity: "O(S+W) where S is the number of shards and W the occupied slots of their \
                     timing wheels; independent of the number of keys.",
        arity: -2,
        flags: Flags::READONLY,
        arguments: &[Argument::integer("buckets").optional()],
        handler: Handler::Walk(expiry::FORECAST),
        ..EXPIRY
    },
    Command {
        name: "expiry|freeze",
        summary: "Stops the clock of expiry: nothing expires and every time to live stands \
                  still until EXPIRY RESUME.",
        arity: 2,
        flags: Flags::WRITE.or(Flags::ADMIN).or(Flags::FAST),
        handler: Handler::Keys(expiry::freeze),
        ..EXPIRY
    },
    Command {
        name: "expiry|help",
        summary: "Returns helpful text about the different subcommands.",
        arity: 2,
        flags: Flags::LOADING.or(Flags::STALE),
        handler: Handler::Help(&EXPIRY_SUBCOMMANDS),
        ..EXPIRY
    },
    Command {
        name: "expiry|resume",
        summary: "Lets the clock of expiry go on from where EXPIRY FREEZE stopped it.",
        complexity: "O(S) where S is the number of shards; independent of the number of keys.",
        arity: 2,
        flags: Flags::WRITE.or(Flags::ADMIN).or(Flags::FAST),
        handler: Handler::Keys(expiry::resume),
        ..EXPIRY
    },
];
