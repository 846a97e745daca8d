//! Rows: streams.

use super::command::{Command, chapter, row};
use super::cost::{Cost, PendingPart, Visits};
use super::keys::KeySpec;
use super::kinds::Group;

#[rustfmt::skip] // One call for each thing that is said would take three times the lines.
pub(super) const ROWS: &[Command] = &chapter(Group::Stream, "@stream", [
    row("xack", -4, "write fast", "key group id...")
        .since("5.0.0").key("RW update").cost(Cost::arguments(100))
        .says("Returns the number of messages that were successfully acknowledged by the consumer \
            group member of a stream.")
        .complexity("O(1) for each message ID processed."),
    row("xackdel", -6, "write fast",
        "key group [condition(KEEPREF|DELREF|ACKED)] IDS ids(numids:int id...)")
        .since("8.2.0").key("RW update delete").cost(Cost::arguments(1000))
        .says("Acknowledges and deletes one or multiple messages for a stream consumer group.")
        .complexity("O(1) for each message ID processed."),
    row("xadd", -5, "write denyoom fast",
        "key [NOMKSTREAM@6.2.0] [condition(KEEPREF|DELREF|ACKED)] \
            [trim(strategy(MAXLEN|MINID@6.2.0) [operator(equal==|approximately=~)] threshold \
            [LIMIT count:int@6.2.0])] id-selector(auto-id=*|id) data(field value)...")
        .since("5.0.0").key("RW update").cost(Cost::arguments(50)).hints("nondeterministic_output")
        .says("Appends a new message to a stream. Creates the key if it doesn't exist.")
        .complexity("O(1) when adding a new entry, O(N) when trimming where N being the number of \
            entries evicted.")
        .history(&[
            ("6.2.0", "Added the `NOMKSTREAM` option, `MINID` trimming strategy and the `LIMIT` \
                option."),
            ("7.0.0", "Added support for the `<ms>-*` explicit ID form."),
            ("8.2.0", "Added the `KEEPREF`, `DELREF` and `ACKED` options."),
        ]),
    row("xautoclaim", -6, "write fast",
        "key group consumer min-idle-time start [COUNT count:int] [JUSTID]")
        .since("6.2.0").key("RW delete").cost(Cost::visiting(400, Visits::CountWord(100)))
        .hints("nondeterministic_output")
        .says("Changes, or acquires, ownership of messages in a consumer group, as if the messages \
            were delivered to as consumer group member.")
        .complexity("O(1) if COUNT is small.")
        .history(&[("7.0.0", "Added an element to the reply array, containing deleted entries the \
            command cleared from the PEL")]),
    row("xclaim", -6, "write fast",
        "key group consumer min-idle-time id... [IDLE ms:int] [TIME unix-time-milliseconds:time] \
            [RETRYCOUNT count:int] [FORCE] [JUSTID] [LASTID lastid]")
        .since("5.0.0").key("RW update").cost(Cost::arguments(1000))
        .hints("nondeterministic_output")
        .says("Changes, or acquires, ownership of a message in a consumer group, as if the message \
            was delivered a consumer group member.")
        .complexity("O(log N) with N being the number of messages in the PEL of the consumer \
            group."),
    row("xdel", -3, "write fast", "key id...")
        .since("5.0.0").key("RW delete").cost(Cost::arguments(1000))
        .says("Returns the number of messages after removing them from a stream.")
        .complexity("O(1) for each single item to delete in the stream, regardless of the stream \
            size."),
    row("xdelex", -5, "write fast",
        "key [condition(KEEPREF|DELREF|ACKED)] IDS ids(numids:int id...)")
        .since("8.2.0").key("RW delete").cost(Cost::arguments(1000))
        .says("Deletes one or multiple entries from the stream.")
        .complexity("O(1) for each single item to delete in the stream, regardless of the stream \
            size."),
    row("xgroup", -2, "", "")
        .since("5.0.0").in_categories("-")
        .says("A container for consumer groups commands.")
        .complexity("Depends on subcommand."),
    row("xgroup|create", -5, "write denyoom",
        "key group id-selector(id|new-id=$) [MKSTREAM] [ENTRIESREAD entriesread:int]")
        .since("5.0.0").keys(KeySpec::one(2, "RW insert"))
        .says("Creates a consumer group.")
        .history(&[("7.0.0", "Added the `entries_read` named argument.")]),
    row("xgroup|createconsumer", 5, "write denyoom", "key group consumer")
        .since("6.2.0").keys(KeySpec::one(2, "RW insert"))
        .says("Creates a consumer in a consumer group."),
    row("xgroup|delconsumer", 5, "write", "key group consumer")
        .since("5.0.0").keys(KeySpec::one(2, "RW delete"))
        .cost(Cost::visiting(60, Visits::Pending(PendingPart::OfConsumer)))
        .says("Deletes a consumer from a consumer group."),
    row("xgroup|destroy", 4, "write", "key group")
        .since("5.0.0").keys(KeySpec::one(2, "RW delete"))
        .cost(Cost::visiting(5, Visits::Pending(PendingPart::OfGroup)))
        .says("Destroys a consumer group.")
        .complexity("O(N) where N is the number of entries in the group's pending entries list \
            (PEL)."),
    row("xgroup|help", 2, "loading stale", "")
        .since("5.0.0")
        .says("Returns helpful text about the different subcommands."),
    row("xgroup|setid", -5, "write",
        "key group id-selector(id|new-id=$) [ENTRIESREAD entriesread:int]")
        .since("5.0.0").keys(KeySpec::one(2, "RW update"))
        .says("Sets the last-delivered ID of a consumer group.")
        .history(&[("7.0.0", "Added the optional `entries_read` argument.")]),
    row("xinfo", -2, "", "")
        .since("5.0.0").in_categories("-")
        .says("A container for stream introspection commands.")
        .complexity("Depends on subcommand."),
    row("xinfo|consumers", 4, "readonly", "key group")
        .since("5.0.0").keys(KeySpec::one(2, "RO access")).hints("nondeterministic_output")
        .says("Returns a list of the consumers in a consumer group.")
        .history(&[("7.2.0", "Added the `inactive` field, and changed the meaning of `idle`.")]),
    row("xinfo|groups", 3, "readonly", "key")
        .since("5.0.0").keys(KeySpec::one(2, "RO access"))
        .says("Returns a list of the consumer groups of a stream.")
        .history(&[("7.0.0", "Added the `entries-read` and `lag` fields")]),
    row("xinfo|help", 2, "loading stale", "")
        .since("5.0.0")
        .says("Returns helpful text about the different subcommands."),
    row("xinfo|stream", -3, "readonly", "key [full-block(FULL [COUNT count:int])]")
        .since("5.0.0").keys(KeySpec::one(2, "RO access"))
        .says("Returns information about a stream.")
        .history(&[
            ("6.0.0", "Added the `FULL` modifier."),
            ("7.0.0", "Added the `max-deleted-entry-id`, `entries-added`, \
                `recorded-first-entry-id`, `entries-read` and `lag` fields"),
            ("7.2.0", "Added the `active-time` field, and changed the meaning of `seen-time`."),
        ]),
    row("xlen", 2, "readonly fast", "key")
        .since("5.0.0").key("RO")
        .says("Return the number of messages in a stream."),
    row("xpending", -3, "readonly",
        "key group [filters([IDLE min-idle-time:int@6.2.0] start end count:int [consumer])]")
        .since("5.0.0").key("RO access").hints("nondeterministic_output").slow()
        .cost(Cost::visiting(60, Visits::Pending(PendingPart::Queried)))
        .says("Returns the information and entries from a stream consumer group's pending entries \
            list.")
        .complexity("O(N) with N being the number of elements returned, so asking for a small \
            fixed number of entries per call is O(1). O(M), where M is the total number of entries \
            scanned when used with the IDLE filter. When the command returns just the summary and \
            the list of consumers is small, it runs in O(1) time; otherwise, an additional O(N) \
            time for iterating every consumer.")
        .history(&[("6.2.0", "Added the `IDLE` option and exclusive range intervals.")]),
    row("xrange", -4, "readonly", "key start end [COUNT count:int]")
        .since("5.0.0").key("RO access").slow()
        .cost(Cost::visiting(150, Visits::Ids { reverse: false }))
        .says("Returns the messages from a stream within a range of IDs.")
        .complexity("O(N) with N being the number of elements being returned. If N is constant \
            (e.g. always asking for the first 10 elements with COUNT), you can consider it O(1).")
        .history(&[("6.2.0", "Added exclusive ranges.")]),
    row("xread", -4, "readonly blocking movablekeys",
        "[COUNT count:int] [BLOCK milliseconds:int] STREAMS streams(key... id...)")
        .since("5.0.0").keys(KeySpec::behind_streams(1, "RO access")).slow()
        .in_categories("@stream @blocking")
        .cost(Cost::visiting(150, Visits::Entries { in_group: false }))
        .says("Returns messages from multiple streams with IDs greater than the ones requested. \
            Blocks until a message is available otherwise.")
        .complexity("O(N) where N is the number of elements returned."),
    row("xreadgroup", -7, "write blocking movablekeys",
        "GROUP group-block(group consumer) [COUNT count:int] [BLOCK milliseconds:int] \
            [noack=NOACK] STREAMS streams(key... id...)")
        .since("5.0.0").keys(KeySpec::behind_streams(4, "RO access")).slow()
        .in_categories("@stream @blocking")
        .cost(Cost::visiting(300, Visits::Entries { in_group: true }))
        .says("Returns new or historical messages from a stream for a consumer in a group. Blocks \
            until a message is available otherwise.")
        .complexity("For each stream mentioned: O(M) with M being the number of elements returned. \
            If M is constant (e.g. always asking for the first 10 elements with COUNT), you can \
            consider it O(1). On the other side when XREADGROUP blocks, XADD will pay the O(N) \
            time in order to serve the N clients blocked on the stream getting new data."),
    row("xrevrange", -4, "readonly", "key end start [COUNT count:int]")
        .since("5.0.0").key("RO access").slow()
        .cost(Cost::visiting(200, Visits::Ids { reverse: true }))
        .says("Returns the messages from a stream within a range of IDs in reverse order.")
        .complexity("O(N) with N being the number of elements returned. If N is constant (e.g. \
            always asking for the first 10 elements with COUNT), you can consider it O(1).")
        .history(&[("6.2.0", "Added exclusive ranges.")]),
    row("xsetid", -3, "write denyoom fast",
        "key last-id [ENTRIESADDED entries-added:int@7.0.0] [MAXDELETEDID max-deleted-id@7.0.0]")
        .since("5.0.0").key("RW update")
        .says("An internal command for replicating stream values.")
        .history(&[("7.0.0", "Added the `entries_added` and `max_deleted_entry_id` arguments.")]),
    row("xtrim", -4, "write",
        "key trim(strategy(MAXLEN|MINID@6.2.0) [operator(equal==|approximately=~)] threshold \
            [LIMIT count:int@6.2.0] [condition(KEEPREF|DELREF|ACKED)])")
        .since("5.0.0").key("RW delete").hints("nondeterministic_output").slow()
        .says("Deletes messages from the beginning of a stream.")
        .complexity("O(N), with N being the number of evicted entries. Constant times are very \
            small however, since entries are organized in macro nodes containing multiple entries \
            that can be released with a single deallocation.")
        .history(&[
            ("6.2.0", "Added the `MINID` trimming strategy and the `LIMIT` option."),
            ("8.2.0", "Added the `KEEPREF`, `DELREF` and `ACKED` options."),
        ]),
]);
