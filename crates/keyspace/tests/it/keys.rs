//! Commands on keys, databases and walks over them.

use std::collections::BTreeSet;

use crate::common::Rig;
use tidewheel_keyspace::Policy;
use tidewheel_resp::{Protocol, Reply};

#[test]
fn deleting_and_looking() {
    Rig::new().script(
        "
        MSET a 1 b 2 c 3 -> OK
        EXISTS a b nope a -> :3
        TOUCH a nope b -> :2
        TYPE a -> string
        TYPE nope -> none
        DEL a nope a -> :1
        UNLINK b c -> :2
        DBSIZE -> :0
        RANDOMKEY -> nil
        ",
    );
}

#[test]
fn renaming() {
    Rig::new().script(
        "
        RENAME nope x -> -ERR no such key
        RENAMENX nope x -> -ERR no such key
        SET a 1 PX 500 -> OK
        SET b 2 -> OK
        RENAMENX a b -> :0
        RENAME a b -> OK
        GET b -> '1'
        PTTL b -> :500
        EXISTS a -> :0
        RENAME b b -> OK
        RENAMENX b b -> :0
        RENAMENX b c -> :1
        PTTL c -> :500
        pass 500
        RENAME c d -> -ERR no such key
        ",
    );
}

#[test]
fn copying_and_moving() {
    Rig::new().script(
        "
        SET a 1 PX 500 -> OK
        COPY a b -> :1
        MGET a b -> ['1' '1']
        PTTL b -> :500
        COPY a b -> :0
        SET a 2 -> OK
        COPY a b REPLACE -> :1
        GET b -> '2'
        TTL b -> :-1
        COPY a a -> -ERR source and destination objects are the same
        COPY a a DB 3 -> :1
        COPY a a DB 16 -> -ERR DB index is out of range
        COPY a a DB x -> -ERR value is not an integer or out of range
        COPY a b BOGUS -> -ERR syntax error
        COPY a b DB -> -ERR syntax error
        COPY nope b -> :0
        SELECT 3 -> OK
        GET a -> '2'
        SELECT 0 -> OK
        MOVE a 3 -> :0
        MOVE b 3 -> :1
        EXISTS b -> :0
        MOVE nope 3 -> :0
        MOVE a 0 -> -ERR source and destination objects are the same
        MOVE a 16 -> -ERR DB index is out of range
        MOVE a -1 -> -ERR DB index is out of range
        MOVE a x -> -ERR value is not an integer or out of range
        SELECT 3 -> OK
        GET b -> '2'
        SET t v PX 100 -> OK
        MOVE t 4 -> :1
        SELECT 4 -> OK
        PTTL t -> :100
        pass 100
        EXISTS t -> :0
        ",
    );
}

#[test]
fn databases() {
    Rig::new().script(
        "
        SELECT 16 -> -ERR DB index is out of range
        SELECT -1 -> -ERR DB index is out of range
        SELECT x -> -ERR value is not an integer or out of range
        SELECT 3000000000 -> -ERR value is out of range, value must between -2147483648 and 2147483647
        SET k zero PX 100 -> OK
        SELECT 1 -> OK
        GET k -> nil
        SET k one -> OK
        SWAPDB 0 1 -> OK
        GET k -> 'zero'
        PTTL k -> :100
        SELECT 0 -> OK
        GET k -> 'one'
        SWAPDB 0 0 -> OK
        SWAPDB x 0 -> -ERR invalid first DB index
        SWAPDB 0 x -> -ERR invalid second DB index
        SWAPDB 0 16 -> -ERR DB index is out of range
        FLUSHDB BOGUS -> -ERR syntax error
        FLUSHDB ASYNC SYNC -> -ERR syntax error
        FLUSHDB -> OK
        DBSIZE -> :0
        SELECT 1 -> OK
        DBSIZE -> :1
        FLUSHALL ASYNC -> OK
        DBSIZE -> :0
        SET k v -> OK
        FLUSHALL SYNC -> OK
        EXISTS k -> :0
        ",
    );
}

#[test]
fn a_swapped_database_keeps_its_deadlines() {
    let mut rig = Rig::new();
    rig.notify("KEA");
    rig.run("SET k v PX 100");
    rig.run("SWAPDB 0 7");
    rig.events();
    rig.pass(100);
    assert_eq!(rig.expire_all(), 1);
    assert_eq!(rig.events(), ["7:expired:k"]);
}

fn names(reply: Reply) -> BTreeSet<String> {
    let Reply::Array(items) = reply else {
        panic!("{reply:?}")
    };
    let count = items.len();
    let set: BTreeSet<_> = items
        .into_iter()
        .map(|item| match item {
            Reply::Bulk(bytes) => String::from_utf8(bytes).expect("text"),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(set.len(), count, "no key twice");
    set
}

#[test]
fn keys_match_patterns_and_leave_out_the_dead() {
    let mut rig = Rig::new();
    for i in 0..1000 {
        rig.run(&format!("SET key:{i} v"));
    }
    rig.run("SET dying v PX 5");
    assert_eq!(names(rig.words(&[b"KEYS", b"*"])).len(), 1001);
    assert_eq!(names(rig.words(&[b"KEYS", b"key:1?"])).len(), 10);
    assert_eq!(names(rig.words(&[b"KEYS", b"key:99[0-4]"])).len(), 5);
    assert_eq!(names(rig.words(&[b"KEYS", b"nothing*"])).len(), 0);
    rig.pass(5);
    assert_eq!(names(rig.words(&[b"KEYS", b"d*"])).len(), 0);
}

fn scan_all(rig: &mut Rig, options: &str) -> BTreeSet<String> {
    let mut cursor = "0".to_owned();
    let mut found = BTreeSet::new();
    for _ in 0..100_000 {
        let line = format!("SCAN {cursor} {options}");
        let words: Vec<&[u8]> = line.split_whitespace().map(str::as_bytes).collect();
        let Reply::Array(mut parts) = rig.words(&words) else {
            panic!("an array")
        };
        let keys = names(parts.pop().expect("keys"));
        let Some(Reply::Bulk(next)) = parts.pop() else {
            panic!("a cursor")
        };
        for key in keys {
            assert!(found.insert(key), "no key twice while nothing changes");
        }
        cursor = String::from_utf8(next).expect("digits");
        if cursor == "0" {
            return found;
        }
    }
    panic!("SCAN does not end");
}

#[test]
fn scan_meets_every_key_once_and_removes_the_dead() {
    let mut rig = Rig::new();
    for i in 0..1000 {
        rig.run(&format!("SET key:{i} v"));
    }
    for count in [
        "",
        "COUNT 1",
        "COUNT 7",
        "COUNT 100000",
        "COUNT 9223372036854775807",
    ] {
        assert_eq!(scan_all(&mut rig, count).len(), 1000);
    }
    assert_eq!(scan_all(&mut rig, "MATCH key:1*").len(), 111);
    assert_eq!(scan_all(&mut rig, "TYPE string COUNT 50").len(), 1000);
    assert_eq!(scan_all(&mut rig, "TYPE hash").len(), 0);
    assert_eq!(scan_all(&mut rig, "MATCH * TYPE STRING").len(), 1000);
    rig.keyspace.set_active_expire(false);
    rig.notify("KEA");
    rig.run("SET dying v PX 5");
    rig.events();
    rig.pass(5);
    assert_eq!(rig.run("DBSIZE"), ":1001");
    assert_eq!(scan_all(&mut rig, "").len(), 1000);
    assert_eq!(rig.run("DBSIZE"), ":1000");
    assert_eq!(rig.events(), ["0:expired:dying"]);
}

#[test]
fn scan_refuses_what_the_protocol_refuses() {
    Rig::new().script(
        "
        SCAN x -> -ERR invalid cursor
        SCAN -1 -> -ERR invalid cursor
        SCAN 99999999999999999999 -> -ERR invalid cursor
        SCAN 18446744073709551615 -> ['0' []]
        SCAN 0 COUNT 0 -> -ERR syntax error
        SCAN 0 COUNT x -> -ERR value is not an integer or out of range
        SCAN 0 COUNT -> -ERR syntax error
        SCAN 0 BOGUS 1 -> -ERR syntax error
        SCAN 0 -> ['0' []]
        ",
    );
}

#[test]
fn keys_present_throughout_are_met_while_others_come_and_go() {
    let mut rig = Rig::new();
    for i in 0..500 {
        rig.run(&format!("SET stay:{i} v"));
    }
    let mut cursor = "0".to_owned();
    let mut met = BTreeSet::new();
    for round in 0.. {
        let words: Vec<Vec<u8>> = ["SCAN", &cursor, "COUNT", "20"].map(|w| w.into()).into();
        let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        let Reply::Array(mut parts) = rig.words(&words) else {
            panic!("an array")
        };
        met.extend(names(parts.pop().expect("keys")));
        let Some(Reply::Bulk(next)) = parts.pop() else {
            panic!("a cursor")
        };
        cursor = String::from_utf8(next).expect("digits");
        if cursor == "0" {
            break;
        }
        for i in 0..50 {
            rig.run(&format!("SET come:{round}:{i} v"));
            if round > 0 {
                rig.run(&format!("DEL come:{}:{i}", round - 1));
            }
        }
    }
    assert_eq!(
        met.iter().filter(|key| key.starts_with("stay:")).count(),
        500
    );
}

#[test]
fn random_keys_are_spread_and_never_dead() {
    let mut rig = Rig::new();
    for i in 0..20 {
        rig.run(&format!("SET key:{i} v"));
        rig.run(&format!("SET dying:{i} v PX 5"));
    }
    rig.keyspace.set_active_expire(false);
    rig.pass(5);
    let mut seen = BTreeSet::new();
    for _ in 0..2000 {
        let key = rig.run("RANDOMKEY");
        assert!(key.starts_with("'key:"), "{key}");
        seen.insert(key);
    }
    assert_eq!(seen.len(), 20, "{seen:?}");
}

#[test]
fn idle_time_and_frequency_follow_the_policy() {
    let mut rig = Rig::new();
    rig.script(
        "
        SET k v -> OK
        OBJECT IDLETIME k -> :0
        pass 10000
        OBJECT IDLETIME k -> :10
        EXISTS k -> :1
        TTL k -> :-1
        TYPE k -> string
        OBJECT IDLETIME k -> :10
        GET k -> 'v'
        OBJECT IDLETIME k -> :0
        pass 10000
        TOUCH k -> :1
        OBJECT IDLETIME k -> :0
        OBJECT IDLETIME nope -> nil
        OBJECT FREQ nope -> nil
        ",
    );
    assert!(
        rig.run("OBJECT FREQ k")
            .starts_with("-ERR An LFU maxmemory policy is not selected")
    );
    rig.session.no_touch = true;
    rig.script("pass 10000\nGET k -> 'v'\nOBJECT IDLETIME k -> :10");
    // TOUCH is there to touch, and does so whatever else leaves no trace.
    rig.script("TOUCH k -> :1\nOBJECT IDLETIME k -> :0");
    rig.session.no_touch = false;
    rig.keyspace.rules().set_policy(Policy::AllKeysLfu);
    rig.script("SET f v -> OK\nOBJECT FREQ f -> :5");
    assert!(
        rig.run("OBJECT IDLETIME f")
            .starts_with("-ERR An LFU maxmemory policy is selected")
    );
    for _ in 0..500 {
        rig.run("GET f");
    }
    let Reply::Integer(frequency) = rig.words(&[b"OBJECT", b"FREQ", b"f"]) else {
        panic!()
    };
    assert!((7..60).contains(&frequency), "{frequency}");
}

#[test]
fn memory_usage_grows_with_the_value() {
    let mut rig = Rig::new();
    rig.run("SET small v");
    rig.words(&[b"SET", b"large", &vec![0; 1 << 20]]);
    let usage = |rig: &mut Rig, key: &str| match rig.words(&[b"MEMORY", b"USAGE", key.as_bytes()]) {
        Reply::Integer(bytes) => bytes,
        other => panic!("{other:?}"),
    };
    assert!((6..100).contains(&usage(&mut rig, "small")));
    assert!((1 << 20..(1 << 20) + 200).contains(&usage(&mut rig, "large")));
    rig.script(
        "
        MEMORY USAGE nope -> nil
        MEMORY USAGE small SAMPLES -> -ERR syntax error
        MEMORY USAGE small SAMPLES -1 -> -ERR syntax error
        MEMORY USAGE nope SAMPLES 0 -> nil
        MEMORY BOGUS -> -ERR unknown subcommand 'BOGUS'. Try MEMORY HELP.
        OBJECT -> -ERR wrong number of arguments for 'object' command
        OBJECT ENCODING -> -ERR wrong number of arguments for 'object|encoding' command
        ",
    );
}

#[test]
fn unknown_commands_quote_their_arguments() {
    Rig::new().script(
        "
        CLUSTER NODES -> -ERR This instance has cluster support disabled
        readonly -> -ERR This instance has cluster support disabled
        FOO -> -ERR unknown command 'FOO', with args beginning with:
        FOO bar baz -> -ERR unknown command 'FOO', with args beginning with: 'bar' 'baz'
        PING -> -ERR this command is not available here
        ",
    );
    let mut rig = Rig::new();
    let long = "y".repeat(300);
    let reply = rig.run(&format!("{long} {long} more"));
    let quoted = "y".repeat(128);
    let expected =
        format!("-ERR unknown command '{quoted}', with args beginning with: '{quoted}' ");
    assert_eq!(reply, expected);
}

#[test]
fn command_describes_itself() {
    let mut rig = Rig::new();
    rig.script(
        "
        COMMAND GETKEYS SET k v -> ['k']
        COMMAND GETKEYS MSET a 1 b 2 -> ['a' 'b']
        COMMAND GETKEYS OBJECT ENCODING k -> ['k']
        COMMAND GETKEYS MEMORY USAGE k -> ['k']
        COMMAND GETKEYS LCS a b IDX -> ['a' 'b']
        COMMAND GETKEYSANDFLAGS RENAME a b -> [['a' [RW access delete]] ['b' [OW update]]]
        COMMAND GETKEYSANDFLAGS SET a b -> [['a' [OW update]]]
        COMMAND GETKEYSANDFLAGS SET a get PX get -> [['a' [RW access update]]]
        COMMAND GETKEYSANDFLAGS SET a b EX 5 get -> [['a' [RW access update]]]
        COMMAND GETKEYSANDFLAGS SORT a BY x STORE b -> [['a' [RO access]] ['b' [OW update]]]
        COMMAND GETKEYSANDFLAGS MGET a b -> [['a' [RO access]] ['b' [RO access]]]
        COMMAND GETKEYS ZUNIONSTORE d 2 a b -> ['d' 'a' 'b']
        COMMAND GETKEYS ZUNIONSTORE d 0 a -> -ERR Invalid arguments specified for command
        COMMAND GETKEYS ZUNIONSTORE d 5 a -> -ERR Invalid arguments specified for command
        COMMAND GETKEYS SINTERCARD many a -> -ERR Invalid arguments specified for command
        COMMAND GETKEYS PING -> -ERR The command has no key arguments
        COMMAND GETKEYS NOPE x -> -ERR Invalid command specified
        COMMAND GETKEYS SET k -> -ERR Invalid number of arguments specified for command
        COMMAND INFO nope -> [nil]
        COMMAND LIST FILTERBY PATTERN expiretim* -> ['expiretime']
        COMMAND LIST FILTERBY PATTERN EXPIRETIM? -> ['expiretime']
        COMMAND LIST FILTERBY MODULE x -> []
        COMMAND LIST BOGUS -> -ERR syntax error
        COMMAND BOGUS -> -ERR unknown subcommand 'BOGUS'. Try COMMAND HELP.
        ",
    );
    let Reply::Integer(count) = rig.words(&[b"COMMAND", b"COUNT"]) else {
        panic!()
    };
    let Reply::Array(all) = rig.words(&[b"COMMAND"]) else {
        panic!()
    };
    assert_eq!(all.len(), count as usize);
    assert_eq!(
        rig.run("COMMAND INFO get"),
        "[['get' :2 [readonly fast] :1 :1 :1 [@read @string @fast] [] \
         [['flags' [RO access] 'begin_search' ['type' 'index' 'spec' ['index' :1]] \
         'find_keys' ['type' 'range' 'spec' ['lastkey' :0 'keystep' :1 'limit' :0]]]] []]]"
    );
    assert!(
        rig.run("COMMAND INFO client|id")
            .starts_with("[['client|id' :2 ")
    );
    rig.protocol = Protocol::Resp3;
    assert_eq!(
        rig.run("COMMAND DOCS getdel nope"),
        "{'getdel': {'summary': 'Returns the string value of a key after deleting the key.', \
         'since': '6.2.0', 'group': 'string', 'complexity': 'O(1)', 'arguments': \
         [{'name': 'key', 'type': 'key', 'display_text': 'key', 'key_spec_index': :0}]}}"
    );
    let Reply::Map(docs) = rig.words(&[b"COMMAND", b"DOCS"]) else {
        panic!()
    };
    assert_eq!(docs.len(), count as usize);
    let Reply::Array(lines) = rig.words(&[b"OBJECT", b"HELP"]) else {
        panic!()
    };
    assert_eq!(
        lines[0],
        Reply::Simple("OBJECT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:".into())
    );
    assert!(lines.contains(&Reply::Simple("ENCODING <key>".into())));
}

#[test]
fn changes_are_counted_and_what_changes_nothing_is_not() {
    let mut rig = Rig::new();
    let mut count = 0;
    for (line, changes) in [
        ("SET a 1", 1),
        ("GET a", 0),
        ("INCR a", 1),
        ("SETBIT bits 0 0", 1),
        ("SETBIT bits 0 0", 0),
        ("SETBIT bits 0 1", 1),
        ("EXPIRE a 100", 1),
        ("EXPIRE a 200 LT", 0),
        ("SADD s x y", 1),
        ("SADD s x", 0),
        ("SREM s x y", 1),
        ("MSET b 1 c 2", 2),
        ("DEL a b nobody", 2),
        ("HSET h f v", 1),
        ("HPEXPIRE h 5 FIELDS 1 f", 1),
        ("FLUSHALL", 3),
    ] {
        rig.run(line);
        count += changes;
        assert_eq!(rig.keyspace.stats(rig.time).changes, count, "{line}");
    }
}
