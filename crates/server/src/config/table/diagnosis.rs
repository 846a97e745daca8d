//! Rows about the slow log, LATENCY and the distribution of commands' times.

use super::{ChangeTime, ConfigKey, Group, put};
use crate::config::diagnosis::Percentiles;
use crate::config::value::{integer, name_of_bool, signed, yes_or_no};

/// The most entries of the slow log: an entry may take 4 KiB.
const SLOW_LOG_MAX: u64 = 1 << 20;

pub(super) static KEYS: &[ConfigKey] = &[
    ConfigKey {
        name: "slowlog-log-slower-than",
        value: "MICROSECONDS",
        help: "log calls that take so long; -1 = none; below 1000 every command is timed",
        group: Group::Diagnosis,
        change: ChangeTime::Live,
        get: |s| s.diagnosis.slower_than_us.to_string(),
        set: |s, v| put(&mut s.diagnosis.slower_than_us, signed(v, -1, i64::MAX)?),
    },
    ConfigKey {
        name: "slowlog-max-len",
        value: "N",
        help: "calls that the slow log keeps",
        group: Group::Diagnosis,
        change: ChangeTime::Live,
        get: |s| s.diagnosis.slow_log_len.to_string(),
        set: |s, v| put(&mut s.diagnosis.slow_log_len, integer(v, 0, SLOW_LOG_MAX)?),
    },
    ConfigKey {
        name: "latency-monitor-threshold",
        value: "MILLISECONDS",
        help: "note events for LATENCY that take so long; 0 = none",
        group: Group::Diagnosis,
        change: ChangeTime::Live,
        get: |s| s.diagnosis.latency_ms.to_string(),
        set: |s, v| put(&mut s.diagnosis.latency_ms, integer(v, 0, i64::MAX as u64)?),
    },
    ConfigKey {
        name: "latency-tracking",
        value: "yes|no",
        help: "show how the times of commands are distributed",
        group: Group::Diagnosis,
        change: ChangeTime::Live,
        get: |s| name_of_bool(s.diagnosis.tracking),
        set: |s, v| put(&mut s.diagnosis.tracking, yes_or_no(v)?),
    },
    ConfigKey {
        name: "latency-tracking-info-percentiles",
        value: "N N",
        help: "percentiles of commands' times that INFO shows",
        group: Group::Diagnosis,
        change: ChangeTime::Live,
        get: |s| s.diagnosis.percentiles.text(),
        set: |s, v| put(&mut s.diagnosis.percentiles, Percentiles::parse(v)?),
    },
];
