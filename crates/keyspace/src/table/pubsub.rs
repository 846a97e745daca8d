//! Rows: publish and subscribe, run by the server.

use crate::command::{Argument, Command, Flags, Group, Handler};

const PUBSUB: Flags = Flags::PUBSUB
    .or(Flags::NOSCRIPT)
    .or(Flags::LOADING)
    .or(Flags::STALE);

pub(super) static ROWS: &[Command] = &[
    Command {
        name: "psubscribe",
        summary: "Listens for messages published to channels that match one or more patterns.",
        since: "2.0.0",
        group: Group::PubSub,
        complexity: "O(N) where N is the number of patterns to subscribe to.",
        arity: -2,
        flags: PUBSUB,
        arguments: &[Argument::pattern("pattern").multiple()],
        handler: Handler::Host,
        ..Command::BASE
    },
    Command {
        name: "publish",
        summary: "Posts a message to a channel.",
        since: "2.0.0",
        group: Group::PubSub,
        complexity: "O(N+M) where N is the number of clients subscribed to the receiving channel and M \
                     is the total number of subscribed patterns (by any client).",
        arity: 3,
        flags: Flags::PUBSUB
            .or(Flags::MAY_REPLICATE)
            .or(Flags::LOADING)
            .or(Flags::STALE)
            .or(Flags::FAST),
        arguments: &[Argument::string("channel"), Argument::string("message")],
        handler: Handler::Host,
        ..Command::BASE
    },
    Command {
        name: "pubsub",
        summary: "A container for Pub/Sub commands.",
        since: "2.8.0",
        group: Group::PubSub,
        complexity: "Depends on subcommand.",
        arity: -2,
        subcommands: PUBSUB_SUBCOMMANDS,
        ..Command::BASE
    },
    Command {
        name: "punsubscribe",
        summary: "Stops listening to messages published to channels that match one or more patterns.",
        since: "2.0.0",
        group: Group::PubSub,
        complexity: "O(N) where N is the number of patterns to unsubscribe.",
        arity: -1,
        flags: PUBSUB,
        arguments: &[Argument::pattern("pattern").optional().multiple()],
        handler: Handler::Host,
        ..Command::BASE
    },
    Command {
        name: "subscribe",
        summary: "Listens for messages published to channels.",
        since: "2.0.0",
        group: Group::PubSub,
        complexity: "O(N) where N is the number of channels to subscribe to.",
        arity: -2,
        flags: PUBSUB,
        arguments: &[Argument::string("channel").multiple()],
        handler: Handler::Host,
        ..Command::BASE
    },
    Command {
        name: "unsubscribe",
        summary: "Stops listening to messages posted to channels.",
        since: "2.0.0",
        group: Group::PubSub,
        complexity: "O(N) where N is the number of channels to unsubscribe.",
        arity: -1,
        flags: PUBSUB,
        arguments: &[Argument::string("channel").optional().multiple()],
        handler: Handler::Host,
        ..Command::BASE
    },
];

static PUBSUB_SUBCOMMANDS: &[Command] = &[
    Command {
        name: "pubsub|channels",
        summary: "Returns the active channels.",
        since: "2.8.0",
        group: Group::PubSub,
        complexity: "O(N) where N is the number of active channels, and assuming constant \
                     time pattern matching (relatively short channels and patterns)",
        arity: -2,
        flags: Flags::PUBSUB.or(Flags::LOADING).or(Flags::STALE),
        arguments: &[Argument::pattern("pattern").optional()],
        handler: Handler::Host,
        ..Command::BASE
    },
    Command {
        name: "pubsub|help",
        summary: "Returns helpful text about the different subcommands.",
        since: "6.2.0",
        group: Group::PubSub,
        arity: 2,
        flags: Flags::LOADING.or(Flags::STALE),
        handler: Handler::Help(&PUBSUB_SUBCOMMANDS),
        ..Command::BASE
    },
    Command {
        name: "pubsub|numpat",
        summary: "Returns a count of unique pattern subscriptions.",
        since: "2.8.0",
        group: Group::PubSub,
        arity: 2,
        flags: Flags::PUBSUB.or(Flags::LOADING).or(Flags::STALE),
        handler: Handler::Host,
        ..Command::BASE
    },
    Command {
        name: "pubsub|numsub",
        summary: "Returns a count of subscribers to channels.",
        since: "2.8.0",
        group: Group::PubSub,
        complexity: "O(N) for the NUMSUB subcommand, where N is the number of requested channels",
        arity: -2,
        flags: Flags::PUBSUB.or(Flags::LOADING).or(Flags::STALE),
        arguments: &[Argument::string("channel").optional().multiple()],
        handler: Handler::Host,
        ..Command::BASE
    },
];
