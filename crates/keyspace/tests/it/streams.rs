//! Streams: entries, groups, events; and beside a stock server of version 8.2.

use std::sync::atomic::Ordering::Relaxed;

use tidewheel_engines::{Engine, Server};
use tidewheel_oracle::Dice;
use tidewheel_resp::{Protocol, Reply};

use crate::common::{Rig, WALL_START_MS, show};

#[test]
fn entries_are_added_read_and_deleted() {
    let mut rig = Rig::new();
    rig.script(
        "XADD s 0-* a 1 -> '0-1'
         XADD s 5-1 a 1 b 2 -> '5-1'
         XADD s 5-* a text -> '5-2'
         XADD s 5-2 a 1 -> -ERR The ID specified in XADD is equal or smaller than the target stream top item
         XADD s 0-0 a 1 -> -ERR The ID specified in XADD must be greater than 0-0
         XADD s 6 a -> -ERR wrong number of arguments for 'xadd' command
         XADD none NOMKSTREAM 6 a 1 -> nil
         XLEN s -> :3
         XRANGE s - + -> [['0-1' ['a' '1']] ['5-1' ['a' '1' 'b' '2']] ['5-2' ['a' 'text']]]
         XRANGE s (5-1 + -> [['5-2' ['a' 'text']]]
         XREVRANGE s + - COUNT 1 -> [['5-2' ['a' 'text']]]
         XRANGE s - + COUNT 0 -> nil
         XRANGE none - + COUNT 0 -> []
         XREAD COUNT 1 STREAMS s none s 0 0 5-1 -> [['s' [['0-1' ['a' '1']]]] ['s' [['5-2' ['a' 'text']]]]]
         XREAD STREAMS s $ -> nil
         XREAD STREAMS s + -> [['s' [['5-2' ['a' 'text']]]]]
         XDEL s 5-1 5-1 9 -> :1
         XTRIM s MAXLEN 1 -> :1
         XRANGE s - + -> [['5-2' ['a' 'text']]]
         XDEL s 5-2 -> :1
         EXISTS s -> :1
         TYPE s -> stream
         OBJECT ENCODING s -> 'stream'
         XADD s 5-2 a 1 -> -ERR The ID specified in XADD is equal or smaller than the target stream top item
         XSETID s 18446744073709551615-18446744073709551615 -> OK
         XADD s * a 1 -> -ERR The stream has exhausted the last possible ID, unable to add more items
         SET string 1 -> OK
         XADD string * a 1 -> -WRONGTYPE Operation against a key holding the wrong kind of value",
    );
    assert_eq!(rig.run("XADD t * a 1"), format!("'{WALL_START_MS}-0'"));
    assert_eq!(rig.run("XADD t * a 1"), format!("'{WALL_START_MS}-1'"));
    rig.pass(5);
    assert_eq!(
        rig.run("XADD t * a 1"),
        format!("'{}-0'", WALL_START_MS + 5)
    );
}

#[test]
fn a_group_gives_each_entry_to_one_consumer() {
    let mut rig = Rig::new();
    rig.script(
        "XGROUP CREATE s g $ MKSTREAM -> OK
         XADD s 1 a 1 -> '1-0'
         XADD s 2 a 2 -> '2-0'
         XREADGROUP GROUP g one COUNT 1 STREAMS s > -> [['s' [['1-0' ['a' '1']]]]]
         XREADGROUP GROUP g two STREAMS s > -> [['s' [['2-0' ['a' '2']]]]]
         XREADGROUP GROUP g two STREAMS s > -> nil
         pass 7
         XPENDING s g -> [:2 '1-0' '2-0' [['one' '1'] ['two' '1']]]
         XPENDING s g - + 9 -> [['1-0' 'one' :7 :1] ['2-0' 'two' :7 :1]]
         XDEL s 1 -> :1
         XREADGROUP GROUP g one STREAMS s 0 -> [['s' [['1-0' nil]]]]
         XAUTOCLAIM s g two 0 0 -> ['0-0' [['2-0' ['a' '2']]] ['1-0']]
         XACK s g 2 2 -> :1
         XINFO CONSUMERS s g -> [['name' 'one' 'pending' :0 'idle' :0 'inactive' :7] ['name' 'two' 'pending' :0 'idle' :0 'inactive' :0]]
         XGROUP DELCONSUMER s g one -> :0
         XGROUP DESTROY s g -> :1
         EXISTS s -> :1",
    );
    rig.protocol = Protocol::Resp3;
    rig.script("XREAD STREAMS s 0 -> {'s': [['2-0' ['a' '2']]]}");
}

#[test]
fn a_stream_tells_its_events() {
    let mut rig = Rig::new();
    rig.notify("KEA");
    let mut told = |line: &str| {
        rig.run(line);
        rig.events().join(" ")
    };
    assert_eq!(told("XADD s 1 a 1"), "0:xadd:s");
    assert_eq!(told("XADD s MAXLEN 1 2 a 1"), "0:xadd:s 0:xtrim:s");
    assert_eq!(told("XADD s MAXLEN 9 3 a 1"), "0:xadd:s");
    assert_eq!(told("XGROUP CREATE s g 0"), "0:xgroup-create:s");
    let read = "XREADGROUP GROUP g c STREAMS s >";
    assert_eq!(told(read), "0:xgroup-createconsumer:s");
    assert_eq!(told("XCLAIM s g c 0 2"), "");
    assert_eq!(told("XCLAIM s g d 0 2"), "0:xgroup-createconsumer:s");
    assert_eq!(told("XACK s g 2"), "");
    assert_eq!(told("XDEL s 2 3"), "0:xdel:s");
    assert_eq!(told("XDEL s 2 3"), "");
    assert_eq!(told("XSETID s 9"), "0:xsetid:s");
    assert_eq!(told("XGROUP SETID s g 0"), "0:xgroup-setid:s");
    assert_eq!(told("XGROUP DELCONSUMER s g c"), "0:xgroup-delconsumer:s");
    assert_eq!(told("XGROUP DELCONSUMER s g c"), "");
    assert_eq!(told("XGROUP DESTROY s g"), "0:xgroup-destroy:s");
}

#[test]
fn a_stream_is_copied_moved_and_renamed_with_its_deadline_and_its_memory_goes_back() {
    let mut rig = Rig::new();
    let empty = rig.keyspace.used_memory();
    for (name, entries) in [("small", 5), ("large", 3_000)] {
        rig.run(&format!("XGROUP CREATE {name} g 0 MKSTREAM"));
        for i in 1..=entries {
            rig.run(&format!("XADD {name} {i} field value:{i}"));
        }
        rig.run(&format!("XREADGROUP GROUP g c COUNT 100 STREAMS {name} >"));
        rig.run(&format!("PEXPIRE {name} 1000"));
        rig.keyspace.assert_counted();
        rig.script(&format!(
            "COPY {name} copy -> :1
             RENAME {name} other -> OK
             MOVE other 1 -> :1
             XADD copy 9999 a 1 -> '9999-0'
             PTTL copy -> :1000
             SELECT 1 -> OK
             XLEN other -> :{entries}
             XTRIM other MAXLEN 2 -> :{}
             SELECT 0 -> OK
             XDEL copy 1 2 -> :2",
            entries - 2
        ));
        rig.keyspace.assert_counted();
        rig.pass(1000);
        assert_eq!(rig.expire_all(), 2);
        for shard in 0..rig.keyspace.shards() {
            while rig.keyspace.maintain(&mut rig.seat, shard, 100) {}
        }
        rig.keyspace.assert_counted();
        assert!(rig.keyspace.used_memory() <= empty + 4096, "{name}");
    }
}

#[test]
fn equal_streams_have_equal_digests() {
    let mut rig = Rig::new();
    rig.session.may_debug = true;
    rig.script("XADD s 1 a 1 -> '1-0'\nCOPY s t -> :1");
    let digest = |rig: &mut Rig| rig.run("DEBUG DIGEST-VALUE s t");
    let equal = |text: String| {
        let (one, other) = text.trim_matches(['[', ']']).split_once(' ').expect("two");
        one == other
    };
    let both = digest(&mut rig);
    assert!(equal(both.clone()), "{both}");
    for line in [
        "XSETID ? 9",
        "XADD ? 99 a 1",
        "XGROUP CREATE ? g 0",
        "XDEL ? 99",
    ] {
        rig.run(&line.replace('?', "s"));
        assert!(!equal(digest(&mut rig)), "{line}");
        rig.run(&line.replace('?', "t"));
        assert!(equal(digest(&mut rig)), "{line}");
    }
}

/// Draws a call about few ids, streams, groups and consumers.
fn line(dice: &mut Dice) -> String {
    let key = *dice.pick(&["a", "a", "b", "c", "string"]);
    let other = *dice.pick(&["a", "b", "none"]);
    let group = *dice.pick(&["g", "g", "h", "i"]);
    let consumer = *dice.pick(&["x", "y", "z"]);
    let id = |dice: &mut Dice| match dice.below(40) {
        0 => "-".to_owned(),
        1 => "+".to_owned(),
        2 => "$".to_owned(),
        3 => ">".to_owned(),
        4 => "x".to_owned(),
        5 => "0".to_owned(),
        6 => format!("{}", dice.below(30)),
        7 => "18446744073709551615-18446744073709551615".to_owned(),
        8 => format!("({}", dice.below(30)),
        _ => format!("{}-{}", dice.below(30), dice.below(2)),
    };
    let (one, two, three) = (id(dice), id(dice), id(dice));
    let n = dice.below(8) as i64 - 1;
    let references = *dice.pick(&["", "", "KEEPREF", "DELREF", "ACKED"]);
    let trims = ["MAXLEN", "MAXLEN =", "MINID"];
    let trim = match dice.below(6) {
        0 => format!("MAXLEN ~ {n}"),
        1 => format!("MINID ~ {one}"),
        2 => format!("MAXLEN ~ {n} LIMIT {}", dice.below(12)),
        _ => {
            let how = *dice.pick(&trims);
            let threshold = if how == "MINID" {
                one.clone()
            } else {
                n.to_string()
            };
            format!("{how} {threshold} {references}")
        }
    };
    let idle = *dice.pick(&["0", "0", "1000000", "-1", "x"]);
    let count = *dice.pick(&["", "", "COUNT 1", "COUNT 3", "COUNT 0", "COUNT -1"]);
    let just = *dice.pick(&["", "JUSTID"]);
    match dice.below(46) {
        0..8 => format!("XADD {key} {one} f {two}"),
        8 => format!("XADD {key} {}-* f 1 g {one}", dice.below(31)),
        9 => format!("XADD {key} NOMKSTREAM {trim} {one} h {two}"),
        10 => format!("XADD {key} {trim} 3{} f 1", dice.below(10)),
        11 => format!("XTRIM {key} {trim}"),
        12 => format!("XTRIM {key} {trim} {trim}"),
        13 => format!("XDEL {key} {one} {two}"),
        14 => format!("XLEN {key}"),
        15 => format!("XRANGE {key} {one} {two} {count}"),
        16 => format!("XREVRANGE {key} {one} {two} {count}"),
        17 => format!("XRANGE {key} - +"),
        18 => format!("XREVRANGE {key} + -"),
        19 => format!("XREAD {count} STREAMS {key} {one}"),
        20 => format!("XREAD {count} STREAMS {key} {other} {one} {two}"),
        21 => format!("XGROUP CREATE {key} {group} {one}"),
        22 => format!("XGROUP CREATE {key} {group} {one} MKSTREAM ENTRIESREAD {n}"),
        23 => format!("XGROUP SETID {key} {group} {one}"),
        24 => format!("XGROUP SETID {key} {group} {one} ENTRIESREAD {n}"),
        25 if n < 1 => format!("XGROUP DESTROY {key} {group}"),
        26 => format!("XGROUP CREATECONSUMER {key} {group} {consumer}"),
        27 if n < 3 => format!("XGROUP DELCONSUMER {key} {group} {consumer}"),
        28..31 => format!("XREADGROUP GROUP {group} {consumer} {count} STREAMS {key} >"),
        31 => format!("XREADGROUP GROUP {group} {consumer} NOACK COUNT 1 STREAMS {key} >"),
        32 => format!("XREADGROUP GROUP {group} {consumer} {count} STREAMS {key} {one}"),
        33 => format!("XREADGROUP GROUP {group} {consumer} STREAMS {key} {key} > >"),
        34 => format!("XACK {key} {group} {one} {two}"),
        35 => format!("XPENDING {key} {group}"),
        36 => format!("XPENDING {key} {group} - + 10"),
        37 => format!("XPENDING {key} {group} IDLE {idle} {one} {two} {n} {consumer}"),
        38 => {
            let more = *dice.pick(&[
                "FORCE",
                "IDLE 5000000",
                "TIME 5",
                "RETRYCOUNT 3",
                "LASTID 7-1",
                "LASTID",
                "RETRYCOUNT -2",
            ]);
            format!("XCLAIM {key} {group} {consumer} {idle} {one} {two} {just} {more}")
        }
        39 => format!("XCLAIM {key} {group} {consumer} {idle} {one}"),
        40 => format!("XAUTOCLAIM {key} {group} {consumer} {idle} {one} {count} {just}"),
        41 => format!("XDELEX {key} {references} IDS 3 {one} {two} {three}"),
        42 => format!("XACKDEL {key} {group} {references} IDS 2 {one} {two}"),
        43 => format!("XSETID {key} {one} ENTRIESADDED {}", dice.below(20)),
        44 => format!("XSETID {key} {one} MAXDELETEDID {two}"),
        45 if n == 0 => format!("DEL {key}"),
        _ => format!("XINFO STREAM {key} FULL"),
    }
}

/// A reply without what depends on the time or on an index of the other server.
fn timeless(reply: Reply, call: &str) -> Reply {
    const PAST: i64 = 1_000_000_000_000;
    match reply {
        Reply::Integer(ms) if ms > PAST => Reply::Integer(PAST),
        Reply::Array(mut items) => {
            for at in 1..items.len() {
                let named = |name: &str| matches!(&items[at - 1], Reply::Bulk(text) if text == name.as_bytes());
                let is_time = ["idle", "inactive"].iter().any(|name| named(name));
                if named("radix-tree-nodes") {
                    items[at] = Reply::Null;
                } else if let Reply::Integer(ms) = items[at]
                    && is_time
                {
                    items[at] = Reply::Integer(ms.min(0));
                }
            }
            if let [
                Reply::Bulk(_),
                Reply::Bulk(_),
                Reply::Integer(idle),
                Reply::Integer(_),
            ] = &mut items[..]
                && call.starts_with("XPENDING")
            {
                *idle = if *idle > 1_000_000 { 1 } else { 0 };
            }
            Reply::Array(items.into_iter().map(|item| timeless(item, call)).collect())
        }
        other => other,
    }
}

/// What each call answers, and all that is known of the streams afterwards.
#[test]
fn streams_are_as_there() {
    let Some(engine) = Engine::redis_8() else {
        return;
    };
    let server = Server::start(&engine, &["--stream-node-max-entries", "4"]);
    let mut redis = server.client();
    let mut rig = Rig::new();
    rig.keyspace
        .rules()
        .packing
        .stream_entries
        .store(4, Relaxed);
    let seed = std::env::var("SEED").map_or(77, |seed| seed.parse().expect("a number"));
    let mut dice = Dice::new(seed);
    let mut before = Vec::new();
    let mut ask = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let theirs = redis.call(&words).expect("a reply");
        let bytes: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        let ours = rig.words(&bytes);
        before.push(line.to_owned());
        let [ours, theirs] = [ours, theirs].map(|reply| show(&timeless(reply, line)));
        assert_eq!(
            ours,
            theirs,
            "{line}\nafter {:#?}",
            &before[before.len().saturating_sub(30)..]
        );
    };
    ask("FLUSHALL");
    ask("SET string 1");
    for _ in 0..20_000 {
        let line = line(&mut dice);
        // No approximate trim that looks at references removes anything there.
        if line.contains('~') && ["DELREF", "ACKED"].iter().any(|word| line.contains(word)) {
            continue;
        }
        ask(&line);
        let key = line
            .split_whitespace()
            .find(|word| ["a", "b", "c"].contains(word));
        if let Some(key) = key {
            ask(&format!("XINFO STREAM {key} FULL"));
            ask(&format!("XINFO GROUPS {key}"));
        }
    }
}
