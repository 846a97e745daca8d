//! Puts the settings that the keyspace reads into force.

use std::sync::atomic::Ordering;

use tidewheel_keyspace::Keyspace;

use crate::config::Settings;

/// Puts the settings that concern the keyspace into force.
pub(crate) fn apply(settings: &Settings, keyspace: &Keyspace) {
    let engine = keyspace.settings();
    keyspace.set_notify_flags(settings.notify);
    engine.set_policy(settings.max_memory_policy);
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
