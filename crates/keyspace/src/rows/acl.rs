//! Rows: users and what they may do, run by the server.

use super::command::{Command, chapter, row};
use super::kinds::Group;

#[rustfmt::skip] // One call for each thing that is said would take three times the lines.
pub(super) const ROWS: &[Command] = &chapter(Group::Server, "-", [
    row("acl", -2, "", "")
        .since("6.0.0")
        .says("A container for commands about users and what they may do.")
        .complexity("Depends on subcommand."),
    row("acl|cat", -2, "noscript loading stale", "[category]")
        .since("6.0.0")
        .says("Lists the categories of commands, or the commands in a category.")
        .complexity("O(1) since the categories and commands are a fixed set."),
    row("acl|deluser", -3, "admin noscript loading stale", "username...")
        .since("6.0.0").hints("request_policy:all_nodes response_policy:all_succeeded")
        .says("Removes users, and closes their connections.")
        .complexity("O(N) where N is the number of users and of connections"),
    row("acl|dryrun", -4, "admin noscript loading stale", "username command [arg...]")
        .since("7.0.0")
        .says("Says whether a user may run a command, and runs nothing."),
    row("acl|genpass", -2, "noscript loading stale", "[bits:int]")
        .since("6.0.0")
        .says("Makes up a password that nobody guesses."),
    row("acl|getuser", 3, "admin noscript loading stale", "username")
        .since("6.0.0")
        .says("Returns what a user may do.")
        .complexity("O(N). Where N is the number of password, command and pattern rules that the user has.")
        .history(&[
            ("6.2.0", "Added Pub/Sub channel patterns."),
            ("7.0.0", "Added selectors and changed the format of key and channel patterns from a \
                list to their rule representation."),
        ]),
    row("acl|help", 2, "loading stale", "")
        .since("6.0.0")
        .says("Returns helpful text about the different subcommands."),
    row("acl|list", 2, "admin noscript loading stale", "")
        .since("6.0.0")
        .says("Returns all users as lines of a configuration file.")
        .complexity("O(N). Where N is the number of configured users."),
    row("acl|load", 2, "admin noscript loading stale", "")
        .since("6.0.0").hints("request_policy:all_nodes response_policy:all_succeeded")
        .says("Takes all users from the file of users.")
        .complexity("O(N). Where N is the number of configured users."),
    row("acl|log", -2, "admin noscript loading stale", "[operation(count:int|RESET)]")
        .since("6.0.0")
        .says("Returns what was denied to whom, newest first, or forgets it.")
        .complexity("O(N) with N being the number of entries shown.")
        .history(&[("7.2.0", "Added entry ID, timestamp created, and timestamp last updated.")]),
    row("acl|save", 2, "admin noscript loading stale", "")
        .since("6.0.0").hints("request_policy:all_nodes response_policy:all_succeeded")
        .says("Writes all users to the file of users.")
        .complexity("O(N). Where N is the number of configured users."),
    row("acl|setuser", -3, "admin noscript loading stale", "username [rule...]")
        .since("6.0.0").hints("request_policy:all_nodes response_policy:all_succeeded")
        .says("Makes a user, or changes what it may do.")
        .complexity("O(N). Where N is the number of rules provided.")
        .history(&[
            ("6.2.0", "Added Pub/Sub channel patterns."),
            ("7.0.0", "Added selectors and key based permissions."),
        ]),
    row("acl|users", 2, "admin noscript loading stale", "")
        .since("6.0.0")
        .says("Returns the names of all users.")
        .complexity("O(N). Where N is the number of configured users."),
    row("acl|whoami", 2, "noscript loading stale", "")
        .since("6.0.0")
        .says("Returns the name of the connection's user."),
]);
