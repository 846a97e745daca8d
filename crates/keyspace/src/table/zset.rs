//! Rows: sorted sets, member by member.

use crate::command::{Argument, Command, Flags, Group, Handler, KeySpec, KeyUse};
use crate::commands::zset::{self, pop, random, read, write};
use crate::long::{Cost, Visits};

const READ: KeyUse = KeyUse {
    flags: &["RO", "access"],
};
const LOOK: KeyUse = KeyUse { flags: &["RO"] };
const UPDATE: KeyUse = KeyUse {
    flags: &["RW", "update"],
};
const COUNT: KeyUse = KeyUse {
    flags: &["RW", "access", "update"],
};
const DELETE: KeyUse = KeyUse {
    flags: &["RW", "delete"],
};
const TAKE: KeyUse = KeyUse {
    flags: &["RW", "access", "delete"],
};

const ZSET: Command = Command {
    group: Group::SortedSet,
    categories: &["@sortedset"],
    ..Command::BASE
};

pub(super) static ROWS: &[Command] = &[
    Command {
        name: "zadd",
        cost: Cost::arguments(600),
        summary: "Adds members to a sorted set, or changes their scores. Creates the key if it \
                  doesn't exist.",
        since: "1.2.0",
        complexity: "O(log(N)) for each member added, where N is the number of members in the \
                     sorted set.",
        arity: -4,
        flags: Flags::WRITE.or(Flags::DENYOOM).or(Flags::FAST),
        keys: KeySpec::one(1, &[UPDATE]),
        arguments: &[
            Argument::key("key"),
            Argument::one_of(
                "condition",
                &[Argument::word("nx", "NX"), Argument::word("xx", "XX")],
            )
            .since("3.0.2")
            .optional(),
            Argument::one_of(
                "comparison",
                &[Argument::word("gt", "GT"), Argument::word("lt", "LT")],
            )
            .since("6.2.0")
            .optional(),
            Argument::word("change", "CH").since("3.0.2").optional(),
            Argument::word("increment", "INCR")
                .since("3.0.2")
                .optional(),
            Argument::block(
                "score_member",
                &[Argument::double("score"), Argument::string("member")],
            )
            .multiple(),
        ],
        history: &[
            ("2.4.0", "Accepts multiple elements."),
            ("3.0.2", "Added the `XX`, `NX`, `CH` and `INCR` options."),
            ("6.2.0", "Added the `GT` and `LT` options."),
        ],
        handler: Handler::Keys(write::zadd),
        ..ZSET
    },
    Command {
        name: "zcard",
        summary: "Returns the number of members in a sorted set.",
        since: "1.2.0",
        arity: 2,
        flags: Flags::READONLY.or(Flags::FAST),
        keys: KeySpec::one(1, &[LOOK]),
        arguments: &[Argument::key("key")],
        handler: Handler::Keys(read::zcard),
        ..ZSET
    },
    Command {
        name: "zincrby",
        summary: "Increments the score of a member in a sorted set.",
        since: "1.2.0",
        complexity: "O(log(N)) where N is the number of members in the sorted set.",
        arity: 4,
        flags: Flags::WRITE.or(Flags::DENYOOM).or(Flags::FAST),
        keys: KeySpec::one(1, &[COUNT]),
        arguments: &[
            Argument::key("key"),
            Argument::integer("increment"),
            Argument::string("member"),
        ],
        handler: Handler::Keys(write::zincrby),
        ..ZSET
    },
    Command {
        name: "zmpop",
        cost: Cost::visiting(1_500, Visits::CountWord(1)),
        summary: "Removes and returns the first or the last members of the first sorted set that \
                  is not empty.",
        since: "7.0.0",
        complexity: "O(K) + O(M*log(N)) where K is the number of keys, N the number of members in \
                     the sorted set and M the number of members popped.",
        arity: -4,
        flags: Flags::WRITE.or(Flags::MOVABLE_KEYS),
        keys: KeySpec::counted(1, &[TAKE]),
        arguments: &[
            Argument::integer("numkeys"),
            Argument::key("key").multiple(),
            Argument::one_of(
                "where",
                &[Argument::word("min", "MIN"), Argument::word("max", "MAX")],
            ),
            Argument::integer("count").after("COUNT").optional(),
        ],
        handler: Handler::Keys(pop::zmpop),
        ..ZSET
    },
    Command {
        name: "zmscore",
        cost: Cost::arguments(200),
        summary: "Returns the scores of one or more members in a sorted set.",
        since: "6.2.0",
        complexity: "O(N) where N is the number of members being requested.",
        arity: -3,
        flags: Flags::READONLY.or(Flags::FAST),
        keys: KeySpec::one(1, &[READ]),
        arguments: &[Argument::key("key"), Argument::string("member").multiple()],
        handler: Handler::Keys(read::zmscore),
        ..ZSET
    },
    Command {
        name: "zpopmax",
        cost: Cost::visiting(1_500, Visits::Count(2)),
        summary: "Removes and returns the members with the highest scores of a sorted set. Deletes \
                  the key if none remain.",
        since: "5.0.0",
        complexity: "O(log(N)*M) where N is the number of members in the sorted set and M the \
                     number of members popped.",
        arity: -2,
        flags: Flags::WRITE.or(Flags::FAST),
        keys: KeySpec::one(1, &[TAKE]),
        arguments: &[Argument::key("key"), Argument::integer("count").optional()],
        handler: Handler::Keys(pop::zpopmax),
        ..ZSET
    },
    Command {
        name: "zpopmin",
        cost: Cost::visiting(1_500, Visits::Count(2)),
        summary: "Removes and returns the members with the lowest scores of a sorted set. Deletes \
                  the key if none remain.",
        since: "5.0.0",
        complexity: "O(log(N)*M) where N is the number of members in the sorted set and M the \
                     number of members popped.",
        arity: -2,
        flags: Flags::WRITE.or(Flags::FAST),
        keys: KeySpec::one(1, &[TAKE]),
        arguments: &[Argument::key("key"), Argument::integer("count").optional()],
        handler: Handler::Keys(pop::zpopmin),
        ..ZSET
    },
    Command {
        name: "zrandmember",
        cost: Cost::visiting(600, Visits::Count(2)),
        summary: "Returns random members of a sorted set.",
        since: "6.2.0",
        complexity: "O(N) where N is the number of members returned.",
        arity: -2,
        flags: Flags::READONLY,
        tips: &["nondeterministic_output"],
        keys: KeySpec::one(1, &[READ]),
        arguments: &[
            Argument::key("key"),
            Argument::block(
                "options",
                &[
                    Argument::integer("count"),
                    Argument::word("withscores", "WITHSCORES").optional(),
                ],
            )
            .optional(),
        ],
        handler: Handler::Keys(random::zrandmember),
        ..ZSET
    },
    Command {
        name: "zrank",
        summary: "Returns how many members of a sorted set come before a member.",
        since: "2.0.0",
        complexity: "O(log(N)) where N is the number of members in the sorted set.",
        arity: -3,
        flags: Flags::READONLY.or(Flags::FAST),
        keys: KeySpec::one(1, &[READ]),
        arguments: &[
            Argument::key("key"),
            Argument::string("member"),
            Argument::word("withscore", "WITHSCORE")
                .since("7.2.0")
                .optional(),
        ],
        history: &[("7.2.0", "Added the optional `WITHSCORE` argument.")],
        handler: Handler::Keys(read::zrank),
        ..ZSET
    },
    Command {
        name: "zrem",
        cost: Cost::arguments(1_000),
        summary: "Removes members from a sorted set. Deletes the key if none remain.",
        since: "1.2.0",
        complexity: "O(M*log(N)) where N is the number of members in the sorted set and M the \
                     number of members to be removed.",
        arity: -3,
        flags: Flags::WRITE.or(Flags::FAST),
        keys: KeySpec::one(1, &[DELETE]),
        arguments: &[Argument::key("key"), Argument::string("member").multiple()],
        history: &[("2.4.0", "Accepts multiple elements.")],
        handler: Handler::Keys(write::zrem),
        ..ZSET
    },
    Command {
        name: "zrevrank",
        summary: "Returns how many members of a sorted set come behind a member.",
        since: "2.0.0",
        complexity: "O(log(N)) where N is the number of members in the sorted set.",
        arity: -3,
        flags: Flags::READONLY.or(Flags::FAST),
        keys: KeySpec::one(1, &[READ]),
        arguments: &[
            Argument::key("key"),
            Argument::string("member"),
            Argument::word("withscore", "WITHSCORE")
                .since("7.2.0")
                .optional(),
        ],
        history: &[("7.2.0", "Added the optional `WITHSCORE` argument.")],
        handler: Handler::Keys(read::zrevrank),
        ..ZSET
    },
    Command {
        name: "zscan",
        cost: Cost::visiting(1_000, Visits::CountWord(10)),
        summary: "Iterates over the members of a sorted set and their scores.",
        since: "2.8.0",
        complexity: "O(1) for every call. O(N) for a whole iteration, where N is the number of \
                     members.",
        arity: -3,
        flags: Flags::READONLY,
        tips: &["nondeterministic_output"],
        keys: KeySpec::one(1, &[READ]),
        arguments: &[
            Argument::key("key"),
            Argument::integer("cursor"),
            Argument::pattern("pattern").after("MATCH").optional(),
            Argument::integer("count").after("COUNT").optional(),
            Argument::word("noscores", "NOSCORES")
                .optional()
                .since("8.0.0"),
        ],
        handler: Handler::Keys(zset::zscan),
        ..ZSET
    },
    Command {
        name: "zscore",
        summary: "Returns the score of a member in a sorted set.",
        since: "1.2.0",
        arity: 3,
        flags: Flags::READONLY.or(Flags::FAST),
        keys: KeySpec::one(1, &[READ]),
        arguments: &[Argument::key("key"), Argument::string("member")],
        handler: Handler::Keys(read::zscore),
        ..ZSET
    },
];
