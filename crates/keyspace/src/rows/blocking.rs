//! Rows: commands that wait until a key holds something.

use super::command::{Command, chapter, row};
use super::keys::KeySpec;
use super::kinds::Group;

#[rustfmt::skip] // One call for each thing that is said would take three times the lines.
pub(super) const ROWS: &[Command] = &chapter(Group::List, "@list", [
    row("blmove", 6, "write denyoom blocking",
        "source:key destination:key1 wherefrom(LEFT|RIGHT) whereto(LEFT|RIGHT) timeout:float")
        .since("6.2.0").keys(KeySpec::two("RW access delete, RW insert"))
        .says("Pops an element from a list, pushes it to another list and returns it. Blocks until \
            an element is available otherwise. Deletes the list if the last element was moved."),
    row("blmpop", -5, "write blocking movablekeys",
        "timeout:float numkeys:int key... where(LEFT|RIGHT) [COUNT count:int]")
        .since("7.0.0").keys(KeySpec::counted(2, "RW access delete"))
        .says("Pops the first element from one of multiple lists. Blocks until an element is \
            available otherwise. Deletes the list if the last element was popped.")
        .complexity("O(N+M) where N is the number of provided keys and M is the number of elements \
            returned."),
    row("blpop", -3, "write blocking", "key... timeout:float")
        .since("2.0.0").keys(KeySpec::but_last("RW access delete"))
        .says("Removes and returns the first element in a list. Blocks until an element is \
            available otherwise. Deletes the list if the last element was popped.")
        .complexity("O(N) where N is the number of provided keys.")
        .history(&[("6.0.0", "`timeout` is interpreted as a double instead of an integer.")]),
    row("brpop", -3, "write blocking", "key... timeout:float")
        .since("2.0.0").keys(KeySpec::but_last("RW access delete"))
        .says("Removes and returns the last element in a list. Blocks until an element is \
            available otherwise. Deletes the list if the last element was popped.")
        .complexity("O(N) where N is the number of provided keys.")
        .history(&[("6.0.0", "`timeout` is interpreted as a double instead of an integer.")]),
    row("brpoplpush", 4, "write denyoom blocking",
        "source:key destination:key1 timeout:float")
        .since("2.2.0").keys(KeySpec::two("RW access delete, RW insert"))
        .says("Pops an element from a list, pushes it to another list and returns it. Block until \
            an element is available otherwise. Deletes the list if the last element was popped.")
        .history(&[("6.0.0", "`timeout` is interpreted as a double instead of an integer.")])
        .replaced_by("6.2.0", "`BLMOVE` with the `RIGHT` and `LEFT` arguments"),
    row("bzmpop", -5, "write blocking movablekeys",
        "timeout:float numkeys:int key... where(MIN|MAX) [COUNT count:int]")
        .since("7.0.0").keys(KeySpec::counted(2, "RW access delete")).in_group(Group::SortedSet)
        .in_categories("@sortedset")
        .says("Removes and returns a member by score from one or more sorted sets. Blocks until a \
            member is available otherwise. Deletes the sorted set if the last element was \
            popped.")
        .complexity("O(K) + O(M*log(N)) where K is the number of provided keys, N being the number \
            of elements in the sorted set, and M being the number of elements popped."),
    row("bzpopmax", -3, "write blocking fast", "key... timeout:float")
        .since("5.0.0").keys(KeySpec::but_last("RW access delete")).in_group(Group::SortedSet)
        .in_categories("@sortedset")
        .says("Removes and returns the member with the highest score from one or more sorted sets. \
            Blocks until a member is available otherwise. Deletes the sorted set if the last \
            element was popped.")
        .complexity("O(log(N)) with N being the number of elements in the sorted set.")
        .history(&[("6.0.0", "`timeout` is interpreted as a double instead of an integer.")]),
    row("bzpopmin", -3, "write blocking fast", "key... timeout:float")
        .since("5.0.0").keys(KeySpec::but_last("RW access delete")).in_group(Group::SortedSet)
        .in_categories("@sortedset")
        .says("Removes and returns the member with the lowest score from one or more sorted sets. \
            Blocks until a member is available otherwise. Deletes the sorted set if the last \
            element was popped.")
        .complexity("O(log(N)) with N being the number of elements in the sorted set.")
        .history(&[("6.0.0", "`timeout` is interpreted as a double instead of an integer.")]),
]);
