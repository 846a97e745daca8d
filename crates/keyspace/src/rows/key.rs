//! Rows: keys of any type.

use super::command::{Command, chapter, row};
use super::cost::Cost;
use super::keys::KeySpec;
use super::kinds::{Adds, Group};

#[rustfmt::skip] // One call for each thing that is said would take three times the lines.
pub(super) const ROWS: &[Command] = &chapter(Group::Generic, "@keyspace", [
    row("copy", -3, "write denyoom",
        "source:key destination:key1 [DB destination-db:int] [REPLACE]")
        .since("6.2.0").keys(KeySpec::two("RO access, OW update")).cost(Cost::all(500)).slow()
        .adds(Adds::Copy)
        .says("Copies the value of a key to a new key.")
        .complexity("O(N) worst case for collections, where N is the number of nested items. O(1) \
            for string values."),
    row("del", -2, "write", "key...")
        .keys(KeySpec::all(1, "RM delete")).cost(Cost::arguments(200))
        .hints("request_policy:multi_shard response_policy:agg_sum")
        .says("Deletes one or more keys.")
        .complexity("O(N) where N is the number of keys that will be removed. When a key to remove \
            holds a value other than a string, the individual complexity for this key is O(M) \
            where M is the number of elements in the list, set, sorted set or hash. Removing a \
            single key that holds a string value is O(1)."),
    row("dump", 2, "readonly", "key")
        .since("2.6.0").key("RO access").cost(Cost::all(100)).slow().hints("nondeterministic_output")
        .says("Returns a serialized representation of the value stored at a key.")
        .complexity("O(1) to access the key and additional O(N*M) to serialize it, where N is the \
            number of Redis objects composing the value and M their average size. For small string \
            values the time complexity is thus O(1)+O(1*M) where M is small, so simply O(1)."),
    row("exists", -2, "readonly fast", "key...")
        .keys(KeySpec::all(1, "RO")).cost(Cost::arguments(200))
        .hints("request_policy:multi_shard response_policy:agg_sum")
        .says("Determines whether one or more keys exist.")
        .complexity("O(N) where N is the number of keys to check.")
        .history(&[("3.0.3", "Accepts multiple `key` arguments.")]),
    row("keys", 2, "readonly", "pattern:pattern")
        .in_categories("@keyspace @dangerous")
        .hints("request_policy:all_shards nondeterministic_output_order")
        .says("Returns all key names that match a pattern.")
        .complexity("O(N) with N being the number of keys in the database, under the assumption \
            that the key names in the database and the given pattern have limited length."),
    row("move", 3, "write fast", "key db:int")
        .key("RW access update")
        .says("Moves a key to another database."),
    row("object", -2, "", "")
        .since("2.2.3").in_categories("-")
        .says("A container for object introspection commands.")
        .complexity("Depends on subcommand."),
    row("object|encoding", 3, "readonly", "key")
        .since("2.2.3").keys(KeySpec::one(2, "RO")).hints("nondeterministic_output")
        .says("Returns the internal encoding of a redis object."),
    row("object|freq", 3, "readonly", "key")
        .since("4.0.0").keys(KeySpec::one(2, "RO")).hints("nondeterministic_output")
        .says("Returns the logarithmic access frequency counter of a redis object."),
    row("object|help", 2, "loading stale", "")
        .since("6.2.0")
        .says("Returns helpful text about the different subcommands."),
    row("object|idletime", 3, "readonly", "key")
        .since("2.2.3").keys(KeySpec::one(2, "RO")).hints("nondeterministic_output")
        .says("Returns the time since the last access to a redis object."),
    row("object|refcount", 3, "readonly", "key")
        .since("2.2.3").keys(KeySpec::one(2, "RO")).hints("nondeterministic_output")
        .says("Returns the reference count of a value of a key."),
    row("randomkey", 1, "readonly", "")
        .hints("request_policy:all_shards nondeterministic_output")
        .says("Returns a random key name from the database."),
    row("rename", 3, "write", "key newkey:key1")
        .keys(KeySpec::two("RW access delete, OW update"))
        .says("Renames a key and overwrites the destination."),
    row("renamenx", 3, "write fast", "key newkey:key1")
        .keys(KeySpec::two("RW access delete, OW insert"))
        .says("Renames a key only when the target key name doesn't exist.")
        .history(&[("3.2.0", "The command no longer returns an error when source and destination \
            names are the same.")]),
    row("restore", -4, "write denyoom",
        "key ttl:int serialized-value [REPLACE@3.0.0] [ABSTTL@5.0.0] [IDLETIME seconds:int@5.0.0] \
            [FREQ frequency:int@5.0.0]")
        .since("2.6.0").key("OW update").cost(Cost::arguments(1000)).slow().adds(Adds::Payload)
        .in_categories("@keyspace @dangerous")
        .says("Creates a key from the serialized representation of a value.")
        .complexity("O(1) to create the new key and additional O(N*M) to reconstruct the \
            serialized value, where N is the number of Redis objects composing the value and M \
            their average size. For small string values the time complexity is thus O(1)+O(1*M) \
            where M is small, so simply O(1). However for sorted set values the complexity is \
            O(N*M*log(N)) because inserting values into sorted sets is O(log(N)).")
        .history(&[("3.0.0", "Added the `REPLACE` modifier."), ("5.0.0", "Added the `ABSTTL` \
            modifier."), ("5.0.0", "Added the `IDLETIME` and `FREQ` options.")]),
    row("scan", -2, "readonly",
        "cursor:int [MATCH pattern:pattern] [COUNT count:int] [TYPE type@6.0.0]")
        .since("2.8.0").hints("nondeterministic_output request_policy:special")
        .says("Iterates over the key names in the database.")
        .complexity("O(1) for every call. O(N) for a complete iteration, including enough command \
            calls for the cursor to return back to 0. N is the number of elements inside the \
            collection.")
        .history(&[("6.0.0", "Added the `TYPE` subcommand.")]),
    row("sort", -2, "write denyoom movablekeys",
        "key [BY by-pattern:pattern] [LIMIT limit(offset:int count:int)] [GET \
            get-pattern:pattern...] [order(ASC|DESC)] [sorting=ALPHA] [STORE destination:key2]")
        .key("RO access").cost(Cost::all(500)).slow().reaches().adds(Adds::Copy)
        .in_categories("@set @sortedset @list @dangerous")
        .says("Sorts the elements in a list, a set, or a sorted set, optionally storing the \
            result.")
        .complexity("O(N+M*log(M)) where N is the number of elements in the list or set to sort, \
            and M the number of returned elements. When the elements are not sorted, complexity is \
            O(N)."),
    row("sort_ro", -2, "readonly movablekeys",
        "key [BY by-pattern:pattern] [LIMIT limit(offset:int count:int)] [GET \
            get-pattern:pattern...] [order(ASC|DESC)] [sorting=ALPHA]")
        .since("7.0.0").key("RO access").cost(Cost::all(500)).slow().reaches()
        .in_categories("@set @sortedset @list @dangerous")
        .says("Returns the sorted elements of a list, a set, or a sorted set.")
        .complexity("O(N+M*log(M)) where N is the number of elements in the list or set to sort, \
            and M the number of returned elements. When the elements are not sorted, complexity is \
            O(N)."),
    row("touch", -2, "readonly fast", "key...")
        .since("3.2.1").keys(KeySpec::all(1, "RO")).cost(Cost::arguments(200))
        .hints("request_policy:multi_shard response_policy:agg_sum")
        .says("Returns the number of existing keys out of those specified after updating the time \
            they were last accessed.")
        .complexity("O(N) where N is the number of keys that will be touched."),
    row("type", 2, "readonly fast", "key")
        .key("RO")
        .says("Determines the type of value stored at a key."),
    row("unlink", -2, "write fast", "key...")
        .since("4.0.0").keys(KeySpec::all(1, "RM delete")).cost(Cost::arguments(200))
        .hints("request_policy:multi_shard response_policy:agg_sum")
        .says("Asynchronously deletes one or more keys.")
        .complexity("O(1) for each key removed regardless of its size. Then the command does O(N) \
            work in a different thread in order to reclaim memory, where N is the number of \
            allocations the deleted objects where composed of."),
]);
