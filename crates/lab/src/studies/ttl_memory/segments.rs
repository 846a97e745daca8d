//! Segments of objects with like times to live, freed whole: Segcache's way.
//!
//! After Yang, Yue, Vinayak: "Segcache", NSDI 2021, and `src/storage/seg` of pelikan-io/pelikan. An object is
//! appended to the open segment of its bucket of times to live. Once a second the oldest segment of every
//! bucket is looked at, and freed if everything in it is dead. What is replaced or removed stays where it is
//! until its segment goes, unless it was the last that was left in it.
//!
//! Two differences, both in its favour. The original lets a bucket's objects die together with its shortest
//! time to live, up to a bucket's width early; here nobody dies early, so the segment waits for its youngest.
//! And what is not yet written to in an open segment does not count as held.

use std::collections::{BTreeMap, HashMap, VecDeque};

use super::course::{Event, What};
use super::request::Object;
use super::strategy::{Ledger, Strategy};
use crate::hit_ratios::replay::Hasher;
use crate::studies::expiry::strategies::NEVER;

/// How often buckets are looked at.
const SWEEP_MS: u64 = 1_000;
/// Seconds of time to live up to which buckets are so many seconds wide.
const WIDTHS_S: [(u64, u64); 3] = [(2_048, 8), (32_768, 128), (524_288, 2_048)];
/// Width beyond, and the greatest time to live that has a bucket of its own.
const WIDEST_S: (u64, u64) = (8_388_608, 32_768);

/// One object as it was written.
#[derive(Debug)]
struct Item {
    key: u64,
    deadline_ms: u64,
    /// Replaced or removed while it was alive: its memory is late for another reason.
    replaced: bool,
}

/// Objects in the order in which they were written.
#[derive(Debug, Default)]
struct Segment {
    /// The bucket's width and number.
    bucket: (u64, u64),
    items: Vec<Item>,
    bytes: u64,
    /// Items that the index still points to.
    indexed: usize,
    last_deadline_ms: u64,
}

/// The whole store.
#[derive(Debug)]
pub(super) struct Segments {
    /// Bytes after which a segment is closed.
    segment_bytes: u64,
    segments: HashMap<u64, Segment, Hasher>,
    /// Segments by bucket, oldest first; the last is open.
    buckets: BTreeMap<(u64, u64), VecDeque<u64>>,
    /// Segment and place in it.
    index: HashMap<u64, (u64, usize), Hasher>,
    bytes: u64,
    next_id: u64,
    next_sweep_ms: u64,
    ledger: Ledger,
}

impl Segments {
    pub(super) fn new(segment_bytes: u64) -> Self {
        Self {
            segment_bytes,
            segments: HashMap::default(),
            buckets: BTreeMap::new(),
            index: HashMap::default(),
            bytes: 0,
            next_id: 0,
            next_sweep_ms: SWEEP_MS,
            ledger: Ledger::default(),
        }
    }

    fn store(&mut self, key: u64, object: Object, now_ms: u64) {
        self.forget(key, now_ms);
        let bytes = u64::from(object.bytes);
        let bucket = bucket(object.deadline_ms.saturating_sub(now_ms));
        let chain = self.buckets.entry(bucket).or_default();
        let room = self.segment_bytes.saturating_sub(bytes);
        let open = chain.back().copied();
        let open = open.filter(|id| self.segments[id].bytes <= room);
        let id = open.unwrap_or_else(|| {
            self.next_id += 1;
            chain.push_back(self.next_id);
            self.next_id
        });
        let segment = self.segments.entry(id).or_insert_with(|| Segment {
            bucket,
            ..Segment::default()
        });
        segment.items.push(Item {
            key,
            deadline_ms: object.deadline_ms,
            replaced: false,
        });
        segment.bytes += bytes;
        segment.indexed += 1;
        segment.last_deadline_ms = segment.last_deadline_ms.max(object.deadline_ms);
        self.index.insert(key, (id, segment.items.len() - 1));
        self.bytes += bytes;
    }

    /// Takes a key out of the index; its bytes stay.
    fn forget(&mut self, key: u64, now_ms: u64) {
        if let Some((id, place)) = self.index.remove(&key)
            && let Some(segment) = self.segments.get_mut(&id)
        {
            segment.indexed -= 1;
            let item = &mut segment.items[place];
            item.replaced = item.deadline_ms > now_ms;
            let chain = self.buckets.entry(segment.bucket).or_default();
            if segment.indexed == 0 && chain.back() != Some(&id) {
                chain.retain(|other| *other != id);
                self.free(id, now_ms);
            }
        }
    }

    /// Frees a segment that is in no chain any more; every item is taken from the index.
    fn free(&mut self, id: u64, now_ms: u64) {
        let Some(segment) = self.segments.remove(&id) else {
            return;
        };
        self.bytes -= segment.bytes;
        self.ledger.looked += segment.items.len() as u64;
        for (place, item) in segment.items.iter().enumerate() {
            if self.index.get(&item.key) == Some(&(id, place)) {
                self.index.remove(&item.key);
            }
            if !item.replaced {
                self.ledger.freed(item.deadline_ms, now_ms);
            }
        }
    }

    fn sweep(&mut self, now_ms: u64) {
        let mut dead = Vec::new();
        for chain in self.buckets.values_mut() {
            while let Some(id) = chain.front() {
                self.ledger.looked += 1;
                if self.segments[id].last_deadline_ms > now_ms {
                    break;
                }
                dead.extend(chain.pop_front());
            }
        }
        self.buckets.retain(|_, chain| !chain.is_empty());
        for id in dead {
            self.free(id, now_ms);
        }
    }
}

impl Strategy for Segments {
    fn run_to(&mut self, now_ms: u64) {
        while self.next_sweep_ms <= now_ms {
            self.sweep(self.next_sweep_ms);
            self.next_sweep_ms += SWEEP_MS;
        }
    }

    fn apply(&mut self, event: &Event) {
        match event.what {
            // A dead object stays in its segment, whoever asks for it.
            What::Hit(_) | What::Miss => {}
            What::Delete => self.forget(event.key, event.at_ms),
            What::Store(object) => self.store(event.key, object, event.at_ms),
        }
    }

    fn held_bytes(&self) -> u64 {
        self.bytes
    }

    fn ledger(self: Box<Self>) -> Ledger {
        self.ledger
    }
}

/// The bucket of a time to live: its width and its number among those of that width.
fn bucket(ttl_ms: u64) -> (u64, u64) {
    if ttl_ms >= NEVER / 2 {
        return (NEVER, 0);
    }
    let (longest_s, widest_s) = WIDEST_S;
    let ttl_s = (ttl_ms / 1_000).min(longest_s);
    let width_s = WIDTHS_S.iter().find(|(below_s, _)| ttl_s < *below_s);
    let width_s = width_s.map_or(widest_s, |(_, width_s)| *width_s);
    (width_s, ttl_s / width_s)
}

#[cfg(test)]
mod tests {
    use super::super::course::Course;
    use super::super::course::tests::set;
    use super::super::strategy::tests::held;
    use super::*;

    #[test]
    fn a_segment_waits_for_its_youngest_and_is_freed_whole() {
        let requests = [
            set(0, 1, 40, 2_000),
            set(1_000, 2, 40, 3_500),
            // Does not fit any more.
            set(1_000, 3, 40, 2_000),
            // Another bucket.
            set(1_000, 4, 5, 20_000),
        ];
        let course = Course::of(&requests, 6_000);
        let (samples, ledger) = held(&course, Segments::new(100));
        // The first segment goes at 5 s, the second behind it in the chain with it.
        assert_eq!(samples, [40, 125, 125, 125, 125, 5, 5]);
        assert_eq!(ledger.lateness(), [3_000, 500, 2_000]);
    }

    #[test]
    fn what_was_replaced_stays_until_its_segment_is_empty_or_dead() {
        let requests = [
            set(0, 1, 60, 60_000),
            set(1_000, 1, 60, 60_000),
            set(1_500, 2, 30, 60_000),
            set(2_500, 2, 30, 60_000),
        ];
        let course = Course::of(&requests, 4_000);
        let (samples, ledger) = held(&course, Segments::new(100));
        // The first segment is closed before key 1 is written again, but nobody looks at it then: it was
        // open. Key 2's first 30 bytes are garbage in a segment that key 1 keeps alive.
        assert_eq!(samples, [60, 120, 150, 180, 180]);
        assert_eq!(course.live, [60, 60, 90, 90, 90]);
        assert!(ledger.late_ms.is_empty());
    }

    #[test]
    fn a_closed_segment_without_a_key_left_is_freed() {
        let requests = [
            set(0, 1, 60, 60_000),
            set(0, 2, 60, 60_000),
            set(1_500, 1, 60, 60_000),
        ];
        let course = Course::of(&requests, 2_000);
        let (samples, ledger) = held(&course, Segments::new(100));
        assert_eq!(samples, [120, 120, 120]);
        assert_eq!(ledger.lateness(), [] as [u64; 0]);
    }

    #[test]
    fn buckets_are_as_wide_as_segcache_s() {
        assert_eq!(bucket(20_000), (8, 2));
        assert_eq!(bucket(2_047_999), (8, 255));
        assert_eq!(bucket(3_600_000), (128, 28));
        assert_eq!(bucket(86_400_000), (2_048, 42));
        assert_eq!(bucket(1_209_600_000), (32_768, 36));
        assert_eq!(bucket(NEVER - 5).0, NEVER);
    }
}
