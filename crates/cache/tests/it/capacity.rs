//! One capacity over many shards: nothing that fits is refused, nothing is lost in the accounts.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidewheel::{Builder, Cache, Driver, Lifetime, ManualClock, RemovalCause};

const MS: Duration = Duration::from_millis(1);

type Events = Arc<Mutex<Vec<(u32, RemovalCause)>>>;

/// Values are weights.
fn builder(capacity: u64, shards: usize) -> (Builder<u32, u32>, ManualClock, Events) {
    let clock = ManualClock::new();
    let events = Events::default();
    let heard = Arc::clone(&events);
    let builder = Cache::builder()
        .max_capacity(capacity)
        .weigher(|_, weight| *weight)
        .no_default_ttl()
        .shards(shards)
        .clock(clock.clone())
        .driver(Driver::Manual)
        .eviction_listener(move |removal| {
            let event = (removal.key, removal.cause);
            heard.lock().expect("unpoisoned").push(event);
        });
    (builder, clock, events)
}

fn cache(capacity: u64, shards: usize) -> Cache<u32, u32> {
    builder(capacity, shards).0.build().expect("valid")
}

#[test]
fn an_entry_as_heavy_as_the_capacity_is_accepted_and_others_make_way() {
    for shards in [1, 2, 16, 256] {
        let cache = cache(1000, shards);
        for round in 0..12 {
            for key in 0..700 {
                cache.insert(round * 1000 + key, 1 + key % 3);
                assert!(cache.weight() <= 1000);
            }
            let heavy = 1_000_000 + round;
            cache.insert(heavy, 1000);
            assert_eq!(
                cache.peek(&heavy),
                Some(1000),
                "{shards} shards, round {round}"
            );
            assert_eq!((cache.len(), cache.weight()), (1, 1000));
            cache.insert(round, 1);
            assert_eq!(cache.peek(&round), Some(1), "a light one takes its place");
            cache.validate();
        }
        assert_eq!(cache.stats().rejected, 0);
    }
}

#[test]
fn every_weight_up_to_the_capacity_is_accepted_at_any_time() {
    for shards in [1, 4, 64] {
        let cache = cache(100, shards);
        let mut state = 1_u64;
        for step in 0..5000_u32 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(step.into());
            let weight = (state >> 33) as u32 % 101;
            let key = (state >> 40) as u32 % 200;
            cache.insert(key, weight);
            assert_eq!(
                cache.peek(&key),
                Some(weight),
                "step {step}, {shards} shards"
            );
            assert!(cache.weight() <= 100, "step {step}: {}", cache.weight());
            if step % 7 == 0 {
                cache.invalidate(&(key / 2));
            }
            if step % 501 == 0 {
                cache.invalidate_all();
            }
        }
        cache.validate();
    }
}

#[test]
fn nothing_is_lost_in_the_accounts() {
    for shards in [1, 8, 128] {
        let (builder, clock, _) = builder(10_000, shards);
        let cache = builder.build().expect("valid");
        for round in 0..20_u32 {
            for key in 0..3000 {
                let ttl = Duration::from_millis(u64::from(key % 10));
                match key % 4 {
                    0 => cache.insert_with_ttl(key, key % 50, ttl),
                    _ => cache.insert(key, key % 50),
                }
            }
            match round % 4 {
                0 => cache.invalidate_all(),
                1 => {
                    for key in 0..3000 {
                        cache.remove(&key);
                    }
                }
                2 => {
                    for key in 0..3000 {
                        cache.expire(&key, 3 * MS, tidewheel::Condition::Always);
                    }
                    clock.advance(10 * MS);
                }
                _ => {
                    for key in 0..3000 {
                        cache.insert(key, 0);
                    }
                    cache.invalidate_all();
                }
            }
            clock.advance(10 * MS);
            while cache.advance(cache.now(), u32::MAX).backlog {}
            assert_eq!((cache.len(), cache.weight()), (0, 0), "round {round}");
            // Weight that was lent and never given back would be missing here.
            cache.insert(99_999, 10_000);
            assert_eq!(
                cache.peek(&99_999),
                Some(10_000),
                "{shards} shards, round {round}"
            );
            assert_eq!(cache.weight(), 10_000);
        }
    }
}

#[test]
fn a_cache_of_many_shards_holds_what_it_is_said_to_hold() {
    for shards in [1, 4, 32] {
        let capacity = 32_000;
        let cache = cache(capacity, shards);
        for key in 0..200_000 {
            cache.insert(key, 1);
        }
        let weight = cache.weight();
        assert!(weight <= capacity);
        // A portion or two of each shard's share may be lent and not used.
        let unused = capacity / 8;
        assert!(weight >= capacity - unused, "{weight} with {shards} shards");
    }
}

#[test]
fn weights_of_zero_take_no_room_and_the_heaviest_is_refused_politely() {
    let (builder, _, events) = builder(10, 4);
    let cache = builder.build().expect("valid");
    for key in 0..1000 {
        cache.insert(key, 0);
    }
    assert_eq!((cache.len(), cache.weight()), (1000, 0));
    cache.insert(5000, 10);
    assert_eq!(cache.len(), 1001, "they were not in its way");
    cache.insert(6000, u32::MAX);
    cache.insert(6001, 11);
    assert_eq!(cache.peek(&6000), None);
    assert_eq!(cache.stats().rejected, 2);
    assert_eq!((cache.len(), cache.weight()), (1001, 10));
    // A value that is refused still replaces the old one: what is there is never older than asked
    // for.
    cache.insert(5000, 11);
    assert_eq!(cache.peek(&5000), None);
    cache.advance(cache.now(), u32::MAX);
    let events = events.lock().expect("unpoisoned");
    let expected = [
        (6000, RemovalCause::Evicted),
        (6001, RemovalCause::Evicted),
        (5000, RemovalCause::Replaced),
        (5000, RemovalCause::Evicted),
    ];
    assert_eq!(events.len(), expected.len());
    assert!(
        expected.iter().all(|event| events.contains(event)),
        "{events:?}"
    );
    cache.validate();
}

/// A share of what was missing was taken from each shard, and cost each its entry.
#[test]
fn a_heavy_entry_evicts_no_more_than_it_needs() {
    for round in 0..300 {
        let cache = cache(300, 4);
        for key in 0..10 {
            cache.insert(key, 100);
            // What is lent to one shard and not used may be short of a third.
            let least = (key + 1).min(2) as usize;
            assert!(cache.len() >= least, "round {round}, key {key}");
        }
        cache.validate();
    }
}

#[test]
fn the_heaviest_weights_do_not_overflow() {
    let cache = cache(u64::from(u32::MAX) * 3, 4);
    for key in 0..100 {
        cache.insert(key, u32::MAX);
        assert_eq!(cache.peek(&key), Some(u32::MAX));
        assert!(cache.weight() <= u64::from(u32::MAX) * 3);
    }
    // What is lent to one shard and not used may be short of a third.
    assert!((2..=3).contains(&cache.len()), "{}", cache.len());
    let unbounded: Cache<u32, u32> = Cache::builder()
        .unbounded()
        .weigher(|_, weight| *weight)
        .no_default_ttl()
        .driver(Driver::Manual)
        .build()
        .expect("valid");
    for key in 0..100 {
        unbounded.insert(key, u32::MAX);
    }
    assert_eq!(unbounded.weight(), u64::from(u32::MAX) * 100);
    unbounded.validate();
}

#[test]
fn a_value_of_another_weight_replaces_the_old_one_within_the_capacity() {
    for shards in [1, 16] {
        let cache = cache(100, shards);
        for key in 0..10 {
            cache.insert(key, 10);
        }
        cache.insert(3, 55);
        assert_eq!(cache.peek(&3), Some(55), "grown");
        assert!(cache.weight() <= 100);
        cache.insert(3, 100);
        assert_eq!((cache.peek(&3), cache.len()), (Some(100), 1));
        cache.insert(3, 1);
        assert_eq!(cache.weight(), 1, "shrunk");
        for key in 10..100 {
            cache.insert(key, 1);
        }
        assert!(
            cache.weight() >= 60,
            "what it gave back is used: {}",
            cache.weight()
        );
        cache.validate();
    }
}

/// The weight of the replaced value was not counted as free. So other entries were evicted although
/// the new value weighed no more.
#[test]
fn a_heavy_value_that_replaces_one_as_heavy_evicts_nobody() {
    for shards in [1, 2, 4, 16] {
        let cache = cache(100, shards);
        cache.insert(0, 60);
        for key in 1..=40 {
            cache.insert(key, 1);
        }
        let before = cache.len();
        for round in 0..10 {
            cache.insert(0, 60);
            assert_eq!(cache.len(), before, "{shards} shards, round {round}");
        }
        assert_eq!(cache.update(&0, |weight| *weight), Some(60));
        let version = cache.version(&0).expect("there");
        assert!(cache.compare_and_set(0, version, 60).is_ok());
        assert_eq!(cache.entry(0).and_update(|_| 60).or_insert(60), 60);
        assert_eq!(cache.len(), before, "{shards} shards, changed in place");
        assert_eq!(cache.stats().evictions, 41 - before as u64);
        cache.validate();
    }
}

#[test]
fn a_value_that_grows_evicts_no_more_than_it_grows() {
    for shards in [1, 2, 4, 16] {
        let cache = cache(100, shards);
        cache.insert(0, 60);
        for key in 1..=40 {
            cache.insert(key, 1);
        }
        let before = cache.weight();
        cache.insert(0, 70);
        assert_eq!(cache.peek(&0), Some(70));
        assert!(cache.weight() <= 100);
        let unused = 100 - before;
        assert!(
            cache.len() as u64 >= 31 - unused,
            "{shards} shards: {} of 30 light ones stayed",
            cache.len() - 1
        );
        cache.validate();
    }
}

/// When a shard took lent weight back from another one, it evicted live entries there, although
/// expired ones lay beside them.
#[test]
fn expired_entries_of_any_shard_leave_before_a_live_one_is_evicted() {
    for shards in [1, 4] {
        let (builder, clock, events) = builder(100, shards);
        let cache = builder.build().expect("valid");
        for key in 0..50 {
            cache.insert_with_ttl(key, 1, 5 * MS);
        }
        for key in 50..100 {
            cache.insert(key, 1);
        }
        clock.advance(5 * MS);
        cache.insert(1000, 45);
        cache.advance(Duration::ZERO, 0);
        let evicted = |events: &Events| {
            let events = events.lock().expect("unpoisoned");
            let evicted = events
                .iter()
                .filter(|(_, cause)| *cause == RemovalCause::Evicted);
            evicted.count()
        };
        let living = (50..100).filter(|key| cache.contains_key(key)).count();
        assert_eq!(cache.peek(&1000), Some(45));
        assert_eq!(
            50 - living,
            evicted(&events),
            "only live entries are evicted"
        );
        if shards == 1 {
            assert_eq!(living, 50, "there was room enough in what was due");
        }
        assert!(cache.weight() <= 100);
    }
}

#[test]
fn threads_that_insert_at_once_overshoot_by_no_more_than_their_entries() {
    let cache = cache(1000, 8);
    std::thread::scope(|scope| {
        for thread in 0..4_u32 {
            let cache = cache.clone();
            scope.spawn(move || {
                for step in 0..3000 {
                    cache.insert(thread * 10_000 + step, 1 + step % 200);
                    let weight = cache.weight();
                    assert!(weight <= 1000 + 4 * 200, "{weight}");
                }
            });
        }
    });
    assert!(cache.weight() <= 1000);
    cache.insert(1, 1000);
    assert_eq!(cache.peek(&1), Some(1000), "the accounts are whole");
    assert_eq!(cache.weight(), 1000);
    cache.validate();
}

/// The pin of an expired entry stayed on its slot, and so the key's next value was pinned too.
#[test]
fn a_pin_ends_with_its_entry_whether_or_not_that_was_removed_already() {
    type End = fn(&Cache<u64, u64>, &ManualClock);
    let ends: [End; 4] = [
        |_, clock| clock.advance(10 * MS),
        |cache, clock| {
            clock.advance(10 * MS);
            cache.advance(cache.now(), u32::MAX);
        },
        |cache, _| assert!(cache.invalidate_tag("a")),
        |cache, _| assert!(cache.invalidate(&1)),
    ];
    for grace in [Duration::ZERO, 50 * MS] {
        for end in ends {
            let clock = ManualClock::new();
            let cache: Cache<u64, u64> = Cache::builder()
                .max_capacity(10)
                .no_default_ttl()
                .stale_on_error(grace)
                .clock(clock.clone())
                .driver(Driver::Manual)
                .build()
                .expect("valid");
            cache.insert_with(1, 1, Lifetime::ttl(10 * MS).tag("a"));
            assert!(cache.pin(&1));
            cache.insert_with(1, 2, Lifetime::ttl(10 * MS).tag("a"));
            assert!(
                cache.is_pinned(&1),
                "the new value of a living one is pinned too"
            );
            end(&cache, &clock);
            assert_eq!(cache.get_or_load(1, || 3_u64), 3);
            assert!(!cache.is_pinned(&1), "nobody has pinned this one");
            cache.validate();
        }
    }
}

#[test]
fn a_smaller_capacity_evicts_at_once_and_a_larger_one_is_used() {
    for shards in [1, 2, 64] {
        let (builder, clock, events) = builder(1000, shards);
        let cache = builder.build().expect("valid");
        for key in 0..500 {
            cache.insert(key, 2);
        }
        cache.insert_with(500, 2, Lifetime::ttl(MS));
        clock.advance(MS);
        assert!(cache.set_max_capacity(100));
        cache.validate();
        assert_eq!(
            (cache.max_capacity(), cache.weight()),
            (Some(100), 100),
            "{shards} shards"
        );
        cache.run_due();
        let mut heard: Vec<_> = std::mem::take(&mut *events.lock().expect("unpoisoned"));
        assert!(heard.contains(&(500, RemovalCause::Expired)));
        // What was due may have been in a shard that had to give nothing: then `run_due` removed
        // it.
        assert_eq!(heard.len(), 501 - cache.len());
        heard.sort_unstable_by_key(|&(key, _)| key);
        heard.dedup_by_key(|&mut (key, _)| key);
        assert_eq!(heard.len(), 501 - cache.len(), "each has left once");
        for key in 1000..2000 {
            cache.insert(key, 1);
            assert!(cache.weight() <= 100);
        }
        cache.insert(0, 101);
        assert_eq!(cache.peek(&0), None, "heavier than the capacity now");
        assert!(cache.set_max_capacity(5000));
        for key in 0..2000 {
            cache.insert(key, 2);
        }
        assert_eq!(cache.weight(), 4000, "{shards} shards");
        cache.set_max_capacity(0);
        assert_eq!(cache.len(), 0);
        cache.insert(1, 1);
        assert_eq!(cache.len(), 0);
        cache.validate();
    }
}

#[test]
fn pinned_entries_stay_when_the_capacity_shrinks_and_pay_when_they_leave() {
    let (builder, _clock, _events) = builder(1000, 4);
    let cache = builder.build().expect("valid");
    for key in 0..1000 {
        cache.insert(key, 1);
    }
    for key in 0..300 {
        cache.pin(&key);
    }
    let pinned = cache.weight_of_pinned(300);
    cache.set_max_capacity(100);
    cache.validate();
    assert_eq!(cache.weight(), pinned);
    cache.insert(5000, 1);
    assert_eq!((cache.peek(&5000), cache.weight()), (None, pinned));
    for key in 0..300 {
        cache.remove(&key);
        cache.validate();
    }
    for key in 0..1000 {
        cache.insert(key, 1);
        cache.validate();
    }
    assert!((90..=100).contains(&cache.weight()), "{}", cache.weight());
}

/// Found by an attack: entries that were stored in the place of those that were over stayed, and
/// the cache was too large for ever.
#[test]
fn what_takes_the_place_of_pinned_entries_that_are_over_pays_for_a_capacity_that_has_shrunk() {
    for (shards, capacity) in [(1, 0), (1, 10), (4, 1), (4, 10), (4, 40)] {
        let (builder, clock, _events) = builder(100, shards);
        let cache = builder.build().expect("valid");
        for key in 0..100 {
            cache.insert_with(key, 1, Lifetime::ttl(10 * MS));
            cache.pin(&key);
        }
        let pinned = cache.weight_of_pinned(100);
        cache.set_max_capacity(capacity);
        assert_eq!(cache.weight(), pinned);
        clock.advance(10 * MS);
        for key in 100..150 {
            cache.insert(key, 1);
        }
        cache.run_due();
        for key in 150..400 {
            cache.insert(key, 1);
            cache.validate();
        }
        let weight = cache.weight();
        assert!(
            weight <= capacity,
            "{weight} of {capacity}, {shards} shards"
        );
        assert!(
            weight + 4 >= capacity,
            "{weight} of {capacity}, {shards} shards"
        );
    }
}

/// Its shard kept what it had been lent for it, and the cache stayed too large.
#[test]
fn a_pinned_entry_that_ends_pays_for_a_capacity_that_has_shrunk() {
    for shards in [1, 4] {
        let (builder, clock, _events) = builder(9, shards);
        let cache = builder.build().expect("valid");
        cache.insert_with(1, 1, Lifetime::ttl(10 * MS));
        assert!(cache.pin(&1));
        cache.set_max_capacity(0);
        assert_eq!(cache.len(), 1);
        clock.advance(10 * MS);
        assert_eq!(cache.run_due(), 1);
        for key in 2..50 {
            cache.insert(key, 1);
            assert_eq!(cache.len(), 0, "{key} of {shards} shards");
        }
        cache.validate();
    }
}

/// They stayed for good, though nothing protected them any more.
#[test]
fn what_is_too_much_for_a_capacity_that_has_shrunk_leaves_when_it_is_unpinned() {
    for shards in [1, 4] {
        let (builder, _clock, events) = builder(100, shards);
        let cache = builder.build().expect("valid");
        for key in 0..80 {
            cache.insert(key, 1);
            cache.pin(&key);
        }
        cache.set_max_capacity(50);
        for key in 0..80 {
            assert!(cache.unpin(&key));
            let weight = 80 - u64::from(key + 1).min(30);
            assert_eq!(cache.weight(), weight, "{shards} shards");
        }
        cache.run_due();
        let heard = events.lock().expect("unpoisoned");
        assert!(heard.iter().all(|event| event.1 == RemovalCause::Evicted));
        assert_eq!(heard.len(), 30);
        cache.validate();
    }
}

/// Counts how many of the first keys are there.
trait Pinned {
    fn weight_of_pinned(&self, keys: u32) -> u64;
}

impl Pinned for Cache<u32, u32> {
    fn weight_of_pinned(&self, keys: u32) -> u64 {
        (0..keys).filter(|key| self.is_pinned(key)).count() as u64
    }
}

#[test]
fn an_unbounded_cache_stays_so() {
    let builder = Cache::<u32, u32>::builder().unbounded().no_default_ttl();
    let cache = builder.driver(Driver::Manual).build().expect("valid");
    cache.insert(1, 1);
    assert!(!cache.set_max_capacity(0));
    assert_eq!((cache.max_capacity(), cache.len()), (None, 1));
    cache.validate();
}

/// The account must stay right whoever changes it meanwhile: other threads, or a listener that is
/// told of what is evicted for it.
#[test]
fn the_capacity_changes_while_others_write_and_by_the_listener() {
    let slot: Arc<Mutex<Option<Cache<u32, u32>>>> = Arc::default();
    let inside = Arc::clone(&slot);
    let cache = Cache::builder()
        .max_capacity(1000)
        .no_default_ttl()
        .shards(8)
        .driver(Driver::Manual)
        .listener_queue(10, tidewheel::OnFull::Wait)
        .eviction_listener(move |removal| {
            let cache = inside.lock().expect("unpoisoned").clone();
            if let Some(cache) = cache.filter(|_| removal.key % 16 == 0) {
                cache.set_max_capacity(u64::from(removal.key % 700));
            }
        })
        .build()
        .expect("valid");
    *slot.lock().expect("unpoisoned") = Some(cache.clone());
    std::thread::scope(|scope| {
        for thread in 0..3u32 {
            let cache = cache.clone();
            scope.spawn(move || {
                for key in 0..5000 {
                    cache.insert(key * 3 + thread, key);
                    if key % 50 == 0 {
                        cache.set_max_capacity(u64::from(key % 900));
                    }
                }
            });
        }
    });
    *slot.lock().expect("unpoisoned") = None;
    cache.set_max_capacity(77);
    assert!(cache.weight() <= 77, "{}", cache.weight());
    assert_eq!(cache.stats().listener_panics, 0);
    cache.validate();
}
