//! Rows: HyperLogLogs.

use super::command::{Command, chapter, row};
use super::cost::Cost;
use super::keys::KeySpec;
use super::kinds::{Adds, Group};

#[rustfmt::skip] // One call for each thing that is said would take three times the lines.
pub(super) const ROWS: &[Command] = &chapter(Group::HyperLogLog, "@hyperloglog", [
    row("pfadd", -2, "write denyoom fast", "key [element...]")
        .since("2.8.9").key("RW insert").cost(Cost::arguments(200)).slow().adds(Adds::Registers)
        .says("Adds elements to a HyperLogLog key. Creates the key if it doesn't exist.")
        .complexity("O(1) to add every element."),
    row("pfcount", -2, "readonly may_replicate", "key...")
        .since("2.8.9").keys(KeySpec::all(1, "RW access")).cost(Cost::arguments(5000)).slow()
        .says("Returns the approximated cardinality of the set(s) observed by the HyperLogLog \
            key(s).")
        .complexity("O(1) with a very small average constant time when called with a single key. \
            O(N) with N being the number of keys, and much bigger constant times, when called with \
            multiple keys."),
    row("pfdebug", 3, "write denyoom admin", "subcommand key")
        .since("2.8.9").keys(KeySpec::one(2, "RW access")).slow().adds(Adds::Registers)
        .says("Internal commands for debugging HyperLogLog values.")
        .complexity("N/A"),
    row("pfmerge", -2, "write denyoom", "destkey:key [sourcekey:key1...]")
        .since("2.8.9").keys(KeySpec::all(1, "RW access insert, RO access"))
        .cost(Cost::arguments(5000)).slow().adds(Adds::Registers)
        .recorded_as_result()
        .says("Merges one or more HyperLogLog values into a single key.")
        .complexity("O(N) to merge N HyperLogLogs, but with high constant times."),
    row("pfselftest", 1, "admin", "")
        .since("2.8.9").slow()
        .says("An internal command for testing HyperLogLog values.")
        .complexity("N/A"),
]);
