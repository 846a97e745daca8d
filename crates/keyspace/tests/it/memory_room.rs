//! `maxmemory`: a command has room or is refused; what is empty takes no room.

use std::sync::atomic::Ordering::Relaxed;

use crate::common::{OOM, Rig, fill, limit_to_what_is_used, show};
use tidewheel_keyspace::{Options, Policy};

/// The data exceeded the limit by a quarter. The search had ended early, because the limit was not
/// exceeded *yet*.
#[test]
fn a_search_that_ends_early_lets_no_command_go_beyond_the_limit() {
    for policy in Policy::all() {
        let mut rig = Rig::new();
        rig.keyspace.rules().set_policy(policy);
        fill(&mut rig, 0, 20_000, "EX 1000");
        let limit = limit_to_what_is_used(&rig) + (1 << 20);
        rig.keyspace.rules().maxmemory.store(limit, Relaxed);
        rig.told.slowness_ns.store(50_000_000, Relaxed);
        assert_eq!(rig.run("SETRANGE large 1999999 x"), OOM, "{policy:?}");
        let large = vec![b'x'; 2_000_000];
        assert_eq!(show(&rig.words(&[b"SET", b"large", &large])), OOM);
        assert_eq!(rig.run("SETRANGE fits 499999 x"), ":500000", "{policy:?}");
        let used = rig.keyspace.stats(rig.time).used_memory;
        assert!(used <= limit, "{policy:?}: {used} of {limit}");
    }
}

/// One command could exceed the limit by all that it brought.
#[test]
fn when_no_key_may_be_evicted_a_command_fits_or_is_refused() {
    for name in ["noeviction", "volatile-lru", "volatile-ttl"] {
        let mut rig = Rig::new();
        let policy = Policy::parse(name.as_bytes()).expect("a policy");
        rig.keyspace.rules().set_policy(policy);
        fill(&mut rig, 0, 1_000, "");
        let limit = limit_to_what_is_used(&rig) + 100_000;
        rig.keyspace.rules().maxmemory.store(limit, Relaxed);
        let value = "v".repeat(60_000);
        assert_eq!(rig.run(&format!("SET first {value}")), "OK", "{name}");
        assert_eq!(rig.run(&format!("SET second {value}")), OOM, "{name}");
        assert_eq!(rig.run("SETRANGE third 60000 x"), OOM, "{name}");
        // The memory of the replaced value counts as free.
        assert_eq!(rig.run(&format!("SET first {value}")), "OK", "{name}");
        let used = rig.keyspace.stats(rig.time).used_memory;
        assert!(used <= limit, "{name}: {used} of {limit}");
    }
}

/// Several copies were made, each as large as the limit allows for one.
#[test]
fn a_copy_has_room_or_is_refused() {
    for policy in [Policy::NoEviction, Policy::AllKeysRandom] {
        let mut rig = Rig::new();
        rig.keyspace.rules().set_policy(policy);
        rig.words(&[b"SET", b"large", &vec![b'x'; 600_000]]);
        rig.run("SET small v");
        rig.keyspace.rules().maxmemory.store(1_000_000, Relaxed);
        assert_eq!(rig.run("COPY small other"), ":1", "{policy:?}");
        assert_eq!(rig.run("COPY nobody other"), ":0", "{policy:?}");
        let reply = rig.run("COPY large again");
        if policy == Policy::NoEviction {
            assert_eq!(reply, OOM);
        }
        let used = rig.keyspace.stats(rig.time).used_memory;
        assert!(used <= 1_000_000, "{policy:?}: {reply}, {used}");
    }
}

/// Sixty-four keys in each database, and none again.
fn use_every_database(rig: &mut Rig) {
    for db in 0..rig.keyspace.databases() {
        rig.run(&format!("SELECT {db}"));
        fill(rig, 0, 64, "EX 1000");
        for i in 0..64 {
            rig.run(&format!("DEL key:{i}"));
        }
    }
}

fn rig_of_many_databases() -> Rig {
    Rig::with(Options {
        shards: 64,
        databases: 64,
        seed: 42,
    })
}

/// An emptied database kept thirteen kilobytes until the server was restarted.
#[test]
fn a_database_that_was_emptied_costs_nothing_once_it_is_flushed_or_tidied() {
    let flush = |rig: &mut Rig| {
        rig.run("FLUSHALL");
    };
    let tidy = |rig: &mut Rig| {
        for shard in 0..rig.keyspace.shards() {
            while rig.keyspace.maintain(&mut rig.seat, shard, 1000) {}
        }
    };
    for (how, make_empty) in [("flushed", flush as fn(&mut Rig)), ("tidied", tidy)] {
        let mut rig = rig_of_many_databases();
        use_every_database(&mut rig);
        assert!(rig.keyspace.stats(rig.time).used_memory > 100_000);
        make_empty(&mut rig);
        assert_eq!(rig.keyspace.stats(rig.time).used_memory, 0, "{how}");
    }
}

/// The tables of empty databases used up the limit, so every write was refused.
#[test]
fn memory_of_empty_databases_can_be_used_under_every_policy() {
    for policy in Policy::all() {
        let mut rig = rig_of_many_databases();
        rig.keyspace.rules().set_policy(policy);
        use_every_database(&mut rig);
        rig.keyspace.rules().maxmemory.store(100_000, Relaxed);
        assert_eq!(rig.run("SET k v"), "OK", "{policy:?}");
        for i in 0..100 {
            assert_eq!(rig.run(&format!("SET k{i} v")), "OK", "{policy:?}");
        }
        // Shards keep small changes back.
        let used = rig.keyspace.stats(rig.time).used_memory;
        assert!(used <= 150_000, "{policy:?}: {used}");
    }
}

#[test]
fn evicting_a_few_keys_in_many_databases_leaves_no_memory_in_use() {
    let mut rig = rig_of_many_databases();
    rig.keyspace.rules().set_policy(Policy::AllKeysLru);
    rig.keyspace.rules().maxmemory.store(300_000, Relaxed);
    for db in 0..64 {
        rig.run(&format!("SELECT {db}"));
        for i in 0..64 {
            assert_eq!(rig.run(&format!("SET key:{i} v")), "OK", "{db}: {i}");
        }
    }
    let stats = rig.keyspace.stats(rig.time);
    let keys: u64 = stats.databases.iter().map(|db| db.keys).sum();
    assert!(keys > 500, "{keys} keys in {} bytes", stats.used_memory);
}
