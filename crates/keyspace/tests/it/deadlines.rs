//! Deadlines: setting, reporting, reaching, announcing and freezing them.

use crate::common::{Rig, START, WALL_START_MS};
use tidewheel_keyspace::Options;
use tidewheel_resp::Reply;

#[test]
fn expire_and_its_relatives_round_and_report() {
    Rig::new().script(
        "
        EXPIRE nope 10 -> :0
        TTL nope -> :-2
        PTTL nope -> :-2
        EXPIRETIME nope -> :-2
        PEXPIRETIME nope -> :-2
        SET k v -> OK
        TTL k -> :-1
        EXPIRETIME k -> :-1
        EXPIRE k 10 -> :1
        TTL k -> :10
        pass 501
        TTL k -> :9
        PTTL k -> :9499
        PEXPIRETIME k -> :1700000010000
        EXPIRETIME k -> :1700000010
        PERSIST k -> :1
        PERSIST k -> :0
        PERSIST nope -> :0
        TTL k -> :-1
        PEXPIRE k 1500 -> :1
        TTL k -> :2
        EXPIREAT k 1700000100 -> :1
        EXPIRETIME k -> :1700000100
        PEXPIREAT k 1700000100500 -> :1
        PEXPIRETIME k -> :1700000100500
        EXPIRETIME k -> :1700000101
        ",
    );
}

/// Each pair of PERSIST and EXPIREAT leaves a record that looks like the key's own. The event loops
/// went on tidying for ever, at full load.
#[test]
fn persisting_and_expiring_at_the_same_moment_again_leaves_nothing_to_tidy() {
    const KEYS: usize = 1_000;
    let mut rig = Rig::new();
    for key in 0..KEYS {
        rig.run(&format!("SET k{key} v EXAT 1700080000"));
    }
    for _ in 0..80 {
        for key in 0..KEYS {
            assert_eq!(rig.run(&format!("PERSIST k{key}")), ":1");
            assert_eq!(rig.run(&format!("EXPIREAT k{key} 1700080000")), ":1");
        }
    }
    for shard in 0..rig.keyspace.shards() {
        let mut calls = 0;
        while rig.keyspace.maintain(&mut rig.seat, shard, 64) {
            calls += 1;
            assert!(calls < 100_000, "shard {shard} is tidied for ever");
        }
    }
    rig.pass(80_000_000);
    assert_eq!(rig.expire_all() as usize, KEYS);
}

/// A bound that was looked at before the memory went back says nothing of what came after.
#[test]
fn a_key_is_due_in_time_after_its_database_has_given_its_memory_back() {
    let mut rig = Rig::new();
    for round in 0..4 {
        for key in 0..=round {
            assert_eq!(rig.run(&format!("SET k{key} v PX 100")), "OK");
        }
        rig.pass(100);
        let soonest = |rig: &Rig, shard| rig.keyspace.next_deadline(shard) <= rig.time.tick;
        let due = (0..rig.keyspace.shards()).filter(|shard| soonest(&rig, *shard));
        assert!(due.count() > 0, "nobody would look at the shards");
        assert_eq!(rig.expire_all(), round + 1);
        for shard in 0..rig.keyspace.shards() {
            while rig.keyspace.maintain(&mut rig.seat, shard, 64) {}
        }
    }
}

#[test]
fn conditions_compare_deadlines() {
    Rig::new().script(
        "
        SET k v -> OK
        EXPIRE k 10 XX -> :0
        EXPIRE k 10 GT -> :0
        EXPIRE k 10 NX -> :1
        EXPIRE k 20 NX -> :0
        EXPIRE k 10 GT -> :0
        EXPIRE k 10 LT -> :0
        EXPIRE k 20 GT -> :1
        EXPIRE k 30 LT -> :0
        EXPIRE k 5 LT -> :1
        EXPIRE k 50 XX GT -> :1
        TTL k -> :50
        PERSIST k -> :1
        EXPIRE k 100 LT -> :1
        EXPIRE k 1 XX LT -> :1
        PERSIST k -> :1
        EXPIRE k 1 XX LT -> :0
        EXPIRE k 1 NX XX -> -ERR NX and XX, GT or LT options at the same time are not compatible
        EXPIRE k 1 NX GT -> -ERR NX and XX, GT or LT options at the same time are not compatible
        EXPIRE k 1 GT LT -> -ERR GT and LT options at the same time are not compatible
        EXPIRE k 1 AB -> -ERR Unsupported option AB
        EXPIRE k 1 GT LT AB -> -ERR Unsupported option AB
        EXPIRE k x -> -ERR value is not an integer or out of range
        EXPIRE k 9223372036854775807 -> -ERR invalid expire time in 'expire' command
        EXPIRE k -9223372036854775808 -> -ERR invalid expire time in 'expire' command
        EXPIREAT k 9223372036854775807 -> -ERR invalid expire time in 'expireat' command
        PEXPIRE k 9223372036854775807 -> -ERR invalid expire time in 'pexpire' command
        PEXPIREAT k 9223372036854775807 -> :1
        PEXPIREAT k -9223372036854775808 -> :1
        EXISTS k -> :0
        ",
    );
}

#[test]
fn a_deadline_in_the_past_deletes() {
    let mut rig = Rig::new();
    rig.notify("KEA");
    for line in [
        "EXPIRE k 0",
        "EXPIRE k -1",
        "PEXPIREAT k 1",
        "EXPIREAT k 1699999999",
    ] {
        rig.run("SET k v");
        rig.events();
        assert_eq!(rig.run(line), ":1");
        assert_eq!(rig.events(), ["0:del:k"], "{line}");
        assert_eq!(rig.run("EXISTS k"), ":0");
    }
    assert_eq!(rig.keyspace.stats(rig.time).expired, 0);
}

#[test]
fn relative_deadlines_within_a_tick_are_rounded_up_and_report_what_was_asked() {
    let mut rig = Rig::new();
    rig.time.micros = 400;
    rig.script("SET k v PX 100 -> OK\nPTTL k -> :100");
    rig.time.micros = 0;
    rig.time.tick = START + 100;
    assert_eq!(rig.run("GET k"), "'v'", "99.6 ms have passed");
    rig.time.micros = 999;
    assert_eq!(rig.run("PTTL k"), ":0");
    rig.time.tick = START + 101;
    rig.time.micros = 0;
    assert_eq!(rig.run("GET k"), "nil");
}

#[test]
fn the_wheel_removes_and_announces_at_the_deadline_and_not_before() {
    let mut rig = Rig::new();
    rig.notify("Ex");
    for i in 0..300 {
        rig.run(&format!("SET key:{i} v PX {}", 1 + i % 100));
    }
    rig.run("SET forever v");
    assert_eq!(rig.next_deadline(), START + 1);
    for ms in 1..=100 {
        rig.pass(1);
        assert!(rig.next_deadline() <= rig.time.tick);
        assert_eq!(rig.expire_all(), 3, "after {ms} ms");
        let mut events = rig.events();
        events.sort();
        let mut due: Vec<_> = [0, 100, 200]
            .map(|n| format!("0:expired:key:{}", n + ms - 1))
            .into();
        due.sort();
        assert_eq!(events, due);
        assert_eq!(rig.run("DBSIZE"), format!(":{}", 301 - 3 * ms));
    }
    assert_eq!(rig.expire_all(), 0);
    assert_eq!(rig.next_deadline(), u64::MAX);
    let stats = rig.keyspace.stats(rig.time);
    assert_eq!(
        (
            stats.expired,
            stats.lateness_us.count,
            stats.lateness_us.max
        ),
        (300, 300, 0)
    );
}

#[test]
fn lateness_counts_microseconds_since_the_deadline() {
    let mut rig = Rig::new();
    rig.run("SET k v PX 10");
    rig.pass(12);
    rig.time.micros = 345;
    assert_eq!(rig.expire_all(), 1);
    assert_eq!(rig.keyspace.stats(rig.time).lateness_us.max, 2345);
    rig.keyspace.reset_stats();
    assert_eq!(rig.keyspace.stats(rig.time).lateness_us.count, 0);
}

#[test]
fn a_budget_leaves_a_backlog_that_later_passes_clear() {
    let mut rig = Rig::with(Options {
        shards: 1,
        databases: 16,
        seed: 1,
    });
    for db in 0..4 {
        rig.session.db = db;
        for i in 0..100 {
            rig.run(&format!("SET key:{i} v PX 10"));
        }
    }
    rig.pass(10);
    let mut fired = 0;
    let mut passes = 0;
    loop {
        let progress = rig.keyspace.expire(&mut rig.seat, 0, rig.time, 7);
        assert!(progress.fired <= 7, "{progress:?}");
        fired += progress.fired;
        passes += 1;
        if !progress.backlog {
            break;
        }
        assert!(
            rig.keyspace.next_deadline(0) <= rig.time.tick,
            "due work is published"
        );
        assert!(passes < 1000, "a backlog always clears");
    }
    assert_eq!(fired, 400);
    assert!(rig.keyspace.stats(rig.time).budget_hits >= 50);
    assert_eq!(rig.keyspace.next_deadline(0), u64::MAX);
}

#[test]
fn a_shorter_deadline_wakes_the_sleeper_and_a_longer_one_does_not() {
    let mut rig = Rig::with(Options {
        shards: 1,
        databases: 2,
        seed: 1,
    });
    let wakes = |rig: &Rig| std::mem::take(&mut *rig.told.wakes.lock().unwrap());
    rig.run("SET a v PX 100");
    assert_eq!(wakes(&rig), [(0, START + 100)]);
    rig.run("SET b v PX 200");
    rig.run("SET c v");
    rig.run("EXPIRE c 60");
    assert_eq!(wakes(&rig), []);
    rig.run("PEXPIRE c 50");
    assert_eq!(wakes(&rig), [(0, START + 50)]);
    rig.run("MSET x 1 y 2");
    rig.run("DEL c");
    assert_eq!(wakes(&rig), []);
    rig.pass(50);
    assert_eq!(rig.expire_all(), 0, "a spurious wake finds the later bound");
    assert_eq!(rig.next_deadline(), START + 100);
    rig.run("SELECT 1");
    rig.run("SET d v PX 10");
    assert_eq!(wakes(&rig), [(0, START + 60)]);
}

#[test]
fn reads_see_dead_keys_as_gone_while_active_expiry_is_off() {
    let mut rig = Rig::new();
    rig.keyspace.set_active_expire(false);
    rig.notify("KEA");
    rig.run("SET a v PX 10");
    rig.run("SET b v PX 10");
    rig.events();
    rig.pass(10);
    assert_eq!(rig.next_deadline(), u64::MAX, "nobody need wake");
    assert_eq!(rig.expire_all(), 0);
    assert_eq!(rig.run("DBSIZE"), ":2");
    assert_eq!(rig.run("GET a"), "nil");
    assert_eq!(rig.run("DBSIZE"), ":1");
    assert_eq!(rig.events(), ["0:expired:a"]);
    rig.told.wakes.lock().unwrap().clear();
    rig.keyspace.set_active_expire(true);
    assert!(
        !rig.told.wakes.lock().unwrap().is_empty(),
        "sleepers look again"
    );
    assert_eq!(rig.expire_all(), 1);
    assert_eq!(rig.events(), ["0:expired:b"]);
}

#[test]
fn freezing_stops_time_and_resuming_goes_on() {
    let mut rig = Rig::new();
    rig.script(
        "
        SET k v PX 100 -> OK
        pass 40
        EXPIRY FREEZE -> OK
        EXPIRY FREEZE -> OK
        pass 5000
        GET k -> 'v'
        PTTL k -> :60
        SET new v PX 10 -> OK
        PTTL new -> :10
        ",
    );
    assert!(rig.keyspace.stats(rig.time).frozen);
    assert_eq!(rig.next_deadline(), u64::MAX);
    assert_eq!(rig.expire_all(), 0);
    rig.told.wakes.lock().unwrap().clear();
    assert_eq!(rig.run("EXPIRY RESUME"), "OK");
    let wakes = rig.told.wakes.lock().unwrap().clone();
    assert!(
        wakes
            .iter()
            .any(|(_, deadline)| *deadline == rig.time.tick + 10),
        "{wakes:?}"
    );
    rig.script("PTTL k -> :60\npass 9\nEXISTS new -> :1\npass 1\nEXISTS new -> :0");
    rig.script("pass 49\nEXISTS k -> :1");
    assert_eq!(rig.expire_all(), 0);
    assert_eq!(rig.next_deadline(), rig.time.tick + 1);
    rig.pass(1);
    assert_eq!(rig.expire_all(), 1);
    assert_eq!(rig.run("EXPIRY RESUME"), "OK");
    assert_eq!(rig.keyspace.stats(rig.time).lateness_us.max, 0);
}

#[test]
fn wall_deadlines_hold_while_frozen_and_after() {
    let mut rig = Rig::new();
    rig.run("EXPIRY FREEZE");
    rig.pass(1000);
    rig.run("EXPIRY RESUME");
    rig.script("SET k v PXAT 1700000001500 -> OK\nPTTL k -> :500\nPEXPIRETIME k -> :1700000001500");
    rig.script("pass 499\nEXISTS k -> :1\npass 1\nEXISTS k -> :0");
}

#[test]
fn a_step_of_the_wall_clock_changes_no_relative_deadline() {
    let mut rig = Rig::new();
    rig.run("SET k v PX 1000");
    rig.time.wall_offset_ms += 3_600_000;
    assert_eq!(rig.run("PTTL k"), ":1000");
    assert_eq!(rig.run("PEXPIRETIME k"), ":1700003601000");
    rig.pass(999);
    assert_eq!(rig.run("EXISTS k"), ":1");
}

#[test]
fn a_forecast_is_readable() {
    let mut rig = Rig::new();
    rig.script(
        "
        EXPIRY FORECAST -> ['all with a deadline: 0 keys' 'without a deadline: 0 keys']
        SET a:1 v PX 500 -> OK
        SET a:2 v PX 999 -> OK
        SET a:3 v EX 60 -> OK
        SET b:1 v EX 7200 -> OK
        SET c v EX 9999 -> OK
        SET forever v -> OK
        EXPIRY FORECAST -> ['within 1 s: 2 keys' '1 s to 10 s: 0 keys' '10 s to 1 min: 1 key' '1 min to 10 min: 0 keys' '10 min to 1 h: 0 keys' '1 h to 6 h: 2 keys' 'all with a deadline: 5 keys' 'without a deadline: 1 key']
        EXPIRY FORECAST BY PREFIX -> ['a:: 3 keys, the next in 500 ms, the last in 1.0 min' '(no prefix): 1 key, the next in 2.8 h, the last in 2.8 h' 'b:: 1 key, the next in 2.0 h, the last in 2.0 h']
        EXPIRY FORECAST BY PREFIX COUNT 1 DELIMITER : -> ['a:: 3 keys, the next in 500 ms, the last in 1.0 min']
        EXPIRY FORECAST BY PREFIX COUNT 0 -> -ERR COUNT must be between 1 and 1000
        EXPIRY FORECAST BY PREFIX COUNT -> -ERR syntax error
        EXPIRY FORECAST BY KEY -> -ERR syntax error
        ",
    );
}

#[test]
fn a_forecast_counts_keys_by_window() {
    let mut rig = Rig::new();
    rig.script("EXPIRY FORECAST 1 -> [[:0 :-1 :0]]");
    for ms in [1, 2, 3, 5, 6, 7, 100, 1000] {
        rig.run(&format!("SET key:{ms} v PX {ms}"));
    }
    rig.run("SET forever v");
    let Reply::Array(windows) = rig.words(&[b"EXPIRY", b"FORECAST", b"11"]) else {
        panic!()
    };
    let rows: Vec<(i64, i64, i64)> = windows
        .iter()
        .map(|row| match row {
            Reply::Array(row) => match row[..] {
                [Reply::Integer(from), Reply::Integer(to), Reply::Integer(n)] => (from, to, n),
                _ => panic!("{row:?}"),
            },
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(rows.iter().map(|row| row.2).sum::<i64>(), 8);
    assert_eq!(
        rows[..5],
        [(0, 1, 0), (1, 2, 1), (2, 4, 2), (4, 8, 3), (8, 16, 0)]
    );
    assert_eq!(rows.last(), Some(&(512, -1, 1)));
    rig.script(
        "
        EXPIRY FORECAST 2 -> [[:0 :1 :0] [:1 :-1 :8]]
        EXPIRY FORECAST 1 -> [[:0 :-1 :8]]
        EXPIRY FORECAST 0 -> -ERR buckets must be between 1 and 65
        EXPIRY FORECAST 66 -> -ERR buckets must be between 1 and 65
        EXPIRY FORECAST x -> -ERR value is not an integer or out of range
        EXPIRY FORECAST 1 2 -> -ERR syntax error
        SELECT 1 -> OK
        EXPIRY FORECAST 1 -> [[:0 :-1 :0]]
        ",
    );
    let Reply::Array(all) = rig.words(&[b"EXPIRY", b"FORECAST", b"65"]) else {
        panic!()
    };
    assert_eq!(all.len(), 65);
}

#[test]
fn time_is_the_wall_clock() {
    let mut rig = Rig::new();
    rig.pass(1_234);
    rig.time.micros = 567;
    rig.run("EXPIRY FREEZE");
    rig.script("TIME -> ['1700000001' '234567']");
}

/// Two threads read the clock at different moments. The one that read it earlier comes second, and
/// must not find alive what the other has seen dead, nor give a time to live that began before.
#[test]
fn time_of_a_shard_never_goes_back_whoever_comes_with_an_older_clock() {
    let mut rig = Rig::with(Options {
        shards: 1,
        ..Options::default()
    });
    rig.run("SET soon v PX 5");
    rig.run("HSET hash field v");
    rig.run("HPEXPIRE hash 5 FIELDS 1 field");
    rig.pass(5);
    assert_eq!(rig.run("GET another"), "nil");
    rig.time.tick -= 1;
    assert_eq!(rig.run("GET soon"), "nil");
    assert_eq!(rig.run("HGET hash field"), "nil");
    rig.run("SET later v PX 10");
    assert_eq!(rig.run("PTTL later"), ":10");
    assert_eq!(
        rig.run("PEXPIRETIME later"),
        format!(":{}", WALL_START_MS + 15)
    );
    assert_eq!(
        rig.run("TIME"),
        "['1700000000' '4000']",
        "it looks at no shard"
    );
    rig.time.tick += 10;
    assert_eq!(rig.run("GET later"), "'v'");
    rig.pass(1);
    assert_eq!(rig.run("GET later"), "nil");
}

/// A pass of expiry, a transaction over two shards, and a client that waited are no different.
#[test]
fn time_of_a_shard_is_met_by_expiry_transactions_and_those_who_are_served() {
    let mut rig = Rig::with(Options {
        shards: 1,
        ..Options::default()
    });
    rig.run("SET soon v PX 5");
    rig.run("SET other v PX 6");
    rig.pass(6);
    let progress = rig.keyspace.expire(&mut rig.seat, 0, rig.time, 1);
    assert_eq!(progress.fired, 1);
    rig.time.tick -= 3;
    assert_eq!(rig.run("EXISTS soon other"), ":0");
}
