//! Settings that may change while the keyspace runs.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};

use crate::access::Recency;
use crate::eviction::Policy;
use crate::format::FileFormat;
use crate::packing::Packing;

/// A call that is expected to take longer is long.
const LONG_NS: u64 = 1_000_000;

/// The settings that may change while the keyspace runs. Commands read each with one relaxed load.
#[derive(Debug)]
pub struct Rules {
    /// Bytes above which commands that may add data evict first or are refused; 0 is no limit.
    pub maxmemory: AtomicU64,
    /// Entries that one eviction compares (`maxmemory-samples`).
    pub maxmemory_samples: AtomicU32,
    /// The slowness of the frequency counter (`lfu-log-factor`).
    pub lfu_log_factor: AtomicU32,
    /// Minutes after which the frequency counter falls by one (`lfu-decay-time`); 0 is never.
    pub lfu_decay_time: AtomicU32,
    /// The most bytes in one string (`proto-max-bulk-len`).
    pub proto_max_bulk_len: AtomicU64,
    /// True if RESTORE takes payloads whose checksum is wrong: for tests (`DEBUG
    /// SET-SKIP-CHECKSUM-VALIDATION`).
    pub skip_checksums: AtomicBool,
    /// True if RESTORE takes payloads of unknown versions (`rdb-version-check
    /// relaxed`).
    pub any_dump_version: AtomicBool,
    /// A command that is expected to take longer runs on a thread of its own, in nanoseconds. Tests
    /// lower it.
    pub long_ns: AtomicU64,
    /// The limits up to which collections stay packed.
    pub packing: Packing,
    /// True if [`expire`](crate::Keyspace::expire) removes anything. Write it through
    /// [`set_active_expire`](crate::Keyspace::set_active_expire), which wakes the sleepers.
    pub(crate) active_expire: AtomicBool,
    policy: AtomicU8,
    file_format: AtomicU8,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            maxmemory: AtomicU64::new(0),
            maxmemory_samples: AtomicU32::new(5),
            lfu_log_factor: AtomicU32::new(10),
            lfu_decay_time: AtomicU32::new(1),
            proto_max_bulk_len: AtomicU64::new(512 * 1024 * 1024),
            skip_checksums: AtomicBool::new(false),
            any_dump_version: AtomicBool::new(false),
            long_ns: AtomicU64::new(LONG_NS),
            packing: Packing::default(),
            active_expire: AtomicBool::new(true),
            policy: AtomicU8::new(Policy::NoEviction as u8),
            file_format: AtomicU8::new(FileFormat::default() as u8),
        }
    }
}

impl Rules {
    /// The eviction policy of `maxmemory`.
    #[must_use]
    pub fn policy(&self) -> Policy {
        Policy::from_index(self.policy.load(Relaxed))
    }

    /// Changes the eviction policy of `maxmemory`.
    pub fn set_policy(&self, policy: Policy) {
        self.policy.store(policy as u8, Relaxed);
    }

    /// The form in which snapshots are written.
    #[must_use]
    pub fn file_format(&self) -> FileFormat {
        FileFormat::from_index(self.file_format.load(Relaxed))
    }

    /// Changes the form in which snapshots are written from now on.
    pub fn set_file_format(&self, format: FileFormat) {
        self.file_format.store(format as u8, Relaxed);
    }

    /// The way in which accesses are recorded.
    #[inline]
    pub(crate) fn recency(&self) -> Recency {
        if !self.counts_frequency() {
            return Recency::Clock;
        }
        Recency::Frequency {
            log_factor: self.lfu_log_factor.load(Relaxed),
            decay_minutes: self.lfu_decay_time.load(Relaxed),
        }
    }

    /// True if accesses are counted, not timed.
    #[inline(always)]
    pub(crate) fn counts_frequency(&self) -> bool {
        Policy::FREQUENCY_BITS >> (self.policy.load(Relaxed) & 7) & 1 != 0
    }

    /// True if expired keys are removed although no command touches them.
    #[must_use]
    pub fn active_expire(&self) -> bool {
        self.active_expire.load(Relaxed)
    }
}
