//! Rows: lists.

use crate::command::{Argument, Command, Flags, Group, Handler, KeySpec, KeyUse};
use crate::commands::list::{pop, push, read, transfer, write};
use crate::long::{Cost, Visits};

const READ: KeyUse = KeyUse {
    flags: &["RO", "access"],
};
const LOOK: KeyUse = KeyUse { flags: &["RO"] };
const INSERT: KeyUse = KeyUse {
    flags: &["RW", "insert"],
};
const UPDATE: KeyUse = KeyUse {
    flags: &["RW", "update"],
};
const DELETE: KeyUse = KeyUse {
    flags: &["RW", "delete"],
};
const TAKE: KeyUse = KeyUse {
    flags: &["RW", "access", "delete"],
};

const KEY: Argument = Argument::key("key");
const ELEMENT: Argument = Argument::string("element");
const COUNT: Argument = Argument::integer("count");
const START: Argument = Argument::integer("start");
const STOP: Argument = Argument::integer("stop");
const LEFT: Argument = Argument::word("left", "LEFT");
const RIGHT: Argument = Argument::word("right", "RIGHT");
const BOTH: [Argument; 2] = [LEFT, RIGHT];
const FROM_TO: &[Argument] = &[
    Argument::key_of("source", 0),
    Argument::key_of("destination", 1),
    Argument::one_of("wherefrom", &BOTH),
    Argument::one_of("whereto", &BOTH),
];

const LIST: Command = Command {
    group: Group::List,
    categories: &["@list"],
    keys: KeySpec::one(1, &[READ]),
    flags: Flags::READONLY,
    ..Command::BASE
};
const GROWS: Command = Command {
    flags: Flags::WRITE.or(Flags::DENYOOM).or(Flags::FAST),
    keys: KeySpec::one(1, &[INSERT]),
    complexity: "O(1) for each element added, so O(N) to add N elements when the command is called \
                 with multiple arguments.",
    arity: -3,
    arguments: &[KEY, ELEMENT.multiple()],
    ..LIST
};
const POPS: Command = Command {
    flags: Flags::WRITE.or(Flags::FAST),
    keys: KeySpec::one(1, &[TAKE]),
    complexity: "O(N) where N is the number of elements returned",
    arity: -2,
    arguments: &[KEY, COUNT.optional().since("6.2.0")],
    history: &[("6.2.0", "Added the `count` argument.")],
    ..LIST
};
const MOVES: Command = Command {
    flags: Flags::WRITE.or(Flags::DENYOOM),
    keys: KeySpec::two(&[TAKE, INSERT]),
    ..LIST
};
const SEVERAL: &[(&str, &str)] = &[("2.4.0", "Accepts multiple `element` arguments.")];
const SEVERAL_IF_THERE: &[(&str, &str)] = &[("4.0.0", "Accepts multiple `element` arguments.")];

pub(super) static ROWS: &[Command] = &[
    Command {
        name: "lindex",
        summary: "Returns an element from a list by its index.",
        complexity: "O(N) where N is the number of elements to traverse to get to the element at \
                     index. This makes asking for the first or the last element of the list O(1).",
        arity: 3,
        slow: true,
        arguments: &[KEY, Argument::integer("index")],
        handler: Handler::Keys(read::lindex),
        ..LIST
    },
    Command {
        name: "linsert",
        cost: Cost::all(40),
        summary: "Inserts an element before or after another element in a list.",
        since: "2.2.0",
        complexity: "O(N) where N is the number of elements to traverse before seeing the value \
                     pivot. This means that inserting somewhere on the left end on the list (head) \
                     can be considered O(1) and inserting somewhere on the right end (tail) is O(N).",
        arity: 5,
        flags: Flags::WRITE.or(Flags::DENYOOM),
        slow: true,
        arguments: &[
            KEY,
            Argument::one_of(
                "where",
                &[
                    Argument::word("before", "BEFORE"),
                    Argument::word("after", "AFTER"),
                ],
            ),
            Argument::string("pivot"),
            ELEMENT,
        ],
        handler: Handler::Keys(write::linsert),
        ..GROWS
    },
    Command {
        name: "llen",
        summary: "Returns the length of a list.",
        arity: 2,
        flags: Flags::READONLY.or(Flags::FAST),
        keys: KeySpec::one(1, &[LOOK]),
        arguments: &[KEY],
        handler: Handler::Keys(read::llen),
        ..LIST
    },
    Command {
        name: "lmove",
        summary: "Returns an element after popping it from one list and pushing it to another. \
                  Deletes the list if the last element was moved.",
        since: "6.2.0",
        arity: 5,
        arguments: FROM_TO,
        handler: Handler::Keys(transfer::lmove),
        ..MOVES
    },
    Command {
        name: "lmpop",
        cost: Cost::visiting(60, Visits::CountWord(1)),
        summary: "Returns multiple elements from a list after removing them. Deletes the list if the \
                  last element was popped.",
        since: "7.0.0",
        complexity: "O(N+M) where N is the number of provided keys and M is the number of elements \
                     returned.",
        arity: -4,
        flags: Flags::WRITE.or(Flags::MOVABLE_KEYS),
        keys: KeySpec::counted(1, &[TAKE]),
        arguments: &[
            Argument::integer("numkeys"),
            KEY.multiple(),
            Argument::one_of("where", &BOTH),
            COUNT.after("COUNT").optional(),
        ],
        handler: Handler::Keys(pop::lmpop),
        ..LIST
    },
    Command {
        name: "lpop",
        cost: Cost::visiting(60, Visits::Count(2)),
        summary: "Returns the first elements in a list after removing it. Deletes the list if the last \
                  element was popped.",
        handler: Handler::Keys(pop::lpop),
        ..POPS
    },
    Command {
        name: "lpos",
        cost: Cost::all(40),
        summary: "Returns the index of matching elements in a list.",
        since: "6.0.6",
        complexity: "O(N) where N is the number of elements in the list, for the average case. When \
                     searching for elements near the head or the tail of the list, or when the MAXLEN \
                     option is provided, the command may run in constant time.",
        arity: -3,
        slow: true,
        arguments: &[
            KEY,
            ELEMENT,
            Argument::integer("rank").after("RANK").optional(),
            Argument::integer("num-matches").after("COUNT").optional(),
            Argument::integer("len").after("MAXLEN").optional(),
        ],
        handler: Handler::Keys(read::lpos),
        ..LIST
    },
    Command {
        name: "lpush",
        cost: Cost::arguments(100),
        summary: "Prepends one or more elements to a list. Creates the key if it doesn't exist.",
        history: SEVERAL,
        handler: Handler::Keys(push::lpush),
        ..GROWS
    },
    Command {
        name: "lpushx",
        cost: Cost::arguments(100),
        summary: "Prepends one or more elements to a list only when the list exists.",
        since: "2.2.0",
        history: SEVERAL_IF_THERE,
        handler: Handler::Keys(push::lpushx),
        ..GROWS
    },
    Command {
        name: "lrange",
        cost: Cost::visiting(60, Visits::Places(2)),
        summary: "Returns a range of elements from a list.",
        complexity: "O(S+N) where S is the distance of start offset from HEAD for small lists, from \
                     nearest end (HEAD or TAIL) for large lists; and N is the number of elements in the \
                     specified range.",
        arity: 4,
        slow: true,
        arguments: &[KEY, START, STOP],
        handler: Handler::Keys(read::lrange),
        ..LIST
    },
    Command {
        name: "lrem",
        cost: Cost::all(40),
        summary: "Removes elements from a list. Deletes the list if the last element was removed.",
        complexity: "O(N+M) where N is the length of the list and M is the number of elements removed.",
        arity: 4,
        flags: Flags::WRITE,
        slow: true,
        keys: KeySpec::one(1, &[DELETE]),
        arguments: &[KEY, COUNT, ELEMENT],
        handler: Handler::Keys(write::lrem),
        ..LIST
    },
    Command {
        name: "lset",
        summary: "Sets the value of an element in a list by its index.",
        complexity: "O(N) where N is the length of the list. Setting either the first or the last \
                     element of the list is O(1).",
        arity: 4,
        flags: Flags::WRITE.or(Flags::DENYOOM),
        slow: true,
        keys: KeySpec::one(1, &[UPDATE]),
        arguments: &[KEY, Argument::integer("index"), ELEMENT],
        handler: Handler::Keys(write::lset),
        ..LIST
    },
    Command {
        name: "ltrim",
        cost: Cost::all(20),
        summary: "Removes elements from both ends a list. Deletes the list if all elements were \
                  trimmed.",
        complexity: "O(N) where N is the number of elements to be removed by the operation.",
        arity: 4,
        flags: Flags::WRITE,
        slow: true,
        keys: KeySpec::one(1, &[DELETE]),
        arguments: &[KEY, START, STOP],
        handler: Handler::Keys(write::ltrim),
        ..LIST
    },
    Command {
        name: "rpop",
        cost: Cost::visiting(60, Visits::Count(2)),
        summary: "Returns and removes the last elements of a list. Deletes the list if the last \
                  element was popped.",
        handler: Handler::Keys(pop::rpop),
        ..POPS
    },
    Command {
        name: "rpoplpush",
        summary: "Returns the last element of a list after removing and pushing it to another list. \
                  Deletes the list if the last element was popped.",
        since: "1.2.0",
        arity: 3,
        arguments: &[
            Argument::key_of("source", 0),
            Argument::key_of("destination", 1),
        ],
        replaced_by: Some(("6.2.0", "`LMOVE` with the `RIGHT` and `LEFT` arguments")),
        handler: Handler::Keys(transfer::rpoplpush),
        ..MOVES
    },
    Command {
        name: "rpush",
        cost: Cost::arguments(100),
        summary: "Appends one or more elements to a list. Creates the key if it doesn't exist.",
        history: SEVERAL,
        handler: Handler::Keys(push::rpush),
        ..GROWS
    },
    Command {
        name: "rpushx",
        cost: Cost::arguments(100),
        summary: "Appends an element to a list only when the list exists.",
        since: "2.2.0",
        history: SEVERAL_IF_THERE,
        handler: Handler::Keys(push::rpushx),
        ..GROWS
    },
];
