//! Many threads on one keyspace: nothing torn, nothing lost, nothing stuck.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use crate::common::{Rig, START, call_at, show, time};
use tidewheel_keyspace::{Begun, Keyspace, Reach, Session, resolve};
use tidewheel_oracle::Dice;
use tidewheel_resp::{Args, Protocol, Reply, Writer};

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

/// A script moves one from a key to another, or back if it cannot have the other.
fn move_one(keyspace: &Keyspace, reach: Reach, keys: &[&str], from: &str, to: &str) {
    let (mut seat, now) = (keyspace.seat(), time(START));
    seat.enter();
    let mut script = loop {
        let keys = keys.iter().map(|key| key.as_bytes());
        if let Begun::Runs(script) = keyspace.script(&mut seat, now, reach, keys) {
            break script;
        }
        seat.leave();
        std::thread::yield_now();
        seat.enter();
    };
    let mut run = |name: &str, key: &str| {
        let words = [name.as_bytes(), key.as_bytes()];
        let args = Args::from_slices(&words);
        let row = resolve(args).expect("a command");
        let has_it = script.lacks(row, args).is_none() || script.lock_more(row, args);
        if has_it {
            let mut out = Writer::new(Protocol::Resp2);
            script.call(row, &mut Session::default(), args, &mut out);
            assert_eq!(out.as_bytes().first(), Some(&b':'));
            // Those who wait for its shards are at the door.
            std::thread::yield_now();
        }
        has_it
    };
    assert!(run("DECR", from), "it has declared this one");
    if !run("INCR", to) {
        assert!(run("INCR", from));
    }
    script.end(&mut seat, now, &mut Writer::default());
    seat.leave();
}

/// Scripts with all that they may reach for, beside each other and beside commands.
#[test]
fn nobody_sees_a_script_half_done() {
    const THREADS: usize = 4;
    const ROUNDS: usize = 2_000;
    const NAMES: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let rig = Rig::new();
    let keyspace = &rig.keyspace;
    call(keyspace, START, "MSET a 0 b 0 c 0 d 0 e 0 f 0 g 0 h 0");
    let look = || {
        let Reply::Array(values) = call(keyspace, START, "MGET a b c d e f g h") else {
            panic!("an array");
        };
        let number = |value: &Reply| show(value).trim_matches('\'').parse::<i64>();
        let sum: i64 = values
            .iter()
            .map(|value| number(value).expect("a number"))
            .sum();
        assert_eq!(sum, 0, "{values:?}");
    };
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || {
                let mut dice = Dice::new(thread as u64);
                for _ in 0..ROUNDS {
                    let (from, to) = (*dice.pick(&NAMES), *dice.pick(&NAMES));
                    let (reach, keys): (_, &[&str]) = match dice.below(8) {
                        0..3 => (Reach::Keys, &[from, to]),
                        3..6 => (Reach::Keys, &[from]),
                        6 => (Reach::Shards, &[]),
                        _ => (Reach::Whole, &[]),
                    };
                    move_one(keyspace, reach, keys, from, to);
                    look();
                }
            });
        }
    });
    look();
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
