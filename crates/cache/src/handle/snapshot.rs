//! Snapshots: all live entries with what is left of their time, to be stored and loaded again.
//!
//! The remaining time of each entry is counted from the moment of [`Cache::snapshot`], and again
//! from the moment of [`Cache::restore`]: a step of the wall clock in between changes nothing. Who
//! knows how long it was down says so with [`Cache::restore_after`]. Who trusts the wall clock uses
//! [`Cache::restore_aged`]: a snapshot keeps the wall time at which it was taken, for that and for
//! those who want to know.

use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use tidewheel_store::{Attributes, Slot, Soft};

use super::cache::Cache;
use crate::core::inner::Inner;
use crate::shard::Shard;
use crate::shard::config::own_grace;
use crate::shard::ends::StatedLifetime;
use crate::shard::tags::TAGS_PER_ENTRY_MAX;
use crate::shard::write::Prepared;
use tidewheel_time::{Moment, TICK_NANOS};

/// The layout that is written, and the only one that is read.
const LAYOUT: u32 = 3;

/// Entries that are copied in one hold of a shard's reader lock, about.
const ENTRIES_PER_HOLD: usize = 32;

/// The live entries of a cache, with what is left of their times to live, their soft deadlines and
/// tags. For any format of serde, binary ones too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot<K, V> {
    layout: u32,
    /// Wall time since the Unix epoch, in nanoseconds.
    taken_at_ns: u64,
    entries: Vec<SavedEntry<K, V>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct SavedEntry<K, V> {
    key: K,
    value: V,
    /// The time left; `None` if the entry has no end.
    left_ns: Option<u64>,
    /// The time left until the end that reads do not move, if the entry has an idle time too.
    limit_ns: Option<u64>,
    /// The time left until it is no longer fresh; `None` if it is fresh to the end.
    soft_ns: Option<u64>,
    /// The notes of its stated lifetime, for its refresh. A point in time counts from the moment of
    /// the snapshot.
    #[serde(rename = "said")]
    stated: [u64; 2],
    /// The time for which it is kept after its end, if the caller stated one.
    stale_for_ms: Option<u64>,
    tags: Vec<String>,
    /// True if it has too many tags to tell apart, and any tag invalidates it.
    any_tag: bool,
}

impl<K, V> Snapshot<K, V> {
    /// Returns the number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// The wall time at which it was taken.
    #[must_use]
    pub fn taken_at(&self) -> SystemTime {
        let since = Duration::from_nanos(self.taken_at_ns);
        // Nothing that was written is too far ahead for the clock.
        UNIX_EPOCH.checked_add(since).unwrap_or(UNIX_EPOCH)
    }

    /// Returns whether there are no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

/// Why a snapshot was not restored.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RestoreError {
    /// It was written in a layout that this version does not know.
    UnknownLayout(u32),
    /// An entry lists this many tags. A snapshot that this library wrote never lists more than 32.
    TooManyTags(usize),
}

impl fmt::Display for RestoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownLayout(layout) => write!(
                f,
                "the snapshot has layout {layout}, this version reads {LAYOUT}: take it again"
            ),
            Self::TooManyTags(tags) => write!(
                f,
                "an entry of the snapshot lists {tags} tags, at most {TAGS_PER_ENTRY_MAX} are written: \
                 take it again"
            ),
        }
    }
}

impl std::error::Error for RestoreError {}

/// # Snapshots
impl<K: Hash + Eq + Clone, V: Clone, S: BuildHasher> Cache<K, V, S> {
    /// Copies all live entries. Weakly consistent, as [`iter`](Self::iter) is; times are counted
    /// from when this is called.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot<K, V> {
        let inner = &*self.inner;
        let now = inner.now();
        let wall = inner
            .time
            .wall()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let mut entries = Vec::new();
        for cell in &inner.shards {
            let mut cursor = Some(0);
            while let Some(from) = cursor {
                let (shard, present) = inner.read_now(cell);
                cursor = shard.store.scan(from, ENTRIES_PER_HOLD, |slot| {
                    if shard.is_live(slot, present) {
                        entries.push(inner.kept(&shard, slot, now));
                    }
                });
            }
        }
        Snapshot {
            layout: LAYOUT,
            taken_at_ns: u64::try_from(wall.as_nanos()).unwrap_or(u64::MAX),
            entries,
        }
    }
}

impl<K: Hash + Eq, V, S: BuildHasher> Cache<K, V, S> {
    /// Stores the entries of a snapshot; what was left of their time begins now. Returns how many
    /// were stored.
    ///
    /// Entries that are there already are newer, and stay. Weights are weighed again, and the
    /// capacity is kept: of more entries than it allows, some are evicted. Jitter and bounds of
    /// TTLs do not apply.
    ///
    /// # Errors
    ///
    /// When the snapshot has a layout of another version, or is not as one is written. Then nothing
    /// is stored.
    pub fn restore(&self, snapshot: Snapshot<K, V>) -> Result<u64, RestoreError> {
        self.restore_after(snapshot, Duration::ZERO)
    }

    /// As [`restore`](Self::restore), when so much time has passed since the snapshot was taken:
    /// entries whose time ended meanwhile are left out.
    ///
    /// # Errors
    ///
    /// As [`restore`](Self::restore).
    pub fn restore_after(
        &self,
        snapshot: Snapshot<K, V>,
        passed: Duration,
    ) -> Result<u64, RestoreError> {
        if snapshot.layout != LAYOUT {
            return Err(RestoreError::UnknownLayout(snapshot.layout));
        }
        let tags = snapshot.entries.iter().map(|kept| kept.tags.len()).max();
        if let Some(tags) = tags.filter(|tags| *tags > TAGS_PER_ENTRY_MAX) {
            return Err(RestoreError::TooManyTags(tags));
        }
        let passed = u64::try_from(passed.as_nanos()).unwrap_or(u64::MAX);
        let now = self.inner.now();
        let mut stored = 0;
        for kept in snapshot.entries {
            stored += u64::from(self.restore_one(kept, passed, now));
        }
        Ok(stored)
    }

    /// As [`restore_after`](Self::restore_after), by the wall clock: entries have aged while the
    /// process was down, or the file lay on a disk. For snapshots that may be old when they are
    /// read.
    ///
    /// The wall clock may have been set in between, on this machine or by the other one's being
    /// wrong. If it shows a time before [`Snapshot::taken_at`], no time has passed; if it was set
    /// forward, entries end early by as much.
    ///
    /// # Errors
    ///
    /// As [`restore`](Self::restore).
    pub fn restore_aged(&self, snapshot: Snapshot<K, V>) -> Result<u64, RestoreError> {
        let now = self.inner.time.wall();
        let passed = now.duration_since(snapshot.taken_at()).unwrap_or_default();
        self.restore_after(snapshot, passed)
    }

    fn restore_one(&self, kept: SavedEntry<K, V>, passed: u64, now: Moment) -> bool {
        let inner = &*self.inner;
        let own_grace = own_grace(kept.stale_for_ms.map(Duration::from_millis));
        let grace = inner.rules.config.grace(own_grace);
        let stated = StatedLifetime::from_notes(kept.stated).with_cap(|left| {
            let end = now.tick().saturating_add(left);
            end.saturating_sub(passed / TICK_NANOS)
        });
        let deadline = |left: Option<u64>| {
            left.map(|left| {
                let left = Duration::from_nanos(left.saturating_sub(passed));
                now.end(left).saturating_add(grace)
            })
        };
        let ends = [kept.left_ns, kept.limit_ns];
        if ends.into_iter().flatten().any(|left| left <= passed) {
            inner.counters.discard_pair(kept.key, kept.value);
            return false;
        }
        let soft = kept.soft_ns.map_or(Soft::NEVER, |left| {
            Soft::at(now.end(Duration::from_nanos(left.saturating_sub(passed))))
        });
        let hash = inner.hash(&kept.key);
        let weight = inner.rules.config.weight(&kept.key, &kept.value);
        let fits = inner.fits(hash, &kept.key, weight);
        if !fits {
            inner.counters.discard_pair(kept.key, kept.value);
            return false;
        }
        let tags = match kept.any_tag {
            true => inner.rules.tags.hold_any(),
            false => inner.rules.tags.hold_names(&kept.tags),
        };
        let prepared = Prepared {
            attributes: Attributes {
                deadline: deadline(kept.left_ns),
                weight,
                soft,
                label: tags.label(),
                limit: deadline(kept.limit_ns),
                notes: stated.notes(),
                grace: own_grace,
            },
            tags,
            now,
            fits,
        };
        self.insert_prepared_if_absent(hash, kept.key, kept.value, prepared)
    }
}

impl<K: Clone, V: Clone, S> Inner<K, V, S> {
    /// A copy of an entry. Runs under the reader lock.
    fn kept(&self, shard: &Shard<K, V, S>, slot: Slot, now: Moment) -> SavedEntry<K, V> {
        let store = &shard.store;
        let left = |tick| u64::try_from(now.until(tick).as_nanos()).unwrap_or(u64::MAX);
        let attributes = store.attributes(slot);
        let tags = self.rules.tags.names(attributes.label);
        let stated = StatedLifetime::from_notes(attributes.notes);
        SavedEntry {
            key: store.key(slot).clone(),
            value: store.value(slot).clone(),
            left_ns: shard.end_of(slot).map(left),
            limit_ns: attributes
                .limit
                .map(|limit| left(limit.saturating_sub(self.rules.config.grace(attributes.grace)))),
            soft_ns: attributes.soft.tick().map(left),
            stated: stated
                .with_cap(|end| end.saturating_sub(now.tick()))
                .notes(),
            stale_for_ms: attributes.grace.checked_sub(1),
            any_tag: tags.is_none(),
            tags: tags.unwrap_or_default(),
        }
    }
}
