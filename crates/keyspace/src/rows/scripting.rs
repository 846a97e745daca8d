//! Rows: scripts and functions.

use super::command::{Command, chapter, row};
use super::keys::KeySpec;
use super::kinds::Group;

#[rustfmt::skip] // One call for each thing that is said would take three times the lines.
pub(super) const ROWS: &[Command] = &chapter(Group::Scripting, "@scripting", [
    row("eval", -3, "noscript stale skip_monitor no_mandatory_keys movablekeys may_replicate",
        "script numkeys:int [key...] [arg...]")
        .since("2.6.0").keys(KeySpec::counted(2, "RW access update")).slow()
        .says("Executes a server-side Lua script.")
        .complexity("Depends on the script that is executed."),
    row("evalsha", -3, "noscript stale skip_monitor no_mandatory_keys movablekeys may_replicate",
        "sha1 numkeys:int [key...] [arg...]")
        .since("2.6.0").keys(KeySpec::counted(2, "RW access update")).slow()
        .says("Executes a server-side Lua script by SHA1 digest.")
        .complexity("Depends on the script that is executed."),
    row("evalsha_ro", -3, "readonly noscript stale skip_monitor no_mandatory_keys movablekeys",
        "sha1 numkeys:int [key...] [arg...]")
        .since("7.0.0").keys(KeySpec::counted(2, "RO access")).slow()
        .says("Executes a read-only server-side Lua script by SHA1 digest.")
        .complexity("Depends on the script that is executed."),
    row("eval_ro", -3, "readonly noscript stale skip_monitor no_mandatory_keys movablekeys",
        "script numkeys:int [key...] [arg...]")
        .since("7.0.0").keys(KeySpec::counted(2, "RO access")).slow()
        .says("Executes a read-only server-side Lua script.")
        .complexity("Depends on the script that is executed."),
    row("fcall", -3, "noscript stale skip_monitor no_mandatory_keys movablekeys may_replicate",
        "function numkeys:int [key...] [arg...]")
        .since("7.0.0").keys(KeySpec::counted(2, "RW access update")).slow()
        .says("Invokes a function.")
        .complexity("Depends on the function that is executed."),
    row("fcall_ro", -3, "readonly noscript stale skip_monitor no_mandatory_keys movablekeys",
        "function numkeys:int [key...] [arg...]")
        .since("7.0.0").keys(KeySpec::counted(2, "RO access")).slow()
        .says("Invokes a read-only function.")
        .complexity("Depends on the function that is executed."),
    row("function", -2, "", "")
        .since("7.0.0").in_categories("-")
        .says("A container for function commands.")
        .complexity("Depends on subcommand."),
    row("function|delete", 3, "write noscript", "library-name")
        .since("7.0.0").hints("request_policy:all_shards response_policy:all_succeeded")
        .says("Deletes a library and its functions."),
    row("function|dump", 2, "noscript", "")
        .since("7.0.0")
        .says("Dumps all libraries into a serialized binary payload.")
        .complexity("O(N) where N is the number of functions"),
    row("function|flush", -2, "write noscript", "[flush-type(ASYNC|SYNC)]")
        .since("7.0.0").hints("request_policy:all_shards response_policy:all_succeeded")
        .says("Deletes all libraries and functions.")
        .complexity("O(N) where N is the number of functions deleted"),
    row("function|help", 2, "loading stale", "")
        .since("7.0.0")
        .says("Returns helpful text about the different subcommands."),
    row("function|kill", 2, "noscript allow_busy", "")
        .since("7.0.0").hints("request_policy:all_shards response_policy:one_succeeded")
        .says("Terminates a function during execution."),
    row("function|list", -2, "noscript",
        "[LIBRARYNAME library-name-pattern] [WITHCODE]")
        .since("7.0.0").hints("nondeterministic_output_order")
        .says("Returns information about all libraries.")
        .complexity("O(N) where N is the number of functions"),
    row("function|load", -3, "write denyoom noscript", "[REPLACE] function-code")
        .since("7.0.0").hints("request_policy:all_shards response_policy:all_succeeded")
        .says("Creates a library.")
        .complexity("O(1) (considering compilation time is redundant)"),
    row("function|restore", -3, "write denyoom noscript",
        "serialized-value [policy(FLUSH|APPEND|REPLACE)]")
        .since("7.0.0").hints("request_policy:all_shards response_policy:all_succeeded")
        .says("Restores all libraries from a payload.")
        .complexity("O(N) where N is the number of functions on the payload"),
    row("function|stats", 2, "noscript allow_busy", "")
        .since("7.0.0")
        .hints("nondeterministic_output request_policy:all_shards response_policy:special")
        .says("Returns information about a function during execution."),
    row("script", -2, "", "")
        .since("2.6.0").in_categories("-")
        .says("A container for Lua scripts management commands.")
        .complexity("Depends on subcommand."),
    row("script|exists", -3, "noscript", "sha1...")
        .since("2.6.0").hints("request_policy:all_shards response_policy:agg_logical_and")
        .says("Determines whether server-side Lua scripts exist in the script cache.")
        .complexity("O(N) with N being the number of scripts to check (so checking a single script \
            is an O(1) operation)."),
    row("script|flush", -2, "noscript", "[flush-type(ASYNC|SYNC)@6.2.0]")
        .since("2.6.0").hints("request_policy:all_nodes response_policy:all_succeeded")
        .says("Removes all server-side Lua scripts from the script cache.")
        .complexity("O(N) with N being the number of scripts in cache")
        .history(&[("6.2.0", "Added the `ASYNC` and `SYNC` flushing mode modifiers.")]),
    row("script|help", 2, "loading stale", "")
        .since("5.0.0")
        .says("Returns helpful text about the different subcommands."),
    row("script|kill", 2, "noscript allow_busy", "")
        .since("2.6.0").hints("request_policy:all_shards response_policy:one_succeeded")
        .says("Terminates a server-side Lua script during execution."),
    row("script|load", 3, "noscript stale", "script")
        .since("2.6.0").hints("request_policy:all_nodes response_policy:all_succeeded")
        .says("Loads a server-side Lua script to the script cache.")
        .complexity("O(N) with N being the length in bytes of the script body."),
    row("script|show", 3, "noscript", "sha1")
        .since("8.0.0")
        .says("Returns the source of a script in the script cache."),
]);
