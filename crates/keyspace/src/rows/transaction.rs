//! Rows: transactions, run by the server.

use super::command::{Command, chapter, row};
use super::keys::KeySpec;
use super::kinds::Group;

#[rustfmt::skip] // One call for each thing that is said would take three times the lines.
pub(super) const ROWS: &[Command] = &chapter(Group::Transactions, "@transaction", [
    row("discard", 1, "noscript loading stale fast allow_busy", "")
        .since("2.0.0")
        .says("Discards a transaction.")
        .complexity("O(N), when N is the number of queued commands"),
    row("exec", 1, "noscript loading stale skip_slowlog", "")
        .since("1.2.0").slow()
        .says("Executes all commands in a transaction.")
        .complexity("Depends on commands in the transaction"),
    row("multi", 1, "noscript loading stale fast allow_busy", "")
        .since("1.2.0")
        .says("Starts a transaction."),
    row("unwatch", 1, "noscript loading stale fast allow_busy", "")
        .since("2.2.0")
        .says("Forgets about watched keys of a transaction."),
    row("watch", -2, "noscript loading stale fast allow_busy", "key...")
        .since("2.2.0").keys(KeySpec::all(1, "RO"))
        .says("Monitors changes to keys to determine the execution of a transaction.")
        .complexity("O(1) for every key."),
]);
