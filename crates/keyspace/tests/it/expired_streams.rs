//! Expired events that stay: each key that expires becomes one entry of a stream.

use std::sync::atomic::Ordering::Relaxed;

use tidewheel_keyspace::{
    AppendedExpired, Begun, ExpiredStream, ExpiredStreamTrouble, Options, PAUSED, Policy, Session,
    Waiter, Watching, resolve,
};
use tidewheel_resp::{Args, Reply, Writer};

use crate::common::{Rig, START, WALL_START_MS, show};

fn stream(db: u32, name: &str, max_len: u64, values: bool) -> ExpiredStream {
    ExpiredStream {
        db,
        name: name.as_bytes().into(),
        max_len,
        values,
    }
}

fn rig(streams: &[ExpiredStream]) -> Rig {
    let rig = Rig::new();
    rig.keyspace.set_expired_streams(streams);
    rig
}

impl Rig {
    fn append(&mut self) -> AppendedExpired {
        loop {
            let appended = self.keyspace.append_expired(&mut self.seat, self.time);
            if appended != AppendedExpired::Some {
                return appended;
            }
        }
    }

    /// The keys of all entries, with the milliseconds from the start to their deadlines.
    #[track_caller]
    fn entries(&mut self, name: &str) -> Vec<String> {
        self.append();
        let Reply::Array(entries) = self.words(&[b"XRANGE", name.as_bytes(), b"-", b"+"]) else {
            panic!("no list");
        };
        entries.iter().map(shown).collect()
    }

    #[track_caller]
    fn has(&mut self, name: &str, expected: &[&str]) {
        assert_eq!(self.entries(name), expected);
    }
}

/// An entry as `key@deadline`, `key@deadline..fired` if it fired later, and what else it has.
fn shown(entry: &Reply) -> String {
    let Reply::Array(parts) = entry else {
        panic!("no entry");
    };
    let Reply::Array(words) = &parts[1] else {
        panic!("no fields");
    };
    let word = |at: usize| match &words[at] {
        Reply::Bulk(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        other => panic!("{other:?}"),
    };
    let since = |at: usize| word(at).parse::<i64>().expect("a time") - WALL_START_MS;
    assert_eq!([word(0), word(2), word(4)], ["key", "deadline", "fired"]);
    let (deadline, fired) = (since(3), since(5));
    let Reply::Bulk(id) = &parts[0] else {
        panic!("no id");
    };
    let id = String::from_utf8_lossy(id);
    let appended = id.split('-').next().expect("milliseconds");
    let appended = appended.parse::<i64>().expect("a time") - WALL_START_MS;
    assert!(appended >= fired && fired >= deadline, "none is early");
    let mut text = format!("{}@{deadline}", word(1));
    if fired > deadline {
        text += &format!("..{fired}");
    }
    for at in (6..words.len()).step_by(2) {
        text += &format!(" {}={}", word(at), word(at + 1));
    }
    text
}

#[test]
fn each_key_that_expires_becomes_an_entry_whoever_meets_it() {
    let mut rig = rig(&[stream(0, "gone", 100, false)]);
    rig.script(
        "SET a 1 PX 10 -> OK
         SET b 1 PX 20 -> OK
         SET c 1 PX 20 -> OK
         SADD d x -> :1
         PEXPIRE d 30 -> :1
         SET stays 1 -> OK",
    );
    rig.pass(9);
    assert_eq!(rig.expire_all(), 0);
    rig.has("gone", &[]);
    rig.pass(1);
    assert_eq!(rig.expire_all(), 1);
    rig.has("gone", &["a@10"]);
    rig.pass(15);
    rig.script("GET b -> nil\n SET c 2 -> OK");
    assert_eq!(rig.expire_all(), 0);
    rig.has("gone", &["a@10", "b@20..25", "c@20..25"]);
    rig.pass(5);
    rig.expire_all();
    rig.run("DEL stays c");
    rig.has("gone", &["a@10", "b@20..25", "c@20..25", "d@30"]);
    let stats = rig.keyspace.expired_stream_stats();
    assert_eq!(
        (stats.appended, stats.queued, stats.queued_bytes),
        (4, 0, 0)
    );
    rig.keyspace.reset_stats();
    assert_eq!(rig.keyspace.expired_stream_stats().appended, 0);
    rig.keyspace.assert_counted();
}

#[test]
fn entries_have_the_value_if_it_is_asked_for() {
    let mut rig = rig(&[stream(0, "gone", 100, true)]);
    let long = "v".repeat(16 << 10);
    rig.script(
        "SET short hot PX 10 -> OK
         HSET h f 1 -> :1
         PEXPIRE h 20 -> :1
         HSET timed f 1 -> :1
         HPEXPIRE timed 900 FIELDS 1 f -> [:1]
         PEXPIRE timed 30 -> :1",
    );
    rig.run(&format!("SET long {long} PX 40"));
    rig.run(&format!("SET longer {long}x PX 50"));
    rig.run("SET met cold PX 60");
    for _ in 0..5 {
        rig.pass(10);
        rig.expire_all();
    }
    rig.pass(10);
    rig.run("EXISTS met");
    rig.has(
        "gone",
        &[
            "short@10 type=string value=hot",
            "h@20 type=hash",
            "timed@30 type=hash",
            &format!("long@40 type=string value={long}"),
            "longer@50 type=string",
            "met@60 type=string value=cold",
        ],
    );
}

#[test]
fn what_is_no_expiry_of_a_key_is_no_entry() {
    let mut rig = rig(&[stream(0, "gone", 100, false)]);
    rig.script(
        "SET past 1 -> OK
         PEXPIRE past -1 -> :1
         SET deleted 1 PX 5 -> OK
         DEL deleted -> :1
         SET persists 1 PX 5 -> OK
         PERSIST persists -> :1
         SET moved 1 PX 5 -> OK
         PEXPIRE moved 50 -> :1
         HSET emptied f 1 -> :1
         HPEXPIRE emptied 5 FIELDS 1 f -> [:1]
         SELECT 1 -> OK
         SET elsewhere 1 PX 5 -> OK
         SELECT 0 -> OK",
    );
    rig.pass(10);
    rig.expire_all();
    assert!(!rig.keyspace.expired_pending());
    rig.pass(40);
    rig.expire_all();
    rig.has("gone", &["moved@50"]);
}

#[test]
fn the_own_expiry_of_the_stream_is_no_entry() {
    let mut rig = rig(&[stream(0, "gone", 100, false)]);
    rig.run("SET a 1 PX 10");
    rig.pass(10);
    rig.expire_all();
    rig.has("gone", &["a@10"]);
    rig.script("PEXPIRE gone 10 -> :1\n SET b 1 PX 20 -> OK");
    rig.pass(10);
    assert_eq!(rig.expire_all(), 1);
    rig.script("EXISTS gone -> :0");
    rig.pass(10);
    rig.expire_all();
    rig.has("gone", &["b@30"]);
    rig.script("PTTL gone -> :-1\n PEXPIRE gone 10 -> :1\n SET c 1 PX 10 -> OK");
    rig.pass(10);
    // It is dead when it is to tell of another one.
    rig.run("GET c");
    rig.has("gone", &["c@40"]);
}

#[test]
fn old_entries_leave_in_chunks_and_are_counted() {
    let mut rig = rig(&[stream(0, "gone", 300, false)]);
    for i in 0..1_000 {
        rig.run(&format!("SET k:{i} v PX {}", 1 + i / 100));
    }
    rig.pass(20);
    rig.expire_all();
    assert_eq!(rig.append(), AppendedExpired::All);
    let Reply::Integer(len) = rig.words(&[b"XLEN", b"gone"]) else {
        panic!("no number");
    };
    assert!((300..400).contains(&len), "{len}");
    let stats = rig.keyspace.expired_stream_stats();
    assert_eq!((stats.appended, stats.trimmed), (1_000, 1_000 - len as u64));
    rig.keyspace.assert_counted();
}

#[test]
fn a_name_of_another_type_is_counted_and_said_once_until_it_is_free_again() {
    let mut rig = rig(&[stream(0, "gone", 300, false)]);
    let one = |rig: &mut Rig| {
        rig.run("SET a 1 PX 1");
        rig.pass(1);
        rig.expire_all();
        assert_eq!(rig.append(), AppendedExpired::All);
        rig.keyspace.expired_stream_troubles()
    };
    let failed = [ExpiredStreamTrouble::Failed((*b"gone").into())];
    rig.run("SET gone taken");
    assert_eq!(one(&mut rig), failed);
    assert_eq!(one(&mut rig), []);
    rig.script("GET gone -> 'taken'\n DEL gone -> :1");
    assert_eq!(one(&mut rig), []);
    let stats = rig.keyspace.expired_stream_stats();
    assert_eq!((stats.appended, stats.failed), (1, 2));
    // No id is left.
    rig.run("XADD gone 18446744073709551615-18446744073709551615 f v");
    assert_eq!(one(&mut rig), failed);
    assert_eq!(rig.keyspace.expired_stream_stats().failed, 3);
}

#[test]
fn what_is_queued_goes_with_its_database() {
    let mut rig = rig(&[
        stream(0, "gone", 300, false),
        stream(1, "other", 300, false),
    ]);
    let expire = |rig: &mut Rig, key: &str| {
        rig.run(&format!("SET {key} 1 PX 1"));
        rig.pass(1);
        rig.expire_all();
        assert!(rig.keyspace.expired_pending());
    };
    expire(&mut rig, "flushed");
    rig.script("FLUSHDB -> OK\n EXISTS gone -> :0");
    rig.has("gone", &[]);
    expire(&mut rig, "swapped");
    rig.script("SWAPDB 0 1 -> OK");
    rig.has("gone", &[]);
    rig.script("SELECT 1 -> OK");
    rig.has("gone", &["swapped@2"]);
    expire(&mut rig, "second");
    // From now on nothing is kept, but that was before.
    rig.keyspace.set_expired_streams(&[]);
    rig.has("other", &["second@3"]);
    rig.script("SET a 1 PX 1 -> OK");
    rig.pass(1);
    rig.expire_all();
    assert!(!rig.keyspace.expired_pending());
    assert_eq!(rig.keyspace.expired_stream_stats().flushed, 1);
}

#[test]
fn nothing_is_appended_during_a_pause() {
    let mut rig = rig(&[stream(0, "gone", 300, false)]);
    rig.script("SET a 1 PX 1 -> OK\n SET b 1 PX 2 -> OK");
    rig.pass(1);
    rig.expire_all();
    rig.keyspace.gate().set(PAUSED);
    rig.pass(1);
    assert_eq!(rig.expire_all(), 0);
    rig.script("GET b -> nil");
    assert_eq!(rig.append(), AppendedExpired::Blocked);
    rig.script("EXISTS gone -> :0");
    rig.keyspace.gate().clear(PAUSED);
    rig.expire_all();
    rig.has("gone", &["a@1", "b@2"]);
}

/// Loops read the clock at different moments: one that appends may have read it before another that
/// has expired the key. Then the id was a millisecond before the deadline.
#[test]
fn an_entry_is_not_early_although_the_clock_of_the_thread_that_appends_is_behind() {
    let mut rig = rig(&[stream(0, "gone", 300, false)]);
    rig.run("SET a 1 PX 10");
    rig.pass(10);
    rig.expire_all();
    rig.time.tick -= 1;
    rig.append();
    rig.time.tick += 1;
    rig.has("gone", &["a@10"]);
}

#[test]
fn while_engine_time_stands_still_only_what_was_dead_is_told() {
    let mut rig = rig(&[stream(0, "gone", 300, false)]);
    rig.script("SET a 1 PX 1 -> OK\n SET b 1 PX 20 -> OK");
    rig.pass(5);
    rig.run("EXPIRY FREEZE");
    rig.pass(100);
    rig.expire_all();
    rig.has("gone", &["a@101..105"]);
    rig.run("EXPIRY RESUME");
    rig.expire_all();
    rig.pass(15);
    rig.expire_all();
    rig.has("gone", &["a@101..105", "b@120"]);
}

#[test]
fn what_commands_of_a_transaction_meet_is_told_once_and_later() {
    let mut rig = rig(&[stream(0, "gone", 300, false)]);
    rig.script("SET a 1 PX 1 -> OK\n SET b 1 PX 1 -> OK");
    rig.pass(1);
    let lines = ["GET a", "SET b 2", "EXISTS a b", "XLEN gone"];
    let words: Vec<Vec<&[u8]>> = lines
        .iter()
        .map(|line| line.split(' ').map(str::as_bytes).collect())
        .collect();
    let calls = words.iter().map(|words| {
        let args = Args::from_slices(words);
        (resolve(args).expect("a command"), args)
    });
    let mut out = Writer::default();
    rig.seat.enter();
    let Ok(Begun::Runs(mut transaction)) = rig.keyspace.transaction(
        &mut rig.seat,
        rig.time,
        0,
        calls.clone(),
        &Watching::default(),
        false,
    ) else {
        panic!("it may begin");
    };
    for (row, args) in calls {
        transaction.run(row, &mut rig.session, args, &mut out);
    }
    transaction.end(&mut rig.seat, rig.time, &mut out);
    rig.seat.leave();
    assert_eq!(out.as_bytes(), b"$-1\r\n+OK\r\n:1\r\n:0\r\n");
    rig.expire_all();
    let mut entries = rig.entries("gone");
    entries.sort_unstable();
    assert_eq!(entries, ["a@1", "b@1"]);
}

#[test]
fn those_who_wait_for_the_stream_are_served() {
    let mut rig = rig(&[stream(0, "gone", 300, false)]);
    rig.script(
        "XGROUP CREATE gone workers $ MKSTREAM -> OK
         SET a 1 PX 1 -> OK
         SET b 1 PX 1 -> OK",
    );
    rig.session = Session {
        waiter: Some(Waiter {
            owner: 0,
            slot: 0,
            id: 1,
        }),
        ..Session::default()
    };
    let line = "XREADGROUP GROUP workers me BLOCK 0 STREAMS gone >";
    let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
    let args = Args::from_slices(&words);
    let (row, mut out) = (resolve(args).expect("a command"), Writer::default());
    let (seat, session) = (&mut rig.seat, &mut rig.session);
    let waits = rig
        .keyspace
        .begin(seat, row, session, rig.time, args, &mut out);
    assert!(waits.is_some());
    rig.session = Session::default();
    rig.pass(1);
    rig.expire_all();
    assert_eq!(rig.append(), AppendedExpired::All);
    let served = std::mem::take(&mut *rig.told.served.lock().unwrap());
    let [tidewheel_keyspace::Served::Reply { reply, ticket, .. }] = &served[..] else {
        panic!("{served:?}");
    };
    let (reply, _) = Reply::read(reply.as_bytes())
        .expect("valid")
        .expect("whole");
    let text = show(&reply);
    assert!(text.contains("'a'") && text.contains("'b'"), "{text}");
    rig.keyspace.leave(&mut rig.seat, rig.time, ticket);
}

/// A script has the stream's shard: passes of expiry wait when many events do, and lose none.
#[test]
fn expiry_waits_when_too_many_events_do() {
    const KEYS: u32 = 70_000;
    let mut rig = rig(&[stream(0, "gone", 1_000_000, false)]);
    for i in 0..KEYS {
        rig.run(&format!("SET k:{i} v PX 10"));
    }
    rig.script("SELECT 1 -> OK\n SET elsewhere v PX 10 -> OK\n SELECT 0 -> OK");
    rig.pass(10);
    let mut fired = 0;
    let mut most = 0;
    for shard in 0..rig.keyspace.shards() {
        loop {
            let progress = rig.keyspace.expire(&mut rig.seat, shard, rig.time, 32);
            fired += progress.fired;
            most = most.max(rig.keyspace.expired_stream_stats().queued);
            if progress.fired == 0 {
                break;
            }
        }
    }
    // The key of the other database is none of these.
    assert!((1 << 16..(1 << 16) + 32).contains(&(fired - 1)), "{fired}");
    assert_eq!(most as u32, fired - 1);
    assert!(rig.keyspace.expired_stream_stats().waits > 0);
    assert!(rig.next_deadline() <= rig.time.tick, "it is tried again");
    // A victim that is dead has expired.
    let (used, rules) = (rig.keyspace.used_memory(), rig.keyspace.rules());
    rules.set_policy(Policy::AllKeysRandom);
    rules.maxmemory.store(used * 9 / 10, Relaxed);
    rig.run("SET bring memory");
    rig.run("DEL bring");
    rig.keyspace.rules().maxmemory.store(0, Relaxed);
    let queued = rig.keyspace.expired_stream_stats().queued;
    assert!(queued > most, "{queued}");
    assert_eq!(rig.keyspace.stats(rig.time).evicted, 0);
    assert_eq!(rig.append(), AppendedExpired::All);
    rig.expire_all();
    rig.append();
    rig.script(&format!("XLEN gone -> :{KEYS}\n DBSIZE -> :1"));
}

/// Two threads expire, one meets dead keys, and all of them append.
#[test]
fn threads_append_each_expiry_once_and_in_the_order_of_deadlines() {
    const KEYS: u32 = 20_000;
    const MS: u32 = 50;
    let mut rig = Rig::with(Options {
        shards: 4,
        ..Options::default()
    });
    let streams = [stream(0, "gone", 1_000_000, true)];
    rig.keyspace.set_expired_streams(&streams);
    for i in 0..KEYS {
        rig.run(&format!("SET k:{i} {i} PX {}", 1 + i % MS));
    }
    let (keyspace, time) = (&rig.keyspace, rig.time);
    std::thread::scope(|scope| {
        for thread in 0..3_usize {
            scope.spawn(move || {
                let (mut seat, mut time) = (keyspace.seat(), time);
                for ms in 1..=u64::from(MS) {
                    time.tick = START + ms;
                    for shard in 0..keyspace.shards() {
                        if thread < 2 {
                            let progress = keyspace.expire(&mut seat, shard, time, 8);
                            assert!(progress.fired <= 8);
                        } else {
                            let line = format!("GET k:{}", ms * 7 + shard as u64);
                            crate::common::call_with(keyspace, &mut seat, time.tick, 0, &line);
                        }
                        keyspace.append_expired(&mut seat, time);
                    }
                }
            });
        }
    });
    rig.pass(u64::from(MS));
    rig.expire_all();
    let entries = rig.entries("gone");
    let mut values: Vec<u32> = entries
        .iter()
        .map(|entry| entry.rsplit_once('=').expect("a value").1)
        .map(|value| value.parse().expect("a number"))
        .collect();
    values.sort_unstable();
    assert_eq!(values, (0..KEYS).collect::<Vec<_>>());
}

#[test]
fn a_pass_removes_keys_of_a_shard_in_the_order_of_their_deadlines() {
    let mut rig = Rig::with(Options {
        shards: 1,
        ..Options::default()
    });
    let streams = [stream(0, "gone", 1_000_000, false)];
    rig.keyspace.set_expired_streams(&streams);
    for i in 0..5_000_u64 {
        // In no order, and over several levels of the wheel.
        rig.run(&format!("SET k:{i} v PX {}", 1 + i * 7_919 % 30_000));
    }
    for pass in [300, 1, 17_000, 20_000] {
        rig.pass(pass);
        rig.expire_all();
    }
    let entries = rig.entries("gone");
    let deadlines: Vec<u64> = entries
        .iter()
        .map(|entry| {
            let times = entry.split_once('@').expect("a time").1;
            times.split("..").next().expect("a deadline")
        })
        .map(|text| text.parse().expect("a number"))
        .collect();
    assert_eq!(deadlines.len(), 5_000);
    assert!(deadlines.is_sorted());
}
