//! `maxmemory`: refusing and evicting.

use std::sync::atomic::Ordering::Relaxed;

use crate::common::{OOM, Rig, fill, limit_to_what_is_used, show};
use tidewheel_keyspace::Policy;
use tidewheel_resp::Reply;

#[test]
fn without_eviction_commands_that_may_grow_are_refused() {
    let mut rig = Rig::new();
    fill(&mut rig, 0, 5_000, "");
    rig.keyspace.rules().maxmemory.store(1000, Relaxed);
    for line in [
        "SET k v",
        "APPEND k v",
        "INCR n",
        "MSET a 1",
        "COPY key:1 key:x",
        "SETRANGE k 0 v",
    ] {
        assert_eq!(rig.run(line), OOM, "{line}");
    }
    for (line, reply) in [
        ("EXISTS key:1", ":1"),
        ("EXPIRE key:1 100", ":1"),
        ("GETDEL nope", "nil"),
        ("RENAME key:1 other", "OK"),
        ("DEL key:2", ":1"),
    ] {
        assert_eq!(rig.run(line), reply, "{line}");
    }
    rig.run("FLUSHALL");
    rig.keyspace.rules().maxmemory.store(1 << 20, Relaxed);
    assert_eq!(rig.run("SET k v"), "OK");
}

#[test]
fn the_limit_holds_under_every_policy_that_finds_victims() {
    for policy in Policy::all().filter(|policy| *policy != Policy::NoEviction) {
        let mut rig = Rig::new();
        rig.keyspace.rules().set_policy(policy);
        rig.notify("Ee");
        fill(&mut rig, 0, 5_000, "EX 1000");
        let limit = limit_to_what_is_used(&rig);
        fill(&mut rig, 5_000, 10_000, "EX 1000");
        let stats = rig.keyspace.stats(rig.time);
        assert!(stats.evicted > 3_000, "{policy:?}: {}", stats.evicted);
        assert!(stats.used_memory < limit + limit / 10, "{policy:?}");
        assert!(
            stats.databases[0].keys > 3_000,
            "{policy:?}: {}",
            stats.databases[0].keys
        );
        assert_eq!(rig.events().len() as u64, stats.evicted, "{policy:?}");
    }
}

#[test]
fn volatile_policies_spare_keys_without_a_deadline() {
    for name in [
        "volatile-lru",
        "volatile-lfu",
        "volatile-random",
        "volatile-ttl",
    ] {
        let mut rig = Rig::new();
        rig.keyspace
            .rules()
            .set_policy(Policy::parse(name.as_bytes()).expect("a policy"));
        fill(&mut rig, 0, 500, "");
        for i in 500..1_000 {
            rig.run(&format!("HSET key:{i} a 1 b 2"));
            rig.run(&format!("HEXPIRE key:{i} 1000 FIELDS 1 a"));
        }
        fill(&mut rig, 1_000, 3_000, "EX 1000");
        let stats = rig.keyspace.stats(rig.time);
        assert_eq!(stats.databases[0].expires, 2_000, "deadlines of keys");
        limit_to_what_is_used(&rig);
        let mut refused = 0;
        for i in 3_000..7_000 {
            let reply = rig.run(&format!("SET key:{i} {}", "v".repeat(100)));
            refused += u32::from(reply == OOM);
        }
        assert!(refused > 0, "{name}: nothing is left to evict");
        for i in 0..1_000 {
            assert_eq!(rig.run(&format!("EXISTS key:{i}")), ":1", "{name}");
        }
    }
}

#[test]
fn what_is_due_goes_before_any_victim() {
    let mut rig = Rig::new();
    rig.keyspace.rules().set_policy(Policy::AllKeysRandom);
    fill(&mut rig, 0, 1_000, "");
    fill(&mut rig, 1_000, 1_500, "PX 10");
    rig.pass(10);
    limit_to_what_is_used(&rig);
    fill(&mut rig, 1_500, 1_800, "");
    let stats = rig.keyspace.stats(rig.time);
    assert!(stats.expired > 100, "{}", stats.expired);
    assert_eq!(stats.evicted, 0);
}

#[test]
fn recently_used_keys_survive_lru() {
    let mut rig = Rig::new();
    rig.keyspace.rules().set_policy(Policy::AllKeysLru);
    rig.keyspace.rules().maxmemory_samples.store(10, Relaxed);
    fill(&mut rig, 0, 4_000, "");
    rig.pass(60_000);
    for i in 0..2_000 {
        rig.run(&format!("GET key:{i}"));
    }
    rig.pass(60_000);
    limit_to_what_is_used(&rig);
    fill(&mut rig, 4_000, 5_000, "");
    let mut alive = |range: std::ops::Range<u32>| {
        range
            .filter(|i| rig.run(&format!("EXISTS key:{i}")) == ":1")
            .count()
    };
    let (hot, cold) = (alive(0..2_000), alive(2_000..4_000));
    assert!(hot > 1_950 && cold < 1_500, "hot {hot}, cold {cold}");
}

#[test]
fn a_lowered_limit_evicts_without_a_write_even_the_only_key() {
    let mut rig = Rig::new();
    rig.keyspace.rules().set_policy(Policy::AllKeysLru);
    rig.notify("KEA");
    rig.run("SET foo bar");
    rig.events();
    assert!(!rig.keyspace.shrink(&mut rig.seat, rig.time));
    rig.keyspace.rules().maxmemory.store(1, Relaxed);
    for _ in 0..100 {
        if !rig.keyspace.shrink(&mut rig.seat, rig.time) {
            break;
        }
    }
    assert_eq!(rig.events(), ["0:evicted:foo"]);
    assert_eq!(rig.run("DBSIZE"), ":0");
}

/// The limit was exceeded sixfold, because 64 victims of 75 bytes make no room for a megabyte.
#[test]
fn large_values_make_room_by_bytes_and_not_by_a_number_of_victims() {
    for policy in [Policy::AllKeysLru, Policy::AllKeysRandom] {
        let mut rig = Rig::new();
        rig.keyspace.rules().set_policy(policy);
        fill(&mut rig, 0, 40_000, "");
        let limit = limit_to_what_is_used(&rig);
        let large = vec![b'x'; 200_000];
        for i in 0..60 {
            let key = format!("large:{i}");
            let reply = rig.words(&[b"SET", key.as_bytes(), &large]);
            assert_eq!(reply, Reply::Simple("OK".into()), "{policy:?}: {i}");
            let used = rig.keyspace.used_memory();
            assert!(used <= limit + SLACK, "{policy:?}: {used} of {limit}");
        }
    }
}

/// Shards report bytes by the page: so much a total may be off in these tests.
const SLACK: u64 = 8 * 4096;

/// Some growth cannot be foreseen. It is given back without another write.
#[test]
fn memory_beyond_the_limit_is_given_back_while_nobody_writes() {
    let mut rig = Rig::new();
    rig.keyspace.rules().set_policy(Policy::AllKeysRandom);
    fill(&mut rig, 0, 20_000, "");
    let limit = limit_to_what_is_used(&rig) + (1 << 20);
    rig.keyspace.rules().maxmemory.store(limit, Relaxed);
    assert!(!rig.keyspace.exceeds_limit());
    // Names are not measured.
    for i in 0..20 {
        rig.run(&format!("RENAME key:{i} {}:{i}", "k".repeat(80_000)));
    }
    assert!(rig.keyspace.exceeds_limit());
    while rig.keyspace.shrink(&mut rig.seat, rig.time) {}
    assert!(!rig.keyspace.exceeds_limit());
    assert!(rig.keyspace.used_memory() <= limit);
}

/// Each shard publishes its changes in portions. The sum of the unpublished ones looked like memory
/// in use until somebody asked for INFO.
#[test]
fn after_deletions_writes_are_taken_again_without_anybody_asking() {
    let mut rig = Rig::new();
    fill(&mut rig, 0, 5_000, "");
    rig.run("SET a v");
    limit_to_what_is_used(&rig);
    // Whatever shards had kept back is reported.
    let _ = rig.keyspace.stats(rig.time);
    let limit = rig.keyspace.used_memory() - 1;
    rig.keyspace.rules().maxmemory.store(limit, Relaxed);
    assert_eq!(rig.run("SET new v"), OOM);
    rig.run("DEL key:1 key:2 key:3 key:4");
    assert_eq!(rig.run("SET new v"), "OK");
}

#[test]
fn the_one_key_that_may_go_is_found_among_very_many() {
    for name in [
        "volatile-lru",
        "volatile-lfu",
        "volatile-random",
        "volatile-ttl",
    ] {
        let mut rig = Rig::new();
        let policy = Policy::parse(name.as_bytes()).expect("a policy");
        rig.keyspace.rules().set_policy(policy);
        fill(&mut rig, 0, 60_000, "");
        // The wheel holds as many dead records as it may.
        fill(&mut rig, 0, 4_000, "EX 1000");
        for i in 0..4_000 {
            rig.run(&format!("PERSIST key:{i}"));
        }
        rig.run(&format!("SET goes {} EX 1000", "v".repeat(30_000)));
        let _ = rig.keyspace.stats(rig.time);
        limit_to_what_is_used(&rig);
        assert_eq!(
            rig.run(&format!("SET new {}", "v".repeat(9_000))),
            "OK",
            "{name}"
        );
        assert_eq!(rig.run("EXISTS goes"), ":0", "{name}");
        assert_eq!(
            rig.run(&format!("SET more {}", "v".repeat(30_000))),
            OOM,
            "{name}: nothing is left to evict"
        );
    }
}

/// The memory of the replaced value counts as free.
#[test]
fn a_large_value_over_another_one_evicts_nobody() {
    let mut rig = Rig::new();
    rig.keyspace.rules().set_policy(Policy::AllKeysLru);
    fill(&mut rig, 0, 2_000, "");
    let large = vec![b'x'; 300_000];
    rig.words(&[b"SET", b"large", &large]);
    let limit = limit_to_what_is_used(&rig) + SLACK;
    rig.keyspace.rules().maxmemory.store(limit, Relaxed);
    rig.words(&[b"SET", b"large", &large]);
    assert_eq!(rig.keyspace.stats(rig.time).evicted, 0);
    assert_eq!(rig.run("DBSIZE"), ":2001");
}

#[test]
fn a_value_that_can_never_fit_evicts_nobody() {
    let mut rig = Rig::new();
    rig.keyspace.rules().set_policy(Policy::AllKeysLru);
    fill(&mut rig, 0, 1_000, "");
    let limit = limit_to_what_is_used(&rig);
    let large = vec![b'x'; limit as usize + 1];
    let reply = rig.words(&[b"SET", b"large", &large]);
    assert_eq!(show(&reply), OOM);
    assert_eq!(rig.run("DBSIZE"), ":1000");
}

/// The search for room had a limit of time. So a slow machine refused a value of a megabyte,
/// although a hundred thousand keys could have been evicted.
#[test]
fn a_large_value_is_never_refused_for_want_of_time_while_small_keys_may_go() {
    for policy in Policy::all().filter(|policy| *policy != Policy::NoEviction) {
        let mut rig = Rig::new();
        rig.keyspace.rules().set_policy(policy);
        fill(&mut rig, 0, 40_000, "EX 1000");
        let limit = limit_to_what_is_used(&rig);
        rig.told.slowness_ns.store(100_000, Relaxed);
        let large = vec![b'x'; 200_000];
        for i in 0..15 {
            let key = format!("large:{i}");
            let reply = rig.words(&[b"SET", key.as_bytes(), &large, b"EX", b"1000"]);
            assert_eq!(show(&reply), "OK", "{policy:?}: {i}");
            let used = rig.keyspace.used_memory();
            assert!(used <= limit + SLACK, "{policy:?}: {used} of {limit}");
        }
    }
}

#[test]
fn a_command_makes_room_for_its_own_bytes_and_only_briefly_for_those_of_others() {
    let mut rig = Rig::new();
    rig.keyspace.rules().set_policy(Policy::AllKeysRandom);
    fill(&mut rig, 0, 40_000, "");
    // With what shards have kept back.
    let limit = rig.keyspace.stats(rig.time).used_memory / 2;
    rig.keyspace.rules().maxmemory.store(limit, Relaxed);
    rig.told.slowness_ns.store(100_000, Relaxed);
    let mut farther = 0;
    for i in 0..50 {
        let before = rig.keyspace.used_memory();
        assert_eq!(rig.run(&format!("SET small:{i} v")), "OK");
        farther += usize::from(rig.keyspace.used_memory() >= before);
    }
    // A shard's index may grow by a step meanwhile.
    assert!(farther <= 2, "the limit comes nearer but {farther} times");
    let evicted = rig.keyspace.stats(rig.time).evicted;
    assert!(evicted < 50 * 40, "{evicted} for fifty small values");
    assert!(rig.keyspace.exceeds_limit(), "the rest is for others");
    while rig.keyspace.shrink(&mut rig.seat, rig.time) {}
    assert!(!rig.keyspace.exceeds_limit());
}

/// Making room took longer than the key's time to live. The key was dead before its writer got the
/// reply.
#[test]
fn a_deadline_counts_from_when_room_was_made() {
    let mut rig = Rig::new();
    rig.keyspace.rules().set_policy(Policy::AllKeysRandom);
    fill(&mut rig, 0, 20_000, "");
    limit_to_what_is_used(&rig);
    let large = vec![b'x'; 200_000];
    let words: &[&[u8]] = &[b"SET", b"large", &large, b"PX", b"5"];
    rig.told.slowness_ns.store(100_000, Relaxed);
    let before = rig.told.now_ns();
    assert_eq!(show(&rig.words(words)), "OK");
    let passed_ms = (rig.told.now_ns() - before) / 1_000_000;
    assert!(passed_ms > 10, "{passed_ms} ms");
    assert!(rig.seat.take_delay_ns() > 0);
    assert_eq!(rig.seat.take_delay_ns(), 0);
    rig.pass(passed_ms);
    let left = rig.run("PTTL large");
    assert!([":5", ":6"].contains(&left.as_str()), "{left}");
    assert_eq!(rig.seat.take_delay_ns(), 0, "reads need no room");
}

#[test]
fn a_search_for_room_does_not_last_for_ever() {
    let mut rig = Rig::new();
    rig.keyspace.rules().set_policy(Policy::AllKeysRandom);
    fill(&mut rig, 0, 20_000, "");
    limit_to_what_is_used(&rig);
    rig.told.slowness_ns.store(100_000_000, Relaxed);
    let large = vec![b'x'; 200_000];
    assert_eq!(show(&rig.words(&[b"SET", b"large", &large])), OOM);
    let evicted = rig.keyspace.stats(rig.time).evicted;
    assert!(0 < evicted && evicted < 1_000, "{evicted}");
}

/// SETRANGE made a value of fifty times the limit, or one that was evicted at once.
#[test]
fn what_setrange_would_make_is_measured_before_it_is_made() {
    for policy in [Policy::NoEviction, Policy::AllKeysLru] {
        let mut rig = Rig::new();
        rig.keyspace.rules().set_policy(policy);
        fill(&mut rig, 0, 1_000, "");
        rig.keyspace.rules().maxmemory.store(4 << 20, Relaxed);
        for offset in ["5000000", "500000000"] {
            let line = format!("SETRANGE far {offset} x");
            assert_eq!(rig.run(&line), OOM, "{policy:?}");
        }
        assert_eq!(rig.run("DBSIZE"), ":1000", "{policy:?}");
        assert_eq!(rig.run("SETRANGE far 0 \"\""), ":0", "{policy:?}");
        let too_far = rig.run("SETRANGE far 9000000000000000000 x");
        assert!(too_far.starts_with("-ERR string exceeds"), "{too_far}");
    }
}

#[test]
fn setrange_makes_room_for_what_it_adds_and_no_more() {
    let mut rig = Rig::new();
    rig.keyspace.rules().set_policy(Policy::VolatileLru);
    rig.words(&[b"SET", b"large", &vec![b'x'; 300_000]]);
    fill(&mut rig, 0, 20_000, "EX 1000");
    let limit = limit_to_what_is_used(&rig) + SLACK;
    rig.keyspace.rules().maxmemory.store(limit, Relaxed);
    assert_eq!(rig.run("SETRANGE large 299999 y"), ":300000");
    assert_eq!(rig.keyspace.stats(rig.time).evicted, 0);
    assert_eq!(rig.run("SETRANGE large 999999 y"), ":1000000");
    assert_eq!(rig.run("SETRANGE far 499999 y"), ":500000");
    let used = rig.keyspace.used_memory();
    assert!(used <= limit + SLACK, "{used} of {limit}");
}

#[test]
fn a_string_that_append_would_make_too_long_for_the_limit_evicts_nobody() {
    let mut rig = Rig::new();
    rig.keyspace.rules().set_policy(Policy::AllKeysLru);
    fill(&mut rig, 0, 1_000, "");
    rig.words(&[b"SET", b"large", &vec![b'x'; 700_000]]);
    rig.keyspace.rules().maxmemory.store(1_000_000, Relaxed);
    let tail = vec![b'x'; 400_000];
    assert_eq!(show(&rig.words(&[b"APPEND", b"large", &tail])), OOM);
    assert_eq!(rig.run("STRLEN large"), ":700000");
    assert_eq!(rig.run("DBSIZE"), ":1001");
}
