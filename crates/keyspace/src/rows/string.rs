//! Rows: strings.

use super::command::{Command, chapter, row};
use super::cost::{Cost, Visits};
use super::keys::KeySpec;
use super::kinds::{Adds, Group};

#[rustfmt::skip] // One call for each thing that is said would take three times the lines.
pub(super) const ROWS: &[Command] = &chapter(Group::String, "@string", [
    row("append", 3, "write denyoom fast", "key value")
        .since("2.0.0").key("RW insert").cost(Cost::all(30)).slow().adds(Adds::Tail)
        .says("Appends a string to the value of a key. Creates the key if it doesn't exist.")
        .complexity("O(1). The amortized time complexity is O(1) assuming the appended value is \
            small and the already present value is of any size, since the dynamic string library \
            will double the free space available on every reallocation."),
    row("cl.throttle", -5, "write denyoom fast",
        "key burst:int count:int period:int [quantity:int]")
        .since("0.2.0").key("RW access update")
        .says("Says whether something may happen now that may happen so often, and counts it."),
    row("decr", 2, "write denyoom fast", "key")
        .key("RW access update")
        .says("Decrements the integer value of a key by one. Uses 0 as initial value if the key \
            doesn't exist."),
    row("decrby", 3, "write denyoom fast", "key decrement:int")
        .key("RW access update")
        .says("Decrements a number from the integer value of a key. Uses 0 as initial value if the \
            key doesn't exist."),
    row("delex", -2, "write fast",
        "key [condition(IFEQ ifeq-value|IFNE ifne-value)]")
        .since("8.4.0").key("RW access delete")
        .says("Deletes a key if its string equals, or differs from, a value.")
        .complexity("O(1), and O(N) where N is the length of the string that is compared"),
    row("delifeq", 3, "write fast", "key value")
        .since("9.0.0").key("RW access delete")
        .says("Deletes a key if its string equals a value.")
        .complexity("O(1), and O(N) where N is the length of the string that is compared"),
    row("get", 2, "readonly fast", "key")
        .key("RO access")
        .says("Returns the string value of a key."),
    row("getdel", 2, "write fast", "key")
        .since("6.2.0").key("RW access delete").cost(Cost::all(30))
        .says("Returns the string value of a key after deleting the key."),
    row("getex", -2, "write fast",
        "key [expiration(EX seconds:int|PX milliseconds:int|EXAT unix-time-seconds:time|PXAT \
            unix-time-milliseconds:time|PERSIST)]")
        .since("6.2.0").key("RW access update").cost(Cost::all(30))
        .says("Returns the string value of a key after setting its expiration time."),
    row("getrange", 4, "readonly", "key start:int end:int")
        .since("2.4.0").key("RO access")
        .says("Returns a substring of the string stored at a key.")
        .complexity("O(N) where N is the length of the returned string. The complexity is \
            ultimately determined by the returned length, but because creating a substring from an \
            existing string is very cheap, it can be considered O(1) for small strings."),
    row("getset", 3, "write denyoom fast", "key value")
        .key("RW access update").cost(Cost::all(30)).stored_argument(2)
        .says("Returns the previous string value of a key after setting it to a new value.")
        .replaced_by("6.2.0", "`SET` with the `!GET` argument"),
    row("incr", 2, "write denyoom fast", "key")
        .key("RW access update")
        .says("Increments the integer value of a key by one. Uses 0 as initial value if the key \
            doesn't exist."),
    row("incrby", 3, "write denyoom fast", "key increment:int")
        .key("RW access update")
        .says("Increments the integer value of a key by a number. Uses 0 as initial value if the \
            key doesn't exist."),
    row("incrbyfloat", 3, "write denyoom fast", "key increment:float")
        .since("2.6.0").key("RW access update")
        .says("Increment the floating point value of a key by a number. Uses 0 as initial value if \
            the key doesn't exist."),
    row("lcs", -3, "readonly",
        "key1:key key2:key [LEN] [IDX] [MINMATCHLEN min-match-len:int] [WITHMATCHLEN]")
        .since("7.0.0").keys(KeySpec::two("RO access")).cost(Cost::visiting(40, Visits::Pairs))
        .slow()
        .says("Finds the longest common substring.")
        .complexity("O(N*M) where N and M are the lengths of s1 and s2, respectively"),
    row("mget", -2, "readonly fast", "key...")
        .keys(KeySpec::all(1, "RO access")).cost(Cost::arguments(200))
        .hints("request_policy:multi_shard")
        .says("Atomically returns the string values of one or more keys.")
        .complexity("O(N) where N is the number of keys to retrieve."),
    row("mset", -3, "write denyoom", "data(key value)...")
        .since("1.0.1").keys(KeySpec::all(2, "OW update")).cost(Cost::arguments(250))
        .stored_argument(2).hints("request_policy:multi_shard response_policy:all_succeeded")
        .says("Atomically creates or modifies the string values of one or more keys.")
        .complexity("O(N) where N is the number of keys to set."),
    row("msetex", -4, "write denyoom",
        "numkeys:int data(key value)... [condition(NX|XX)] [expiration(EX seconds:int|PX \
            milliseconds:int|EXAT unix-time-seconds:time|PXAT unix-time-milliseconds:time|KEEPTTL)]")
        .since("8.4.0").keys(KeySpec::counted_pairs(1, "OW update")).cost(Cost::arguments(250))
        .stored_argument(3).hints("request_policy:multi_shard response_policy:all_succeeded")
        .says("Atomically sets the string values of keys, with one condition and one expiration.")
        .complexity("O(N) where N is the number of keys to set."),
    row("msetnx", -3, "write denyoom", "data(key value)...")
        .since("1.0.1").keys(KeySpec::all(2, "OW insert")).cost(Cost::arguments(250))
        .stored_argument(2)
        .says("Atomically modifies the string values of one or more keys only when all keys don't \
            exist.")
        .complexity("O(N) where N is the number of keys to set."),
    row("psetex", 4, "write denyoom", "key milliseconds:int value")
        .since("2.6.0").key("OW update").stored_argument(3)
        .says("Sets both string value and expiration time in milliseconds of a key. The key is \
            created if it doesn't exist.")
        .replaced_by("2.6.12", "`SET` with the `PX` argument"),
    row("set", -3, "write denyoom",
        "key value [condition(NX|XX|IFEQ ifeq-value@8.4.0|IFNE ifne-value@8.4.0)@2.6.12] [GET@6.2.0] [expiration(EX seconds:int@2.6.12|PX \
            milliseconds:int@2.6.12|EXAT unix-time-seconds:time@6.2.0|PXAT \
            unix-time-milliseconds:time@6.2.0|KEEPTTL@6.0.0)]")
        .key("RW access update variable_flags").stored_argument(2)
        .says("Sets the string value of a key, ignoring its type. The key is created if it doesn't \
            exist.")
        .history(&[("2.6.12", "Added the `EX`, `PX`, `NX` and `XX` options."), ("6.0.0", "Added \
            the `KEEPTTL` option."), ("6.2.0", "Added the `GET`, `EXAT` and `PXAT` option."),
            ("7.0.0", "Allowed the `NX` and `GET` options to be used together."), ("8.4.0",
            "Added the `IFEQ` and `IFNE` options.")]),
    row("setex", 4, "write denyoom", "key seconds:int value")
        .since("2.0.0").key("OW update").stored_argument(3)
        .says("Sets the string value and expiration time of a key. Creates the key if it doesn't \
            exist.")
        .replaced_by("2.6.12", "`SET` with the `EX` argument"),
    row("setnx", 3, "write denyoom fast", "key value")
        .key("OW insert").stored_argument(2)
        .says("Set the string value of a key only when the key doesn't exist.")
        .replaced_by("2.6.12", "`SET` with the `NX` argument"),
    row("setrange", 4, "write denyoom", "key offset:int value")
        .since("2.2.0").key("RW update").cost(Cost::all(30)).slow().adds(Adds::Range)
        .says("Overwrites a part of a string value with another by an offset. Creates the key if \
            it doesn't exist.")
        .complexity("O(1), not counting the time taken to copy the new string in place. Usually, \
            this string is very small so the amortized complexity is O(1). Otherwise, complexity \
            is O(M) with M being the length of the value argument."),
    row("strlen", 2, "readonly fast", "key")
        .since("2.2.0").key("RO")
        .says("Returns the length of a string value."),
    row("substr", 4, "readonly", "key start:int end:int")
        .key("RO access")
        .says("Returns a substring from a string value.")
        .complexity("O(N) where N is the length of the returned string. The complexity is \
            ultimately determined by the returned length, but because creating a substring from an \
            existing string is very cheap, it can be considered O(1) for small strings.")
        .replaced_by("2.0.0", "`GETRANGE`"),
]);
