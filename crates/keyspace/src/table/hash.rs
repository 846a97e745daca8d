//! Rows: hashes.

use crate::command::{Argument, Command, Flags, Group, Handler, KeySpec, KeyUse};
use crate::commands::hash::{read, write};

const READ: KeyUse = KeyUse {
    flags: &["RO", "access"],
};
const LOOK: KeyUse = KeyUse { flags: &["RO"] };
const UPDATE: KeyUse = KeyUse {
    flags: &["RW", "update"],
};
const DELETE: KeyUse = KeyUse {
    flags: &["RW", "delete"],
};

const KEY: Argument = Argument::key("key");
const FIELD: Argument = Argument::string("field");
const PAIRS: Argument = Argument::block("data", &[FIELD, Argument::string("value")]).multiple();

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
        summary: "Returns all fields and values in a hash.",
        handler: Handler::Keys(read::hgetall),
        ..WHOLE
    },
    Command {
        name: "hkeys",
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
        summary: "Returns the values of all fields in a hash.",
        complexity: "O(N) where N is the number of fields being requested.",
        arity: -3,
        arguments: &[KEY, FIELD.multiple()],
        handler: Handler::Keys(read::hmget),
        ..HASH
    },
    Command {
        name: "hmset",
        summary: "Sets the values of multiple fields.",
        complexity: "O(N) where N is the number of fields being set.",
        arity: -4,
        arguments: &[KEY, PAIRS],
        replaced_by: Some(("4.0.0", "`HSET` with multiple field-value pairs")),
        handler: Handler::Keys(write::hmset),
        ..GROWS
    },
    Command {
        name: "hset",
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
        name: "hsetnx",
        summary: "Sets the value of a field in a hash only when the field doesn't exist.",
        arity: 4,
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
        summary: "Returns all values in a hash.",
        handler: Handler::Keys(read::hvals),
        ..WHOLE
    },
];
