//! INFO as Prometheus reads it.
//!
//! What other servers have too is named as their common exporter names it (`redis_…`), so that
//! panels and alerts which people have go on. What only this server has begins with `tidewheel_`.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use tidewheel_resp::Reply;

/// How a field becomes a metric.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    /// It goes up and down.
    Gauge,
    /// It only grows.
    Counter,
    /// As a gauge, in thousandths or millionths.
    Scaled(f64),
    /// 1 for `ok`.
    Ok,
}

use Kind::{Counter, Gauge, Ok as IsOk, Scaled};

/// A field of INFO, the metric that it becomes, and what that is.
type Field = (&'static str, &'static str, Kind, &'static str);

#[rustfmt::skip] // A line for each.
const FIELDS: &[Field] = &[
    ("uptime_in_seconds", "redis_uptime_in_seconds", Gauge, "Seconds since the start."),
    ("process_id", "redis_process_id", Gauge, "The number of the process."),
    ("connected_clients", "redis_connected_clients", Gauge, "Connections of clients."),
    ("maxclients", "redis_max_clients", Gauge, "The most connections."),
    ("blocked_clients", "redis_blocked_clients", Gauge, "Clients that wait for a key, for the log or for the end of a pause."),
    ("tracking_clients", "redis_tracking_clients", Gauge, "Clients that are told what they have cached is invalid."),
    ("pubsub_clients", "redis_pubsub_clients", Gauge, "Clients that listen to channels."),
    ("watching_clients", "redis_watching_clients", Gauge, "Clients that watch keys."),
    ("total_watched_keys", "redis_total_watched_keys", Gauge, "Keys that they watch."),
    ("client_recent_max_input_buffer", "redis_client_recent_max_input_buffer_bytes", Gauge, "The longest input that waits."),
    ("client_recent_max_output_buffer", "redis_client_recent_max_output_buffer_bytes", Gauge, "The longest output that waits."),
    ("tls_server_cert_end_time", "tidewheel_tls_certificate_end_timestamp_seconds", Gauge, "When the server's certificate ends; 0: none."),
    ("tls_ca_cert_end_time", "tidewheel_tls_authority_end_timestamp_seconds", Gauge, "When the first of the clients' authorities ends; 0: none."),
    ("used_memory", "redis_memory_used_bytes", Gauge, "Bytes of keys and values, and of what finds them."),
    ("used_memory_rss", "redis_memory_used_rss_bytes", Gauge, "Bytes of the process that are in RAM."),
    ("used_memory_peak", "redis_memory_used_peak_bytes", Gauge, "The most used memory so far."),
    ("used_memory_overhead", "redis_memory_used_overhead_bytes", Gauge, "Bytes that are no data."),
    ("used_memory_startup", "redis_memory_used_startup_bytes", Gauge, "Bytes after the start."),
    ("used_memory_dataset", "redis_memory_used_dataset_bytes", Gauge, "Bytes of data."),
    ("used_memory_lua", "redis_memory_used_lua_bytes", Gauge, "Bytes of the Lua states."),
    ("used_memory_scripts", "redis_memory_used_scripts_bytes", Gauge, "Bytes of scripts."),
    ("maxmemory", "redis_memory_max_bytes", Gauge, "The limit of memory; 0: none."),
    ("mem_fragmentation_ratio", "redis_mem_fragmentation_ratio", Gauge, "Bytes in RAM by bytes used."),
    ("mem_clients_normal", "redis_mem_clients_normal", Gauge, "Bytes held for clients."),
    ("lazyfree_pending_objects", "redis_lazyfree_pending_objects", Gauge, "Large values that wait to be freed."),
    ("lazyfreed_objects", "redis_lazyfreed_objects", Gauge, "Large values that were freed beside."),
    ("loading", "redis_loading_dump_file", Gauge, "1 while data is loaded."),
    ("rdb_changes_since_last_save", "redis_rdb_changes_since_last_save", Gauge, "Changes that no snapshot has."),
    ("rdb_bgsave_in_progress", "redis_rdb_bgsave_in_progress", Gauge, "1 while a snapshot is written."),
    ("rdb_last_save_time", "redis_rdb_last_save_timestamp_seconds", Gauge, "When the last snapshot was written."),
    ("rdb_last_bgsave_status", "redis_rdb_last_bgsave_status", IsOk, "1 if the last snapshot was written."),
    ("rdb_last_bgsave_time_sec", "redis_rdb_last_bgsave_duration_sec", Gauge, "Seconds that the last one took."),
    ("rdb_current_bgsave_time_sec", "redis_rdb_current_bgsave_duration_sec", Gauge, "Seconds that the present one takes."),
    ("rdb_last_cow_size", "redis_rdb_last_cow_size_bytes", Gauge, "The most bytes held for the last snapshot."),
    ("rdb_saves", "redis_rdb_saves_total", Counter, "Snapshots since the start."),
    ("rdb_last_load_keys_loaded", "redis_rdb_last_load_keys_loaded", Gauge, "Keys that were loaded."),
    ("current_cow_size", "redis_rdb_current_cow_size_bytes", Gauge, "Bytes held for the snapshot that is being written."),
    ("aof_enabled", "redis_aof_enabled", Gauge, "1 if changes are logged."),
    ("aof_rewrite_in_progress", "redis_aof_rewrite_in_progress", Gauge, "1 while the log gets a new base."),
    ("aof_last_rewrite_time_sec", "redis_aof_last_rewrite_duration_sec", Gauge, "Seconds that the last base took."),
    ("aof_current_rewrite_time_sec", "redis_aof_current_rewrite_duration_sec", Gauge, "Seconds that the present one takes."),
    ("aof_last_cow_size", "redis_aof_last_cow_size_bytes", Gauge, "The most bytes held for the last base."),
    ("aof_last_bgrewrite_status", "redis_aof_last_bgrewrite_status", IsOk, "1 if the last base was written."),
    ("aof_last_write_status", "redis_aof_last_write_status", IsOk, "1 if the log can be written."),
    ("aof_current_size", "redis_aof_current_size_bytes", Gauge, "Bytes of the log."),
    ("aof_base_size", "redis_aof_base_size_bytes", Gauge, "Bytes of its base."),
    ("aof_buffer_length", "redis_aof_buffer_length", Gauge, "Bytes that wait to be written to the log."),
    ("aof_delayed_fsync", "redis_aof_delayed_fsync", Gauge, "Syncs that others had to wait for."),
    ("total_connections_received", "redis_connections_received_total", Counter, "Connections since the start."),
    ("rejected_connections", "redis_rejected_connections_total", Counter, "Connections that were refused."),
    ("total_commands_processed", "redis_commands_processed_total", Counter, "Commands that were run."),
    ("instantaneous_ops_per_sec", "redis_instantaneous_ops_per_sec", Gauge, "Commands a second, lately."),
    ("total_net_input_bytes", "redis_net_input_bytes_total", Counter, "Bytes from clients."),
    ("total_net_output_bytes", "redis_net_output_bytes_total", Counter, "Bytes to clients."),
    ("instantaneous_input_kbps", "redis_instantaneous_input_kbps", Gauge, "Kilobytes a second from clients, lately."),
    ("instantaneous_output_kbps", "redis_instantaneous_output_kbps", Gauge, "Kilobytes a second to clients, lately."),
    ("expired_keys", "redis_expired_keys_total", Counter, "Keys that were removed at their deadline."),
    ("expired_subkeys", "redis_expired_subkeys_total", Counter, "Fields and members that were removed at their deadline."),
    ("expired_stale_perc", "redis_expired_stale_percentage", Gauge, "Keys with a deadline that are dead and not yet removed, in percent."),
    ("expired_time_cap_reached_count", "redis_expired_time_cap_reached_total", Counter, "Passes of expiry that left some for the next turn."),
    ("expire_cycle_cpu_milliseconds", "redis_expire_cycle_cpu_time_ms_total", Counter, "Milliseconds spent on expiry."),
    ("evicted_keys", "redis_evicted_keys_total", Counter, "Keys that were removed to free memory."),
    ("evicted_clients", "redis_evicted_clients_total", Counter, "Clients that were closed to free memory."),
    ("evicted_scripts", "redis_evicted_scripts_total", Counter, "Scripts that were dropped to make room for others."),
    ("total_eviction_exceeded_time", "redis_eviction_exceeded_time_ms_total", Counter, "Milliseconds for which more than maxmemory was used."),
    ("current_eviction_exceeded_time", "redis_current_eviction_exceeded_time_ms", Gauge, "Milliseconds for which more has been used this time."),
    ("keyspace_hits", "redis_keyspace_hits_total", Counter, "Reads that found their key."),
    ("keyspace_misses", "redis_keyspace_misses_total", Counter, "Reads that did not."),
    ("pubsub_channels", "redis_pubsub_channels", Gauge, "Channels that somebody listens to."),
    ("pubsub_patterns", "redis_pubsub_patterns", Gauge, "Patterns of channels that somebody listens to."),
    ("pubsubshard_channels", "redis_pubsubshard_channels", Gauge, "Channels of shards that somebody listens to."),
    ("tracking_total_keys", "redis_tracking_total_keys", Gauge, "Keys that clients have cached."),
    ("acl_access_denied_auth", "redis_acl_access_denied_auth_total", Counter, "Wrong passwords."),
    ("acl_access_denied_cmd", "redis_acl_access_denied_cmd_total", Counter, "Calls whose command was denied."),
    ("acl_access_denied_key", "redis_acl_access_denied_key_total", Counter, "Calls of which a key was denied."),
    ("acl_access_denied_channel", "redis_acl_access_denied_channel_total", Counter, "Calls of which a channel was denied."),
    ("acl_access_denied_db", "redis_acl_access_denied_db_total", Counter, "Calls of which a database was denied."),
    ("total_error_replies", "redis_total_error_replies", Counter, "Errors that were answered."),
    ("total_reads_processed", "redis_total_reads_processed", Counter, "Reads of sockets."),
    ("total_writes_processed", "redis_total_writes_processed", Counter, "Writes to sockets."),
    ("client_query_buffer_limit_disconnections", "redis_client_query_buffer_limit_disconnections_total", Counter, "Clients that were closed for too much input."),
    ("client_output_buffer_limit_disconnections", "redis_client_output_buffer_limit_disconnections_total", Counter, "Clients that were closed for too much output."),
    ("used_cpu_sys", "redis_cpu_sys_seconds_total", Counter, "Seconds of processor time in the system."),
    ("used_cpu_user", "redis_cpu_user_seconds_total", Counter, "Seconds of processor time in the program."),
    ("eventloop_cycles", "redis_eventloop_cycles_total", Counter, "Turns of all event loops."),
    ("eventloop_duration_sum", "redis_eventloop_duration_sum_usec_total", Counter, "Microseconds that these took, without sleep."),
    ("instantaneous_eventloop_cycles_per_sec", "redis_instantaneous_eventloop_cycles_per_sec", Gauge, "Turns a second, lately."),
    ("instantaneous_eventloop_duration_usec", "redis_instantaneous_eventloop_duration_usec", Gauge, "Microseconds that one takes, lately."),
    ("event_loops", "tidewheel_event_loops", Gauge, "Event loops."),
    ("expired_members", "tidewheel_expired_members_total", Counter, "Fields and members that were removed at their deadline."),
    ("expiry_frozen", "tidewheel_expiry_frozen", Gauge, "1 while EXPIRY FREEZE holds."),
    ("backlog_shards", "tidewheel_backlog_shards", Gauge, "Shards with keys that are due and not removed yet."),
    ("backlog_ms", "tidewheel_backlog_seconds", Scaled(1e-3), "By how much the latest shard lags."),
    ("next_deadline_ms", "tidewheel_next_deadline_seconds", Scaled(1e-3), "Until the next key is due; negative: none has a deadline."),
    ("lateness_max_us", "tidewheel_lateness_max_seconds", Scaled(1e-6), "The longest time from a deadline to the removal."),
    ("longest_lock_hold_us", "tidewheel_longest_lock_hold_seconds", Scaled(1e-6), "The longest time for which a shard was locked."),
    ("events_pending", "tidewheel_events_pending", Gauge, "Keyspace events that wait."),
    ("events_dropped", "tidewheel_events_dropped_total", Counter, "Keyspace events that were dropped since too many waited."),
    ("expired_stream_queued", "tidewheel_expired_stream_queued", Gauge, "Expired keys that wait for their streams."),
    ("expired_stream_appended", "tidewheel_expired_stream_appended_total", Counter, "Expired keys in streams."),
    ("expired_stream_dropped", "tidewheel_expired_stream_dropped_total", Counter, "Expired keys that no stream took since too many waited."),
];

/// Writes all metrics.
pub(super) fn write(info: &str, times: Option<&Reply>, forecast: Option<&Reply>) -> String {
    let fields: BTreeMap<&str, &str> = info
        .lines()
        .filter_map(|line| line.split_once(':'))
        .collect();
    let mut text = String::new();
    let written = write_all(&fields, (times, forecast), &mut text);
    debug_assert!(written.is_ok(), "a String takes everything");
    text
}

fn write_all(
    fields: &BTreeMap<&str, &str>,
    (times, forecast): (Option<&Reply>, Option<&Reply>),
    text: &mut String,
) -> fmt::Result {
    head(text, "redis_up", "gauge", "1: the server has answered.")?;
    writeln!(text, "redis_up 1")?;
    about(fields, text)?;
    for (field, name, kind, help) in FIELDS {
        let Some(value) = fields.get(field).and_then(|value| number(value, *kind)) else {
            continue;
        };
        head(
            text,
            name,
            if *kind == Counter { "counter" } else { "gauge" },
            help,
        )?;
        writeln!(text, "{name} {value}")?;
    }
    databases(fields, text)?;
    commands(fields, text)?;
    errors(fields, text)?;
    lateness(fields, text)?;
    if let Some(times) = times {
        latencies(times, text)?;
    }
    if let Some(Reply::Array(windows)) = forecast {
        coming(windows, text)?;
    }
    Ok(())
}

fn head(text: &mut String, name: &str, kind: &str, help: &str) -> fmt::Result {
    writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}")
}

fn number(value: &str, kind: Kind) -> Option<f64> {
    match kind {
        IsOk => Some(f64::from(u8::from(value == "ok"))),
        Scaled(by) => value.parse::<f64>().ok().map(|value| value * by),
        Gauge | Counter => value.parse().ok(),
    }
}

/// A label's value, as the format quotes it.
fn quoted(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

fn about(fields: &BTreeMap<&str, &str>, text: &mut String) -> fmt::Result {
    let name = "redis_instance_info";
    head(text, name, "gauge", "1: what runs here.")?;
    let labels = [
        "redis_version",
        "redis_mode",
        "os",
        "run_id",
        "tcp_port",
        "maxmemory_policy",
        "tidewheel_version",
    ];
    let labels = labels.map(|label| {
        let value = fields.get(label).copied().unwrap_or_default();
        format!("{label}=\"{}\"", quoted(value))
    });
    writeln!(text, "{name}{{{}}} 1", labels.join(","))
}

/// The numbers `a=1,b=2` of a field.
fn parts(value: &str) -> BTreeMap<&str, f64> {
    let pairs = value.split(',').filter_map(|part| part.split_once('='));
    pairs
        .filter_map(|(name, value)| Some((name, value.parse().ok()?)))
        .collect()
}

/// Writes a metric with a label, from fields that begin with `start`.
fn labelled(
    fields: &BTreeMap<&str, &str>,
    (start, label): (&str, &str),
    (part, by): (&str, f64),
    (name, kind, help): (&str, &str, &str),
    text: &mut String,
) -> fmt::Result {
    let mut is_first = true;
    for (field, value) in fields {
        let Some(of) = field.strip_prefix(start) else {
            continue;
        };
        let Some(value) = parts(value).get(part).copied() else {
            continue;
        };
        if std::mem::take(&mut is_first) {
            head(text, name, kind, help)?;
        }
        writeln!(text, "{name}{{{label}=\"{}\"}} {}", quoted(of), value * by)?;
    }
    Ok(())
}

fn databases(fields: &BTreeMap<&str, &str>, text: &mut String) -> fmt::Result {
    let named: BTreeMap<&str, &str> = fields
        .iter()
        .filter(|(name, _)| {
            let number = name.strip_prefix("db").unwrap_or_default();
            !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
        })
        .map(|(name, value)| (*name, *value))
        .collect();
    for (part, by, name, help) in [
        ("keys", 1.0, "redis_db_keys", "Keys."),
        (
            "expires",
            1.0,
            "redis_db_keys_expiring",
            "Keys with a deadline.",
        ),
        (
            "avg_ttl",
            1e-3,
            "redis_db_avg_ttl_seconds",
            "The mean time to live of a sample.",
        ),
        (
            "subexpiry",
            1.0,
            "tidewheel_db_keys_with_member_deadlines",
            "Keys some of whose members have deadlines.",
        ),
    ] {
        labelled(&named, ("", "db"), (part, by), (name, "gauge", help), text)?;
    }
    Ok(())
}

fn commands(fields: &BTreeMap<&str, &str>, text: &mut String) -> fmt::Result {
    for (part, by, name, help) in [
        ("calls", 1.0, "redis_commands_total", "Calls."),
        (
            "usec",
            1e-6,
            "redis_commands_duration_seconds_total",
            "Seconds that calls took.",
        ),
        (
            "rejected_calls",
            1.0,
            "redis_commands_rejected_calls_total",
            "Calls that were refused.",
        ),
        (
            "failed_calls",
            1.0,
            "redis_commands_failed_calls_total",
            "Calls that were answered with an error.",
        ),
    ] {
        labelled(
            fields,
            ("cmdstat_", "cmd"),
            (part, by),
            (name, "counter", help),
            text,
        )?;
    }
    Ok(())
}

fn errors(fields: &BTreeMap<&str, &str>, text: &mut String) -> fmt::Result {
    let metric = (
        "redis_errors_total",
        "counter",
        "Errors that were answered.",
    );
    labelled(fields, ("errorstat_", "err"), ("count", 1.0), metric, text)
}

/// How late keys are removed, as a histogram.
fn lateness(fields: &BTreeMap<&str, &str>, text: &mut String) -> fmt::Result {
    let Some(buckets) = fields.get("lateness_histogram_us") else {
        return Ok(());
    };
    let name = "tidewheel_lateness_seconds";
    head(
        text,
        name,
        "histogram",
        "From a key's deadline to its removal.",
    )?;
    let mut all = 0;
    for (bound, count) in buckets.split(',').filter_map(|part| part.split_once('=')) {
        let (Ok(bound), Ok(count)) = (bound.parse::<f64>(), count.parse::<u64>()) else {
            continue;
        };
        all = count;
        writeln!(text, "{name}_bucket{{le=\"{}\"}} {count}", bound * 1e-6)?;
    }
    writeln!(text, "{name}_bucket{{le=\"+Inf\"}} {all}")?;
    writeln!(text, "{name}_count {all}")
}

/// The times of commands, as a histogram: what LATENCY HISTOGRAM has.
fn latencies(times: &Reply, text: &mut String) -> fmt::Result {
    let Reply::Array(flat) = times else {
        return Ok(());
    };
    let name = "redis_commands_latencies_usec";
    if !flat.is_empty() {
        head(text, name, "histogram", "Microseconds that calls took.")?;
    }
    for of in flat.chunks_exact(2) {
        let [Reply::Bulk(command), Reply::Array(facts)] = of else {
            continue;
        };
        let [_, Reply::Integer(calls), _, Reply::Array(buckets)] = facts.as_slice() else {
            continue;
        };
        let command = quoted(&String::from_utf8_lossy(command));
        for bucket in buckets.chunks_exact(2) {
            if let [Reply::Integer(bound), Reply::Integer(count)] = bucket {
                writeln!(
                    text,
                    "{name}_bucket{{cmd=\"{command}\",le=\"{bound}\"}} {count}"
                )?;
            }
        }
        writeln!(
            text,
            "{name}_bucket{{cmd=\"{command}\",le=\"+Inf\"}} {calls}"
        )?;
        writeln!(text, "{name}_count{{cmd=\"{command}\"}} {calls}")?;
    }
    Ok(())
}

/// How many keys of the first database are due within which time.
fn coming(windows: &[Reply], text: &mut String) -> fmt::Result {
    let name = "tidewheel_forecast_keys";
    head(
        text,
        name,
        "gauge",
        "Keys of database 0 that are due within so many seconds.",
    )?;
    let (mut all, mut shown) = (0, -1);
    for window in windows {
        let Reply::Array(window) = window else {
            continue;
        };
        let [_, Reply::Integer(end), Reply::Integer(keys)] = window.as_slice() else {
            continue;
        };
        all += keys;
        // From about a second to about a year.
        if *end >= 1 << 10 && *end <= 1 << 35 && all != shown {
            shown = all;
            writeln!(text, "{name}{{within=\"{}\"}} {all}", *end as f64 / 1e3)?;
        }
    }
    writeln!(text, "{name}{{within=\"+Inf\"}} {all}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn info_becomes_metrics() {
        let info = "# Server\r\nredis_version:7.4.0\r\nos:a \"b\"\r\n# Stats\r\nkeyspace_hits:12\r\nbacklog_ms:1500\r\n\
                    aof_last_write_status:ok\r\nlateness_histogram_us:1=5,2=7,1024=9\r\n\
                    cmdstat_get:calls=3,usec=7,usec_per_call=2.33,rejected_calls=0,failed_calls=1\r\n\
                    errorstat_WRONGTYPE:count=4\r\ndb0:keys=5,expires=2,avg_ttl=1500,subexpiry=1\r\ndbfilename:x\r\n";
        let integer = Reply::Integer;
        let times = Reply::Array(vec![
            Reply::Bulk(b"get".to_vec()),
            Reply::Array(vec![
                Reply::Bulk(b"calls".to_vec()),
                integer(3),
                Reply::Bulk(b"histogram_usec".to_vec()),
                Reply::Array(vec![integer(1), integer(2)]),
            ]),
        ]);
        let windows = [(0, 1, 1), (512, 1024, 2), (1024, 2048, 0), (2048, -1, 4)];
        let window =
            |(from, to, keys)| Reply::Array(vec![integer(from), integer(to), integer(keys)]);
        let forecast = Reply::Array(windows.map(window).to_vec());
        let text = write(info, Some(&times), Some(&forecast));
        for line in [
            "redis_up 1",
            "# TYPE redis_keyspace_hits_total counter",
            "redis_keyspace_hits_total 12",
            "tidewheel_backlog_seconds 1.5",
            "redis_aof_last_write_status 1",
            "tidewheel_lateness_seconds_bucket{le=\"0.000002\"} 7",
            "tidewheel_lateness_seconds_bucket{le=\"+Inf\"} 9",
            "redis_commands_total{cmd=\"get\"} 3",
            "redis_commands_failed_calls_total{cmd=\"get\"} 1",
            "redis_errors_total{err=\"WRONGTYPE\"} 4",
            "redis_db_keys{db=\"db0\"} 5",
            "redis_db_avg_ttl_seconds{db=\"db0\"} 1.5",
            "redis_commands_latencies_usec_bucket{cmd=\"get\",le=\"1\"} 2",
            "redis_commands_latencies_usec_count{cmd=\"get\"} 3",
            "tidewheel_forecast_keys{within=\"1.024\"} 3",
            "tidewheel_forecast_keys{within=\"+Inf\"} 7",
        ] {
            assert!(text.lines().any(|shown| shown == line), "{line} in\n{text}");
        }
        assert!(text.contains("os=\"a \\\"b\\\"\""), "{text}");
        assert!(!text.contains("dbfilename"), "{text}");
    }

    #[test]
    fn each_metric_is_described_once() {
        let mut names: Vec<_> = FIELDS.iter().map(|(_, name, ..)| name).collect();
        names.sort_unstable();
        let before = names.len();
        names.dedup();
        assert_eq!(names.len(), before);
    }
}
