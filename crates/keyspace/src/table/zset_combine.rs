//! Rows: several sorted sets as one.

use crate::command::{Adds, Argument, Command, Flags, Group, Handler, KeySpec, KeyUse};
use crate::commands::zset::combine;
use crate::long::Cost;

const READ: KeyUse = KeyUse {
    flags: &["RO", "access"],
};
const PUT: KeyUse = KeyUse {
    flags: &["OW", "update"],
};

const ZSET: Command = Command {
    group: Group::SortedSet,
    categories: &["@sortedset"],
    ..Command::BASE
};

pub(super) static ROWS: &[Command] = &[
    Command {
        name: "zdiff",
        cost: Cost::all(2_000),
        summary: "Returns the difference between the first sorted set and the others.",
        since: "6.2.0",
        complexity: "O(L + (N-K)log(N)) where L is the sum of the sizes of the sources, N the size \
                     of the first one and K the number of members in the result.",
        arity: -3,
        flags: Flags::READONLY.or(Flags::MOVABLE_KEYS),
        slow: true,
        keys: KeySpec::counted(1, &[READ]),
        arguments: &[
            Argument::integer("numkeys"),
            Argument::key("key").multiple(),
            Argument::word("withscores", "WITHSCORES").optional(),
        ],
        handler: Handler::Keys(combine::zdiff),
        ..ZSET
    },
    Command {
        name: "zdiffstore",
        cost: Cost::all(3_000),
        summary: "Stores the difference between the first sorted set and the others in a key.",
        since: "6.2.0",
        complexity: "O(L + (N-K)log(N)) where L is the sum of the sizes of the sources, N the size \
                     of the first one and K the number of members in the result.",
        arity: -4,
        flags: Flags::WRITE.or(Flags::DENYOOM).or(Flags::MOVABLE_KEYS),
        slow: true,
        keys: KeySpec::one_and_counted(&[PUT, READ]),
        adds: Adds::Sources,
        arguments: &[
            Argument::key("destination"),
            Argument::integer("numkeys"),
            Argument::key_of("key", 1).multiple(),
        ],
        handler: Handler::Keys(combine::zdiffstore),
        ..ZSET
    },
    Command {
        name: "zinter",
        cost: Cost::all(2_000),
        summary: "Returns the intersection of sorted sets.",
        since: "6.2.0",
        complexity: "O(N*K)+O(M*log(M)) where N is the size of the smallest source, K the number \
                     of sources and M the number of members in the result.",
        arity: -3,
        flags: Flags::READONLY.or(Flags::MOVABLE_KEYS),
        slow: true,
        keys: KeySpec::counted(1, &[READ]),
        arguments: &[
            Argument::integer("numkeys"),
            Argument::key("key").multiple(),
            Argument::integer("weight")
                .after("WEIGHTS")
                .optional()
                .multiple(),
            Argument::one_of(
                "aggregate",
                &[
                    Argument::word("sum", "SUM"),
                    Argument::word("min", "MIN"),
                    Argument::word("max", "MAX"),
                ],
            )
            .after("AGGREGATE")
            .optional(),
            Argument::word("withscores", "WITHSCORES").optional(),
        ],
        handler: Handler::Keys(combine::zinter),
        ..ZSET
    },
    Command {
        name: "zintercard",
        cost: Cost::all(300),
        summary: "Returns the number of members in the intersection of sorted sets.",
        since: "7.0.0",
        complexity: "O(N*K) where N is the size of the smallest source and K the number of \
                     sources.",
        arity: -3,
        flags: Flags::READONLY.or(Flags::MOVABLE_KEYS),
        slow: true,
        keys: KeySpec::counted(1, &[READ]),
        arguments: &[
            Argument::integer("numkeys"),
            Argument::key("key").multiple(),
            Argument::integer("limit").after("LIMIT").optional(),
        ],
        handler: Handler::Keys(combine::zintercard),
        ..ZSET
    },
    Command {
        name: "zinterstore",
        cost: Cost::all(3_000),
        summary: "Stores the intersection of sorted sets in a key.",
        since: "2.0.0",
        complexity: "O(N*K)+O(M*log(M)) where N is the size of the smallest source, K the number \
                     of sources and M the number of members in the result.",
        arity: -4,
        flags: Flags::WRITE.or(Flags::DENYOOM).or(Flags::MOVABLE_KEYS),
        slow: true,
        keys: KeySpec::one_and_counted(&[PUT, READ]),
        adds: Adds::Sources,
        arguments: &[
            Argument::key("destination"),
            Argument::integer("numkeys"),
            Argument::key_of("key", 1).multiple(),
            Argument::integer("weight")
                .after("WEIGHTS")
                .optional()
                .multiple(),
            Argument::one_of(
                "aggregate",
                &[
                    Argument::word("sum", "SUM"),
                    Argument::word("min", "MIN"),
                    Argument::word("max", "MAX"),
                ],
            )
            .after("AGGREGATE")
            .optional(),
        ],
        handler: Handler::Keys(combine::zinterstore),
        ..ZSET
    },
    Command {
        name: "zunion",
        cost: Cost::all(2_000),
        summary: "Returns the union of sorted sets.",
        since: "6.2.0",
        complexity: "O(N)+O(M*log(M)) where N is the sum of the sizes of the sources and M the \
                     number of members in the result.",
        arity: -3,
        flags: Flags::READONLY.or(Flags::MOVABLE_KEYS),
        slow: true,
        keys: KeySpec::counted(1, &[READ]),
        arguments: &[
            Argument::integer("numkeys"),
            Argument::key("key").multiple(),
            Argument::integer("weight")
                .after("WEIGHTS")
                .optional()
                .multiple(),
            Argument::one_of(
                "aggregate",
                &[
                    Argument::word("sum", "SUM"),
                    Argument::word("min", "MIN"),
                    Argument::word("max", "MAX"),
                ],
            )
            .after("AGGREGATE")
            .optional(),
            Argument::word("withscores", "WITHSCORES").optional(),
        ],
        handler: Handler::Keys(combine::zunion),
        ..ZSET
    },
    Command {
        name: "zunionstore",
        cost: Cost::all(3_000),
        summary: "Stores the union of sorted sets in a key.",
        since: "2.0.0",
        complexity: "O(N)+O(M*log(M)) where N is the sum of the sizes of the sources and M the \
                     number of members in the result.",
        arity: -4,
        flags: Flags::WRITE.or(Flags::DENYOOM).or(Flags::MOVABLE_KEYS),
        slow: true,
        keys: KeySpec::one_and_counted(&[PUT, READ]),
        adds: Adds::Sources,
        arguments: &[
            Argument::key("destination"),
            Argument::integer("numkeys"),
            Argument::key_of("key", 1).multiple(),
            Argument::integer("weight")
                .after("WEIGHTS")
                .optional()
                .multiple(),
            Argument::one_of(
                "aggregate",
                &[
                    Argument::word("sum", "SUM"),
                    Argument::word("min", "MIN"),
                    Argument::word("max", "MAX"),
                ],
            )
            .after("AGGREGATE")
            .optional(),
        ],
        handler: Handler::Keys(combine::zunionstore),
        ..ZSET
    },
];
