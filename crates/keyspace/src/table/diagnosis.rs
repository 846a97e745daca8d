//! Rows: what the server has noticed, for those who operate it.

use crate::command::{Argument, Command, Flags, Group, Handler};

const ADMIN: Flags = Flags::ADMIN.or(Flags::LOADING).or(Flags::STALE);
const ANYTIME: Flags = Flags::LOADING.or(Flags::STALE);

const SERVER: Command = Command {
    group: Group::Server,
    ..Command::BASE
};

pub(super) static ROWS: &[Command] = &[
    Command {
        name: "latency",
        summary: "A container for commands that report what took long.",
        since: "2.8.13",
        complexity: "Depends on subcommand.",
        arity: -2,
        subcommands: LATENCY,
        ..SERVER
    },
    Command {
        name: "lolwut",
        summary: "Draws a picture, and names the version.",
        since: "5.0.0",
        arity: -1,
        flags: Flags::READONLY.or(Flags::FAST),
        arguments: &[Argument::integer("version").after("VERSION").optional()],
        handler: Handler::Host,
        ..SERVER
    },
    Command {
        name: "monitor",
        summary: "Shows every command that any client runs.",
        arity: 1,
        flags: ADMIN.or(Flags::NOSCRIPT),
        handler: Handler::Host,
        ..SERVER
    },
    Command {
        name: "role",
        summary: "Returns the part that the server has in a replication.",
        since: "2.8.12",
        arity: 1,
        flags: ANYTIME.or(Flags::NOSCRIPT).or(Flags::FAST),
        categories: &["@admin", "@dangerous"],
        handler: Handler::Host,
        ..SERVER
    },
    Command {
        name: "slowlog",
        summary: "A container for commands about the log of slow calls.",
        since: "2.2.12",
        complexity: "Depends on subcommand.",
        arity: -2,
        subcommands: SLOWLOG,
        ..SERVER
    },
    Command {
        name: "wait",
        summary: "Returns how many replicas have confirmed this client's writes: none, since there are none.",
        since: "3.0.0",
        group: Group::Generic,
        arity: 3,
        flags: Flags::NOSCRIPT,
        categories: &["@connection"],
        tips: &["request_policy:all_shards", "response_policy:agg_min"],
        arguments: &[
            Argument::integer("numreplicas"),
            Argument::integer("timeout"),
        ],
        handler: Handler::Host,
        ..SERVER
    },
    Command {
        name: "waitaof",
        summary: "Returns how many append-only files have this client's writes: none, since there are none.",
        since: "7.2.0",
        group: Group::Generic,
        arity: 4,
        flags: Flags::NOSCRIPT,
        categories: &["@connection"],
        tips: &["request_policy:all_shards", "response_policy:agg_min"],
        arguments: &[
            Argument::integer("numlocal"),
            Argument::integer("numreplicas"),
            Argument::integer("timeout"),
        ],
        handler: Handler::Host,
        ..SERVER
    },
];

const LATENCY_REPORT: Command = Command {
    since: "2.8.13",
    arity: 2,
    flags: ADMIN.or(Flags::NOSCRIPT),
    tips: &[
        "nondeterministic_output",
        "request_policy:all_nodes",
        "response_policy:special",
    ],
    handler: Handler::Host,
    ..SERVER
};

static LATENCY: &[Command] = &[
    Command {
        name: "latency|doctor",
        summary: "Explains in words which events took long, and what helps.",
        ..LATENCY_REPORT
    },
    Command {
        name: "latency|graph",
        summary: "Draws an event's times with letters.",
        arity: 3,
        arguments: &[Argument::string("event")],
        ..LATENCY_REPORT
    },
    Command {
        name: "latency|help",
        summary: "Returns helpful text about the different subcommands.",
        since: "2.8.13",
        arity: 2,
        flags: ANYTIME,
        handler: Handler::Help(&LATENCY),
        ..SERVER
    },
    Command {
        name: "latency|histogram",
        summary: "Returns how the times of commands are distributed.",
        since: "7.0.0",
        complexity: "O(N) where N is the number of commands with times",
        arity: -2,
        arguments: &[Argument::string("command").optional().multiple()],
        ..LATENCY_REPORT
    },
    Command {
        name: "latency|history",
        summary: "Returns an event's times, each with its second.",
        arity: 3,
        arguments: &[Argument::string("event")],
        ..LATENCY_REPORT
    },
    Command {
        name: "latency|latest",
        summary: "Returns the newest time of each event.",
        ..LATENCY_REPORT
    },
    Command {
        name: "latency|reset",
        summary: "Forgets the times of some events, or of all.",
        arity: -2,
        tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
        arguments: &[Argument::string("event").optional().multiple()],
        ..LATENCY_REPORT
    },
];

static SLOWLOG: &[Command] = &[
    Command {
        name: "slowlog|get",
        summary: "Returns the newest entries of the slow log.",
        since: "2.2.12",
        complexity: "O(N) where N is the number of entries returned",
        arity: -2,
        flags: ADMIN,
        tips: &["request_policy:all_nodes", "nondeterministic_output"],
        arguments: &[Argument::integer("count").optional()],
        history: &[(
            "4.0.0",
            "Added client IP address, port and name to the reply.",
        )],
        handler: Handler::Host,
        ..SERVER
    },
    Command {
        name: "slowlog|help",
        summary: "Returns helpful text about the different subcommands.",
        since: "6.2.0",
        arity: 2,
        flags: ANYTIME,
        handler: Handler::Help(&SLOWLOG),
        ..SERVER
    },
    Command {
        name: "slowlog|len",
        summary: "Returns the number of entries in the slow log.",
        since: "2.2.12",
        arity: 2,
        flags: ADMIN,
        tips: &[
            "request_policy:all_nodes",
            "response_policy:agg_sum",
            "nondeterministic_output",
        ],
        handler: Handler::Host,
        ..SERVER
    },
    Command {
        name: "slowlog|reset",
        summary: "Empties the slow log.",
        since: "2.2.12",
        complexity: "O(N) where N is the number of entries in the slow log",
        arity: 2,
        flags: ADMIN,
        tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
        handler: Handler::Host,
        ..SERVER
    },
];
