//! Two drive futures of one cache: one drives, and the other takes over.

use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use tidewheel::{Cache, Driver, Lifetime, ManualClock, SharedDriver};

use crate::loading::MS;

type Drive = Pin<Box<dyn Future<Output = ()>>>;

/// Counts how often it was woken.
#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

struct Town {
    clock: ManualClock,
    cache: Cache<u64, u64>,
    shared: Option<SharedDriver>,
    told: Arc<Mutex<Vec<u64>>>,
    refreshed: Arc<AtomicU64>,
}

impl Town {
    fn new(is_shared: bool) -> Self {
        let clock = ManualClock::new();
        let told = Arc::<Mutex<Vec<u64>>>::default();
        let refreshed = Arc::<AtomicU64>::default();
        let (tells, refreshes) = (Arc::clone(&told), Arc::clone(&refreshed));
        let shared = is_shared.then(SharedDriver::task);
        let driver = shared.as_ref().map_or(Driver::Task, Driver::shared);
        let cache = Cache::builder()
            .max_capacity(100)
            .time_to_live(100 * MS)
            .refresh_after(0.5)
            .refresh_with_async(move |_| {
                refreshes.fetch_add(1, SeqCst);
                pending::<Result<u64, ()>>()
            })
            .eviction_listener(move |removal| tells.lock().expect("whole").push(removal.key))
            .clock(clock.clone())
            .driver(driver)
            .build()
            .expect("valid");
        Self {
            clock,
            cache,
            shared,
            told,
            refreshed,
        }
    }

    fn drive(&self) -> Drive {
        match &self.shared {
            None => Box::pin(self.cache.drive(|_| pending())),
            Some(shared) => Box::pin(shared.drive(|_| pending())),
        }
    }
}

/// Polls as long as that has anything woken.
fn turn(drive: &mut Drive, count: &Arc<Count>) -> Poll<()> {
    let waker = Waker::from(Arc::clone(count));
    for _ in 0..100 {
        let before = count.0.load(SeqCst);
        if drive
            .as_mut()
            .poll(&mut Context::from_waker(&waker))
            .is_ready()
        {
            return Poll::Ready(());
        }
        if count.0.load(SeqCst) == before {
            return Poll::Pending;
        }
    }
    panic!("it is busy");
}

fn each_driver(test: impl Fn(&Town)) {
    for is_shared in [false, true] {
        test(&Town::new(is_shared));
    }
}

/// They did everything twice, and the end of one left the other asleep.
#[test]
fn one_of_two_drives_and_the_other_takes_over() {
    each_driver(|town| {
        let (first, second) = (Arc::<Count>::default(), Arc::<Count>::default());
        let (mut one, mut other) = (town.drive(), town.drive());
        assert!(turn(&mut one, &first).is_pending());
        assert!(turn(&mut other, &second).is_pending());
        town.cache.insert(1, 1);
        town.clock.advance(60 * MS);
        assert_eq!(town.cache.get(&1), Some(1));
        assert!(turn(&mut other, &second).is_pending());
        assert_eq!(town.refreshed.load(SeqCst), 0, "it is not the other's");
        assert!(turn(&mut one, &first).is_pending());
        assert_eq!(town.refreshed.load(SeqCst), 1);
        let woken = second.0.load(SeqCst);
        drop(one);
        assert!(second.0.load(SeqCst) > woken, "nobody drives");
        assert!(turn(&mut other, &second).is_pending());
        // Asleep until the deadline, and woken by a move of the clock.
        let woken = second.0.load(SeqCst);
        town.clock.advance(40 * MS);
        assert!(second.0.load(SeqCst) > woken);
        assert!(turn(&mut other, &second).is_pending());
        assert_eq!(
            (town.cache.len(), &*town.told.lock().expect("whole")),
            (0, &vec![1])
        );
        // One that is made anew waits, and one that waits may go.
        let mut third = town.drive();
        assert!(turn(&mut third, &first).is_pending());
        drop(third);
        town.cache.insert_with_ttl(2, 2, Duration::from_millis(5));
        assert!(turn(&mut other, &second).is_pending());
        town.clock.advance(5 * MS);
        assert!(turn(&mut other, &second).is_pending());
        assert_eq!(town.cache.len(), 0);
    });
}

#[test]
fn the_end_of_a_cache_ends_both() {
    let town = Town::new(false);
    let count = Arc::<Count>::default();
    let (mut one, mut other) = (town.drive(), town.drive());
    for drive in [&mut one, &mut other] {
        assert!(turn(drive, &count).is_pending());
    }
    for key in 0..10 {
        town.cache.insert(key, key);
    }
    let Town { cache, told, .. } = town;
    drop(cache);
    let woken = count.0.load(SeqCst);
    assert!(turn(&mut one, &count).is_ready());
    assert!(count.0.load(SeqCst) > woken);
    drop(one);
    assert!(turn(&mut other, &count).is_ready());
    assert_eq!(told.lock().expect("whole").len(), 10);
}

/// The one that was to drive is gone before it was polled, or while it waits.
#[test]
fn whoever_is_left_drives() {
    each_driver(|town| {
        let count = Arc::<Count>::default();
        let (unpolled, mut waits) = (town.drive(), town.drive());
        let mut drives = town.drive();
        assert!(turn(&mut drives, &count).is_pending());
        assert!(turn(&mut waits, &count).is_pending());
        drop((unpolled, drives));
        town.cache.insert_with_ttl(1, 1, MS);
        assert!(turn(&mut waits, &count).is_pending());
        town.clock.advance(MS);
        assert!(turn(&mut waits, &count).is_pending());
        assert_eq!(town.cache.len(), 0);
        town.cache.insert(2, 2);
        town.cache.close();
        assert_eq!(*town.told.lock().expect("whole"), [1, 2]);
    });
}

/// The second sweep waited for a pause to be over, and time stood still.
#[test]
fn what_is_invalidated_by_tag_is_removed_while_time_stands_still() {
    each_driver(|town| {
        let count = Arc::<Count>::default();
        let mut drive = town.drive();
        assert!(turn(&mut drive, &count).is_pending());
        town.cache.freeze();
        for round in 1..=3 {
            town.cache
                .insert_with(round, 1, Lifetime::forever().tag("a"));
            assert!(town.cache.invalidate_tag("a"));
            town.clock.advance(MS);
            assert!(turn(&mut drive, &count).is_pending());
            assert_eq!(town.cache.len(), 0, "round {round}");
        }
        assert_eq!(*town.told.lock().expect("whole"), [1, 2, 3]);
        town.cache.resume();
        assert!(turn(&mut drive, &count).is_pending());
        town.cache.validate();
    });
}
