//! The pictures of each experiment: which figures, over what, on which axes.

/// One picture, or one for each cell, of an experiment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Picture {
    pub(super) workload: &'static str,
    /// Name of its file; no other picture has it.
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) caption: &'static str,
    pub(super) kind: Kind,
}

/// How a picture is made of figures. Labels come without units, which the ticks carry.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// A figure over a parameter of the runs, all cells in one picture.
    Sweep {
        param: &'static str,
        x_label: &'static str,
        key: &'static str,
        y_label: &'static str,
        log: [bool; 2],
    },
    /// Figures of one run whose names differ in a number between `prefix` and `suffix`; one for each cell.
    Keys {
        prefix: &'static str,
        suffix: &'static str,
        x_label: &'static str,
        y_label: &'static str,
        log: [bool; 2],
    },
    /// A curve of each subject; one for each cell.
    Curve { key: &'static str, log: [bool; 2] },
    /// Latency over percentiles, with a control under a second set of names; one for each cell.
    Percentiles {
        points: &'static [Percentile],
        control: &'static [Percentile],
        y_label: &'static str,
    },
    /// A bar for each subject; one for each cell.
    Bars {
        key: &'static str,
        label: &'static str,
        log: bool,
    },
    /// A row for each cell, a mark for each subject.
    Cells {
        key: &'static str,
        label: &'static str,
        log: bool,
    },
    /// A row for each figure whose name begins so, a mark for each subject; one for each cell.
    Figures {
        prefix: &'static str,
        label: &'static str,
        log: bool,
    },
}

/// What is written under a percentile and the figure that it is.
pub(super) type Percentile = (&'static str, &'static str);

const READ: &[Percentile] = &[
    ("p50", "read_p50_us"),
    ("p99", "read_p99_us"),
    ("p99.9", "read_p999_us"),
    ("p99.99", "read_p9999_us"),
    ("max", "read_max_us"),
];

const CONTROL_READ: &[Percentile] = &[
    ("p50", "control_read_p50_us"),
    ("p99", "control_read_p99_us"),
    ("p99.9", "control_read_p999_us"),
    ("p99.99", "control_read_p9999_us"),
    ("max", "control_read_max_us"),
];

const GET_RECLAIM: &[Percentile] = &[
    ("p50", "get_p50_us_until_reclaimed"),
    ("p99", "get_p99_us_until_reclaimed"),
    ("p99.9", "get_p999_us_until_reclaimed"),
    ("max", "get_max_ms_until_reclaimed"),
];

const GET_BEFORE: &[Percentile] = &[
    ("p50", "get_p50_us_before"),
    ("p99", "get_p99_us_before"),
    ("p99.9", "get_p999_us_before"),
    ("max", "get_max_ms_before"),
];

const GET: &[Percentile] = &[
    ("p50", "get_p50_us"),
    ("p99", "get_p99_us"),
    ("p99.9", "get_p999_ms"),
    ("max", "get_max_ms"),
];

const LAG: &[Percentile] = &[
    ("p50", "lag_p50_ms"),
    ("p99", "lag_p99_ms"),
    ("p99.9", "lag_p999_ms"),
    ("max", "lag_max_ms"),
];

const fn by_entries(key: &'static str, y_label: &'static str) -> Kind {
    Kind::Sweep {
        param: "entries",
        x_label: "entries",
        key,
        y_label,
        log: [true, true],
    }
}

const fn bars(key: &'static str, label: &'static str) -> Kind {
    Kind::Bars {
        key,
        label,
        log: false,
    }
}

const fn throughput(prefix: &'static str) -> Kind {
    Kind::Keys {
        prefix,
        suffix: "_m_per_s",
        x_label: "threads",
        y_label: "million operations a second",
        log: [true, false],
    }
}

const fn picture(
    workload: &'static str,
    name: &'static str,
    title: &'static str,
    caption: &'static str,
    kind: Kind,
) -> Picture {
    Picture {
        workload,
        name,
        title,
        caption,
        kind,
    }
}

pub(super) const PICTURES: &[Picture] = &[
    picture(
        "seeds scan",
        "scan-by-n",
        "One look at every entry",
        "The time of a scan that finds nothing, by the number of entries.",
        by_entries("scan_ms", "time of one scan"),
    ),
    picture(
        "seeds scan",
        "scan-expiring-by-n",
        "One look at every entry while entries expire",
        "The time of a scan that removes what it finds, by the number of entries.",
        by_entries("scan_expiring_ms", "time of one scan"),
    ),
    picture(
        "seeds scan",
        "scan-cpu",
        "What scanning once a second takes of a core",
        "Processor time of the cache's own thread, all sizes.",
        Kind::Cells {
            key: "cpu_percent",
            label: "processor time, % of a core",
            log: false,
        },
    ),
    picture(
        "seeds ticks",
        "cost-by-n",
        "What a second of expiry costs when a thousand entries are due",
        "Processor time of all calls in one second in which 1,000 entries fall due, whatever the number that \
         do not. A strategy that looks at every entry pays for all of them; one that knows where the due ones \
         are pays for those.",
        by_entries("second_few_us", "processor time of one second"),
    ),
    picture(
        "seeds ticks",
        "idle-cost-by-n",
        "What a second of expiry costs when nothing is due",
        "Processor time of all calls in one second in which nothing falls due. Strategies that sleep until the \
         next deadline make no calls and have no point here.",
        by_entries("second_idle_us", "processor time of one second"),
    ),
    picture(
        "seeds ticks",
        "full-cost-by-n",
        "What a second of expiry costs when a thirtieth of all entries is due",
        "Here the number of due entries grows with the number of entries, so every line rises.",
        by_entries("second_full_us", "processor time of one second"),
    ),
    picture(
        "seeds ticks",
        "longest-call-by-n",
        "The longest single call",
        "How long whoever shares a lock with the strategy would wait at worst.",
        by_entries("longest_call_us", "longest call"),
    ),
    picture(
        "seeds ticks",
        "insert-by-n",
        "Adding a timer",
        "Mean time of one insertion.",
        by_entries("insert_ns", "time of one insertion"),
    ),
    picture(
        "seeds ticks",
        "timer-bytes-by-n",
        "Memory of a timer",
        "Bytes of the strategy's own structures for each entry, without the entry itself.",
        Kind::Sweep {
            param: "entries",
            x_label: "entries",
            key: "bytes_per_timer",
            y_label: "bytes for each timer",
            log: [true, false],
        },
    ),
    picture(
        "seeds ticks",
        "dead-mean-by-n",
        "Dead entries held",
        "How many entries past their deadline are held, on average, while a thirtieth of all falls due each \
         second.",
        by_entries("dead_mean", "dead entries held, mean"),
    ),
    picture(
        "seeds ticks",
        "lateness",
        "How late entries are found",
        "Which share of the entries was found at most so long after its deadline.",
        Kind::Curve {
            key: "lateness",
            log: [true, false],
        },
    ),
    picture(
        "seeds ticks",
        "dead",
        "Dead entries held over time",
        "Entries past their deadline that are still in memory.",
        Kind::Curve {
            key: "dead",
            log: [false, true],
        },
    ),
    picture(
        "seeds readers",
        "readers-latency",
        "What readers feel while entries expire",
        "Latency of reads by percentile; a line that rises to the right is a stall that some reads meet.",
        Kind::Percentiles {
            points: READ,
            control: CONTROL_READ,
            y_label: "latency of a read",
        },
    ),
    picture(
        "seeds readers",
        "readers-held",
        "Dead entries held over time",
        "Entries past their deadline that are still in memory.",
        Kind::Curve {
            key: "held",
            log: [false, false],
        },
    ),
    picture(
        "seeds readers",
        "readers-lateness",
        "How late entries are removed",
        "Which share of the entries was removed at most so long after its deadline.",
        Kind::Curve {
            key: "lateness",
            log: [true, false],
        },
    ),
    picture(
        "seeds readers",
        "readers-cpu",
        "Processor time of expiry",
        "What one expired entry took beyond the control.",
        bars(
            "expiry_cpu_ns_per_entry",
            "processor time for each expired entry",
        ),
    ),
    picture(
        "seeds readers",
        "readers-bytes",
        "Memory of an entry",
        "Heap bytes of the full cache for each entry.",
        bars("bytes_per_entry", "bytes for each entry"),
    ),
    picture(
        "simulate hits",
        "hits",
        "Hit ratios",
        "Share of the requests that were hits.",
        Kind::Cells {
            key: "hit_percent",
            label: "hits, % of the requests",
            log: false,
        },
    ),
    picture(
        "simulate memory",
        "memory-held",
        "Memory held over time",
        "What is held, alive or dead, at each moment.",
        Kind::Curve {
            key: "held",
            log: [false, false],
        },
    ),
    picture(
        "simulate memory",
        "memory-mean",
        "Memory held on average",
        "Mean over the run.",
        Kind::Cells {
            key: "held_mean_mb",
            label: "memory held",
            log: true,
        },
    ),
    picture(
        "simulate memory",
        "memory-dead",
        "Memory held for the dead",
        "The share of the held bytes whose time was over.",
        Kind::Cells {
            key: "dead_percent",
            label: "dead, % of the held bytes",
            log: false,
        },
    ),
    picture(
        "simulate memory",
        "memory-hits",
        "Hit ratios when memory is short",
        "Share of the requests that were hits, with a limit below what is alive.",
        Kind::Cells {
            key: "hit_percent",
            label: "hits, % of the requests",
            log: false,
        },
    ),
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
        Kind::Percentiles {
            points: READ,
            control: CONTROL_READ,
            y_label: "latency of a read",
        },
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
    picture(
        "mass-expiry",
        "mass-expiry-latency",
        "What clients feel until the dead are gone",
        "Latency of GET by percentile, from the first deadline until the keys are gone; the control is the same \
         load before it.",
        Kind::Percentiles {
            points: GET_RECLAIM,
            control: GET_BEFORE,
            y_label: "latency of a GET",
        },
    ),
    picture(
        "mass-expiry",
        "mass-expiry-gone",
        "When the keys are gone",
        "Time from the last deadline until the server counts no dead key.",
        Kind::Bars {
            key: "keys_back_ms",
            label: "after the last deadline",
            log: true,
        },
    ),
    picture(
        "mass-expiry",
        "mass-expiry-cpu",
        "Processor time of an expired key",
        "Without what the reads took meanwhile.",
        bars("cpu_us_per_key_net", "processor time for each expired key"),
    ),
    picture(
        "sparse",
        "sparse-latency",
        "What clients feel while a few keys expire",
        "Latency of GET by percentile.",
        Kind::Percentiles {
            points: GET_RECLAIM,
            control: GET_BEFORE,
            y_label: "latency of a GET",
        },
    ),
    picture(
        "sparse",
        "sparse-dead",
        "Dead keys held a second later",
        "",
        bars("dead_held_1s_later", "dead keys held"),
    ),
    picture(
        "event-lag",
        "event-lag",
        "How late expired events are",
        "Time from a key's deadline to the arrival of its event, by percentile.",
        Kind::Percentiles {
            points: LAG,
            control: &[],
            y_label: "lag of an event",
        },
    ),
    picture(
        "memory",
        "memory-rss",
        "Resident memory of a key",
        "",
        bars("rss_bytes_per_key", "bytes for each key"),
    ),
    picture(
        "throughput",
        "throughput-cpu",
        "Processor time of a request",
        "",
        Kind::Figures {
            prefix: "cpu_us_",
            label: "processor time for each request",
            log: true,
        },
    ),
    picture(
        "throughput",
        "throughput-rate",
        "Requests a second",
        "",
        Kind::Figures {
            prefix: "k_per_s_",
            label: "thousand requests a second",
            log: true,
        },
    ),
    picture(
        "churn",
        "churn-latency",
        "What clients feel while keys come and go",
        "Latency of GET by percentile.",
        Kind::Percentiles {
            points: GET,
            control: &[],
            y_label: "latency of a GET",
        },
    ),
    picture(
        "churn",
        "churn-dead",
        "Dead keys held on average",
        "",
        bars("dead_mean", "dead keys held"),
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_are_plain_and_no_two_are_equal() {
        for (at, picture) in PICTURES.iter().enumerate() {
            let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            assert!(picture.name.chars().all(plain), "{}", picture.name);
            assert!(
                !PICTURES[..at]
                    .iter()
                    .any(|other| other.name == picture.name),
                "{}",
                picture.name
            );
        }
    }
}
