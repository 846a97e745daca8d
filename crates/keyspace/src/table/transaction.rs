//! Rows: transactions, run by the server.

use crate::command::{Argument, Command, Flags, Group, Handler, KeySpec, KeyUse};

const AT_ONCE: Flags = Flags::NOSCRIPT
    .or(Flags::LOADING)
    .or(Flags::STALE)
    .or(Flags::FAST)
    .or(Flags::ALLOW_BUSY);

const TRANSACTION: Command = Command {
    group: Group::Transactions,
    since: "1.2.0",
    categories: &["@transaction"],
    arity: 1,
    flags: AT_ONCE,
    handler: Handler::Host,
    ..Command::BASE
};

pub(super) static ROWS: &[Command] = &[
    Command {
        name: "discard",
        summary: "Discards a transaction.",
        since: "2.0.0",
        complexity: "O(N), when N is the number of queued commands",
        ..TRANSACTION
    },
    Command {
        name: "exec",
        summary: "Executes all commands in a transaction.",
        complexity: "Depends on commands in the transaction",
        flags: Flags::NOSCRIPT
            .or(Flags::LOADING)
            .or(Flags::STALE)
            .or(Flags::SKIP_SLOWLOG),
        slow: true,
        ..TRANSACTION
    },
    Command {
        name: "multi",
        summary: "Starts a transaction.",
        ..TRANSACTION
    },
    Command {
        name: "unwatch",
        summary: "Forgets about watched keys of a transaction.",
        since: "2.2.0",
        ..TRANSACTION
    },
    Command {
        name: "watch",
        summary: "Monitors changes to keys to determine the execution of a transaction.",
        since: "2.2.0",
        complexity: "O(1) for every key.",
        arity: -2,
        keys: KeySpec::all(1, &[KeyUse { flags: &["RO"] }]),
        arguments: &[Argument::key("key").multiple()],
        ..TRANSACTION
    },
];
