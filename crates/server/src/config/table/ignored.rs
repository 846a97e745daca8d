//! Rows without effect: configurations and test suites set them, but nothing here depends on them.

use super::{ChangeTime, ConfigKey, Group, put};
use crate::config::value::{SanitizeDump, integer, name_of, name_of_bool, word, yes_or_no};

const SANITIZE: &[(&str, SanitizeDump)] = &[
    ("no", SanitizeDump::No),
    ("yes", SanitizeDump::Yes),
    ("clients", SanitizeDump::Clients),
];

const FREED: &str = "accepted, without effect: large values are always freed in the background";

pub(super) static KEYS: &[ConfigKey] = &[
    ConfigKey {
        name: "hz",
        value: "N",
        help: "accepted, without effect: nothing is done periodically",
        group: Group::Ignored,
        change: ChangeTime::Live,
        get: |s| s.ignored.hz.to_string(),
        // Others than these are taken for the nearest, as in the public servers.
        set: |s, v| {
            put(
                &mut s.ignored.hz,
                integer(v, 0, i32::MAX as u64)?.clamp(1, 500),
            )
        },
    },
    ConfigKey {
        name: "dynamic-hz",
        value: "yes|no",
        help: "accepted, without effect: nothing is done periodically",
        group: Group::Ignored,
        change: ChangeTime::Live,
        get: |s| name_of_bool(s.ignored.dynamic_hz),
        set: |s, v| put(&mut s.ignored.dynamic_hz, yes_or_no(v)?),
    },
    ConfigKey {
        name: "active-expire-effort",
        value: "N",
        help: "accepted, without effect: keys expire on time; see expiry-turn-us",
        group: Group::Ignored,
        change: ChangeTime::Live,
        get: |s| s.ignored.active_expire_effort.to_string(),
        set: |s, v| put(&mut s.ignored.active_expire_effort, integer(v, 1, 10)?),
    },
    ConfigKey {
        name: "lazyfree-lazy-eviction",
        value: "yes|no",
        help: FREED,
        group: Group::Ignored,
        change: ChangeTime::Live,
        get: |s| name_of_bool(s.ignored.lazy_eviction),
        set: |s, v| put(&mut s.ignored.lazy_eviction, yes_or_no(v)?),
    },
    ConfigKey {
        name: "lazyfree-lazy-expire",
        value: "yes|no",
        help: FREED,
        group: Group::Ignored,
        change: ChangeTime::Live,
        get: |s| name_of_bool(s.ignored.lazy_expire),
        set: |s, v| put(&mut s.ignored.lazy_expire, yes_or_no(v)?),
    },
    ConfigKey {
        name: "lazyfree-lazy-server-del",
        value: "yes|no",
        help: FREED,
        group: Group::Ignored,
        change: ChangeTime::Live,
        get: |s| name_of_bool(s.ignored.lazy_server_del),
        set: |s, v| put(&mut s.ignored.lazy_server_del, yes_or_no(v)?),
    },
    ConfigKey {
        name: "lazyfree-lazy-user-del",
        value: "yes|no",
        help: FREED,
        group: Group::Ignored,
        change: ChangeTime::Live,
        get: |s| name_of_bool(s.ignored.lazy_user_del),
        set: |s, v| put(&mut s.ignored.lazy_user_del, yes_or_no(v)?),
    },
    ConfigKey {
        name: "lazyfree-lazy-user-flush",
        value: "yes|no",
        help: FREED,
        group: Group::Ignored,
        change: ChangeTime::Live,
        get: |s| name_of_bool(s.ignored.lazy_user_flush),
        set: |s, v| put(&mut s.ignored.lazy_user_flush, yes_or_no(v)?),
    },
    ConfigKey {
        name: "sanitize-dump-payload",
        value: "no|yes|clients",
        help: "accepted, without effect: payloads are always checked in full",
        group: Group::Ignored,
        change: ChangeTime::Live,
        get: |s| name_of(s.ignored.sanitize_dump, SANITIZE),
        set: |s, v| put(&mut s.ignored.sanitize_dump, word(v, SANITIZE)?),
    },
];
