//! Rows: bitmaps.

use super::command::{Command, chapter, row};
use super::cost::Cost;
use super::keys::KeySpec;
use super::kinds::{Adds, Group};

#[rustfmt::skip] // One call for each thing that is said would take three times the lines.
pub(super) const ROWS: &[Command] = &chapter(Group::Bitmap, "@bitmap", [
    row("bitcount", -2, "readonly",
        "key [range(start:int [end-unit-block(end:int [unit(BYTE|BIT)@7.0.0])])]")
        .since("2.6.0").key("RO access").cost(Cost::all(5)).slow()
        .says("Counts the number of set bits (population counting) in a string.")
        .complexity("O(N)")
        .history(&[("7.0.0", "Added the `BYTE|BIT` option."), ("8.0.0", "`end` may be left out: to \
            the end of the string.")]),
    row("bitfield", -2, "write denyoom",
        "key [operation(GET get-block(encoding offset:int)|write([OVERFLOW \
            overflow-block(WRAP|SAT|FAIL)] write-operation(SET set-block(encoding offset:int \
            value:int)|INCRBY incrby-block(encoding offset:int increment:int))))...]")
        .since("3.2.0").key("RW access update variable_flags").cost(Cost::all(30)).slow()
        .adds(Adds::Fields)
        .says("Performs arbitrary bitfield integer operations on strings.")
        .complexity("O(1) for each subcommand specified"),
    row("bitfield_ro", -2, "readonly fast", "key [GET get-block(encoding offset:int)...]")
        .since("6.0.0").key("RO access")
        .says("Performs arbitrary read-only bitfield integer operations on strings.")
        .complexity("O(1) for each subcommand specified"),
    row("bitop", -4, "write denyoom",
        "operation(AND|OR|XOR|NOT|DIFF@8.2.0|DIFF1@8.2.0|ANDOR@8.2.0|ONE@8.2.0) destkey:key \
            key:key1...")
        .since("2.6.0")
        .keys(KeySpec::from(2, "OW update, RO access"))
        .cost(Cost::all(10)).slow().adds(Adds::Longest)
        .recorded_as_result()
        .says("Performs bitwise operations on multiple strings, and stores the result.")
        .complexity("O(N)")
        .history(&[("8.2.0", "Added the `DIFF`, `DIFF1`, `ANDOR` and `ONE` operations.")]),
    row("bitpos", -3, "readonly",
        "key bit:int [range(start:int [end-unit-block(end:int [unit(BYTE|BIT)@7.0.0])])]")
        .since("2.8.7").key("RO access").cost(Cost::all(5)).slow()
        .says("Finds the first set (1) or clear (0) bit in a string.")
        .complexity("O(N)")
        .history(&[("7.0.0", "Added the `BYTE|BIT` option.")]),
    row("getbit", 3, "readonly fast", "key offset:int")
        .since("2.2.0").key("RO access")
        .says("Returns a bit value by offset."),
    row("setbit", 4, "write denyoom", "key offset:int value:int")
        .since("2.2.0").key("RW access update").cost(Cost::all(30)).slow().adds(Adds::Bit)
        .says("Sets or clears the bit at offset of the string value. Creates the key if it doesn't \
            exist."),
]);
