//! Rows: ranges of sorted sets.

use super::command::{Command, chapter, row};
use super::cost::{Cost, RangeBy, RangeForm, Visits};
use super::keys::KeySpec;
use super::kinds::{Adds, Group};

#[rustfmt::skip] // One call for each thing that is said would take three times the lines.
pub(super) const ROWS: &[Command] = &chapter(Group::SortedSet, "@sortedset", [
    row("zcount", 4, "readonly fast", "key min:float max:float")
        .since("2.0.0").key("RO access")
        .says("Returns the number of members of a sorted set within a range of scores.")
        .complexity("O(log(N)) where N is the number of members in the sorted set."),
    row("zlexcount", 4, "readonly fast", "key min max")
        .since("2.8.9").key("RO access")
        .says("Returns the number of members of a sorted set within a lexicographical range.")
        .complexity("O(log(N)) where N is the number of members in the sorted set."),
    row("zrange", -4, "readonly",
        "key start stop [sortby(BYSCORE|BYLEX)@6.2.0] [REV@6.2.0] [LIMIT offset_count(offset:int \
            count:int)@6.2.0] [WITHSCORES]")
        .since("1.2.0").key("RO access").cost(Cost::visiting(100, Visits::Range(2, RangeForm::SAID)))
        .says("Returns the members of a sorted set within a range of ranks, scores or members.")
        .complexity("O(log(N)+M) where N is the number of members in the sorted set and M the \
            number of members returned.")
        .history(&[("6.2.0", "Added the `REV`, `BYSCORE`, `BYLEX` and `LIMIT` options.")]),
    row("zrangebylex", -4, "readonly", "key min max [LIMIT offset_count(offset:int count:int)]")
        .since("2.8.9").key("RO access").cost(Cost::visiting(100, Visits::Range(2, RangeForm::of(RangeBy::Lex))))
        .says("Returns the members of a sorted set within a lexicographical range.")
        .complexity("O(log(N)+M) where N is the number of members in the sorted set and M the \
            number of members returned.")
        .replaced_by("6.2.0", "`ZRANGE` with the `BYLEX` argument"),
    row("zrangebyscore", -4, "readonly",
        "key min:float max:float [WITHSCORES@2.0.0] [LIMIT offset_count(offset:int count:int)]")
        .since("1.0.5").key("RO access").cost(Cost::visiting(100, Visits::Range(2, RangeForm::of(RangeBy::Score))))
        .says("Returns the members of a sorted set within a range of scores.")
        .complexity("O(log(N)+M) where N is the number of members in the sorted set and M the \
            number of members returned.")
        .history(&[("2.0.0", "Added the `WITHSCORES` modifier.")])
        .replaced_by("6.2.0", "`ZRANGE` with the `BYSCORE` argument"),
    row("zrangestore", -5, "write denyoom",
        "dst:key src:key1 min max [sortby(BYSCORE|BYLEX)] [REV] [LIMIT offset_count(offset:int \
            count:int)]")
        .since("6.2.0").keys(KeySpec::two("OW update, RO access"))
        .cost(Cost::visiting(1000, Visits::Range(3, RangeForm::SAID))).slow().adds(Adds::Sources)
        .recorded_as_result()
        .says("Stores a range of members of a sorted set in a key.")
        .complexity("O(log(N)+M) where N is the number of members in the sorted set and M the \
            number of members stored."),
    row("zremrangebylex", 4, "write", "key min max")
        .since("2.8.9").key("RW delete").cost(Cost::visiting(700, Visits::Range(2, RangeForm::of(RangeBy::Lex)))).slow()
        .says("Removes the members of a sorted set within a lexicographical range. Deletes the key \
            if none remain.")
        .complexity("O(log(N)+M) where N is the number of members in the sorted set and M the \
            number of members removed."),
    row("zremrangebyrank", 4, "write", "key start:int stop:int")
        .since("2.0.0").key("RW delete").cost(Cost::visiting(700, Visits::Range(2, RangeForm::of(RangeBy::Rank)))).slow()
        .says("Removes the members of a sorted set within a range of ranks. Deletes the key if \
            none remain.")
        .complexity("O(log(N)+M) where N is the number of members in the sorted set and M the \
            number of members removed."),
    row("zremrangebyscore", 4, "write", "key min:float max:float")
        .since("1.2.0").key("RW delete").cost(Cost::visiting(700, Visits::Range(2, RangeForm::of(RangeBy::Score)))).slow()
        .says("Removes the members of a sorted set within a range of scores. Deletes the key if \
            none remain.")
        .complexity("O(log(N)+M) where N is the number of members in the sorted set and M the \
            number of members removed."),
    row("zrevrange", -4, "readonly", "key start:int stop:int [WITHSCORES]")
        .since("1.2.0").key("RO access").cost(Cost::visiting(100, Visits::Range(2, RangeForm::reverse(RangeBy::Rank))))
        .says("Returns the members of a sorted set within a range of ranks, the greatest score \
            first.")
        .complexity("O(log(N)+M) where N is the number of members in the sorted set and M the \
            number of members returned.")
        .replaced_by("6.2.0", "`ZRANGE` with the `REV` argument"),
    row("zrevrangebylex", -4, "readonly", "key max min [LIMIT offset_count(offset:int count:int)]")
        .since("2.8.9").key("RO access").cost(Cost::visiting(100, Visits::Range(2, RangeForm::reverse(RangeBy::Lex))))
        .says("Returns the members of a sorted set within a lexicographical range, the last one \
            first.")
        .complexity("O(log(N)+M) where N is the number of members in the sorted set and M the \
            number of members returned.")
        .replaced_by("6.2.0", "`ZRANGE` with the `REV` and `BYLEX` arguments"),
    row("zrevrangebyscore", -4, "readonly",
        "key max:float min:float [WITHSCORES] [LIMIT offset_count(offset:int count:int)]")
        .since("2.2.0").key("RO access").cost(Cost::visiting(100, Visits::Range(2, RangeForm::reverse(RangeBy::Score))))
        .says("Returns the members of a sorted set within a range of scores, the greatest first.")
        .complexity("O(log(N)+M) where N is the number of members in the sorted set and M the \
            number of members returned.")
        .history(&[("2.1.6", "`min` and `max` can be exclusive.")])
        .replaced_by("6.2.0", "`ZRANGE` with the `REV` and `BYSCORE` arguments"),
]);
