//! Rows: keys of any type.

use crate::command::{Adds, Argument, Command, Flags, Handler, KeySpec, KeyUse};
use crate::commands::{dump, key, object, scan, sort};
use crate::long::Cost;

const RO: KeyUse = KeyUse { flags: &["RO"] };
const READ: KeyUse = KeyUse {
    flags: &["RO", "access"],
};
const REMOVE: KeyUse = KeyUse {
    flags: &["RM", "delete"],
};
const TAKE: KeyUse = KeyUse {
    flags: &["RW", "access", "delete"],
};
const PUT: KeyUse = KeyUse {
    flags: &["OW", "update"],
};
const ADD: KeyUse = KeyUse {
    flags: &["OW", "insert"],
};

const FAST_READ: Flags = Flags::READONLY.or(Flags::FAST);

const GENERIC: Command = Command {
    categories: &["@keyspace"],
    ..Command::BASE
};

const KEY: Argument = Argument::key("key");

const SORT_COMPLEXITY: &str = "O(N+M*log(M)) where N is the number of elements in the list or set to sort, and M \
                              the number of returned elements. When the elements are not sorted, \
                              complexity is O(N).";
const SORT_CATEGORIES: &[&str] = &["@keyspace", "@set", "@sortedset", "@list", "@dangerous"];
const SORT_OPTIONS: [Argument; 5] = [
    Argument::pattern("by-pattern").after("BY").optional(),
    Argument::block(
        "limit",
        &[Argument::integer("offset"), Argument::integer("count")],
    )
    .after("LIMIT")
    .optional(),
    Argument::pattern("get-pattern")
        .after("GET")
        .optional()
        .multiple(),
    Argument::one_of(
        "order",
        &[Argument::word("asc", "ASC"), Argument::word("desc", "DESC")],
    )
    .optional(),
    Argument::word("sorting", "ALPHA").optional(),
];

pub(super) static ROWS: &[Command] = &[
    Command {
        name: "copy",
        cost: Cost::all(500),
        summary: "Copies the value of a key to a new key.",
        since: "6.2.0",
        complexity: "O(N) worst case for collections, where N is the number of nested items. O(1) for \
                     string values.",
        arity: -3,
        flags: Flags::WRITE.or(Flags::DENYOOM),
        slow: true,
        keys: KeySpec::two(&[READ, PUT]),
        arguments: &[
            Argument::key_of("source", 0),
            Argument::key_of("destination", 1),
            Argument::integer("destination-db").after("DB").optional(),
            Argument::word("replace", "REPLACE").optional(),
        ],
        adds: Adds::Copy,
        handler: Handler::Keys(key::copy),
        ..GENERIC
    },
    Command {
        name: "del",
        cost: Cost::arguments(200),
        summary: "Deletes one or more keys.",
        complexity: "O(N) where N is the number of keys that will be removed. When a key to remove \
                     holds a value other than a string, the individual complexity for this key is \
                     O(M) where M is the number of elements in the list, set, sorted set or hash. \
                     Removing a single key that holds a string value is O(1).",
        arity: -2,
        flags: Flags::WRITE,
        tips: &["request_policy:multi_shard", "response_policy:agg_sum"],
        keys: KeySpec::all(1, &[REMOVE]),
        arguments: &[KEY.multiple()],
        handler: Handler::Keys(key::del),
        ..GENERIC
    },
    Command {
        name: "dump",
        cost: Cost::all(100),
        summary: "Returns a serialized representation of the value stored at a key.",
        since: "2.6.0",
        complexity: "O(1) to access the key and additional O(N*M) to serialize it, where N is the \
                     number of Redis objects composing the value and M their average size. For small \
                     string values the time complexity is thus O(1)+O(1*M) where M is small, so \
                     simply O(1).",
        arity: 2,
        flags: Flags::READONLY,
        tips: &["nondeterministic_output"],
        slow: true,
        keys: KeySpec::one(1, &[READ]),
        arguments: &[KEY],
        handler: Handler::Keys(dump::dump),
        ..GENERIC
    },
    Command {
        name: "exists",
        cost: Cost::arguments(200),
        summary: "Determines whether one or more keys exist.",
        complexity: "O(N) where N is the number of keys to check.",
        arity: -2,
        flags: FAST_READ,
        tips: &["request_policy:multi_shard", "response_policy:agg_sum"],
        keys: KeySpec::all(1, &[RO]),
        arguments: &[KEY.multiple()],
        history: &[("3.0.3", "Accepts multiple `key` arguments.")],
        handler: Handler::Keys(key::exists),
        ..GENERIC
    },
    Command {
        name: "keys",
        summary: "Returns all key names that match a pattern.",
        complexity: "O(N) with N being the number of keys in the database, under the assumption that \
                     the key names in the database and the given pattern have limited length.",
        arity: 2,
        flags: Flags::READONLY,
        categories: &["@keyspace", "@dangerous"],
        tips: &["request_policy:all_shards", "nondeterministic_output_order"],
        arguments: &[Argument::pattern("pattern")],
        handler: Handler::Walk(scan::KEYS),
        ..GENERIC
    },
    Command {
        name: "move",
        summary: "Moves a key to another database.",
        arity: 3,
        flags: Flags::WRITE.or(Flags::FAST),
        keys: KeySpec::one(
            1,
            &[KeyUse {
                flags: &["RW", "access", "update"],
            }],
        ),
        arguments: &[KEY, Argument::integer("db")],
        handler: Handler::Keys(key::move_to),
        ..GENERIC
    },
    Command {
        name: "object",
        summary: "A container for object introspection commands.",
        since: "2.2.3",
        complexity: "Depends on subcommand.",
        arity: -2,
        categories: &[],
        subcommands: OBJECT,
        ..GENERIC
    },
    Command {
        name: "randomkey",
        summary: "Returns a random key name from the database.",
        arity: 1,
        flags: Flags::READONLY,
        tips: &["request_policy:all_shards", "nondeterministic_output"],
        handler: Handler::Walk(scan::RANDOMKEY),
        ..GENERIC
    },
    Command {
        name: "rename",
        summary: "Renames a key and overwrites the destination.",
        arity: 3,
        flags: Flags::WRITE,
        keys: KeySpec::two(&[TAKE, PUT]),
        arguments: &[KEY, Argument::key_of("newkey", 1)],
        handler: Handler::Keys(key::rename),
        ..GENERIC
    },
    Command {
        name: "renamenx",
        summary: "Renames a key only when the target key name doesn't exist.",
        arity: 3,
        flags: Flags::WRITE.or(Flags::FAST),
        keys: KeySpec::two(&[TAKE, ADD]),
        arguments: &[KEY, Argument::key_of("newkey", 1)],
        history: &[(
            "3.2.0",
            "The command no longer returns an error when source and destination names are the same.",
        )],
        handler: Handler::Keys(key::renamenx),
        ..GENERIC
    },
    Command {
        name: "restore",
        cost: Cost::arguments(1_000),
        summary: "Creates a key from the serialized representation of a value.",
        since: "2.6.0",
        complexity: "O(1) to create the new key and additional O(N*M) to reconstruct the serialized \
                     value, where N is the number of Redis objects composing the value and M their \
                     average size. For small string values the time complexity is thus O(1)+O(1*M) \
                     where M is small, so simply O(1). However for sorted set values the complexity \
                     is O(N*M*log(N)) because inserting values into sorted sets is O(log(N)).",
        arity: -4,
        flags: Flags::WRITE.or(Flags::DENYOOM),
        categories: &["@keyspace", "@dangerous"],
        slow: true,
        keys: KeySpec::one(1, &[PUT]),
        adds: Adds::Payload,
        arguments: &[
            KEY,
            Argument::integer("ttl"),
            Argument::string("serialized-value"),
            Argument::word("replace", "REPLACE")
                .optional()
                .since("3.0.0"),
            Argument::word("absttl", "ABSTTL").optional().since("5.0.0"),
            Argument::integer("seconds")
                .after("IDLETIME")
                .optional()
                .since("5.0.0"),
            Argument::integer("frequency")
                .after("FREQ")
                .optional()
                .since("5.0.0"),
        ],
        history: &[
            ("3.0.0", "Added the `REPLACE` modifier."),
            ("5.0.0", "Added the `ABSTTL` modifier."),
            ("5.0.0", "Added the `IDLETIME` and `FREQ` options."),
        ],
        handler: Handler::Keys(dump::restore),
        ..GENERIC
    },
    Command {
        name: "scan",
        summary: "Iterates over the key names in the database.",
        since: "2.8.0",
        complexity: "O(1) for every call. O(N) for a complete iteration, including enough command \
                     calls for the cursor to return back to 0. N is the number of elements inside \
                     the collection.",
        arity: -2,
        flags: Flags::READONLY,
        tips: &["nondeterministic_output", "request_policy:special"],
        arguments: &[
            Argument::integer("cursor"),
            Argument::pattern("pattern").after("MATCH").optional(),
            Argument::integer("count").after("COUNT").optional(),
            Argument::string("type")
                .after("TYPE")
                .optional()
                .since("6.0.0"),
        ],
        history: &[("6.0.0", "Added the `TYPE` subcommand.")],
        handler: Handler::Walk(scan::SCAN),
        ..GENERIC
    },
    Command {
        name: "sort",
        cost: Cost::all(500),
        summary: "Sorts the elements in a list, a set, or a sorted set, optionally storing the result.",
        complexity: SORT_COMPLEXITY,
        arity: -2,
        flags: Flags::WRITE.or(Flags::DENYOOM).or(Flags::MOVABLE_KEYS),
        categories: SORT_CATEGORIES,
        slow: true,
        reaches: true,
        keys: KeySpec::one(1, &[READ]),
        adds: Adds::Copy,
        arguments: &[
            KEY,
            SORT_OPTIONS[0],
            SORT_OPTIONS[1],
            SORT_OPTIONS[2],
            SORT_OPTIONS[3],
            SORT_OPTIONS[4],
            Argument::key_of("destination", 2).after("STORE").optional(),
        ],
        handler: Handler::Keys(sort::sort),
        ..GENERIC
    },
    Command {
        name: "sort_ro",
        cost: Cost::all(500),
        summary: "Returns the sorted elements of a list, a set, or a sorted set.",
        since: "7.0.0",
        complexity: SORT_COMPLEXITY,
        arity: -2,
        flags: Flags::READONLY.or(Flags::MOVABLE_KEYS),
        categories: SORT_CATEGORIES,
        slow: true,
        reaches: true,
        keys: KeySpec::one(1, &[READ]),
        arguments: &[
            KEY,
            SORT_OPTIONS[0],
            SORT_OPTIONS[1],
            SORT_OPTIONS[2],
            SORT_OPTIONS[3],
            SORT_OPTIONS[4],
        ],
        handler: Handler::Keys(sort::sort_ro),
        ..GENERIC
    },
    Command {
        name: "touch",
        cost: Cost::arguments(200),
        summary: "Returns the number of existing keys out of those specified after updating the time \
                  they were last accessed.",
        since: "3.2.1",
        complexity: "O(N) where N is the number of keys that will be touched.",
        arity: -2,
        flags: FAST_READ,
        tips: &["request_policy:multi_shard", "response_policy:agg_sum"],
        keys: KeySpec::all(1, &[RO]),
        arguments: &[KEY.multiple()],
        handler: Handler::Keys(key::touch),
        ..GENERIC
    },
    Command {
        name: "type",
        summary: "Determines the type of value stored at a key.",
        arity: 2,
        flags: FAST_READ,
        keys: KeySpec::one(1, &[RO]),
        arguments: &[KEY],
        handler: Handler::Keys(key::type_of),
        ..GENERIC
    },
    Command {
        name: "unlink",
        cost: Cost::arguments(200),
        summary: "Asynchronously deletes one or more keys.",
        since: "4.0.0",
        complexity: "O(1) for each key removed regardless of its size. Then the command does O(N) \
                     work in a different thread in order to reclaim memory, where N is the number of \
                     allocations the deleted objects where composed of.",
        arity: -2,
        flags: Flags::WRITE.or(Flags::FAST),
        tips: &["request_policy:multi_shard", "response_policy:agg_sum"],
        keys: KeySpec::all(1, &[REMOVE]),
        arguments: &[KEY.multiple()],
        handler: Handler::Keys(key::del),
        ..GENERIC
    },
];

static OBJECT: &[Command] = &[
    Command {
        name: "object|encoding",
        summary: "Returns the internal encoding of a redis object.",
        since: "2.2.3",
        arity: 3,
        flags: Flags::READONLY,
        tips: &["nondeterministic_output"],
        keys: KeySpec::one(2, &[RO]),
        arguments: &[KEY],
        handler: Handler::Keys(object::encoding),
        ..GENERIC
    },
    Command {
        name: "object|freq",
        summary: "Returns the logarithmic access frequency counter of a redis object.",
        since: "4.0.0",
        arity: 3,
        flags: Flags::READONLY,
        tips: &["nondeterministic_output"],
        keys: KeySpec::one(2, &[RO]),
        arguments: &[KEY],
        handler: Handler::Keys(object::freq),
        ..GENERIC
    },
    Command {
        name: "object|help",
        summary: "Returns helpful text about the different subcommands.",
        since: "6.2.0",
        arity: 2,
        flags: Flags::LOADING.or(Flags::STALE),
        handler: Handler::Help(&OBJECT),
        ..GENERIC
    },
    Command {
        name: "object|idletime",
        summary: "Returns the time since the last access to a redis object.",
        since: "2.2.3",
        arity: 3,
        flags: Flags::READONLY,
        tips: &["nondeterministic_output"],
        keys: KeySpec::one(2, &[RO]),
        arguments: &[KEY],
        handler: Handler::Keys(object::idletime),
        ..GENERIC
    },
    Command {
        name: "object|refcount",
        summary: "Returns the reference count of a value of a key.",
        since: "2.2.3",
        arity: 3,
        flags: Flags::READONLY,
        tips: &["nondeterministic_output"],
        keys: KeySpec::one(2, &[RO]),
        arguments: &[KEY],
        handler: Handler::Keys(object::refcount),
        ..GENERIC
    },
];
