//! Rows: the deadlines of members, for hashes, sets and sorted sets.

use super::command::{Command, chapter, row};
use super::cost::Cost;
use super::kinds::Group;

#[rustfmt::skip] // One call for each thing that is said would take three times the lines.
pub(super) const ROWS: &[Command] = &chapter(Group::Hash, "@hash", [
    row("hexpire", -6, "write fast",
        "key seconds:int [condition(NX|XX|GT|LT)] FIELDS fields(numfields:int field...)")
        .since("7.4.0").key("RW update").cost(Cost::arguments(1200))
        .says("Sets the expiration time of hash fields in seconds.")
        .complexity("O(N) where N is the number of specified members"),
    row("hpexpire", -6, "write fast",
        "key milliseconds:int [condition(NX|XX|GT|LT)] FIELDS fields(numfields:int field...)")
        .since("7.4.0").key("RW update").cost(Cost::arguments(1200))
        .says("Sets the expiration time of hash fields in milliseconds.")
        .complexity("O(N) where N is the number of specified members"),
    row("hexpireat", -6, "write fast",
        "key unix-time-seconds:time [condition(NX|XX|GT|LT)] FIELDS fields(numfields:int field...)")
        .since("7.4.0").key("RW update").cost(Cost::arguments(1200))
        .says("Sets the expiration time of hash fields to a Unix timestamp in seconds.")
        .complexity("O(N) where N is the number of specified members"),
    row("hpexpireat", -6, "write fast",
        "key unix-time-milliseconds:time [condition(NX|XX|GT|LT)] FIELDS fields(numfields:int \
            field...)")
        .since("7.4.0").key("RW update").cost(Cost::arguments(1200))
        .says("Sets the expiration time of hash fields to a Unix timestamp in milliseconds.")
        .complexity("O(N) where N is the number of specified members"),
    row("httl", -5, "readonly fast", "key FIELDS fields(numfields:int field...)")
        .since("7.4.0").key("RO access").cost(Cost::arguments(1200))
        .says("Returns the time to live of hash fields in seconds.")
        .complexity("O(N) where N is the number of specified members"),
    row("hpttl", -5, "readonly fast", "key FIELDS fields(numfields:int field...)")
        .since("7.4.0").key("RO access").cost(Cost::arguments(1200))
        .says("Returns the time to live of hash fields in milliseconds.")
        .complexity("O(N) where N is the number of specified members"),
    row("hexpiretime", -5, "readonly fast", "key FIELDS fields(numfields:int field...)")
        .since("7.4.0").key("RO access").cost(Cost::arguments(1200))
        .says("Returns the expiration time of hash fields as a Unix timestamp in seconds.")
        .complexity("O(N) where N is the number of specified members"),
    row("hpexpiretime", -5, "readonly fast", "key FIELDS fields(numfields:int field...)")
        .since("7.4.0").key("RO access").cost(Cost::arguments(1200))
        .says("Returns the expiration time of hash fields as a Unix timestamp in milliseconds.")
        .complexity("O(N) where N is the number of specified members"),
    row("hpersist", -5, "write fast", "key FIELDS fields(numfields:int field...)")
        .since("7.4.0").key("RW update").cost(Cost::arguments(1200))
        .says("Removes the expiration time of hash fields.")
        .complexity("O(N) where N is the number of specified members"),
    row("sexpire", -6, "write fast",
        "key seconds:int [condition(NX|XX|GT|LT)] MEMBERS members(nummembers:int member...)")
        .since("7.4.0").key("RW update").cost(Cost::arguments(1200)).in_group(Group::Set)
        .in_categories("@set")
        .says("Sets the expiration time of members of a set in seconds.")
        .complexity("O(N) where N is the number of specified members"),
    row("spexpire", -6, "write fast",
        "key milliseconds:int [condition(NX|XX|GT|LT)] MEMBERS members(nummembers:int member...)")
        .since("7.4.0").key("RW update").cost(Cost::arguments(1200)).in_group(Group::Set)
        .in_categories("@set")
        .says("Sets the expiration time of members of a set in milliseconds.")
        .complexity("O(N) where N is the number of specified members"),
    row("sexpireat", -6, "write fast",
        "key unix-time-seconds:time [condition(NX|XX|GT|LT)] MEMBERS members(nummembers:int \
            member...)")
        .since("7.4.0").key("RW update").cost(Cost::arguments(1200)).in_group(Group::Set)
        .in_categories("@set")
        .says("Sets the expiration time of members of a set to a Unix timestamp in seconds.")
        .complexity("O(N) where N is the number of specified members"),
    row("spexpireat", -6, "write fast",
        "key unix-time-milliseconds:time [condition(NX|XX|GT|LT)] MEMBERS members(nummembers:int \
            member...)")
        .since("7.4.0").key("RW update").cost(Cost::arguments(1200)).in_group(Group::Set)
        .in_categories("@set")
        .says("Sets the expiration time of members of a set to a Unix timestamp in milliseconds.")
        .complexity("O(N) where N is the number of specified members"),
    row("sttl", -5, "readonly fast", "key MEMBERS members(nummembers:int member...)")
        .since("7.4.0").key("RO access").cost(Cost::arguments(1200)).in_group(Group::Set)
        .in_categories("@set")
        .says("Returns the time to live of members of a set in seconds.")
        .complexity("O(N) where N is the number of specified members"),
    row("spttl", -5, "readonly fast", "key MEMBERS members(nummembers:int member...)")
        .since("7.4.0").key("RO access").cost(Cost::arguments(1200)).in_group(Group::Set)
        .in_categories("@set")
        .says("Returns the time to live of members of a set in milliseconds.")
        .complexity("O(N) where N is the number of specified members"),
    row("sexpiretime", -5, "readonly fast", "key MEMBERS members(nummembers:int member...)")
        .since("7.4.0").key("RO access").cost(Cost::arguments(1200)).in_group(Group::Set)
        .in_categories("@set")
        .says("Returns the expiration time of members of a set as a Unix timestamp in seconds.")
        .complexity("O(N) where N is the number of specified members"),
    row("spexpiretime", -5, "readonly fast", "key MEMBERS members(nummembers:int member...)")
        .since("7.4.0").key("RO access").cost(Cost::arguments(1200)).in_group(Group::Set)
        .in_categories("@set")
        .says("Returns the expiration time of members of a set as a Unix timestamp in \
            milliseconds.")
        .complexity("O(N) where N is the number of specified members"),
    row("spersist", -5, "write fast", "key MEMBERS members(nummembers:int member...)")
        .since("7.4.0").key("RW update").cost(Cost::arguments(1200)).in_group(Group::Set)
        .in_categories("@set")
        .says("Removes the expiration time of members of a set.")
        .complexity("O(N) where N is the number of specified members"),
    row("zexpire", -6, "write fast",
        "key seconds:int [condition(NX|XX|GT|LT)] MEMBERS members(nummembers:int member...)")
        .since("7.4.0").key("RW update").cost(Cost::arguments(1200)).in_group(Group::SortedSet)
        .in_categories("@sortedset")
        .says("Sets the expiration time of members of a sorted set in seconds.")
        .complexity("O(N) where N is the number of specified members"),
    row("zpexpire", -6, "write fast",
        "key milliseconds:int [condition(NX|XX|GT|LT)] MEMBERS members(nummembers:int member...)")
        .since("7.4.0").key("RW update").cost(Cost::arguments(1200)).in_group(Group::SortedSet)
        .in_categories("@sortedset")
        .says("Sets the expiration time of members of a sorted set in milliseconds.")
        .complexity("O(N) where N is the number of specified members"),
    row("zexpireat", -6, "write fast",
        "key unix-time-seconds:time [condition(NX|XX|GT|LT)] MEMBERS members(nummembers:int \
            member...)")
        .since("7.4.0").key("RW update").cost(Cost::arguments(1200)).in_group(Group::SortedSet)
        .in_categories("@sortedset")
        .says("Sets the expiration time of members of a sorted set to a Unix timestamp in seconds.")
        .complexity("O(N) where N is the number of specified members"),
    row("zpexpireat", -6, "write fast",
        "key unix-time-milliseconds:time [condition(NX|XX|GT|LT)] MEMBERS members(nummembers:int \
            member...)")
        .since("7.4.0").key("RW update").cost(Cost::arguments(1200)).in_group(Group::SortedSet)
        .in_categories("@sortedset")
        .says("Sets the expiration time of members of a sorted set to a Unix timestamp in \
            milliseconds.")
        .complexity("O(N) where N is the number of specified members"),
    row("zttl", -5, "readonly fast", "key MEMBERS members(nummembers:int member...)")
        .since("7.4.0").key("RO access").cost(Cost::arguments(1200)).in_group(Group::SortedSet)
        .in_categories("@sortedset")
        .says("Returns the time to live of members of a sorted set in seconds.")
        .complexity("O(N) where N is the number of specified members"),
    row("zpttl", -5, "readonly fast", "key MEMBERS members(nummembers:int member...)")
        .since("7.4.0").key("RO access").cost(Cost::arguments(1200)).in_group(Group::SortedSet)
        .in_categories("@sortedset")
        .says("Returns the time to live of members of a sorted set in milliseconds.")
        .complexity("O(N) where N is the number of specified members"),
    row("zexpiretime", -5, "readonly fast", "key MEMBERS members(nummembers:int member...)")
        .since("7.4.0").key("RO access").cost(Cost::arguments(1200)).in_group(Group::SortedSet)
        .in_categories("@sortedset")
        .says("Returns the expiration time of members of a sorted set as a Unix timestamp in \
            seconds.")
        .complexity("O(N) where N is the number of specified members"),
    row("zpexpiretime", -5, "readonly fast", "key MEMBERS members(nummembers:int member...)")
        .since("7.4.0").key("RO access").cost(Cost::arguments(1200)).in_group(Group::SortedSet)
        .in_categories("@sortedset")
        .says("Returns the expiration time of members of a sorted set as a Unix timestamp in \
            milliseconds.")
        .complexity("O(N) where N is the number of specified members"),
    row("zpersist", -5, "write fast", "key MEMBERS members(nummembers:int member...)")
        .since("7.4.0").key("RW update").cost(Cost::arguments(1200)).in_group(Group::SortedSet)
        .in_categories("@sortedset")
        .says("Removes the expiration time of members of a sorted set.")
        .complexity("O(N) where N is the number of specified members"),
    row("expiremember", -4, "write fast", "key member delay:int [unit(s=s|ms=ms)]")
        .since("6.3.0").key("RW update").cost(Cost::arguments(1200)).in_group(Group::Generic)
        .in_categories("-")
        .says("Sets the expiration time of a hash field, or of a member of a set or a sorted set."),
    row("expirememberat", 4, "write fast", "key member unix-time-seconds:time")
        .since("6.3.0").key("RW update").cost(Cost::arguments(1200)).in_group(Group::Generic)
        .in_categories("-")
        .says("Sets the expiration time of a hash field, or of a member of a set or a sorted set, \
            to a Unix timestamp in seconds."),
    row("pexpirememberat", 4, "write fast", "key member unix-time-milliseconds:time")
        .since("6.3.0").key("RW update").cost(Cost::arguments(1200)).in_group(Group::Generic)
        .in_categories("-")
        .says("Sets the expiration time of a hash field, or of a member of a set or a sorted set, \
            to a Unix timestamp in milliseconds."),
]);
