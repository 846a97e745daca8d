//! The comparison of a cache with its model after every step.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use tidewheel::RemovalCause;

use super::model::{Effects, Entry, Leaving, Model};
use super::op::{KEYS, TAGS};
use super::setup::{Event, Listening};
use super::value::Probe;

/// Comparisons made in this process: tests assert that they ran.
pub(crate) static COMPARED: AtomicU64 = AtomicU64::new(0);

impl Model {
    /// Compares everything. `told` asks for the events first.
    pub(super) fn compare(&mut self, effects: &Effects, told: bool) {
        COMPARED.fetch_add(1, Relaxed);
        if told {
            // Without time and budget, a pass only calls the listener.
            self.cache.advance(Duration::ZERO, 0);
        }
        let events = self.heard.take();
        self.hear(&events, effects);
        let told = told && self.setup.is_told();
        self.see(effects, told);
        if told {
            let owed: Vec<_> = self.leaving.values().flatten().collect();
            assert!(owed.is_empty(), "never announced: {owed:?}");
            self.weigh();
        }
        self.bound(effects, &events, told);
        if self.reads_statistics() {
            self.count();
        }
        if self.steps.is_multiple_of(8) {
            self.walk();
            self.cache.validate();
        }
    }

    /// Iterations over all entries, and over those with a tag.
    fn walk(&self) {
        let now = self.tick();
        let live = |wanted: &dyn Fn(&Entry) -> bool| -> Vec<(u16, u64)> {
            let live = self.entries.iter();
            let live = live.filter(|(_, entry)| entry.is_live(now) == Some(true) && wanted(entry));
            live.map(|(key, entry)| (*key, entry.id)).collect()
        };
        let mut met = Vec::new();
        for (key, value, ttl) in self.cache.entries() {
            assert_eq!(ttl, self.cache.ttl(&Probe(key.number)));
            met.push((key.number, value.id));
        }
        met.sort_unstable();
        assert_eq!(met, live(&|_| true), "an iteration over all entries");
        for tag in 0..TAGS {
            let name = tag.to_string();
            let tagged = self.cache.entries_with_tag(&name);
            let mut met: Vec<_> = tagged.map(|(key, value)| (key.number, value.id)).collect();
            met.sort_unstable();
            let has = |entry: &Entry| entry.tags.0 >> tag & 1 == 1;
            assert_eq!(met, live(&has), "an iteration over a tag");
            assert_eq!(self.cache.count_tag(&name), met.len() as u64);
        }
    }

    /// Every event is of an entry that was there, once, in order for its key, with the right cause.
    fn hear(&mut self, events: &[Event], effects: &Effects) {
        let now = self.tick();
        let lossy = matches!(self.setup.listener, Listening::Lossy(_));
        for event in events {
            self.counts.heard += 1;
            self.counts.expired += u64::from(event.cause == RemovalCause::Expired);
            self.counts.evicted += u64::from(event.cause == RemovalCause::Evicted);
            assert_eq!(
                event.lateness.is_some(),
                event.cause == RemovalCause::Expired,
                "lateness belongs to what expired: {event:?}"
            );
            let queue = self.leaving.entry(event.key).or_default();
            if lossy {
                while queue.front().is_some_and(|leaving| leaving.id != event.id) {
                    queue.pop_front();
                }
            }
            if let Some(leaving) = queue.pop_front() {
                let Leaving { id, causes } = leaving;
                assert_eq!(event.id, id, "out of order: {event:?}");
                assert!(causes.contains(&event.cause), "{event:?}, not {causes:?}");
                continue;
            }
            let entry = self.entries.remove(&event.key);
            let entry = entry.unwrap_or_else(|| panic!("announced twice: {event:?}"));
            assert_eq!(event.id, entry.id, "not what is stored: {event:?}");
            self.counts.left += 1;
            match event.cause {
                RemovalCause::Expired => {
                    let (low, high) = entry.end().expect("what expires has an end");
                    let grace = entry.grace;
                    assert!(low + grace <= now, "{entry:?} expired early, at {now}");
                    let late = event.lateness.expect("checked above").as_millis() as u64;
                    assert!(late <= now - low - grace, "lateness {late} of {entry:?}");
                    let _ = high;
                }
                RemovalCause::Evicted => {
                    assert!(self.setup.capacity().is_some(), "evicted without a bound");
                    assert!(!entry.pinned, "evicted though pinned: {entry:?}");
                    assert!(
                        Some(event.id) != effects.stored || self.is_crowded_out(&entry),
                        "refused: lighter than the capacity"
                    );
                }
                RemovalCause::Invalidated => {
                    assert!(entry.invalidated, "{entry:?} has no such tag");
                }
                cause => panic!("{entry:?} left by itself as {cause:?}"),
            }
        }
    }

    /// Every key is visible exactly as the model says; where the cache may choose, its choice is
    /// learnt.
    pub(super) fn see(&mut self, effects: &Effects, told: bool) {
        let now = self.tick();
        assert_eq!(self.cache.now(), Duration::from_nanos(self.now()));
        for key in 0..KEYS {
            let asked = self.ask(key);
            let Some(entry) = self.entries.get_mut(&key) else {
                assert_eq!(asked, None, "{key} should not be there");
                continue;
            };
            let expected = entry.is_live(now);
            match asked {
                Some((id, end)) => {
                    assert_eq!(id, entry.id, "the value of {key}");
                    assert_ne!(expected, Some(false), "{key} outlives {entry:?} at {now}");
                    let pinned = self.cache.is_pinned(&Probe(key));
                    assert_eq!(pinned, entry.pinned, "whether {key} is pinned");
                    match (entry.end(), end) {
                        (None, None) => {}
                        (Some((low, high)), Some(end)) => {
                            assert!(
                                (low..=high).contains(&end),
                                "{key} ends at {end}, not {low} to {high}; now {now}"
                            );
                            entry.learn(end);
                        }
                        (expected, end) => panic!("{key} ends at {end:?}, not {expected:?}"),
                    }
                }
                None if expected == Some(true) => {
                    assert!(
                        !told,
                        "{key} is gone, and nobody was told: {entry:?} at {now}"
                    );
                    assert!(
                        effects.makes_room && self.setup.capacity().is_some(),
                        "{key} is gone early: {entry:?} at {now}"
                    );
                    assert!(!entry.pinned, "{key} was evicted though pinned");
                    let entry = entry.clone();
                    let id = entry.id;
                    self.entries.remove(&key);
                    assert!(
                        Some(id) != effects.stored || self.is_crowded_out(&entry),
                        "{key} was refused: lighter than the capacity"
                    );
                    self.expect(key, id, vec![RemovalCause::Evicted]);
                }
                None if entry.invalidated => {}
                None => {
                    // Jitter has chosen an end that is over.
                    if let Some((low, high)) = &mut entry.hard {
                        *high = (*high).min(now.max(*low));
                    }
                }
            }
        }
    }

    /// The cache holds exactly the entries whose removal was not announced.
    fn weigh(&self) {
        assert_eq!(self.cache.len(), self.entries.len(), "entries");
        let weight: u64 = self
            .entries
            .values()
            .map(|entry| u64::from(entry.weight))
            .sum();
        assert_eq!(self.cache.weight(), weight, "weight");
        assert_eq!(self.counts.heard, self.counts.left, "events");
        if self.reads_statistics() {
            let stats = self.cache.stats();
            assert_eq!(stats.expirations, self.counts.expired, "expirations");
            assert_eq!(
                stats.evictions + stats.rejected,
                self.counts.evicted,
                "evicted or refused"
            );
        }
    }

    /// The statistics are sums over all steps. Adding them up takes longer than most steps, so some
    /// steps leave it out.
    fn reads_statistics(&self) -> bool {
        self.steps.is_multiple_of(8)
    }

    fn count(&self) {
        let stats = self.cache.stats();
        assert_eq!(stats.inserts, self.counts.inserts, "inserts");
        assert_eq!(stats.hits, self.counts.hits, "hits");
        assert_eq!(stats.misses, self.counts.misses, "misses");
        assert_eq!(stats.stale_hits, self.counts.stale, "stale hits");
        assert_eq!(stats.stale_on_error, self.counts.stale_on_error);
        assert_eq!(stats.loads, self.counts.loads, "loads");
        assert_eq!(stats.load_errors, self.counts.load_errors, "load errors");
        assert_eq!(stats.rejected, self.counts.rejected, "rejected");
        assert_eq!((stats.listener_panics, stats.drop_panics), (0, 0));
    }

    fn bound(&mut self, effects: &Effects, events: &[Event], told: bool) {
        let now = self.tick();
        if let Some(capacity) = self.capacity {
            let weight = self.cache.weight();
            // Pinned entries may exceed the capacity. After they are unpinned, the next insertion
            // evicts the surplus.
            let most = capacity.max(self.pinned_weight()).max(self.weight_before);
            assert!(weight <= most, "{weight} is over the capacity");
            self.weight_before = weight;
        }
        let live = self.entries.values();
        let live = live
            .filter(|entry| entry.is_live(now) == Some(true))
            .count();
        let len = self.cache.len();
        assert!((live..=self.entries.len()).contains(&len), "{len} entries");
        let due = |slack: u64| {
            self.entries
                .values()
                .filter_map(Entry::gone_at)
                .filter(|gone| *gone <= now + slack)
                .count()
        };
        if effects.driven {
            // The driver ran at this tick, so it has removed everything that is due.
            if told {
                assert_eq!(due(0), 0, "due, and still there");
                let swept = self.entries.values().all(|entry| !entry.invalidated);
                assert!(swept, "invalidated, and still there");
            }
            if let Some(expired) = effects.expired.filter(|_| told && self.setup.prompt) {
                let heard = events.iter().filter(|e| e.cause == RemovalCause::Expired);
                assert_eq!(expired, heard.count() as u64, "expired in this pass");
            }
        }
        // Unless events are behind, nobody would be missed by who sleeps until the next deadline.
        let ends = self.entries.values().filter_map(Entry::gone_at);
        if told && let Some(gone) = ends.min() {
            let next = self.cache.next_deadline().expect("a deadline is pending");
            let end = Duration::from_millis(gone);
            assert!(
                next <= end.saturating_sub(self.cache.now()),
                "the driver would sleep too long"
            );
        }
        let evicted = events.iter().any(|e| e.cause == RemovalCause::Evicted);
        let refused = effects.refused || effects.stored.is_none();
        if told && self.setup.prompt && evicted && !refused && self.setup.shards == 1 {
            assert_eq!(due(0), 0, "a live entry was evicted before one that is due");
        }
    }

    /// Closes the cache: every entry is announced, and every instance is dropped.
    pub(crate) fn finish(mut self) {
        self.all_leave(RemovalCause::Closed);
        self.cache.close();
        let events = self.heard.take();
        self.hear(&events, &Effects::default());
        if self.setup.is_told() {
            let owed: Vec<_> = self.leaving.values().flatten().collect();
            assert!(owed.is_empty(), "never announced: {owed:?}");
        }
        if matches!(self.setup.listener, Listening::Lossy(_)) {
            let dropped = self.cache.stats().events_dropped;
            let came = self.counts.inserts + self.counts.rejected;
            assert_eq!(
                self.counts.heard + dropped,
                came,
                "an event was lost without being counted, or told twice"
            );
        }
        assert_eq!(self.cache.len(), 0);
        self.cache.validate();
        assert_eq!(self.ledger.living(), 0, "instances outlive the close");
        drop(self.cache);
        assert_eq!(self.ledger.living(), 0);
    }
}
