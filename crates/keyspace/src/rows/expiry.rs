//! Rows: deadlines of keys, and expiry as a whole.

use super::command::{Command, chapter, row};
use super::kinds::Group;

#[rustfmt::skip] // One call for each thing that is said would take three times the lines.
pub(super) const ROWS: &[Command] = &chapter(Group::Generic, "@keyspace", [
    row("expire", -3, "write fast", "key seconds:int [condition(NX|XX|GT|LT)@7.0.0]")
        .key("RW update")
        .says("Sets the expiration time of a key in seconds.")
        .history(&[("7.0.0", "Added options: `NX`, `XX`, `GT` and `LT`.")]),
    row("expireat", -3, "write fast", "key unix-time-seconds:time [condition(NX|XX|GT|LT)@7.0.0]")
        .since("1.2.0").key("RW update")
        .says("Sets the expiration time of a key to a Unix timestamp.")
        .history(&[("7.0.0", "Added options: `NX`, `XX`, `GT` and `LT`.")]),
    row("expiretime", 2, "readonly fast", "key")
        .since("7.0.0").key("RO access")
        .says("Returns the expiration time of a key as a Unix timestamp."),
    row("expiry", -2, "", "")
        .since("7.2.0").in_group(Group::Expiry).in_categories("-")
        .says("A container for commands on expiry as a whole.")
        .complexity("Depends on subcommand."),
    row("expiry|forecast", -2, "readonly", "[form(buckets:int|BY by(PREFIX))] [DELIMITER delimiter] [COUNT count:int]")
        .since("7.2.0").in_group(Group::Expiry).in_categories("-")
        .says("Returns how many keys of the database expire within the next second, minute, hour \
            and so on. With a number of buckets, 1 to 65, in windows [from, to, keys]: from and to \
            are milliseconds from now, each window is twice as long as the one before, and the last \
            one ends at -1. BY PREFIX: how many of each prefix, and in how many milliseconds the next \
            and the last of them expire (RESP3), or the same in words; a prefix has 256 bytes at \
            most, and COUNT prefixes are shown (20, at most 1000).")
        .complexity("O(S+W) where S is the number of shards and W the occupied slots of their \
            timing wheels; independent of the number of keys. BY PREFIX: O(N) for N keys, in steps."),
    row("expiry|freeze", 2, "write admin fast", "")
        .since("7.2.0").in_group(Group::Expiry).in_categories("-")
        .says("Stops the clock of expiry: nothing expires and every time to live stands still \
            until EXPIRY RESUME, or until the server stops."),
    row("expiry|help", 2, "loading stale", "")
        .since("7.2.0").in_group(Group::Expiry).in_categories("-")
        .says("Returns helpful text about the different subcommands."),
    row("expiry|resume", 2, "write admin fast", "")
        .since("7.2.0").in_group(Group::Expiry).in_categories("-")
        .says("Lets the clock of expiry go on from where EXPIRY FREEZE stopped it.")
        .complexity("O(S) where S is the number of shards; independent of the number of keys."),
    row("persist", 2, "write fast", "key")
        .since("2.2.0").key("RW update")
        .says("Removes the expiration time of a key."),
    row("pexpire", -3, "write fast", "key milliseconds:int [condition(NX|XX|GT|LT)@7.0.0]")
        .since("2.6.0").key("RW update")
        .says("Sets the expiration time of a key in milliseconds.")
        .history(&[("7.0.0", "Added options: `NX`, `XX`, `GT` and `LT`.")]),
    row("pexpireat", -3, "write fast",
        "key unix-time-milliseconds:time [condition(NX|XX|GT|LT)@7.0.0]")
        .since("2.6.0").key("RW update")
        .says("Sets the expiration time of a key to a Unix milliseconds timestamp.")
        .history(&[("7.0.0", "Added options: `NX`, `XX`, `GT` and `LT`.")]),
    row("pexpiretime", 2, "readonly fast", "key")
        .since("7.0.0").key("RO access")
        .says("Returns the expiration time of a key as a Unix milliseconds timestamp."),
    row("pttl", 2, "readonly fast", "key")
        .since("2.6.0").key("RO access").hints("nondeterministic_output")
        .says("Returns the expiration time in milliseconds of a key.")
        .history(&[("2.8.0", "Added the -2 reply.")]),
    row("ttl", 2, "readonly fast", "key")
        .key("RO access").hints("nondeterministic_output")
        .says("Returns the expiration time in seconds of a key.")
        .history(&[("2.8.0", "Added the -2 reply.")]),
]);
