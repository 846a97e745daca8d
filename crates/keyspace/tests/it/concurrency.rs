//! Many threads on one keyspace: nothing torn, nothing lost, nothing stuck.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use crate::common::{Rig, START, call_at, show, time};
use tidewheel_keyspace::Keyspace;
use tidewheel_resp::Reply;

fn call(keyspace: &Keyspace, tick: u64, line: &str) -> Reply {
    call_at(keyspace, tick, 0, line)
}

#[test]
fn commands_on_several_keys_are_atomic_and_counts_add_up() {
    const THREADS: u64 = 4;
    const ROUNDS: u64 = 3_000;
    let rig = Rig::new();
    rig.notify("KEA");
    let keyspace = &rig.keyspace;
    call(keyspace, START, "MSET a 0 b 0 c 0 d 0");
    let running = AtomicU64::new(THREADS);
    let events = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let running = &running;
            scope.spawn(move || {
                for i in 0..ROUNDS {
                    let tick = START + i;
                    call(keyspace, tick, "INCR counter");
                    call(keyspace, tick, &format!("MSET d {i} c {i} b {i} a {i}"));
                    let Reply::Array(values) = call(keyspace, tick, "MGET a b c d") else {
                        panic!("an array");
                    };
                    assert!(
                        values.windows(2).all(|pair| pair[0] == pair[1]),
                        "{values:?}"
                    );
                    call(keyspace, tick, &format!("SET t:{thread}:{i} v PX 50"));
                    if i % 64 == 0 {
                        call(keyspace, tick, "SWAPDB 1 2");
                        call(keyspace, tick, "SCAN 0 COUNT 100");
                        call(keyspace, tick, "RENAME nope nope2");
                        call(keyspace, tick, "RANDOMKEY");
                    }
                }
                running.fetch_sub(1, Relaxed);
            });
        }
        // One more thread expires, tidies and drains, as an event loop does.
        scope.spawn(|| {
            let (mut tick, mut seat) = (START, keyspace.seat());
            while running.load(Relaxed) > 0 {
                tick += 1;
                for shard in 0..keyspace.shards() {
                    keyspace.expire(&mut seat, shard, time(tick), 32);
                    keyspace.maintain(&mut seat, shard, 4);
                }
                keyspace.drain_events(&mut |_| {
                    events.fetch_add(1, Relaxed);
                });
            }
        });
    });
    assert_eq!(
        show(&call(keyspace, START, "GET counter")),
        format!("'{}'", THREADS * ROUNDS)
    );
    let (end, mut seat) = (time(START + (1 << 30)), keyspace.seat());
    for shard in 0..keyspace.shards() {
        while keyspace.expire(&mut seat, shard, end, 100).backlog {}
    }
    keyspace.drain_events(&mut |_| {
        events.fetch_add(1, Relaxed);
    });
    assert_eq!(show(&call(keyspace, end.tick, "DBSIZE")), ":5");
    // Per round: incrby, four times set, set and expire; each timed key expires once.
    assert_eq!(events.load(Relaxed), 4 + THREADS * ROUNDS * 8);
    let stats = keyspace.stats(end);
    assert_eq!((stats.expired, stats.events_dropped), (THREADS * ROUNDS, 0));
    assert_eq!(stats.events_pending, 0);
}

#[test]
fn a_large_value_reads_back_whole_while_others_change_it() {
    let rig = Rig::new();
    let keyspace = &rig.keyspace;
    let stop = AtomicBool::new(false);
    call(keyspace, START, &format!("SET k {}", "a".repeat(200_000)));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for i in 0..200 {
                let letter = if i % 2 == 0 { "b" } else { "a" };
                call(
                    keyspace,
                    START,
                    &format!("SET k {}", letter.repeat(200_000)),
                );
                call(
                    keyspace,
                    START,
                    &format!("SETRANGE k 0 {}", letter.repeat(100)),
                );
            }
            stop.store(true, Relaxed);
        });
        scope.spawn(|| {
            while !stop.load(Relaxed) {
                let Reply::Bulk(bytes) = call(keyspace, START, "GET k") else {
                    panic!("a string")
                };
                assert_eq!(bytes.len(), 200_000);
                assert!(bytes.iter().all(|byte| *byte == bytes[0]), "torn");
            }
        });
    });
}

/// A large string that others read is changed outside the lock. No append is lost, and every read
/// sees a whole value.
#[test]
fn appends_to_a_large_string_that_others_read_all_arrive() {
    let rig = Rig::new();
    let keyspace = &rig.keyspace;
    call(keyspace, START, &format!("SET k {}", "x".repeat(100_000)));
    std::thread::scope(|scope| {
        for mark in ["a", "b", "c"] {
            scope.spawn(move || {
                let line = format!("APPEND k {}", mark.repeat(1_000));
                for _ in 0..60 {
                    call(keyspace, START, &line);
                }
            });
        }
        scope.spawn(move || {
            for _ in 0..60 {
                let Reply::Bulk(bytes) = call(keyspace, START, "GET k") else {
                    panic!("the string exists");
                };
                let mut parts = bytes[100_000..].chunks(1_000);
                assert!(parts.all(|part| part.iter().all(|byte| *byte == part[0])));
            }
        });
    });
    assert_eq!(show(&call(keyspace, START, "STRLEN k")), ":280000");
}
