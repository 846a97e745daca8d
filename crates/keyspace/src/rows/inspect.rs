//! Rows: MEMORY and DEBUG, which look into entries and into the server.

use super::command::{Command, chapter, row};
use super::keys::KeySpec;
use super::kinds::Group;

#[rustfmt::skip] // One call for each thing that is said would take three times the lines.
pub(super) const ROWS: &[Command] = &chapter(Group::Server, "", [
    row("debug", -2, "admin noscript loading stale", "")
        .says("A container for debugging commands.")
        .complexity("Depends on subcommand."),
    row("debug|digest", 2, "admin noscript loading stale", "")
        .slow()
        .says("Returns a digest of all data: equal data has an equal digest.")
        .complexity("O(N) where N is the size of the data"),
    row("debug|digest-value", -2, "admin noscript loading stale", "[key...]")
        .keys(KeySpec::from(2, "RO"))
        .slow()
        .says("Returns a digest of each key's value.")
        .complexity("O(N) where N is the size of the values"),
    row("debug|error", 3, "admin noscript loading stale", "message")
        .says("Returns an error with this text."),
    row("debug|help", 2, "admin noscript loading stale", "")
        .says("Returns helpful text about the different subcommands."),
    row("debug|listpack", 3, "admin noscript loading stale", "key")
        .keys(KeySpec::one(2, "RO"))
        .says("Returns the size of a collection that is packed into one block."),
    row("debug|loadaof", 2, "admin noscript loading stale", "")
        .says("Is refused: a log is loaded when the server starts."),
    row("debug|log", 3, "admin noscript loading stale", "message")
        .says("Writes a line to the server's log."),
    row("debug|object", 3, "admin noscript loading stale", "key")
        .keys(KeySpec::one(2, "RO")).slow()
        .says("Returns what is known of a key's value inside.")
        .complexity("O(N) where N is the size of the value"),
    row("debug|pause-cron", 3, "admin noscript loading stale", "enabled:int")
        .says("Is accepted without effect: nothing is done periodically."),
    row("debug|protocol", 3, "admin noscript loading stale", "type")
        .says("Returns an example of a type of the protocol."),
    row("debug|quicklist-packed-threshold", 3, "admin noscript loading stale", "size")
        .says("Is accepted without effect: lists decide by themselves."),
    row("debug|reload", -2, "admin noscript loading stale", "[option...]")
        .says("Saves all data, empties all databases, and loads what was saved."),
    row("debug|set-active-expire", 3, "admin noscript loading stale", "enabled:int")
        .says("Switches the active side of expiry on (1) or off (0); reads still see dead keys as \
            gone."),
    row("debug|set-disable-deny-scripts", 3, "admin noscript loading stale", "enabled:int")
        .says("Lets scripts call DEBUG PROTOCOL and DEBUG SLEEP (1), or not (0)."),
    row("debug|set-skip-checksum-validation", 3, "admin noscript loading stale", "enabled:int")
        .says("Lets RESTORE take payloads whose checksum is wrong (1), or not (0)."),
    row("debug|sleep", 3, "admin noscript loading stale", "seconds:float")
        .slow()
        .says("Holds up the calling connection's event loop."),
    row("debug|stringmatch-len", 4, "admin noscript loading stale", "pattern:pattern string")
        .slow()
        .says("Returns whether a pattern matches a string.")
        .complexity("O(N*M) where N and M are the lengths of pattern and string"),
    row("memory", -2, "", "")
        .since("4.0.0")
        .says("A container for memory diagnostics commands.")
        .complexity("Depends on subcommand."),
    row("memory|doctor", 2, "", "")
        .since("4.0.0")
        .hints("nondeterministic_output request_policy:all_shards response_policy:special")
        .says("Says in words what is wrong with the memory."),
    row("memory|help", 2, "loading stale", "")
        .since("4.0.0")
        .says("Returns helpful text about the different subcommands."),
    row("memory|malloc-stats", 2, "", "")
        .since("4.0.0")
        .hints("nondeterministic_output request_policy:all_shards response_policy:special")
        .says("Returns what the allocator says of itself."),
    row("memory|purge", 2, "", "")
        .since("4.0.0").hints("request_policy:all_shards response_policy:all_succeeded")
        .says("Has memory tidied and given back soon."),
    row("memory|stats", 2, "", "")
        .since("4.0.0")
        .hints("nondeterministic_output request_policy:all_shards response_policy:special")
        .says("Returns where the memory is."),
    row("memory|usage", -3, "readonly", "key [SAMPLES count:int]")
        .since("4.0.0").keys(KeySpec::one(2, "RO"))
        .says("Estimates the memory usage of a key.")
        .complexity("O(N) where N is the number of samples."),
]);
