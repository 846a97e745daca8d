//! Pictures of the parts by themselves: timers, tasks, caches.

use super::{Kind, Picture, bars, picture, reads};

pub(super) const PICTURES: &[Picture] = &[
    picture(
        "timers",
        "timers-insert",
        "Inserting a timer",
        "",
        bars("insert_ns", "time for each timer"),
    ),
    picture(
        "timers",
        "timers-reschedule",
        "Moving a timer",
        "",
        bars("reschedule_ns", "time for each timer"),
    ),
    picture(
        "timers",
        "timers-cancel",
        "Cancelling a timer",
        "",
        bars("cancel_ns", "time for each timer"),
    ),
    picture(
        "timers",
        "timers-advance",
        "Firing a timer",
        "All ticks from the first deadline to the last, divided by the number of timers.",
        bars("advance_ns", "time for each timer"),
    ),
    picture(
        "timers",
        "timers-tick",
        "The longest tick",
        "",
        Kind::Bars {
            key: "tick_max_ms",
            label: "longest tick",
            log: true,
        },
    ),
    picture(
        "timers",
        "timers-bytes",
        "Memory of a timer",
        "",
        bars("bytes_per_timer", "bytes for each timer"),
    ),
    picture(
        "tasks",
        "tasks-set",
        "Setting a task",
        "",
        bars("insert_ns", "time for each task"),
    ),
    picture(
        "tasks",
        "tasks-move",
        "Moving a task",
        "",
        bars("reschedule_ns", "time for each task"),
    ),
    picture(
        "tasks",
        "tasks-remove",
        "Removing a task",
        "",
        bars("cancel_ns", "time for each task"),
    ),
    picture(
        "tasks",
        "tasks-fire",
        "Firing a task",
        "",
        bars("advance_ns", "time for each task"),
    ),
    picture(
        "tasks",
        "tasks-bytes",
        "Memory of a task",
        "Beyond the bytes of its key and value.",
        bars("bytes_beyond", "bytes for each task"),
    ),
    picture(
        "caches mass-expiry",
        "caches-mass-expiry-latency",
        "What readers feel while entries expire",
        "Latency of reads by percentile.",
        reads(),
    ),
    picture(
        "caches mass-expiry",
        "caches-mass-expiry-dropped",
        "When the dead are gone",
        "Time from the last deadline until 99 % of the dead values were dropped.",
        Kind::Bars {
            key: "dropped_99_ms",
            label: "after the last deadline",
            log: true,
        },
    ),
    picture(
        "caches mass-expiry",
        "caches-mass-expiry-left",
        "Dead values left at the end",
        "",
        bars("dead_values_left", "dead values left"),
    ),
    picture(
        "caches memory",
        "caches-memory",
        "Memory of an entry beyond its key and value",
        "Bytes asked of the allocator.",
        bars("overhead_bytes_per_entry", "bytes for each entry"),
    ),
    picture(
        "caches memory",
        "caches-memory-resident",
        "Resident memory of an entry beyond its key and value",
        "Bytes by which the process grew.",
        bars("overhead_rss_bytes_per_entry", "bytes for each entry"),
    ),
    picture(
        "caches throughput",
        "caches-throughput-get",
        "Reads a second",
        "All threads together, keys by Zipf's law.",
        throughput("get_"),
    ),
    picture(
        "caches throughput",
        "caches-throughput-mixed",
        "Reads and writes a second",
        "All threads together, keys by Zipf's law.",
        throughput("mixed_"),
    ),
    picture(
        "caches throughput",
        "caches-throughput-insert",
        "Insertions a second",
        "All threads together.",
        throughput("insert_"),
    ),
    picture(
        "caches throughput",
        "caches-throughput-hot",
        "Reads of one key a second",
        "All threads together, all at the same key.",
        throughput("hot_"),
    ),
    picture(
        "caches stampede",
        "caches-stampede-loads",
        "How often one value is loaded",
        "",
        bars("loads", "loads of the same value"),
    ),
    picture(
        "caches stampede",
        "caches-stampede-slowest",
        "How long the slowest caller waits",
        "",
        bars("slowest_ms", "time of the slowest caller"),
    ),
];

const fn throughput(prefix: &'static str) -> Kind {
    Kind::Keys {
        prefix,
        suffix: "_m_per_s",
        axes: ["threads", "million operations a second"],
        log: [true, false],
    }
}
