//! Rows: publish and subscribe, run by the server.

use super::command::{Command, chapter, row};
use super::kinds::Group;

#[rustfmt::skip] // One call for each thing that is said would take three times the lines.
pub(super) const ROWS: &[Command] = &chapter(Group::PubSub, "", [
    row("psubscribe", -2, "pubsub noscript loading stale", "pattern:pattern...")
        .since("2.0.0")
        .says("Listens for messages published to channels that match one or more patterns.")
        .complexity("O(N) where N is the number of patterns to subscribe to."),
    row("publish", 3, "pubsub loading stale fast may_replicate", "channel message")
        .since("2.0.0")
        .says("Posts a message to a channel.")
        .complexity("O(N+M) where N is the number of clients subscribed to the receiving channel \
            and M is the total number of subscribed patterns (by any client)."),
    row("pubsub", -2, "", "")
        .since("2.8.0")
        .says("A container for Pub/Sub commands.")
        .complexity("Depends on subcommand."),
    row("pubsub|channels", -2, "pubsub loading stale", "[pattern:pattern]")
        .since("2.8.0")
        .says("Returns the active channels.")
        .complexity("O(N) where N is the number of active channels, and assuming constant time \
            pattern matching (relatively short channels and patterns)"),
    row("pubsub|help", 2, "loading stale", "")
        .since("6.2.0")
        .says("Returns helpful text about the different subcommands."),
    row("pubsub|numpat", 2, "pubsub loading stale", "")
        .since("2.8.0")
        .says("Returns a count of unique pattern subscriptions."),
    row("pubsub|numsub", -2, "pubsub loading stale", "[channel...]")
        .since("2.8.0")
        .says("Returns a count of subscribers to channels.")
        .complexity("O(N) for the NUMSUB subcommand, where N is the number of requested channels"),
    row("pubsub|shardchannels", -2, "pubsub loading stale", "[pattern:pattern]")
        .since("7.0.0")
        .says("Returns the active shard channels.")
        .complexity("O(N) where N is the number of active shard channels, and assuming constant \
            time pattern matching (relatively short shard channels)."),
    row("pubsub|shardnumsub", -2, "pubsub loading stale", "[shardchannel...]")
        .since("7.0.0")
        .says("Returns the count of subscribers of shard channels.")
        .complexity("O(N) for the SHARDNUMSUB subcommand, where N is the number of requested \
            shard channels"),
    row("punsubscribe", -1, "pubsub noscript loading stale", "[pattern:pattern...]")
        .since("2.0.0")
        .says("Stops listening to messages published to channels that match one or more patterns.")
        .complexity("O(N) where N is the number of patterns to unsubscribe."),
    row("spublish", 3, "pubsub loading stale fast may_replicate", "shardchannel message")
        .since("7.0.0")
        .says("Post a message to a shard channel")
        .complexity("O(N) where N is the number of clients subscribed to the receiving shard \
            channel."),
    row("ssubscribe", -2, "pubsub noscript loading stale", "shardchannel...")
        .since("7.0.0")
        .says("Listens for messages published to shard channels.")
        .complexity("O(N) where N is the number of shard channels to subscribe to."),
    row("subscribe", -2, "pubsub noscript loading stale", "channel...")
        .since("2.0.0")
        .says("Listens for messages published to channels.")
        .complexity("O(N) where N is the number of channels to subscribe to."),
    row("sunsubscribe", -1, "pubsub noscript loading stale", "[shardchannel...]")
        .since("7.0.0")
        .says("Stops listening to messages posted to shard channels.")
        .complexity("O(N) where N is the number of shard channels to unsubscribe."),
    row("unsubscribe", -1, "pubsub noscript loading stale", "[channel...]")
        .since("2.0.0")
        .says("Stops listening to messages posted to channels.")
        .complexity("O(N) where N is the number of channels to unsubscribe."),
]);
