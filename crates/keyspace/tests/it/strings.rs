//! String commands, one family after the other.

use crate::common::{Rig, show};
use tidewheel_keyspace::{Options, resolve};
use tidewheel_resp::{Args, Protocol, Reply, Writer};

#[test]
fn set_honours_every_option() {
    Rig::new().script(
        "
        GET k -> nil
        SET k v -> OK
        GET k -> 'v'
        set k w nx -> nil
        SET k w XX -> OK
        SET new w XX -> nil
        GET new -> nil
        SET k x GET -> 'w'
        SET k y NX GET -> 'x'
        GET k -> 'x'
        SET fresh y NX GET -> nil
        GET fresh -> 'y'
        SET absent y XX GET -> nil
        EXISTS absent -> :0
        SET k v EX 10 -> OK
        TTL k -> :10
        SET k v2 KEEPTTL -> OK
        PTTL k -> :10000
        SET k v3 -> OK
        TTL k -> :-1
        SET k v PX 1500 -> OK
        PTTL k -> :1500
        SET k v EXAT 1700000100 -> OK
        EXPIRETIME k -> :1700000100
        SET k v PXAT 1700000000500 NX -> nil
        SET k v PXAT 1700000000500 XX -> OK
        PEXPIRETIME k -> :1700000000500
        pass 499
        GET k -> 'v'
        pass 1
        GET k -> nil
        ",
    );
}

#[test]
fn set_refuses_what_the_protocol_refuses() {
    Rig::new().script(
        "
        SET k -> -ERR wrong number of arguments for 'set' command
        SET k v NX XX -> -ERR syntax error
        SET k v XX NX -> -ERR syntax error
        SET k v EX -> -ERR syntax error
        SET k v EX 1 PX 1 -> -ERR syntax error
        SET k v KEEPTTL EX 1 -> -ERR syntax error
        SET k v EX 1 KEEPTTL -> -ERR syntax error
        SET k v PERSIST -> -ERR syntax error
        SET k v BOGUS -> -ERR syntax error
        SET k v EX 5 EX 7 -> OK
        TTL k -> :7
        SET k v EX ten -> -ERR value is not an integer or out of range
        SET k v EX 0 -> -ERR invalid expire time in 'set' command
        SET k v EX -1 -> -ERR invalid expire time in 'set' command
        SET k v PX 0 -> -ERR invalid expire time in 'set' command
        SET k v EX 9223372036854775807 -> -ERR invalid expire time in 'set' command
        SET k v EX 9223372036854775 -> -ERR invalid expire time in 'set' command
        SET k v PX 9223372036854775807 -> -ERR invalid expire time in 'set' command
        SET k v PXAT 9223372036854775807 -> OK
        PEXPIRETIME k -> :9223372036854775807
        SETEX k 0 v -> -ERR invalid expire time in 'setex' command
        PSETEX k -5 v -> -ERR invalid expire time in 'psetex' command
        SETEX k x v -> -ERR value is not an integer or out of range
        GETEX k EX 0 -> -ERR invalid expire time in 'getex' command
        GETEX k EX -> -ERR syntax error
        GETEX k EX 1 PERSIST -> -ERR syntax error
        GETEX k KEEPTTL -> -ERR syntax error
        GETEX absent EX 0 -> nil
        MSET a 1 b -> -ERR wrong number of arguments for 'mset' command
        MSETNX a 1 b -> -ERR wrong number of arguments for 'msetnx' command
        MSET -> -ERR wrong number of arguments for 'mset' command
        ",
    );
}

#[test]
fn a_deadline_in_the_past_expires_what_set_stored() {
    let mut rig = Rig::new();
    rig.notify("KEA");
    rig.script("SET k v PXAT 1 -> OK\nEXISTS k -> :0\nDBSIZE -> :0");
    assert_eq!(rig.events(), ["0:set:k", "0:expire:k", "0:expired:k"]);
    rig.script("SETEX k 10 v -> OK\nGETEX k PXAT 1 -> 'v'\nEXISTS k -> :0");
    assert_eq!(rig.events(), ["0:set:k", "0:expire:k", "0:del:k"]);
}

#[test]
fn the_other_setters_and_getters() {
    Rig::new().script(
        "
        SETNX a 1 -> :1
        SETNX a 2 -> :0
        GET a -> '1'
        SETEX b 10 x -> OK
        TTL b -> :10
        PSETEX b 1500 y -> OK
        PTTL b -> :1500
        GETSET b z -> 'y'
        TTL b -> :-1
        GETSET c first -> nil
        GETDEL c -> 'first'
        GETDEL c -> nil
        GETEX b EX 5 -> 'z'
        TTL b -> :5
        GETEX b -> 'z'
        TTL b -> :5
        GETEX b PERSIST -> 'z'
        TTL b -> :-1
        GETEX b PX 700 -> 'z'
        PTTL b -> :700
        GETEX b EXAT 1700000009 -> 'z'
        TTL b -> :9
        GETEX b PXAT 1700000003000 -> 'z'
        TTL b -> :3
        MSET p 1 q 2 p 3 -> OK
        MGET p q nope a -> ['3' '2' nil '1']
        MSETNX r 1 p 9 -> :0
        EXISTS r -> :0
        MSETNX r 1 s 2 -> :1
        MSETEX 2 ma 1 mb 2 NX EX 100 -> :1
        MSETEX 2 ma 3 mc 4 NX -> :0
        EXISTS mc -> :0
        TTL ma -> :100
        MSETEX 2 ma 3 mc 4 XX -> :0
        MSETEX 2 ma 5 mb 6 xx keepttl -> :1
        TTL mb -> :100
        MSETEX 1 ma 7 -> :1
        TTL ma -> :-1
        MSETEX 2 ma 8 ma 9 -> :1
        MGET ma mb -> ['9' '6']
        MSETEX 0 ma 1 -> -ERR invalid numkeys value
        MSETEX x ma 1 -> -ERR invalid numkeys value
        MSETEX 2 ma 1 mb -> -ERR wrong number of key-value pairs
        MSETEX 1 ma 1 mb 2 -> -ERR syntax error
        MSETEX 1 ma 1 NX XX -> -ERR syntax error
        MSETEX 1 ma 1 EX 1 KEEPTTL -> -ERR syntax error
        MSETEX 1 ma 1 PERSIST -> -ERR syntax error
        MSETEX 1 ma 1 EX 0 -> -ERR invalid expire time in 'msetex' command
        MGET r s -> ['1' '2']
        STRLEN s -> :1
        STRLEN nope -> :0
        ",
    );
}

#[test]
fn ranges_append_and_setrange() {
    Rig::new().script(
        r#"
        SET k HelloWorld -> OK
        GETRANGE k 0 4 -> 'Hello'
        GETRANGE k -5 -1 -> 'World'
        GETRANGE k 0 -1 -> 'HelloWorld'
        GETRANGE k 5 2 -> ''
        GETRANGE k -1 -5 -> ''
        GETRANGE k 0 -100 -> 'H'
        GETRANGE k 4 9223372036854775807 -> 'oWorld'
        GETRANGE k -9223372036854775808 1 -> 'He'
        GETRANGE nope 0 1 -> ''
        GETRANGE k x 1 -> -ERR value is not an integer or out of range
        SUBSTR k 1 2 -> 'el'
        APPEND k ! -> :11
        GET k -> 'HelloWorld!'
        APPEND new ab -> :2
        APPEND new cd -> :4
        GET new -> 'abcd'
        SETRANGE new 1 XY -> :4
        GET new -> 'aXYd'
        SETRANGE new 6 z -> :7
        STRLEN new -> :7
        SETRANGE nope 0 "" -> :0
        EXISTS nope -> :0
        SETRANGE new 0 "" -> :7
        SETRANGE new -1 x -> -ERR offset is out of range
        SETRANGE new x x -> -ERR value is not an integer or out of range
        SETRANGE new 536870911 xx -> -ERR string exceeds maximum allowed size (proto-max-bulk-len)
        SETRANGE new 9223372036854775807 x -> -ERR string exceeds maximum allowed size (proto-max-bulk-len)
        SETRANGE fresh 3 ab -> :5
        STRLEN fresh -> :5
        "#,
    );
    let mut rig = Rig::new();
    rig.script("SET k v PX 900 -> OK\nAPPEND k w -> :2\nSETRANGE k 0 x -> :2\nPTTL k -> :900");
    rig.script(
        "SET n 5 PX 900 -> OK\nINCR n -> :6\nPTTL n -> :900\nINCRBY n 10 -> :16\nPTTL n -> :900",
    );
    rig.script("INCRBYFLOAT n 1 -> '17'\nPTTL n -> :900");
}

#[test]
fn counting() {
    Rig::new().script(
        "
        INCR n -> :1
        INCRBY n 9 -> :10
        DECR n -> :9
        DECRBY n 10 -> :-1
        GET n -> '-1'
        SET n 9223372036854775807 -> OK
        INCR n -> -ERR increment or decrement would overflow
        DECRBY n -9223372036854775808 -> -ERR decrement would overflow
        INCRBY n x -> -ERR value is not an integer or out of range
        SET n -9223372036854775808 -> OK
        DECR n -> -ERR increment or decrement would overflow
        INCRBY n -1 -> -ERR increment or decrement would overflow
        SET s abc -> OK
        INCR s -> -ERR value is not an integer or out of range
        SET s 01 -> OK
        INCR s -> -ERR value is not an integer or out of range
        INCRBYFLOAT f 10.5 -> '10.5'
        INCRBYFLOAT f 0.1 -> '10.6'
        INCRBYFLOAT f -5 -> '5.6'
        SET f 5.0e3 -> OK
        INCRBYFLOAT f 2.0e2 -> '5200'
        SET f 0.1 -> OK
        INCRBYFLOAT f 0.2 -> '0.3'
        INCRBYFLOAT f x -> -ERR value is not a valid float
        INCRBYFLOAT f inf -> -ERR increment would produce NaN or Infinity
        SET f abc -> OK
        INCRBYFLOAT f 1 -> -ERR value is not a valid float
        ",
    );
}

#[test]
fn common_subsequences() {
    let mut rig = Rig::new();
    rig.script(
        "
        MSET a ohmytext b mynewtext -> OK
        LCS a b -> 'mytext'
        LCS a b LEN -> :6
        LCS a b IDX -> ['matches' [[[:4 :7] [:5 :8]] [[:2 :3] [:0 :1]]] 'len' :6]
        LCS a b IDX MINMATCHLEN 4 -> ['matches' [[[:4 :7] [:5 :8]]] 'len' :6]
        LCS a b IDX MINMATCHLEN 4 WITHMATCHLEN -> ['matches' [[[:4 :7] [:5 :8] :4]] 'len' :6]
        LCS a nope -> ''
        LCS nope nope2 LEN -> :0
        LCS a b LEN IDX -> -ERR If you want both the length and indexes, please just use IDX.
        LCS a b MINMATCHLEN -> -ERR syntax error
        LCS a b BOGUS -> -ERR syntax error
        LCS a b IDX MINMATCHLEN x -> -ERR value is not an integer or out of range
        ",
    );
    rig.protocol = Protocol::Resp3;
    rig.script("LCS a b IDX MINMATCHLEN 9 -> {'matches': [], 'len': :6}");
    rig.keyspace
        .rules()
        .proto_max_bulk_len
        .store(100, std::sync::atomic::Ordering::Relaxed);
    rig.script(
        "LCS a b -> -ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len",
    );
}

#[test]
fn encodings_follow_from_how_a_string_came_about() {
    let mut rig = Rig::new();
    let long = "x".repeat(45);
    rig.script(&format!(
        "
        SET k 123 -> OK
        OBJECT ENCODING k -> 'int'
        SET k -9223372036854775808 -> OK
        OBJECT ENCODING k -> 'int'
        SET k 9223372036854775808 -> OK
        OBJECT ENCODING k -> 'embstr'
        SET k 0123 -> OK
        OBJECT ENCODING k -> 'embstr'
        SET k abc -> OK
        OBJECT ENCODING k -> 'embstr'
        SET k {long} -> OK
        OBJECT ENCODING k -> 'raw'
        SET k 1 -> OK
        APPEND k 2 -> :2
        OBJECT ENCODING k -> 'raw'
        INCR k -> :13
        OBJECT ENCODING k -> 'int'
        APPEND fresh 12 -> :2
        OBJECT ENCODING fresh -> 'int'
        SETRANGE range 0 12 -> :2
        OBJECT ENCODING range -> 'raw'
        OBJECT ENCODING nope -> nil
        OBJECT REFCOUNT k -> :2147483647
        SET k abc -> OK
        OBJECT REFCOUNT k -> :1
        OBJECT REFCOUNT nope -> nil
        "
    ));
}

/// Short, inline, beyond inline, and large enough to be copied without the lock.
#[test]
fn strings_of_every_size_read_back() {
    let mut rig = Rig::new();
    for len in [0, 1, 44, 2047, 2048, 2049, 65_535, 65_536, 65_537, 1 << 20] {
        let value: Vec<u8> = (0..len).map(|i| (i * 31 % 251) as u8).collect();
        let bulk = |bytes: &[u8]| Reply::Bulk(bytes.to_vec());
        assert_eq!(
            show(&rig.words(&[b"SET", b"k", &value, b"PX", b"1000"])),
            "OK"
        );
        assert_eq!(rig.words(&[b"GET", b"k"]), bulk(&value));
        assert_eq!(rig.words(&[b"SET", b"k", &value, b"GET"]), bulk(&value));
        assert_eq!(
            show(&rig.words(&[b"MSET", b"a", &value, b"b", b"2", b"c", &value])),
            "OK"
        );
        let all = rig.words(&[b"MGET", b"a", b"nope", b"b", b"c", b"k"]);
        let expected = vec![
            bulk(&value),
            Reply::Null,
            bulk(b"2"),
            bulk(&value),
            bulk(&value),
        ];
        assert_eq!(all, Reply::Array(expected));
        assert_eq!(
            show(&rig.words(&[b"APPEND", b"k", b"tail"])),
            format!(":{}", len + 4)
        );
        let tailed = [&value[..], b"tail"].concat();
        assert_eq!(rig.words(&[b"GET", b"k"]), bulk(&tailed));
        assert_eq!(
            rig.words(&[b"GETRANGE", b"k", b"1", b"-1"]),
            bulk(&tailed[1..])
        );
        assert_eq!(
            show(&rig.words(&[b"COPY", b"k", b"copy", b"REPLACE"])),
            ":1"
        );
        assert_eq!(
            show(&rig.words(&[b"SETRANGE", b"k", b"0", b"#"])),
            format!(":{}", len + 4)
        );
        assert_eq!(
            rig.words(&[b"GET", b"copy"]),
            bulk(&tailed),
            "a copy is on its own"
        );
        assert_eq!(show(&rig.words(&[b"RENAME", b"copy", b"renamed"])), "OK");
        assert_eq!(rig.words(&[b"GETDEL", b"renamed"]), bulk(&tailed));
        assert_eq!(rig.run("DEL k a b c"), ":4");
        assert_eq!(rig.run("DBSIZE"), ":0");
    }
    rig.run("FLUSHALL");
    assert!(
        rig.keyspace.used_memory() < 64 * 1024,
        "{}",
        rig.keyspace.used_memory()
    );
}

#[test]
fn large_values_are_handed_over_to_be_freed() {
    let mut rig = Rig::new();
    let large = vec![b'x'; 1 << 20];
    let reclaimed = |rig: &Rig| {
        rig.told
            .reclaimed_bytes
            .swap(0, std::sync::atomic::Ordering::Relaxed)
            >> 20
    };
    for (how, line) in [
        ("DEL", "DEL k"),
        ("UNLINK", "UNLINK k"),
        ("SET", "SET k v"),
        ("FLUSHALL", "FLUSHALL"),
    ] {
        rig.words(&[b"SET", b"k", &large]);
        assert_eq!(reclaimed(&rig), 0, "before {how}");
        rig.run(line);
        assert_eq!(reclaimed(&rig), 1, "after {how}");
        rig.run("FLUSHALL");
        reclaimed(&rig);
    }
    rig.words(&[b"SET", b"k", &large, b"PX", b"5"]);
    rig.pass(5);
    assert_eq!(rig.expire_all(), 1);
    assert_eq!(reclaimed(&rig), 1, "after expiry");
    rig.words(&[b"SET", b"k", &large, b"PX", b"5"]);
    rig.pass(5);
    assert_eq!(rig.run("GET k"), "nil");
    assert_eq!(reclaimed(&rig), 1, "after a read met it dead");
}

/// The sum of two numbers near the end of an `f64` was refused, though a `long double` holds it.
#[test]
fn floats_beyond_an_f64_are_added_as_redis_adds_them() {
    let mut rig = Rig::new();
    for (by, digits) in [
        ("1.5e308", 309),
        ("1.5e308", 309),
        ("1e400", 401),
        ("1.1e4900", 4_901),
    ] {
        rig.run(&format!("INCRBYFLOAT f {by}"));
        assert_eq!(rig.run("STRLEN f"), format!(":{digits}"), "{by}");
    }
    rig.script(
        "
        INCRBYFLOAT f -1.1e4900 -> '0'
        SET f 1e4932 -> OK
        INCRBYFLOAT f 1e4932 -> -ERR increment would produce NaN or Infinity
        INCRBYFLOAT f 1e5000 -> -ERR value is not a valid float
        SET f 1e30 -> OK
        INCRBYFLOAT f 1 -> '1000000000000000000024696061952'
        ",
    );
}

/// The thread that frees large values kept a share of a value that had been read. So the next
/// APPEND copied the whole value.
#[test]
fn a_read_of_a_large_value_leaves_no_share_of_it_behind() {
    let mut rig = Rig::new();
    let large = vec![b'x'; 1 << 20];
    rig.words(&[b"SET", b"k", &large]);
    assert_eq!(rig.words(&[b"GET", b"k"]), Reply::Bulk(large.clone()));
    assert_eq!(rig.run("LCS k nope LEN"), ":0");
    let parts = rig
        .told
        .reclaimed_parts
        .load(std::sync::atomic::Ordering::Relaxed);
    assert_eq!(parts, 0, "the value lives on, and nobody else has it");
}

/// Debug builds assert that nothing long is copied under a shard's lock.
#[test]
fn a_large_string_that_others_share_is_changed_aside() {
    let mut rig = Rig::new();
    let mut large = vec![b'x'; 300_000];
    rig.words(&[b"SET", b"k", &large, b"PX", b"5000"]);
    rig.run("COPY k shared");
    rig.notify("KEA");
    assert_eq!(rig.run("APPEND k abc"), ":300003");
    assert_eq!(rig.run("COPY k again"), ":1");
    assert_eq!(rig.run("SETRANGE k 1 yz"), ":300003");
    assert_eq!(
        rig.events(),
        ["0:append:k", "0:copy_to:again", "0:setrange:k"]
    );
    assert_eq!(rig.words(&[b"GET", b"shared"]), Reply::Bulk(large.clone()));
    large.extend_from_slice(b"abc");
    assert_eq!(rig.words(&[b"GET", b"again"]), Reply::Bulk(large.clone()));
    large[1..3].copy_from_slice(b"yz");
    assert_eq!(rig.words(&[b"GET", b"k"]), Reply::Bulk(large.clone()));
    assert_eq!(rig.run("PTTL k"), ":5000");
    rig.run("DEL shared again");
    let far = rig.run("SETRANGE k 900000 end");
    assert_eq!(far, ":900003");
    large.resize(900_000, 0);
    large.extend_from_slice(b"end");
    let tail = vec![b't'; 200_000];
    rig.words(&[b"APPEND", b"k", &tail]);
    rig.run("SET short s");
    rig.words(&[b"APPEND", b"short", &tail]);
    large.extend_from_slice(&tail);
    assert_eq!(rig.words(&[b"GET", b"k"]), Reply::Bulk(large.clone()));
    assert_eq!(rig.run("STRLEN short"), ":200001");
    rig.run("DEL k short");
    assert!(
        rig.keyspace.used_memory() < 64 * 1024,
        "{}",
        rig.keyspace.used_memory()
    );
}

/// One in 32 holds of a single key's lock is measured.
#[test]
fn a_long_string_is_made_without_the_lock_even_if_there_was_none() {
    let piece = vec![b'x'; 100_000];
    for offset in [None, Some(&b"7"[..])] {
        let mut rig = Rig::with(Options {
            shards: 1,
            ..Options::default()
        });
        for i in 0..32 {
            let key = format!("k{i}");
            let reply = match offset {
                None => rig.words(&[b"APPEND", key.as_bytes(), &piece]),
                Some(offset) => rig.words(&[b"SETRANGE", key.as_bytes(), offset, &piece]),
            };
            let len = 100_000 + if offset.is_some() { 7 } else { 0 };
            assert_eq!(reply, Reply::Integer(len));
        }
        let stats = rig.keyspace.stats(rig.time);
        assert_eq!(
            stats.lock_hold_ns.count, 2,
            "each looks, lets go, and stores"
        );
        let used = stats.used_memory;
        assert!(used < 32 * 110_000, "{used}: it may never grow");
    }
}

/// The reply to an MGET of the keys `small` and `large` in turn, with a limit on it.
fn mget(rig: &mut Rig, limit: usize) -> Writer {
    let words = [&[&b"MGET"[..]][..], &[&b"small"[..], b"large"].repeat(20)].concat();
    let args = Args::from_slices(&words);
    let row = resolve(args).expect("a command");
    let mut out = Writer::new(Protocol::Resp2);
    out.set_limit(limit);
    let (seat, session) = (&mut rig.seat, &mut rig.session);
    rig.keyspace
        .execute(seat, row, session, rig.time, args, &mut out);
    out
}

/// A long reply took up to twice its length, and was copied again and again while it grew.
#[test]
fn a_long_reply_takes_as_much_memory_as_it_is_long_and_none_beyond_its_limit() {
    let mut rig = Rig::new();
    rig.words(&[b"SET", b"large", &vec![b'l'; 1 << 20]]);
    rig.words(&[b"SET", b"small", &[b's'; 100]]);
    let out = mget(&mut rig, usize::MAX);
    let len = 5 + 20 * ((1 << 20) + 12 + 100 + 8);
    assert_eq!((out.len(), out.is_over()), (len, false));
    assert!(out.capacity() < len + 8_000, "{}", out.capacity());
    let out = mget(&mut rig, 10 << 20);
    assert!(
        out.is_over() && out.capacity() < 8_000,
        "{}",
        out.capacity()
    );
    // Nobody holds on to the values that were left out: they are changed in place.
    assert_eq!(rig.run("APPEND large x"), ":1048577");
}

/// The hashes of a call's keys are known ahead up to a number of keys, and are not computed again.
#[test]
fn calls_whose_keys_were_looked_at_ahead_find_the_same_keys() {
    let mut rig = Rig::new();
    for count in [1, 2, 15, 16, 17, 40] {
        rig.run("FLUSHALL");
        let key = |i: usize| format!("key:{i}");
        let pairs: String = (0..count).map(|i| format!(" {} v{i}", key(i))).collect();
        let keys: String = (0..count).map(|i| format!(" {}", key(i))).collect();
        let read: Vec<String> = (0..count)
            .map(|i| rig.ahead(&format!("GET {}", key(i))))
            .collect();
        assert!(read.iter().all(|reply| reply == "nil"));
        assert_eq!(rig.ahead(&format!("MSET{pairs}")), "OK");
        assert_eq!(
            rig.ahead(&format!("MGET{keys}")),
            rig.run(&format!("MGET{keys}"))
        );
        assert_eq!(rig.ahead(&format!("EXISTS{keys}")), format!(":{count}"));
        assert_eq!(rig.ahead("SADD s1 a b"), ":2");
        assert_eq!(rig.ahead("SMOVE s1 s2 a"), ":1");
        assert_eq!(rig.ahead("SINTERCARD 2 s1 s2"), ":0");
        assert_eq!(rig.ahead("SUNIONSTORE s3 s1 s2"), ":2");
        assert_eq!(
            rig.ahead(&format!("BITOP OR bits{keys}")),
            rig.run("STRLEN bits")
        );
        assert_eq!(rig.ahead("SORT s3 ALPHA STORE sorted"), ":2");
        assert_eq!(rig.ahead(&format!("DEL{keys}")), format!(":{count}"));
        assert_eq!(rig.ahead("DBSIZE"), ":5");
    }
}

#[test]
fn a_call_with_many_keys_reads_and_writes_them_amid_much_data() {
    let mut rig = Rig::new();
    for i in 0..100_000 {
        rig.run(&format!("SET filler:{i} 0123456789abcdef"));
    }
    rig.run("SET c there");
    assert_eq!(rig.ahead("MSET a 1 b 2 a 3 d 4 e 5"), "OK");
    assert_eq!(
        rig.ahead("MGET a b c nope d e a filler:7"),
        "['3' '2' 'there' nil '4' '5' '3' '0123456789abcdef']"
    );
    assert_eq!(rig.ahead("DEL a b nope d e"), ":4");
    assert_eq!(rig.ahead("EXISTS a b c d e c"), ":2");
}

/// The copy shares the string, with its spare room. The first change makes it a string of its own.
#[test]
fn a_copy_that_is_changed_gives_its_spare_memory_back() {
    let mut rig = Rig::new();
    rig.script(
        "SETRANGE a 9999 x -> :10000
         APPEND a y -> :10001
         COPY a b -> :1",
    );
    rig.keyspace.assert_counted();
    assert_eq!(rig.run("SETRANGE b 0 z"), ":10001");
    rig.keyspace.assert_counted();
    assert_eq!(rig.run("DEL a b"), ":2");
    rig.keyspace.assert_counted();
}
