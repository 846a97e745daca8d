//! Rows: bitmaps.

use crate::command::{Adds, Argument, Command, Flags, Group, Handler, KeySpec, KeyUse};
use crate::commands::{bitfield, bitmap, bitop};
use crate::long::Cost;

const RO: KeyUse = KeyUse {
    flags: &["RO", "access"],
};
const WRITE: KeyUse = KeyUse {
    flags: &["RW", "access", "update"],
};
const RESULT: KeyUse = KeyUse {
    flags: &["OW", "update"],
};

const GROWS: Flags = Flags::WRITE.or(Flags::DENYOOM);
const FAST_READ: Flags = Flags::READONLY.or(Flags::FAST);

const BITMAP: Command = Command {
    group: Group::Bitmap,
    categories: &["@bitmap"],
    ..Command::BASE
};

const KEY: Argument = Argument::key("key");
const OFFSET: Argument = Argument::integer("offset");
const ENCODING: Argument = Argument::string("encoding");
const UNIT: Argument = Argument::one_of(
    "unit",
    &[Argument::word("byte", "BYTE"), Argument::word("bit", "BIT")],
)
.optional()
.since("7.0.0");

const GET: Argument = Argument::block("get-block", &[ENCODING, OFFSET]).after("GET");
const WRITES: &[Argument] = &[
    Argument::one_of(
        "overflow-block",
        &[
            Argument::word("wrap", "WRAP"),
            Argument::word("sat", "SAT"),
            Argument::word("fail", "FAIL"),
        ],
    )
    .after("OVERFLOW")
    .optional(),
    Argument::one_of(
        "write-operation",
        &[
            Argument::block("set-block", &[ENCODING, OFFSET, Argument::integer("value")])
                .after("SET"),
            Argument::block(
                "incrby-block",
                &[ENCODING, OFFSET, Argument::integer("increment")],
            )
            .after("INCRBY"),
        ],
    ),
];

pub(super) static ROWS: &[Command] = &[
    Command {
        name: "bitcount",
        cost: Cost::all(5),
        summary: "Counts the number of set bits (population counting) in a string.",
        since: "2.6.0",
        complexity: "O(N)",
        arity: -2,
        flags: Flags::READONLY,
        slow: true,
        keys: KeySpec::one(1, &[RO]),
        arguments: &[
            KEY,
            Argument::block(
                "range",
                &[
                    Argument::integer("start"),
                    Argument::block("end-unit-block", &[Argument::integer("end"), UNIT]).optional(),
                ],
            )
            .optional(),
        ],
        history: &[
            ("7.0.0", "Added the `BYTE|BIT` option."),
            ("8.0.0", "`end` may be left out: to the end of the string."),
        ],
        handler: Handler::Keys(bitmap::bitcount),
        ..BITMAP
    },
    Command {
        name: "bitfield",
        cost: Cost::all(30),
        summary: "Performs arbitrary bitfield integer operations on strings.",
        since: "3.2.0",
        complexity: "O(1) for each subcommand specified",
        arity: -2,
        flags: GROWS,
        slow: true,
        keys: KeySpec::one(
            1,
            &[KeyUse {
                flags: &["RW", "access", "update", "variable_flags"],
            }],
        ),
        adds: Adds::Fields,
        arguments: &[
            KEY,
            Argument::one_of("operation", &[GET, Argument::block("write", WRITES)])
                .multiple()
                .optional(),
        ],
        handler: Handler::Keys(bitfield::bitfield),
        ..BITMAP
    },
    Command {
        name: "bitfield_ro",
        summary: "Performs arbitrary read-only bitfield integer operations on strings.",
        since: "6.0.0",
        complexity: "O(1) for each subcommand specified",
        arity: -2,
        flags: FAST_READ,
        keys: KeySpec::one(1, &[RO]),
        arguments: &[KEY, GET.multiple().optional()],
        handler: Handler::Keys(bitfield::bitfield_ro),
        ..BITMAP
    },
    Command {
        name: "bitop",
        cost: Cost::all(10),
        summary: "Performs bitwise operations on multiple strings, and stores the result.",
        since: "2.6.0",
        complexity: "O(N)",
        arity: -4,
        flags: GROWS,
        slow: true,
        keys: KeySpec {
            first: 2,
            last: -1,
            step: 1,
            counted: 0,
            stored_from: 0,
            uses: &[RESULT, RO],
        },
        adds: Adds::Longest,
        arguments: &[
            Argument::one_of(
                "operation",
                &[
                    Argument::word("and", "AND"),
                    Argument::word("or", "OR"),
                    Argument::word("xor", "XOR"),
                    Argument::word("not", "NOT"),
                    Argument::word("diff", "DIFF").since("8.2.0"),
                    Argument::word("diff1", "DIFF1").since("8.2.0"),
                    Argument::word("andor", "ANDOR").since("8.2.0"),
                    Argument::word("one", "ONE").since("8.2.0"),
                ],
            ),
            Argument::key("destkey"),
            Argument::key_of("key", 1).multiple(),
        ],
        history: &[(
            "8.2.0",
            "Added the `DIFF`, `DIFF1`, `ANDOR` and `ONE` operations.",
        )],
        handler: Handler::Keys(bitop::bitop),
        ..BITMAP
    },
    Command {
        name: "bitpos",
        cost: Cost::all(5),
        summary: "Finds the first set (1) or clear (0) bit in a string.",
        since: "2.8.7",
        complexity: "O(N)",
        arity: -3,
        flags: Flags::READONLY,
        slow: true,
        keys: KeySpec::one(1, &[RO]),
        arguments: &[
            KEY,
            Argument::integer("bit"),
            Argument::block(
                "range",
                &[
                    Argument::integer("start"),
                    Argument::block("end-unit-block", &[Argument::integer("end"), UNIT]).optional(),
                ],
            )
            .optional(),
        ],
        history: &[("7.0.0", "Added the `BYTE|BIT` option.")],
        handler: Handler::Keys(bitmap::bitpos),
        ..BITMAP
    },
    Command {
        name: "getbit",
        summary: "Returns a bit value by offset.",
        since: "2.2.0",
        arity: 3,
        flags: FAST_READ,
        keys: KeySpec::one(1, &[RO]),
        arguments: &[KEY, OFFSET],
        handler: Handler::Keys(bitmap::getbit),
        ..BITMAP
    },
    Command {
        name: "setbit",
        cost: Cost::all(30),
        summary: "Sets or clears the bit at offset of the string value. Creates the key if it doesn't \
                  exist.",
        since: "2.2.0",
        arity: 4,
        flags: GROWS,
        slow: true,
        keys: KeySpec::one(1, &[WRITE]),
        adds: Adds::Bit,
        arguments: &[KEY, OFFSET, Argument::integer("value")],
        handler: Handler::Keys(bitmap::setbit),
        ..BITMAP
    },
];
