//! Rows: commands that wait until a key holds something.

use crate::command::{Argument, Command, Flags, Group, Handler, KeySpec, KeyUse};
use crate::commands::{list, zset};

const TAKE: KeyUse = KeyUse {
    flags: &["RW", "access", "delete"],
};
const INSERT: KeyUse = KeyUse {
    flags: &["RW", "insert"],
};

const TIMEOUT: Argument = Argument::double("timeout");
const COUNT: Argument = Argument::integer("count").after("COUNT").optional();
const LEFT: Argument = Argument::word("left", "LEFT");
const RIGHT: Argument = Argument::word("right", "RIGHT");
const BOTH: [Argument; 2] = [LEFT, RIGHT];
const MIN_OR_MAX: [Argument; 2] = [Argument::word("min", "MIN"), Argument::word("max", "MAX")];
const SINCE_DOUBLE: &[(&str, &str)] = &[(
    "6.0.0",
    "`timeout` is interpreted as a double instead of an integer.",
)];

const WAITS: Flags = Flags::WRITE.or(Flags::NOSCRIPT).or(Flags::BLOCKING);

const LIST: Command = Command {
    group: Group::List,
    since: "2.0.0",
    complexity: "O(N) where N is the number of provided keys.",
    arity: -3,
    flags: WAITS,
    categories: &["@list"],
    keys: KeySpec::but_last(&[TAKE]),
    arguments: &[Argument::key("key").multiple(), TIMEOUT],
    history: SINCE_DOUBLE,
    ..Command::BASE
};
const ZSET: Command = Command {
    group: Group::SortedSet,
    since: "5.0.0",
    complexity: "O(log(N)) with N being the number of elements in the sorted set.",
    flags: WAITS.or(Flags::FAST),
    categories: &["@sortedset"],
    ..LIST
};

pub(super) static ROWS: &[Command] = &[
    Command {
        name: "blmove",
        summary: "Pops an element from a list, pushes it to another list and returns it. Blocks until \
                  an element is available otherwise. Deletes the list if the last element was moved.",
        since: "6.2.0",
        complexity: "O(1)",
        arity: 6,
        flags: WAITS.or(Flags::DENYOOM),
        keys: KeySpec::two(&[TAKE, INSERT]),
        arguments: &[
            Argument::key_of("source", 0),
            Argument::key_of("destination", 1),
            Argument::one_of("wherefrom", &BOTH),
            Argument::one_of("whereto", &BOTH),
            TIMEOUT,
        ],
        history: &[],
        handler: Handler::Keys(list::blocking::blmove),
        ..LIST
    },
    Command {
        name: "blmpop",
        summary: "Pops the first element from one of multiple lists. Blocks until an element is \
                  available otherwise. Deletes the list if the last element was popped.",
        since: "7.0.0",
        complexity: "O(N+M) where N is the number of provided keys and M is the number of elements \
                     returned.",
        arity: -5,
        flags: WAITS.or(Flags::MOVABLE_KEYS),
        keys: KeySpec::counted(2, &[TAKE]),
        arguments: &[
            TIMEOUT,
            Argument::integer("numkeys"),
            Argument::key("key").multiple(),
            Argument::one_of("where", &BOTH),
            COUNT,
        ],
        history: &[],
        handler: Handler::Keys(list::blocking::blmpop),
        ..LIST
    },
    Command {
        name: "blpop",
        summary: "Removes and returns the first element in a list. Blocks until an element is available \
                  otherwise. Deletes the list if the last element was popped.",
        handler: Handler::Keys(list::blocking::blpop),
        ..LIST
    },
    Command {
        name: "brpop",
        summary: "Removes and returns the last element in a list. Blocks until an element is available \
                  otherwise. Deletes the list if the last element was popped.",
        handler: Handler::Keys(list::blocking::brpop),
        ..LIST
    },
    Command {
        name: "brpoplpush",
        summary: "Pops an element from a list, pushes it to another list and returns it. Block until an \
                  element is available otherwise. Deletes the list if the last element was popped.",
        since: "2.2.0",
        complexity: "O(1)",
        arity: 4,
        flags: WAITS.or(Flags::DENYOOM),
        keys: KeySpec::two(&[TAKE, INSERT]),
        arguments: &[
            Argument::key_of("source", 0),
            Argument::key_of("destination", 1),
            TIMEOUT,
        ],
        replaced_by: Some(("6.2.0", "`BLMOVE` with the `RIGHT` and `LEFT` arguments")),
        handler: Handler::Keys(list::blocking::brpoplpush),
        ..LIST
    },
    Command {
        name: "bzmpop",
        summary: "Removes and returns a member by score from one or more sorted sets. Blocks until a \
                  member is available otherwise. Deletes the sorted set if the last element was popped.",
        since: "7.0.0",
        complexity: "O(K) + O(M*log(N)) where K is the number of provided keys, N being the number of \
                     elements in the sorted set, and M being the number of elements popped.",
        arity: -5,
        flags: WAITS.or(Flags::MOVABLE_KEYS),
        keys: KeySpec::counted(2, &[TAKE]),
        arguments: &[
            TIMEOUT,
            Argument::integer("numkeys"),
            Argument::key("key").multiple(),
            Argument::one_of("where", &MIN_OR_MAX),
            COUNT,
        ],
        history: &[],
        handler: Handler::Keys(zset::blocking::bzmpop),
        ..ZSET
    },
    Command {
        name: "bzpopmax",
        summary: "Removes and returns the member with the highest score from one or more sorted sets. \
                  Blocks until a member is available otherwise. Deletes the sorted set if the last \
                  element was popped.",
        handler: Handler::Keys(zset::blocking::bzpopmax),
        ..ZSET
    },
    Command {
        name: "bzpopmin",
        summary: "Removes and returns the member with the lowest score from one or more sorted sets. \
                  Blocks until a member is available otherwise. Deletes the sorted set if the last \
                  element was popped.",
        handler: Handler::Keys(zset::blocking::bzpopmin),
        ..ZSET
    },
];
