//! Every operation, with a panic at each of its calls of user code in turn: afterwards nothing is
//! lost in the accounts of weight and tags, and the cache goes on.

use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use tidewheel::{Cache, Condition, Lifetime, ManualClock};

use crate::loading::{Valid, by_hand};

const CAPACITY: u64 = 40;

/// No operation here calls user code so often.
const CALLS_MAX: i64 = 1000;

/// Calls of user code until one panics. One test uses it, so one is enough.
static FUSE: AtomicI64 = AtomicI64::new(i64::MAX);

fn user_code() {
    if FUSE.fetch_sub(1, SeqCst) == 0 && !std::thread::panicking() {
        // Without a message on the terminal.
        resume_unwind(Box::new("burnt"));
    }
}

#[derive(Debug)]
struct Fused(u32);

impl Clone for Fused {
    fn clone(&self) -> Self {
        user_code();
        Self(self.0)
    }
}

impl PartialEq for Fused {
    fn eq(&self, other: &Self) -> bool {
        user_code();
        self.0 == other.0
    }
}

impl Eq for Fused {}

impl Hash for Fused {
    fn hash<H: Hasher>(&self, state: &mut H) {
        user_code();
        self.0.hash(state);
    }
}

impl Drop for Fused {
    fn drop(&mut self) {
        user_code();
    }
}

type Ours = Cache<Fused, Fused>;
type Operation = fn(&Ours, &ManualClock);

fn tagged(tag: &str) -> Lifetime {
    Lifetime::forever().tag("t").tag(tag)
}

fn drive(cache: &Ours) {
    while cache.advance(cache.now(), 10).backlog {}
}

const OPERATIONS: &[(&str, Operation)] = &[
    ("insert", |cache, _| {
        cache.insert_with(Fused(3), Fused(9), tagged("a"));
    }),
    ("insert something new", |cache, _| {
        cache.insert_with(Fused(300), Fused(9), tagged("b"));
    }),
    ("get", |cache, _| drop(cache.get(&Fused(3)))),
    ("remove", |cache, _| drop(cache.remove(&Fused(3)))),
    ("invalidate_if", |cache, _| {
        cache.invalidate_if(|key, _| key.0.is_multiple_of(2));
    }),
    ("invalidate_tag", |cache, _| {
        cache.invalidate_tag("t");
        drive(cache);
    }),
    ("expiry", |cache, clock| {
        clock.advance(Duration::from_millis(60));
        drive(cache);
    }),
    ("update", |cache, _| {
        drop(cache.update(&Fused(5), |value| Fused(value.0 + 1)));
    }),
    ("compare_and_set", |cache, _| {
        if let Some(version) = cache.version(&Fused(5)) {
            let _ = cache.compare_and_set(Fused(5), version, Fused(1));
        }
    }),
    ("compare_and_set_with", |cache, _| {
        if let Some(version) = cache.version(&Fused(5)) {
            let _ = cache.compare_and_set_with(Fused(5), version, Fused(1), tagged("c"));
        }
    }),
    ("insert_if_absent", |cache, _| {
        cache.insert_if_absent_with(Fused(700), Fused(1), tagged("d"));
        cache.insert_if_absent_with(Fused(1), Fused(1), tagged("d"));
    }),
    ("remove_if", |cache, _| {
        cache.remove_if(&Fused(7), |_| true);
    }),
    ("iteration", |cache, _| {
        cache.iter().count();
    }),
    ("invalidate_all", |cache, _| cache.invalidate_all()),
    ("load", |cache, _| {
        drop(cache.get_or_load(Fused(900), || Fused(3)));
    }),
    ("entry", |cache, _| {
        let entry = cache.entry(Fused(901)).and_update(|value| Fused(value.0));
        drop(entry.or_insert(Fused(4)));
    }),
    ("pin", |cache, _| {
        cache.pin(&Fused(8));
        cache.unpin(&Fused(8));
    }),
    ("expire", |cache, _| {
        cache.expire(&Fused(8), Duration::ZERO, Condition::Always);
    }),
    #[cfg(feature = "serde")]
    ("snapshot", |cache, _| {
        let snapshot = cache.snapshot();
        cache.invalidate_all();
        let _ = cache.restore(snapshot);
    }),
];

fn filled(with_listener: bool) -> (Ours, ManualClock, Arc<AtomicU64>) {
    let clock = ManualClock::new();
    let told = Arc::new(AtomicU64::new(0));
    let mut builder = by_hand(&clock)
        .max_capacity(CAPACITY)
        .weigher(|_, value: &Fused| {
            user_code();
            1 + value.0 % 2
        })
        .shards(2);
    if with_listener {
        let tell = Arc::clone(&told);
        builder = builder.eviction_listener(move |_| _ = tell.fetch_add(1, SeqCst));
    }
    let cache = builder.valid();
    for key in 0..30 {
        let lifetime = match key % 3 {
            0 => Lifetime::ttl(Duration::from_millis(50)).tag("t"),
            _ => tagged(&(key % 4).to_string()),
        };
        cache.insert_with(Fused(key), Fused(key), lifetime);
    }
    (cache, clock, told)
}

/// The cache is whole, takes what it did, and forgets it all.
fn assert_whole(cache: &Ours, clock: &ManualClock) {
    cache.validate();
    clock.advance(Duration::from_millis(100));
    drive(cache);
    for key in 0..60 {
        cache.insert_with(Fused(key), Fused(key), tagged("e"));
    }
    let weight = cache.weight();
    assert!((CAPACITY / 2..=CAPACITY).contains(&weight), "{weight}");
    cache.validate();
    cache.invalidate_all();
    drive(cache);
    assert!(!cache.invalidate_tag("t"), "nobody has the tag");
    assert_eq!(cache.weight(), 0);
}

/// When a comparison panicked, an insertion stored nothing. Its tags were never given back.
#[test]
fn a_panic_of_user_code_anywhere_leaves_the_accounts_whole() {
    for (name, operation) in OPERATIONS {
        for with_listener in [false, true] {
            for calls in 0.. {
                assert!(calls < CALLS_MAX, "{name} calls user code without end");
                let (cache, clock, told) = filled(with_listener);
                FUSE.store(calls, SeqCst);
                let result = catch_unwind(AssertUnwindSafe(|| operation(&cache, &clock)));
                let burnt = FUSE.swap(i64::MAX, SeqCst) < 0;
                assert!(burnt || result.is_ok());
                let whole = catch_unwind(AssertUnwindSafe(|| assert_whole(&cache, &clock)));
                assert!(whole.is_ok(), "{name}, a panic after {calls} calls");
                let stats = cache.stats();
                let left = (stats.inserts + stats.rejected) * u64::from(with_listener);
                assert_eq!(
                    told.load(SeqCst),
                    left,
                    "{name}, a panic after {calls} calls"
                );
                if !burnt {
                    break;
                }
            }
        }
    }
}
