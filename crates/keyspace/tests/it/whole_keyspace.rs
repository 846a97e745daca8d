//! Commands on whole databases beside each other: each is one step for everybody else.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use crate::common::{Rig, START, call_at, call_with, show};
use tidewheel_keyspace::{Keyspace, Options};
use tidewheel_resp::Reply;

/// As many as there may be: a swap takes longest.
const SHARDS: usize = 1024;
/// Enough for a key in most shards.
const KEYS: usize = 2_000;
/// Enough for threads to be preempted within a swap.
const SWAPS: usize = 201;

fn rig() -> Rig {
    Rig::with(Options {
        shards: SHARDS,
        databases: 3,
        seed: 7,
    })
}

fn call(keyspace: &Keyspace, db: u32, line: &str) -> Reply {
    call_at(keyspace, START, db, line)
}

fn fill(keyspace: &Keyspace, db: u32, name: &str) {
    for i in 0..KEYS {
        call(keyspace, db, &format!("SET k{i} {name}"));
    }
}

/// The values that live in a database.
fn values(keyspace: &Keyspace, db: u32) -> BTreeSet<String> {
    let values = (0..KEYS).map(|i| show(&call(keyspace, db, &format!("GET k{i}"))));
    values.collect()
}

#[test]
fn two_swaps_that_share_a_database_do_not_mix_keys_of_three() {
    let rig = rig();
    let keyspace = &rig.keyspace;
    for (db, name) in ["a", "b", "c"].into_iter().enumerate() {
        fill(keyspace, db as u32, name);
    }
    for _ in 0..5 {
        std::thread::scope(|scope| {
            for line in ["SWAPDB 0 1", "SWAPDB 1 2"] {
                scope.spawn(move || {
                    for _ in 0..SWAPS {
                        call(keyspace, 0, line);
                    }
                });
            }
        });
        let found: Vec<_> = (0..3).map(|db| values(keyspace, db)).collect();
        assert!(found.iter().all(|values| values.len() == 1), "{found:?}");
        assert_eq!(found.iter().collect::<BTreeSet<_>>().len(), 3, "{found:?}");
    }
}

#[test]
fn a_flush_beside_a_swap_leaves_no_database_half_empty() {
    for _ in 0..5 {
        let rig = rig();
        let keyspace = &rig.keyspace;
        fill(keyspace, 0, "a");
        fill(keyspace, 1, "b");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..SWAPS {
                    call(keyspace, 0, "SWAPDB 0 1");
                }
            });
            scope.spawn(|| call(keyspace, 0, "FLUSHDB"));
        });
        let sizes: Vec<_> = (0..2)
            .map(|db| show(&call(keyspace, db, "DBSIZE")))
            .collect();
        let whole = format!(":{KEYS}");
        assert!(
            sizes.contains(&":0".to_owned()) && sizes.contains(&whole),
            "{sizes:?}"
        );
    }
}

#[test]
fn exclusive_work_does_not_wait_for_a_comparison_of_long_strings() {
    let rig = rig();
    let keyspace = &rig.keyspace;
    let long = |letter: &str| letter.repeat(11_000);
    call(keyspace, 0, &format!("SET a {}", long("x")));
    call(keyspace, 0, &format!("SET b {}", long("y")));
    let (begun, done) = (&AtomicBool::new(false), &AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut seat = keyspace.seat();
            seat.enter();
            begun.store(true, SeqCst);
            let len = call_with(keyspace, &mut seat, START, 0, "LCS a b LEN");
            assert_eq!(len, Reply::Integer(0));
            done.store(true, SeqCst);
        });
        while !begun.load(SeqCst) {
            std::thread::yield_now();
        }
        call(keyspace, 0, "SWAPDB 0 1");
        assert!(!done.load(SeqCst), "it waited for the end");
    });
}
