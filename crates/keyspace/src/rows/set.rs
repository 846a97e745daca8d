//! Rows: sets.

use super::command::{Command, chapter, row};
use super::cost::{Cost, Visits};
use super::keys::KeySpec;
use super::kinds::{Adds, Group};

#[rustfmt::skip] // One call for each thing that is said would take three times the lines.
pub(super) const ROWS: &[Command] = &chapter(Group::Set, "@set", [
    row("sadd", -3, "write denyoom fast", "key member...")
        .key("RW insert").cost(Cost::arguments(600))
        .says("Adds one or more members to a set. Creates the key if it doesn't exist.")
        .complexity("O(1) for each element added, so O(N) to add N elements when the command is \
            called with multiple arguments.")
        .history(&[("2.4.0", "Accepts multiple `member` arguments.")]),
    row("scard", 2, "readonly fast", "key")
        .key("RO")
        .says("Returns the number of members in a set."),
    row("sdiff", -2, "readonly", "key...")
        .keys(KeySpec::all(1, "RO access")).cost(Cost::all(400)).slow()
        .hints("nondeterministic_output_order")
        .says("Returns the members of the first set that none of the others has.")
        .complexity("O(N) where N is the total number of elements in all given sets."),
    row("sdiffstore", -3, "write denyoom", "destination:key key:key1...")
        .keys(KeySpec::all(1, "OW update, RO access")).cost(Cost::all(500)).slow()
        .adds(Adds::Sources)
        .recorded_as_result()
        .says("Stores the members of the first set that none of the others has in a key.")
        .complexity("O(N) where N is the total number of elements in all given sets."),
    row("sinter", -2, "readonly", "key...")
        .keys(KeySpec::all(1, "RO access")).cost(Cost::all(400)).slow()
        .hints("nondeterministic_output_order")
        .says("Returns the members that all of several sets have.")
        .complexity("O(N*M) worst case where N is the cardinality of the smallest set and M is the \
            number of sets."),
    row("sintercard", -3, "readonly movablekeys", "numkeys:int key... [LIMIT limit:int]")
        .since("7.0.0").keys(KeySpec::counted(1, "RO access")).cost(Cost::all(200)).slow()
        .says("Returns the number of members that all of several sets have.")
        .complexity("O(N*M) worst case where N is the cardinality of the smallest set and M is the \
            number of sets."),
    row("sinterstore", -3, "write denyoom", "destination:key key:key1...")
        .keys(KeySpec::all(1, "OW update, RO access")).cost(Cost::all(500)).slow()
        .adds(Adds::Sources)
        .recorded_as_result()
        .says("Stores the members that all of several sets have in a key.")
        .complexity("O(N*M) worst case where N is the cardinality of the smallest set and M is the \
            number of sets."),
    row("sismember", 3, "readonly fast", "key member")
        .key("RO")
        .says("Determines whether a member belongs to a set."),
    row("smembers", 2, "readonly", "key")
        .key("RO access").cost(Cost::all(60)).slow().hints("nondeterministic_output_order")
        .says("Returns all members of a set.")
        .complexity("O(N) where N is the set cardinality."),
    row("smismember", -3, "readonly fast", "key member...")
        .since("6.2.0").key("RO access").cost(Cost::arguments(200))
        .says("Determines whether multiple members belong to a set.")
        .complexity("O(N) where N is the number of elements being checked for membership"),
    row("smove", 4, "write fast", "source:key destination:key1 member")
        .keys(KeySpec::two("RW access delete, RW insert"))
        .says("Moves a member from one set to another."),
    row("spop", -2, "write fast", "key [count:int@3.2.0]")
        .key("RW access delete").cost(Cost::visiting(1000, Visits::Count(2)))
        .hints("nondeterministic_output")
        .says("Returns one or more random members from a set after removing them. Deletes the set \
            if the last member was popped.")
        .complexity("Without the count argument O(1), otherwise O(N) where N is the value of the \
            passed count.")
        .history(&[("3.2.0", "Added the `count` argument.")]),
    row("srandmember", -2, "readonly", "key [count:int@2.6.0]")
        .key("RO access").cost(Cost::visiting(500, Visits::Count(2))).slow()
        .hints("nondeterministic_output")
        .says("Gets one or multiple random members from a set.")
        .complexity("Without the count argument O(1), otherwise O(N) where N is the absolute value \
            of the passed count.")
        .history(&[("2.6.0", "Added the optional `count` argument.")]),
    row("srem", -3, "write fast", "key member...")
        .key("RW delete").cost(Cost::arguments(1000))
        .says("Removes one or more members from a set. Deletes the set if the last member was \
            removed.")
        .complexity("O(N) where N is the number of members to be removed.")
        .history(&[("2.4.0", "Accepts multiple `member` arguments.")]),
    row("sscan", -3, "readonly", "key cursor:int [MATCH pattern:pattern] [COUNT count:int]")
        .since("2.8.0").key("RO access").cost(Cost::visiting(150, Visits::CountWord(10)))
        .hints("nondeterministic_output")
        .says("Iterates over the members of a set.")
        .complexity("O(1) for every call. O(N) for a whole iteration, where N is the number of \
            members."),
    row("sunion", -2, "readonly", "key...")
        .keys(KeySpec::all(1, "RO access")).cost(Cost::all(400)).slow()
        .hints("nondeterministic_output_order")
        .says("Returns the members of several sets.")
        .complexity("O(N) where N is the total number of elements in all given sets."),
    row("sunionstore", -3, "write denyoom", "destination:key key:key1...")
        .keys(KeySpec::all(1, "OW update, RO access")).cost(Cost::all(500)).slow()
        .adds(Adds::Sources)
        .recorded_as_result()
        .says("Stores the members of several sets in a key.")
        .complexity("O(N) where N is the total number of elements in all given sets."),
]);
