//! Readers without a lock beside a writer. Run under Miri, too, which knows torn reads, freed
//! memory and races.

#[cfg(feature = "bytemuck")]
mod own_types;

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Barrier, Mutex, mpsc};

use super::{Lens, OptimisticRead, Ways, limbo};
use crate::{Attributes, TypedStore};

const SCALE: u64 = if cfg!(miri) { 1 } else { 400 };
/// After every deadline that is used here.
const NEVER: u64 = (1 << 32) - 2;

fn place(key: u64) -> u32 {
    let mixed = key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 32) as u32
}

/// A value that shows whose it is, in both halves.
fn value(key: u64, turn: u64) -> u128 {
    let half = (key << 32 | turn).wrapping_mul(0x0100_0000_01b3) ^ key;
    u128::from(half) << 64 | u128::from(half)
}

type Store = TypedStore<u64, u128>;

fn changing<R>(store: &Mutex<Store>, change: impl FnOnce(&mut Store) -> R) -> R {
    let mut store = store.lock().unwrap();
    store.begin_change();
    let result = change(&mut store);
    let freed = store.take_freed();
    store.end_change();
    drop(store);
    drop(freed);
    result
}

fn insert(store: &mut Store, key: u64, value: u128, deadline: Option<u64>) {
    let attributes = Attributes {
        deadline,
        ..Attributes::default()
    };
    match store.find(place(key), |stored| *stored == key) {
        Some(slot) => {
            let _ = store.replace(slot, value, attributes, 0);
        }
        None => {
            store.insert(place(key), key, value, attributes, 0, 1 << 30, &|key| {
                place(*key)
            });
        }
    }
}

fn remove(store: &mut Store, key: u64) {
    if let Some(slot) = store.find(place(key), |stored| *stored == key) {
        store.remove(slot, place(key));
    }
}

/// The value of a key, if a look without the lock tells.
fn look(lens: &Lens<u64, u128>, key: u64, now: u64) -> Option<Option<u128>> {
    match lens.read(place(key), now % 2 == 1, || move |deadline| deadline > now) {
        OptimisticRead::Entry(stored, value) if stored == key => Some(Some(value)),
        OptimisticRead::Nowhere => Some(None),
        OptimisticRead::Entry(..) | OptimisticRead::Unclear => None,
    }
}

fn published() -> (Store, Lens<u64, u128>) {
    let store = Store::published();
    let lens = store.lens().expect("numbers on a system that can");
    (store, lens)
}

#[test]
fn a_look_without_the_lock_finds_what_the_store_has() {
    let (mut store, lens) = published();
    assert_eq!(
        look(&lens, 1, 0),
        None,
        "an empty store has no memory to look at"
    );
    let keys = 10 * SCALE;
    store.begin_change();
    for key in 0..keys {
        insert(&mut store, key, value(key, 0), Some(key + 5));
    }
    assert_eq!(look(&lens, 1, 0), None, "a change is going on");
    store.end_change();
    let mut clear = 0;
    for key in 0..keys + 100 {
        let Some(found) = look(&lens, key, 4) else {
            continue;
        };
        assert_eq!(found, (key < keys).then(|| value(key, 0)), "key {key}");
        clear += 1;
        assert_eq!(
            look(&lens, key, key + 5),
            None.or(found.is_none().then_some(None))
        );
    }
    assert!(clear > (keys + 100) * 3 / 4, "{clear} of {keys} and 100");
}

#[test]
fn arrays_of_numbers_are_found_too() {
    let mut store = TypedStore::<u16, [u8; 32]>::published();
    let lens = store.lens().expect("an array of a usual length");
    store.begin_change();
    for key in 0..20 {
        let place = place(u64::from(key));
        let attributes = Attributes::default();
        let place_of = |key: &u16| self::place(u64::from(*key));
        store.insert(place, key, [key as u8; 32], attributes, 0, 100, &place_of);
    }
    store.end_change();
    for key in 0..20 {
        let found = lens.read(place(u64::from(key)), false, || |deadline| deadline > NEVER);
        let OptimisticRead::Entry(stored, value) = found else {
            panic!("{key} is there")
        };
        assert_eq!((stored, value), (key, [key as u8; 32]));
    }
    assert!(TypedStore::<u16, [u8; 31]>::published().lens().is_none());
}

#[test]
fn what_has_attributes_is_read_under_the_lock() {
    let (mut store, lens) = published();
    store.begin_change();
    insert(&mut store, 1, 7, None);
    store.end_change();
    assert_eq!(look(&lens, 1, NEVER), Some(Some(7)));
    store.begin_change();
    let weighty = Attributes {
        weight: 5,
        ..Attributes::default()
    };
    store.insert(place(2), 2, 8, weighty, 0, 100, &|key| place(*key));
    store.end_change();
    assert_eq!(
        look(&lens, 1, NEVER),
        None,
        "an entry of its page has a weight"
    );
    store.begin_change();
    remove(&mut store, 1);
    remove(&mut store, 2);
    insert(&mut store, 3, 9, None);
    store.end_change();
    assert_eq!(
        look(&lens, 3, NEVER),
        Some(Some(9)),
        "the page is empty again"
    );
}

#[test]
fn a_lens_sees_the_store_that_comes_after_one_that_was_taken() {
    let (mut store, lens) = published();
    store.begin_change();
    insert(&mut store, 1, 7, None);
    let taken = store.take_all();
    store.end_change();
    assert_eq!((taken.len(), look(&lens, 1, NEVER)), (1, None));
    drop(taken);
    store.begin_change();
    insert(&mut store, 1, 8, None);
    store.end_change();
    assert_eq!(look(&lens, 1, NEVER), Some(Some(8)));
    drop(store);
    assert_eq!(look(&lens, 1, NEVER), None, "the store is gone");
}

/// Readers were led to what it has, and are not to be led to what it gets.
#[test]
fn a_store_that_was_taken_leads_readers_nowhere() {
    let (mut store, lens) = published();
    let mut taken = store.take_all();
    insert(&mut taken, 1, 7, None);
    assert_eq!(look(&lens, 1, NEVER), None);
    drop(taken);
    assert_eq!(look(&lens, 1, NEVER), None);
}

/// In the index a vacant pair looks like one of place 0, and leads to slot 0.
#[test]
fn a_vacant_slot_is_no_entry_at_tick_0() {
    let (mut store, lens) = published();
    store.begin_change();
    insert(&mut store, 1, 7, Some(5));
    store.end_change();
    assert_eq!(place(0), 0);
    for now in 0..3 {
        let found = look(&lens, 0, now);
        assert_ne!(found, Some(Some(0)), "key 0 was never stored");
    }
    assert_eq!(look(&lens, 1, 0), Some(Some(7)));
}

/// Runs a test in a process of its own: what it does to limbo, all stores of a process feel. Tells
/// whether this is that process.
fn is_alone(test: &str) -> bool {
    const ALONE: &str = "TIDEWHEEL_TEST_ALONE";
    if std::env::var_os(ALONE).is_some() {
        return true;
    }
    let name = format!("shared::tests::{test}");
    let mut alone = std::process::Command::new(std::env::current_exe().unwrap());
    let output = alone.args(["--exact", &name]).env(ALONE, "1").output();
    let output = output.unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("1 passed"), "{said}");
    false
}

/// Stores entries and removes them: segments and pages come and go.
fn come_and_go(store: &Mutex<Store>) {
    for key in 1_000..51_000 {
        changing(store, |store| insert(store, key, value(key, 0), None));
    }
    for key in 1_000..51_000 {
        changing(store, |store| remove(store, key));
    }
}

/// The kernel may refuse later what it could at first.
#[test]
#[cfg_attr(miri, ignore = "starts a process")]
fn a_kernel_that_refuses_fences_costs_no_more_than_what_was_shared() {
    if !is_alone("a_kernel_that_refuses_fences_costs_no_more_than_what_was_shared") {
        return;
    }
    let (store, lens) = published();
    let store = Mutex::new(store);
    let turn = || {
        come_and_go(&store);
        limbo::tests::waiting()
    };
    turn();
    limbo::tests::REFUSES.store(true, Relaxed);
    let first = turn();
    assert_eq!((turn(), turn()), (first, first));
    changing(&store, |store| insert(store, 1, 7, None));
    assert_eq!(look(&lens, 1, NEVER), None, "it takes the lock from now on");
    assert!(Store::published().lens().is_none());
}

#[test]
#[cfg_attr(miri, ignore = "starts a process")]
fn a_reader_that_stands_still_keeps_a_bounded_amount_of_memory_waiting() {
    if !is_alone("a_reader_that_stands_still_keeps_a_bounded_amount_of_memory_waiting") {
        return;
    }
    let (mut store, lens) = published();
    store.begin_change();
    insert(&mut store, 1, 7, None);
    store.end_change();
    let store = Mutex::new(store);
    let (later, later_lens) = std::thread::scope(|scope| {
        let (pinned, is_pinned) = mpsc::channel();
        let (go_on, stand_still) = mpsc::channel::<()>();
        scope.spawn(move || {
            let _pin = limbo::Pin::enter().expect("one of few threads");
            pinned.send(()).unwrap();
            stand_still.recv().unwrap_err();
        });
        is_pinned.recv().unwrap();
        let mut turns = 0;
        while look(&lens, 1, 0) == Some(Some(7)) {
            come_and_go(&store);
            turns += 1;
            assert!(turns < 1000, "it never fills: {}", limbo::tests::held());
        }
        assert_eq!(look(&lens, 1, 0), None, "it takes the lock from now on");
        // What it shared when limbo was full may follow.
        come_and_go(&store);
        let held = limbo::tests::held();
        assert!(held < limbo::HELD_BYTES * 2, "{held} bytes wait");
        for _ in 0..10 {
            come_and_go(&store);
            drop(changing(&store, TypedStore::take_all));
            changing(&store, |store| insert(store, 1, 7, None));
        }
        let now = limbo::tests::held();
        assert!(now < held + limbo::HELD_BYTES / 8, "{held}, then {now}");
        // Stores that begin now lead nobody, but may later.
        let (later, later_lens) = published();
        let later = Mutex::new(later);
        changing(&later, |store| insert(store, 1, 8, None));
        assert_eq!(look(&later_lens, 1, 0), None);
        drop(go_on);
        (later, later_lens)
    });
    for (store, lens, value) in [(&store, &lens, 7), (&later, &later_lens, 8)] {
        assert_eq!(look(lens, 1, 0), None, "nothing has changed yet");
        changing(store, |_| ());
        assert_eq!(look(lens, 1, 0), Some(Some(value)));
        // What was stored while it led nobody, and what comes.
        changing(store, |store| insert(store, 2, 9, None));
        assert_eq!(look(lens, 2, 0), Some(Some(9)));
        store.lock().unwrap().validate(&|key| place(*key));
    }
}

/// Whoever lets go last frees nothing. So somebody else looks again.
#[test]
fn what_waited_for_a_reader_is_freed_by_a_later_tidying() {
    let (mut store, _lens) = published();
    let (go, stay) = (Barrier::new(2), Barrier::new(2));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _pin = limbo::Pin::enter().expect("one of few threads");
            go.wait();
            stay.wait();
        });
        go.wait();
        drop(Ways::zeroed(1 << 15));
        assert!(limbo::tests::waiting() > 0);
        stay.wait();
    });
    let mut tries = 0;
    while limbo::tests::is_waiting() {
        store.maintain(1, &|key| place(*key));
        std::thread::yield_now();
        tries += 1;
        assert!(tries < 10_000_000, "a bag waits for nobody");
    }
}

#[test]
fn a_clock_may_look_itself_and_may_panic() {
    let (mut store, lens) = published();
    store.begin_change();
    insert(&mut store, 1, 7, None);
    store.end_change();
    let nested = lens.read(place(1), false, || {
        assert_eq!(look(&lens, 1, NEVER), None, "one look at a time");
        |_| true
    });
    assert!(matches!(nested, OptimisticRead::Entry(1, 7)));
    let nested = lens.read(place(1), true, || {
        assert_eq!(look(&lens, 1, NEVER), Some(Some(7)));
        store.begin_change();
        remove(&mut store, 1);
        insert(&mut store, 1, 8, None);
        store.end_change();
        |_| true
    });
    assert!(
        matches!(nested, OptimisticRead::Unclear),
        "it has changed since"
    );
    for lets_go in [false, true] {
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            lens.read(place(1), lets_go, || -> fn(u64) -> bool {
                panic!("no time")
            })
        }));
        assert!(panicked.is_err());
    }
    assert_eq!(
        look(&lens, 1, NEVER),
        Some(Some(8)),
        "the thread has let go"
    );
}

/// Hits are counted as under the lock: what was looked at three times stays, when its like leaves.
#[test]
fn looks_without_the_lock_count_as_hits() {
    let (mut store, lens) = published();
    store.begin_change();
    for key in 0..50 {
        let attributes = Attributes::default();
        store.insert(place(key), key, 7, attributes, 0, 50, &|key| place(*key));
    }
    store.end_change();
    for key in 0..5 {
        for _ in 0..3 {
            assert_eq!(look(&lens, key, NEVER), Some(Some(7)));
        }
    }
    store.begin_change();
    for key in 50..90 {
        let attributes = Attributes::default();
        store.insert(place(key), key, 7, attributes, 0, 50, &|key| place(*key));
        assert!(store.evict(&|key| place(*key)).is_some());
    }
    store.end_change();
    for key in 0..5 {
        assert_eq!(
            look(&lens, key, NEVER),
            Some(Some(7)),
            "key {key} was evicted"
        );
    }
}

/// Each key's value grows. A reader never sees another key's, a torn one, one that is older than
/// what it has seen, or none of a key that always has one.
#[test]
fn readers_see_whole_values_in_order_while_everything_changes() {
    let (store, lens) = published();
    read_while_everything_changes(store, lens);
}

/// The memory that they read goes back to slabs, and slabs to the system.
#[test]
fn readers_see_whole_values_on_huge_pages() {
    let (mut store, lens) = published();
    store.use_huge_pages();
    read_while_everything_changes(store, lens);
}

fn read_while_everything_changes(store: Store, lens: Lens<u64, u128>) {
    let store = Mutex::new(store);
    let lasting = 4 * SCALE.min(100);
    let passing = 40 * SCALE;
    changing(&store, |store| {
        (0..lasting).for_each(|key| insert(store, key, value(key, 0), None));
    });
    let over = AtomicBool::new(false);
    let seen = AtomicU64::new(0);
    let newest: Vec<AtomicU64> = (0..lasting).map(|_| AtomicU64::new(0)).collect();
    std::thread::scope(|scope| {
        let readers = if cfg!(miri) { 2 } else { 3 };
        for reader in 0..readers {
            let (lens, over, seen, newest) = (&lens, &over, &seen, &newest);
            scope.spawn(move || {
                let mut before = vec![0; lasting as usize];
                let mut key = reader;
                while !over.load(Relaxed) {
                    if cfg!(miri) {
                        // One look for each turn of its scheduler.
                        std::thread::yield_now();
                    }
                    key = (key + 1) % lasting;
                    let written = newest[key as usize].load(Acquire);
                    let Some(found) = look(lens, key, NEVER) else {
                        std::hint::spin_loop();
                        continue;
                    };
                    let found = found.expect("a lasting key is always there");
                    let old: u64 = before[key as usize];
                    let turn = (old.max(written)..old.max(written) + 1_000_000)
                        .find(|turn| value(key, *turn) == found);
                    before[key as usize] = turn.expect("a torn value, or an old one");
                    seen.fetch_add(1, Relaxed);
                }
            });
        }
        // On a busy machine the readers may come late: then there are more turns.
        let (turns, looks) = if cfg!(miri) { (4, 0) } else { (12, 10_000) };
        let mut turn = 0;
        while turn < turns || seen.load(Relaxed) < looks {
            turn += 1;
            assert!(turn < 10_000, "readers see nothing: {seen:?} looks");
            // Segments and pages come and go.
            for key in 0..passing {
                changing(&store, |store| insert(store, 1 << 40 | key, 1, None));
                if key % 4 == 0 {
                    let lasts = key / 4 % lasting;
                    let next = newest[lasts as usize].load(Relaxed) + 1;
                    changing(&store, |store| {
                        insert(store, lasts, value(lasts, next), None);
                    });
                    newest[lasts as usize].store(next, Release);
                }
            }
            for key in 0..passing {
                changing(&store, |store| remove(store, 1 << 40 | key));
                if key % 64 == 0 {
                    changing(&store, |store| store.maintain(64, &|key| place(*key)));
                }
            }
            if cfg!(miri) {
                std::thread::yield_now();
            }
            assert_eq!(store.lock().unwrap().len() as u64, lasting, "turn {turn}");
        }
        over.store(true, Relaxed);
    });
    store.lock().unwrap().validate(&|key| place(*key));
}
