//! Types of the user's own whose entries are copied without a lock.

use std::cell::Cell;
use std::hash::Hash;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use bytemuck::NoUninit;
use tidewheel::{Cache, ManualClock};

use crate::loading::{Valid, by_hand};

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, NoUninit)]
#[repr(C)]
struct Pair {
    from: u32,
    to: u32,
}

#[derive(Clone, Copy, PartialEq, Debug, NoUninit)]
#[repr(u8)]
enum Side {
    Bid = 0x17,
    Ask = 0xe8,
}

/// Whose it is and of which turn, and a word that follows from both.
#[derive(Clone, Copy, PartialEq, Debug, NoUninit)]
#[repr(C)]
struct Quote {
    whose: Pair,
    turn: u64,
    check: u64,
    sides: [u8; 7],
    side: Side,
}

fn pair(number: u32) -> Pair {
    Pair {
        from: number,
        to: !number,
    }
}

fn quote(whose: Pair, turn: u64) -> Quote {
    let check = (u64::from(whose.from) << 32 | turn).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let side = if turn % 2 == 0 { Side::Bid } else { Side::Ask };
    Quote {
        whose,
        turn,
        check,
        sides: [side as u8; 7],
        side,
    }
}

fn cache(clock: ManualClock) -> Cache<Pair, Quote> {
    by_hand(&clock).max_capacity(64).read_by_copy().valid()
}

#[test]
fn readers_see_whole_values_while_others_write_evict_and_remove() {
    let cache = cache(ManualClock::new());
    let over = AtomicBool::new(false);
    let seen = AtomicU64::new(0);
    let check = |key: Pair, found: Quote| {
        assert_eq!(found, quote(key, found.turn), "torn");
        seen.fetch_add(1, Relaxed);
    };
    thread::scope(|scope| {
        for reader in 0..2 {
            let (cache, over, check) = (&cache, &over, &check);
            scope.spawn(move || {
                let mut number = reader;
                while !over.load(Relaxed) {
                    number = (number + 1) % 80;
                    let key = pair(number);
                    if let Some(found) = cache.get(&key) {
                        check(key, found);
                    }
                    check(key, cache.get_or_load(key, || quote(key, 1)));
                    let keys = [pair(1), key];
                    for (key, found) in keys.into_iter().zip(cache.get_many(&keys)) {
                        if let Some(found) = found {
                            check(key, found);
                        }
                    }
                }
            });
        }
        for turn in 1..4000 {
            for number in (0..100).step_by(turn as usize % 7 + 1) {
                let key = pair(number);
                cache.insert(key, quote(key, turn));
                if turn % 16 == 0 {
                    cache.remove(&key);
                }
            }
            if turn % 100 == 0 {
                cache.invalidate_all();
            }
        }
        over.store(true, Relaxed);
    });
    cache.validate();
    assert!(seen.load(Relaxed) > 1000);
}

thread_local! {
    static CLONES: Cell<u32> = const { Cell::new(0) };
}

/// Its `Clone` is to be seen.
#[derive(Copy, Debug, PartialEq, NoUninit)]
#[repr(transparent)]
struct Odd(u32);

#[allow(
    clippy::non_canonical_clone_impl,
    reason = "whether it is called is the question"
)]
impl Clone for Odd {
    fn clone(&self) -> Self {
        CLONES.set(CLONES.get() + 1);
        *self
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_copy_counts_as_the_clone() {
    let clones = |by_copy| {
        let builder = by_hand(&ManualClock::new());
        let builder = if by_copy {
            builder.read_by_copy()
        } else {
            builder
        };
        let cache: Cache<u32, Odd> = builder.valid();
        cache.insert(1, Odd(10));
        CLONES.set(0);
        assert_eq!(cache.get(&1), Some(Odd(10)));
        CLONES.get()
    };
    assert_eq!(clones(false), 1);
    // Tests beside this one may have hundreds of threads: those above 256 read under the lock.
    let copies = || {
        thread::spawn(move || clones(true))
            .join()
            .expect("no panic")
            == 0
    };
    let copied = (0..10_000).any(|_| {
        thread::sleep(Duration::from_millis(1));
        copies()
    });
    assert!(copied, "never by copy");
}
