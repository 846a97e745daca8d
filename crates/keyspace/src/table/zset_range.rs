//! Rows: ranges of sorted sets.

use crate::command::{Adds, Argument, Command, Flags, Group, Handler, KeySpec, KeyUse};
use crate::commands::zset::{range, read, remove};
use crate::long::{Cost, Visits};

const READ: KeyUse = KeyUse {
    flags: &["RO", "access"],
};
const DELETE: KeyUse = KeyUse {
    flags: &["RW", "delete"],
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
        name: "zcount",
        summary: "Returns the number of members of a sorted set within a range of scores.",
        since: "2.0.0",
        complexity: "O(log(N)) where N is the number of members in the sorted set.",
        arity: 4,
        flags: Flags::READONLY.or(Flags::FAST),
        keys: KeySpec::one(1, &[READ]),
        arguments: &[
            Argument::key("key"),
            Argument::double("min"),
            Argument::double("max"),
        ],
        handler: Handler::Keys(read::zcount),
        ..ZSET
    },
    Command {
        name: "zlexcount",
        summary: "Returns the number of members of a sorted set within a lexicographical range.",
        since: "2.8.9",
        complexity: "O(log(N)) where N is the number of members in the sorted set.",
        arity: 4,
        flags: Flags::READONLY.or(Flags::FAST),
        keys: KeySpec::one(1, &[READ]),
        arguments: &[
            Argument::key("key"),
            Argument::string("min"),
            Argument::string("max"),
        ],
        handler: Handler::Keys(read::zlexcount),
        ..ZSET
    },
    Command {
        name: "zrange",
        cost: Cost::visiting(100, Visits::Range(2)),
        summary: "Returns the members of a sorted set within a range of ranks, scores or members.",
        since: "1.2.0",
        complexity: "O(log(N)+M) where N is the number of members in the sorted set and M the \
                     number of members returned.",
        arity: -4,
        flags: Flags::READONLY,
        keys: KeySpec::one(1, &[READ]),
        arguments: &[
            Argument::key("key"),
            Argument::string("start"),
            Argument::string("stop"),
            Argument::one_of(
                "sortby",
                &[
                    Argument::word("byscore", "BYSCORE"),
                    Argument::word("bylex", "BYLEX"),
                ],
            )
            .since("6.2.0")
            .optional(),
            Argument::word("rev", "REV").since("6.2.0").optional(),
            Argument::block(
                "offset_count",
                &[Argument::integer("offset"), Argument::integer("count")],
            )
            .after("LIMIT")
            .since("6.2.0")
            .optional(),
            Argument::word("withscores", "WITHSCORES").optional(),
        ],
        history: &[(
            "6.2.0",
            "Added the `REV`, `BYSCORE`, `BYLEX` and `LIMIT` options.",
        )],
        handler: Handler::Keys(range::zrange),
        ..ZSET
    },
    Command {
        name: "zrangebylex",
        cost: Cost::visiting(100, Visits::Range(2)),
        summary: "Returns the members of a sorted set within a lexicographical range.",
        since: "2.8.9",
        complexity: "O(log(N)+M) where N is the number of members in the sorted set and M the \
                     number of members returned.",
        arity: -4,
        flags: Flags::READONLY,
        keys: KeySpec::one(1, &[READ]),
        arguments: &[
            Argument::key("key"),
            Argument::string("min"),
            Argument::string("max"),
            Argument::block(
                "offset_count",
                &[Argument::integer("offset"), Argument::integer("count")],
            )
            .after("LIMIT")
            .optional(),
        ],
        replaced_by: Some(("6.2.0", "`ZRANGE` with the `BYLEX` argument")),
        handler: Handler::Keys(range::zrangebylex),
        ..ZSET
    },
    Command {
        name: "zrangebyscore",
        cost: Cost::visiting(100, Visits::Range(2)),
        summary: "Returns the members of a sorted set within a range of scores.",
        since: "1.0.5",
        complexity: "O(log(N)+M) where N is the number of members in the sorted set and M the \
                     number of members returned.",
        arity: -4,
        flags: Flags::READONLY,
        keys: KeySpec::one(1, &[READ]),
        arguments: &[
            Argument::key("key"),
            Argument::double("min"),
            Argument::double("max"),
            Argument::word("withscores", "WITHSCORES")
                .since("2.0.0")
                .optional(),
            Argument::block(
                "offset_count",
                &[Argument::integer("offset"), Argument::integer("count")],
            )
            .after("LIMIT")
            .optional(),
        ],
        history: &[("2.0.0", "Added the `WITHSCORES` modifier.")],
        replaced_by: Some(("6.2.0", "`ZRANGE` with the `BYSCORE` argument")),
        handler: Handler::Keys(range::zrangebyscore),
        ..ZSET
    },
    Command {
        name: "zrangestore",
        cost: Cost::visiting(1_000, Visits::Range(3)),
        summary: "Stores a range of members of a sorted set in a key.",
        since: "6.2.0",
        complexity: "O(log(N)+M) where N is the number of members in the sorted set and M the \
                     number of members stored.",
        arity: -5,
        flags: Flags::WRITE.or(Flags::DENYOOM),
        slow: true,
        keys: KeySpec::two(&[PUT, READ]),
        adds: Adds::Sources,
        arguments: &[
            Argument::key("dst"),
            Argument::key_of("src", 1),
            Argument::string("min"),
            Argument::string("max"),
            Argument::one_of(
                "sortby",
                &[
                    Argument::word("byscore", "BYSCORE"),
                    Argument::word("bylex", "BYLEX"),
                ],
            )
            .optional(),
            Argument::word("rev", "REV").optional(),
            Argument::block(
                "offset_count",
                &[Argument::integer("offset"), Argument::integer("count")],
            )
            .after("LIMIT")
            .optional(),
        ],
        handler: Handler::Keys(range::zrangestore),
        ..ZSET
    },
    Command {
        name: "zremrangebylex",
        cost: Cost::visiting(700, Visits::Range(2)),
        summary: "Removes the members of a sorted set within a lexicographical range. Deletes the \
                  key if none remain.",
        since: "2.8.9",
        complexity: "O(log(N)+M) where N is the number of members in the sorted set and M the \
                     number of members removed.",
        arity: 4,
        flags: Flags::WRITE,
        slow: true,
        keys: KeySpec::one(1, &[DELETE]),
        arguments: &[
            Argument::key("key"),
            Argument::string("min"),
            Argument::string("max"),
        ],
        handler: Handler::Keys(remove::zremrangebylex),
        ..ZSET
    },
    Command {
        name: "zremrangebyrank",
        cost: Cost::visiting(700, Visits::Range(2)),
        summary: "Removes the members of a sorted set within a range of ranks. Deletes the key if \
                  none remain.",
        since: "2.0.0",
        complexity: "O(log(N)+M) where N is the number of members in the sorted set and M the \
                     number of members removed.",
        arity: 4,
        flags: Flags::WRITE,
        slow: true,
        keys: KeySpec::one(1, &[DELETE]),
        arguments: &[
            Argument::key("key"),
            Argument::integer("start"),
            Argument::integer("stop"),
        ],
        handler: Handler::Keys(remove::zremrangebyrank),
        ..ZSET
    },
    Command {
        name: "zremrangebyscore",
        cost: Cost::visiting(700, Visits::Range(2)),
        summary: "Removes the members of a sorted set within a range of scores. Deletes the key if \
                  none remain.",
        since: "1.2.0",
        complexity: "O(log(N)+M) where N is the number of members in the sorted set and M the \
                     number of members removed.",
        arity: 4,
        flags: Flags::WRITE,
        slow: true,
        keys: KeySpec::one(1, &[DELETE]),
        arguments: &[
            Argument::key("key"),
            Argument::double("min"),
            Argument::double("max"),
        ],
        handler: Handler::Keys(remove::zremrangebyscore),
        ..ZSET
    },
    Command {
        name: "zrevrange",
        cost: Cost::visiting(100, Visits::Range(2)),
        summary: "Returns the members of a sorted set within a range of ranks, the greatest score \
                  first.",
        since: "1.2.0",
        complexity: "O(log(N)+M) where N is the number of members in the sorted set and M the \
                     number of members returned.",
        arity: -4,
        flags: Flags::READONLY,
        keys: KeySpec::one(1, &[READ]),
        arguments: &[
            Argument::key("key"),
            Argument::integer("start"),
            Argument::integer("stop"),
            Argument::word("withscores", "WITHSCORES").optional(),
        ],
        replaced_by: Some(("6.2.0", "`ZRANGE` with the `REV` argument")),
        handler: Handler::Keys(range::zrevrange),
        ..ZSET
    },
    Command {
        name: "zrevrangebylex",
        cost: Cost::visiting(100, Visits::Range(2)),
        summary: "Returns the members of a sorted set within a lexicographical range, the last one \
                  first.",
        since: "2.8.9",
        complexity: "O(log(N)+M) where N is the number of members in the sorted set and M the \
                     number of members returned.",
        arity: -4,
        flags: Flags::READONLY,
        keys: KeySpec::one(1, &[READ]),
        arguments: &[
            Argument::key("key"),
            Argument::string("max"),
            Argument::string("min"),
            Argument::block(
                "offset_count",
                &[Argument::integer("offset"), Argument::integer("count")],
            )
            .after("LIMIT")
            .optional(),
        ],
        replaced_by: Some(("6.2.0", "`ZRANGE` with the `REV` and `BYLEX` arguments")),
        handler: Handler::Keys(range::zrevrangebylex),
        ..ZSET
    },
    Command {
        name: "zrevrangebyscore",
        cost: Cost::visiting(100, Visits::Range(2)),
        summary: "Returns the members of a sorted set within a range of scores, the greatest \
                  first.",
        since: "2.2.0",
        complexity: "O(log(N)+M) where N is the number of members in the sorted set and M the \
                     number of members returned.",
        arity: -4,
        flags: Flags::READONLY,
        keys: KeySpec::one(1, &[READ]),
        arguments: &[
            Argument::key("key"),
            Argument::double("max"),
            Argument::double("min"),
            Argument::word("withscores", "WITHSCORES").optional(),
            Argument::block(
                "offset_count",
                &[Argument::integer("offset"), Argument::integer("count")],
            )
            .after("LIMIT")
            .optional(),
        ],
        history: &[("2.1.6", "`min` and `max` can be exclusive.")],
        replaced_by: Some(("6.2.0", "`ZRANGE` with the `REV` and `BYSCORE` arguments")),
        handler: Handler::Keys(range::zrevrangebyscore),
        ..ZSET
    },
];
