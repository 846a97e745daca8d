//! Rows: the connection itself, run by the server, apart from SELECT.

use crate::command::{Argument, Command, Flags, Group, Handler};
use crate::commands;

const CONNECTION: &[&str] = &["@connection"];
const ANYTIME: Flags = Flags::NOSCRIPT.or(Flags::LOADING).or(Flags::STALE);

pub(super) static ROWS: &[Command] = &[
    Command {
        name: "auth",
        summary: "Authenticates the connection.",
        group: Group::Connection,
        complexity: "O(N) where N is the number of passwords defined for the user",
        arity: -2,
        flags: ANYTIME
            .or(Flags::FAST)
            .or(Flags::NO_AUTH)
            .or(Flags::ALLOW_BUSY),
        categories: CONNECTION,
        arguments: &[
            Argument::string("username").optional().since("6.0.0"),
            Argument::string("password"),
        ],
        history: &[("6.0.0", "Added ACL style (username and password).")],
        handler: Handler::Host,
        ..Command::BASE
    },
    Command {
        name: "client",
        summary: "A container for client connection commands.",
        since: "2.4.0",
        group: Group::Connection,
        complexity: "Depends on subcommand.",
        arity: -2,
        subcommands: CLIENT,
        ..Command::BASE
    },
    Command {
        name: "echo",
        summary: "Returns the given string.",
        group: Group::Connection,
        arity: 2,
        flags: Flags::LOADING.or(Flags::STALE).or(Flags::FAST),
        categories: CONNECTION,
        arguments: &[Argument::string("message")],
        handler: Handler::Host,
        ..Command::BASE
    },
    Command {
        name: "hello",
        summary: "Handshakes with the server.",
        since: "6.0.0",
        group: Group::Connection,
        arity: -1,
        flags: ANYTIME
            .or(Flags::FAST)
            .or(Flags::NO_AUTH)
            .or(Flags::ALLOW_BUSY),
        categories: CONNECTION,
        arguments: &[Argument::block(
            "arguments",
            &[
                Argument::integer("protover"),
                Argument::block(
                    "auth",
                    &[Argument::string("username"), Argument::string("password")],
                )
                .after("AUTH")
                .optional(),
                Argument::string("clientname").after("SETNAME").optional(),
            ],
        )
        .optional()],
        handler: Handler::Host,
        ..Command::BASE
    },
    Command {
        name: "ping",
        summary: "Returns the server's liveliness response.",
        group: Group::Connection,
        arity: -1,
        flags: Flags::FAST,
        categories: CONNECTION,
        tips: &["request_policy:all_shards", "response_policy:all_succeeded"],
        arguments: &[Argument::string("message").optional()],
        handler: Handler::Host,
        ..Command::BASE
    },
    Command {
        name: "quit",
        summary: "Closes the connection.",
        group: Group::Connection,
        arity: -1,
        flags: ANYTIME
            .or(Flags::FAST)
            .or(Flags::NO_AUTH)
            .or(Flags::ALLOW_BUSY),
        categories: CONNECTION,
        replaced_by: Some(("7.2.0", "just closing the connection")),
        handler: Handler::Host,
        ..Command::BASE
    },
    Command {
        name: "reset",
        summary: "Resets the connection.",
        since: "6.2.0",
        group: Group::Connection,
        arity: 1,
        flags: ANYTIME
            .or(Flags::FAST)
            .or(Flags::NO_AUTH)
            .or(Flags::ALLOW_BUSY),
        categories: CONNECTION,
        handler: Handler::Host,
        ..Command::BASE
    },
    Command {
        name: "select",
        summary: "Changes the selected database.",
        group: Group::Connection,
        arity: 2,
        flags: Flags::LOADING.or(Flags::STALE).or(Flags::FAST),
        categories: CONNECTION,
        arguments: &[Argument::integer("index")],
        handler: Handler::Keys(commands::database::select),
        ..Command::BASE
    },
];

static CLIENT: &[Command] = &[
    Command {
        name: "client|getname",
        summary: "Returns the name of the connection.",
        since: "2.6.9",
        arity: 2,
        handler: Handler::Host,
        ..CLIENT_BASE
    },
    Command {
        name: "client|help",
        summary: "Returns helpful text about the different subcommands.",
        since: "5.0.0",
        arity: 2,
        flags: Flags::LOADING.or(Flags::STALE),
        handler: Handler::Help(&CLIENT),
        ..CLIENT_BASE
    },
    Command {
        name: "client|id",
        summary: "Returns the unique client ID of the connection.",
        since: "5.0.0",
        arity: 2,
        handler: Handler::Host,
        ..CLIENT_BASE
    },
    Command {
        name: "client|info",
        summary: "Returns information about the connection.",
        since: "6.2.0",
        arity: 2,
        handler: Handler::Host,
        ..CLIENT_BASE
    },
    Command {
        name: "client|kill",
        summary: "Terminates open connections.",
        since: "2.4.0",
        complexity: "O(N) where N is the number of client connections",
        arity: -3,
        flags: ANYTIME.or(Flags::ADMIN),
        arguments: &[Argument::one_of(
            "filter",
            &[
                Argument::string("old-format"),
                Argument::one_of(
                    "new-format",
                    &[
                        Argument::integer("client-id").after("ID").optional(),
                        Argument::one_of(
                            "client-type",
                            &[
                                Argument::word("normal", "NORMAL"),
                                Argument::word("master", "MASTER"),
                                Argument::word("replica", "REPLICA"),
                                Argument::word("pubsub", "PUBSUB"),
                            ],
                        )
                        .after("TYPE")
                        .optional(),
                        Argument::string("username").after("USER").optional(),
                        Argument::string("addr").after("ADDR").optional(),
                        Argument::string("laddr").after("LADDR").optional(),
                        YES_NO.after("SKIPME").optional(),
                    ],
                )
                .multiple(),
            ],
        )],
        handler: Handler::Host,
        ..CLIENT_BASE
    },
    Command {
        name: "client|list",
        summary: "Lists open connections.",
        since: "2.4.0",
        complexity: "O(N) where N is the number of client connections",
        arity: -2,
        flags: ANYTIME.or(Flags::ADMIN),
        arguments: &[
            Argument::one_of(
                "client-type",
                &[
                    Argument::word("normal", "NORMAL"),
                    Argument::word("master", "MASTER"),
                    Argument::word("replica", "REPLICA"),
                    Argument::word("pubsub", "PUBSUB"),
                ],
            )
            .after("TYPE")
            .optional(),
            Argument::integer("client-id")
                .after("ID")
                .optional()
                .multiple(),
        ],
        handler: Handler::Host,
        ..CLIENT_BASE
    },
    Command {
        name: "client|no-evict",
        summary: "Sets the client eviction mode of the connection.",
        since: "7.0.0",
        arity: 3,
        flags: ANYTIME.or(Flags::ADMIN),
        arguments: &[ON_OFF],
        handler: Handler::Host,
        ..CLIENT_BASE
    },
    Command {
        name: "client|no-touch",
        summary: "Controls whether commands sent by the client affect the LRU/LFU of accessed keys.",
        since: "7.2.0",
        arity: 3,
        arguments: &[ON_OFF],
        handler: Handler::Host,
        ..CLIENT_BASE
    },
    Command {
        name: "client|pause",
        summary: "Suspends commands processing.",
        since: "3.0.0",
        arity: -3,
        flags: ANYTIME.or(Flags::ADMIN),
        arguments: &[
            Argument::integer("timeout"),
            Argument::one_of(
                "mode",
                &[
                    Argument::word("write", "WRITE"),
                    Argument::word("all", "ALL"),
                ],
            )
            .optional()
            .since("6.2.0"),
        ],
        handler: Handler::Host,
        ..CLIENT_BASE
    },
    Command {
        name: "client|reply",
        summary: "Instructs the server whether to reply to commands.",
        since: "3.2.0",
        arity: 3,
        arguments: &[Argument::one_of(
            "action",
            &[
                Argument::word("on", "ON"),
                Argument::word("off", "OFF"),
                Argument::word("skip", "SKIP"),
            ],
        )],
        handler: Handler::Host,
        ..CLIENT_BASE
    },
    Command {
        name: "client|setinfo",
        summary: "Sets information specific to the client or connection.",
        since: "7.2.0",
        arity: 4,
        arguments: &[Argument::one_of(
            "attr",
            &[
                Argument::string("libname").after("LIB-NAME"),
                Argument::string("libver").after("LIB-VER"),
            ],
        )],
        handler: Handler::Host,
        ..CLIENT_BASE
    },
    Command {
        name: "client|setname",
        summary: "Sets the connection name.",
        since: "2.6.9",
        arity: 3,
        arguments: &[Argument::string("connection-name")],
        handler: Handler::Host,
        ..CLIENT_BASE
    },
    Command {
        name: "client|unblock",
        summary: "Unblocks a client blocked by a blocking command from a different connection.",
        since: "5.0.0",
        complexity: "O(log N) where N is the number of client connections",
        arity: -3,
        flags: ANYTIME.or(Flags::ADMIN),
        arguments: &[
            Argument::integer("client-id"),
            Argument::one_of(
                "unblock-type",
                &[
                    Argument::word("timeout", "TIMEOUT"),
                    Argument::word("error", "ERROR"),
                ],
            )
            .optional(),
        ],
        handler: Handler::Host,
        ..CLIENT_BASE
    },
    Command {
        name: "client|unpause",
        summary: "Resumes processing commands from paused clients.",
        since: "6.2.0",
        complexity: "O(N) Where N is the number of paused clients",
        arity: 2,
        flags: ANYTIME.or(Flags::ADMIN),
        handler: Handler::Host,
        ..CLIENT_BASE
    },
];

const CLIENT_BASE: Command = Command {
    group: Group::Connection,
    flags: ANYTIME,
    categories: CONNECTION,
    ..Command::BASE
};

const ON_OFF: Argument = Argument::one_of(
    "enabled",
    &[Argument::word("on", "ON"), Argument::word("off", "OFF")],
);

const YES_NO: Argument = Argument::one_of(
    "skipme",
    &[Argument::word("yes", "YES"), Argument::word("no", "NO")],
);
