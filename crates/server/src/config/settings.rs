//! The settings: their values, each in its own type, and the defaults.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tidewheel_keyspace::{FileFormat, NotifyFlags, Policy};

use super::collections::Collections;
use super::diagnosis::Diagnosis;
use super::expired_streams::ExpiredStreams;
use super::logging::LogSettings;
use super::password::Password;
use super::save_points::SavePoints;
use super::tls::TlsSettings;
use super::value::{BindAddress, DebugAccess, OutputLimits, Port, SanitizeDump, SyncPolicy};
use crate::users::Users;

/// Every value that a key of the table sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) port: Port,
    pub(crate) bind: Vec<BindAddress>,
    /// The path of the Unix socket; empty: none.
    pub(crate) unix_socket: String,
    /// The permissions of its file; without, what the system's mask leaves.
    pub(crate) unix_socket_mode: Option<u32>,
    pub(crate) tls: TlsSettings,
    /// Event loops; 0 = one for each core.
    pub(crate) threads: usize,
    pub(crate) shards: usize,
    pub(crate) databases: usize,
    pub(crate) max_clients: usize,
    /// Seconds of silence after which a client is closed; 0 = never.
    pub(crate) timeout_s: u64,
    /// Milliseconds after which a script that has changed nothing is ended; 0: never.
    pub(crate) script_ms: u64,
    /// Seconds between keep-alive probes; 0 = none.
    pub(crate) tcp_keepalive_s: u64,
    pub(crate) max_memory: u64,
    pub(crate) max_memory_policy: Policy,
    pub(crate) max_memory_samples: u32,
    /// The most keys of which is known who has read them; 0 is no limit.
    pub(crate) tracking_keys_max: usize,
    pub(crate) max_memory_clients: u64,
    /// The limit `maxmemory-clients` in percent of `maxmemory`, if it was written so.
    pub(crate) max_memory_clients_percent: Option<u64>,
    pub(crate) lfu_log_factor: u32,
    pub(crate) lfu_decay_time: u32,
    pub(crate) notify: NotifyFlags,
    /// The streams that keep what expires.
    pub(crate) expired_streams: ExpiredStreams,
    pub(crate) password: Password,
    /// The port at which metrics are shown over HTTP; 0 = none.
    pub(crate) http_port: u16,
    pub(crate) http_bind: BindAddress,
    /// Names by which requests may call this server, beside addresses and `localhost`.
    pub(crate) http_hosts: Vec<String>,
    /// Who may come in, and do what.
    pub(crate) users: Arc<Users>,
    /// The file that users are taken from; empty if there is none.
    pub(crate) user_file: String,
    /// How many denials are kept.
    pub(crate) denials_max: usize,
    /// A new user may use all channels.
    pub(crate) all_channels: bool,
    /// Without a password only clients of this machine are served.
    pub(crate) protected_mode: bool,
    pub(crate) bulk_max: u64,
    pub(crate) query_buffer_limit: u64,
    pub(crate) output_limits: OutputLimits,
    pub(crate) debug_access: DebugAccess,
    /// Microseconds of expiry in a turn while deadlines are met in time.
    pub(crate) expiry_turn_us: u64,
    /// Keys that one hold of a shard's lock may expire.
    pub(crate) expiry_hold_keys: u32,
    pub(crate) log: LogSettings,
    /// Where snapshots are.
    pub(crate) folder: String,
    pub(crate) snapshot_file: String,
    /// The form of snapshots.
    pub(crate) file_format: FileFormat,
    /// Each change is logged.
    pub(crate) append_only: bool,
    /// The log's folder, in `folder`.
    pub(crate) log_folder: String,
    pub(crate) sync_policy: SyncPolicy,
    /// The log gets a new base when it has grown by so many percent of the base, and so many bytes.
    pub(crate) rewrite_percentage: u64,
    pub(crate) rewrite_min_size: u64,
    /// When the server takes a snapshot by itself.
    pub(crate) save_points: SavePoints,
    /// Values of modules in a snapshot are skipped.
    pub(crate) load_skip_unknown: bool,
    /// RESTORE takes payloads of versions that are not known yet.
    pub(crate) any_dump_version: bool,
    pub(crate) collections: Collections,
    pub(crate) diagnosis: Diagnosis,
    pub(crate) ignored: IgnoredSettings,
}

/// Settings that are accepted because configurations have them, and that have no effect here: how
/// often periodic work is done, which memory is freed in the background, how hard expiry tries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IgnoredSettings {
    pub(crate) hz: u64,
    pub(crate) dynamic_hz: bool,
    pub(crate) active_expire_effort: u64,
    pub(crate) lazy_eviction: bool,
    pub(crate) lazy_expire: bool,
    pub(crate) lazy_server_del: bool,
    pub(crate) lazy_user_del: bool,
    pub(crate) lazy_user_flush: bool,
    pub(crate) sanitize_dump: SanitizeDump,
}

impl Default for IgnoredSettings {
    fn default() -> Self {
        Self {
            hz: 10,
            dynamic_hz: true,
            active_expire_effort: 1,
            lazy_eviction: false,
            lazy_expire: false,
            lazy_server_del: false,
            lazy_user_del: false,
            lazy_user_flush: false,
            sanitize_dump: SanitizeDump::No,
        }
    }
}

impl Settings {
    /// Returns the number of event loops to start.
    pub(crate) fn loops(&self) -> usize {
        match self.threads {
            0 => std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            threads => threads,
        }
    }

    /// True if replies wait until what they tell is on disk.
    pub(crate) fn holds_replies(&self) -> bool {
        self.append_only && self.sync_policy == SyncPolicy::Always
    }

    /// The name of the file that is locked while a server may write the snapshot.
    pub(crate) fn snapshot_lock(&self) -> String {
        format!("{}.lock", self.snapshot_file)
    }

    /// The file of users. A relative name is looked for beside the data, as in the public servers.
    pub(crate) fn user_path(&self) -> PathBuf {
        Path::new(&self.folder).join(&self.user_file)
    }

    /// Returns the users that there are without a line of any: the default user, with its password.
    pub(crate) fn plain_users(&self) -> Users {
        let mut users = Users::default();
        if !self.password.text().is_empty() {
            users.set_default_password(self.password.text());
        }
        users
    }

    /// Says which settings cannot be together, if there are some.
    pub(crate) fn check(&self) -> Result<(), String> {
        let log = &self.log_folder;
        if *log == self.snapshot_file || *log == self.snapshot_lock() {
            return Err(format!(
                "--appenddirname {log}: that is the name of the snapshot (--dbfilename) or of its lock"
            ));
        }
        self.check_expired_streams()
            .map_err(|why| format!("--expired-stream: {why}"))
    }

    /// Says which database of `expired-stream` does not exist, if there is one.
    pub(crate) fn check_expired_streams(&self) -> Result<(), String> {
        let mut streams = self.expired_streams.0.iter();
        match streams.find(|stream| stream.db as usize >= self.databases) {
            None => Ok(()),
            Some(stream) => Err(format!(
                "there is no database {}: --databases is {}",
                stream.db, self.databases
            )),
        }
    }

    /// Computes the settings that follow from others.
    pub(crate) fn derive(&mut self) {
        if let Some(percent) = self.max_memory_clients_percent {
            let limit = u128::from(self.max_memory) * u128::from(percent) / 100;
            self.max_memory_clients = u64::try_from(limit).unwrap_or(u64::MAX);
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            port: Port::Number(6379),
            bind: vec![BindAddress::loopback()],
            unix_socket: String::new(),
            unix_socket_mode: None,
            tls: TlsSettings::default(),
            threads: 0,
            shards: 64,
            databases: 16,
            max_clients: 10_000,
            timeout_s: 0,
            script_ms: 5_000,
            tcp_keepalive_s: 300,
            max_memory: 0,
            max_memory_policy: Policy::NoEviction,
            max_memory_samples: 5,
            tracking_keys_max: 1_000_000,
            max_memory_clients: 0,
            max_memory_clients_percent: None,
            lfu_log_factor: 10,
            lfu_decay_time: 1,
            notify: NotifyFlags::NONE,
            expired_streams: ExpiredStreams::default(),
            password: Password::default(),
            http_port: 0,
            http_bind: BindAddress::loopback(),
            http_hosts: Vec::new(),
            users: Arc::default(),
            user_file: String::new(),
            denials_max: 128,
            all_channels: false,
            protected_mode: true,
            bulk_max: 512 << 20,
            query_buffer_limit: 1 << 30,
            output_limits: OutputLimits::default(),
            debug_access: DebugAccess::No,
            expiry_turn_us: 25,
            expiry_hold_keys: 32,
            log: LogSettings::default(),
            folder: "tidewheel-data".to_owned(),
            snapshot_file: "dump.rdb".to_owned(),
            file_format: FileFormat::default(),
            append_only: false,
            log_folder: "log".to_owned(),
            sync_policy: SyncPolicy::EverySecond,
            rewrite_percentage: 100,
            rewrite_min_size: 64 << 20,
            save_points: SavePoints::default(),
            load_skip_unknown: false,
            any_dump_version: false,
            collections: Collections::default(),
            diagnosis: Diagnosis::default(),
            ignored: IgnoredSettings::default(),
        }
    }
}
