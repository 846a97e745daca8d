//! Pictures of the experiments that ask how entries are found when they fall due, and what that is worth.

use super::{Kind, Only, Picture, bars, picture, reads};

pub(super) const PICTURES: &[Picture] = &[
    picture(
        "seeds scan",
        "scan-by-n",
        "One look at every entry",
        "The time of one scan that finds nothing, by the number of entries.",
        by_entries("scan_once_ms", "time of one scan"),
    ),
    picture(
        "seeds scan",
        "scan-mean-by-n",
        "Ten looks at every entry, on average",
        "The mean time of ten scans that find nothing, by the number of entries.",
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
        "The time of an average scan that finds nothing, as a share of the second until the next.",
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
         are pays for those. What is not found costs nothing here: the next picture tells how much that is.",
        by_entries("second_few_us", "processor time of one second"),
    ),
    picture(
        "seeds ticks",
        "unfound-by-n",
        "What is not found of the thousand",
        "Share of the 1,000 entries a second that were still not found a second after the last deadline.",
        Kind::Sweep {
            only: Only::All,
            param: "entries",
            key: "few_unfound_percent",
            axes: ["entries", "not found, % of those due"],
            log: [true, false],
        },
    ),
    picture(
        "seeds ticks",
        "idle-cost-by-n",
        "What a second of expiry costs when nothing is due",
        "Processor time of all calls in one second in which nothing falls due. A strategy that \
         knows its next deadline has only to be asked for it.",
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
            only: Only::All,
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
        "readers-worst-by-n",
        "The slowest read while entries expire",
        "What the unluckiest reader waited while a thirtieth of all entries expired each second.",
        reads_by_entries(EXPIRING, "read_max_us", "slowest read"),
    ),
    picture(
        "seeds readers",
        "readers-p999-by-n",
        "One read in a thousand while entries expire",
        "The time that 99.9 % of the reads stayed below while a thirtieth of all entries expired each second.",
        reads_by_entries(EXPIRING, "read_p999_us", "99.9th percentile of reads"),
    ),
    picture(
        "seeds readers",
        "readers-mean-as-run-by-n",
        "The average read as the article ran it",
        "Nothing expires in this setting; the article's published figures are beside those measured here.",
        reads_by_entries(AS_RUN, "read_mean_us", "average read"),
    ),
    picture(
        "seeds readers",
        "readers-worst-as-run-by-n",
        "The slowest read as the article ran it",
        "Nothing expires in this setting; the article's published figures are beside those measured here.",
        reads_by_entries(AS_RUN, "read_max_us", "slowest read"),
    ),
    picture(
        "seeds readers",
        "readers-latency",
        "What readers feel",
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
        "Bytes by which the process grew while the cache was filled, for each entry.",
        bars("rss_bytes_per_entry", "bytes for each entry"),
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
        "memory-late",
        "How late memory comes back",
        "The time after its deadline by which 99 % of what expired was freed.",
        Kind::Cells {
            key: "late_p99_s",
            label: "freed late, 99th percentile",
            log: true,
        },
    ),
    picture(
        "simulate memory",
        "memory-work",
        "What it takes to find the dead",
        "Keys looked at for each key that expired.",
        Kind::Cells {
            key: "work",
            label: "keys looked at for each expired key",
            log: true,
        },
    ),
    picture(
        "simulate limit",
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
        only: Only::All,
        param: "entries",
        key,
        axes: ["entries", y_label],
        log: [true, true],
    }
}

const EXPIRING: Only = Only::With("mode", "expiring");
/// The article's own figures come without a mode.
const AS_RUN: Only = Only::Without("mode", "expiring");

const fn reads_by_entries(only: Only, key: &'static str, label: &'static str) -> Kind {
    Kind::Sweep {
        only,
        param: "entries",
        key,
        axes: ["entries", label],
        log: [true, true],
    }
}
