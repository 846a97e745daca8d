//! Sets: members, forms, and random ones.

use std::collections::BTreeSet;

use tidewheel_keyspace::resolve;
use tidewheel_resp::{Args, Protocol, Reply, Writer};

use crate::common::{Rig, show};

#[test]
fn members_are_added_asked_for_moved_and_removed() {
    let mut rig = Rig::new();
    rig.notify("KEA");
    rig.script(
        "SADD s 1 2 3 2 -> :3
         SADD s 3 4 -> :1
         SCARD s -> :4
         OBJECT ENCODING s -> 'intset'
         SISMEMBER s 4 -> :1
         SMISMEMBER s 1 9 -> [:1 :0]
         SADD s tea -> :1
         OBJECT ENCODING s -> 'listpack'
         SMOVE s t tea -> :1
         SMOVE s t nobody -> :0
         SMEMBERS t -> ['tea']
         SREM s 1 2 3 9 -> :3
         SPOP s -> '4'
         EXISTS s -> :0
         SPOP s -> nil
         SPOP s 3 -> []
         SRANDMEMBER t -> 'tea'
         SRANDMEMBER t 5 -> ['tea']
         SRANDMEMBER t -2 -> ['tea' 'tea']
         SRANDMEMBER s -> nil
         SPEXPIRE t 10 MEMBERS 2 tea x -> [:1 :-2]
         SPTTL t MEMBERS 1 tea -> [:10]
         TYPE t -> set
         pass 10
         EXISTS t -> :0
         SET str 1 -> OK
         SADD str a -> -WRONGTYPE Operation against a key holding the wrong kind of value
         SPOP t -1 -> -ERR value is out of range, must be positive",
    );
    let events = rig.events();
    let expected = [
        "0:sadd:s", "0:sadd:s", "0:sadd:s", "0:srem:s", "0:sadd:t", "0:srem:s", "0:spop:s",
        "0:del:s",
    ];
    assert_eq!(events[..expected.len()], expected);
    assert_eq!(
        events[expected.len()..expected.len() + 3],
        ["0:sexpire:t", "0:sexpired:t", "0:del:t"]
    );
}

#[test]
fn every_member_is_popped_once_whatever_the_form() {
    for members in [3_u32, 100, 3_000] {
        let mut rig = Rig::new();
        for i in 0..members {
            rig.run(&format!("SADD s member:{i}"));
        }
        let mut seen = BTreeSet::new();
        for _ in 0..members {
            assert!(seen.insert(rig.run("SPOP s")));
        }
        rig.script("EXISTS s -> :0");
    }
}

#[test]
fn a_reply_with_repetitions_is_bounded() {
    let mut rig = Rig::new();
    rig.script(
        "SADD s a -> :1
         HSET h f v -> :1
         ZADD z 1 m -> :1
         SRANDMEMBER s -4611686018427387904 -> -ERR value is out of range
         HRANDFIELD h -4611686018427387903 -> -ERR value is out of range
         HRANDFIELD h -16777217 WITHVALUES -> -ERR value is out of range
         ZRANDMEMBER z -16777217 -> -ERR value is out of range
         SRANDMEMBER s 4611686018427387904 -> ['a']
         HRANDFIELD h 4611686018427387903 -> ['f']
         ZRANDMEMBER z 9223372036854775807 -> ['m']",
    );
}

#[test]
fn a_reply_with_repetitions_of_long_members_is_cut_off() {
    let mut rig = Rig::new();
    rig.words(&[b"SADD", b"s", &vec![b'x'; 4 << 20]]);
    for (count, is_over) in [("-3", false), ("-1000", true)] {
        let words: [&[u8]; 3] = [b"SRANDMEMBER", b"s", count.as_bytes()];
        let args = Args::from_slices(&words);
        let mut out = Writer::new(Protocol::Resp2);
        let row = resolve(args).expect("a command");
        let (seat, session, time) = (&mut rig.seat, &mut rig.session, rig.time);
        rig.keyspace
            .execute(seat, row, session, time, args, &mut out);
        assert_eq!(out.is_over(), is_over, "{} bytes", out.len());
        assert!(out.len() < 300 << 20);
    }
}

/// A scan of all members, call by call.
fn scanned(rig: &mut Rig, call: impl Fn(&str) -> String) -> Vec<String> {
    let (mut cursor, mut seen) = ("0".to_owned(), Vec::new());
    loop {
        let line = call(&cursor);
        let words: Vec<&[u8]> = line.split_whitespace().map(str::as_bytes).collect();
        let Reply::Array(parts) = rig.words(&words) else {
            panic!("{line}");
        };
        let [Reply::Bulk(next), Reply::Array(members)] = &parts[..] else {
            panic!("{line}");
        };
        seen.extend(members.iter().map(show));
        cursor = String::from_utf8(next.clone()).expect("digits");
        if cursor == "0" {
            return seen;
        }
    }
}

#[test]
fn a_scan_of_a_set_or_a_hash_shows_each_member_once() {
    for members in [3_usize, 3_000] {
        let mut rig = Rig::new();
        for i in 0..members {
            rig.run(&format!("SADD s member:{i}"));
            rig.run(&format!("HSET h field:{i} {i}"));
        }
        let mut seen = scanned(&mut rig, |cursor| format!("SSCAN s {cursor} COUNT 7"));
        let unique: BTreeSet<_> = seen.drain(..).collect();
        assert_eq!(unique.len(), members);
        let pairs = scanned(&mut rig, |cursor| format!("HSCAN h {cursor}"));
        assert_eq!(pairs.len(), 2 * members);
        for pair in pairs.chunks(2) {
            assert_eq!(pair[0].replace("field:", ""), pair[1]);
        }
        let fields = scanned(&mut rig, |cursor| format!("HSCAN h {cursor} NOVALUES"));
        assert_eq!(fields.len(), members);
        let found = scanned(&mut rig, |cursor| format!("SSCAN s {cursor} MATCH *:2"));
        assert_eq!(found, ["'member:2'"]);
    }
}

#[test]
fn scans_are_refused_in_the_public_words() {
    let mut rig = Rig::new();
    rig.script(
        "SADD s a -> :1
         HSET h f v -> :1
         SSCAN s x -> -ERR invalid cursor
         HSCAN none x -> -ERR invalid cursor
         SSCAN none 0 -> ['0' []]
         SSCAN h 0 -> -WRONGTYPE Operation against a key holding the wrong kind of value
         HSCAN s 0 -> -WRONGTYPE Operation against a key holding the wrong kind of value
         SSCAN s 0 COUNT 0 -> -ERR syntax error
         SSCAN s 0 COUNT x -> -ERR value is not an integer or out of range
         SSCAN s 0 NOVALUES -> -ERR syntax error
         HSCAN h 0 COUNT 5 MATCH f* -> ['0' ['f' 'v']]
         HSCAN h 0 NOVALUES -> ['0' ['f']]",
    );
}

#[test]
fn sets_are_combined_and_results_are_stored() {
    let mut rig = Rig::new();
    rig.script(
        "SADD a 1 2 3 -> :3
         SADD b 2 3 x -> :3
         SADD c 3 -> :1
         SET str 1 -> OK",
    );
    rig.notify("KEA");
    rig.script(
        "SINTER a b c -> ['3']
         SINTER a b none -> []
         SINTER none str -> -WRONGTYPE Operation against a key holding the wrong kind of value
         SDIFF a b -> ['1']
         SDIFF a a -> []
         SDIFF none a -> []
         SUNION none c c -> ['3']
         SINTERCARD 2 a b -> :2
         SINTERCARD 2 a b LIMIT 1 -> :1
         SINTERCARD 2 a b LIMIT 0 -> :2
         SINTERSTORE a a b -> :2
         OBJECT ENCODING a -> 'intset'
         SUNIONSTORE str b c -> :3
         OBJECT ENCODING str -> 'listpack'
         SDIFFSTORE str str a -> :1
         SMEMBERS str -> ['x']
         SDIFFSTORE str none -> :0
         SDIFFSTORE str none -> :0
         EXISTS str -> :0",
    );
    let mut events = rig.events();
    events.retain(|event| !event.contains("keymiss"));
    let expected = [
        "0:sinterstore:a",
        "0:sunionstore:str",
        "0:sdiffstore:str",
        "0:del:str",
    ];
    assert_eq!(events, expected);
    rig.protocol = Protocol::Resp3;
    rig.script(
        "SINTER a c -> ~['3']
         SUNION none -> ~[]
         SDIFF a c -> ~['2']",
    );
}

#[test]
fn members_whose_deadline_is_reached_are_not_combined() {
    let mut rig = Rig::new();
    rig.script(
        "SADD a 1 2 -> :2
         SADD b 1 2 3 -> :3
         SPEXPIRE a 5 MEMBERS 1 1 -> [:1]
         SPEXPIRE b 9 MEMBERS 1 2 -> [:1]
         SUNIONSTORE d a b -> :3
         SPTTL d MEMBERS 1 1 -> [:-1]
         pass 5
         SINTER a b -> ['2']
         pass 4
         SINTER a b -> []
         SDIFFSTORE d b a -> :2",
    );
}

/// All shapes of the difference, and packed sets into which many looks are made.
#[test]
fn long_sets_are_combined_like_short_ones() {
    let mut rig = Rig::new();
    for i in 0..600 {
        rig.run(&format!("SADD large {i} m{i}"));
        rig.run(&format!("SADD packed {}", i % 100));
    }
    rig.script(
        "SADD one 5 -> :1
         SINTERCARD 2 packed large -> :100
         SINTERCARD 3 packed large packed -> :100
         SINTERCARD 2 large large LIMIT 50 -> :50
         SUNIONSTORE d packed large packed -> :1200
         SDIFFSTORE d large packed -> :1100
         SDIFFSTORE d large packed one one one -> :1100
         SDIFFSTORE d packed one one one one one -> :99
         SDIFFSTORE d packed large -> :0
         SDIFFSTORE d large large -> :0",
    );
}

#[test]
fn smove_looks_at_its_source_first() {
    Rig::new().script(
        "SET word w -> OK
         SADD s tea -> :1
         SMOVE missing word tea -> :0
         SMOVE s word tea -> -WRONGTYPE Operation against a key holding the wrong kind of value
         SMOVE word s tea -> -WRONGTYPE Operation against a key holding the wrong kind of value",
    );
}
