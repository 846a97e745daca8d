//! Long commands: they run elsewhere, and nobody stands still for their shards.

use std::sync::atomic::Ordering::Relaxed;

use tidewheel_keyspace::{
    Begun, Keyspace, PAUSED, Parked, Served, Session, Time, Unfinished, Waiter, Watching, resolve,
};
use tidewheel_resp::{Args, Protocol, Reply, Writer};

use crate::common::{Rig, show};

/// A server whose commands over more than a few members are long.
fn rig() -> Rig {
    let mut rig = Rig::new();
    rig.keyspace.rules().long_ns.store(100_000, Relaxed);
    for key in ["big", "large", "other"] {
        for chunk in 0..20 {
            let members: String = (0..100).map(|n| format!(" m{}", chunk * 100 + n)).collect();
            rig.run(&format!("SADD {key}{members}"));
        }
    }
    rig
}

/// What became of a call.
#[derive(Debug, PartialEq)]
enum Called {
    Answered(String),
    Waits,
    Parked(Parked),
    /// It may try again at once.
    Again,
}

/// A client calls a command.
fn call(keyspace: &Keyspace, time: Time, id: u64, line: &str) -> Called {
    call_from(keyspace, time, id, line, &mut None)
}

/// Of a client that was parked for the same command before.
fn park_again(
    keyspace: &Keyspace,
    time: Time,
    id: u64,
    line: &str,
    mut place: Option<Parked>,
) -> Parked {
    parked(call_from(keyspace, time, id, line, &mut place))
}

fn call_from(
    keyspace: &Keyspace,
    time: Time,
    id: u64,
    line: &str,
    place: &mut Option<Parked>,
) -> Called {
    let words: Vec<&[u8]> = line.split_whitespace().map(str::as_bytes).collect();
    let args = Args::from_slices(&words);
    let row = resolve(args).expect("a command");
    let (owner, slot) = (0, 0);
    let waiter = Waiter { owner, slot, id };
    let mut session = Session {
        waiter: Some(waiter),
        ..Session::default()
    };
    let (mut seat, mut out) = (keyspace.seat(), Writer::new(Protocol::Resp2));
    let mut begun = keyspace.begin(&mut seat, row, &mut session, time, args, &mut out);
    loop {
        let blocked = match begun {
            None => return Called::Answered(shown(out.as_bytes())),
            Some(Unfinished::Waits(_)) => return Called::Waits,
            Some(Unfinished::Blocked(blocked)) => blocked,
            Some(Unfinished::Incremental(mut walk)) => match walk.take_blocked() {
                Some(blocked) => blocked,
                None => {
                    begun = keyspace
                        .go_on(&mut seat, walk, time, &mut out)
                        .map(Unfinished::Incremental);
                    continue;
                }
            },
        };
        assert!(out.is_empty(), "what did not run has no reply");
        return match keyspace.park(waiter, &blocked, place) {
            Some(parked) => Called::Parked(parked),
            None => Called::Again,
        };
    }
}

fn answered(text: &str) -> Called {
    Called::Answered(text.to_owned())
}

/// Runs the next long command to its end; its reply.
fn run_long(rig: &mut Rig) -> String {
    let ticket = rig.told.long.lock().unwrap().pop_front();
    let ticket = ticket.expect("a long command may begin");
    let mut seat = rig.keyspace.seat();
    let served = rig.keyspace.run_long(&mut seat, rig.time, ticket);
    let Served::Reply { ticket, reply, .. } = served else {
        panic!("{served:?}");
    };
    rig.keyspace.leave(&mut seat, rig.time, &ticket);
    shown(reply.as_bytes())
}

/// Calls `act` in another thread while the shards of these keys are locked, as by a long command.
fn while_locked<R: Send>(
    rig: &Rig,
    keys: &[&str],
    act: impl FnOnce(&Keyspace, Time) -> R + Send,
) -> R {
    let (keyspace, time) = (&rig.keyspace, rig.time);
    let line = format!("EXISTS {}", keys.join(" "));
    let words: Vec<&[u8]> = line.split_whitespace().map(str::as_bytes).collect();
    let args = Args::from_slices(&words);
    let calls = [(resolve(args).expect("a command"), args)];
    let (mut seat, nothing) = (keyspace.seat(), Watching::default());
    seat.enter();
    let begun = keyspace.transaction(&mut seat, time, 0, calls.iter().copied(), &nothing, false);
    let Ok(Begun::Runs(locks)) = begun else {
        panic!("nobody else is there");
    };
    let result = std::thread::scope(|scope| scope.spawn(|| act(keyspace, time)).join());
    locks.end(&mut seat, time, &mut Writer::default());
    seat.leave();
    result.expect("no panic")
}

fn shown(reply: &[u8]) -> String {
    let (reply, _) = Reply::read(reply).expect("valid").expect("whole");
    show(&reply)
}

fn going_on(rig: &Rig) -> Vec<u64> {
    std::mem::take(&mut *rig.told.going_on.lock().unwrap())
}

/// How many long commands may begin.
fn beginning(rig: &Rig) -> usize {
    rig.told.long.lock().unwrap().len()
}

#[track_caller]
fn parked(called: Called) -> Parked {
    match called {
        Called::Parked(parked) => parked,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_call_over_many_members_runs_elsewhere_and_one_over_few_does_not() {
    let mut rig = rig();
    let time = rig.time;
    let ask = |rig: &Rig, line| call(&rig.keyspace, time, 1, line);
    assert_eq!(ask(&rig, "SCARD big"), answered(":2000"));
    assert_eq!(
        ask(&rig, "SSCAN big 0 COUNT 0"),
        answered("-ERR syntax error")
    );
    assert!(matches!(
        ask(&rig, "SRANDMEMBER big 3"),
        Called::Answered(_)
    ));
    assert_eq!(ask(&rig, "SUNIONSTORE to big large"), Called::Waits);
    assert_eq!(rig.run("SCARD to"), ":0", "it has not begun");
    assert_eq!(run_long(&mut rig), ":2000");
    assert_eq!(rig.run("SCARD to"), ":2000");
    assert_eq!(ask(&rig, "SPOP big 1900"), Called::Waits);
    run_long(&mut rig);
    assert_eq!(rig.run("SCARD big"), ":100");
    assert_eq!((rig.keyspace.waiting(), going_on(&rig).len()), (0, 0));
}

/// Two strings of 10 kB held an event loop for 70 ms.
#[test]
fn comparing_two_long_strings_runs_elsewhere_and_two_short_ones_does_not() {
    let mut rig = rig();
    for (key, length) in [("a", 1_000), ("b", 1_000), ("short", 50)] {
        rig.run(&format!("SET {key} {}", "x".repeat(length)));
    }
    let time = rig.time;
    let ask = |rig: &Rig, line| call(&rig.keyspace, time, 1, line);
    assert_eq!(ask(&rig, "LCS a short LEN"), answered(":50"));
    assert_eq!(ask(&rig, "LCS a missing LEN"), answered(":0"));
    assert_eq!(ask(&rig, "LCS a b LEN"), Called::Waits);
    assert_eq!(run_long(&mut rig), ":1000");
    assert_eq!((rig.keyspace.waiting(), going_on(&rig).len()), (0, 0));
}

#[test]
fn who_needs_its_shards_is_parked_and_goes_on_in_the_order_of_coming() {
    let mut rig = rig();
    let time = rig.time;
    let store = "SUNIONSTORE to big large";
    assert_eq!(call(&rig.keyspace, time, 1, store), Called::Waits);
    let (short, long, free) = while_locked(&rig, &["to", "big", "large"], |keyspace, time| {
        (
            call(keyspace, time, 2, "SCARD big"),
            // It cannot even look how long it would take.
            call(keyspace, time, 3, "SDIFFSTORE big big large"),
            call(keyspace, time, 4, "SCARD other"),
        )
    });
    assert_eq!(free, answered(":2000"), "others are served");
    let (short, long) = (parked(short), parked(long));
    assert!(going_on(&rig).is_empty());
    assert_eq!(run_long(&mut rig), ":2000");
    assert_eq!(going_on(&rig), [2, 3]);
    // The second long command does not begin before those have run who came before it.
    let difference = "SDIFFSTORE big big large";
    assert_eq!(call(&rig.keyspace, time, 3, difference), Called::Waits);
    rig.keyspace.unpark([long]);
    assert_eq!(beginning(&rig), 0);
    assert_eq!(call(&rig.keyspace, time, 2, "SCARD big"), answered(":2000"));
    rig.keyspace.unpark([short]);
    assert_eq!(run_long(&mut rig), ":0");
}

/// Its loop tried again without an end, and the transaction's had half a processor.
#[test]
fn who_needs_the_shard_of_a_transaction_is_parked_until_its_end() {
    let rig = rig();
    let time = rig.time;
    let waits = |keyspace: &Keyspace, time| {
        assert!(going_on(&rig).is_empty());
        (
            parked(call(keyspace, time, 2, "SCARD big")),
            parked(call(keyspace, time, 3, "SCARD big")),
            call(keyspace, time, 4, "SCARD other"),
        )
    };
    let (first, second, free) = while_locked(&rig, &["big", "large"], waits);
    assert_eq!(free, answered(":2000"));
    assert_eq!(going_on(&rig), [2, 3], "each is told once");
    assert_eq!(call(&rig.keyspace, time, 2, "SCARD big"), answered(":2000"));
    rig.keyspace.unpark([first, second]);
    assert!(going_on(&rig).is_empty());
}

/// It went to the end, and those who came later were before it again and again.
#[test]
fn who_goes_on_in_vain_keeps_its_place() {
    let rig = rig();
    let first = while_locked(&rig, &["big"], |keyspace, time| {
        parked(call(keyspace, time, 1, "SCARD big"))
    });
    assert_eq!(going_on(&rig), [1]);
    let again = while_locked(&rig, &["big"], |keyspace, time| {
        let later = parked(call(keyspace, time, 2, "SCARD big"));
        let again = park_again(keyspace, time, 1, "SCARD big", Some(first));
        assert!(again < later, "{again:?} {later:?}");
        (again, later)
    });
    assert_eq!(going_on(&rig), [1, 2]);
    rig.keyspace.unpark([again.0, again.1]);
}

#[test]
fn long_commands_on_other_shards_run_side_by_side_and_on_the_same_one_by_one() {
    let mut rig = rig();
    let time = rig.time;
    for (id, line) in (1..).zip(["SDIFF big", "SDIFF other", "SDIFF big other"]) {
        assert_eq!(call(&rig.keyspace, time, id, line), Called::Waits);
    }
    assert_eq!(beginning(&rig), 2);
    run_long(&mut rig);
    assert_eq!(beginning(&rig), 1);
    run_long(&mut rig);
    assert_eq!(beginning(&rig), 1);
    run_long(&mut rig);
    assert_eq!(beginning(&rig), 0);
}

#[test]
fn exclusive_use_waits_for_long_commands_that_run_and_keeps_others_from_beginning() {
    let mut rig = rig();
    let time = rig.time;
    assert_eq!(
        call(&rig.keyspace, time, 1, "SDIFF big large"),
        Called::Waits
    );
    let flush = parked(call(&rig.keyspace, time, 2, "FLUSHALL"));
    assert_eq!(call(&rig.keyspace, time, 3, "SDIFF other"), Called::Waits);
    assert_eq!(beginning(&rig), 1, "the flush came first");
    run_long(&mut rig);
    assert_eq!((going_on(&rig), beginning(&rig)), (vec![2], 0));
    assert_eq!(call(&rig.keyspace, time, 2, "FLUSHALL"), answered("OK"));
    rig.keyspace.unpark([flush]);
    assert_eq!(run_long(&mut rig), "[]");
}

#[test]
fn expiry_walks_and_counters_pass_over_a_shard_that_is_locked_for_long() {
    let mut rig = rig();
    rig.run("SET dies v PX 5");
    rig.run("SADD big dies");
    rig.run("SEXPIRE big 1 FIELDS 1 dies");
    let keys = rig.keyspace.stats(rig.time).databases[0].keys;
    assert_eq!(call(&rig.keyspace, rig.time, 1, "SDIFF big"), Called::Waits);
    rig.pass(2_000);
    let (walk, counted) = while_locked(&rig, &["big"], |keyspace, time| {
        let mut seat = keyspace.seat();
        for shard in 0..keyspace.shards() {
            keyspace.expire(&mut seat, shard, time, 1_000);
            keyspace.maintain(&mut seat, shard, 1_000);
        }
        let counted = keyspace.stats(time).databases[0].keys;
        (call(keyspace, time, 2, "DBSIZE"), counted)
    });
    assert!(
        counted < keys && counted > 0,
        "{counted} of {keys}: one has expired"
    );
    parked(walk);
    assert!(run_long(&mut rig).contains("m7"));
    assert_eq!(going_on(&rig), [2]);
    assert_eq!(call(&rig.keyspace, rig.time, 2, "DBSIZE"), answered(":3"));
}

#[test]
fn who_stops_waiting_or_watching_meanwhile_is_forgotten_when_it_is_over() {
    let mut rig = rig();
    let time = rig.time;
    // A list in the shard of a large set.
    let near = (0..).map(|n| format!("list:{n}"));
    let shares = |key: &String| {
        call(&rig.keyspace, time, 9, "SDIFF big") == Called::Waits && {
            let line = format!("LLEN {key}");
            let called = while_locked(&rig, &["big"], |keyspace, time| {
                call(keyspace, time, 8, &line)
            });
            let shares = matches!(called, Called::Parked(_));
            if let Called::Parked(parked) = called {
                rig.keyspace.unpark([parked]);
            }
            shares
        }
    };
    let key = { near }.find(|key| {
        let shares = shares(key);
        let ticket = rig.told.long.lock().unwrap().pop_front();
        let mut seat = rig.keyspace.seat();
        let ticket = ticket.expect("it may begin");
        drop(rig.keyspace.run_long(&mut seat, time, ticket));
        shares
    });
    let key = key.expect("some key is there");
    let wait = format!("BLPOP {key} 0");
    assert_eq!(call(&rig.keyspace, time, 5, &wait), Called::Waits);
    assert_eq!(call(&rig.keyspace, time, 1, "SDIFF big"), Called::Waits);
    let (mut seat, mut watching) = (rig.keyspace.seat(), Watching::default());
    let watched = rig
        .keyspace
        .watch(&mut seat, time, 0, key.as_bytes(), &mut watching);
    watched.expect("it is not locked yet");
    let mark = watching.mark();
    while_locked(&rig, &["big"], |keyspace, _| keyspace.unwatch(watching));
    run_long(&mut rig);
    assert_eq!(rig.run(&format!("LPUSH {key} a")), ":1");
    assert!(!mark.is_set(), "nobody watches");
}

#[test]
fn a_long_lrange_replies_as_a_short_one_does() {
    let mut rig = rig();
    for chunk in 0..20 {
        let elements: String = (0..100)
            .map(|n| format!(" {}", "e".repeat(n) + &chunk.to_string()))
            .collect();
        rig.run(&format!("RPUSH list{elements}"));
    }
    let expected = rig.run("LRANGE list 5 -3");
    let called = call(&rig.keyspace, rig.time, 1, "LRANGE list 5 -3");
    assert_eq!(called, Called::Waits);
    assert_eq!(run_long(&mut rig), expected);
}

/// It was overtaken by all who had been parked behind it.
#[test]
fn a_long_command_that_was_parked_keeps_its_place_before_those_who_came_later() {
    let mut rig = rig();
    let time = rig.time;
    let store = "SUNIONSTORE to big large";
    assert_eq!(call(&rig.keyspace, time, 1, store), Called::Waits);
    let difference = "SDIFFSTORE copy big other";
    let (second, third) = while_locked(&rig, &["big", "large"], |keyspace, time| {
        (
            parked(call(keyspace, time, 2, difference)),
            parked(call(keyspace, time, 3, "SADD big late")),
        )
    });
    run_long(&mut rig);
    assert_eq!(going_on(&rig), [2], "the second may be long");
    assert_eq!(call(&rig.keyspace, time, 2, difference), Called::Waits);
    rig.keyspace.unpark([second]);
    assert!(going_on(&rig).is_empty());
    assert_eq!(run_long(&mut rig), ":0");
    assert_eq!(going_on(&rig), [3]);
    assert_eq!(
        call(&rig.keyspace, time, 3, "SADD big late"),
        answered(":1")
    );
    rig.keyspace.unpark([third]);
}

/// It waited for the end of the pause.
#[test]
fn a_long_command_that_reads_does_not_wait_for_a_writer_that_a_pause_holds_back() {
    let mut rig = rig();
    let time = rig.time;
    rig.keyspace.gate().set(PAUSED);
    let store = "SUNIONSTORE to big large";
    assert_eq!(call(&rig.keyspace, time, 1, store), Called::Waits);
    assert_eq!(beginning(&rig), 0);
    assert_eq!(
        call(&rig.keyspace, time, 2, "SDIFF big large"),
        Called::Waits
    );
    assert_eq!(run_long(&mut rig), "[]");
    rig.keyspace.gate().clear(PAUSED);
    drop(rig.keyspace.without_long_commands());
    assert_eq!(run_long(&mut rig), ":2000");
}

/// Each of thousands of parked clients cost a look at all others, twice.
#[test]
fn very_many_clients_are_parked_and_go_on_at_once() {
    let mut rig = rig();
    let time = rig.time;
    assert_eq!(call(&rig.keyspace, time, 0, "SDIFF big"), Called::Waits);
    let all: Vec<Parked> = while_locked(&rig, &["big"], |keyspace, time| {
        let ask = |id| parked(call(keyspace, time, id, "SCARD big"));
        (1..=20_000).map(ask).collect()
    });
    run_long(&mut rig);
    assert_eq!(going_on(&rig), (1..=20_000).collect::<Vec<u64>>());
    all.into_iter()
        .for_each(|parked| rig.keyspace.unpark([parked]));
}

/// They ran in one go on the client's own loop.
#[test]
fn a_long_list_of_what_is_pending_is_walked_elsewhere() {
    let mut rig = Rig::new();
    for id in 1..=3_000 {
        rig.run(&format!("XADD s {id}-0 a b"));
    }
    for group in ["g", "h"] {
        rig.run(&format!("XGROUP CREATE s {group} 0"));
        rig.run(&format!(
            "XREADGROUP GROUP {group} one COUNT 3000 STREAMS s >"
        ));
        rig.run(&format!("XGROUP CREATECONSUMER s {group} two"));
    }
    rig.keyspace.rules().long_ns.store(10_000, Relaxed);
    let (keyspace, time) = (&rig.keyspace, rig.time);
    for short in [
        "XPENDING s g",
        "XPENDING s g - + 10",
        "XPENDING s g IDLE 1 - + 10 two",
        "XGROUP DELCONSUMER s g two",
        "XPENDING s none IDLE 1 - + 10",
    ] {
        let called = call(keyspace, time, 1, short);
        assert!(matches!(called, Called::Answered(_)), "{short}: {called:?}");
    }
    for (long, reply) in [
        ("XPENDING s g IDLE 1000 - + 10", "[]"),
        ("XPENDING s g IDLE 1000 - + 10 one", "[]"),
        ("XGROUP DELCONSUMER s g one", ":3000"),
        ("XGROUP DESTROY s h", ":1"),
    ] {
        let called = call(&rig.keyspace, rig.time, 1, long);
        assert_eq!(called, Called::Waits, "{long}");
        assert_eq!(run_long(&mut rig), reply, "{long}");
    }
}
