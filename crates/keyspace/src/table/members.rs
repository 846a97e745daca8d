//! Rows: the deadlines of members, for hashes, sets and sorted sets.

use tidewheel_collections::{Hash, Set, ZSet};

use crate::command::{Argument, Command, Flags, Group, Handler, KeySpec, KeyUse};
use crate::commands::members;
use crate::long::Cost;
use crate::time::{Base, Unit};

const KEY: Argument = Argument::key("key");
const MEMBER: Argument = Argument::string("member");
const CONDITION: Argument = Argument::one_of(
    "condition",
    &[
        Argument::word("nx", "NX"),
        Argument::word("xx", "XX"),
        Argument::word("gt", "GT"),
        Argument::word("lt", "LT"),
    ],
)
.optional();
const FIELDS: Argument = Argument::block(
    "fields",
    &[
        Argument::integer("numfields"),
        Argument::string("field").multiple(),
    ],
)
.after("FIELDS");
const MEMBERS: Argument = Argument::block(
    "members",
    &[Argument::integer("nummembers"), MEMBER.multiple()],
)
.after("MEMBERS");

const SETS: Command = Command {
    cost: Cost::arguments(1_200),
    since: "7.4.0",
    complexity: "O(N) where N is the number of specified members",
    arity: -6,
    flags: Flags::WRITE.or(Flags::FAST),
    keys: KeySpec::one(
        1,
        &[KeyUse {
            flags: &["RW", "update"],
        }],
    ),
    ..Command::BASE
};
const READS: Command = Command {
    arity: -5,
    flags: Flags::READONLY.or(Flags::FAST),
    keys: KeySpec::one(
        1,
        &[KeyUse {
            flags: &["RO", "access"],
        }],
    ),
    ..SETS
};
const ONE: Command = Command {
    group: Group::Generic,
    since: "6.3.0",
    arity: -4,
    complexity: "O(1)",
    ..SETS
};

/// The rows of one type: its names, its words in the summaries, its type.
macro_rules! rows {
    ($type:ident, $group:ident, $category:literal, $members:ident, $what:literal, [
        $expire:literal, $pexpire:literal, $expireat:literal, $pexpireat:literal, $ttl:literal, $pttl:literal,
        $expiretime:literal, $pexpiretime:literal, $persist:literal
    ]) => {
        &[
            Command {
                name: $expire,
                summary: concat!("Sets the expiration time of ", $what, " in seconds."),
                group: Group::$group,
                categories: &[$category],
                arguments: &[KEY, Argument::integer("seconds"), CONDITION, $members],
                handler: Handler::Keys(|ctx| {
                    members::expire::<$type>(ctx, Unit::Seconds, Base::Now)
                }),
                ..SETS
            },
            Command {
                name: $pexpire,
                summary: concat!("Sets the expiration time of ", $what, " in milliseconds."),
                group: Group::$group,
                categories: &[$category],
                arguments: &[KEY, Argument::integer("milliseconds"), CONDITION, $members],
                handler: Handler::Keys(|ctx| {
                    members::expire::<$type>(ctx, Unit::Milliseconds, Base::Now)
                }),
                ..SETS
            },
            Command {
                name: $expireat,
                summary: concat!(
                    "Sets the expiration time of ",
                    $what,
                    " to a Unix timestamp in seconds."
                ),
                group: Group::$group,
                categories: &[$category],
                arguments: &[
                    KEY,
                    Argument::unix_time("unix-time-seconds"),
                    CONDITION,
                    $members,
                ],
                handler: Handler::Keys(|ctx| {
                    members::expire::<$type>(ctx, Unit::Seconds, Base::Epoch)
                }),
                ..SETS
            },
            Command {
                name: $pexpireat,
                summary: concat!(
                    "Sets the expiration time of ",
                    $what,
                    " to a Unix timestamp in milliseconds."
                ),
                group: Group::$group,
                categories: &[$category],
                arguments: &[
                    KEY,
                    Argument::unix_time("unix-time-milliseconds"),
                    CONDITION,
                    $members,
                ],
                handler: Handler::Keys(|ctx| {
                    members::expire::<$type>(ctx, Unit::Milliseconds, Base::Epoch)
                }),
                ..SETS
            },
            Command {
                name: $ttl,
                summary: concat!("Returns the time to live of ", $what, " in seconds."),
                group: Group::$group,
                categories: &[$category],
                arguments: &[KEY, $members],
                handler: Handler::Keys(|ctx| {
                    members::report::<$type>(ctx, Unit::Seconds, Base::Now)
                }),
                ..READS
            },
            Command {
                name: $pttl,
                summary: concat!("Returns the time to live of ", $what, " in milliseconds."),
                group: Group::$group,
                categories: &[$category],
                arguments: &[KEY, $members],
                handler: Handler::Keys(|ctx| {
                    members::report::<$type>(ctx, Unit::Milliseconds, Base::Now)
                }),
                ..READS
            },
            Command {
                name: $expiretime,
                summary: concat!(
                    "Returns the expiration time of ",
                    $what,
                    " as a Unix timestamp in seconds."
                ),
                group: Group::$group,
                categories: &[$category],
                arguments: &[KEY, $members],
                handler: Handler::Keys(|ctx| {
                    members::report::<$type>(ctx, Unit::Seconds, Base::Epoch)
                }),
                ..READS
            },
            Command {
                name: $pexpiretime,
                summary: concat!(
                    "Returns the expiration time of ",
                    $what,
                    " as a Unix timestamp in milliseconds."
                ),
                group: Group::$group,
                categories: &[$category],
                arguments: &[KEY, $members],
                handler: Handler::Keys(|ctx| {
                    members::report::<$type>(ctx, Unit::Milliseconds, Base::Epoch)
                }),
                ..READS
            },
            Command {
                name: $persist,
                summary: concat!("Removes the expiration time of ", $what, "."),
                group: Group::$group,
                categories: &[$category],
                arity: -5,
                arguments: &[KEY, $members],
                handler: Handler::Keys(members::persist::<$type>),
                ..SETS
            },
        ]
    };
}

pub(super) static OF_HASHES: &[Command] = rows!(
    Hash,
    Hash,
    "@hash",
    FIELDS,
    "hash fields",
    [
        "hexpire",
        "hpexpire",
        "hexpireat",
        "hpexpireat",
        "httl",
        "hpttl",
        "hexpiretime",
        "hpexpiretime",
        "hpersist"
    ]
);
pub(super) static OF_SETS: &[Command] = rows!(
    Set,
    Set,
    "@set",
    MEMBERS,
    "members of a set",
    [
        "sexpire",
        "spexpire",
        "sexpireat",
        "spexpireat",
        "sttl",
        "spttl",
        "sexpiretime",
        "spexpiretime",
        "spersist"
    ]
);
pub(super) static OF_SORTED_SETS: &[Command] = rows!(
    ZSet,
    SortedSet,
    "@sortedset",
    MEMBERS,
    "members of a sorted set",
    [
        "zexpire",
        "zpexpire",
        "zexpireat",
        "zpexpireat",
        "zttl",
        "zpttl",
        "zexpiretime",
        "zpexpiretime",
        "zpersist"
    ]
);

const UNIT: Argument = Argument::one_of(
    "unit",
    &[Argument::word("s", "s"), Argument::word("ms", "ms")],
)
.optional();

pub(super) static ROWS: &[Command] = &[
    Command {
        name: "expiremember",
        summary: "Sets the expiration time of a hash field, or of a member of a set or a sorted set.",
        arguments: &[KEY, MEMBER, Argument::integer("delay"), UNIT],
        handler: Handler::Keys(|ctx| members::expire_member(ctx, Unit::Seconds, Base::Now)),
        ..ONE
    },
    Command {
        name: "expirememberat",
        summary: "Sets the expiration time of a hash field, or of a member of a set or a sorted set, to a Unix timestamp \
                  in seconds.",
        arity: 4,
        arguments: &[KEY, MEMBER, Argument::unix_time("unix-time-seconds")],
        handler: Handler::Keys(|ctx| members::expire_member(ctx, Unit::Seconds, Base::Epoch)),
        ..ONE
    },
    Command {
        name: "pexpirememberat",
        summary: "Sets the expiration time of a hash field, or of a member of a set or a sorted set, to a Unix timestamp \
                  in milliseconds.",
        arity: 4,
        arguments: &[KEY, MEMBER, Argument::unix_time("unix-time-milliseconds")],
        handler: Handler::Keys(|ctx| members::expire_member(ctx, Unit::Milliseconds, Base::Epoch)),
        ..ONE
    },
];
