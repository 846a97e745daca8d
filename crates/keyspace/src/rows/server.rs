//! Rows: the server as a whole; those that touch data run here, the others on the server.

use super::command::{Command, chapter, row};
use super::kinds::Group;

#[rustfmt::skip] // One call for each thing that is said would take three times the lines.
pub(super) const ROWS: &[Command] = &chapter(Group::Server, "@connection", [
    row("command", -1, "loading stale", "")
        .since("2.8.13").hints("nondeterministic_output_order")
        .says("Returns detailed information about all commands.")
        .complexity("O(N) where N is the total number of commands"),
    row("command|count", 2, "loading stale", "")
        .since("2.8.13")
        .says("Returns a count of commands."),
    row("command|docs", -2, "loading stale", "[command-name...]")
        .since("7.0.0").hints("nondeterministic_output_order")
        .says("Returns documentary information about one, multiple or all commands.")
        .complexity("O(N) where N is the number of commands to look up"),
    row("command|getkeys", -3, "loading stale", "command [arg...]")
        .since("2.8.13")
        .says("Extracts the key names from an arbitrary command.")
        .complexity("O(N) where N is the number of arguments to the command"),
    row("command|getkeysandflags", -3, "loading stale", "command [arg...]")
        .since("7.0.0")
        .says("Extracts the key names and access flags for an arbitrary command.")
        .complexity("O(N) where N is the number of arguments to the command"),
    row("command|help", 2, "loading stale", "")
        .since("5.0.0")
        .says("Returns helpful text about the different subcommands."),
    row("command|info", -2, "loading stale", "[command-name...]")
        .since("2.8.13").hints("nondeterministic_output_order")
        .says("Returns information about one, multiple or all commands.")
        .complexity("O(N) where N is the number of commands to look up")
        .history(&[("7.0.0", "Allowed to be called with no argument to get info on all commands.")]),
    row("command|list", -2, "loading stale",
        "[FILTERBY filterby(MODULE module-name|ACLCAT category|PATTERN pattern:pattern)]")
        .since("7.0.0").hints("nondeterministic_output_order")
        .says("Returns a list of command names.")
        .complexity("O(N) where N is the total number of commands"),
    row("bgrewriteaof", 1, "admin noscript", "")
        .in_categories("-")
        .says("Writes a new base of the log, while everybody goes on."),
    row("bgsave", -1, "admin noscript", "[operation(SCHEDULE@3.2.2|CANCEL)]")
        .in_categories("-")
        .says("Writes all data of this moment to the snapshot file, while everybody goes on.")
        .history(&[("3.2.2", "Added the `SCHEDULE` option.")]),
    row("config", -2, "", "")
        .since("2.0.0").in_categories("-")
        .says("A container for server configuration commands.")
        .complexity("Depends on subcommand."),
    row("config|get", -3, "admin noscript loading stale", "parameter...")
        .since("2.0.0").in_categories("-")
        .says("Returns the effective values of configuration parameters.")
        .complexity("O(N) when N is the number of configuration parameters provided")
        .history(&[("7.0.0", "Added the ability to pass multiple pattern parameters in one call")]),
    row("config|help", 2, "loading stale", "")
        .since("5.0.0").in_categories("-")
        .says("Returns helpful text about the different subcommands."),
    row("config|resetstat", 2, "admin noscript loading stale", "")
        .since("2.0.0").in_categories("-")
        .hints("request_policy:all_nodes response_policy:all_succeeded")
        .says("Resets the server's statistics."),
    row("config|rewrite", 2, "admin noscript loading stale", "")
        .since("2.8.0").in_categories("-")
        .hints("request_policy:all_nodes response_policy:all_succeeded")
        .says("Persists the effective configuration to file."),
    row("config|set", -4, "admin noscript loading stale", "data(parameter value)...")
        .since("2.0.0").in_categories("-")
        .hints("request_policy:all_nodes response_policy:all_succeeded")
        .says("Sets configuration parameters in-flight.")
        .complexity("O(N) when N is the number of configuration parameters provided")
        .history(&[("7.0.0", "Added the ability to set multiple parameters in one call.")]),
    row("dbsize", 1, "readonly fast", "")
        .in_categories("@keyspace").hints("request_policy:all_shards response_policy:agg_sum")
        .says("Returns the number of keys in the database."),
    row("flushall", -1, "write", "[flush-type(ASYNC@4.0.0|SYNC@6.2.0)]")
        .in_categories("@keyspace @dangerous")
        .hints("request_policy:all_shards response_policy:all_succeeded")
        .says("Removes all keys from all databases.")
        .complexity("O(N) where N is the total number of keys in all databases")
        .history(&[("4.0.0", "Added the `ASYNC` flushing mode modifier."), ("6.2.0", "Added the \
            `SYNC` flushing mode modifier.")]),
    row("flushdb", -1, "write", "[flush-type(ASYNC@4.0.0|SYNC@6.2.0)]")
        .in_categories("@keyspace @dangerous")
        .hints("request_policy:all_shards response_policy:all_succeeded")
        .says("Remove all keys from the current database.")
        .complexity("O(N) where N is the number of keys in the selected database")
        .history(&[("4.0.0", "Added the `ASYNC` flushing mode modifier."), ("6.2.0", "Added the \
            `SYNC` flushing mode modifier.")]),
    row("info", -1, "loading stale", "[section...]")
        .in_categories("@dangerous")
        .hints("nondeterministic_output request_policy:all_shards response_policy:special")
        .says("Returns information and statistics about the server.")
        .history(&[("7.0.0", "Added support for taking multiple section arguments.")]),
    row("lastsave", 1, "loading stale fast", "")
        .in_categories("@admin @dangerous").hints("nondeterministic_output")
        .says("Returns the time of the last snapshot, in seconds since 1970."),
    row("save", 1, "admin noscript no_multi", "")
        .in_categories("-")
        .says("Writes all data to the snapshot file. Nobody is served meanwhile.")
        .complexity("O(N) where N is the total number of keys in all databases"),
    row("shutdown", -1, "admin noscript loading stale no_multi allow_busy",
        "[save-selector(NOSAVE|SAVE)] [NOW@7.0.0] [FORCE@7.0.0]")
        .in_categories("-")
        .says("Stops the server.")
        .history(&[("7.0.0", "Added the `NOW`, `FORCE` and `ABORT` modifiers.")]),
    row("swapdb", 3, "write fast", "index1:int index2:int")
        .since("4.0.0").in_categories("@keyspace @dangerous")
        .says("Swaps two databases.")
        .complexity("O(N) where N is the number of shards"),
    row("time", 1, "loading stale fast", "")
        .since("2.6.0").in_categories("-").hints("nondeterministic_output")
        .says("Returns the server time."),
]);
