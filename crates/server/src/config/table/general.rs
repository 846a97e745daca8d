//! Rows about sockets, memory, clients, events and expiry.

use std::sync::Arc;

use tidewheel_keyspace::{FileFormat, NotifyFlags, Policy};

use super::{ChangeTime, ConfigKey, Group, only, put};
use crate::config::expired_streams::ExpiredStreams;
use crate::config::password::Password;
use crate::config::save_points::SavePoints;
use crate::config::value::{
    BindAddress, DebugAccess, Port, SyncPolicy, integer, memory_within, name_of, name_of_bool,
    percentage, word, yes_or_no,
};

const DEBUG_ACCESS: &[(&str, DebugAccess)] = &[
    ("no", DebugAccess::No),
    ("yes", DebugAccess::Yes),
    ("local", DebugAccess::Local),
];

/// The values of `rdb-version-check`, and whether each accepts any version.
const DUMP_VERSIONS: &[(&str, bool)] = &[("strict", false), ("relaxed", true)];

const CHANNELS: &[(&str, bool)] = &[("allchannels", true), ("resetchannels", false)];

/// The values of `rdb-version`.
const FILE_FORMATS: &[(&str, FileFormat)] = &[
    ("10", FileFormat::Redis10),
    ("11", FileFormat::Redis11),
    ("12", FileFormat::Redis12),
    ("80", FileFormat::Valkey80),
];

const SYNC_POLICIES: &[(&str, SyncPolicy)] = &[
    ("always", SyncPolicy::Always),
    ("everysec", SyncPolicy::EverySecond),
    ("no", SyncPolicy::Never),
];

/// The most event loops: more are a mistake on any machine of today.
const THREADS_MAX: usize = 1024;

/// The most shards that the keyspace can number.
const SHARDS_MAX: usize = 1024;

/// The most databases. They are created when they are used, but a greater number is a typing error.
const DATABASES_MAX: u64 = 4096;

/// The longest bulk that the parser can address, in bytes.
const BULK_MAX: u64 = 4_294_967_295 - (1 << 16);

/// Bytes of a file's name, less those that are appended while it is written.
const FILE_NAME_MAX: usize = 230;

/// Text that is not empty.
fn text(value: &str) -> Result<String, String> {
    match value {
        "" => Err("it is empty".to_owned()),
        text => Ok(text.to_owned()),
    }
}

pub(super) static KEYS: &[ConfigKey] = &[
    ConfigKey {
        name: "port",
        value: "PORT",
        help: "TCP port to listen on; 0 = none, any = a free one",
        group: Group::Network,
        change: ChangeTime::AtStart,
        get: |s| s.port.to_string(),
        set: |s, v| put(&mut s.port, Port::parse(v)?),
    },
    ConfigKey {
        name: "bind",
        value: "ADDRESS ...",
        help: "addresses to listen on, separated by spaces; * = all of IPv4, ::* = all of IPv6, -ADDRESS = if there is one",
        group: Group::Network,
        change: ChangeTime::AtStart,
        get: |s| {
            let names: Vec<&str> = s.bind.iter().map(BindAddress::name).collect();
            names.join(" ")
        },
        set: |s, v| {
            let words = v.split_ascii_whitespace();
            let addresses: Vec<_> = words.map(BindAddress::parse).collect::<Result<_, _>>()?;
            if addresses.is_empty() {
                return Err("name at least one address".to_owned());
            }
            put(&mut s.bind, addresses)
        },
    },
    #[cfg(unix)]
    ConfigKey {
        name: "unixsocket",
        value: "PATH",
        help: "Unix socket to listen at; empty = none",
        group: Group::Network,
        change: ChangeTime::AtStart,
        get: |s| s.unix_socket.clone(),
        set: |s, v| put(&mut s.unix_socket, v.to_owned()),
    },
    #[cfg(unix)]
    ConfigKey {
        name: "unixsocketperm",
        value: "MODE",
        help: "permissions of its file, e.g. 770; 0 = as the system's mask says",
        group: Group::Network,
        change: ChangeTime::AtStart,
        get: |s| format!("{:o}", s.unix_socket_mode.unwrap_or(0)),
        set: |s, v| {
            let digits = !v.is_empty() && v.bytes().all(|digit| digit.is_ascii_digit());
            let mode = u32::from_str_radix(v, 8).ok().filter(|_| digits);
            let mode = mode.filter(|mode| *mode <= 0o777);
            let mode = mode.ok_or("argument must be permissions in octal, 0 to 777")?;
            put(&mut s.unix_socket_mode, Some(mode).filter(|mode| *mode > 0))
        },
    },
    ConfigKey {
        name: "threads",
        value: "N",
        help: "event loops; 0 = one for each core",
        group: Group::General,
        change: ChangeTime::AtStart,
        get: |s| s.threads.to_string(),
        set: |s, v| put(&mut s.threads, integer(v, 0, THREADS_MAX as u64)? as usize),
    },
    ConfigKey {
        name: "shards",
        value: "N",
        help: "independently locked parts of the keyspace: a power of two",
        group: Group::General,
        change: ChangeTime::AtStart,
        get: |s| s.shards.to_string(),
        set: |s, v| {
            let shards = integer(v, 1, SHARDS_MAX as u64)? as usize;
            if !shards.is_power_of_two() {
                return Err("argument must be a power of two".to_owned());
            }
            put(&mut s.shards, shards)
        },
    },
    ConfigKey {
        name: "databases",
        value: "N",
        help: "databases that SELECT can choose from",
        group: Group::General,
        change: ChangeTime::AtStart,
        get: |s| s.databases.to_string(),
        set: |s, v| put(&mut s.databases, integer(v, 1, DATABASES_MAX)? as usize),
    },
    ConfigKey {
        name: "maxclients",
        value: "N",
        help: "connections at a time; more are answered with an error and closed",
        group: Group::Limits,
        change: ChangeTime::Live,
        get: |s| s.max_clients.to_string(),
        set: |s, v| {
            put(
                &mut s.max_clients,
                integer(v, 1, u64::from(u32::MAX))? as usize,
            )
        },
    },
    ConfigKey {
        name: "timeout",
        value: "SECONDS",
        help: "close clients that were silent for so long; 0 = never",
        group: Group::Network,
        change: ChangeTime::Live,
        get: |s| s.timeout_s.to_string(),
        set: |s, v| put(&mut s.timeout_s, integer(v, 0, i32::MAX as u64)?),
    },
    ConfigKey {
        name: "busy-reply-threshold",
        value: "MILLISECONDS",
        help: "answer BUSY beside scripts that run longer; 0 = never",
        group: Group::Limits,
        change: ChangeTime::Live,
        get: |s| s.script_ms.to_string(),
        set: |s, v| put(&mut s.script_ms, integer(v, 0, i32::MAX as u64)?),
    },
    ConfigKey {
        name: "tcp-keepalive",
        value: "SECONDS",
        help: "probe silent connections so often; 0 = never",
        group: Group::Network,
        change: ChangeTime::Live,
        get: |s| s.tcp_keepalive_s.to_string(),
        set: |s, v| put(&mut s.tcp_keepalive_s, integer(v, 0, i32::MAX as u64)?),
    },
    ConfigKey {
        name: "maxmemory",
        value: "BYTES",
        help: "memory for data above which maxmemory-policy applies; 0 = no limit",
        group: Group::Memory,
        change: ChangeTime::Live,
        get: |s| s.max_memory.to_string(),
        set: |s, v| put(&mut s.max_memory, memory_within(v, 0, u64::MAX)?),
    },
    ConfigKey {
        name: "maxmemory-policy",
        value: "POLICY",
        help: "what to evict: noeviction, allkeys-lru|lfu|random, volatile-lru|lfu|random|ttl",
        group: Group::Memory,
        change: ChangeTime::Live,
        get: |s| s.max_memory_policy.name().to_owned(),
        set: |s, v| {
            let policy = Policy::parse(v.as_bytes()).ok_or_else(|| {
                "argument(s) must be one of the following: noeviction, allkeys-lru, allkeys-lfu, \
                 allkeys-random, volatile-lru, volatile-lfu, volatile-random, volatile-ttl"
                    .to_owned()
            })?;
            put(&mut s.max_memory_policy, policy)
        },
    },
    ConfigKey {
        name: "maxmemory-samples",
        value: "N",
        help: "keys to compare for each eviction",
        group: Group::Memory,
        change: ChangeTime::Live,
        get: |s| s.max_memory_samples.to_string(),
        set: |s, v| put(&mut s.max_memory_samples, integer(v, 1, 64)? as u32),
    },
    ConfigKey {
        name: "tracking-table-max-keys",
        value: "N",
        help: "keys of which is known which tracking clients have read them; 0 = no limit",
        group: Group::Limits,
        change: ChangeTime::Live,
        get: |s| s.tracking_keys_max.to_string(),
        set: |s, v| {
            put(
                &mut s.tracking_keys_max,
                integer(v, 0, i64::MAX as u64)? as usize,
            )
        },
    },
    ConfigKey {
        name: "maxmemory-clients",
        value: "BYTES|PERCENT%",
        help: "memory for clients' buffers and subscriptions above which those who hold most are closed; 0 = no limit",
        group: Group::Limits,
        change: ChangeTime::Live,
        get: |s| match s.max_memory_clients_percent {
            Some(percent) => format!("{percent}%"),
            None => s.max_memory_clients.to_string(),
        },
        set: |s, v| {
            let percent = percentage(v).transpose()?;
            if percent.is_none() {
                s.max_memory_clients = memory_within(v, 0, u64::MAX)?;
            }
            put(&mut s.max_memory_clients_percent, percent)
        },
    },
    ConfigKey {
        name: "lfu-log-factor",
        value: "N",
        help: "how slowly access counters rise",
        group: Group::Memory,
        change: ChangeTime::Live,
        get: |s| s.lfu_log_factor.to_string(),
        set: |s, v| {
            put(
                &mut s.lfu_log_factor,
                integer(v, 0, i32::MAX as u64)? as u32,
            )
        },
    },
    ConfigKey {
        name: "lfu-decay-time",
        value: "MINUTES",
        help: "minutes in which an access counter falls by one; 0 = never",
        group: Group::Memory,
        change: ChangeTime::Live,
        get: |s| s.lfu_decay_time.to_string(),
        set: |s, v| {
            put(
                &mut s.lfu_decay_time,
                integer(v, 0, i32::MAX as u64)? as u32,
            )
        },
    },
    ConfigKey {
        name: "notify-keyspace-events",
        value: "FLAGS",
        help: "classes of keyspace events to publish, e.g. Ex for expired keys",
        group: Group::Expiry,
        change: ChangeTime::Live,
        get: |s| s.notify.to_string(),
        set: |s, v| {
            let flags = NotifyFlags::parse(v.as_bytes()).ok_or_else(|| {
                "Invalid event class character. Use 'Ag$lshzxeKEtmdn'.".to_owned()
            })?;
            put(&mut s.notify, flags)
        },
    },
    ConfigKey {
        name: "expired-stream",
        value: "DB NAME LENGTH [values]",
        help: "streams that get an entry for each key of a database that expires, e.g. 0 gone 1000000 values; empty = none",
        group: Group::Expiry,
        change: ChangeTime::Live,
        get: |s| s.expired_streams.to_string(),
        set: |s, v| {
            put(
                &mut s.expired_streams,
                ExpiredStreams::parse(v, DATABASES_MAX)?,
            )
        },
    },
    ConfigKey {
        name: "requirepass",
        value: "PASSWORD",
        help: "password that clients must give with AUTH; empty = none",
        group: Group::Users,
        change: ChangeTime::Live,
        get: |s| s.password.text().to_owned(),
        set: |s, v| {
            Arc::make_mut(&mut s.users).set_default_password(v);
            put(&mut s.password, Password::new(v))
        },
    },
    ConfigKey {
        name: "http-port",
        value: "PORT",
        help: "port for metrics and health over HTTP: /metrics, /healthz, /readyz; 0 = none",
        group: Group::Network,
        change: ChangeTime::AtStart,
        get: |s| s.http_port.to_string(),
        set: |s, v| put(&mut s.http_port, integer(v, 0, u16::MAX.into())? as u16),
    },
    ConfigKey {
        name: "http-bind",
        value: "ADDRESS",
        help: "address of the machine at which it is served over HTTP",
        group: Group::Network,
        change: ChangeTime::AtStart,
        get: |s| s.http_bind.name().to_owned(),
        set: |s, v| put(&mut s.http_bind, BindAddress::parse(v)?),
    },
    ConfigKey {
        name: "http-hosts",
        value: "NAME [NAME ...]",
        help: "names by which requests over HTTP may call this server, beside addresses and localhost",
        group: Group::Network,
        change: ChangeTime::Live,
        get: |s| s.http_hosts.join(" "),
        set: |s, v| {
            put(
                &mut s.http_hosts,
                v.split_whitespace().map(str::to_owned).collect(),
            )
        },
    },
    ConfigKey {
        name: "aclfile",
        value: "FILE",
        help: "file of users, a line each: user NAME RULE ...; a relative name is in dir; empty = none",
        group: Group::Users,
        change: ChangeTime::AtStart,
        get: |s| s.user_file.clone(),
        set: |s, v| put(&mut s.user_file, v.to_owned()),
    },
    ConfigKey {
        name: "acllog-max-len",
        value: "N",
        help: "how many denials ACL LOG keeps",
        group: Group::Users,
        change: ChangeTime::Live,
        get: |s| s.denials_max.to_string(),
        set: |s, v| put(&mut s.denials_max, integer(v, 0, 1 << 20)? as usize),
    },
    ConfigKey {
        name: "acl-pubsub-default",
        value: "allchannels|resetchannels",
        help: "channels that a new user may use",
        group: Group::Users,
        change: ChangeTime::Live,
        get: |s| name_of(s.all_channels, CHANNELS),
        set: |s, v| put(&mut s.all_channels, word(v, CHANNELS)?),
    },
    ConfigKey {
        name: "protected-mode",
        value: "yes|no",
        help: "without a password, serve only clients of this machine, whatever bind says",
        group: Group::Users,
        change: ChangeTime::Live,
        get: |s| name_of_bool(s.protected_mode),
        set: |s, v| put(&mut s.protected_mode, yes_or_no(v)?),
    },
    ConfigKey {
        name: "proto-max-bulk-len",
        value: "BYTES",
        help: "longest argument, and longest string that commands may build",
        group: Group::Limits,
        change: ChangeTime::Live,
        get: |s| s.bulk_max.to_string(),
        set: |s, v| put(&mut s.bulk_max, memory_within(v, 1 << 20, BULK_MAX)?),
    },
    ConfigKey {
        name: "client-query-buffer-limit",
        value: "BYTES",
        help: "longest unfinished command of a client",
        group: Group::Limits,
        change: ChangeTime::Live,
        get: |s| s.query_buffer_limit.to_string(),
        set: |s, v| {
            put(
                &mut s.query_buffer_limit,
                memory_within(v, 1 << 20, i64::MAX as u64)?,
            )
        },
    },
    ConfigKey {
        name: "client-output-buffer-limit",
        value: "CLASS HARD SOFT SECONDS",
        help: "close normal or pubsub clients whose replies pile up beyond these bytes",
        group: Group::Limits,
        change: ChangeTime::Live,
        get: |s| s.output_limits.to_string(),
        set: |s, v| {
            let updated = s.output_limits.update(v)?;
            put(&mut s.output_limits, updated)
        },
    },
    ConfigKey {
        name: "enable-debug-command",
        value: "no|yes|local",
        help: "allow DEBUG, which can make the server sleep",
        group: Group::Users,
        change: ChangeTime::AtStart,
        get: |s| name_of(s.debug_access, DEBUG_ACCESS),
        set: |s, v| put(&mut s.debug_access, word(v, DEBUG_ACCESS)?),
    },
    ConfigKey {
        name: "rdb-version-check",
        value: "strict|relaxed",
        help: "whether RESTORE refuses payloads of versions that it does not know",
        group: Group::Persistence,
        change: ChangeTime::Live,
        get: |s| name_of(s.any_dump_version, DUMP_VERSIONS),
        set: |s, v| put(&mut s.any_dump_version, word(v, DUMP_VERSIONS)?),
    },
    ConfigKey {
        name: "expiry-turn-us",
        value: "MICROSECONDS",
        help: "expiry between two looks at the sockets while deadlines are met in time",
        group: Group::Expiry,
        change: ChangeTime::Live,
        get: |s| s.expiry_turn_us.to_string(),
        set: |s, v| put(&mut s.expiry_turn_us, integer(v, 1, 100_000)?),
    },
    ConfigKey {
        name: "expiry-hold-keys",
        value: "N",
        help: "keys that expire while a shard's lock is held",
        group: Group::Expiry,
        change: ChangeTime::Live,
        get: |s| s.expiry_hold_keys.to_string(),
        set: |s, v| put(&mut s.expiry_hold_keys, integer(v, 1, 100_000)? as u32),
    },
    ConfigKey {
        name: "dir",
        value: "FOLDER",
        help: "the folder of snapshots; made when one is written",
        group: Group::Persistence,
        change: ChangeTime::AtStart,
        get: |s| s.folder.clone(),
        set: |s, v| put(&mut s.folder, text(v)?),
    },
    ConfigKey {
        name: "dbfilename",
        value: "NAME",
        help: "the snapshot: loaded at the start, and written by SAVE, BGSAVE, at save points and when the server stops",
        group: Group::Persistence,
        change: ChangeTime::AtStart,
        get: |s| s.snapshot_file.clone(),
        set: |s, v| match v {
            "." | ".." => Err("it is the name of a file".to_owned()),
            path if path.contains('/') => {
                Err("it is a name in the folder `dir`, not a path".to_owned())
            }
            // The new file's name is longer, until it takes the old one's place.
            long if long.len() > FILE_NAME_MAX => Err("the name is too long".to_owned()),
            name => put(&mut s.snapshot_file, text(name)?),
        },
    },
    ConfigKey {
        name: "rdb-version",
        value: "10|11|12|80",
        help: "the format of snapshots: of Redis 7.0; 7.2; 7.4, with the deadlines of fields; or Valkey 9, with these too",
        group: Group::Persistence,
        change: ChangeTime::Live,
        get: |s| name_of(s.file_format, FILE_FORMATS),
        set: |s, v| put(&mut s.file_format, word(v, FILE_FORMATS)?),
    },
    ConfigKey {
        name: "appendonly",
        value: "yes|no",
        help: "log each change, so that a crash loses no more than `appendfsync` says",
        group: Group::Persistence,
        change: ChangeTime::AtStart,
        get: |s| name_of_bool(s.append_only),
        set: |s, v| put(&mut s.append_only, yes_or_no(v)?),
    },
    ConfigKey {
        name: "appendfsync",
        value: "always|everysec|no",
        help: "when the log is brought to disk: before any reply tells of a change, once a second, or when the system does \
               so",
        group: Group::Persistence,
        change: ChangeTime::Live,
        get: |s| name_of(s.sync_policy, SYNC_POLICIES),
        set: |s, v| put(&mut s.sync_policy, word(v, SYNC_POLICIES)?),
    },
    ConfigKey {
        name: "appenddirname",
        value: "NAME",
        help: "the folder of the log, in `dir`",
        group: Group::Persistence,
        change: ChangeTime::AtStart,
        get: |s| s.log_folder.clone(),
        set: |s, v| match v {
            "" | "." | ".." => Err("it is the name of a folder".to_owned()),
            path if path.contains('/') => {
                Err("it is a name in the folder `dir`, not a path".to_owned())
            }
            name => put(&mut s.log_folder, text(name)?),
        },
    },
    ConfigKey {
        name: "auto-aof-rewrite-percentage",
        value: "PERCENT",
        help: "the log gets a new base when it is so long, of the base; 0: never by itself",
        group: Group::Persistence,
        change: ChangeTime::Live,
        get: |s| s.rewrite_percentage.to_string(),
        set: |s, v| put(&mut s.rewrite_percentage, integer(v, 0, i32::MAX as u64)?),
    },
    ConfigKey {
        name: "auto-aof-rewrite-min-size",
        value: "BYTES",
        help: "and at least so long",
        group: Group::Persistence,
        change: ChangeTime::Live,
        get: |s| s.rewrite_min_size.to_string(),
        set: |s, v| put(&mut s.rewrite_min_size, memory_within(v, 0, u64::MAX)?),
    },
    ConfigKey {
        name: "load-skip-unknown",
        value: "yes|no",
        help: "skip values of modules when a snapshot is loaded, instead of refusing it",
        group: Group::Persistence,
        change: ChangeTime::Live,
        get: |s| name_of_bool(s.load_skip_unknown),
        set: |s, v| put(&mut s.load_skip_unknown, yes_or_no(v)?),
    },
    ConfigKey {
        name: "save",
        value: "SECONDS CHANGES",
        help: "takes a snapshot after so many seconds with so many changes, once or more, and when the server stops; empty: \
               never",
        group: Group::Persistence,
        change: ChangeTime::Live,
        get: |s| s.save_points.to_string(),
        set: |s, v| put(&mut s.save_points, SavePoints::parse(v)?),
    },
    // Tools ask for these. The answers are true, and any other value is refused.
    ConfigKey {
        name: "daemonize",
        value: "no",
        help: "run in the background; only `no` is accepted",
        group: Group::General,
        change: ChangeTime::AtStart,
        get: |_| "no".to_owned(),
        set: |_, v| only(v, "no", "this server runs in the foreground"),
    },
];
