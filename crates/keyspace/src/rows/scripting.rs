//! Rows: scripts.

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
