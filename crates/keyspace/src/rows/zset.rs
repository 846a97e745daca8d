//! Rows: sorted sets, member by member.

use super::command::{Command, chapter, row};
use super::cost::{Cost, Visits};
use super::keys::KeySpec;
use super::kinds::Group;

#[rustfmt::skip] // One call for each thing that is said would take three times the lines.
pub(super) const ROWS: &[Command] = &chapter(Group::SortedSet, "@sortedset", [
    row("zadd", -4, "write denyoom fast",
        "key [condition(NX|XX)@3.0.2] [comparison(GT|LT)@6.2.0] [change=CH@3.0.2] \
            [increment=INCR@3.0.2] score_member(score:float member)...")
        .since("1.2.0").key("RW update").cost(Cost::arguments(600))
        .says("Adds members to a sorted set, or changes their scores. Creates the key if it \
            doesn't exist.")
        .complexity("O(log(N)) for each member added, where N is the number of members in the \
            sorted set.")
        .history(&[("2.4.0", "Accepts multiple elements."), ("3.0.2", "Added the `XX`, `NX`, `CH` \
            and `INCR` options."), ("6.2.0", "Added the `GT` and `LT` options.")]),
    row("zcard", 2, "readonly fast", "key")
        .since("1.2.0").key("RO")
        .says("Returns the number of members in a sorted set."),
    row("zincrby", 4, "write denyoom fast", "key increment:int member")
        .since("1.2.0").key("RW access update")
        .says("Increments the score of a member in a sorted set.")
        .complexity("O(log(N)) where N is the number of members in the sorted set."),
    row("zmpop", -4, "write movablekeys", "numkeys:int key... where(MIN|MAX) [COUNT count:int]")
        .since("7.0.0").keys(KeySpec::counted(1, "RW access delete"))
        .cost(Cost::visiting(1500, Visits::CountWord(1)))
        .says("Removes and returns the first or the last members of the first sorted set that is \
            not empty.")
        .complexity("O(K) + O(M*log(N)) where K is the number of keys, N the number of members in \
            the sorted set and M the number of members popped."),
    row("zmscore", -3, "readonly fast", "key member...")
        .since("6.2.0").key("RO access").cost(Cost::arguments(200))
        .says("Returns the scores of one or more members in a sorted set.")
        .complexity("O(N) where N is the number of members being requested."),
    row("zpopmax", -2, "write fast", "key [count:int]")
        .since("5.0.0").key("RW access delete").cost(Cost::visiting(1500, Visits::Count(2)))
        .says("Removes and returns the members with the highest scores of a sorted set. Deletes \
            the key if none remain.")
        .complexity("O(log(N)*M) where N is the number of members in the sorted set and M the \
            number of members popped."),
    row("zpopmin", -2, "write fast", "key [count:int]")
        .since("5.0.0").key("RW access delete").cost(Cost::visiting(1500, Visits::Count(2)))
        .says("Removes and returns the members with the lowest scores of a sorted set. Deletes the \
            key if none remain.")
        .complexity("O(log(N)*M) where N is the number of members in the sorted set and M the \
            number of members popped."),
    row("zrandmember", -2, "readonly", "key [options(count:int [WITHSCORES])]")
        .since("6.2.0").key("RO access").cost(Cost::visiting(600, Visits::Count(2)))
        .hints("nondeterministic_output")
        .says("Returns random members of a sorted set.")
        .complexity("O(N) where N is the number of members returned."),
    row("zrank", -3, "readonly fast", "key member [WITHSCORE@7.2.0]")
        .since("2.0.0").key("RO access")
        .says("Returns how many members of a sorted set come before a member.")
        .complexity("O(log(N)) where N is the number of members in the sorted set.")
        .history(&[("7.2.0", "Added the optional `WITHSCORE` argument.")]),
    row("zrem", -3, "write fast", "key member...")
        .since("1.2.0").key("RW delete").cost(Cost::arguments(1000))
        .says("Removes members from a sorted set. Deletes the key if none remain.")
        .complexity("O(M*log(N)) where N is the number of members in the sorted set and M the \
            number of members to be removed.")
        .history(&[("2.4.0", "Accepts multiple elements.")]),
    row("zrevrank", -3, "readonly fast", "key member [WITHSCORE@7.2.0]")
        .since("2.0.0").key("RO access")
        .says("Returns how many members of a sorted set come behind a member.")
        .complexity("O(log(N)) where N is the number of members in the sorted set.")
        .history(&[("7.2.0", "Added the optional `WITHSCORE` argument.")]),
    row("zscan", -3, "readonly",
        "key cursor:int [MATCH pattern:pattern] [COUNT count:int] [NOSCORES@8.0.0]")
        .since("2.8.0").key("RO access").cost(Cost::visiting(1000, Visits::CountWord(10)))
        .hints("nondeterministic_output")
        .says("Iterates over the members of a sorted set and their scores.")
        .complexity("O(1) for every call. O(N) for a whole iteration, where N is the number of \
            members."),
    row("zscore", 3, "readonly fast", "key member")
        .since("1.2.0").key("RO access")
        .says("Returns the score of a member in a sorted set."),
]);
