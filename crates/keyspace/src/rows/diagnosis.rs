//! Rows: LATENCY, SLOWLOG, MONITOR and others for operators, run by the server.

use super::command::{Command, chapter, row};
use super::kinds::Group;

#[rustfmt::skip] // One call for each thing that is said would take three times the lines.
pub(super) const ROWS: &[Command] = &chapter(Group::Server, "", [
    row("latency", -2, "", "")
        .since("2.8.13")
        .says("A container for commands that report what took long.")
        .complexity("Depends on subcommand."),
    row("latency|doctor", 2, "admin noscript loading stale", "")
        .since("2.8.13")
        .hints("nondeterministic_output request_policy:all_nodes response_policy:special")
        .says("Explains in words which events took long, and what helps."),
    row("latency|graph", 3, "admin noscript loading stale", "event")
        .since("2.8.13")
        .hints("nondeterministic_output request_policy:all_nodes response_policy:special")
        .says("Draws an event's times with letters."),
    row("latency|help", 2, "loading stale", "")
        .since("2.8.13")
        .says("Returns helpful text about the different subcommands."),
    row("latency|histogram", -2, "admin noscript loading stale", "[command...]")
        .since("7.0.0")
        .hints("nondeterministic_output request_policy:all_nodes response_policy:special")
        .says("Returns how the times of commands are distributed.")
        .complexity("O(N) where N is the number of commands with times"),
    row("latency|history", 3, "admin noscript loading stale", "event")
        .since("2.8.13")
        .hints("nondeterministic_output request_policy:all_nodes response_policy:special")
        .says("Returns an event's times, each with its second."),
    row("latency|latest", 2, "admin noscript loading stale", "")
        .since("2.8.13")
        .hints("nondeterministic_output request_policy:all_nodes response_policy:special")
        .says("Returns the newest time of each event."),
    row("latency|reset", -2, "admin noscript loading stale", "[event...]")
        .since("2.8.13").hints("request_policy:all_nodes response_policy:all_succeeded")
        .says("Forgets the times of some events, or of all."),
    row("lolwut", -1, "readonly fast", "[VERSION version:int]")
        .since("5.0.0")
        .says("Draws a picture, and names the version."),
    row("monitor", 1, "admin noscript loading stale", "")
        .says("Shows every command that any client runs."),
    row("role", 1, "noscript loading stale fast", "")
        .since("2.8.12").in_categories("@admin @dangerous")
        .says("Returns the part that the server has in a replication."),
    row("slowlog", -2, "", "")
        .since("2.2.12")
        .says("A container for commands about the log of slow calls.")
        .complexity("Depends on subcommand."),
    row("slowlog|get", -2, "admin loading stale", "[count:int]")
        .since("2.2.12").hints("request_policy:all_nodes nondeterministic_output")
        .says("Returns the newest entries of the slow log.")
        .complexity("O(N) where N is the number of entries returned")
        .history(&[("4.0.0", "Added client IP address, port and name to the reply.")]),
    row("slowlog|help", 2, "loading stale", "")
        .since("6.2.0")
        .says("Returns helpful text about the different subcommands."),
    row("slowlog|len", 2, "admin loading stale", "")
        .since("2.2.12")
        .hints("request_policy:all_nodes response_policy:agg_sum nondeterministic_output")
        .says("Returns the number of entries in the slow log."),
    row("slowlog|reset", 2, "admin loading stale", "")
        .since("2.2.12").hints("request_policy:all_nodes response_policy:all_succeeded")
        .says("Empties the slow log.")
        .complexity("O(N) where N is the number of entries in the slow log"),
    row("wait", 3, "blocking", "numreplicas:int timeout:int")
        .since("3.0.0").in_group(Group::Generic).in_categories("@connection")
        .hints("request_policy:all_shards response_policy:agg_min")
        .says("Returns how many replicas have confirmed this client's writes: none, since there \
            are none."),
    row("waitaof", 4, "blocking", "numlocal:int numreplicas:int timeout:int")
        .since("7.2.0").in_group(Group::Generic).in_categories("@connection")
        .hints("request_policy:all_shards response_policy:agg_min")
        .says("Waits until all that has changed is on disk. Returns whether the log is, and how \
            many replicas: none, since there are none."),
]);
