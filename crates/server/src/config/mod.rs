//! Settings: their values, and the live copy that CONFIG SET exchanges.

mod cli;
mod file;
mod password;
mod table;
mod value;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

pub(crate) use cli::{Invocation, Refusal, invocation};
pub(crate) use password::Password;
pub(crate) use table::{Change, KEYS, Key, key};
pub(crate) use value::{DebugAccess, LogLevel, OutputLimit, OutputLimits};

/// Every value that a key of the table sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) port: u16,
    pub(crate) bind: Vec<String>,
    /// Event loops; 0 = one for each core.
    pub(crate) threads: usize,
    pub(crate) shards: usize,
    pub(crate) databases: usize,
    pub(crate) max_clients: usize,
    /// Seconds of silence after which a client is closed; 0 = never.
    pub(crate) timeout_s: u64,
    /// Seconds between keep-alive probes; 0 = none.
    pub(crate) tcp_keepalive_s: u64,
    pub(crate) max_memory: u64,
    pub(crate) max_memory_policy: String,
    pub(crate) max_memory_samples: u32,
    pub(crate) max_memory_clients: u64,
    pub(crate) lfu_log_factor: u32,
    pub(crate) lfu_decay_time: u32,
    pub(crate) notify: String,
    pub(crate) password: Password,
    pub(crate) bulk_max: u64,
    pub(crate) query_buffer_limit: u64,
    pub(crate) output_limits: OutputLimits,
    pub(crate) debug_access: DebugAccess,
    /// Microseconds of expiry in a turn while deadlines are met in time.
    pub(crate) expiry_turn_us: u64,
    /// Keys that one hold of a shard's lock may expire.
    pub(crate) expiry_hold_keys: u32,
    pub(crate) log_level: LogLevel,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            port: 6379,
            bind: vec!["127.0.0.1".to_owned()],
            threads: 0,
            shards: 64,
            databases: 16,
            max_clients: 10_000,
            timeout_s: 0,
            tcp_keepalive_s: 300,
            max_memory: 0,
            max_memory_policy: "noeviction".to_owned(),
            max_memory_samples: 5,
            max_memory_clients: 0,
            lfu_log_factor: 10,
            lfu_decay_time: 1,
            notify: String::new(),
            password: Password::default(),
            bulk_max: 512 << 20,
            query_buffer_limit: 1 << 30,
            output_limits: OutputLimits::default(),
            debug_access: DebugAccess::No,
            expiry_turn_us: 25,
            expiry_hold_keys: 32,
            log_level: LogLevel::Notice,
        }
    }
}

/// The settings in force. Loops keep a copy, and compare one number before each batch of commands; so a
/// command that is sent after a change was answered meets the change.
#[derive(Debug)]
pub(crate) struct Live {
    current: Mutex<Arc<Settings>>,
    version: AtomicU64,
    /// The file that the server was started with, for INFO.
    pub(crate) file: Option<std::path::PathBuf>,
}

impl Live {
    pub(crate) fn new(settings: Settings, file: Option<std::path::PathBuf>) -> Self {
        Self {
            current: Mutex::new(Arc::new(settings)),
            version: AtomicU64::new(1),
            file,
        }
    }

    /// Changes whenever the settings do.
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    pub(crate) fn current(&self) -> Arc<Settings> {
        Arc::clone(&self.current.lock())
    }

    /// Whether clients must give a password, as of now.
    pub(crate) fn asks_password(&self) -> bool {
        self.current.lock().password.is_asked()
    }

    /// Whether a password is the right one, as of now. A long one takes a while: nothing is locked meanwhile.
    pub(crate) fn admits(&self, password: &[u8]) -> bool {
        self.current().password.admits(password)
    }

    /// Puts `change` into force when it succeeds as a whole; `applied` sees the result while no
    /// other change can come between.
    pub(crate) fn change<E>(
        &self,
        change: impl FnOnce(&mut Settings) -> Result<(), E>,
        applied: impl FnOnce(&Settings),
    ) -> Result<(), E> {
        let mut current = self.current.lock();
        let mut next = Settings::clone(&current);
        change(&mut next)?;
        applied(&next);
        *current = Arc::new(next);
        self.version.fetch_add(1, Ordering::Release);
        Ok(())
    }
}
