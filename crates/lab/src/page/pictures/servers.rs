//! Pictures of servers.

use super::{Kind, Percentile, Picture, bars, picture};

pub(super) const PICTURES: &[Picture] = &[
    picture(
        "mass-expiry",
        "mass-expiry-latency",
        "What clients feel until the dead are gone",
        "Latency of GET by percentile, from the first deadline until the keys are gone; the control is the same \
         load before it.",
        Kind::Percentiles {
            points: GET_RECLAIM,
            control: GET_BEFORE,
            label: "latency of a GET",
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
            label: "latency of a GET",
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
            label: "lag of an event",
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
            label: "latency of a GET",
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
