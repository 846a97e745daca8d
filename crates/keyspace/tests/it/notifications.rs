//! Keyspace events: which, in which order, and which not.

use std::collections::HashSet;
use std::sync::Mutex;

use crate::common::{Rig, START, call_at};
use tidewheel_keyspace::{Keyspace, PAUSED, Watching};

#[track_caller]
fn check(rig: &mut Rig, line: &str, events: &[&str]) {
    rig.run(line);
    assert_eq!(rig.events(), events, "{line}");
}

#[test]
fn each_command_announces_what_it_did() {
    let mut rig = Rig::with(tidewheel_keyspace::Options {
        shards: 1,
        databases: 16,
        seed: 1,
    });
    rig.notify("KEA");
    for (line, events) in [
        ("SET k v", &["0:set:k"][..]),
        ("SET k v NX", &[]),
        ("SET k v EX 10", &["0:set:k", "0:expire:k"]),
        ("SET k v KEEPTTL", &["0:set:k"]),
        ("SETEX k 10 v", &["0:set:k", "0:expire:k"]),
        ("PSETEX k 10 v", &["0:set:k", "0:expire:k"]),
        ("GETEX k EX 10", &["0:expire:k"]),
        ("GETEX k PERSIST", &["0:persist:k"]),
        ("GETEX k PERSIST", &[]),
        ("GETEX k", &[]),
        ("GET k", &[]),
        ("GETSET k v", &["0:set:k"]),
        ("GETDEL k", &["0:del:k"]),
        ("GETDEL k", &[]),
        ("SETNX k v", &["0:set:k"]),
        ("SETNX k v", &[]),
        ("MSET a 1 b 2", &["0:set:a", "0:set:b"]),
        ("MSETNX a 1 c 2", &[]),
        ("MSETEX 1 a 1 NX", &[]),
        ("MSETNX c 1 d 2", &["0:set:c", "0:set:d"]),
        ("APPEND k x", &["0:append:k"]),
        ("SETRANGE k 0 y", &["0:setrange:k"]),
        ("SETRANGE k 0 \"\"", &[]),
        ("INCR n", &["0:incrby:n"]),
        ("DECRBY n 3", &["0:incrby:n"]),
        ("INCRBYFLOAT n 3", &["0:incrbyfloat:n"]),
        ("INCR k", &[]),
        ("EXPIRE k 10", &["0:expire:k"]),
        ("EXPIRE k 10 NX", &[]),
        ("EXPIRE nope 10", &[]),
        ("PERSIST k", &["0:persist:k"]),
        ("PERSIST k", &[]),
        ("RENAME k r", &["0:rename_from:k", "0:rename_to:r"]),
        ("RENAME r r", &[]),
        ("RENAME r a", &["0:rename_from:r", "0:rename_to:a"]),
        ("RENAMENX a b", &[]),
        ("COPY a copied", &["0:copy_to:copied"]),
        ("COPY a copied", &[]),
        ("COPY a copied DB 2", &["2:copy_to:copied"]),
        ("MOVE a 3", &["0:move_from:a", "3:move_to:a"]),
        ("MOVE nope 3", &[]),
        ("DEL b nope c", &["0:del:b", "0:del:c"]),
        ("UNLINK d", &["0:del:d"]),
        ("TOUCH n", &[]),
        ("EXISTS n nope", &[]),
        ("FLUSHALL", &[]),
    ] {
        check(&mut rig, line, events);
    }
}

#[test]
fn new_keys_and_misses_are_announced_when_asked_for() {
    let mut rig = Rig::with(tidewheel_keyspace::Options {
        shards: 1,
        databases: 16,
        seed: 1,
    });
    rig.notify("KEAmn");
    for (line, events) in [
        ("GET k", &["0:keymiss:k"][..]),
        ("SET k v", &["0:new:k", "0:set:k"]),
        ("SET k v", &["0:set:k"]),
        ("TTL nope", &["0:keymiss:nope"]),
        ("EXISTS nope", &["0:keymiss:nope"]),
        ("MGET k nope", &["0:keymiss:nope"]),
        ("OBJECT ENCODING nope", &[]),
        ("EXPIRE nope 1", &[]),
        ("DEL nope", &[]),
        ("SET nope v XX", &[]),
        ("APPEND a x", &["0:new:a", "0:append:a"]),
        ("INCR n", &["0:new:n", "0:incrby:n"]),
        ("COPY a c", &["0:new:c", "0:copy_to:c"]),
        (
            "RENAME a r",
            &["0:new:r", "0:rename_from:a", "0:rename_to:r"],
        ),
        ("MOVE r 1", &["1:new:r", "0:move_from:r", "1:move_to:r"]),
        ("MSET x 1 k 2", &["0:new:x", "0:set:x", "0:set:k"]),
    ] {
        check(&mut rig, line, events);
    }
    rig.notify("E$");
    check(&mut rig, "SET k2 v EX 1", &["0:set:k2"]);
    rig.notify("A");
    check(&mut rig, "SET k3 v", &[]);
}

#[test]
fn a_dead_key_is_announced_before_the_command_that_met_it() {
    let mut rig = Rig::new();
    rig.notify("KEAmn");
    for (line, events) in [
        ("SET k v", &["0:expired:k", "0:new:k", "0:set:k"][..]),
        ("GET k", &["0:expired:k", "0:keymiss:k"]),
        ("DEL k", &["0:expired:k"]),
        ("EXPIRE k 10", &["0:expired:k"]),
        ("APPEND k x", &["0:expired:k", "0:new:k", "0:append:k"]),
        ("INCR k", &["0:expired:k", "0:new:k", "0:incrby:k"]),
        ("PERSIST k", &["0:expired:k"]),
        ("SETNX k v", &["0:expired:k", "0:new:k", "0:set:k"]),
        ("TTL k", &["0:expired:k", "0:keymiss:k"]),
        ("MEMORY USAGE k", &["0:expired:k"]),
    ] {
        rig.run("SET k v PX 10");
        rig.events();
        rig.pass(10);
        check(&mut rig, line, events);
        rig.run("DEL k");
        rig.events();
    }
}

#[test]
fn events_of_one_key_keep_their_order_across_shards() {
    let mut rig = Rig::new();
    rig.notify("KEA");
    let mut expected = std::collections::BTreeMap::<String, Vec<String>>::new();
    for i in 0..200 {
        let key = format!("k{}", i % 10);
        for (line, event) in [
            (format!("SET {key} {i}"), "set"),
            (format!("INCR {key}"), "incrby"),
            (format!("DEL {key}"), "del"),
        ] {
            rig.run(&line);
            expected
                .entry(key.clone())
                .or_default()
                .push(event.to_owned());
        }
    }
    let mut found = std::collections::BTreeMap::<String, Vec<String>>::new();
    for event in rig.events() {
        let mut parts = event.split(':').skip(1).map(str::to_owned);
        let (name, key) = (parts.next().unwrap(), parts.next().unwrap());
        found.entry(key).or_default().push(name);
    }
    assert_eq!(found, expected);
}

#[test]
fn events_of_one_client_come_in_the_order_in_which_it_caused_them() {
    let mut rig = Rig::new();
    rig.notify("KEA");
    let keys = || (0..20).map(|i| format!("k{i:02}"));
    for key in keys() {
        rig.run(&format!("SET {key} v"));
    }
    let set: Vec<_> = keys().map(|key| format!("0:set:{key}")).collect();
    assert_eq!(rig.events(), set);
    rig.run(&format!("DEL {}", keys().collect::<Vec<_>>().join(" ")));
    let deleted: Vec<_> = keys().map(|key| format!("0:del:{key}")).collect();
    assert_eq!(rig.events(), deleted, "of one command as well");
}

/// What the server's hub is: publishing is one thread's at a time, and takes a while.
#[derive(Default)]
struct Hub {
    turn: Mutex<()>,
    published: Mutex<HashSet<Box<[u8]>>>,
}

impl Hub {
    fn flush(&self, keyspace: &Keyspace) {
        let _turn = self.turn.lock().unwrap();
        keyspace.drain_events(&mut |event| {
            std::thread::yield_now();
            self.published.lock().unwrap().insert(event.key);
        });
    }
}

#[test]
fn an_event_is_published_before_the_reply_even_if_another_loop_publishes_it() {
    let rig = Rig::new();
    rig.notify("E$");
    let (keyspace, hub) = (&rig.keyspace, &Hub::default());
    std::thread::scope(|scope| {
        for thread in 0..4 {
            scope.spawn(move || {
                for i in 0..2_000 {
                    let key = format!("{thread}:{i}");
                    call_at(keyspace, START, 0, &format!("SET {key} v"));
                    if keyspace.events_pending() {
                        hub.flush(keyspace);
                    }
                    // The reply would leave now.
                    let mut published = hub.published.lock().unwrap();
                    assert!(published.remove(key.as_bytes()), "{key}");
                }
            });
        }
    });
}

/// HSETEX sent nothing for a missing key, and only `hdel` for another one. The order is that of
/// Redis 8.2.
#[test]
fn fields_that_are_stored_for_no_time_are_told_of_twice() {
    let mut rig = Rig::new();
    rig.notify("KEA");
    for line in [
        "HSETEX k EX 0 FIELDS 1 a 1",
        "HSETEX k FNX PXAT 1 FIELDS 2 a 1 b 2",
    ] {
        let mut watching = Watching::default();
        let (keyspace, seat) = (&rig.keyspace, &mut rig.seat);
        let watched = keyspace.watch(seat, rig.time, 0, b"k", &mut watching);
        watched.expect("nobody else is there");
        check(&mut rig, line, &["0:hset:k", "0:hdel:k", "0:del:k"]);
        assert!(watching.is_changed(), "{line}");
        rig.keyspace.unwatch(watching);
    }
    rig.run("HSET k a 1 b 2");
    rig.events();
    let line = "HSETEX k FXX EXAT 1 FIELDS 1 a 9";
    check(&mut rig, line, &["0:hset:k", "0:hdel:k"]);
    check(&mut rig, "HSETEX k FXX EX 0 FIELDS 1 a 9", &[]);
    rig.script("HGETALL k -> ['b' '2']");
    let line = "HSETEX k PXAT 1 FIELDS 2 b 1 c 1";
    check(&mut rig, line, &["0:hset:k", "0:hdel:k", "0:del:k"]);
    rig.script("EXISTS k -> :0");
}

/// An event that waited for the end of a pause was sent for the database that had the number by
/// then.
#[test]
fn an_event_that_is_owed_is_sent_before_its_database_is_swapped_or_flushed() {
    for (line, more) in [("SWAPDB 0 1", "SWAPDB 1 0"), ("FLUSHDB", "FLUSHALL")] {
        let mut rig = Rig::new();
        rig.notify("KEA");
        rig.run("HSET k a 1 b 2");
        rig.run("HPEXPIRE k 10 FIELDS 1 a");
        rig.events();
        let gate = std::sync::Arc::clone(rig.keyspace.gate());
        gate.set(PAUSED);
        rig.pass(10);
        rig.script("HLEN k -> :1");
        gate.clear(PAUSED);
        check(&mut rig, line, &["0:hexpired:k"]);
        check(&mut rig, more, &[]);
        rig.expire_all();
        assert!(rig.events().is_empty());
    }
}
