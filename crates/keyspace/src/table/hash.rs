//! Rows: hashes.

use crate::command::{Argument, Command, Flags, Group, Handler, KeySpec, KeyUse};
use crate::commands::hash::{self, lifetime, number, random, read, write};
use crate::long::{Cost, Visits};

const READ: KeyUse = KeyUse {
    flags: &["RO", "access"],
};
const LOOK: KeyUse = KeyUse { flags: &["RO"] };
const UPDATE: KeyUse = KeyUse {
    flags: &["RW", "update"],
};
const INSERT: KeyUse = KeyUse {
    flags: &["RW", "insert"],
};
const DELETE: KeyUse = KeyUse {
    flags: &["RW", "delete"],
};

const TAKE: KeyUse = KeyUse {
    flags: &["RW", "access", "delete"],
};
const TAKE_AND_UPDATE: KeyUse = KeyUse {
    flags: &["RW", "access", "update"],
};

const KEY: Argument = Argument::key("key");
const FIELD: Argument = Argument::string("field");
const PAIRS: Argument = Argument::block("data", &[FIELD, Argument::string("value")]).multiple();

const FIELDS: Argument = Argument::block(
    "fields",
    &[Argument::integer("numfields"), FIELD.multiple()],
)
.after("FIELDS");

const HASH: Command = Command {
    group: Group::Hash,
    since: "2.0.0",
    categories: &["@hash"],
    keys: KeySpec::one(1, &[READ]),
    flags: Flags::READONLY.or(Flags::FAST),
    ..Command::BASE
};
const GROWS: Command = Command {
    flags: Flags::WRITE.or(Flags::DENYOOM).or(Flags::FAST),
    keys: KeySpec::one(1, &[UPDATE]),
    ..HASH
};
const WHOLE: Command = Command {
    arity: 2,
    flags: Flags::READONLY,
    slow: true,
    complexity: "O(N) where N is the size of the hash.",
    tips: &["nondeterministic_output_order"],
    arguments: &[KEY],
    ..HASH
};

pub(super) static ROWS: &[Command] = &[
    Command {
        name: "hdel",
        cost: Cost::arguments(1_200),
        summary: "Deletes one or more fields and their values from a hash. Deletes the hash if no fields \
                  remain.",
        complexity: "O(N) where N is the number of fields to be removed.",
        arity: -3,
        flags: Flags::WRITE.or(Flags::FAST),
        keys: KeySpec::one(1, &[DELETE]),
        arguments: &[KEY, FIELD.multiple()],
        history: &[("2.4.0", "Accepts multiple `field` arguments.")],
        handler: Handler::Keys(write::hdel),
        ..HASH
    },
    Command {
        name: "hexists",
        summary: "Determines whether a field exists in a hash.",
        arity: 3,
        keys: KeySpec::one(1, &[LOOK]),
        arguments: &[KEY, FIELD],
        handler: Handler::Keys(read::hexists),
        ..HASH
    },
    Command {
        name: "hget",
        summary: "Returns the value of a field in a hash.",
        arity: 3,
        arguments: &[KEY, FIELD],
        handler: Handler::Keys(read::hget),
        ..HASH
    },
    Command {
        name: "hgetall",
        cost: Cost::all(100),
        summary: "Returns all fields and values in a hash.",
        handler: Handler::Keys(read::hgetall),
        ..WHOLE
    },
    Command {
        name: "hgetdel",
        cost: Cost::arguments(1_000),
        summary: "Returns the values of fields and deletes them from a hash.",
        since: "8.0.0",
        complexity: "O(N) where N is the number of specified fields.",
        arity: -5,
        flags: Flags::WRITE.or(Flags::FAST),
        keys: KeySpec::one(1, &[TAKE]),
        arguments: &[KEY, FIELDS],
        handler: Handler::Keys(lifetime::hgetdel),
        ..HASH
    },
    Command {
        name: "hgetex",
        cost: Cost::arguments(1_000),
        summary: "Returns the values of fields and sets their expiration time.",
        since: "8.0.0",
        complexity: "O(N) where N is the number of specified fields.",
        arity: -5,
        flags: Flags::WRITE.or(Flags::FAST),
        keys: KeySpec::one(1, &[TAKE_AND_UPDATE]),
        arguments: &[
            KEY,
            Argument::one_of(
                "expiration",
                &[
                    Argument::integer("seconds").after("EX"),
                    Argument::integer("milliseconds").after("PX"),
                    Argument::unix_time("unix-time-seconds").after("EXAT"),
                    Argument::unix_time("unix-time-milliseconds").after("PXAT"),
                    Argument::word("persist", "PERSIST"),
                ],
            )
            .optional(),
            FIELDS,
        ],
        handler: Handler::Keys(lifetime::hgetex),
        ..HASH
    },
    Command {
        name: "hincrby",
        summary: "Increments the integer value of a field in a hash by a number. Uses 0 as initial value if \
                  the field doesn't exist.",
        arity: 4,
        keys: KeySpec::one(1, &[TAKE_AND_UPDATE]),
        arguments: &[KEY, FIELD, Argument::integer("increment")],
        handler: Handler::Keys(number::hincrby),
        ..GROWS
    },
    Command {
        name: "hincrbyfloat",
        summary: "Increments the floating point value of a field by a number. Uses 0 as initial value if \
                  the field doesn't exist.",
        since: "2.6.0",
        arity: 4,
        keys: KeySpec::one(1, &[TAKE_AND_UPDATE]),
        arguments: &[KEY, FIELD, Argument::double("increment")],
        handler: Handler::Keys(number::hincrbyfloat),
        ..GROWS
    },
    Command {
        name: "hkeys",
        cost: Cost::all(60),
        summary: "Returns all fields in a hash.",
        handler: Handler::Keys(read::hkeys),
        ..WHOLE
    },
    Command {
        name: "hlen",
        summary: "Returns the number of fields in a hash.",
        arity: 2,
        keys: KeySpec::one(1, &[LOOK]),
        arguments: &[KEY],
        handler: Handler::Keys(read::hlen),
        ..HASH
    },
    Command {
        name: "hmget",
        cost: Cost::arguments(200),
        summary: "Returns the values of all fields in a hash.",
        complexity: "O(N) where N is the number of fields being requested.",
        arity: -3,
        arguments: &[KEY, FIELD.multiple()],
        handler: Handler::Keys(read::hmget),
        ..HASH
    },
    Command {
        name: "hmset",
        cost: Cost::arguments(400),
        summary: "Sets the values of multiple fields.",
        complexity: "O(N) where N is the number of fields being set.",
        arity: -4,
        arguments: &[KEY, PAIRS],
        replaced_by: Some(("4.0.0", "`HSET` with multiple field-value pairs")),
        handler: Handler::Keys(write::hmset),
        ..GROWS
    },
    Command {
        name: "hrandfield",
        cost: Cost::visiting(700, Visits::Count(2)),
        summary: "Returns one or more random fields from a hash.",
        since: "6.2.0",
        complexity: "O(N) where N is the number of fields returned",
        arity: -2,
        flags: Flags::READONLY,
        tips: &["nondeterministic_output"],
        slow: true,
        arguments: &[
            KEY,
            Argument::block(
                "options",
                &[
                    Argument::integer("count"),
                    Argument::word("withvalues", "WITHVALUES").optional(),
                ],
            )
            .optional(),
        ],
        handler: Handler::Keys(random::hrandfield),
        ..HASH
    },
    Command {
        name: "hscan",
        cost: Cost::visiting(150, Visits::CountWord(10)),
        summary: "Iterates over the fields of a hash and their values.",
        since: "2.8.0",
        complexity: "O(1) for every call. O(N) for a whole iteration, where N is the number of \
                     members.",
        arity: -3,
        flags: Flags::READONLY,
        tips: &["nondeterministic_output"],
        arguments: &[
            KEY,
            Argument::integer("cursor"),
            Argument::pattern("pattern").after("MATCH").optional(),
            Argument::integer("count").after("COUNT").optional(),
            Argument::word("novalues", "NOVALUES")
                .optional()
                .since("7.4.0"),
        ],
        handler: Handler::Keys(hash::hscan),
        ..HASH
    },
    Command {
        name: "hset",
        cost: Cost::arguments(400),
        summary: "Creates or modifies the value of a field in a hash.",
        complexity: "O(1) for each field/value pair added, so O(N) to add N field/value pairs when the \
                     command is called with multiple field/value pairs.",
        arity: -4,
        arguments: &[KEY, PAIRS],
        history: &[("4.0.0", "Accepts multiple `field` and `value` arguments.")],
        handler: Handler::Keys(write::hset),
        ..GROWS
    },
    Command {
        name: "hsetex",
        cost: Cost::arguments(1_000),
        summary: "Sets the values of fields and their expiration time.",
        since: "8.0.0",
        complexity: "O(N) where N is the number of fields being set.",
        arity: -6,
        arguments: &[
            KEY,
            Argument::one_of(
                "condition",
                &[Argument::word("fnx", "FNX"), Argument::word("fxx", "FXX")],
            )
            .optional(),
            Argument::one_of(
                "expiration",
                &[
                    Argument::integer("seconds").after("EX"),
                    Argument::integer("milliseconds").after("PX"),
                    Argument::unix_time("unix-time-seconds").after("EXAT"),
                    Argument::unix_time("unix-time-milliseconds").after("PXAT"),
                    Argument::word("keepttl", "KEEPTTL"),
                ],
            )
            .optional(),
            Argument::block("fields", &[Argument::integer("numfields"), PAIRS]).after("FIELDS"),
        ],
        handler: Handler::Keys(lifetime::hsetex),
        ..GROWS
    },
    Command {
        name: "hsetnx",
        summary: "Sets the value of a field in a hash only when the field doesn't exist.",
        arity: 4,
        keys: KeySpec::one(1, &[INSERT]),
        arguments: &[KEY, FIELD, Argument::string("value")],
        handler: Handler::Keys(write::hsetnx),
        ..GROWS
    },
    Command {
        name: "hstrlen",
        summary: "Returns the length of the value of a field.",
        since: "3.2.0",
        arity: 3,
        keys: KeySpec::one(1, &[LOOK]),
        arguments: &[KEY, FIELD],
        handler: Handler::Keys(read::hstrlen),
        ..HASH
    },
    Command {
        name: "hvals",
        cost: Cost::all(60),
        summary: "Returns all values in a hash.",
        handler: Handler::Keys(read::hvals),
        ..WHOLE
    },
];
