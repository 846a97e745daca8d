//! Measures hit ratios under a limit, where dead objects take the room of live ones.
//!
//! The limit is a number of objects, as the optimum for objects of many sizes is out of reach (it
//! is NP-hard). An object that is stored has its deadline from the course without a limit: an
//! object that was evicted and is fetched again comes with the rest of its time, as if its origin
//! had set its end. So every policy has the same hits to win, each for keeping one object from one
//! request to the next, and the optimum is Belady's rule over those.

use anyhow::Result;
use clap::ValueEnum;

use super::course::Course;
use super::ours::Ours;
use super::strategy::Strategy as _;
use crate::hit_ratios::bounds::{Event, Object, RequestKind, lru, optimum};
use crate::names;
use crate::studies::expiry::strategies::NEVER;

/// The policy decides what stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Policy {
    /// The offline optimum, which knows requests and deadlines.
    Opt,
    /// Least recently used, dead or alive.
    Lru,
    /// Least recently used, once no dead object is left.
    LruExpiredFirst,
    /// Tidewheel's cache.
    Tidewheel,
    /// The same cache, not told of deadlines: its client looks at them, as one does with a cache
    /// that has no times to live.
    TidewheelUntold,
}

names::display_as_named!(Policy);

impl Policy {
    /// Reads that find their key alive, of a cache of so many objects.
    pub(super) fn hits(self, course: &Course, capacity: usize) -> Result<u64> {
        Ok(match self {
            Self::Opt => optimum(&course.events, capacity),
            Self::Lru => lru(&course.events, capacity, false),
            Self::LruExpiredFirst => lru(&course.events, capacity, true),
            Self::Tidewheel => ours(&course.events, capacity, true)?,
            Self::TidewheelUntold => ours(&course.events, capacity, false)?,
        })
    }
}

/// The real cache. Untold of deadlines it keeps all for ever: what is found dead is removed by the
/// client.
fn ours(events: &[Event], capacity: usize, told: bool) -> Result<u64> {
    let mut cache = Ours::new(Some(capacity))?;
    let mut hits = 0;
    for event in events {
        cache.run_to(event.at_ms);
        let object = match event.what {
            RequestKind::Hit(_) if cache.get(event.key) => {
                hits += 1;
                continue;
            }
            RequestKind::Hit(object) | RequestKind::Store(object) => object,
            RequestKind::Miss if told => {
                cache.get(event.key);
                continue;
            }
            RequestKind::Miss => {
                cache.remove(event.key);
                continue;
            }
        };
        let (bytes, deadline_ms) = (object.bytes, if told { object.deadline_ms } else { NEVER });
        cache.store(event.key, Object { bytes, deadline_ms }, event.at_ms);
    }
    Ok(hits)
}

#[cfg(test)]
mod tests {
    use super::super::course::tests::{get, set};
    use super::super::mix::MIXES;
    use super::*;

    fn hits(policy: Policy, course: &Course, capacity: usize) -> u64 {
        policy.hits(course, capacity).expect("runs")
    }

    #[test]
    fn the_dead_take_the_place_of_the_living_under_lru_alone() {
        let requests = [
            set(0, 1, 1, 60_000),
            set(0, 2, 1, 1_000),
            set(2_000, 3, 1, 60_000),
            get(3_000, 1),
            get(3_000, 3),
        ];
        let course = Course::of(&requests, 4_000);
        // Two places: LRU evicts key 1, though key 2 is dead.
        assert_eq!(hits(Policy::Lru, &course, 2), 1);
        assert_eq!(hits(Policy::LruExpiredFirst, &course, 2), 2);
        assert_eq!(hits(Policy::Opt, &course, 2), 2);
        // With one place nothing can be had but one of the two.
        assert_eq!(hits(Policy::Opt, &course, 1), 1);
    }

    #[test]
    fn no_policy_beats_the_optimum_and_all_reach_it_with_room_for_everything() {
        for mix in MIXES.iter() {
            let course = Course::of(&mix.requests(0.25, 0.1, 5), 900_000);
            for share in [0.1, 0.5] {
                let capacity = (course.live_objects_mean * share) as usize;
                let best = hits(Policy::Opt, &course, capacity);
                assert!(best <= course.hits);
                for policy in Policy::value_variants() {
                    let found = hits(*policy, &course, capacity);
                    let of = &mix.name;
                    assert!(found <= best, "{of} {share} {policy}: {found} of {best}");
                }
            }
            for policy in Policy::value_variants() {
                let found = hits(*policy, &course, course.events.len());
                assert_eq!(found, course.hits, "{} {policy:?}", mix.name);
            }
        }
    }
}
