//! Tracking: who is told that what it has read is invalid, and when.

use std::sync::Mutex;

use tidewheel_keyspace::{Options, PrefixError, Session, TrackingMode, TrackingStats, Waiter};

use crate::common::Rig;

/// Clients that track, over a keyspace in virtual time.
struct Readers {
    rig: Rig,
}

fn client(id: u64) -> Waiter {
    Waiter {
        owner: 0,
        slot: id as u32,
        id,
    }
}

fn broadcast(prefixes: &[&str]) -> TrackingMode {
    TrackingMode {
        no_loop: false,
        prefixes: Some(prefixes.iter().map(|text| text.as_bytes().into()).collect()),
    }
}

impl Readers {
    fn new() -> Self {
        // In one shard, keys are announced in the order in which they have changed.
        let rig = Rig::with(Options {
            shards: 1,
            ..Options::default()
        });
        rig.keyspace.set_tracking_keys_max(1_000);
        Self { rig }
    }

    fn track(&self, id: u64, mode: TrackingMode) {
        (self.rig.keyspace.track(client(id), mode)).expect("prefixes that do not overlap");
    }

    /// A client runs a line. Returns who was told of what since.
    #[track_caller]
    fn run(&mut self, id: u64, line: &str) -> String {
        self.rig.session = Session {
            waiter: Some(client(id)),
            tracks: true,
            ..Session::default()
        };
        self.rig.run(line);
        self.rig.session = Session::default();
        self.told()
    }

    /// Who was told of what, in order: `1:a,b`.
    fn told(&self) -> String {
        let told = std::mem::take(&mut *self.rig.told.invalid.lock().unwrap());
        told.join(" ")
    }

    fn stats(&self) -> TrackingStats {
        self.rig.keyspace.tracking_stats()
    }
}

#[test]
fn a_reader_is_told_once_of_each_key_that_has_changed() {
    let mut readers = Readers::new();
    readers.track(1, TrackingMode::default());
    readers.track(2, TrackingMode::default());
    for (id, line, told) in [
        (9, "SET a 1", ""),
        (1, "GET a", ""),
        (2, "MGET a b", ""),
        (2, "GET a", ""),
        (9, "SET a 2", "1:a 2:a"),
        (9, "SET a 3", ""),
        // What is not there can come.
        (9, "SET b 1", "2:b"),
        // A command that writes tracks nothing, whatever it replies with.
        (1, "GETEX a", ""),
        (1, "SET a 4 GET", ""),
        (9, "DEL a", ""),
        // The author is told too.
        (1, "HGETALL h", ""),
        (1, "HSET h f v", "1:h"),
        (1, "HLEN h", ""),
        (9, "HDEL h f", "1:h"),
        // A wrong type, and a rename, which changes two.
        (1, "LLEN b", ""),
        (2, "EXISTS c", ""),
        (9, "RENAME b c", "1:b 2:c"),
        // Nothing has changed.
        (1, "GET c", ""),
        (9, "SET c 1 NX", ""),
        (9, "EXPIRE c 100", "1:c"),
        // In whatever database.
        (1, "GET c", ""),
        (9, "MOVE c 1", "1:c"),
    ] {
        assert_eq!(readers.run(id, line), told, "{line}");
    }
    let stats = readers.stats();
    assert_eq!((stats.clients, stats.keys, stats.items), (2, 0, 0));
}

#[test]
fn readers_are_told_when_a_key_that_nobody_touches_reaches_its_deadline() {
    let mut readers = Readers::new();
    readers.track(
        1,
        TrackingMode {
            no_loop: true,
            prefixes: None,
        },
    );
    readers.run(9, "SET a 1 PX 10");
    readers.run(9, "HSET h f 1 g 2");
    readers.run(9, "HPEXPIRE h 20 FIELDS 1 f");
    readers.run(1, "MGET a b");
    readers.run(1, "HGETALL h");
    readers.rig.pass(9);
    readers.rig.expire_all();
    assert_eq!(readers.told(), "");
    readers.rig.pass(1);
    readers.rig.expire_all();
    assert_eq!(readers.told(), "1:a", "though it wants no news of its own");
    readers.rig.pass(10);
    readers.rig.expire_all();
    assert_eq!(readers.told(), "1:h", "a field has left");
    // One that a command finds dead: its reader is told, and reads what is there now.
    readers.run(9, "SET a 1 PX 10");
    readers.run(1, "GET a");
    readers.rig.pass(10);
    assert_eq!(readers.run(1, "GET a"), "1:a");
}

#[test]
fn a_client_may_ask_not_to_be_told_of_its_own_changes() {
    let mut readers = Readers::new();
    let no_loop = TrackingMode {
        no_loop: true,
        prefixes: None,
    };
    readers.track(1, no_loop);
    readers.track(
        2,
        TrackingMode {
            no_loop: true,
            ..broadcast(&[""])
        },
    );
    readers.run(1, "GET a");
    assert_eq!(readers.run(1, "SET a 1"), "2:a");
    readers.run(1, "GET a");
    assert_eq!(readers.run(2, "SET a 1"), "1:a");
    assert_eq!(readers.run(9, "MSET a 1 b 2"), "2:a,b");
    assert_eq!(readers.run(1, "FLUSHALL"), "1:* 2:*");
}

#[test]
fn whoever_reads_nothing_is_told_of_keys_with_its_prefixes() {
    let mut readers = Readers::new();
    readers.track(1, broadcast(&["user:", "u2"]));
    readers.track(2, broadcast(&["user:1"]));
    readers.track(3, broadcast(&[]));
    assert_eq!(readers.run(9, "SET user:12 x"), "1:user:12 2:user:12");
    assert_eq!(readers.run(9, "SET user:2 x PX 5"), "1:user:2");
    assert_eq!(readers.run(9, "SET other x"), "");
    assert_eq!(readers.run(1, "GET other"), "", "its reads are not tracked");
    assert_eq!(readers.run(9, "SET other y"), "");
    readers.rig.pass(5);
    readers.rig.expire_all();
    assert_eq!(readers.told(), "1:user:2");
    let overlap = readers.rig.keyspace.track(client(1), broadcast(&["use"]));
    assert!(matches!(overlap, Err(PrefixError::Existing(..))));
    readers.rig.keyspace.untrack(client(1));
    assert_eq!(readers.run(9, "SET user:2 x"), "");
    assert_eq!(readers.stats().prefixes, 1);
    readers.rig.keyspace.untrack(client(2));
    readers.rig.keyspace.untrack(client(3));
    assert_eq!(readers.stats(), TrackingStats::default());
}

#[test]
fn a_key_that_has_to_leave_a_full_table_is_announced() {
    let mut readers = Readers::new();
    readers.rig.keyspace.set_tracking_keys_max(100);
    readers.track(1, TrackingMode::default());
    let mut told = 0;
    for i in 0..5_000 {
        let more = readers.run(1, &format!("GET key:{i}"));
        told += more.split_whitespace().count();
    }
    let stats = readers.stats();
    // Each shard may have one more.
    assert!(stats.keys <= 108, "{stats:?}");
    assert_eq!(stats.keys + told, 5_000, "each is known, or was announced");
    readers.rig.keyspace.untrack(client(1));
    assert_eq!(readers.stats(), TrackingStats::default());
}

#[test]
fn everything_is_invalid_when_databases_are_emptied_or_swapped() {
    let mut readers = Readers::new();
    readers.track(1, TrackingMode::default());
    for line in ["FLUSHDB", "FLUSHALL SYNC", "SWAPDB 0 1"] {
        readers.run(1, "GET a");
        assert_eq!(readers.run(9, line), "1:*", "{line}");
        assert_eq!(readers.stats().keys, 0);
    }
    assert_eq!(readers.run(9, "SWAPDB 1 1"), "", "nothing was swapped");
}

#[test]
fn what_leaves_for_want_of_memory_is_announced() {
    let mut readers = Readers::new();
    readers.track(1, TrackingMode::default());
    for i in 0..200 {
        readers.run(9, &format!("SET key:{i} {}", "x".repeat(1_000)));
        readers.run(1, &format!("GET key:{i}"));
    }
    let rules = readers.rig.keyspace.rules();
    rules.set_policy(tidewheel_keyspace::Policy::parse(b"allkeys-random").expect("a policy"));
    let half = readers.rig.keyspace.used_memory() / 2;
    rules
        .maxmemory
        .store(half, std::sync::atomic::Ordering::Relaxed);
    let told: Mutex<usize> = Mutex::default();
    for i in 0..200 {
        let more = readers.run(9, &format!("SET other:{i} {}", "x".repeat(1_000)));
        *told.lock().unwrap() += more.split_whitespace().count();
    }
    let gone = 200 - readers.stats().keys;
    assert_eq!(told.into_inner().unwrap(), gone);
    assert!(gone > 50, "{gone}");
}

/// The reader was taken for the author of what its own read had met, and kept an old value for
/// ever.
#[test]
fn a_client_is_told_of_members_that_were_dead_when_it_came() {
    let mut readers = Readers::new();
    let no_loop = TrackingMode {
        no_loop: true,
        prefixes: None,
    };
    readers.track(1, no_loop);
    readers.run(9, "HSETEX h PX 5 FIELDS 1 f v");
    readers.run(9, "SADD s a b");
    readers.run(9, "SPEXPIRE s 5 MEMBERS 1 a");
    readers.rig.pass(10);
    assert_eq!(readers.run(1, "HGET h f"), "1:h");
    assert_eq!(readers.run(1, "SCARD s"), "1:s");
    // Also where it changes something else.
    readers.run(9, "SADD t a");
    readers.run(9, "SPEXPIRE t 5 MEMBERS 1 a");
    readers.run(1, "SISMEMBER t a");
    readers.rig.pass(10);
    assert_eq!(readers.run(1, "SUNIONSTORE u t"), "1:t");
}
