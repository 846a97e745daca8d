//! INFO: the server's counters and state, by section.

macro_rules! lines {
    ($text:expr, $($name:literal = $value:expr),* $(,)?) => {
        $(write!($text, concat!($name, ":{}\r\n"), $value)?;)*
    };
}

mod calls;
mod memory;

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

use tidewheel_keyspace::{Quantiles, SnapshotCourse, Stats};
use tidewheel_resp::Args;

use self::calls::{commandstats, errorstats, latencystats};
use self::memory::memory;
use super::HandlerResult;
use super::session::REDIS_VERSION;
use crate::commands::turn::{CommandStep, Turn};
use crate::counters::metrics::MomentaryRates;
use crate::net::tls::certificate::CertificateEnd;
use crate::process::system;
use crate::pubsub::subscriptions::SubscriptionKind;
use crate::state::log::Trouble;
use crate::state::loop_state::LoopState;
use crate::users::Reason;

/// A section of INFO: its name, whether a plain INFO shows it, and the function that writes it.
struct Section {
    name: &'static str,
    by_default: bool,
    write: fn(&LoopState, &Stats, &mut String) -> std::fmt::Result,
}

const SECTIONS: &[Section] = &[
    Section {
        name: "Server",
        by_default: true,
        write: server,
    },
    Section {
        name: "Clients",
        by_default: true,
        write: clients,
    },
    Section {
        name: "Memory",
        by_default: true,
        write: memory,
    },
    Section {
        name: "Persistence",
        by_default: true,
        write: persistence,
    },
    Section {
        name: "Stats",
        by_default: true,
        write: stats,
    },
    Section {
        name: "TLS",
        by_default: true,
        write: tls,
    },
    Section {
        name: "Replication",
        by_default: true,
        write: replication,
    },
    Section {
        name: "CPU",
        by_default: true,
        write: cpu,
    },
    Section {
        name: "Expiry",
        by_default: true,
        write: expiry,
    },
    Section {
        name: "Modules",
        by_default: true,
        write: nothing,
    },
    Section {
        name: "Commandstats",
        by_default: false,
        write: commandstats,
    },
    Section {
        name: "Errorstats",
        by_default: true,
        write: errorstats,
    },
    Section {
        name: "Latencystats",
        by_default: false,
        write: latencystats,
    },
    Section {
        name: "Cluster",
        by_default: true,
        write: cluster,
    },
    Section {
        name: "Keyspace",
        by_default: true,
        write: keyspace,
    },
];

impl Turn<'_> {
    pub(super) fn info(&mut self, args: Args<'_>) -> HandlerResult {
        self.publish_counters();
        let asked: Vec<Vec<u8>> = args
            .iter()
            .skip(1)
            .map(<[u8]>::to_ascii_lowercase)
            .collect();
        let names = |word: &[u8]| asked.iter().any(|name| name == word);
        let everything = names(b"all") || names(b"everything");
        let defaults = asked.is_empty() || names(b"default");
        let stats = self.state.server.keyspace.stats(self.state.time);
        let mut text = String::new();
        for section in SECTIONS {
            let name = section.name.to_ascii_lowercase();
            let shown = everything || (defaults && section.by_default) || names(name.as_bytes());
            if !shown {
                continue;
            }
            if !text.is_empty() {
                text.push_str("\r\n");
            }
            let written = write!(text, "# {}\r\n", section.name)
                .and_then(|()| (section.write)(self.state, &stats, &mut text));
            debug_assert!(written.is_ok(), "a String takes everything");
        }
        self.out.verbatim("txt", text.as_bytes());
        Ok(CommandStep::Done)
    }
}

fn server(state: &LoopState, _: &Stats, text: &mut String) -> std::fmt::Result {
    let server = &state.server;
    let uptime_s = state
        .time
        .tick
        .saturating_sub(server.started.load(Ordering::Relaxed))
        / 1000;
    let file = server.config.file.as_ref();
    let file = file.map_or(String::new(), |file| file.path().display().to_string());
    let executable = std::env::current_exe().unwrap_or_default();
    let executable = executable.display().to_string();
    let wall_us = state.time.wall_ms().saturating_mul(1000) + i64::from(state.time.micros);
    lines!(
        text,
        "redis_version" = REDIS_VERSION,
        "redis_git_sha1" = "00000000",
        "redis_git_dirty" = 0,
        "server_name" = "tidewheel",
        "tidewheel_version" = env!("CARGO_PKG_VERSION"),
        "redis_mode" = "standalone",
        "os" = format_args!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        "arch_bits" = usize::BITS,
        "multiplexing_api" = if cfg!(target_os = "linux") {
            "epoll"
        } else {
            "mio"
        },
        "process_id" = std::process::id(),
        "process_supervised" = "no",
        "run_id" = server.run_id,
        "tcp_port" = server.port(),
        "server_time_usec" = wall_us,
        "uptime_in_seconds" = uptime_s,
        "uptime_in_days" = uptime_s / 86_400,
        "event_loops" = server.loops.len(),
        "shards" = server.keyspace.shards(),
        "executable" = executable,
        "config_file" = file,
        "io_threads_active" = 0,
    );
    for (i, listener) in server.listeners.iter().enumerate() {
        write!(text, "listener{i}:name={}", listener.name)?;
        for address in &listener.addresses {
            let port = format!(":{}", listener.port);
            let host = address.strip_suffix(&port).unwrap_or(address);
            write!(text, ",bind={}", host.trim_matches(['[', ']']))?;
        }
        match listener.port {
            0 => write!(text, "\r\n")?,
            port => write!(text, ",port={port}\r\n")?,
        }
    }
    Ok(())
}

fn clients(state: &LoopState, _: &Stats, text: &mut String) -> std::fmt::Result {
    let server = &state.server;
    let paused: usize = server
        .loops
        .iter()
        .map(|handle| handle.paused.load(Ordering::Relaxed))
        .sum();
    let (mut pubsub, mut longest_input, mut longest_output) = (0, 0, 0);
    let (mut watching, mut watched) = (0, 0);
    let (mut by_tls, mut by_unix) = (0, 0);
    for client in server.clients.snapshot() {
        by_tls += usize::from(client.tls != "no");
        by_unix += usize::from(client.peer.is_unix());
        let facts = client.facts.lock();
        pubsub += usize::from(facts.is_subscriber());
        watching += usize::from(facts.watched > 0);
        watched += facts.watched;
        longest_input = longest_input.max(facts.holds.input);
        longest_output = longest_output.max(facts.holds.output);
    }
    let pause = &server.pause;
    let (awaited, awaited_by_groups) = server.keyspace.awaited_keys();
    lines!(
        text,
        "connected_clients" = server.clients.len(),
        "cluster_connections" = 0,
        "maxclients" = state.settings.max_clients,
        "client_recent_max_input_buffer" = longest_input,
        "client_recent_max_output_buffer" = longest_output,
        "blocked_clients" = paused + server.keyspace.waiting(),
        "total_blocking_keys" = awaited,
        "total_blocking_keys_on_nokey" = awaited_by_groups,
        "paused_reason" = if pause.is_on() {
            "client_pause"
        } else {
            "none"
        },
        "paused_actions" = pause.actions(),
        "paused_timeout_milliseconds" = match pause.is_on() {
            true => pause.until().saturating_sub(state.time.tick),
            false => 0,
        },
        "tracking_clients" = server.keyspace.tracking_stats().clients,
        "pubsub_clients" = pubsub,
        "watching_clients" = watching,
        "total_watched_keys" = watched,
        "tls_clients" = by_tls,
        "tls_half_open" = server.tls_counts.half_open.load(Ordering::Relaxed),
        "unix_clients" = by_unix,
    );
    for (i, handle) in server.loops.iter().enumerate() {
        let connections = handle.connections.load(Ordering::Relaxed);
        write!(text, "event_loop_{i}:connections={connections}\r\n")?;
    }
    Ok(())
}

fn persistence(state: &LoopState, stats: &Stats, text: &mut String) -> std::fmt::Result {
    let snapshots = &state.server.snapshots;
    let changes = snapshots.changes.load(Ordering::Relaxed);
    let status = match snapshots.failed.load(Ordering::Relaxed) {
        true => "err",
        false => "ok",
    };
    let log = &state.server.log;
    let status_of = |failed| if failed { "err" } else { "ok" };
    let background = snapshots.background();
    let seconds = |ms: u64| i64::try_from(ms / 1000).unwrap_or(i64::MAX);
    let seconds_of_last = |ms| if ms == 0 { -1 } else { seconds(ms) };
    let (took_ms, last_held) = snapshots.cost();
    let is_rewriting = log.is_rewriting.load(Ordering::Relaxed);
    let failures = log.rewrite_failures.load(Ordering::Relaxed);
    // A new base of the log is a snapshot too, but none for the file.
    let is_saving = background.is_some() && !is_rewriting;
    let since = background.as_ref().map(|of| of.since);
    let lasts_s = since.map_or(-1, |since| seconds(state.time.tick.saturating_sub(since)));
    let course = background.as_ref().map(|of| &of.course);
    let (walked, all) = course.map_or((0, 0), SnapshotCourse::walked);
    let held = course.map_or(0, SnapshotCourse::held_bytes);
    let peak = course.map_or(0, SnapshotCourse::peak_held_bytes);
    lines!(
        text,
        "loading" = u8::from(state.server.is_loading()),
        "async_loading" = 0,
        "rdb_changes_since_last_save" = stats.changes.saturating_sub(changes),
        "rdb_bgsave_in_progress" = u8::from(is_saving),
        "rdb_last_save_time" = snapshots.last_s.load(Ordering::Relaxed),
        "rdb_last_bgsave_status" = status,
        "rdb_last_bgsave_time_sec" = seconds_of_last(took_ms),
        "rdb_current_bgsave_time_sec" = if is_saving { lasts_s } else { -1 },
        "rdb_last_cow_size" = last_held,
        "rdb_saves" = snapshots.written.load(Ordering::Relaxed),
        "current_save_keys_processed" = walked,
        "current_save_keys_total" = all,
        "current_cow_size" = held,
        "current_cow_peak" = peak,
        "rdb_last_load_keys_loaded" = snapshots.loaded.load(Ordering::Relaxed),
        "aof_enabled" = u8::from(log.is_on()),
        "aof_rewrite_in_progress" = u8::from(is_rewriting),
        "aof_rewrite_scheduled" = 0,
        "aof_last_rewrite_time_sec" = seconds_of_last(log.rewrite_ms.load(Ordering::Relaxed)),
        "aof_current_rewrite_time_sec" = if is_rewriting { lasts_s } else { -1 },
        "aof_last_bgrewrite_status" = status_of(failures > 0),
        "aof_rewrites" = log.rewrites.load(Ordering::Relaxed),
        "aof_rewrites_consecutive_failures" = failures,
        "aof_last_write_status" = status_of(log.trouble() != Trouble::None),
        "aof_last_cow_size" = log.rewrite_held.load(Ordering::Relaxed),
        "module_fork_in_progress" = 0,
        "module_fork_last_cow_size" = 0,
    );
    if log.is_on() {
        let base = log.base_bytes.load(Ordering::Relaxed);
        lines!(
            text,
            "aof_current_size" = base + log.bytes.load(Ordering::Relaxed),
            "aof_base_size" = base,
            "aof_pending_rewrite" = 0,
            "aof_buffer_length" = state.server.keyspace.waiting_record_bytes(),
            "aof_pending_bio_fsync" = u8::from(log.is_syncing.load(Ordering::Relaxed)),
            "aof_delayed_fsync" = log.late_syncs.load(Ordering::Relaxed),
        );
    }
    if state.server.is_loading() {
        let loading = &state.server.loading;
        let now_s = state.time.wall_ms() / 1000;
        lines!(
            text,
            "loading_start_time" = loading.started_s.load(Ordering::Relaxed),
            "loading_total_bytes" = loading.total_bytes.load(Ordering::Relaxed),
            "loading_loaded_bytes" = loading.read_bytes.load(Ordering::Relaxed),
            "loading_loaded_perc" = format_args!("{:.2}", loading.percent()),
            "loading_eta_seconds" = loading.seconds_left(now_s),
        );
    }
    Ok(())
}

fn tls(state: &LoopState, _: &Stats, text: &mut String) -> std::fmt::Result {
    let ends = state.server.tls_terms.ends();
    let now = state.time.wall_ms() / 1000;
    let serial = |end: &Option<CertificateEnd>| match end {
        Some(end) => end.serial.clone(),
        None => "none".to_owned(),
    };
    let end_of = |end: &Option<CertificateEnd>| end.as_ref().map_or(0, |end| end.second);
    let left =
        |end: &Option<CertificateEnd>| end.as_ref().map_or(0, |end| (end.second - now).max(0));
    lines!(
        text,
        "tls_server_cert_serial" = serial(&ends.own),
        "tls_server_cert_expires_in_seconds" = left(&ends.own),
        "tls_server_cert_end_time" = end_of(&ends.own),
        "tls_ca_cert_serial" = serial(&ends.authority),
        "tls_ca_cert_expires_in_seconds" = left(&ends.authority),
        "tls_ca_cert_end_time" = end_of(&ends.authority),
    );
    Ok(())
}

fn stats(state: &LoopState, stats: &Stats, text: &mut String) -> std::fmt::Result {
    let server = &state.server;
    let totals = server.totals().since(&server.stats_base.lock());
    let mut rate = MomentaryRates::default();
    for handle in server.loops.iter() {
        handle.counters.add_rate(state.time, &mut rate);
    }
    let tracking = server.keyspace.tracking_stats();
    let handshakes = &server.tls_counts;
    let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let [channels, patterns, shard_channels] =
        SubscriptionKind::ALL.map(|kind| server.hub.count(kind));
    let denied = |reason| server.denials.count(reason);
    let (above_ms, all_above_ms) = server.memory_marks.above_ms(state.time.tick);
    let with_deadline = stats.databases.iter().map(|db| db.expires).sum();
    let stale = 100.0 * ratio(stats.overdue, with_deadline).min(1.0);
    lines!(
        text,
        "total_connections_received" = totals.connections,
        "total_commands_processed" = totals.commands,
        "long_commands" = server.long_work.taken(),
        "parked_commands" = totals.parked_commands,
        "script_retries" = totals.scripts_again,
        "instantaneous_ops_per_sec" = rate.commands,
        "total_net_input_bytes" = totals.input_bytes,
        "total_net_output_bytes" = totals.output_bytes,
        "instantaneous_input_kbps" = format_args!("{:.2}", rate.input_bytes as f64 / 1024.0),
        "instantaneous_output_kbps" = format_args!("{:.2}", rate.output_bytes as f64 / 1024.0),
        "rejected_connections" = totals.rejected + count(&handshakes.rejected),
        "tls_handshakes" = count(&handshakes.done),
        "tls_handshakes_failed" = count(&handshakes.failed),
        "tls_handshakes_timed_out" = count(&handshakes.timed_out),
        "tls_handshakes_crowded_out" = count(&handshakes.crowded_out),
        "sync_full" = 0,
        "sync_partial_ok" = 0,
        "sync_partial_err" = 0,
        "expired_keys" = stats.expired,
        "expired_fields" = stats.expired_members,
        "expired_subkeys" = stats.expired_members,
        "expired_stale_perc" = format_args!("{stale:.2}"),
        "expired_time_cap_reached_count" = totals.budget_hits,
        "expire_cycle_cpu_milliseconds" = totals.expiry_us / 1_000,
        "evicted_keys" = stats.evicted,
        "evicted_clients" = totals.evicted_clients,
        "evicted_scripts" = server.scripts.evicted(),
        "total_eviction_exceeded_time" = all_above_ms,
        "current_eviction_exceeded_time" = above_ms,
        "keyspace_hits" = stats.hits,
        "keyspace_misses" = stats.misses,
        "pubsub_channels" = channels,
        "pubsub_patterns" = patterns,
        "pubsubshard_channels" = shard_channels,
        "latest_fork_usec" = 0,
        "total_forks" = 0,
        "migrate_cached_sockets" = 0,
        "slave_expires_tracked_keys" = 0,
        "active_defrag_hits" = 0,
        "active_defrag_misses" = 0,
        "active_defrag_key_hits" = 0,
        "active_defrag_key_misses" = 0,
        "tracking_total_keys" = tracking.keys,
        "tracking_total_items" = tracking.items,
        "tracking_total_prefixes" = tracking.prefixes,
        "acl_access_denied_auth" = denied(Reason::Auth),
        "acl_access_denied_cmd" = denied(Reason::Command),
        "acl_access_denied_key" = denied(Reason::Key),
        "acl_access_denied_channel" = denied(Reason::Channel),
        "acl_access_denied_db" = denied(Reason::Database),
        "unexpected_error_replies" = 0,
        "total_error_replies" = totals.errors,
        "total_reads_processed" = totals.reads,
        "total_writes_processed" = totals.writes,
        "client_query_buffer_limit_disconnections" = totals.input_limit_closes,
        "client_output_buffer_limit_disconnections" = totals.output_limit_closes,
        "client_idle_disconnections" = totals.idle_closes,
        "eventloop_cycles" = totals.turns,
        "eventloop_duration_sum" = totals.busy_us,
        "instantaneous_eventloop_cycles_per_sec" = rate.turns,
        "instantaneous_eventloop_duration_usec" = rate.busy_us.checked_div(rate.turns).unwrap_or(0),
    );
    Ok(())
}

/// Writes the section on replication. There are no replicas, so the replication id is this run's.
fn replication(state: &LoopState, _: &Stats, text: &mut String) -> std::fmt::Result {
    lines!(
        text,
        "role" = "master",
        "connected_slaves" = 0,
        "master_failover_state" = "no-failover",
        "master_replid" = state.server.run_id,
        "master_replid2" = "0".repeat(40),
        "master_repl_offset" = 0,
        "second_repl_offset" = -1,
        "repl_backlog_active" = 0,
        "repl_backlog_size" = 0,
        "repl_backlog_first_byte_offset" = 0,
        "repl_backlog_histlen" = 0,
    );
    Ok(())
}

fn cpu(_: &LoopState, _: &Stats, text: &mut String) -> std::fmt::Result {
    if let Some(spent) = system::cpu_seconds() {
        lines!(
            text,
            "used_cpu_sys" = format_args!("{:.6}", spent.system),
            "used_cpu_user" = format_args!("{:.6}", spent.user),
            "used_cpu_sys_children" = "0.000000",
            "used_cpu_user_children" = "0.000000",
        );
    }
    Ok(())
}

/// Writes the section on expiry. Lateness runs from a key's deadline to its removal.
fn expiry(state: &LoopState, stats: &Stats, text: &mut String) -> std::fmt::Result {
    let server = &state.server;
    let totals = server.totals().since(&server.stats_base.lock());
    let due = stats.next_deadline;
    let next_ms = match due {
        u64::MAX => -1,
        due => i64::try_from(due.saturating_sub(state.time.tick)).unwrap_or(i64::MAX),
    };
    let Quantiles {
        p50,
        p99,
        p999,
        max,
        ..
    } = stats.lateness_us;
    let holds = stats.lock_hold_ns;
    let streams = server.keyspace.expired_stream_stats();
    lines!(
        text,
        "expiry_frozen" = u8::from(stats.frozen),
        "expiry_active" = u8::from(server.expires()),
        "expired_keys" = stats.expired,
        "expired_members" = stats.expired_members,
        "expired_per_sec" = server
            .expiry_rate
            .per_second(stats.expired, state.time.tick),
        "lateness_p50_us" = p50,
        "lateness_p99_us" = p99,
        "lateness_p999_us" = p999,
        "lateness_max_us" = max,
        "lateness_histogram_us" = lateness_histogram(&stats.lateness_us_by_power),
        "backlog_shards" = stats.backlog_shards,
        "backlog_ms" = stats.backlog_ms,
        "next_deadline_ms" = next_ms,
        "budget_hits" = totals.budget_hits,
        "holds_cut_short" = stats.budget_hits,
        "expired_by_helpers" = totals.helped,
        "events_pending" = stats.events_pending,
        "events_dropped" = stats.events_dropped,
        "expired_stream_queued" = streams.queued,
        "expired_stream_queued_bytes" = streams.queued_bytes,
        "expired_stream_appended" = streams.appended,
        "expired_stream_trimmed" = streams.trimmed,
        "expired_stream_failed" = streams.failed,
        "expired_stream_dropped" = streams.dropped,
        "expired_stream_flushed" = streams.flushed,
        "expired_stream_waits" = streams.waits,
        "longest_lock_hold_us" = holds.max.div_ceil(1000),
        "lock_holds_us" = format_args!(
            "count={},p50={:.1},p99={:.1},p99.9={:.1},max={:.1}",
            holds.count,
            holds.p50 as f64 / 1e3,
            holds.p99 as f64 / 1e3,
            holds.p999 as f64 / 1e3,
            holds.max as f64 / 1e3,
        ),
    );
    Ok(())
}

/// Writes how many keys were removed within which time, as `1=N,2=N,4=N …`; each number includes
/// those before it.
fn lateness_histogram(by_power: &[u64]) -> String {
    let last = by_power.iter().rposition(|count| *count > 0).unwrap_or(0);
    let mut within = 0;
    let buckets = by_power[..=last].iter().enumerate().map(|(power, count)| {
        within += count;
        format!("{}={within}", 1_u64 << power)
    });
    buckets.collect::<Vec<_>>().join(",")
}

fn nothing(_: &LoopState, _: &Stats, _: &mut String) -> std::fmt::Result {
    Ok(())
}

fn cluster(_: &LoopState, _: &Stats, text: &mut String) -> std::fmt::Result {
    lines!(text, "cluster_enabled" = 0);
    Ok(())
}

fn keyspace(_: &LoopState, stats: &Stats, text: &mut String) -> std::fmt::Result {
    for (i, db) in stats
        .databases
        .iter()
        .enumerate()
        .filter(|(_, db)| db.keys > 0)
    {
        // Redis' name and Valkey's.
        let timed = db.with_timed_members;
        write!(
            text,
            "db{i}:keys={},expires={},avg_ttl={},subexpiry={timed},keys_with_volatile_items={timed}\r\n",
            db.keys, db.expires, db.avg_ttl_ms
        )?;
    }
    Ok(())
}

/// Returns a part of a whole; 0 of nothing.
pub(super) fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}
