//! Pictures of the experiments that ask how entries are found when they fall due, and what that is worth.

use super::{Kind, Picture, bars, picture, reads};

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
            key: "bytes_per_timer",
            axes: ["entries", "bytes for each timer"],
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
        reads(),
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
];

const fn by_entries(key: &'static str, y_label: &'static str) -> Kind {
    Kind::Sweep {
        param: "entries",
        key,
        axes: ["entries", y_label],
        log: [true, true],
    }
}
