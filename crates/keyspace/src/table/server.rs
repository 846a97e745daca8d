//! Rows: the server as a whole; those that touch data run here, the others on the server.

use crate::command::{Argument, Command, Flags, Group, Handler};
use crate::commands;

const ANYTIME: Flags = Flags::LOADING.or(Flags::STALE);
const ADMIN: Flags = Flags::ADMIN
    .or(Flags::NOSCRIPT)
    .or(Flags::LOADING)
    .or(Flags::STALE);
const FLUSH_MODE: Argument = Argument::one_of(
    "flush-type",
    &[
        Argument::word("async", "ASYNC").since("4.0.0"),
        Argument::word("sync", "SYNC").since("6.2.0"),
    ],
);

const SERVER: Command = Command {
    group: Group::Server,
    ..Command::BASE
};

pub(super) static ROWS: &[Command] = &[
    Command {
        name: "command",
        summary: "Returns detailed information about all commands.",
        since: "2.8.13",
        complexity: "O(N) where N is the total number of commands",
        arity: -1,
        flags: ANYTIME,
        categories: &["@connection"],
        tips: &["nondeterministic_output_order"],
        subcommands: COMMAND,
        handler: Handler::Table(commands::introspect::all),
        ..SERVER
    },
    Command {
        name: "config",
        summary: "A container for server configuration commands.",
        since: "2.0.0",
        complexity: "Depends on subcommand.",
        arity: -2,
        subcommands: CONFIG,
        ..SERVER
    },
    Command {
        name: "dbsize",
        summary: "Returns the number of keys in the database.",
        arity: 1,
        flags: Flags::READONLY.or(Flags::FAST),
        categories: &["@keyspace"],
        tips: &["request_policy:all_shards", "response_policy:agg_sum"],
        handler: Handler::Walk(commands::database::DBSIZE),
        ..SERVER
    },
    Command {
        name: "flushall",
        summary: "Removes all keys from all databases.",
        complexity: "O(N) where N is the total number of keys in all databases",
        arity: -1,
        flags: Flags::WRITE,
        categories: &["@keyspace", "@dangerous"],
        tips: &["request_policy:all_shards", "response_policy:all_succeeded"],
        arguments: &[FLUSH_MODE.optional()],
        history: &[
            ("4.0.0", "Added the `ASYNC` flushing mode modifier."),
            ("6.2.0", "Added the `SYNC` flushing mode modifier."),
        ],
        handler: Handler::Whole(commands::database::flushall),
        ..SERVER
    },
    Command {
        name: "flushdb",
        summary: "Remove all keys from the current database.",
        complexity: "O(N) where N is the number of keys in the selected database",
        arity: -1,
        flags: Flags::WRITE,
        categories: &["@keyspace", "@dangerous"],
        tips: &["request_policy:all_shards", "response_policy:all_succeeded"],
        arguments: &[FLUSH_MODE.optional()],
        history: &[
            ("4.0.0", "Added the `ASYNC` flushing mode modifier."),
            ("6.2.0", "Added the `SYNC` flushing mode modifier."),
        ],
        handler: Handler::Whole(commands::database::flushdb),
        ..SERVER
    },
    Command {
        name: "function",
        summary: "A container for function commands.",
        since: "7.0.0",
        group: Group::Scripting,
        complexity: "Depends on subcommand.",
        arity: -2,
        subcommands: FUNCTION,
        ..SERVER
    },
    Command {
        name: "info",
        summary: "Returns information and statistics about the server.",
        arity: -1,
        flags: ANYTIME,
        categories: &["@dangerous"],
        tips: &[
            "nondeterministic_output",
            "request_policy:all_shards",
            "response_policy:special",
        ],
        arguments: &[Argument::string("section").optional().multiple()],
        history: &[(
            "7.0.0",
            "Added support for taking multiple section arguments.",
        )],
        handler: Handler::Host,
        ..SERVER
    },
    Command {
        name: "shutdown",
        summary: "Stops the server.",
        complexity: "O(1)",
        arity: -1,
        flags: ADMIN.or(Flags::NO_MULTI).or(Flags::ALLOW_BUSY),
        arguments: &[
            Argument::one_of(
                "save-selector",
                &[
                    Argument::word("nosave", "NOSAVE"),
                    Argument::word("save", "SAVE"),
                ],
            )
            .optional(),
            Argument::word("now", "NOW").optional().since("7.0.0"),
            Argument::word("force", "FORCE").optional().since("7.0.0"),
        ],
        history: &[("7.0.0", "Added the `NOW`, `FORCE` and `ABORT` modifiers.")],
        handler: Handler::Host,
        ..SERVER
    },
    Command {
        name: "swapdb",
        summary: "Swaps two databases.",
        since: "4.0.0",
        complexity: "O(N) where N is the number of shards",
        arity: 3,
        flags: Flags::WRITE.or(Flags::FAST),
        categories: &["@keyspace", "@dangerous"],
        arguments: &[Argument::integer("index1"), Argument::integer("index2")],
        handler: Handler::Whole(commands::database::swapdb),
        ..SERVER
    },
    Command {
        name: "time",
        summary: "Returns the server time.",
        since: "2.6.0",
        arity: 1,
        flags: ANYTIME.or(Flags::FAST),
        tips: &["nondeterministic_output"],
        handler: Handler::Keys(commands::database::time),
        ..SERVER
    },
];

static COMMAND: &[Command] = &[
    Command {
        name: "command|count",
        summary: "Returns a count of commands.",
        since: "2.8.13",
        arity: 2,
        handler: Handler::Table(commands::introspect::count),
        ..COMMAND_BASE
    },
    Command {
        name: "command|docs",
        summary: "Returns documentary information about one, multiple or all commands.",
        since: "7.0.0",
        complexity: "O(N) where N is the number of commands to look up",
        arity: -2,
        tips: &["nondeterministic_output_order"],
        arguments: &[Argument::string("command-name").optional().multiple()],
        handler: Handler::Table(commands::introspect::docs),
        ..COMMAND_BASE
    },
    Command {
        name: "command|getkeys",
        summary: "Extracts the key names from an arbitrary command.",
        since: "2.8.13",
        complexity: "O(N) where N is the number of arguments to the command",
        arity: -3,
        arguments: &[
            Argument::string("command"),
            Argument::string("arg").optional().multiple(),
        ],
        handler: Handler::Table(commands::introspect::getkeys),
        ..COMMAND_BASE
    },
    Command {
        name: "command|getkeysandflags",
        summary: "Extracts the key names and access flags for an arbitrary command.",
        since: "7.0.0",
        complexity: "O(N) where N is the number of arguments to the command",
        arity: -3,
        arguments: &[
            Argument::string("command"),
            Argument::string("arg").optional().multiple(),
        ],
        handler: Handler::Table(commands::introspect::getkeysandflags),
        ..COMMAND_BASE
    },
    Command {
        name: "command|help",
        summary: "Returns helpful text about the different subcommands.",
        since: "5.0.0",
        arity: 2,
        handler: Handler::Help(&COMMAND),
        ..COMMAND_BASE
    },
    Command {
        name: "command|info",
        summary: "Returns information about one, multiple or all commands.",
        since: "2.8.13",
        complexity: "O(N) where N is the number of commands to look up",
        arity: -2,
        tips: &["nondeterministic_output_order"],
        arguments: &[Argument::string("command-name").optional().multiple()],
        history: &[(
            "7.0.0",
            "Allowed to be called with no argument to get info on all commands.",
        )],
        handler: Handler::Table(commands::introspect::info),
        ..COMMAND_BASE
    },
    Command {
        name: "command|list",
        summary: "Returns a list of command names.",
        since: "7.0.0",
        complexity: "O(N) where N is the total number of commands",
        arity: -2,
        tips: &["nondeterministic_output_order"],
        arguments: &[Argument::one_of(
            "filterby",
            &[
                Argument::string("module-name").after("MODULE"),
                Argument::string("category").after("ACLCAT"),
                Argument::pattern("pattern").after("PATTERN"),
            ],
        )
        .after("FILTERBY")
        .optional()],
        handler: Handler::Table(commands::introspect::list),
        ..COMMAND_BASE
    },
];

const COMMAND_BASE: Command = Command {
    flags: ANYTIME,
    categories: &["@connection"],
    ..SERVER
};

static CONFIG: &[Command] = &[
    Command {
        name: "config|get",
        summary: "Returns the effective values of configuration parameters.",
        since: "2.0.0",
        complexity: "O(N) when N is the number of configuration parameters provided",
        arity: -3,
        flags: ADMIN,
        arguments: &[Argument::string("parameter").multiple()],
        history: &[(
            "7.0.0",
            "Added the ability to pass multiple pattern parameters in one call",
        )],
        handler: Handler::Host,
        ..SERVER
    },
    Command {
        name: "config|help",
        summary: "Returns helpful text about the different subcommands.",
        since: "5.0.0",
        arity: 2,
        flags: ANYTIME,
        handler: Handler::Help(&CONFIG),
        ..SERVER
    },
    Command {
        name: "config|resetstat",
        summary: "Resets the server's statistics.",
        since: "2.0.0",
        arity: 2,
        flags: ADMIN,
        tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
        handler: Handler::Host,
        ..SERVER
    },
    Command {
        name: "config|set",
        summary: "Sets configuration parameters in-flight.",
        since: "2.0.0",
        complexity: "O(N) when N is the number of configuration parameters provided",
        arity: -4,
        flags: ADMIN,
        tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
        arguments: &[Argument::block(
            "data",
            &[Argument::string("parameter"), Argument::string("value")],
        )
        .multiple()],
        history: &[(
            "7.0.0",
            "Added the ability to set multiple parameters in one call.",
        )],
        handler: Handler::Host,
        ..SERVER
    },
];

static FUNCTION: &[Command] = &[
    Command {
        name: "function|flush",
        summary: "Deletes all libraries and functions.",
        since: "7.0.0",
        group: Group::Scripting,
        complexity: "O(N) where N is the number of functions deleted",
        arity: -2,
        flags: Flags::WRITE.or(Flags::NOSCRIPT),
        categories: &["@scripting"],
        arguments: &[FLUSH_MODE.optional()],
        handler: Handler::Host,
        ..Command::BASE
    },
    Command {
        name: "function|help",
        summary: "Returns helpful text about the different subcommands.",
        since: "7.0.0",
        group: Group::Scripting,
        arity: 2,
        flags: ANYTIME,
        categories: &["@scripting"],
        handler: Handler::Help(&FUNCTION),
        ..Command::BASE
    },
];
