//! Rows: several sorted sets as one.

use super::command::{Command, chapter, row};
use super::cost::Cost;
use super::keys::KeySpec;
use super::kinds::{Adds, Group};

#[rustfmt::skip] // One call for each thing that is said would take three times the lines.
pub(super) const ROWS: &[Command] = &chapter(Group::SortedSet, "@sortedset", [
    row("zdiff", -3, "readonly movablekeys", "numkeys:int key... [WITHSCORES]")
        .since("6.2.0").keys(KeySpec::counted(1, "RO access")).cost(Cost::all(2000)).slow()
        .says("Returns the difference between the first sorted set and the others.")
        .complexity("O(L + (N-K)log(N)) where L is the sum of the sizes of the sources, N the size \
            of the first one and K the number of members in the result."),
    row("zdiffstore", -4, "write denyoom movablekeys", "destination:key numkeys:int key:key1...")
        .since("6.2.0").keys(KeySpec::one_and_counted("OW update, RO access")).cost(Cost::all(3000))
        .slow().adds(Adds::Sources)
        .recorded_as_result()
        .says("Stores the difference between the first sorted set and the others in a key.")
        .complexity("O(L + (N-K)log(N)) where L is the sum of the sizes of the sources, N the size \
            of the first one and K the number of members in the result."),
    row("zinter", -3, "readonly movablekeys",
        "numkeys:int key... [WEIGHTS weight:int...] [AGGREGATE aggregate(SUM|MIN|MAX)] \
            [WITHSCORES]")
        .since("6.2.0").keys(KeySpec::counted(1, "RO access")).cost(Cost::all(2000)).slow()
        .says("Returns the intersection of sorted sets.")
        .complexity("O(N*K)+O(M*log(M)) where N is the size of the smallest source, K the number \
            of sources and M the number of members in the result."),
    row("zintercard", -3, "readonly movablekeys", "numkeys:int key... [LIMIT limit:int]")
        .since("7.0.0").keys(KeySpec::counted(1, "RO access")).cost(Cost::all(300)).slow()
        .says("Returns the number of members in the intersection of sorted sets.")
        .complexity("O(N*K) where N is the size of the smallest source and K the number of \
            sources."),
    row("zinterstore", -4, "write denyoom movablekeys",
        "destination:key numkeys:int key:key1... [WEIGHTS weight:int...] [AGGREGATE \
            aggregate(SUM|MIN|MAX)]")
        .since("2.0.0").keys(KeySpec::one_and_counted("OW update, RO access")).cost(Cost::all(3000))
        .slow().adds(Adds::Sources)
        .recorded_as_result()
        .says("Stores the intersection of sorted sets in a key.")
        .complexity("O(N*K)+O(M*log(M)) where N is the size of the smallest source, K the number \
            of sources and M the number of members in the result."),
    row("zunion", -3, "readonly movablekeys",
        "numkeys:int key... [WEIGHTS weight:int...] [AGGREGATE aggregate(SUM|MIN|MAX)] \
            [WITHSCORES]")
        .since("6.2.0").keys(KeySpec::counted(1, "RO access")).cost(Cost::all(2000)).slow()
        .says("Returns the union of sorted sets.")
        .complexity("O(N)+O(M*log(M)) where N is the sum of the sizes of the sources and M the \
            number of members in the result."),
    row("zunionstore", -4, "write denyoom movablekeys",
        "destination:key numkeys:int key:key1... [WEIGHTS weight:int...] [AGGREGATE \
            aggregate(SUM|MIN|MAX)]")
        .since("2.0.0").keys(KeySpec::one_and_counted("OW update, RO access")).cost(Cost::all(3000))
        .slow().adds(Adds::Sources)
        .recorded_as_result()
        .says("Stores the union of sorted sets in a key.")
        .complexity("O(N)+O(M*log(M)) where N is the sum of the sizes of the sources and M the \
            number of members in the result."),
]);
