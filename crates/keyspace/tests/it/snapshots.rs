//! Snapshots: files that stock servers load, and theirs that are loaded here.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;

use tidewheel_engines::{Client, Engine, Folder, Server};
use tidewheel_keyspace::{
    ExpiredStream, FileFormat, LoadRules, Loaded, Policy, SnapshotError, SnapshotLimits, Walked,
};
use tidewheel_resp::Reply;

use crate::common::Rig;

const FILE: &str = "dump.rdb";

impl Rig {
    fn save(&mut self) -> Vec<u8> {
        let mut file = Vec::new();
        let fields = [("redis-ver", "7.4.0")];
        let codes = [&b"#!lua name=lib\nredis.register_function('f', function() return 1 end)"[..]];
        let alone = self.seat.exclusive();
        let saved = self
            .keyspace
            .save(&alone, self.time, &fields, codes.into_iter(), &mut file);
        saved.expect("memory takes it");
        file
    }

    fn load(&mut self, file: &[u8]) -> Result<Loaded, SnapshotError> {
        self.load_over(false, file)
    }

    fn load_over(&mut self, replaces: bool, file: &[u8]) -> Result<Loaded, SnapshotError> {
        let rules = LoadRules {
            replaces,
            ..LoadRules::default()
        };
        self.load_by(rules, file)
    }

    fn load_by(&mut self, rules: LoadRules, mut file: &[u8]) -> Result<Loaded, SnapshotError> {
        let (time, offset) = (self.time, self.time.wall_offset_ms);
        (self.keyspace).load(&self.seat.exclusive(), time, &|_| offset, rules, &mut file)
    }

    /// The digests and deadlines of all keys of the first two databases.
    fn digests(&mut self) -> BTreeMap<String, (String, String)> {
        self.session.may_debug = true;
        let mut digests = BTreeMap::new();
        for db in 0..2 {
            self.session.db = db;
            let Reply::Array(keys) = self.words(&[b"KEYS", b"*"]) else {
                panic!("keys");
            };
            for key in keys {
                let Reply::Bulk(key) = key else {
                    panic!("a key")
                };
                let digest = self.words(&[b"DEBUG", b"DIGEST-VALUE", &key]);
                let ends = self.words(&[b"PEXPIRETIME", &key]);
                let name = format!("{db} {}", key.escape_ascii());
                digests.insert(name, (format!("{digest:?}"), format!("{ends:?}")));
            }
        }
        self.session.db = 0;
        digests
    }

    /// Keys of all types and forms.
    fn fill(&mut self, member_deadlines: bool) {
        let long = "v".repeat(100_000);
        let far = "PXAT 95617584000123";
        for line in [
            "SET text short".to_owned(),
            format!("SET number 12345 {far}"),
            format!("SET long {long}"),
            "HSET packed a 1 b two".to_owned(),
            "RPUSH list 1 two 3".to_owned(),
            "SADD integers 1 2 300000".to_owned(),
            "SADD words a b c".to_owned(),
            "ZADD scores 1.5 a -inf b 3 c".to_owned(),
            "XADD stream 5-1 field value".to_owned(),
            "XADD stream 5-2 field value other 7".to_owned(),
            "XGROUP CREATE stream group 0".to_owned(),
            "XREADGROUP GROUP group me COUNT 1 STREAMS stream >".to_owned(),
            "XGROUP CREATECONSUMER stream group idle".to_owned(),
            "PFADD log a b c d".to_owned(),
            "SETBIT bits 1000 1".to_owned(),
            "SELECT 1".to_owned(),
            "SET elsewhere v".to_owned(),
            "SELECT 0".to_owned(),
        ] {
            assert!(!self.run(&line).starts_with('-'), "{line:.60}");
        }
        for i in 0..700 {
            self.run(&format!("HSET hash field:{i} value:{i}"));
            self.run(&format!("RPUSH long-list element:{i}"));
            self.run(&format!("SADD set member:{i}"));
            self.run(&format!("ZADD zset {i} member:{i}"));
            self.run(&format!("XADD long-stream {i}-1 field value:{i}"));
        }
        if member_deadlines {
            self.run("HPEXPIREAT packed 95617584000123 FIELDS 1 a");
            self.run("HPEXPIREAT hash 95617584000123 FIELDS 1 field:3");
            self.run("SPEXPIREAT words 95617584000123 MEMBERS 1 a");
            self.run("ZPEXPIREAT zset 95617584000123 MEMBERS 1 member:7");
        }
        self.run("PEXPIREAT zset 95617584000124");
    }
}

fn engines() -> Vec<Engine> {
    Engine::all()
}

fn say(client: &mut Client, words: &[&[u8]]) -> Reply {
    client.call(words).expect("an answer")
}

fn bytes_of(client: &mut Client, words: &[&[u8]]) -> Vec<u8> {
    match say(client, words) {
        Reply::Bulk(bytes) => bytes,
        other => panic!("{other:?}"),
    }
}

/// All keys of a stock server, as its DUMP and PEXPIRETIME say them, in a keyspace of ours.
fn copy_of(server: &Server) -> Rig {
    let mut rig = Rig::new();
    let mut client = server.client();
    for db in [&b"0"[..], b"1"] {
        say(&mut client, &[b"SELECT", db]);
        rig.session.db = u32::from(db == b"1");
        let Reply::Array(keys) = say(&mut client, &[b"KEYS", b"*"]) else {
            panic!("keys");
        };
        for key in keys {
            let Reply::Bulk(key) = key else {
                panic!("a key")
            };
            let payload = bytes_of(&mut client, &[b"DUMP", &key]);
            let Reply::Integer(ends) = say(&mut client, &[b"PEXPIRETIME", &key]) else {
                panic!("a time");
            };
            let ends = ends.max(0).to_string();
            let restored = rig.words(&[b"RESTORE", &key, ends.as_bytes(), &payload, b"ABSTTL"]);
            assert_eq!(restored, Reply::Simple("OK".to_owned()));
        }
    }
    rig.session.db = 0;
    rig
}

fn start_with(engine: &Engine, folder: &Folder) -> Server {
    let dir = folder.path().to_str().expect("a path of text");
    Server::start(engine, &["--dir", dir, "--dbfilename", FILE])
}

#[test]
fn stock_servers_load_what_is_saved() {
    use FileFormat::{Redis10, Redis11, Redis12, Valkey80};
    let loads = |engine: &Engine, format: &FileFormat| match format {
        Redis10 => true,
        Redis11 => engine.name() != "redis",
        Redis12 => engine.name() == "redis-8",
        Valkey80 => engine.name() == "valkey",
    };
    let of = |engine: Engine| {
        let formats = FileFormat::all().into_iter();
        let formats = formats.filter(|format| loads(&engine, format));
        formats
            .map(|format| (engine.clone(), format))
            .collect::<Vec<_>>()
    };
    for (engine, format) in engines().into_iter().flat_map(of) {
        let mut rig = Rig::new();
        rig.keyspace.rules().set_file_format(format);
        rig.fill(true);
        let folder = Folder::new("snapshot");
        std::fs::write(folder.path().join(FILE), rig.save()).expect("a file");
        let server = start_with(&engine, &folder);
        let mut there = copy_of(&server);
        // They skip deadlines of members for which the format has no word.
        let mut here = Rig::new();
        here.fill(false);
        if matches!(format, Redis12 | Valkey80) {
            here.run("HPEXPIREAT packed 95617584000123 FIELDS 1 a");
            here.run("HPEXPIREAT hash 95617584000123 FIELDS 1 field:3");
        }
        let (here, there) = (here.digests(), there.digests());
        for (key, digest) in &here {
            assert_eq!(there.get(key), Some(digest), "{}: {key}", engine.name());
        }
        assert_eq!(here.len(), there.len(), "{}", engine.name());
        let answer = say(&mut server.client(), &[b"FCALL", b"f", b"0"]);
        assert_eq!(answer, Reply::Integer(1), "{}", engine.name());
    }
}

#[test]
fn what_stock_servers_save_is_loaded() {
    for engine in engines() {
        let folder = Folder::new("snapshot");
        let server = start_with(&engine, &folder);
        let mut client = server.client();
        let mut rig = Rig::new();
        rig.fill(false);
        for db in 0..2 {
            rig.session.db = db;
            say(&mut client, &[b"SELECT", db.to_string().as_bytes()]);
            let Reply::Array(keys) = rig.words(&[b"KEYS", b"*"]) else {
                panic!("keys");
            };
            for key in keys {
                let Reply::Bulk(key) = key else {
                    panic!("a key")
                };
                let Reply::Bulk(payload) = rig.words(&[b"DUMP", &key]) else {
                    panic!("a payload");
                };
                say(&mut client, &[b"RESTORE", &key, b"0", &payload]);
            }
        }
        say(&mut client, &[b"SELECT", b"0"]);
        let mut call = |words: &[&str]| client.call(words).expect("an answer");
        // What is written by their own commands has their own forms.
        for i in 0..300 {
            let text = format!("{}{i}", "abc".repeat(30));
            call(&["RPUSH", "own-list", &text]);
            call(&["HSET", "own-hash", &text, "v"]);
            call(&["ZADD", "own-zset", "1.25", &text]);
            call(&["XADD", "own-stream", "*", "f", &text]);
        }
        call(&[
            "SET",
            "own-text",
            &"compressed ".repeat(1_000),
            "EX",
            "1000",
        ]);
        call(&["HSET", "timed-hash", "a", "1", "b", "2"]);
        call(&["HEXPIREAT", "timed-hash", "95617584000", "FIELDS", "1", "a"]);
        call(&[
            "FUNCTION",
            "LOAD",
            "#!lua name=lib\nredis.register_function('f', function() return 1 end)",
        ]);
        assert_eq!(call(&["SAVE"]), Reply::Simple("OK".to_owned()));
        let file = std::fs::read(folder.path().join(FILE)).expect("a file");
        let mut loaded = Rig::new();
        let said = loaded
            .load(&file)
            .unwrap_or_else(|error| panic!("{}: {error}", engine.name()));
        assert_eq!(said.functions.len(), 1);
        assert!(said.fields.iter().any(|(name, _)| name == b"ctime"));
        let mut copy = copy_of(&server);
        let (loaded, copy) = (loaded.digests(), copy.digests());
        for (key, digest) in &copy {
            assert_eq!(loaded.get(key), Some(digest), "{}: {key}", engine.name());
        }
        assert_eq!(loaded.len(), copy.len());
    }
}

#[test]
fn a_file_that_was_cut_or_changed_is_refused_and_nothing_panics() {
    let mut rig = Rig::new();
    for line in [
        "SET k v PX 5000",
        "HSET h f v g w",
        "HPEXPIRE h 5000 FIELDS 1 f",
        "RPUSH l a b",
        "SADD s 1 2",
        "ZADD z 1 a",
        "XADD x 1-1 f v",
        "XGROUP CREATE x g 0",
        "XREADGROUP GROUP g me STREAMS x >",
    ] {
        rig.run(line);
    }
    let file = rig.save();
    for cut in 0..file.len() {
        let error = Rig::new().load(&file[..cut]).expect_err("it is cut");
        let expected = format!("it ends too early, at byte {cut}");
        assert_eq!(error.to_string(), expected);
    }
    for at in 0..file.len() {
        for bit in 0..8 {
            let mut changed = file.clone();
            changed[at] ^= 1 << bit;
            // Only a checksum of zero is not looked at.
            assert!(Rig::new().load(&changed).is_err(), "bit {bit} of byte {at}");
        }
    }
    assert_eq!(Rig::new().load(&file).expect("it is whole").keys, 6);
}

#[test]
fn a_file_that_is_none_or_too_new_is_refused_by_name() {
    for (file, expected) in [
        (
            &b"# a text file"[..],
            "it does not begin with REDIS or VALKEY",
        ),
        (
            b"REDIS0016",
            "its version is 0016, which no known server writes",
        ),
        (
            b"REDIS\x2b012",
            "its version is +012, which no known server writes",
        ),
        (
            b"VALKEY082",
            "its version is 082, which no known server writes",
        ),
        (
            b"REDIS0012\x06\x01k",
            "at byte 9 a value has the type 6, which is not known here",
        ),
        (
            b"REDIS0012\x07\x01k\x01\x00",
            "at byte 9 a value has the type 7, which is not known here",
        ),
        (
            b"REDIS0012\xf3",
            "at byte 9 a value has the type 243, which is not known here",
        ),
        (
            b"REDIS0010\x00\x01k\x01v\x00\x01k\x01v",
            "at byte 14 comes the key 'k' again",
        ),
        (
            b"REDIS0010\xfe\x40\x10",
            "at byte 9 comes database 16, and there are not so many (--databases)",
        ),
    ] {
        let error = Rig::new().load(file).expect_err("refused");
        assert_eq!(error.to_string(), expected);
    }
}

/// A key that died while no server ran is announced when it is loaded, as any other.
#[test]
fn what_died_meanwhile_is_stored_and_expires_at_once() {
    let mut rig = Rig::new();
    rig.run("SET soon v PX 10");
    rig.run("SET later v PX 100");
    rig.run("HSET h f v g w");
    rig.run("HPEXPIRE h 10 FIELDS 1 f");
    let file = rig.save();
    let mut loaded = Rig::new();
    loaded.notify("EKAx");
    loaded.pass(50);
    loaded.load(&file).expect("a snapshot");
    assert_eq!(loaded.run("DBSIZE"), ":3");
    loaded.events();
    loaded.expire_all();
    let events = loaded.events();
    let expected = ["0:expired:soon", "0:hexpired:h"];
    assert!(
        expected
            .iter()
            .all(|event| events.contains(&(*event).to_owned())),
        "{events:?}"
    );
    assert_eq!(loaded.run("PTTL later"), ":50");
    assert_eq!(loaded.run("HKEYS h"), "['g']");
}

/// Each form replaces itself and a string; what was dead is announced before it is replaced.
#[test]
fn a_key_of_the_file_replaces_one_that_is_there_if_it_may() {
    let mut rig = Rig::new();
    rig.fill(true);
    rig.run("SET dies v");
    let file = rig.save();
    let expected = rig.digests();
    let mut other = Rig::new();
    other.load(&file).expect("a snapshot");
    other.run("SET dies w PX 10");
    other.notify("EKAx");
    other.pass(50);
    let refused = other.load(&file).expect_err("its keys are there");
    assert!(matches!(refused, SnapshotError::Twice { .. }), "{refused}");
    other.events();
    other.load_over(true, &file).expect("it replaces");
    assert_eq!(other.events(), ["0:expired:dies"]);
    assert_eq!(other.digests(), expected);
    for key in expected.keys().filter_map(|name| name.strip_prefix("0 ")) {
        other.words(&[b"SET", key.as_bytes(), b"text"]);
    }
    other.run("SET own v");
    other.load_over(true, &file).expect("it replaces");
    assert_eq!(other.run("GET own"), "'v'");
    other.run("DEL own");
    assert_eq!(other.digests(), expected);
}

/// What is evicted first after a restart would else be a matter of luck.
#[test]
fn a_file_has_what_the_policy_in_force_knows_of_accesses() {
    for (policy, ask, expected) in [
        (Policy::AllKeysLru, "OBJECT IDLETIME old", ":700"),
        (Policy::VolatileLfu, "OBJECT FREQ old", ":4"),
        // It needs none of it.
        (Policy::AllKeysRandom, "OBJECT IDLETIME old", ":0"),
    ] {
        let mut rig = Rig::new();
        rig.keyspace.rules().set_policy(policy);
        rig.run("SET old v PX 10000000");
        rig.pass(640_000);
        rig.run("SET new v");
        rig.pass(60_000);
        rig.keyspace.rules().lfu_decay_time.store(11, Relaxed);
        let file = rig.save();
        let mut loaded = Rig::new();
        loaded.keyspace.rules().set_policy(policy);
        loaded.pass(700_000);
        loaded.load(&file).expect("a snapshot");
        assert_eq!(loaded.run(ask), expected, "{policy:?}");
        assert_eq!(loaded.run("PTTL old"), ":9300000");
    }
}

/// The stream of expired keys survives a stop with all that was to become an entry of it: what
/// waited, what was dead and not yet removed, and what died while nobody ran.
#[test]
fn a_file_has_all_that_becomes_an_entry_of_a_stream_of_expired_keys() {
    let stream = ExpiredStream {
        db: 0,
        name: (*b"gone").into(),
        max_len: 100,
        values: false,
    };
    let mut rig = Rig::new();
    rig.keyspace
        .set_expired_streams(std::slice::from_ref(&stream));
    rig.script("SET waits v PX 1 -> OK\n SET dead v PX 5 -> OK\n SET dies v PX 50 -> OK");
    rig.pass(1);
    rig.expire_all();
    assert!(rig.keyspace.expired_pending());
    rig.pass(5);
    let file = rig.save();
    assert!(!rig.keyspace.expired_pending());
    rig.script("XLEN gone -> :1");
    let mut later = Rig::new();
    later.keyspace.set_expired_streams(&[stream]);
    later.pass(100);
    later.load(&file).expect("it is whole");
    later.script("XLEN gone -> :1");
    later.expire_all();
    while later.keyspace.expired_pending() {
        later.keyspace.append_expired(&mut later.seat, later.time);
    }
    later.script("XLEN gone -> :3\n DBSIZE -> :1");
}

/// A clock that once stood near 1970 has written such files. The hash stayed for ever, empty, and
/// the next snapshot could not be loaded.
#[test]
fn what_died_before_the_beginning_of_time_is_not_stored() {
    let field = b"\x01\x01a\x011";
    let head = [
        &b"REDIS0012\xfe\x00"[..],
        b"\x18\x01h",
        &1_i64.to_le_bytes(),
        b"\x01",
    ];
    let members = [&b"\xfa\x11tidewheel-members\x08"[..], &1_u64.to_le_bytes()].concat();
    let set = [b"\x02\x01s\x01\x01a", &members[..]].concat();
    let zset = [b"\x05\x01z\x01\x01a", &1.5_f64.to_le_bytes()[..], &members].concat();
    let rest = b"\x00\x01k\x01v\xff\0\0\0\0\0\0\0\0";
    let file = [&head.concat()[..], field, &set, &zset, rest].concat();
    let mut rig = Rig::new();
    assert_eq!(rig.load(&file).expect("a snapshot").keys, 1);
    assert_eq!(rig.run("KEYS *"), "['k']");
    let again = rig.save();
    assert_eq!(Rig::new().load(&again).expect("it can be loaded").keys, 1);
}

/// Redis 6 and older have written such files. Each of these keys was refused, and the file with it.
#[test]
fn collections_without_members_are_skipped_and_counted() {
    let file = [
        &b"REDIS0011"[..],
        b"\x01\x01a\x00",
        b"\x02\x01b\x00",
        b"\x03\x01c\x00",
        b"\x04\x01d\x00",
        b"\x05\x01e\x00",
        b"\x09\x01f\x02\x00\xff",
        b"\x0a\x01g\x0b\x0b\0\0\0\x0a\0\0\0\0\0\xff",
        b"\x0b\x01h\x08\x02\0\0\0\0\0\0\0",
        b"\x0c\x01i\x0b\x0b\0\0\0\x0a\0\0\0\0\0\xff",
        b"\x0d\x01j\x0b\x0b\0\0\0\x0a\0\0\0\0\0\xff",
        b"\x0e\x01k\x00",
        b"\x10\x01l\x07\x07\0\0\0\0\0\xff",
        b"\x11\x01m\x07\x07\0\0\0\0\0\xff",
        b"\x12\x01n\x01\x02\x07\x07\0\0\0\0\0\xff",
        b"\x14\x01o\x07\x07\0\0\0\0\0\xff",
        b"\x12\x01p\x02\x02\x07\x07\0\0\0\0\0\xff\x01\x01z",
        b"\x00\x01q\x01v",
        b"\xff\0\0\0\0\0\0\0\0",
    ]
    .concat();
    let mut rig = Rig::new();
    let loaded = rig.load(&file).expect("it is sound");
    assert_eq!((loaded.keys, loaded.skipped_empty), (2, 15));
    assert_eq!(rig.run("DBSIZE"), ":2");
    assert_eq!(rig.run("LRANGE p 0 -1"), "['z']");
    // A payload of RESTORE with nothing in it is refused as before.
    assert_eq!(
        rig.words(&[b"RESTORE", b"r", b"0", b"\x01\x00\x0b\x00\0\0\0\0\0\0\0\0"]),
        Reply::Error("ERR DUMP payload version or checksum are wrong".to_owned())
    );
}

#[test]
fn values_of_modules_are_skipped_if_they_may_be() {
    let module = b"\x07\x01m\x81\0\0\0\0\0\0\0\x01\x01\x05\x02\x40\xff\x03\0\0\0\0\x04\0\0\0\0\0\0\0\0\x05\x03abc\x00";
    let file = [
        &b"REDIS0011"[..],
        b"\xfc\x01\0\0\0\0\0\0\0",
        module,
        b"\x00\x01k\x01v",
        b"\xff\0\0\0\0\0\0\0\0",
    ]
    .concat();
    let error = Rig::new().load(&file).expect_err("refused");
    assert_eq!(
        error.to_string(),
        "at byte 18 a value has the type 7, which is not known here"
    );
    let rules = LoadRules {
        skips_unknown: true,
        ..LoadRules::default()
    };
    let mut rig = Rig::new();
    let loaded = rig.load_by(rules, &file).expect("it is skipped");
    assert_eq!((loaded.keys, loaded.skipped_unknown), (1, 1));
    // The deadline was that of the key that was skipped.
    assert_eq!(rig.run("PTTL k"), ":-1");
    for (file, place) in [(&b"REDIS0011\x06\x01m"[..], 9), (b"REDIS0011\x08\x01m", 9)] {
        let error = Rig::new().load_by(rules, file).expect_err("refused");
        assert!(error.to_string().starts_with(&format!("at byte {place} ")));
    }
    for cut in 0..file.len() {
        assert!(Rig::new().load_by(rules, &file[..cut]).is_err());
    }
    let mut wrong = file.clone();
    wrong[9 + 9 + module.len() - 1] = 9;
    let error = Rig::new().load_by(rules, &wrong).expect_err("no such part");
    assert!(matches!(error, SnapshotError::Malformed { .. }), "{error}");
}

/// Others are inside meanwhile, and one of them wants to be alone.
#[test]
fn a_file_is_loaded_beside_others() {
    let mut rig = Rig::new();
    for i in 0..3_000 {
        rig.run(&format!("SET key:{i} {i}"));
    }
    let file = rig.save();
    let mut other = Rig::new();
    let (keyspace, time) = (&other.keyspace, other.time);
    let loaded = std::thread::scope(|scope| {
        let load = || {
            let (mut seat, rules) = (keyspace.seat(), LoadRules::default());
            keyspace.load_beside(&mut seat, time, &|_| 0, rules, &mut &file[..])
        };
        let loads = scope.spawn(load);
        let mut seat = keyspace.seat();
        while !loads.is_finished() {
            drop(seat.exclusive());
            std::thread::yield_now();
        }
        loads.join().expect("no panic")
    });
    assert_eq!(loaded.expect("a snapshot").keys, 3_000);
    assert_eq!(other.run("DBSIZE"), ":3000");
}

/// Values are read in batches, before their keys are stored.
#[test]
fn of_several_places_that_are_wrong_the_first_counts() {
    let mut file = b"REDIS0010".to_vec();
    let mut places = Vec::new();
    for i in 0..800 {
        places.push(file.len());
        let number = if i == 700 { 699 } else { i };
        file.extend(b"\x00\x08");
        file.extend(format!("key:{number:04}").bytes());
        // A compressed string that is none.
        let value: &[u8] = if i == 702 {
            b"\xc3\x01\x05\x1f"
        } else {
            b"\x01v"
        };
        file.extend(value);
    }
    let error = Rig::new().load(&file).expect_err("it is wrong");
    let SnapshotError::Twice { key, at } = &error else {
        panic!("{error}");
    };
    assert_eq!((&key[..], *at), (&b"key:0699"[..], places[700] as u64));
    assert_eq!(error.at(), places[700] as u64);
    let cut = places[600] + 3;
    let error = Rig::new().load(&file[..cut]).expect_err("it is cut");
    assert_eq!(
        error.to_string(),
        format!("it ends too early, at byte {cut}")
    );
}

/// What other loops copied while one showed a large collection waited in memory for its end.
#[test]
fn members_are_shown_when_all_entries_are_walked_over() {
    let mut rig = Rig::new();
    for i in 0..700 {
        rig.run(&format!("HSET hash field:{i} value:{i}"));
        rig.run(&format!("SET key:{i} value"));
    }
    let limits = SnapshotLimits::of(0);
    let snapshot = (rig.keyspace).begin_snapshot(&rig.seat.exclusive(), rig.time, limits);
    let write = move || snapshot.write(&[], std::iter::empty(), &mut std::io::sink());
    let writer = std::thread::spawn(write);
    let shards = rig.keyspace.shards();
    let mut ends = vec![Walked::More; shards];
    for (shard, end) in ends.iter_mut().enumerate().take(shards - 1) {
        for _ in 0..1_000 {
            *end = rig.keyspace.walk_snapshot(&mut rig.seat, shard, 8);
        }
    }
    // The hash is in another shard than the last one, whose entries are left.
    let waiting = ends.iter().filter(|end| **end == Walked::Waits).count();
    assert_eq!(waiting, 1, "{ends:?}");
    while ends.iter().any(|end| *end != Walked::Done) {
        for (shard, end) in ends.iter_mut().enumerate() {
            *end = rig.keyspace.walk_snapshot(&mut rig.seat, shard, 8);
        }
    }
    assert_eq!(writer.join().expect("it ends").expect("written").keys, 701);
}

/// The rest of its members was walked over on the spot: hundreds of milliseconds, of millions.
#[test]
fn a_large_collection_that_moves_is_shown_by_and_by_at_its_new_place() {
    for end in [
        "EXISTS key",
        "DEL last",
        "SELECT 1; FLUSHDB",
        "SELECT 1; EXPIRE last 0",
    ] {
        let mut rig = Rig::new();
        for i in 0..2_000 {
            rig.run(&format!("HSET hash field:{i} value:{i}"));
            rig.run(&format!("ZADD zset {i} member:{i}"));
        }
        rig.run("SET key v");
        let mut expected = Rig::new();
        expected.load(&rig.save()).expect("it is whole");
        let limits = SnapshotLimits::of(0);
        let snapshot = (rig.keyspace).begin_snapshot(&rig.seat.exclusive(), rig.time, limits);
        let course = snapshot.course();
        let walk = |rig: &mut Rig| {
            for shard in 0..rig.keyspace.shards() {
                rig.keyspace.walk_snapshot(&mut rig.seat, shard, 8);
            }
        };
        let moves = "RENAME hash other; HSET other field:1 changed field:new v; RENAME zset other-zset; \
                     MOVE other 1; SELECT 1; HDEL other field:2; RENAME other last; RENAMENX last key; SELECT 0; \
                     RENAME other-zset hash; ZADD hash 7 member:1; RENAME hash zset";
        for line in moves.split("; ").chain(end.split("; ")) {
            walk(&mut rig);
            let held = course.held_bytes();
            let reply = rig.run(line);
            assert!(!reply.starts_with('-'), "{line}: {reply}");
            let now = course.held_bytes();
            assert!(
                now < held + 20_000,
                "{line} has copied {} bytes",
                now - held
            );
            walk(&mut rig);
        }
        let write = move || {
            let mut file = Vec::new();
            let saved = snapshot.write(&[], std::iter::empty(), &mut file);
            saved.map(|_| file)
        };
        let writer = std::thread::spawn(write);
        while !course.is_shown() {
            walk(&mut rig);
        }
        let file = writer.join().expect("it ends").expect("written");
        let mut loaded = Rig::new();
        loaded.load(&file).expect("it is whole");
        assert_eq!(loaded.digests(), expected.digests(), "{end}");
    }
}
