//! Transactions: nobody sees the data between their commands, and a watched key that changes stops
//! them.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use tidewheel_keyspace::{Begun, Command, Keyspace, Seat, Session, Watching, resolve};
use tidewheel_resp::{Args, Protocol, Reply, Writer};

use crate::common::{OOM, Rig, START, call_at, limit_to_what_is_used, show, time};

/// Runs lines as one transaction at a tick. `None` if a watched key has changed.
fn transact(
    keyspace: &Keyspace,
    seat: &mut Seat,
    tick: u64,
    watching: &Watching,
    lines: &[String],
) -> Result<Option<Vec<Reply>>, String> {
    let words: Vec<Vec<&[u8]>> = lines
        .iter()
        .map(|line| line.split_whitespace().map(str::as_bytes).collect())
        .collect();
    let calls: Vec<(&'static Command, Args<'_>)> = words
        .iter()
        .map(|words| Args::from_slices(words))
        .map(|args| (resolve(args).expect("a command"), args))
        .collect();
    let (mut session, mut out) = (Session::default(), Writer::new(Protocol::Resp2));
    seat.enter();
    let transaction = loop {
        let calls = calls.iter().copied();
        match keyspace.transaction(seat, time(tick), 0, calls, watching, false) {
            // A thread that lost its processor has a lock.
            Ok(Begun::Blocked(_)) => std::thread::yield_now(),
            Ok(begun) => break begun,
            Err(why) => {
                seat.leave();
                return Err(why.to_string());
            }
        }
    };
    let ran = matches!(transaction, Begun::Runs(_));
    if let Begun::Runs(mut transaction) = transaction {
        for (row, args) in calls {
            transaction.run(row, &mut session, args, &mut out);
        }
        transaction.end(seat, time(tick), &mut out);
    }
    seat.leave();
    let (mut at, mut replies) = (0, Vec::new());
    while let Some((reply, used)) = Reply::read(&out.as_bytes()[at..]).expect("valid") {
        at += used;
        replies.push(reply);
    }
    Ok(ran.then_some(replies))
}

fn lines(lines: &[&str]) -> Vec<String> {
    lines.iter().map(|line| (*line).to_owned()).collect()
}

/// Runs lines as one transaction, and shows its replies.
fn run(rig: &mut Rig, watching: &Watching, of: &[&str]) -> String {
    let (keyspace, tick) = (&rig.keyspace, rig.time.tick);
    match transact(keyspace, &mut rig.seat, tick, watching, &lines(of)) {
        Ok(Some(replies)) => show(&Reply::Array(replies)),
        Ok(None) => "changed".to_owned(),
        Err(why) => why,
    }
}

#[test]
fn commands_on_keys_of_many_shards_and_on_all_keys_run_in_order() {
    let mut rig = Rig::new();
    let none = Watching::default();
    assert_eq!(
        run(
            &mut rig,
            &none,
            &["SET a 1", "INCR a", "MSET b 2 c x", "GET b", "INCR c"]
        ),
        "[OK :2 OK '2' -ERR value is not an integer or out of range]",
    );
    assert_eq!(
        run(
            &mut rig,
            &none,
            &[
                "SET d 1", "DBSIZE", "KEYS d", "FLUSHALL", "DBSIZE", "SET e 1"
            ]
        ),
        "[OK :4 ['d'] OK :0 OK]",
    );
    assert_eq!(
        run(&mut rig, &none, &["SELECT 3", "SET x 1", "DBSIZE"]),
        "[OK OK :1]"
    );
    assert_eq!(run(&mut rig, &none, &["GET x", "GET e"]), "[nil '1']");
}

#[test]
fn a_large_value_is_replied_with_as_it_was_when_its_command_ran() {
    let mut rig = Rig::new();
    let none = Watching::default();
    let long = "v".repeat(100_000);
    let of = [
        format!("SET k {long}"),
        "GET k".into(),
        "APPEND k w".into(),
        "GET k".into(),
        "SET k 1".into(),
        "GET k".into(),
    ];
    let of: Vec<&str> = of.iter().map(String::as_str).collect();
    let told = run(&mut rig, &none, &of);
    assert_eq!(told, format!("[OK '{long}' :100001 '{long}w' OK '1']"));
}

#[test]
fn a_command_that_fails_takes_no_large_reply_of_an_earlier_one_along() {
    let mut rig = Rig::new();
    let none = Watching::default();
    let long = "v".repeat(100_000);
    rig.run(&format!("SET k {long}"));
    rig.run("SET word x");
    let told = run(
        &mut rig,
        &none,
        &[
            "GET k",
            "INCR word",
            "MGET k word",
            "INCR k",
            "GET k",
            "LPUSH k x",
        ],
    );
    let (no, wrong) = (
        "-ERR value is not an integer or out of range",
        "-WRONGTYPE Operation against a key holding the wrong kind of value",
    );
    assert_eq!(
        told,
        format!("['{long}' {no} ['{long}' 'x'] {no} '{long}' {wrong}]")
    );
}

#[test]
fn time_stands_still_within_a_transaction() {
    let mut rig = Rig::new();
    let none = Watching::default();
    assert_eq!(
        run(&mut rig, &none, &["SET a 1 PX 1", "PTTL a", "GET a"]),
        "[OK :1 '1']",
    );
    rig.pass(1);
    assert_eq!(
        run(&mut rig, &none, &["GET a", "SET a 2", "PTTL a"]),
        "[nil OK :-1]"
    );
}

#[test]
fn each_change_of_a_watched_key_stops_the_transaction() {
    let changes = [
        "SET k 2",
        "DEL k",
        "EXPIRE k 100",
        "APPEND k x",
        "RENAME k other",
        "RENAME other k",
        "SETRANGE k 0 z",
        "COPY other k REPLACE",
        "FLUSHDB",
        "FLUSHALL",
        "SWAPDB 0 1",
        "SWAPDB 1 0",
        "MOVE k 1",
        "GETDEL k",
        "PERSIST k",
    ];
    for change in changes {
        let mut rig = Rig::new();
        rig.script("SET k 1 PX 50 -> OK\nSET other 2 -> OK");
        let mut watching = Watching::default();
        rig.keyspace
            .watch(&mut rig.seat, rig.time, 0, b"k", &mut watching)
            .expect("nobody has it for long");
        rig.run("GET k");
        rig.run("SET innocent 1");
        assert!(
            !watching.is_changed(),
            "nothing has changed before {change}"
        );
        rig.run(change);
        assert!(watching.is_changed(), "{change}");
        assert_eq!(
            run(&mut rig, &watching, &["SET done 1"]),
            "changed",
            "{change}"
        );
        assert_eq!(rig.run("EXISTS done"), ":0");
        rig.keyspace.unwatch(watching);
    }
}

#[test]
fn what_leaves_a_watched_key_as_it_is_stops_nothing() {
    let mut rig = Rig::new();
    rig.script("SET k 1 -> OK");
    let mut watching = Watching::default();
    for key in [&b"k"[..], b"k", b"absent"] {
        rig.keyspace
            .watch(&mut rig.seat, rig.time, 0, key, &mut watching)
            .expect("nobody has it for long");
    }
    assert_eq!(watching.len(), 2, "a key is watched once");
    for line in [
        "GET k",
        "SETNX k 2",
        "DEL absent",
        "PERSIST k",
        "SWAPDB 2 3",
        "SET k 2 XX GET NX",
    ] {
        rig.run(line);
    }
    rig.session.db = 1;
    rig.run("SET k 1");
    rig.run("FLUSHDB");
    rig.session.db = 0;
    assert_eq!(run(&mut rig, &watching, &["GET k"]), "['1']");
    rig.keyspace.unwatch(watching);
}

#[test]
fn a_swap_that_brings_a_key_which_was_dead_before_stops_nothing() {
    for (there, stops) in [("SET k 1 PX 1", false), ("SET k 1 PX 50", true)] {
        for here in ["PING x", "SET k 1 PX 1"] {
            let mut rig = Rig::new();
            rig.run(here);
            rig.session.db = 1;
            rig.run(there);
            rig.session.db = 0;
            rig.pass(2);
            let mut watching = Watching::default();
            rig.keyspace
                .watch(&mut rig.seat, rig.time, 0, b"k", &mut watching)
                .expect("nobody has it for long");
            rig.run("SWAPDB 0 1");
            let replies = run(&mut rig, &watching, &["EXISTS none"]);
            assert_eq!(replies == "changed", stops, "{here}, {there}");
            rig.keyspace.unwatch(watching);
        }
    }
}

/// To look through all of them for each one would take minutes.
#[test]
fn very_many_keys_may_be_watched() {
    const KEYS: usize = 300_000;
    let mut rig = Rig::new();
    let mut watching = Watching::default();
    for i in 0..KEYS {
        let key = format!("key:{i}").into_bytes();
        rig.keyspace
            .watch(&mut rig.seat, rig.time, 0, &key, &mut watching)
            .expect("nobody has it for long");
    }
    assert_eq!(watching.len(), KEYS);
    assert_eq!(run(&mut rig, &watching, &["SET key:7 1"]), "[OK]");
    assert!(watching.is_changed());
    rig.keyspace.unwatch(watching);
}

/// Fields that live for longer by now leave the deadline of a large hash where it was.
#[test]
fn a_watched_hash_counts_as_changed_only_if_a_field_has_died() {
    for (line, replies) in [
        ("HPERSIST k FIELDS 2 n m", "[:3]"),
        ("HPEXPIRE k 100 FIELDS 2 n m", "[:3]"),
        ("HPERSIST k FIELDS 1 n", "changed"),
    ] {
        let mut rig = Rig::new();
        let large = "x".repeat(100);
        rig.run(&format!("HSET k n {large} m 2 o 3"));
        rig.run("HPEXPIRE k 10 FIELDS 2 n m");
        rig.run(line);
        let mut watching = Watching::default();
        rig.keyspace
            .watch(&mut rig.seat, rig.time, 0, b"k", &mut watching)
            .expect("nobody has it for long");
        rig.pass(50);
        assert_eq!(run(&mut rig, &watching, &["HLEN k"]), replies);
        rig.keyspace.unwatch(watching);
    }
}

#[test]
fn a_watched_key_that_expires_counts_as_changed_whether_or_not_it_was_removed() {
    for removed in [false, true] {
        let mut rig = Rig::new();
        rig.script("SET k 1 PX 10 -> OK");
        let mut watching = Watching::default();
        rig.keyspace
            .watch(&mut rig.seat, rig.time, 0, b"k", &mut watching)
            .expect("nobody has it for long");
        rig.pass(9);
        assert_eq!(run(&mut rig, &watching, &["GET k"]), "['1']");
        rig.pass(1);
        if removed {
            assert_eq!(rig.expire_all(), 1);
        }
        assert_eq!(run(&mut rig, &watching, &["PING x"]), "changed");
        rig.keyspace.unwatch(watching);
        // A key that was dead when it was watched was not there.
        let mut watching = Watching::default();
        rig.script("SET k 1 PX 10 -> OK\npass 10");
        rig.keyspace
            .watch(&mut rig.seat, rig.time, 0, b"k", &mut watching)
            .expect("nobody has it for long");
        assert_eq!(run(&mut rig, &watching, &["GET k"]), "[nil]");
        rig.keyspace.unwatch(watching);
    }
}

#[test]
fn without_room_for_all_that_it_adds_nothing_of_a_transaction_runs() {
    let mut rig = Rig::new();
    let none = Watching::default();
    rig.run(&format!("SET old {}", "v".repeat(50_000)));
    limit_to_what_is_used(&rig);
    let piece = "w".repeat(1000);
    let of: Vec<String> = (0..100).map(|i| format!("SET new:{i} {piece}")).collect();
    let of: Vec<&str> = of.iter().map(String::as_str).collect();
    assert_eq!(format!("-{}", run(&mut rig, &none, &of)), OOM);
    assert_eq!(rig.run("EXISTS new:0 new:99"), ":0");
    assert_eq!(run(&mut rig, &none, &["STRLEN old"]), "[:50000]");
}

/// Sums hold at every read, beside expiry, renames of other keys, and work on the whole keyspace.
#[test]
fn money_is_neither_made_nor_lost_by_threads_that_transfer_it() {
    const ACCOUNTS: u64 = 40;
    const TRANSFERS: u64 = 2_000;
    let rig = Rig::new();
    let keyspace = &rig.keyspace;
    for account in 0..ACCOUNTS {
        call_at(keyspace, START, 0, &format!("SET account:{account} 100"));
    }
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let movers: Vec<_> = (0..3_u64)
            .map(|thread| {
                scope.spawn(move || {
                    let mut seat = keyspace.seat();
                    let none = Watching::default();
                    for i in 0..TRANSFERS {
                        let (from, to) = ((i * 7 + thread) % ACCOUNTS, (i * 11 + 3) % ACCOUNTS);
                        let mut of = vec![
                            format!("DECRBY account:{from} 5"),
                            format!("SET receipt:{thread}:{i} {from} PX 3"),
                            format!("INCRBY account:{to} 5"),
                        ];
                        if i % 97 == 0 {
                            of.push("DBSIZE".to_owned());
                        }
                        let done = transact(keyspace, &mut seat, START + i, &none, &of);
                        assert_eq!(
                            done.expect("room").expect("nothing is watched").len(),
                            of.len()
                        );
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            let (mut seat, mut tick) = (keyspace.seat(), START);
            let none = Watching::default();
            let all: Vec<String> = (0..ACCOUNTS).map(|i| format!("GET account:{i}")).collect();
            let whole = [all.clone(), vec!["DBSIZE".to_owned()]].concat();
            while !over.load(Relaxed) {
                tick += 1;
                let of = if tick.is_multiple_of(5) { &whole } else { &all };
                let read = transact(keyspace, &mut seat, tick, &none, of);
                let read = read
                    .expect("no room is needed")
                    .expect("nothing is watched");
                let sum: i64 = read.iter().map(as_number).take(ACCOUNTS as usize).sum();
                assert_eq!(sum, 100 * ACCOUNTS as i64);
                for shard in 0..keyspace.shards() {
                    keyspace.expire(&mut seat, shard, time(tick), 16);
                }
                call_at(keyspace, tick, 3, "SWAPDB 3 4");
                call_at(keyspace, tick, 3, "FLUSHDB");
            }
        });
        let moved = movers.into_iter().map(std::thread::ScopedJoinHandle::join);
        let moved: Vec<_> = moved.collect();
        over.store(true, Relaxed);
        assert!(moved.iter().all(Result::is_ok));
    });
}

fn as_number(reply: &Reply) -> i64 {
    match reply {
        Reply::Bulk(bytes) => std::str::from_utf8(bytes)
            .ok()
            .and_then(|text| text.parse().ok())
            .expect("a number"),
        Reply::Integer(n) => *n,
        other => panic!("no number: {other:?}"),
    }
}

/// Each thread reads, then writes what it read plus one: no update is lost.
#[test]
fn threads_that_watch_what_they_read_lose_no_update() {
    const ROUNDS: i64 = 500;
    let rig = Rig::new();
    let keyspace = &rig.keyspace;
    call_at(keyspace, START, 0, "SET n 0");
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut seat = keyspace.seat();
                let mut done = 0;
                while done < ROUNDS {
                    let mut watching = Watching::default();
                    let mut watch =
                        || keyspace.watch(&mut seat, time(START), 0, b"n", &mut watching);
                    while watch().is_err() {
                        std::thread::yield_now();
                    }
                    let n = as_number(&call_at(keyspace, START, 0, "GET n"));
                    let of = [format!("SET n {}", n + 1)];
                    let ran = transact(keyspace, &mut seat, START, &watching, &of);
                    done += i64::from(ran.expect("room").is_some());
                    keyspace.unwatch(watching);
                }
            });
        }
    });
    assert_eq!(as_number(&call_at(keyspace, START, 0, "GET n")), 3 * ROUNDS);
}

/// A pattern names keys of shards that the transaction has not locked.
#[test]
fn sorting_by_other_keys_looks_at_any_shard() {
    let mut rig = Rig::new();
    let mut calls = lines(&["SADD k 1 2 3 4 5 6 7 8 9"]);
    calls.extend((1..10).map(|i| format!("SET w_{i} {}", 10 - i)));
    let calls: Vec<&str> = calls.iter().map(String::as_str).collect();
    run(&mut rig, &Watching::default(), &calls);
    let sorted = run(
        &mut rig,
        &Watching::default(),
        &[
            "SORT k BY w_* GET # LIMIT 0 3",
            "SORT k BY w_* STORE to",
            "SORT_RO k LIMIT 0 2",
        ],
    );
    assert_eq!(sorted, "[['9' '8' '7'] :9 ['1' '2']]");
}
