//! The policy over a plain slab: what it must never do, and traces on which it must beat LRU.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::region::MAX_HITS;
use super::*;

/// Names an entry to the policy and counts what the policy looks at.
#[derive(Debug, Default)]
struct Slab {
    slots: Vec<Option<Entry>>,
    free: Vec<u32>,
    looks: std::cell::Cell<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    key: u64,
    state: u8,
    weight: u32,
    pinned: bool,
}

impl Slab {
    fn get(&self, id: u32) -> Option<Entry> {
        *self.slots.get(id as usize)?
    }

    fn entry(&mut self, id: u32) -> &mut Entry {
        self.slots[id as usize].as_mut().expect("a live entry")
    }
}

impl Residents for Slab {
    fn state(&self, id: u32) -> Option<u8> {
        self.looks.set(self.looks.get() + 1);
        self.get(id).map(|entry| entry.state)
    }
    fn set_state(&mut self, id: u32, state: u8) {
        assert!(state < 16, "four bits");
        self.entry(id).state = state;
    }
    fn is_pinned(&self, id: u32) -> bool {
        self.get(id).expect("asked of live entries only").pinned
    }
    fn weight(&self, id: u32) -> u32 {
        self.get(id).expect("asked of live entries only").weight
    }
    fn fingerprint(&self, id: u32) -> Option<u32> {
        Some(fingerprint(
            self.get(id).expect("asked of live entries only").key,
        ))
    }
    fn end(&self) -> u32 {
        self.slots.len() as u32
    }
}

/// A cache that does what the store does, with a capacity in weight.
struct Cache {
    slab: Slab,
    policy: Policy,
    index: HashMap<u64, u32>,
    total: u64,
    capacity: u64,
    /// True if a new entry takes the slot of the one that is evicted for it.
    exchanges: bool,
}

impl Cache {
    fn new(capacity: u64) -> Self {
        Self {
            slab: Slab::default(),
            policy: Policy::new(),
            index: HashMap::new(),
            total: 0,
            capacity,
            exchanges: false,
        }
    }

    fn exchanging(capacity: u64) -> Self {
        Self {
            exchanges: true,
            ..Self::new(capacity)
        }
    }

    /// Asks for a key and stores it if it is missing.
    fn access(&mut self, key: u64) -> bool {
        let hit = self.hit(key);
        if !hit {
            self.insert(key, 1);
        }
        hit
    }

    fn hit(&mut self, key: u64) -> bool {
        let Some(&id) = self.index.get(&key) else {
            return false;
        };
        let entry = self.slab.entry(id);
        if let Some(state) = Policy::hit(entry.state) {
            entry.state = state;
        }
        true
    }

    fn insert(&mut self, key: u64, weight: u32) {
        let total = self.total + u64::from(weight);
        let fingerprint = fingerprint(key);
        let admitted = self.policy.admit(fingerprint, weight, total, self.capacity);
        if self.exchanges && total > self.capacity {
            self.evict();
        }
        let id = self.put(key, weight, admitted.state());
        let place = QueuedEntry { id, fingerprint };
        self.policy.settle(&self.slab, place, admitted);
        if total <= self.capacity {
            self.policy.make_way(&mut self.slab);
        }
        while self.total > self.capacity {
            if self.evict().is_none() {
                break;
            }
        }
    }

    fn put(&mut self, key: u64, weight: u32, state: u8) -> u32 {
        let entry = Entry {
            key,
            state,
            weight,
            pinned: false,
        };
        let id = match self.slab.free.pop() {
            Some(id) => id,
            None => {
                self.slab.slots.push(None);
                self.slab.slots.len() as u32 - 1
            }
        };
        self.slab.slots[id as usize] = Some(entry);
        self.index.insert(key, id);
        self.total += u64::from(weight);
        id
    }

    fn evict(&mut self) -> Option<u64> {
        self.slab.looks.set(0);
        let id = self.policy.victim(&mut self.slab).map(|victim| victim.id);
        let most = 2 * (CHOOSING_STEPS + LAST_STEPS + CHOOSING_STEPS);
        assert!(
            self.slab.looks.get() <= most,
            "{} looks",
            self.slab.looks.get()
        );
        let entry = self.slab.get(id?).expect("a victim lives");
        assert!(!entry.pinned, "a victim is not pinned");
        self.take(id?);
        Some(entry.key)
    }

    fn remove(&mut self, key: u64) {
        if let Some(&id) = self.index.get(&key) {
            let entry = self.take(id);
            self.policy.removed(entry.state, entry.weight);
        }
    }

    fn take(&mut self, id: u32) -> Entry {
        let entry = self.slab.slots[id as usize].take().expect("a live entry");
        self.slab.free.push(id);
        self.index.remove(&entry.key);
        self.total -= u64::from(entry.weight);
        entry
    }

    /// Moves an entry to the lowest vacant slot.
    fn compact(&mut self, key: u64) {
        let Some(&from) = self.index.get(&key) else {
            return;
        };
        self.slab
            .free
            .sort_unstable_by_key(|id| std::cmp::Reverse(*id));
        let Some(to) = self.slab.free.pop() else {
            return;
        };
        self.slab.slots[to as usize] = self.slab.slots[from as usize].take();
        self.slab.free.push(from);
        self.index.insert(key, to);
        self.policy.moved(&self.slab, to, fingerprint(key));
    }

    fn validate(&self) {
        let live = || self.slab.slots.iter().flatten();
        let weight_in = |probation: bool| -> u64 {
            live()
                .filter(|entry| (Region::of(entry.state) == Region::Probation) == probation)
                .map(|entry| u64::from(entry.weight))
                .sum()
        };
        assert_eq!(weight_in(true), self.policy.probation.weight(), "probation");
        assert_eq!(weight_in(false), self.policy.main.total(), "main");
        assert_eq!(live().count(), self.policy.entries, "entries");
        self.policy.probation.validate(&self.slab);
    }
}

/// A well-mixed key (Stafford's finaliser).
fn mixed(key: u64) -> u64 {
    let key = (key ^ (key >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let key = (key ^ (key >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    key ^ (key >> 31)
}

fn fingerprint(key: u64) -> u32 {
    (mixed(key.wrapping_add(0x9e37_79b9_7f4a_7c15)) >> 32) as u32
}

struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed(self.0) % end
    }

    /// Key ranks of which low ones are frequent: about what Zipf's law gives.
    fn skewed(&mut self, keys: u64) -> u64 {
        let exponent = self.below(1 << 20) as f64 / f64::from(1 << 20);
        (keys as f64).powf(exponent) as u64
    }
}

/// Hits of the policy and of LRU, both of `capacity` entries.
fn hits(capacity: u64, trace: impl Iterator<Item = u64>) -> (u64, u64) {
    let mut ours = Cache::new(capacity);
    let mut last_used: HashMap<u64, u64> = HashMap::new();
    let mut order: BTreeMap<u64, u64> = BTreeMap::new();
    let mut hits = (0, 0);
    for (now, key) in (0..).zip(trace) {
        hits.0 += u64::from(ours.access(key));
        if let Some(before) = last_used.insert(key, now) {
            hits.1 += 1;
            order.remove(&before);
        }
        order.insert(now, key);
        if order.len() as u64 > capacity {
            let (_, oldest) = order.pop_first().expect("not empty");
            last_used.remove(&oldest);
        }
    }
    ours.validate();
    hits
}

#[test]
fn random_operations_keep_the_books() {
    for seed in 0..8 {
        let mut random = Random(seed);
        let mut cache = Cache::new(300);
        cache.exchanges = seed % 2 == 1;
        let mut pinned = HashSet::new();
        for step in 0..20_000 {
            let key = random.below(1_000);
            match random.below(12) {
                0 => cache.remove(key),
                1 => cache.compact(key),
                2 => {
                    if let Some(&id) = cache.index.get(&key) {
                        let old = cache.slab.get(id).expect("live");
                        let new = random.below(4) as u32;
                        cache.slab.entry(id).weight = new;
                        cache.total = cache.total - u64::from(old.weight) + u64::from(new);
                        cache.policy.reweighed(old.state, old.weight, new);
                    }
                }
                3 if pinned.len() < 20 => {
                    if let Some(&id) = cache.index.get(&key) {
                        cache.slab.entry(id).pinned = true;
                        pinned.insert(key);
                    }
                }
                4 => {
                    cache.capacity = 250 + random.below(100);
                }
                5 => {
                    cache.evict();
                }
                _ => {
                    if !cache.hit(key) {
                        pinned.remove(&key);
                        cache.insert(key, random.below(4) as u32);
                    }
                }
            }
            if step % 64 == 0 {
                cache.validate();
            }
        }
    }
}

/// The place of a key that was removed and stored again counts for its new entry, as long as it has
/// the old slot. So a victim may be queued a second time: it was moved up while it was on its way
/// out.
#[test]
fn a_victim_that_is_queued_twice_leaves_once() {
    let mut cache = Cache::new(100);
    for key in 0..1_000 {
        cache.insert(key, 1);
        cache.remove(key);
        cache.insert(key, 1);
        cache.validate();
    }
}

#[test]
fn pinned_entries_stay_and_a_cache_of_them_has_no_victim() {
    let mut cache = Cache::new(u64::MAX - 1);
    for key in 0..100 {
        cache.insert(key, 1);
        if key != 40 {
            let id = cache.index[&key];
            cache.slab.entry(id).pinned = true;
        }
    }
    assert_eq!(cache.evict(), Some(40));
    assert_eq!(cache.evict(), None);
    cache.validate();
}

#[test]
fn a_policy_without_capacity_keeps_no_queue() {
    let mut cache = Cache::new(u64::MAX);
    for key in 0..1_000 {
        cache.insert(key, 1);
    }
    assert_eq!(cache.policy.bytes(), 0);
    cache.validate();
}

#[test]
fn entries_that_expire_on_probation_do_not_fill_the_queue() {
    let mut cache = Cache::new(10_000);
    for key in 0..1_000_000 {
        cache.insert(key, 1);
        if key >= 100 {
            cache.remove(key - 100);
        }
    }
    cache.validate();
    let bytes = cache.policy.bytes();
    assert!(bytes < 16 * 1024, "{bytes} bytes for 100 entries");
}

#[test]
fn a_hit_writes_nothing_once_saturated() {
    let mut state = Region::Probation.with_hits(0);
    let mut writes = 0;
    while let Some(next) = Policy::hit(state) {
        assert_eq!(Region::of(next), Region::Probation);
        state = next;
        writes += 1;
    }
    assert_eq!(writes, MAX_HITS);
}

#[test]
fn a_loop_larger_than_the_cache_is_mostly_hit() {
    // Just over the cache, within the reach of the ghosts, beyond it.
    for (period, least) in [(550, 80), (900, 45), (2_000, 20)] {
        let (ours, lru) = hits(500, (0..200_000).map(|step| step % period));
        assert_eq!(lru, 0);
        assert!(
            ours * 100 / 200_000 >= least,
            "{ours} hits in a loop of {period}"
        );
    }
}

#[test]
fn scans_do_not_drive_the_frequent_keys_out() {
    // Bursts of 2,000 keys that never return between 2,000 skewed ones.
    let mut random = Random(7);
    let trace = (0..400_000).map(|step| {
        if step / 2_000 % 2 == 0 {
            random.skewed(20_000)
        } else {
            1_000_000 + step
        }
    });
    let (ours, lru) = hits(1_000, trace);
    assert!(
        ours * 100 > lru * 115,
        "{ours} hits, LRU {lru}: 15 % more expected"
    );
}

/// Probation's share follows a rate that is never quite the same, so it goes up and down a little.
/// Entries that were in it for a while only because it was larger do not get a place in the main
/// region.
#[test]
fn a_share_that_goes_up_and_down_gives_no_places_away() {
    let mut random = Random(9);
    let mut cache = Cache::exchanging(5_000);
    // Favourites, strangers, and one stranger in 200 that is asked for twice.
    let is_asked_again = |key: u64| mixed(key) % 200 == 0;
    let mut places = 0;
    for step in 0..400_000 {
        cache.access(random.below(5_500));
        let stranger = 1_000_000 + step;
        cache.access(stranger);
        if is_asked_again(stranger) {
            cache.access(stranger);
        }
        let passed = stranger - 1_000;
        let has_place = !is_asked_again(passed) && cache.index.contains_key(&passed);
        places += u64::from(step > 200_000 && has_place);
    }
    assert!(places < 1_500, "{places} of 200,000 strangers have a place");
}

/// A ghost that is believed is used up. One that is not is kept, and knows that its key was asked
/// for.
#[test]
fn a_key_that_comes_back_is_believed_or_known_as_missed() {
    let mut random = Random(13);
    let mut cache = Cache::exchanging(500);
    let (mut believed, mut missed, mut known) = (0, 0, 0);
    for _ in 0..100_000 {
        let key = random.skewed(20_000);
        let before = cache.policy.ghost.recall(fingerprint(key));
        if cache.access(key) || before.is_none() {
            continue;
        }
        let after = cache.policy.ghost.recall(fingerprint(key));
        match Region::of(cache.slab.get(cache.index[&key]).expect("stored").state) {
            Region::Returned => believed += 1,
            _ => {
                missed += 1;
                known += u32::from(after.is_some_and(|ghost| ghost.was_missed));
            }
        }
    }
    assert!(believed > 1_000 && missed > 1_000, "{believed}, {missed}");
    // The eviction for it may have been the one too many for its set of ghosts.
    assert!(known * 100 > missed * 98, "{known} of {missed} are known");
}

/// Keys are written in turn, and each about once asked for again: after 1 to 200 others were
/// written.
fn read_soon_after_write(requests: u64) -> impl Iterator<Item = u64> {
    (0..requests).map(|step| {
        let newest = 1_000_000 + step / 2;
        if step % 2 == 0 {
            newest
        } else {
            newest - 1 - mixed(step) % 200
        }
    })
}

/// In this workload only the probation queue helps, and the main region does not.
#[test]
fn what_is_read_soon_after_it_was_written_is_kept_as_long_as_by_lru() {
    for capacity in [500, 1_000] {
        let (ours, lru) = hits(capacity, read_soon_after_write(400_000));
        assert!(lru > 150_000, "{lru}");
        assert!(
            ours * 100 > lru * 95,
            "{ours} hits in {capacity} entries, LRU {lru}"
        );
    }
}

#[test]
fn a_shifting_working_set_is_followed() {
    // Favourites move on by one key every ten steps: what LRU is best at.
    let mut random = Random(11);
    let trace = (0..400_000).map(|step| step / 10 + random.skewed(4_000));
    let (ours, lru) = hits(1_000, trace);
    assert!(ours * 100 > lru * 93, "{ours} hits, LRU {lru}");
}

/// Each key is asked for five times: again when up to `gap` others were written, and so on. Then
/// never again.
fn written_and_read_for_a_while(keys: u64, gap: u64) -> impl Iterator<Item = u64> {
    let mut random = Random(5);
    let mut requests = Vec::new();
    for key in 0..keys {
        let mut at = key * 8;
        for _ in 0..5 {
            requests.push((at, key));
            at += 1 + random.below(gap * 8);
        }
    }
    requests.sort_unstable();
    requests.into_iter().map(|(_, key)| key)
}

/// Most keys are hit on probation, and hit again later. They stay there, rather than move to a
/// small main region.
#[test]
fn a_working_set_that_moves_on_is_followed_as_by_lru() {
    for (gap, percent) in [(100, 90), (150, 82), (200, 97)] {
        let (ours, lru) = hits(500, written_and_read_for_a_while(40_000, gap));
        assert!(
            ours * 100 > lru * percent,
            "{ours} hits, LRU {lru}, read again within {gap}"
        );
    }
}

/// A missing key comes back each time, while the ghosts still remember it. It does not drive out
/// what is in the cache.
#[test]
fn a_loop_that_nearly_fits_is_hit_like_by_the_optimum() {
    for (capacity, period) in [(750, 1_011), (900, 1_011), (100, 1_011), (80, 90)] {
        let mut cache = Cache::exchanging(capacity);
        let ours: u64 = (0..500_000)
            .map(|step| u64::from(cache.access(step % period)))
            .sum();
        let most = 500_000 * (capacity - 1) / (period - 1);
        assert!(
            ours * 100 > most * 97,
            "{ours} hits of {most}: {capacity} entries, a loop of {period}"
        );
    }
}

#[test]
fn the_policy_forgets_a_loop_that_has_ended() {
    let count = |cache: &mut Cache, requests: u64| -> u64 {
        let mut random = Random(3);
        (0..requests)
            .map(|_| u64::from(cache.access(1_000_000 + random.skewed(20_000))))
            .sum()
    };
    let mut fresh = Cache::new(500);
    let mut taught = Cache::new(500);
    for step in 0..100_000 {
        taught.access(step % 900);
    }
    assert!(taught.policy.trust.doubts(), "doubts ghosts");
    assert!(taught.policy.share.is_least());
    let (fresh, taught) = (count(&mut fresh, 100_000), count(&mut taught, 100_000));
    assert!(
        taught * 100 > fresh * 98,
        "{taught} hits, {fresh} without the loop"
    );
}

#[test]
fn the_policy_forgets_reads_after_writes_that_have_ended() {
    let count = |cache: &mut Cache| -> u64 {
        let mut random = Random(3);
        (0..200_000)
            .map(|_| u64::from(cache.access(random.skewed(20_000))))
            .sum()
    };
    let mut fresh = Cache::new(500);
    let mut taught = Cache::new(500);
    for key in read_soon_after_write(100_000) {
        taught.access(key);
    }
    assert!(taught.policy.share.has_extra(), "probation has grown");
    let (fresh, taught) = (count(&mut fresh), count(&mut taught));
    assert!(
        taught * 100 > fresh * 98,
        "{taught} hits, {fresh} without the reads after writes"
    );
}

#[test]
fn the_memory_is_bounded_by_the_capacity() {
    let mut cache = Cache::new(10_000);
    for key in 0..200_000 {
        cache.access(key);
    }
    let bytes = cache.policy.bytes();
    assert!(bytes <= 4 * 10_000, "{bytes} bytes");
}
