//! Where settings meet the keyspace: the values that it reads while it runs.

use std::sync::atomic::Ordering;

use tidewheel_keyspace::{Keyspace, NotifyFlags, Policy};

use crate::config::Settings;

/// The letters of `notify-keyspace-events` in their usual order; `None` for an unknown letter.
pub(crate) fn canonical_notify(text: &str) -> Option<String> {
    NotifyFlags::parse(text.as_bytes()).map(|flags| flags.to_string())
}

/// The usual spelling of a name of `maxmemory-policy`; `None` for an unknown one.
pub(crate) fn canonical_policy(name: &str) -> Option<&'static str> {
    Policy::parse(name.as_bytes()).map(Policy::name)
}

/// Puts the settings that concern the keyspace into force.
pub(crate) fn apply(settings: &Settings, keyspace: &Keyspace) {
    let engine = keyspace.settings();
    // Tables check both before they accept a value.
    if let Some(flags) = NotifyFlags::parse(settings.notify.as_bytes()) {
        keyspace.set_notify_flags(flags);
    }
    if let Some(policy) = Policy::parse(settings.max_memory_policy.as_bytes()) {
        engine.set_policy(policy);
    }
    engine
        .maxmemory
        .store(settings.max_memory, Ordering::Relaxed);
    engine
        .maxmemory_samples
        .store(settings.max_memory_samples, Ordering::Relaxed);
    engine
        .lfu_log_factor
        .store(settings.lfu_log_factor, Ordering::Relaxed);
    engine
        .lfu_decay_time
        .store(settings.lfu_decay_time, Ordering::Relaxed);
    engine
        .proto_max_bulk_len
        .store(settings.bulk_max, Ordering::Relaxed);
}
