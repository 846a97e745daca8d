//! INFO: what the server knows about itself, section by section.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::Ordering;

use tidewheel_keyspace::{Quantiles, Stats};
use tidewheel_resp::Args;

use super::Outcome;
use super::session::REDIS_VERSION;
use crate::commands::turn::{Step, Turn};
use crate::counters::metrics::Rate;
use crate::process::system;
use crate::state::loop_state::LoopState;

/// A section: its name, whether a plain INFO shows it, and what writes it.
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
    pub(super) fn info(&mut self, args: Args<'_>) -> Outcome {
        self.publish_counters();
        let asked: Vec<Vec<u8>> = args
            .iter()
            .skip(1)
            .map(<[u8]>::to_ascii_lowercase)
            .collect();
        let names = |word: &[u8]| asked.iter().any(|name| name == word);
        let everything = names(b"all") || names(b"everything");
        let defaults = asked.is_empty() || names(b"default");
        let stats = self.server.keyspace.stats(self.time);
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
                .and_then(|()| (section.write)(self, &stats, &mut text));
            debug_assert!(written.is_ok(), "a String takes everything");
        }
        self.out.verbatim("txt", text.as_bytes());
        Ok(Step::Done)
    }
}

macro_rules! lines {
    ($text:expr, $($name:literal = $value:expr),* $(,)?) => {
        $(write!($text, concat!($name, ":{}\r\n"), $value)?;)*
    };
}

fn server(state: &LoopState, _: &Stats, text: &mut String) -> std::fmt::Result {
    let server = &state.server;
    let uptime_s = state.time.tick.saturating_sub(server.started) / 1000;
    let file = server.config.file.as_ref();
    let file = file.map_or(String::new(), |file| file.display().to_string());
    let wall_us = state.time.wall_ms().saturating_mul(1000) + i64::from(state.time.micros);
    lines!(
        text,
        "redis_version" = REDIS_VERSION,
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
        "run_id" = server.run_id,
        "tcp_port" = server.port,
        "server_time_usec" = wall_us,
        "uptime_in_seconds" = uptime_s,
        "uptime_in_days" = uptime_s / 86_400,
        "event_loops" = server.loops.len(),
        "shards" = server.keyspace.shards(),
        "config_file" = file,
    );
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
    for client in server.clients.everybody() {
        let facts = client.facts.lock();
        pubsub += usize::from(facts.channels + facts.patterns > 0);
        longest_input = longest_input.max(facts.holds.input);
        longest_output = longest_output.max(facts.holds.output);
    }
    lines!(
        text,
        "connected_clients" = server.clients.len(),
        "cluster_connections" = 0,
        "maxclients" = state.settings.max_clients,
        "client_recent_max_input_buffer" = longest_input,
        "client_recent_max_output_buffer" = longest_output,
        "blocked_clients" = paused,
        "tracking_clients" = 0,
        "pubsub_clients" = pubsub,
    );
    for (i, handle) in server.loops.iter().enumerate() {
        let connections = handle.connections.load(Ordering::Relaxed);
        write!(text, "event_loop_{i}:connections={connections}\r\n")?;
    }
    Ok(())
}

fn memory(state: &LoopState, stats: &Stats, text: &mut String) -> std::fmt::Result {
    let server = &state.server;
    let used = stats.used_memory;
    let peak = server
        .peak_memory
        .fetch_max(used, Ordering::Relaxed)
        .max(used);
    let rss = system::resident_bytes().unwrap_or(0);
    let (mut normal, mut overhead) = (0, 0);
    for client in server.clients.everybody() {
        let facts = client.facts.lock();
        normal += facts.holds.total();
        overhead += size_of_val(&*client) + size_of::<crate::clients::connection::Connection>();
    }
    let policy = server.keyspace.rules().policy().name();
    lines!(
        text,
        "used_memory" = used,
        "used_memory_human" = Human(used),
        "used_memory_rss" = rss,
        "used_memory_rss_human" = Human(rss),
        "used_memory_peak" = peak,
        "used_memory_peak_human" = Human(peak),
        "used_memory_dataset" = used,
        "total_system_memory" = system::total_memory_bytes().unwrap_or(0),
        "maxmemory" = state.settings.max_memory,
        "maxmemory_human" = Human(state.settings.max_memory),
        "maxmemory_policy" = policy,
        "mem_clients_normal" = normal,
        "mem_clients_overhead" = overhead,
        "mem_fragmentation_ratio" = format_args!("{:.2}", ratio(rss, used)),
        "lazyfree_pending_objects" = server.reclaimer.pending(),
        "lazyfreed_objects" = server.reclaimer.dropped(),
    );
    Ok(())
}

fn persistence(_: &LoopState, _: &Stats, text: &mut String) -> std::fmt::Result {
    lines!(
        text,
        "loading" = 0,
        "async_loading" = 0,
        "rdb_bgsave_in_progress" = 0,
        "aof_enabled" = 0
    );
    Ok(())
}

fn stats(state: &LoopState, stats: &Stats, text: &mut String) -> std::fmt::Result {
    let server = &state.server;
    let totals = server.totals().since(&server.stats_base.lock());
    let mut rate = Rate::default();
    for handle in server.loops.iter() {
        handle.counters.add_rate(state.time, &mut rate);
    }
    let (channels, patterns) = server.hub.counts();
    lines!(
        text,
        "total_connections_received" = totals.connections,
        "total_commands_processed" = totals.commands,
        "instantaneous_ops_per_sec" = rate.commands,
        "total_net_input_bytes" = totals.input_bytes,
        "total_net_output_bytes" = totals.output_bytes,
        "instantaneous_input_kbps" = format_args!("{:.2}", rate.input_bytes as f64 / 1024.0),
        "instantaneous_output_kbps" = format_args!("{:.2}", rate.output_bytes as f64 / 1024.0),
        "rejected_connections" = totals.rejected,
        "expired_keys" = stats.expired,
        "expired_stale_perc" = "0.00",
        "evicted_keys" = stats.evicted,
        "evicted_clients" = totals.evicted_clients,
        "keyspace_hits" = stats.hits,
        "keyspace_misses" = stats.misses,
        "pubsub_channels" = channels,
        "pubsub_patterns" = patterns,
        "total_error_replies" = totals.errors,
        "total_reads_processed" = totals.reads,
        "total_writes_processed" = totals.writes,
        "client_query_buffer_limit_disconnections" = totals.input_limit_closes,
        "client_output_buffer_limit_disconnections" = totals.output_limit_closes,
        "client_idle_disconnections" = totals.idle_closes,
        "event_loop_turns" = totals.turns,
    );
    Ok(())
}

fn replication(_: &LoopState, _: &Stats, text: &mut String) -> std::fmt::Result {
    lines!(
        text,
        "role" = "master",
        "connected_slaves" = 0,
        "master_repl_offset" = 0
    );
    Ok(())
}

fn cpu(_: &LoopState, _: &Stats, text: &mut String) -> std::fmt::Result {
    if let Some(spent) = system::cpu_seconds() {
        lines!(
            text,
            "used_cpu_sys" = format_args!("{:.6}", spent.system),
            "used_cpu_user" = format_args!("{:.6}", spent.user),
        );
    }
    Ok(())
}

/// How well deadlines are met. Lateness runs from a key's deadline to its removal.
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
    lines!(
        text,
        "expiry_frozen" = u8::from(stats.frozen),
        "expiry_active" = u8::from(server.expires()),
        "expired_keys" = stats.expired,
        "expired_per_sec" = server
            .expiry_rate
            .per_second(stats.expired, state.time.tick),
        "lateness_p50_us" = p50,
        "lateness_p99_us" = p99,
        "lateness_p999_us" = p999,
        "lateness_max_us" = max,
        "backlog_shards" = stats.backlog_shards,
        "backlog_ms" = stats.backlog_ms,
        "next_deadline_ms" = next_ms,
        "budget_hits" = totals.budget_hits,
        "holds_cut_short" = stats.budget_hits,
        "expired_by_helpers" = totals.helped,
        "events_pending" = stats.events_pending,
        "events_dropped" = stats.events_dropped,
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

fn nothing(_: &LoopState, _: &Stats, _: &mut String) -> std::fmt::Result {
    Ok(())
}

/// Times of commands with keys are extrapolated from a sample.
fn commandstats(state: &LoopState, _: &Stats, text: &mut String) -> std::fmt::Result {
    let mut sums = BTreeMap::new();
    for handle in state.server.loops.iter() {
        handle.command_counts.add_commands(&mut sums);
    }
    for (name, sum) in sums {
        let us = sum.ns / 1_000;
        let per_call = ratio(sum.ns, sum.calls) / 1_000.0;
        let (calls, rejected, failed) = (sum.calls, sum.rejected, sum.failed);
        if calls + rejected > 0 {
            write!(
                text,
                "cmdstat_{name}:calls={calls},usec={us},usec_per_call={per_call:.2},\
                 rejected_calls={rejected},failed_calls={failed}\r\n"
            )?;
        }
    }
    Ok(())
}

fn latencystats(state: &LoopState, _: &Stats, text: &mut String) -> std::fmt::Result {
    let settings = &state.settings.diagnosis;
    let mut all = BTreeMap::new();
    if settings.tracking {
        for handle in state.server.loops.iter() {
            handle.command_counts.add_times(&mut all);
        }
    }
    for (name, times) in all.into_iter().filter(|(_, times)| times.calls > 0) {
        write!(text, "latency_percentiles_usec_{name}:")?;
        for (i, (percentile, share)) in settings.percentiles.each().enumerate() {
            let comma = if i > 0 { "," } else { "" };
            let us = times.within_ns(share) as f64 / 1e3;
            write!(text, "{comma}p{percentile}={us:.3}")?;
        }
        text.push_str("\r\n");
    }
    Ok(())
}

fn errorstats(state: &LoopState, _: &Stats, text: &mut String) -> std::fmt::Result {
    let mut sums = BTreeMap::new();
    for handle in state.server.loops.iter() {
        handle.command_counts.add_errors(&mut sums);
    }
    for (code, count) in sums {
        write!(text, "errorstat_{code}:count={count}\r\n")?;
    }
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
        write!(
            text,
            "db{i}:keys={},expires={},avg_ttl={}\r\n",
            db.keys, db.expires, db.avg_ttl_ms
        )?;
    }
    Ok(())
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}

/// Bytes as people read them.
struct Human(u64);

impl std::fmt::Display for Human {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let bytes = self.0 as f64;
        match self.0 {
            0..1024 => write!(f, "{}B", self.0),
            1024..1_048_576 => write!(f, "{:.2}K", bytes / 1024.0),
            1_048_576..1_073_741_824 => write!(f, "{:.2}M", bytes / 1_048_576.0),
            _ => write!(f, "{:.2}G", bytes / 1_073_741_824.0),
        }
    }
}
