//! Rows: hashes.

use super::command::{Command, chapter, row};
use super::cost::{Cost, Visits};
use super::kinds::Group;

#[rustfmt::skip] // One call for each thing that is said would take three times the lines.
pub(super) const ROWS: &[Command] = &chapter(Group::Hash, "@hash", [
    row("hdel", -3, "write fast", "key field...")
        .since("2.0.0").key("RW delete").cost(Cost::arguments(1200))
        .says("Deletes one or more fields and their values from a hash. Deletes the hash if no \
            fields remain.")
        .complexity("O(N) where N is the number of fields to be removed.")
        .history(&[("2.4.0", "Accepts multiple `field` arguments.")]),
    row("hexists", 3, "readonly fast", "key field")
        .since("2.0.0").key("RO")
        .says("Determines whether a field exists in a hash."),
    row("hget", 3, "readonly fast", "key field")
        .since("2.0.0").key("RO access")
        .says("Returns the value of a field in a hash."),
    row("hgetall", 2, "readonly", "key")
        .since("2.0.0").key("RO access").cost(Cost::all(100)).slow()
        .hints("nondeterministic_output_order")
        .says("Returns all fields and values in a hash.")
        .complexity("O(N) where N is the size of the hash."),
    row("hgetdel", -5, "write fast", "key FIELDS fields(numfields:int field...)")
        .since("8.0.0").key("RW access delete").cost(Cost::arguments(1000))
        .says("Returns the values of fields and deletes them from a hash.")
        .complexity("O(N) where N is the number of specified fields."),
    row("hgetex", -5, "write fast",
        "key [expiration(EX seconds:int|PX milliseconds:int|EXAT unix-time-seconds:time|PXAT \
            unix-time-milliseconds:time|PERSIST)] FIELDS fields(numfields:int field...)")
        .since("8.0.0").key("RW access update").cost(Cost::arguments(1000))
        .says("Returns the values of fields and sets their expiration time.")
        .complexity("O(N) where N is the number of specified fields."),
    row("hincrby", 4, "write denyoom fast", "key field increment:int")
        .since("2.0.0").key("RW access update")
        .says("Increments the integer value of a field in a hash by a number. Uses 0 as initial \
            value if the field doesn't exist."),
    row("hincrbyfloat", 4, "write denyoom fast", "key field increment:float")
        .since("2.6.0").key("RW access update")
        .says("Increments the floating point value of a field by a number. Uses 0 as initial value \
            if the field doesn't exist."),
    row("hkeys", 2, "readonly", "key")
        .since("2.0.0").key("RO access").cost(Cost::all(60)).slow()
        .hints("nondeterministic_output_order")
        .says("Returns all fields in a hash.")
        .complexity("O(N) where N is the size of the hash."),
    row("hlen", 2, "readonly fast", "key")
        .since("2.0.0").key("RO")
        .says("Returns the number of fields in a hash."),
    row("hmget", -3, "readonly fast", "key field...")
        .since("2.0.0").key("RO access").cost(Cost::arguments(200))
        .says("Returns the values of all fields in a hash.")
        .complexity("O(N) where N is the number of fields being requested."),
    row("hmset", -4, "write denyoom fast", "key data(field value)...")
        .since("2.0.0").key("RW update").cost(Cost::arguments(400))
        .says("Sets the values of multiple fields.")
        .complexity("O(N) where N is the number of fields being set.")
        .replaced_by("4.0.0", "`HSET` with multiple field-value pairs"),
    row("hrandfield", -2, "readonly", "key [options(count:int [WITHVALUES])]")
        .since("6.2.0").key("RO access").cost(Cost::visiting(700, Visits::Count(2))).slow()
        .hints("nondeterministic_output")
        .says("Returns one or more random fields from a hash.")
        .complexity("O(N) where N is the number of fields returned"),
    row("hscan", -3, "readonly",
        "key cursor:int [MATCH pattern:pattern] [COUNT count:int] [NOVALUES@7.4.0]")
        .since("2.8.0").key("RO access").cost(Cost::visiting(150, Visits::CountWord(10)))
        .hints("nondeterministic_output")
        .says("Iterates over the fields of a hash and their values.")
        .complexity("O(1) for every call. O(N) for a whole iteration, where N is the number of \
            members."),
    row("hset", -4, "write denyoom fast", "key data(field value)...")
        .since("2.0.0").key("RW update").cost(Cost::arguments(400))
        .says("Creates or modifies the value of a field in a hash.")
        .complexity("O(1) for each field/value pair added, so O(N) to add N field/value pairs when \
            the command is called with multiple field/value pairs.")
        .history(&[("4.0.0", "Accepts multiple `field` and `value` arguments.")]),
    row("hsetex", -6, "write denyoom fast",
        "key [key-condition(NX|XX)] [condition(FNX|FXX)] [expiration(EX seconds:int|PX milliseconds:int|EXAT \
            unix-time-seconds:time|PXAT unix-time-milliseconds:time|KEEPTTL)] FIELDS \
            fields(numfields:int data(field value)...)")
        .since("8.0.0").key("RW update").cost(Cost::arguments(1000))
        .says("Sets the values of fields and their expiration time.")
        .complexity("O(N) where N is the number of fields being set."),
    row("hsetnx", 4, "write denyoom fast", "key field value")
        .since("2.0.0").key("RW insert")
        .says("Sets the value of a field in a hash only when the field doesn't exist."),
    row("hstrlen", 3, "readonly fast", "key field")
        .since("3.2.0").key("RO")
        .says("Returns the length of the value of a field."),
    row("hvals", 2, "readonly", "key")
        .since("2.0.0").key("RO access").cost(Cost::all(60)).slow()
        .hints("nondeterministic_output_order")
        .says("Returns all values in a hash.")
        .complexity("O(N) where N is the size of the hash."),
]);
