//! Puts the settings that the keyspace reads into force.

use std::sync::atomic::Ordering;

use tidewheel_keyspace::Keyspace;

use crate::config::Settings;

/// Puts the settings that concern the keyspace into force.
pub(crate) fn apply(settings: &Settings, keyspace: &Keyspace) {
    let rules = keyspace.rules();
    keyspace.set_notify_flags(settings.notify);
    keyspace.set_expired_streams(&settings.expired_streams.0);
    keyspace.set_tracking_keys_max(settings.tracking_keys_max);
    rules.set_policy(settings.max_memory_policy);
    rules.set_file_format(settings.file_format);
    rules
        .maxmemory
        .store(settings.max_memory, Ordering::Relaxed);
    rules
        .maxmemory_samples
        .store(settings.max_memory_samples, Ordering::Relaxed);
    rules
        .lfu_log_factor
        .store(settings.lfu_log_factor, Ordering::Relaxed);
    rules
        .lfu_decay_time
        .store(settings.lfu_decay_time, Ordering::Relaxed);
    rules
        .proto_max_bulk_len
        .store(settings.bulk_max, Ordering::Relaxed);
    rules
        .any_dump_version
        .store(settings.any_dump_version, Ordering::Relaxed);
    keyspace.set_promises(settings.holds_replies());
    settings.collections.apply(&rules.packing);
}
