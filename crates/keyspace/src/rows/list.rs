//! Rows: lists.

use super::command::{Command, chapter, row};
use super::cost::{Cost, Visits};
use super::keys::KeySpec;
use super::kinds::Group;

#[rustfmt::skip] // One call for each thing that is said would take three times the lines.
pub(super) const ROWS: &[Command] = &chapter(Group::List, "@list", [
    row("lindex", 3, "readonly", "key index:int")
        .key("RO access").slow()
        .says("Returns an element from a list by its index.")
        .complexity("O(N) where N is the number of elements to traverse to get to the element at \
            index. This makes asking for the first or the last element of the list O(1)."),
    row("linsert", 5, "write denyoom", "key where(BEFORE|AFTER) pivot element")
        .since("2.2.0").key("RW insert").cost(Cost::all(40)).slow()
        .says("Inserts an element before or after another element in a list.")
        .complexity("O(N) where N is the number of elements to traverse before seeing the value \
            pivot. This means that inserting somewhere on the left end on the list (head) can be \
            considered O(1) and inserting somewhere on the right end (tail) is O(N)."),
    row("llen", 2, "readonly fast", "key")
        .key("RO")
        .says("Returns the length of a list."),
    row("lmove", 5, "write denyoom",
        "source:key destination:key1 wherefrom(LEFT|RIGHT) whereto(LEFT|RIGHT)")
        .since("6.2.0").keys(KeySpec::two("RW access delete, RW insert"))
        .says("Returns an element after popping it from one list and pushing it to another. \
            Deletes the list if the last element was moved."),
    row("lmpop", -4, "write movablekeys", "numkeys:int key... where(LEFT|RIGHT) [COUNT count:int]")
        .since("7.0.0").keys(KeySpec::counted(1, "RW access delete"))
        .cost(Cost::visiting(60, Visits::CountWord(1)))
        .says("Returns multiple elements from a list after removing them. Deletes the list if the \
            last element was popped.")
        .complexity("O(N+M) where N is the number of provided keys and M is the number of elements \
            returned."),
    row("lpop", -2, "write fast", "key [count:int@6.2.0]")
        .key("RW access delete").cost(Cost::visiting(60, Visits::Count(2)))
        .says("Returns the first elements in a list after removing it. Deletes the list if the \
            last element was popped.")
        .complexity("O(N) where N is the number of elements returned")
        .history(&[("6.2.0", "Added the `count` argument.")]),
    row("lpos", -3, "readonly",
        "key element [RANK rank:int] [COUNT num-matches:int] [MAXLEN len:int]")
        .since("6.0.6").key("RO access").cost(Cost::all(40)).slow()
        .says("Returns the index of matching elements in a list.")
        .complexity("O(N) where N is the number of elements in the list, for the average case. \
            When searching for elements near the head or the tail of the list, or when the MAXLEN \
            option is provided, the command may run in constant time."),
    row("lpush", -3, "write denyoom fast", "key element...")
        .key("RW insert").cost(Cost::arguments(100))
        .says("Prepends one or more elements to a list. Creates the key if it doesn't exist.")
        .complexity("O(1) for each element added, so O(N) to add N elements when the command is \
            called with multiple arguments.")
        .history(&[("2.4.0", "Accepts multiple `element` arguments.")]),
    row("lpushx", -3, "write denyoom fast", "key element...")
        .since("2.2.0").key("RW insert").cost(Cost::arguments(100))
        .says("Prepends one or more elements to a list only when the list exists.")
        .complexity("O(1) for each element added, so O(N) to add N elements when the command is \
            called with multiple arguments.")
        .history(&[("4.0.0", "Accepts multiple `element` arguments.")]),
    row("lrange", 4, "readonly", "key start:int stop:int")
        .key("RO access").cost(Cost::visiting(60, Visits::Places(2))).slow()
        .says("Returns a range of elements from a list.")
        .complexity("O(S+N) where S is the distance of start offset from HEAD for small lists, \
            from nearest end (HEAD or TAIL) for large lists; and N is the number of elements in \
            the specified range."),
    row("lrem", 4, "write", "key count:int element")
        .key("RW delete").cost(Cost::all(40)).slow()
        .says("Removes elements from a list. Deletes the list if the last element was removed.")
        .complexity("O(N+M) where N is the length of the list and M is the number of elements \
            removed."),
    row("lset", 4, "write denyoom", "key index:int element")
        .key("RW update").slow()
        .says("Sets the value of an element in a list by its index.")
        .complexity("O(N) where N is the length of the list. Setting either the first or the last \
            element of the list is O(1)."),
    row("ltrim", 4, "write", "key start:int stop:int")
        .key("RW delete").cost(Cost::all(20)).slow()
        .says("Removes elements from both ends a list. Deletes the list if all elements were \
            trimmed.")
        .complexity("O(N) where N is the number of elements to be removed by the operation."),
    row("rpop", -2, "write fast", "key [count:int@6.2.0]")
        .key("RW access delete").cost(Cost::visiting(60, Visits::Count(2)))
        .says("Returns and removes the last elements of a list. Deletes the list if the last \
            element was popped.")
        .complexity("O(N) where N is the number of elements returned")
        .history(&[("6.2.0", "Added the `count` argument.")]),
    row("rpoplpush", 3, "write denyoom", "source:key destination:key1")
        .since("1.2.0").keys(KeySpec::two("RW access delete, RW insert"))
        .says("Returns the last element of a list after removing and pushing it to another list. \
            Deletes the list if the last element was popped.")
        .replaced_by("6.2.0", "`LMOVE` with the `RIGHT` and `LEFT` arguments"),
    row("rpush", -3, "write denyoom fast", "key element...")
        .key("RW insert").cost(Cost::arguments(100))
        .says("Appends one or more elements to a list. Creates the key if it doesn't exist.")
        .complexity("O(1) for each element added, so O(N) to add N elements when the command is \
            called with multiple arguments.")
        .history(&[("2.4.0", "Accepts multiple `element` arguments.")]),
    row("rpushx", -3, "write denyoom fast", "key element...")
        .since("2.2.0").key("RW insert").cost(Cost::arguments(100))
        .says("Appends an element to a list only when the list exists.")
        .complexity("O(1) for each element added, so O(N) to add N elements when the command is \
            called with multiple arguments.")
        .history(&[("4.0.0", "Accepts multiple `element` arguments.")]),
]);
