//! Bitmap commands.

use std::sync::atomic::Ordering::Relaxed;

use crate::common::{OOM, Rig, show};

const BAD_OFFSET: &str = "-ERR bit offset is not an integer or out of range";

#[test]
fn bits_are_set_and_read() {
    Rig::new().script(
        "
        SETBIT k 1 1 -> :0
        GET k -> '@'
        SETBIT k 1 1 -> :1
        SETBIT k 1 0 -> :1
        STRLEN k -> :1
        SETBIT k 23 0 -> :0
        STRLEN k -> :3
        OBJECT ENCODING k -> 'raw'
        GETBIT k 1 -> :0
        SET n 1 PX 500 -> OK
        GETBIT n 2 -> :1
        GETBIT n 7 -> :1
        GETBIT n 8 -> :0
        GETBIT n 4294967295 -> :0
        SETBIT n 6 1 -> :0
        GET n -> '3'
        PTTL n -> :500
        OBJECT ENCODING n -> 'raw'
        GETBIT nope 7 -> :0
        SETBIT k -1 1 -> -ERR bit offset is not an integer or out of range
        SETBIT k 4294967296 1 -> -ERR bit offset is not an integer or out of range
        SETBIT k x 1 -> -ERR bit offset is not an integer or out of range
        GETBIT k 4294967296 -> -ERR bit offset is not an integer or out of range
        SETBIT k 1 2 -> -ERR bit is not an integer or out of range
        SETBIT k 1 x -> -ERR bit is not an integer or out of range
        SETBIT k 1 -> -ERR wrong number of arguments for 'setbit' command
        ",
    );
}

#[test]
fn only_changed_bits_are_announced() {
    let mut rig = Rig::new();
    rig.notify("KEA");
    for (line, expected) in [
        ("SETBIT k 7 0", &["0:setbit:k"][..]),
        ("SETBIT k 7 0", &[]),
        ("SETBIT k 7 1", &["0:setbit:k"]),
        ("SETBIT k 8 0", &["0:setbit:k"]),
        ("BITFIELD k GET u8 0", &[]),
        ("BITFIELD k SET u8 0 1", &[]),
        ("BITFIELD k SET u8 0 2 SET u8 0 3", &["0:setbit:k"]),
        ("BITFIELD k OVERFLOW FAIL SET u8 0 256", &[]),
        ("BITFIELD new OVERFLOW FAIL SET u8 0 256", &["0:setbit:new"]),
        ("BITOP NOT to k", &["0:set:to"]),
        ("BITOP NOT to nope", &["0:del:to"]),
        ("BITOP NOT to nope", &[]),
    ] {
        rig.run(line);
        assert_eq!(rig.events(), expected, "{line}");
    }
}

#[test]
fn ones_are_counted() {
    Rig::new().script(
        "
        BITCOUNT nope -> :0
        BITCOUNT nope 0 -1 BIT -> :0
        SET k foobar -> OK
        BITCOUNT k -> :26
        BITCOUNT k 0 0 -> :4
        BITCOUNT k 1 1 -> :6
        BITCOUNT k 1 1 byte -> :6
        BITCOUNT k 5 30 BIT -> :17
        BITCOUNT k -1 -> :4
        BITCOUNT k -2 1 -> :0
        BITCOUNT k -6 -7 -> :0
        BITCOUNT k -1000 1000 -> :26
        BITCOUNT k 9223372036854775807 9223372036854775807 -> :0
        BITCOUNT k -9223372036854775808 9223372036854775807 BIT -> :26
        BITCOUNT k 0 1 HELLO -> -ERR syntax error
        BITCOUNT k 0 1 BIT x -> -ERR syntax error
        BITCOUNT nope a b -> -ERR value is not an integer or out of range
        ",
    );
}

#[test]
fn the_first_bit_is_found() {
    let mut rig = Rig::new();
    rig.words(&[b"SET", b"ones", b"\xff\xff"]);
    rig.words(&[b"SET", b"mixed", b"\xff\xf0\x00"]);
    rig.words(&[b"SET", b"zeros", b"\0\0\0\0\0\0\0\0\0\0\0\0"]);
    rig.script(
        "
        BITPOS nope 0 -> :0
        BITPOS nope 1 -> :-1
        BITPOS nope 0 5 9 BIT -> :0
        BITPOS mixed 0 -> :12
        BITPOS mixed 1 1 -> :8
        BITPOS mixed 1 2 -> :-1
        BITPOS mixed 0 0 9 BIT -> :-1
        BITPOS mixed 0 0 12 BIT -> :12
        BITPOS ones 0 -> :16
        BITPOS ones 0 1 -> :16
        BITPOS ones 0 2 -> :-1
        BITPOS ones 0 0 -1 -> :-1
        BITPOS ones 1 -> :0
        BITPOS ones 1 5 -1 BIT -> :5
        BITPOS zeros 1 -> :-1
        BITPOS zeros 0 -1 -> :88
        SET empty \"\" -> OK
        BITPOS empty 0 -> :-1
        BITPOS empty 1 -> :-1
        BITPOS k 2 -> -ERR The bit argument must be 1 or 0.
        BITPOS k a -> -ERR value is not an integer or out of range
        BITPOS k 0 a -> -ERR value is not an integer or out of range
        BITPOS k 0 0 1 HELLO -> -ERR syntax error
        BITPOS k 0 0 1 BIT x -> -ERR syntax error
        ",
    );
}

#[test]
fn strings_are_combined() {
    Rig::new().script(
        "
        SET a abc PX 500 -> OK
        SET b fg -> OK
        SET to old PX 500 -> OK
        BITOP AND to a b -> :3
        TTL to -> :-1
        OBJECT ENCODING to -> 'raw'
        BITCOUNT to -> :5
        BITOP or to a b nope -> :3
        GET to -> 'ggc'
        BITOP XOR b a b -> :3
        BITOP XOR b a b -> :3
        BITCOUNT b -> :9
        BITOP ONE to a -> :3
        GET to -> 'abc'
        BITOP DIFF to a a -> :3
        BITCOUNT to -> :0
        BITOP DIFF1 to nope a -> :3
        GET to -> 'abc'
        BITOP ANDOR to a nope a -> :3
        GET to -> 'abc'
        BITOP NOT to nope -> :0
        EXISTS to -> :0
        BITOP NAND to a -> -ERR syntax error
        BITOP NOT to a b -> -ERR BITOP NOT must be called with a single source key.
        BITOP diff to a -> -ERR BITOP DIFF must be called with at least two source keys.
        BITOP DIFF1 to a -> -ERR BITOP DIFF1 must be called with at least two source keys.
        BITOP ANDOR to a -> -ERR BITOP ANDOR must be called with at least two source keys.
        BITOP AND to -> -ERR wrong number of arguments for 'bitop' command
        ",
    );
}

#[test]
fn fields_are_read_and_written() {
    Rig::new().script(
        "
        BITFIELD k -> []
        EXISTS k -> :0
        BITFIELD k GET u8 0 -> [:0]
        EXISTS k -> :0
        BITFIELD k SET i8 0 -100 SET i8 0 101 GET i8 0 -> [:0 :-100 :101]
        BITFIELD k SET u8 #1 66 SET u8 #2 67 -> [:0 :0]
        GET k -> 'eBC'
        BITFIELD k INCRBY u2 100 1 OVERFLOW SAT INCRBY u2 102 1 -> [:1 :1]
        BITFIELD k INCRBY u2 100 3 OVERFLOW SAT INCRBY u2 102 3 -> [:0 :3]
        BITFIELD k OVERFLOW FAIL INCRBY u2 102 1 GET u2 102 -> [nil :3]
        BITFIELD k SET i64 7 -9223372036854775808 GET i64 7 GET u63 8 -> [:-6836042021883346944 :-9223372036854775808 :0]
        BITFIELD k OVERFLOW WRAP INCRBY i64 7 -1 -> [:9223372036854775807]
        BITFIELD k SET u8 0 -1 GET u8 0 -> [:100 :255]
        SET k 1 -> OK
        BITFIELD k GET u1 0 GET u8 0 GET i8 8 -> [:0 :49 :0]
        BITFIELD_RO k GET u8 0 -> [:49]
        BITFIELD_RO k -> []
        BITFIELD_RO k SET u8 0 1 -> -ERR BITFIELD_RO only supports the GET subcommand
        BITFIELD k GET u64 0 -> -ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.
        BITFIELD k GET u8 -1 -> -ERR bit offset is not an integer or out of range
        BITFIELD k GET u8 #536870912 -> -ERR bit offset is not an integer or out of range
        BITFIELD k GET i64 #9223372036854775807 -> -ERR bit offset is not an integer or out of range
        BITFIELD k GET u8 -> -ERR syntax error
        BITFIELD k SET u8 0 -> -ERR syntax error
        BITFIELD k SET u8 0 x -> -ERR value is not an integer or out of range
        BITFIELD k OVERFLOW NONE -> -ERR Invalid OVERFLOW type specified
        BITFIELD k OVERFLOW -> -ERR syntax error
        BITFIELD k ADD u8 0 1 -> -ERR syntax error
        GET k -> '1'
        ",
    );
}

/// A string as large as its reader's copy is looked at, changed and combined without the lock.
#[test]
fn large_bitmaps_are_counted_changed_and_combined() {
    let mut rig = Rig::new();
    let ones = vec![0xff; 3_000_000];
    rig.words(&[b"SET", b"ones", &ones]);
    rig.script(
        "
        BITCOUNT ones -> :24000000
        BITPOS ones 0 -> :24000000
        COPY ones copy -> :1
        SETBIT copy 17 0 -> :1
        BITPOS copy 0 -> :17
        BITPOS ones 0 -> :24000000
        BITOP XOR to ones copy -> :3000000
        BITCOUNT to -> :1
        BITOP XOR ones ones copy -> :3000000
        BITCOUNT ones -> :1
        SETBIT far 4294967295 1 -> :0
        STRLEN far -> :536870912
        DEL far -> :1
        ",
    );
}

#[test]
fn the_longest_string_bounds_the_offsets() {
    let mut rig = Rig::new();
    rig.keyspace.rules().proto_max_bulk_len.store(100, Relaxed);
    for (line, reply) in [
        ("SETBIT k 799 1", ":0"),
        ("SETBIT k 800 1", BAD_OFFSET),
        ("GETBIT k 800", BAD_OFFSET),
        ("BITFIELD k GET u8 800", BAD_OFFSET),
        ("BITFIELD k SET u8 #100 1", BAD_OFFSET),
        // The last field may begin at the last bit.
        ("BITFIELD k SET u8 799 255", "[:128]"),
        ("STRLEN k", ":101"),
    ] {
        assert_eq!(rig.run(line), reply, "{line}");
    }
}

#[test]
fn what_bitmaps_will_need_is_known_before() {
    let mut rig = Rig::new();
    rig.words(&[b"SET", b"large", &vec![b'x'; 600_000]]);
    rig.keyspace.rules().maxmemory.store(1_000_000, Relaxed);
    for line in [
        "SETBIT far 8000000 1",
        "BITFIELD far SET u8 #1000000 1",
        "BITOP NOT to large",
    ] {
        assert_eq!(rig.run(line), OOM, "{line}");
    }
    assert_eq!(rig.run("SETBIT near 800 1"), ":0");
    assert_eq!(rig.run("BITFIELD far GET u8 #1000000"), "[:0]");
    assert_eq!(rig.run("BITFIELD near SET u8 #100 1"), "[:128]");
    let used = rig.keyspace.stats(rig.time).used_memory;
    assert!(used <= 1_000_000, "{used}");
}

#[test]
fn keys_of_calls_are_named_with_what_is_done_to_them() {
    let mut rig = Rig::new();
    for (line, expected) in [
        (
            "COMMAND GETKEYSANDFLAGS BITOP AND to a b",
            "[['to' [OW update]] ['a' [RO access]] ['b' [RO access]]]",
        ),
        (
            "COMMAND GETKEYSANDFLAGS BITFIELD k GET u8 0 OVERFLOW SAT",
            "[['k' [RO access]]]",
        ),
        (
            "COMMAND GETKEYSANDFLAGS BITFIELD k GET u8 0 SET u8 0 1",
            "[['k' [RW access update]]]",
        ),
    ] {
        assert_eq!(rig.run(line), expected);
    }
    assert_eq!(
        show(&rig.words(&[b"bitfield\x7fro", b"k"])),
        "-ERR unknown command 'bitfield\u{7f}ro', with args beginning with: 'k' "
    );
}
