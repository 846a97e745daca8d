//! Lists: elements, forms, events; and beside a stock redis-server.

use crate::common::Rig;
use crate::redis::Redis;
use tidewheel_oracle::Dice;

#[test]
fn elements_are_pushed_read_and_popped() {
    let mut rig = Rig::new();
    rig.script(
        "RPUSH l a b c -> :3
         LPUSH l y x -> :5
         LRANGE l 0 -1 -> ['x' 'y' 'a' 'b' 'c']
         LPUSHX none a -> :0
         RPUSHX l d -> :6
         LLEN l -> :6
         LINDEX l -1 -> 'd'
         LINDEX l 6 -> nil
         LINDEX none text -> nil
         LINDEX l text -> -ERR value is not an integer or out of range
         LPOP l -> 'x'
         RPOP l 2 -> ['d' 'c']
         LPOP l 0 -> []
         LPOP none 0 -> nil
         LPOP l -1 -> -ERR value is out of range, must be positive
         LPOP l 1 2 -> -ERR wrong number of arguments for 'lpop' command
         LSET l 0 z -> OK
         LSET l 9 z -> -ERR index out of range
         LSET none 0 z -> -ERR no such key
         LINSERT l BEFORE a m -> :4
         LINSERT l AFTER none m -> :-1
         LINSERT none AFTER a m -> :0
         LINSERT l beside a m -> -ERR syntax error
         LRANGE l 0 -1 -> ['z' 'm' 'a' 'b']
         LTRIM l 1 -1 -> OK
         LREM l 0 a -> :1
         LRANGE l -100 100 -> ['m' 'b']
         LRANGE l 5 9 -> []
         TYPE l -> list
         LMOVE l o LEFT RIGHT -> 'm'
         RPOPLPUSH l o -> 'b'
         EXISTS l -> :0
         LRANGE o 0 -1 -> ['b' 'm']
         LMOVE o o LEFT RIGHT -> 'b'
         LMOVE o o LEFT LEFT -> 'm'
         LRANGE o 0 -1 -> ['m' 'b']
         LMOVE none o LEFT RIGHT -> nil
         LMPOP 2 none o LEFT COUNT 5 -> ['o' ['m' 'b']]
         LMPOP 2 none o LEFT COUNT 5 -> nil
         SET s 1 -> OK
         LPUSH s a -> -WRONGTYPE Operation against a key holding the wrong kind of value
         LRANGE s 0 1 -> -WRONGTYPE Operation against a key holding the wrong kind of value
         RPUSH l a -> :1
         LMOVE l s LEFT LEFT -> -WRONGTYPE Operation against a key holding the wrong kind of value
         LMPOP 2 s l LEFT -> -WRONGTYPE Operation against a key holding the wrong kind of value
         GET l -> -WRONGTYPE Operation against a key holding the wrong kind of value",
    );
}

#[test]
fn a_list_tells_its_events() {
    let mut rig = Rig::new();
    rig.notify("KEA");
    let mut told = |line: &str| {
        rig.run(line);
        rig.events().join(" ")
    };
    assert_eq!(told("RPUSH l a b c"), "0:rpush:l");
    assert_eq!(told("LPUSH l a"), "0:lpush:l");
    assert_eq!(told("LSET l 0 x"), "0:lset:l");
    assert_eq!(told("LINSERT l AFTER x y"), "0:linsert:l");
    assert_eq!(told("LREM l 0 y"), "0:lrem:l");
    assert_eq!(told("LREM l 0 y"), "");
    assert_eq!(told("LTRIM l 1 -1"), "0:ltrim:l");
    assert_eq!(told("LMOVE l l LEFT RIGHT"), "0:rpush:l 0:lpop:l");
    assert_eq!(told("LMOVE l o LEFT LEFT"), "0:lpush:o 0:lpop:l");
    assert_eq!(told("LPOP l"), "0:lpop:l");
    assert_eq!(told("RPOPLPUSH l o"), "0:lpush:o 0:rpop:l 0:del:l");
    assert_eq!(told("RPOP o 9"), "0:rpop:o 0:del:o");
}

#[test]
fn a_list_is_copied_moved_and_renamed_with_its_deadline_and_its_memory_goes_back() {
    let mut rig = Rig::new();
    let empty = rig.keyspace.used_memory();
    for (name, elements) in [("small", 5), ("packed", 300), ("large", 3_000)] {
        for i in 0..elements {
            rig.run(&format!("RPUSH {name} value:{i}"));
        }
        rig.run(&format!("PEXPIRE {name} 1000"));
        rig.script(&format!(
            "COPY {name} copy -> :1
             RENAME {name} other -> OK
             MOVE other 1 -> :1
             LSET copy 0 changed -> OK
             PTTL copy -> :1000
             SELECT 1 -> OK
             LINDEX other 0 -> 'value:0'
             LLEN other -> :{elements}
             SELECT 0 -> OK
             LINDEX copy 0 -> 'changed'"
        ));
        rig.pass(1000);
        assert_eq!(rig.expire_all(), 2);
        for shard in 0..rig.keyspace.shards() {
            while rig.keyspace.maintain(&mut rig.seat, shard, 100) {}
        }
    }
    let used = rig.keyspace.used_memory();
    assert!(used < empty + 40_000, "{used}");
}

/// Elements that are short, long, or integers of each width.
fn element(dice: &mut Dice) -> Vec<u8> {
    match dice.below(8) {
        0 => vec![b'v'; dice.below(3_000) as usize],
        1 => (dice.number() as i64 >> dice.below(64))
            .to_string()
            .into_bytes(),
        _ => dice.below(6).to_string().into_bytes(),
    }
}

fn index(dice: &mut Dice) -> String {
    match dice.below(12) {
        0 => i64::MAX.to_string(),
        1 => i64::MIN.to_string(),
        2 => "text".to_owned(),
        _ => (dice.below(12) as i64 - 6).to_string(),
    }
}

fn line(dice: &mut Dice) -> String {
    let key = *dice.pick(&["a", "a", "a", "b", "c", "none", "string"]);
    let other = *dice.pick(&["a", "b", "c", "string"]);
    let ends = ["LEFT", "right", "LEFT", "RIGHT", "MIDDLE"];
    let (from, to) = (*dice.pick(&ends), *dice.pick(&ends));
    let (first, second) = (index(dice), index(dice));
    let small = dice.below(4);
    let element = dice.below(6);
    match dice.below(22) {
        0 => format!("LPOP {key}"),
        1 => format!("RPOP {key} {first}"),
        2 => format!("LPOP {key} {first}"),
        3 => format!("LLEN {key}"),
        4 => format!("LINDEX {key} {first}"),
        5 => format!("LSET {key} {first} {element}"),
        6 => format!("LINSERT {key} BEFORE {element} x"),
        7 => format!("LINSERT {key} after {element} {second}"),
        // Servers of 8.2 and newer refuse the lowest number, and these do not.
        8 => format!(
            "LREM {key} {} {element}",
            first.replace(&i64::MIN.to_string(), "-9")
        ),
        9 if small == 0 => format!("LTRIM {key} {first} {second}"),
        10 => format!("LRANGE {key} {first} {second}"),
        11 => format!("LPOS {key} {element}"),
        12 => format!(
            "LPOS {key} {element} RANK {} COUNT {small}",
            small as i64 - 2
        ),
        13 => format!("LPOS {key} {element} COUNT {first} MAXLEN {second}"),
        14 => format!("LPOS {key} {element} RANK {small} MAXLEN {second} COUNT"),
        15 => format!("LMOVE {key} {other} {from} {to}"),
        16 => format!("RPOPLPUSH {key} {other}"),
        17 => format!("LMPOP {small} {key} {other} {from} COUNT {second}"),
        18 => format!("LMPOP {small} {key} {other} {from}"),
        19 => format!("LMPOP 2 {key} {other} {from} COUNT {small} COUNT {small}"),
        20 => format!("LPUSHX {key} {first}"),
        _ => format!("RPUSHX {key} {first}"),
    }
}

/// The encoding of a list has another name there before 7.2, and so its size decides elsewhere.
#[test]
fn lists_are_as_there() {
    let Some(mut redis) = Redis::start("") else {
        return;
    };
    let (mut rig, mut dice) = (Rig::new(), Dice::new(21));
    redis.agrees_on(&mut rig, "SET string 1");
    for _ in 0..20_000 {
        if dice.below(3) == 0 {
            let command = *dice.pick(&[&b"LPUSH"[..], b"RPUSH"]);
            let key = *dice.pick(&[&b"a"[..], b"b", b"c", b"string"]);
            let elements: Vec<_> = (0..=dice.below(3)).map(|_| element(&mut dice)).collect();
            let mut words = vec![command, key];
            words.extend(elements.iter().map(Vec::as_slice));
            redis.agrees(&mut rig, &words);
        } else {
            let line = line(&mut dice);
            redis.agrees_on(&mut rig, &line);
        }
    }
}

#[test]
fn a_list_grows_into_chunks_and_becomes_packed_again() {
    let mut rig = Rig::new();
    let long = "v".repeat(100);
    for _ in 0..70 {
        rig.run(&format!("RPUSH l {long}"));
    }
    rig.script("OBJECT ENCODING l -> 'listpack'");
    for _ in 0..30 {
        rig.run(&format!("RPUSH l {long}"));
    }
    rig.script("OBJECT ENCODING l -> 'quicklist'\nLTRIM l 0 50 -> OK");
    rig.script("OBJECT ENCODING l -> 'quicklist'\nLTRIM l 0 30 -> OK");
    rig.script("OBJECT ENCODING l -> 'listpack'\nLLEN l -> :31");
}

/// LREM took the lowest integer for a count from the end.
#[test]
fn the_lowest_integer_is_no_count() {
    let error = "-ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807";
    let mut rig = Rig::new();
    rig.script(&format!(
        "RPUSH l a b a -> :3
         LREM l -9223372036854775808 a -> {error}
         LREM none -9223372036854775808 a -> {error}
         LPOS l a RANK -9223372036854775808 -> {error}
         SRANDMEMBER none -9223372036854775808 -> {error}
         HRANDFIELD none -9223372036854775808 -> {error}
         ZRANDMEMBER none -9223372036854775808 -> {error}
         HRANDFIELD none -9223372036854775808 more -> {error}
         LREM l -9223372036854775807 a -> :2"
    ));
}

/// Counts from 2^62 were refused by HRANDFIELD, and negative ones even for a missing key.
#[test]
fn counts_at_random_are_refused_for_the_length_of_their_reply_only() {
    let mut rig = Rig::new();
    rig.script(
        "HSET h a 1 -> :1
         ZADD z 1 a -> :1
         SADD s a -> :1
         HRANDFIELD h 9223372036854775807 -> ['a']
         ZRANDMEMBER z 9223372036854775807 -> ['a']
         SRANDMEMBER s 9223372036854775807 -> ['a']
         HRANDFIELD none -9223372036854775807 -> []
         ZRANDMEMBER none -9223372036854775807 -> []
         SRANDMEMBER none -9223372036854775807 -> []
         HRANDFIELD none -4611686018427387903 WITHVALUES -> []
         HRANDFIELD none -4611686018427387904 WITHVALUES -> -ERR value is out of range
         HRANDFIELD none 4611686018427387904 WITHVALUES -> -ERR value is out of range
         HRANDFIELD none x WITHVALUES more -> -ERR value is not an integer or out of range
         HRANDFIELD none 1 more -> -ERR syntax error
         HRANDFIELD h -9223372036854775807 -> -ERR value is out of range
         SRANDMEMBER s -9223372036854775807 -> -ERR value is out of range
         ZRANDMEMBER z -9223372036854775807 -> -ERR value is out of range
         SPOP s x -> -ERR value is out of range, must be positive
         SPOP none 9223372036854775808 -> -ERR value is out of range, must be positive
         SPOP s 9223372036854775807 -> ['a']",
    );
}
