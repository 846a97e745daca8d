//! What is recorded of each change, and that replaying it makes the same data.

use tidewheel_keyspace::{
    AppendedExpired, Begun, ExpiredStream, Policy, Reach, RecordReader, Watching, resolve,
};
use tidewheel_resp::{Args, Protocol, Writer};

use crate::common::{Rig, fill, limit_to_what_is_used};

impl Rig {
    fn recording() -> Self {
        let mut rig = Self::new();
        rig.keyspace.start_recording(&rig.seat.exclusive());
        rig
    }

    /// The records since the last call, each as a line: `db: words`, with `..` if others belong to
    /// it. Payloads are shown as `<payload>`.
    fn records(&self) -> Vec<String> {
        let mut bytes = Vec::new();
        self.keyspace.take_records(&mut bytes);
        let show = |word: &&[u8]| match std::str::from_utf8(word) {
            Ok(text) => text.to_owned(),
            Err(_) => "<payload>".to_owned(),
        };
        let lines = RecordReader::new(&bytes).map(|record| {
            let record = record.expect("valid");
            let words: Vec<_> = record.words().iter().map(show).collect();
            let more = if record.ends_group() { "" } else { ".." };
            format!("{}{more}: {}", record.db(), words.join(" "))
        });
        lines.collect()
    }

    /// Runs lines of `command -> records`, which `;` parts.
    #[track_caller]
    fn recorded(&mut self, script: &str) {
        for line in script
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
        {
            if let Some(ms) = line.strip_prefix("pass ") {
                self.pass(ms.parse().expect("milliseconds"));
                continue;
            }
            let (command, expected) = line.split_once("->").expect("command -> records");
            let reply = self.run(command);
            let expected: Vec<_> = expected.split(';').map(str::trim).collect();
            let expected = expected.into_iter().filter(|record| !record.is_empty());
            let expected: Vec<_> = expected.map(str::to_owned).collect();
            assert_eq!(self.records(), expected, "{command} answered {reply}");
        }
    }
}

#[test]
fn most_commands_are_recorded_as_they_were_sent_if_they_change_anything() {
    Rig::recording().recorded(
        "
        SET k v PX 500 -> 0: SET k v PX 500
        set k v2 nx ->
        GET k ->
        EXPIRE k 10 -> 0: EXPIRE k 10
        EXPIRE k 10 GT ->
        INCR k ->
        APPEND k more -> 0: APPEND k more
        DEL k nothing -> 0: DEL k nothing
        DEL k nothing ->
        SELECT 3 ->
        HSET h f v -> 3: HSET h f v
        HPEXPIRE h 5 FIELDS 1 f -> 3: HPEXPIRE h 5 FIELDS 1 f
        HSETNX h f w ->
        RENAME h h2 -> 3: RENAME h h2
        MOVE h2 0 -> 3: MOVE h2 0
        SWAPDB 0 3 -> 3: SWAPDB 0 3
        FLUSHDB -> 3: FLUSHDB
        FLUSHDB ->
        ",
    );
}

#[test]
fn nothing_is_recorded_when_something_expires() {
    let mut rig = Rig::recording();
    rig.recorded(
        "
        SET k v PX 5 -> 0: SET k v PX 5
        SET l v PX 5 -> 0: SET l v PX 5
        HSET h f v -> 0: HSET h f v
        HPEXPIRE h 5 FIELDS 1 f -> 0: HPEXPIRE h 5 FIELDS 1 f
        SADD s a b -> 0: SADD s a b
        SPEXPIRE s 5 MEMBERS 1 a -> 0: SPEXPIRE s 5 MEMBERS 1 a
        pass 5
        GET k ->
        HLEN h ->
        SCARD s ->
        SET k again -> 0: SET k again
        ",
    );
    rig.expire_all();
    assert_eq!(rig.records(), [""; 0]);
}

#[test]
fn what_depends_on_other_keys_or_on_chance_is_recorded_as_what_it_has_done() {
    let mut rig = Rig::recording();
    rig.recorded(
        "
        SADD a 1 -> 0: SADD a 1
        SPOP a -> 0: SREM a 1
        SPOP a ->
        SADD a x -> 0: SADD a x
        SUNIONSTORE to a b -> 0: RESTORE to 0 <payload> REPLACE ABSTTL
        SINTERSTORE to a b -> 0: DEL to
        SINTERSTORE to a b ->
        COPY a c DB 2 -> 2: RESTORE c 0 <payload> REPLACE ABSTTL
        SORT a ALPHA STORE l -> 0: RESTORE l 0 <payload> REPLACE ABSTTL
        PEXPIRE l 100 -> 0: PEXPIRE l 100
        BLPOP none l 0 -> 0: LPOP l
        RPUSH l a b c d -> 0: RPUSH l a b c d
        BLMPOP 0 2 none l RIGHT COUNT 2 -> 0: LMPOP 1 l RIGHT COUNT 2
        BLMOVE l to LEFT RIGHT 0 -> 0: LMOVE l to LEFT RIGHT
        BRPOPLPUSH l to 0 -> 0: RPOPLPUSH l to
        ZADD z 1 a 2 b 3 c -> 0: ZADD z 1 a 2 b 3 c
        BZPOPMIN none z 0 -> 0: ZPOPMIN z
        BZMPOP 0 2 none z MAX -> 0: ZMPOP 1 z MAX
        XADD x 5-1 f v -> 0: XADD x 5-1 f v
        XGROUP CREATE x g 0 -> 0: XGROUP CREATE x g 0
        XREADGROUP GROUP g me BLOCK 5 COUNT 2 STREAMS x > -> 0: XREADGROUP GROUP g me COUNT 2 STREAMS x >
        XREADGROUP GROUP g me STREAMS x > ->
        XREADGROUP GROUP g me NOACK STREAMS x 0-0 -> 0: XREADGROUP GROUP g me NOACK STREAMS x 0-0
        ",
    );
}

#[test]
fn an_approximate_trim_is_recorded_as_what_it_has_left() {
    let mut rig = Rig::recording();
    for i in 1..=250 {
        rig.run(&format!("XADD x {i}-0 f v"));
    }
    rig.records();
    rig.recorded(
        "
        XADD x MAXLEN ~ 120 251-0 f v -> 0..: XADD x 251-0 f v ; 0: XTRIM x MINID = 101-0
        XADD x MAXLEN ~ 120 252-0 f v -> 0: XADD x MAXLEN ~ 120 252-0 f v
        XTRIM x MAXLEN ~ 10 -> 0: XTRIM x MINID = 201-0
        XTRIM x MAXLEN 10 -> 0: XTRIM x MAXLEN 10
        ",
    );
}

#[test]
fn a_transaction_is_one_and_who_was_served_stands_behind_it() {
    let mut rig = Rig::recording();
    let lines = ["INCR a", "GET a", "RPUSH list v w", "SELECT 2", "INCR a"];
    let slices: Vec<Vec<&[u8]>> = lines
        .iter()
        .map(|line| line.split(' ').map(str::as_bytes).collect())
        .collect();
    for whole in [false, true] {
        let calls = slices.iter().map(|words| Args::from_slices(words));
        let calls = calls.map(|args| (resolve(args).expect("a command"), args));
        let (watching, mut out) = (Watching::default(), Writer::new(Protocol::Resp2));
        rig.session.db = 0;
        rig.seat.enter();
        let begun =
            rig.keyspace
                .transaction(&mut rig.seat, rig.time, 0, calls.clone(), &watching, whole);
        let Ok(Begun::Runs(mut transaction)) = begun else {
            panic!("nobody else is there");
        };
        for (row, args) in calls {
            transaction.run(row, &mut rig.session, args, &mut out);
        }
        transaction.end(&mut rig.seat, rig.time, &mut out);
        rig.seat.leave();
        assert_eq!(
            rig.records(),
            ["0..: INCR a", "0..: RPUSH list v w", "2: INCR a"]
        );
    }
}

/// What the script had changed stood before what came before it, and apart.
#[test]
fn what_a_script_within_a_transaction_changes_stands_where_it_ran() {
    let mut rig = Rig::recording();
    let words: [&[&[u8]]; 3] = [
        &[b"SET", b"a", b"1"],
        &[b"APPEND", b"a", b"2"],
        &[b"INCR", b"a"],
    ];
    let nothing = Watching::default();
    let (seat, time, session) = (&mut rig.seat, rig.time, &mut rig.session);
    seat.enter();
    let begun = (rig.keyspace).transaction(seat, time, 0, std::iter::empty(), &nothing, true);
    let Ok(Begun::Runs(mut transaction)) = begun else {
        panic!("nobody else is there");
    };
    let mut out = Writer::new(Protocol::Resp2);
    let [first, inner, last] = words.map(Args::from_slices);
    let row = |args| resolve(args).expect("a command");
    transaction.run(row(first), session, first, &mut out);
    for _ in 0..2 {
        let begun = rig
            .keyspace
            .script(seat, time, Reach::Whole, std::iter::empty());
        let Begun::Runs(mut script) = begun else {
            panic!("nobody else is there");
        };
        script.call(row(inner), session, inner, &mut out);
        script.end(seat, time, &mut out);
    }
    transaction.run(row(last), session, last, &mut out);
    transaction.end(seat, time, &mut out);
    seat.leave();
    let expected = [
        "0..: SET a 1",
        "0..: APPEND a 2",
        "0..: APPEND a 2",
        "0: INCR a",
    ];
    assert_eq!(rig.records(), expected);
}

#[test]
fn an_evicted_key_is_recorded_as_deleted() {
    let mut rig = Rig::recording();
    fill(&mut rig, 0, 1_000, "");
    rig.records();
    rig.keyspace.rules().set_policy(Policy::AllKeysRandom);
    limit_to_what_is_used(&rig);
    fill(&mut rig, 1_000, 3_000, "");
    let is_eviction = |record: &String| record.starts_with("0: DEL ");
    let (evicted, written): (Vec<_>, Vec<_>) = rig.records().into_iter().partition(is_eviction);
    assert_eq!(written.len(), 2_000);
    assert!(evicted.len() > 1_000, "{} were evicted", evicted.len());
}

#[test]
fn recording_ends_when_it_is_switched_off() {
    let mut rig = Rig::recording();
    rig.recorded("SET k v -> 0: SET k v");
    rig.keyspace.stop_recording(&rig.seat.exclusive());
    rig.recorded("SET k w ->");
}

/// The keys themselves leave no record: replay finds them dead at its own time. What the stream
/// says of them is data.
#[test]
fn entries_about_expired_keys_are_recorded_as_they_were_appended() {
    let mut rig = Rig::recording();
    let stream = ExpiredStream {
        db: 0,
        name: (*b"gone").into(),
        max_len: 1_000,
        values: true,
    };
    rig.keyspace.set_expired_streams(&[stream]);
    rig.recorded(
        "
        SET k v PX 5 -> 0: SET k v PX 5
        pass 5
        GET k ->
        ",
    );
    while rig.keyspace.append_expired(&mut rig.seat, rig.time) == AppendedExpired::Some {}
    assert_eq!(
        rig.records(),
        [
            "0: XADD gone 1700000000005-0 key k deadline 1700000000005 fired 1700000000005 type string value v"
        ]
    );
}

/// The snapshot had the entry, and so had what follows it: it could not be replayed, and the server
/// did not start.
#[test]
fn an_event_that_waits_is_appended_before_the_records_are_cut() {
    let mut rig = Rig::recording();
    rig.keyspace.set_expired_streams(&[gone()]);
    rig.recorded("SET k v PX 5 -> 0: SET k v PX 5\n pass 5\n GET k ->");
    assert!(rig.keyspace.expired_pending());
    let alone = rig.seat.exclusive();
    rig.keyspace.cut_records(&alone, rig.time);
    let mut file = Vec::new();
    let none = std::iter::empty();
    let saved = rig.keyspace.save(&alone, rig.time, &[], none, &mut file);
    assert_eq!(saved.expect("memory takes it").keys, 1);
    drop(alone);
    assert_eq!(rig.records().len(), 1, "in front of the cut");
    assert_eq!(rig.records(), [""; 0], "behind it");
}

fn gone() -> ExpiredStream {
    ExpiredStream {
        db: 0,
        name: (*b"gone").into(),
        max_len: 1_000,
        values: false,
    }
}

/// What had died just before a crash, and was not appended by then, was announced nowhere.
#[test]
fn each_expired_key_is_in_its_stream_once_whatever_the_log_has_by_a_crash() {
    let append = |rig: &mut Rig| {
        while rig.keyspace.append_expired(&mut rig.seat, rig.time) == AppendedExpired::Some {}
    };
    // Whether a command meets the dead key, or a pass of expiry, or nobody before the crash; and
    // whether its event was appended before.
    for (met, appends) in [
        ("SET", true),
        ("SET", false),
        ("GET", true),
        ("GET", false),
        ("", true),
        ("", false),
        ("nobody", false),
    ] {
        let mut rig = Rig::recording();
        rig.keyspace.set_expired_streams(&[gone()]);
        rig.run("SET k v PX 5");
        rig.pass(7);
        match met {
            "SET" => drop(rig.run("SET k again PX 90")),
            "GET" => drop(rig.run("GET k")),
            "" => drop(rig.expire_all()),
            _ => {}
        }
        if appends {
            append(&mut rig);
        }
        rig.run("SET other v");
        let mut records = Vec::new();
        rig.keyspace.take_records(&mut records);

        let mut later = Rig::new();
        later.keyspace.set_expired_streams(&[gone()]);
        let replays = |rig: &mut Rig, on| rig.keyspace.set_replays(&rig.seat.exclusive(), on);
        replays(&mut later, true);
        for record in RecordReader::new(&records) {
            let replayed = later
                .keyspace
                .replay(&mut later.seat, &record.expect("valid"));
            replayed.expect("it runs again");
            assert!(!later.keyspace.expired_pending(), "it may be appended yet");
        }
        later.pass(20);
        later.expire_all();
        replays(&mut later, false);
        later.expire_all();
        append(&mut later);
        let shown = format!("{met:?}, appended: {appends}");
        assert_eq!(later.run("XLEN gone"), ":1", "{shown}");
        let keys = if met == "SET" { ":3" } else { ":2" };
        assert_eq!(later.run("DBSIZE"), keys, "{shown}");
    }
}

/// A message left that told of what a crash took back: the record of a script is made at its end,
/// and its events and messages were on their way before.
#[test]
fn who_hears_of_a_change_before_it_is_recorded_finds_the_record_counted() {
    for reach in [Reach::Keys, Reach::Whole] {
        let mut rig = Rig::recording();
        rig.keyspace.set_promises(true);
        rig.notify("KEA");
        let words: [&[u8]; 2] = [b"INCR", b"a"];
        let (incr, mut out) = (Args::from_slices(&words), Writer::new(Protocol::Resp2));
        let keys = [&b"a"[..]].into_iter();
        rig.seat.enter();
        let begun = rig.keyspace.script(&mut rig.seat, rig.time, reach, keys);
        let Begun::Runs(mut script) = begun else {
            panic!("nobody else is there");
        };
        // Who has the whole keyspace may tell readers of each change, and so it has promised.
        let has_promised = u64::from(reach == Reach::Whole);
        assert_eq!(rig.keyspace.records(), has_promised);
        script.call(
            resolve(incr).expect("a command"),
            &mut rig.session,
            incr,
            &mut out,
        );
        assert_eq!(rig.events(), ["0:incrby:a"]);
        assert_eq!(rig.keyspace.records(), 1, "counted");
        if reach == Reach::Keys {
            // What others record meanwhile stands behind it.
            std::thread::scope(|scope| {
                scope.spawn(|| rig.keyspace.record(rig.time, &[b"PING"]));
            });
            assert_eq!(rig.keyspace.records(), 2);
        }
        assert!(!rig.keyspace.has_records());
        assert_eq!(rig.records(), [""; 0], "not there yet");
        script.end(&mut rig.seat, rig.time, &mut out);
        rig.seat.leave();
        assert!(rig.keyspace.has_records());
        let expected = ["0: INCR a", "0: PING"];
        let all = rig.keyspace.records() as usize;
        assert_eq!(rig.records(), expected[..all]);
    }
}

/// Those behind it would have waited for ever.
#[test]
fn a_promised_record_of_one_who_has_changed_nothing_is_none() {
    let mut rig = Rig::recording();
    rig.keyspace.set_promises(true);
    for reach in [Reach::Keys, Reach::Whole] {
        let before = rig.keyspace.records();
        rig.seat.enter();
        let keys = std::iter::empty();
        let begun = rig.keyspace.script(&mut rig.seat, rig.time, reach, keys);
        let Begun::Runs(script) = begun else {
            panic!("nobody else is there");
        };
        rig.keyspace.promise_record();
        rig.keyspace.promise_record();
        assert_eq!(rig.keyspace.records(), before + 1);
        let mut out = Writer::new(Protocol::Resp2);
        script.end(&mut rig.seat, rig.time, &mut out);
        rig.seat.leave();
        assert!(rig.keyspace.has_records());
        let mut bytes = Vec::new();
        let until = rig.keyspace.take_records(&mut bytes).until;
        assert_eq!((until, bytes.len()), (before + 1, 0));
        assert!(!rig.keyspace.has_records());
    }
    rig.recorded("SET k v -> 0: SET k v");
}

#[test]
fn every_command_that_tells_of_what_it_changes_keeps_its_promise() {
    let mut rig = Rig::recording();
    rig.keyspace.set_promises(true);
    rig.notify("KEA");
    for command in [
        "MSET a 1 b 2 c 3",
        "RENAME a d",
        "COPY d e",
        "HSET h f v",
        "HDEL h f",
        "SINTERSTORE s none none",
        "FLUSHDB",
        "SET k v",
        "SWAPDB 0 1",
        "FLUSHALL",
        "SET k v EX 1",
        "GETDEL k",
        "BLPOP list 1",
    ] {
        rig.run(command);
        rig.records();
        let mut bytes = Vec::new();
        let until = rig.keyspace.take_records(&mut bytes).until;
        assert_eq!(until, rig.keyspace.records(), "{command}");
    }
}
