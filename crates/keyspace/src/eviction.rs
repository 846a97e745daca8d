//! Eviction policies of `maxmemory`: the public names, mapped onto one urgency of entries.
//!
//! Entries that are due go first, under every policy. Then the most urgent one goes of those that
//! are known ([`candidates`](crate::candidates)). Policies of use draw `maxmemory-samples` entries
//! at random for each visit of a shard. Where all are equally urgent, one entry is drawn:
//!
//! | name | candidates | urgency: the lowest goes first |
//! |---|---|---|
//! | `noeviction` | none | – |
//! | `allkeys-lru` | all | the second of the last access |
//! | `volatile-lru` | keys with a deadline | the second of the last access |
//! | `allkeys-lfu` | all | the decayed frequency |
//! | `volatile-lfu` | keys with a deadline | the decayed frequency |
//! | `allkeys-random` | all | equal: the first drawn goes |
//! | `volatile-random` | keys with a deadline | equal: the first drawn goes |
//! | `volatile-ttl` | keys with a deadline | the deadline |

use tidewheel_store::Slot;

use crate::access::Recency;
use crate::random::Random;
use crate::value::{Entries, own_deadline};

/// Nothing that was found may be evicted.
pub(crate) const NOTHING: u64 = u64::MAX;

/// An eviction policy of `maxmemory`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum Policy {
    /// Nothing: commands that may add data are refused.
    #[default]
    NoEviction,
    /// The least recently used of all keys.
    AllKeysLru,
    /// The least recently used of the keys with a deadline.
    VolatileLru,
    /// The least frequently used of all keys.
    AllKeysLfu,
    /// The least frequently used of the keys with a deadline.
    VolatileLfu,
    /// Any key.
    AllKeysRandom,
    /// Any key with a deadline.
    VolatileRandom,
    /// The key with the nearest deadline.
    VolatileTtl,
}

/// The order in which candidates are evicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EvictionOrder {
    None,
    Idle,
    Rare,
    Any,
    Soonest,
}

impl Policy {
    /// All of them with their public names: (policy, name, only keys with a deadline, order).
    const TABLE: [(Self, &'static str, bool, EvictionOrder); 8] = [
        (Self::NoEviction, "noeviction", false, EvictionOrder::None),
        (Self::AllKeysLru, "allkeys-lru", false, EvictionOrder::Idle),
        (Self::VolatileLru, "volatile-lru", true, EvictionOrder::Idle),
        (Self::AllKeysLfu, "allkeys-lfu", false, EvictionOrder::Rare),
        (Self::VolatileLfu, "volatile-lfu", true, EvictionOrder::Rare),
        (
            Self::AllKeysRandom,
            "allkeys-random",
            false,
            EvictionOrder::Any,
        ),
        (
            Self::VolatileRandom,
            "volatile-random",
            true,
            EvictionOrder::Any,
        ),
        (
            Self::VolatileTtl,
            "volatile-ttl",
            true,
            EvictionOrder::Soonest,
        ),
    ];

    /// The name in `maxmemory-policy`.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::TABLE[self as usize].1
    }

    /// The policy of that name (case-insensitive).
    #[must_use]
    pub fn parse(name: &[u8]) -> Option<Self> {
        let row = Self::TABLE
            .iter()
            .find(|row| row.1.as_bytes().eq_ignore_ascii_case(name))?;
        Some(row.0)
    }

    /// All policies.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::TABLE.into_iter().map(|row| row.0)
    }

    /// One bit for each policy, set if it records access as a frequency. Commands test it without
    /// reading the table.
    pub(crate) const FREQUENCY_BITS: u8 = {
        let mut bits = 0;
        let mut i = 0;
        while i < Self::TABLE.len() {
            if matches!(Self::TABLE[i].3, EvictionOrder::Rare) {
                bits |= 1 << i;
            }
            i += 1;
        }
        bits
    };

    /// True if access is recorded as a frequency, not as a clock.
    #[must_use]
    pub fn counts_frequency(self) -> bool {
        Self::FREQUENCY_BITS >> self as u8 & 1 == 1
    }

    /// True if the idle time decides.
    #[must_use]
    pub fn uses_idle_time(self) -> bool {
        Self::TABLE[self as usize].3 == EvictionOrder::Idle
    }

    pub(crate) fn volatile_only(self) -> bool {
        Self::TABLE[self as usize].2
    }

    pub(crate) fn from_index(index: u8) -> Self {
        Self::TABLE
            .get(index as usize)
            .map_or(Self::NoEviction, |row| row.0)
    }
}

/// The choice of one victim: policy and samples.
#[derive(Debug, Clone, Copy)]
pub(crate) struct VictimChoice {
    pub(crate) policy: Policy,
    pub(crate) recency: Recency,
    pub(crate) samples: u32,
}

/// Chunks of 30 timer records that are looked at for one victim when few keys have deadlines.
const CHUNKS: u32 = 32;

/// The most samples that a configuration can ask for.
const SAMPLES_MAX: u32 = 64;

impl VictimChoice {
    fn order(&self) -> EvictionOrder {
        Policy::TABLE[self.policy as usize].3
    }

    /// True if the nearest deadline decides.
    pub(crate) fn goes_by_deadline(&self) -> bool {
        self.order() == EvictionOrder::Soonest
    }

    /// True if some keys are more urgent than others.
    pub(crate) fn has_order(&self) -> bool {
        !matches!(self.order(), EvictionOrder::None | EvictionOrder::Any)
    }

    /// The lower, the sooner it goes. `None` if it may not go: a deadline of a member is none of
    /// its key.
    pub(crate) fn urgency(&self, store: &Entries, slot: Slot, clock: u64) -> Option<u64> {
        let deadline = match self.policy.volatile_only() {
            true => Some(own_deadline(store, slot)?),
            false => None,
        };
        Some(match self.order() {
            EvictionOrder::None | EvictionOrder::Any => 1,
            EvictionOrder::Idle => {
                let idle = Recency::idle_seconds(store.access(slot), clock);
                (clock / 1_000).saturating_sub(idle.into()).max(1)
            }
            EvictionOrder::Rare => 1 + u64::from(self.recency.frequency(store.access(slot), clock)),
            EvictionOrder::Soonest => deadline?.clamp(1, NOTHING - 1),
        })
    }

    /// Entries that are drawn for one visit: if any may go, the first one goes.
    fn samples_of_one(&self) -> u32 {
        match self.has_order() {
            false => 1,
            true => self.samples.clamp(1, SAMPLES_MAX),
        }
    }

    /// True if an entry of the store may be evicted. `with_deadline` counts the keys with a
    /// deadline of their own.
    pub(crate) fn has_candidates(&self, store: &Entries, with_deadline: usize) -> bool {
        match self.policy {
            Policy::NoEviction => false,
            policy if policy.volatile_only() => with_deadline > 0,
            _ => !store.is_empty(),
        }
    }

    /// Draws entries of a store that may go, and shows each with its urgency to `offer`. Returns
    /// whether there was any. `turn` says which timer records are looked at when few keys have
    /// deadlines; the caller raises it after a draw in vain.
    pub(crate) fn draw(
        &self,
        store: &Entries,
        clock: u64,
        random: &mut Random,
        turn: u32,
        mut offer: impl FnMut(Slot, u64),
    ) -> bool {
        if !self.has_candidates(store, store.timed()) {
            return false;
        }
        let samples = self.samples_of_one();
        let mut met = 0;
        let mut consider = |slot: Slot| {
            if let Some(urgency) = self.urgency(store, slot, clock) {
                offer(slot, urgency);
                met += 1;
            }
            met
        };
        let mut met = 0;
        for _ in 0..samples {
            if let Some(slot) = store.sample(random.next()) {
                met = consider(slot);
            }
        }
        // Keys with deadlines are rare: timer records lead to them. First from a random place, so
        // that the candidates differ; then from one place after the other, so that each is found
        // some time.
        let places = [random.next() as u32, turn.wrapping_mul(CHUNKS)];
        for from in places.into_iter().filter(|_| self.policy.volatile_only()) {
            if met == 0 {
                store.sample_timed(from, CHUNKS, |slot| {
                    met = consider(slot);
                    met < samples
                });
            }
        }
        met > 0
    }
}

#[cfg(test)]
mod tests {
    use tidewheel_store::{KeyHasher, NewValue};

    use super::*;

    const NOW: u64 = 1 << 40;

    #[test]
    fn the_table_is_in_the_order_of_the_variants() {
        for (i, policy) in Policy::all().enumerate() {
            assert_eq!(policy as usize, i);
            assert_eq!(
                Policy::parse(policy.name().to_uppercase().as_bytes()),
                Some(policy)
            );
            assert_eq!(Policy::from_index(i as u8), policy);
        }
        assert_eq!(Policy::parse(b"allkeys"), None);
    }

    /// The most urgent entry of those that are drawn.
    fn most_urgent(choice: &VictimChoice, store: &Entries, clock: u64) -> Option<Slot> {
        let mut best: Option<(u64, Slot)> = None;
        choice.draw(store, clock, &mut Random::new(3), 0, |slot, urgency| {
            if best.is_none_or(|(least, _)| urgency < least) {
                best = Some((urgency, slot));
            }
        });
        best.map(|(_, slot)| slot)
    }

    fn victim_key(
        policy: Policy,
        recency: Recency,
        entries: &[(&str, u32, Option<u64>)],
    ) -> Option<String> {
        let hasher = KeyHasher::new(1);
        let mut store = Entries::new(hasher.clone());
        for (key, access, deadline) in entries {
            let hash = hasher.hash(key.as_bytes());
            let value = NewValue::Inline(b"v");
            let slot = store.insert(hash, key.as_bytes(), 0, value, *deadline, NOW);
            store.set_access(slot, *access);
        }
        let choice = VictimChoice {
            policy,
            recency,
            samples: 64,
        };
        let slot = most_urgent(&choice, &store, NOW)?;
        Some(String::from_utf8_lossy(store.key(slot)).into_owned())
    }

    #[test]
    fn each_policy_picks_its_victim() {
        let seconds = Recency::Clock.of_new(NOW);
        let lfu = Recency::Frequency {
            log_factor: 10,
            decay_minutes: 1,
        };
        let minutes = lfu.of_new(NOW) & !0xff;
        let at = |ms| Some(NOW + ms);
        let by_clock = [
            ("old", seconds - 90, None),
            ("oldish", seconds - 50, at(50_000)),
            ("new", seconds, at(9_000)),
        ];
        let by_count = [
            ("rare", minutes | 1, None),
            ("some", minutes | 9, at(1)),
            ("hot", minutes | 99, at(2)),
        ];
        let pick = |policy, recency, entries: &[_]| victim_key(policy, recency, entries);
        let clock = Recency::Clock;
        assert_eq!(pick(Policy::NoEviction, clock, &by_clock), None);
        assert_eq!(
            pick(Policy::AllKeysLru, clock, &by_clock).as_deref(),
            Some("old")
        );
        assert_eq!(
            pick(Policy::VolatileLru, clock, &by_clock).as_deref(),
            Some("oldish")
        );
        assert_eq!(
            pick(Policy::VolatileTtl, clock, &by_clock).as_deref(),
            Some("new")
        );
        assert_eq!(
            pick(Policy::AllKeysLfu, lfu, &by_count).as_deref(),
            Some("rare")
        );
        assert_eq!(
            pick(Policy::VolatileLfu, lfu, &by_count).as_deref(),
            Some("some")
        );
        assert!(pick(Policy::AllKeysRandom, clock, &by_clock).is_some());
        assert_ne!(
            pick(Policy::VolatileRandom, clock, &by_clock).as_deref(),
            Some("old")
        );
        assert_eq!(pick(Policy::VolatileTtl, clock, &[("a", 0, None)]), None);
    }

    #[test]
    fn a_lone_key_with_a_deadline_is_found_among_many_without() {
        let hasher = KeyHasher::new(1);
        let mut store = Entries::new(hasher.clone());
        for i in 0..2_000_u64 {
            let deadline = (i == 1_234).then_some(NOW + 5);
            let hash = hasher.hash(&i.to_le_bytes());
            store.insert(
                hash,
                &i.to_le_bytes(),
                0,
                NewValue::Inline(b""),
                deadline,
                NOW,
            );
        }
        let choice = VictimChoice {
            policy: Policy::VolatileTtl,
            recency: Recency::Clock,
            samples: 1,
        };
        let slot = most_urgent(&choice, &store, NOW).expect("its timer record is the only one");
        assert_eq!(store.key(slot), 1_234_u64.to_le_bytes());
    }
}
