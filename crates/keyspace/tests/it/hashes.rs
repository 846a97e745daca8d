//! Hashes: fields, forms, and how they leave.

use crate::common::Rig;

#[test]
fn fields_are_written_read_and_removed() {
    let mut rig = Rig::new();
    rig.notify("KEA");
    rig.script(
        "HSET h a 1 b 2 -> :2
         HSET h a 3 c 4 -> :1
         HMSET h d 5 -> OK
         HGET h a -> '3'
         HGET h x -> nil
         HGET none x -> nil
         HMGET h a x d -> ['3' nil '5']
         HLEN h -> :4
         HEXISTS h b -> :1
         HEXISTS h x -> :0
         HSTRLEN h a -> :1
         HGETALL h -> ['a' '3' 'b' '2' 'c' '4' 'd' '5']
         HKEYS h -> ['a' 'b' 'c' 'd']
         HVALS h -> ['3' '2' '4' '5']
         HSETNX h a 9 -> :0
         HSETNX h e 9 -> :1
         HDEL h a x b -> :2
         TYPE h -> hash
         OBJECT ENCODING h -> 'listpack'
         HDEL h c d e -> :3
         EXISTS h -> :0
         HSET h a -> -ERR wrong number of arguments for 'hset' command
         SET s 1 -> OK
         HGET s a -> -WRONGTYPE Operation against a key holding the wrong kind of value
         HSET s a 1 -> -WRONGTYPE Operation against a key holding the wrong kind of value
         HSET h a 1 -> :1
         GET h -> -WRONGTYPE Operation against a key holding the wrong kind of value
         INCR h -> -WRONGTYPE Operation against a key holding the wrong kind of value
         APPEND h x -> -WRONGTYPE Operation against a key holding the wrong kind of value
         SET h 1 -> OK
         GET h -> '1'",
    );
    let events = rig.events();
    assert_eq!(events[..3], ["0:hset:h", "0:hset:h", "0:hset:h"]);
    assert!(
        events
            .windows(2)
            .any(|pair| pair == ["0:hdel:h", "0:del:h"]),
        "{events:?}"
    );
}

#[test]
fn a_hash_grows_large_by_its_fields_or_by_one_long_value_and_stays_so() {
    let mut rig = Rig::new();
    rig.run(&format!("HSET long f {}", "v".repeat(65)));
    rig.script("OBJECT ENCODING long -> 'hashtable'\nHSET long g 1 -> :1\nHDEL long f -> :1");
    rig.script("OBJECT ENCODING long -> 'hashtable'\nHGETALL long -> ['g' '1']");
    for i in 0..512 {
        rig.run(&format!("HSET h f{i} {i}"));
    }
    rig.script(
        "OBJECT ENCODING h -> 'listpack'\nHSET h f512 1 -> :1\nOBJECT ENCODING h -> 'hashtable'",
    );
    rig.script("HLEN h -> :513\nHGET h f400 -> '400'");
    for i in 0..513 {
        assert_eq!(rig.run(&format!("HDEL h f{i}")), ":1");
    }
    rig.script("EXISTS h -> :0");
}

#[test]
fn a_hash_is_copied_moved_and_renamed_with_its_deadline_and_its_memory_goes_back() {
    let mut rig = Rig::new();
    let empty = rig.keyspace.used_memory();
    for (name, fields) in [("small", 5), ("packed", 300), ("large", 2_000)] {
        for i in 0..fields {
            rig.run(&format!("HSET {name} field:{i} value:{i}"));
        }
        rig.run(&format!("PEXPIRE {name} 1000"));
        rig.script(&format!(
            "COPY {name} copy -> :1
             RENAME {name} other -> OK
             MOVE other 1 -> :1
             HSET copy field:0 changed -> :0
             PTTL copy -> :1000
             SELECT 1 -> OK
             HGET other field:0 -> 'value:0'
             HLEN other -> :{fields}
             PTTL other -> :1000
             SELECT 0 -> OK
             HGET copy field:0 -> 'changed'"
        ));
        rig.pass(1000);
        assert_eq!(rig.expire_all(), 2);
        for shard in 0..rig.keyspace.shards() {
            while rig.keyspace.maintain(&mut rig.seat, shard, 100) {}
        }
    }
    assert!(
        rig.keyspace.used_memory() < empty + 40_000,
        "{}",
        rig.keyspace.used_memory()
    );
}

/// Every tenth field stays: without tidying, nearly every page would.
#[test]
fn a_large_hash_that_shrinks_gives_its_memory_back() {
    let mut rig = Rig::new();
    for i in 0..20_000 {
        rig.run(&format!("HSET h field:{i} value:{i}"));
    }
    let full = rig.keyspace.used_memory();
    for i in (0..20_000).filter(|i| i % 10 != 0) {
        rig.run(&format!("HDEL h field:{i}"));
    }
    for i in 0..2_000 {
        rig.run(&format!("HSET h new:{i} {i}"));
        rig.run(&format!("HDEL h new:{i}"));
    }
    let left = rig.keyspace.used_memory();
    assert!(left < full / 4, "{full} bytes, then {left}");
    assert_eq!(rig.run("HLEN h"), ":2000");
}
