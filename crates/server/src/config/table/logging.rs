//! Rows about the log that people read.

use super::{ChangeTime, ConfigKey, Group, put};
use crate::config::logging::{LogFormat, LogLevel};
use crate::config::value::{name_of, word};

const LEVELS: &[(&str, LogLevel)] = &[
    ("debug", LogLevel::Debug),
    ("verbose", LogLevel::Verbose),
    ("notice", LogLevel::Notice),
    ("warning", LogLevel::Warning),
    ("nothing", LogLevel::Nothing),
];

const FORMATS: &[(&str, LogFormat)] = &[("text", LogFormat::Text), ("json", LogFormat::Json)];

pub(super) static KEYS: &[ConfigKey] = &[
    ConfigKey {
        name: "loglevel",
        value: "debug|verbose|notice|warning|nothing",
        help: "what to log; verbose: also who connects, and who is refused",
        group: Group::Diagnosis,
        change: ChangeTime::Live,
        get: |s| name_of(s.log.level, LEVELS),
        set: |s, v| put(&mut s.log.level, word(v, LEVELS)?),
    },
    ConfigKey {
        name: "logfile",
        value: "FILE",
        help: "file to log to, opened again after SIGUSR1; empty = standard error",
        group: Group::Diagnosis,
        change: ChangeTime::AtStart,
        get: |s| s.log.file.clone(),
        set: |s, v| put(&mut s.log.file, v.to_owned()),
    },
    ConfigKey {
        name: "log-format",
        value: "text|json",
        help: "lines of the log as text, or as an object of JSON each",
        group: Group::Diagnosis,
        change: ChangeTime::AtStart,
        get: |s| name_of(s.log.format, FORMATS),
        set: |s, v| put(&mut s.log.format, word(v, FORMATS)?),
    },
];
