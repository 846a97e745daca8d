//! Rows: sets.

use crate::command::{Adds, Argument, Command, Flags, Group, Handler, KeySpec, KeyUse};
use crate::commands::set::{self, algebra, basic, random};
use crate::long::{Cost, Visits};

const READ: KeyUse = KeyUse {
    flags: &["RO", "access"],
};
const LOOK: KeyUse = KeyUse { flags: &["RO"] };
const INSERT: KeyUse = KeyUse {
    flags: &["RW", "insert"],
};
const DELETE: KeyUse = KeyUse {
    flags: &["RW", "delete"],
};
const TAKE: KeyUse = KeyUse {
    flags: &["RW", "access", "delete"],
};

const KEY: Argument = Argument::key("key");
const MEMBER: Argument = Argument::string("member");

const SET: Command = Command {
    group: Group::Set,
    categories: &["@set"],
    keys: KeySpec::one(1, &[READ]),
    flags: Flags::READONLY.or(Flags::FAST),
    ..Command::BASE
};

const PUT: KeyUse = KeyUse {
    flags: &["OW", "update"],
};
/// Several sets as one.
const SEVERAL: Command = Command {
    arity: -2,
    keys: KeySpec::all(1, &[READ]),
    flags: Flags::READONLY,
    slow: true,
    complexity: "O(N) where N is the total number of elements in all given sets.",
    tips: &["nondeterministic_output_order"],
    arguments: &[KEY.multiple()],
    ..SET
};
/// Several sets as one that is stored.
const STORE: Command = Command {
    arity: -3,
    keys: KeySpec::all(1, &[PUT, READ]),
    flags: Flags::WRITE.or(Flags::DENYOOM),
    adds: Adds::Sources,
    tips: &[],
    arguments: &[
        Argument::key("destination"),
        Argument::key_of("key", 1).multiple(),
    ],
    ..SEVERAL
};
const INTER_COST: &str = "O(N*M) worst case where N is the cardinality of the smallest set and M is \
                          the number of sets.";

pub(super) static ROWS: &[Command] = &[
    Command {
        name: "sadd",
        cost: Cost::arguments(600),
        summary: "Adds one or more members to a set. Creates the key if it doesn't exist.",
        complexity: "O(1) for each element added, so O(N) to add N elements when the command is called with \
                     multiple arguments.",
        arity: -3,
        flags: Flags::WRITE.or(Flags::DENYOOM).or(Flags::FAST),
        keys: KeySpec::one(1, &[INSERT]),
        arguments: &[KEY, MEMBER.multiple()],
        history: &[("2.4.0", "Accepts multiple `member` arguments.")],
        handler: Handler::Keys(basic::sadd),
        ..SET
    },
    Command {
        name: "scard",
        summary: "Returns the number of members in a set.",
        arity: 2,
        keys: KeySpec::one(1, &[LOOK]),
        arguments: &[KEY],
        handler: Handler::Keys(basic::scard),
        ..SET
    },
    Command {
        name: "sdiff",
        cost: Cost::all(400),
        summary: "Returns the members of the first set that none of the others has.",
        handler: Handler::Keys(algebra::sdiff),
        ..SEVERAL
    },
    Command {
        name: "sdiffstore",
        cost: Cost::all(500),
        summary: "Stores the members of the first set that none of the others has in a key.",
        handler: Handler::Keys(algebra::sdiffstore),
        ..STORE
    },
    Command {
        name: "sinter",
        cost: Cost::all(400),
        summary: "Returns the members that all of several sets have.",
        complexity: INTER_COST,
        handler: Handler::Keys(algebra::sinter),
        ..SEVERAL
    },
    Command {
        name: "sintercard",
        cost: Cost::all(200),
        summary: "Returns the number of members that all of several sets have.",
        since: "7.0.0",
        complexity: INTER_COST,
        arity: -3,
        flags: Flags::READONLY.or(Flags::MOVABLE_KEYS),
        keys: KeySpec::counted(1, &[READ]),
        tips: &[],
        arguments: &[
            Argument::integer("numkeys"),
            KEY.multiple(),
            Argument::integer("limit").after("LIMIT").optional(),
        ],
        handler: Handler::Keys(algebra::sintercard),
        ..SEVERAL
    },
    Command {
        name: "sinterstore",
        cost: Cost::all(500),
        summary: "Stores the members that all of several sets have in a key.",
        complexity: INTER_COST,
        handler: Handler::Keys(algebra::sinterstore),
        ..STORE
    },
    Command {
        name: "sismember",
        summary: "Determines whether a member belongs to a set.",
        arity: 3,
        keys: KeySpec::one(1, &[LOOK]),
        arguments: &[KEY, MEMBER],
        handler: Handler::Keys(basic::sismember),
        ..SET
    },
    Command {
        name: "smembers",
        cost: Cost::all(60),
        summary: "Returns all members of a set.",
        complexity: "O(N) where N is the set cardinality.",
        arity: 2,
        flags: Flags::READONLY,
        slow: true,
        tips: &["nondeterministic_output_order"],
        arguments: &[KEY],
        handler: Handler::Keys(basic::smembers),
        ..SET
    },
    Command {
        name: "smismember",
        cost: Cost::arguments(200),
        summary: "Determines whether multiple members belong to a set.",
        since: "6.2.0",
        complexity: "O(N) where N is the number of elements being checked for membership",
        arity: -3,
        keys: KeySpec::one(1, &[READ]),
        arguments: &[KEY, MEMBER.multiple()],
        handler: Handler::Keys(basic::smismember),
        ..SET
    },
    Command {
        name: "smove",
        summary: "Moves a member from one set to another.",
        arity: 4,
        flags: Flags::WRITE.or(Flags::FAST),
        keys: KeySpec::two(&[TAKE, INSERT]),
        arguments: &[
            Argument::key("source"),
            Argument::key_of("destination", 1),
            MEMBER,
        ],
        handler: Handler::Keys(basic::smove),
        ..SET
    },
    Command {
        name: "spop",
        cost: Cost::visiting(1_000, Visits::Count(2)),
        summary: "Returns one or more random members from a set after removing them. Deletes the set if the \
                  last member was popped.",
        complexity: "Without the count argument O(1), otherwise O(N) where N is the value of the passed count.",
        arity: -2,
        flags: Flags::WRITE.or(Flags::FAST),
        keys: KeySpec::one(1, &[TAKE]),
        tips: &["nondeterministic_output"],
        arguments: &[KEY, Argument::integer("count").optional().since("3.2.0")],
        history: &[("3.2.0", "Added the `count` argument.")],
        handler: Handler::Keys(random::spop),
        ..SET
    },
    Command {
        name: "srandmember",
        cost: Cost::visiting(500, Visits::Count(2)),
        summary: "Gets one or multiple random members from a set.",
        complexity: "Without the count argument O(1), otherwise O(N) where N is the absolute value of the \
                     passed count.",
        arity: -2,
        flags: Flags::READONLY,
        slow: true,
        tips: &["nondeterministic_output"],
        arguments: &[KEY, Argument::integer("count").optional().since("2.6.0")],
        history: &[("2.6.0", "Added the optional `count` argument.")],
        handler: Handler::Keys(random::srandmember),
        ..SET
    },
    Command {
        name: "srem",
        cost: Cost::arguments(1_000),
        summary: "Removes one or more members from a set. Deletes the set if the last member was removed.",
        complexity: "O(N) where N is the number of members to be removed.",
        arity: -3,
        flags: Flags::WRITE.or(Flags::FAST),
        keys: KeySpec::one(1, &[DELETE]),
        arguments: &[KEY, MEMBER.multiple()],
        history: &[("2.4.0", "Accepts multiple `member` arguments.")],
        handler: Handler::Keys(basic::srem),
        ..SET
    },
    Command {
        name: "sscan",
        cost: Cost::visiting(150, Visits::CountWord(10)),
        summary: "Iterates over the members of a set.",
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
        ],
        handler: Handler::Keys(set::sscan),
        ..SET
    },
    Command {
        name: "sunion",
        cost: Cost::all(400),
        summary: "Returns the members of several sets.",
        handler: Handler::Keys(algebra::sunion),
        ..SEVERAL
    },
    Command {
        name: "sunionstore",
        cost: Cost::all(500),
        summary: "Stores the members of several sets in a key.",
        handler: Handler::Keys(algebra::sunionstore),
        ..STORE
    },
];
