//! Rows: strings.

use crate::command::{Adds, Argument, Command, Flags, Group, Handler, KeySpec, KeyUse};
use crate::commands::{edit, lcs, number, string};
use crate::long::{Cost, Visits};

const RO: KeyUse = KeyUse {
    flags: &["RO", "access"],
};
const STRLEN: KeyUse = KeyUse { flags: &["RO"] };
const OVERWRITE: KeyUse = KeyUse {
    flags: &["OW", "update"],
};
const INSERT: KeyUse = KeyUse {
    flags: &["OW", "insert"],
};
const UPDATE: KeyUse = KeyUse {
    flags: &["RW", "update"],
};
const EXCHANGE: KeyUse = KeyUse {
    flags: &["RW", "access", "update"],
};
const GROW: KeyUse = KeyUse {
    flags: &["RW", "insert"],
};
const TAKE: KeyUse = KeyUse {
    flags: &["RW", "access", "delete"],
};

const FAST_READ: Flags = Flags::READONLY.or(Flags::FAST);
const GROWS: Flags = Flags::WRITE.or(Flags::DENYOOM);
const FAST_GROWS: Flags = GROWS.or(Flags::FAST);

const STRING: Command = Command {
    group: Group::String,
    categories: &["@string"],
    ..Command::BASE
};

const KEY: Argument = Argument::key("key");
const VALUE: Argument = Argument::string("value");

const EXPIRE_OPTIONS: [Argument; 4] = [
    Argument::integer("seconds").after("EX").since("2.6.12"),
    Argument::integer("milliseconds")
        .after("PX")
        .since("2.6.12"),
    Argument::unix_time("unix-time-seconds")
        .after("EXAT")
        .since("6.2.0"),
    Argument::unix_time("unix-time-milliseconds")
        .after("PXAT")
        .since("6.2.0"),
];

const KEY_VALUES: &[Argument] = &[Argument::block("data", &[KEY, VALUE]).multiple()];

pub(super) static ROWS: &[Command] = &[
    Command {
        name: "append",
        cost: Cost::all(30),
        summary: "Appends a string to the value of a key. Creates the key if it doesn't exist.",
        since: "2.0.0",
        complexity: "O(1). The amortized time complexity is O(1) assuming the appended value is small \
                     and the already present value is of any size, since the dynamic string library \
                     will double the free space available on every reallocation.",
        arity: 3,
        flags: FAST_GROWS,
        slow: true,
        keys: KeySpec::one(1, &[GROW]),
        arguments: &[KEY, VALUE],
        adds: Adds::Tail,
        handler: Handler::Keys(edit::append),
        ..STRING
    },
    Command {
        name: "decr",
        summary: "Decrements the integer value of a key by one. Uses 0 as initial value if the key \
                  doesn't exist.",
        arity: 2,
        flags: FAST_GROWS,
        keys: KeySpec::one(1, &[EXCHANGE]),
        arguments: &[KEY],
        handler: Handler::Keys(number::decr),
        ..STRING
    },
    Command {
        name: "decrby",
        summary: "Decrements a number from the integer value of a key. Uses 0 as initial value if the \
                  key doesn't exist.",
        arity: 3,
        flags: FAST_GROWS,
        keys: KeySpec::one(1, &[EXCHANGE]),
        arguments: &[KEY, Argument::integer("decrement")],
        handler: Handler::Keys(number::decrby),
        ..STRING
    },
    Command {
        name: "get",
        summary: "Returns the string value of a key.",
        arity: 2,
        flags: FAST_READ,
        keys: KeySpec::one(1, &[RO]),
        arguments: &[KEY],
        handler: Handler::Keys(string::get),
        ..STRING
    },
    Command {
        name: "getdel",
        cost: Cost::all(30),
        summary: "Returns the string value of a key after deleting the key.",
        since: "6.2.0",
        arity: 2,
        flags: Flags::WRITE.or(Flags::FAST),
        keys: KeySpec::one(1, &[TAKE]),
        arguments: &[KEY],
        handler: Handler::Keys(string::getdel),
        ..STRING
    },
    Command {
        name: "getex",
        cost: Cost::all(30),
        summary: "Returns the string value of a key after setting its expiration time.",
        since: "6.2.0",
        arity: -2,
        flags: Flags::WRITE.or(Flags::FAST),
        keys: KeySpec::one(
            1,
            &[KeyUse {
                flags: &["RW", "access", "update"],
            }],
        ),
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
        ],
        handler: Handler::Keys(string::getex),
        ..STRING
    },
    Command {
        name: "getrange",
        summary: "Returns a substring of the string stored at a key.",
        since: "2.4.0",
        complexity: "O(N) where N is the length of the returned string. The complexity is ultimately \
                     determined by the returned length, but because creating a substring from an \
                     existing string is very cheap, it can be considered O(1) for small strings.",
        arity: 4,
        flags: Flags::READONLY,
        keys: KeySpec::one(1, &[RO]),
        arguments: &[KEY, Argument::integer("start"), Argument::integer("end")],
        handler: Handler::Keys(string::getrange),
        ..STRING
    },
    Command {
        name: "getset",
        cost: Cost::all(30),
        summary: "Returns the previous string value of a key after setting it to a new value.",
        arity: 3,
        flags: FAST_GROWS,
        keys: KeySpec::one(1, &[EXCHANGE]),
        stored_argument: 2,
        arguments: &[KEY, VALUE],
        replaced_by: Some(("6.2.0", "`SET` with the `!GET` argument")),
        handler: Handler::Keys(string::getset),
        ..STRING
    },
    Command {
        name: "incr",
        summary: "Increments the integer value of a key by one. Uses 0 as initial value if the key \
                  doesn't exist.",
        arity: 2,
        flags: FAST_GROWS,
        keys: KeySpec::one(1, &[EXCHANGE]),
        arguments: &[KEY],
        handler: Handler::Keys(number::incr),
        ..STRING
    },
    Command {
        name: "incrby",
        summary: "Increments the integer value of a key by a number. Uses 0 as initial value if the \
                  key doesn't exist.",
        arity: 3,
        flags: FAST_GROWS,
        keys: KeySpec::one(1, &[EXCHANGE]),
        arguments: &[KEY, Argument::integer("increment")],
        handler: Handler::Keys(number::incrby),
        ..STRING
    },
    Command {
        name: "incrbyfloat",
        summary: "Increment the floating point value of a key by a number. Uses 0 as initial value if \
                  the key doesn't exist.",
        since: "2.6.0",
        arity: 3,
        flags: FAST_GROWS,
        keys: KeySpec::one(1, &[EXCHANGE]),
        arguments: &[KEY, Argument::double("increment")],
        handler: Handler::Keys(number::incrbyfloat),
        ..STRING
    },
    Command {
        name: "lcs",
        summary: "Finds the longest common substring.",
        since: "7.0.0",
        complexity: "O(N*M) where N and M are the lengths of s1 and s2, respectively",
        arity: -3,
        flags: Flags::READONLY,
        slow: true,
        keys: KeySpec::two(&[RO]),
        arguments: &[
            Argument::key("key1"),
            Argument::key("key2"),
            Argument::word("len", "LEN").optional(),
            Argument::word("idx", "IDX").optional(),
            Argument::integer("min-match-len")
                .after("MINMATCHLEN")
                .optional(),
            Argument::word("withmatchlen", "WITHMATCHLEN").optional(),
        ],
        cost: Cost::visiting(40, Visits::Pairs),
        handler: Handler::Keys(lcs::lcs),
        ..STRING
    },
    Command {
        name: "mget",
        cost: Cost::arguments(200),
        summary: "Atomically returns the string values of one or more keys.",
        complexity: "O(N) where N is the number of keys to retrieve.",
        arity: -2,
        flags: FAST_READ,
        tips: &["request_policy:multi_shard"],
        keys: KeySpec::all(1, &[RO]),
        arguments: &[KEY.multiple()],
        handler: Handler::Keys(string::mget),
        ..STRING
    },
    Command {
        name: "mset",
        cost: Cost::arguments(250),
        summary: "Atomically creates or modifies the string values of one or more keys.",
        since: "1.0.1",
        complexity: "O(N) where N is the number of keys to set.",
        arity: -3,
        flags: GROWS,
        tips: &[
            "request_policy:multi_shard",
            "response_policy:all_succeeded",
        ],
        keys: KeySpec::all(2, &[OVERWRITE]),
        stored_argument: 2,
        arguments: KEY_VALUES,
        handler: Handler::Keys(string::mset),
        ..STRING
    },
    Command {
        name: "msetnx",
        cost: Cost::arguments(250),
        summary: "Atomically modifies the string values of one or more keys only when all keys don't \
                  exist.",
        since: "1.0.1",
        complexity: "O(N) where N is the number of keys to set.",
        arity: -3,
        flags: GROWS,
        keys: KeySpec::all(2, &[INSERT]),
        stored_argument: 2,
        arguments: KEY_VALUES,
        handler: Handler::Keys(string::msetnx),
        ..STRING
    },
    Command {
        name: "psetex",
        summary: "Sets both string value and expiration time in milliseconds of a key. The key is \
                  created if it doesn't exist.",
        since: "2.6.0",
        arity: 4,
        flags: GROWS,
        keys: KeySpec::one(1, &[OVERWRITE]),
        stored_argument: 3,
        arguments: &[KEY, Argument::integer("milliseconds"), VALUE],
        replaced_by: Some(("2.6.12", "`SET` with the `PX` argument")),
        handler: Handler::Keys(string::psetex),
        ..STRING
    },
    Command {
        name: "set",
        summary: "Sets the string value of a key, ignoring its type. The key is created if it doesn't \
                  exist.",
        arity: -3,
        flags: GROWS,
        keys: KeySpec::one(
            1,
            &[KeyUse {
                flags: &["RW", "access", "update", "variable_flags"],
            }],
        ),
        stored_argument: 2,
        arguments: &[
            KEY,
            VALUE,
            Argument::one_of(
                "condition",
                &[Argument::word("nx", "NX"), Argument::word("xx", "XX")],
            )
            .optional()
            .since("2.6.12"),
            Argument::word("get", "GET").optional().since("6.2.0"),
            Argument::one_of(
                "expiration",
                &[
                    EXPIRE_OPTIONS[0],
                    EXPIRE_OPTIONS[1],
                    EXPIRE_OPTIONS[2],
                    EXPIRE_OPTIONS[3],
                    Argument::word("keepttl", "KEEPTTL").since("6.0.0"),
                ],
            )
            .optional(),
        ],
        history: &[
            ("2.6.12", "Added the `EX`, `PX`, `NX` and `XX` options."),
            ("6.0.0", "Added the `KEEPTTL` option."),
            ("6.2.0", "Added the `GET`, `EXAT` and `PXAT` option."),
            (
                "7.0.0",
                "Allowed the `NX` and `GET` options to be used together.",
            ),
        ],
        handler: Handler::Keys(string::set),
        ..STRING
    },
    Command {
        name: "setex",
        summary: "Sets the string value and expiration time of a key. Creates the key if it doesn't \
                  exist.",
        since: "2.0.0",
        arity: 4,
        flags: GROWS,
        keys: KeySpec::one(1, &[OVERWRITE]),
        stored_argument: 3,
        arguments: &[KEY, Argument::integer("seconds"), VALUE],
        replaced_by: Some(("2.6.12", "`SET` with the `EX` argument")),
        handler: Handler::Keys(string::setex),
        ..STRING
    },
    Command {
        name: "setnx",
        summary: "Set the string value of a key only when the key doesn't exist.",
        arity: 3,
        flags: FAST_GROWS,
        keys: KeySpec::one(1, &[INSERT]),
        stored_argument: 2,
        arguments: &[KEY, VALUE],
        replaced_by: Some(("2.6.12", "`SET` with the `NX` argument")),
        handler: Handler::Keys(string::setnx),
        ..STRING
    },
    Command {
        name: "setrange",
        cost: Cost::all(30),
        summary: "Overwrites a part of a string value with another by an offset. Creates the key if \
                  it doesn't exist.",
        since: "2.2.0",
        complexity: "O(1), not counting the time taken to copy the new string in place. Usually, this \
                     string is very small so the amortized complexity is O(1). Otherwise, complexity \
                     is O(M) with M being the length of the value argument.",
        arity: 4,
        flags: GROWS,
        slow: true,
        keys: KeySpec::one(1, &[UPDATE]),
        arguments: &[KEY, Argument::integer("offset"), VALUE],
        adds: Adds::Range,
        handler: Handler::Keys(edit::setrange),
        ..STRING
    },
    Command {
        name: "strlen",
        summary: "Returns the length of a string value.",
        since: "2.2.0",
        arity: 2,
        flags: FAST_READ,
        keys: KeySpec::one(1, &[STRLEN]),
        arguments: &[KEY],
        handler: Handler::Keys(string::strlen),
        ..STRING
    },
    Command {
        name: "substr",
        summary: "Returns a substring from a string value.",
        complexity: "O(N) where N is the length of the returned string. The complexity is ultimately \
                     determined by the returned length, but because creating a substring from an \
                     existing string is very cheap, it can be considered O(1) for small strings.",
        arity: 4,
        flags: Flags::READONLY,
        keys: KeySpec::one(1, &[RO]),
        arguments: &[KEY, Argument::integer("start"), Argument::integer("end")],
        replaced_by: Some(("2.0.0", "`GETRANGE`")),
        handler: Handler::Keys(string::getrange),
        ..STRING
    },
];
