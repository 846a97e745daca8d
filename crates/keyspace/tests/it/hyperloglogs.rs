//! HyperLogLog commands.

use crate::common::{OOM, Rig};
use std::sync::atomic::Ordering::Relaxed;

#[test]
fn elements_are_added_counted_and_merged() {
    let mut rig = Rig::new();
    rig.script(
        "
        PFCOUNT nope -> :0
        PFADD empty -> :1
        PFADD empty -> :0
        PFCOUNT empty -> :0
        TYPE empty -> string
        STRLEN empty -> :18
        OBJECT ENCODING empty -> 'raw'
        PFADD a x y z -> :1
        PFADD a x y z -> :0
        PFCOUNT a -> :3
        PFADD b z u -> :1
        PFCOUNT a b nope -> :4
        PFCOUNT a b nope -> :4
        PFMERGE to a b nope -> OK
        PFCOUNT to -> :4
        PFMERGE none -> OK
        PFCOUNT none -> :0
        PEXPIRE to 500 -> :1
        PFMERGE to a -> OK
        PFCOUNT to -> :4
        PTTL to -> :500
        PFDEBUG ENCODING a -> sparse
        PFDEBUG DECODE none -> 'Z:16384'
        PFDEBUG TODENSE a -> :1
        PFDEBUG todense a -> :0
        PFDEBUG ENCODING a -> dense
        STRLEN a -> :12304
        PFCOUNT a -> :3
        PFADD a x -> :0
        PFADD a v -> :1
        PFCOUNT a -> :4
        PFMERGE b a -> OK
        PFDEBUG ENCODING b -> dense
        PFCOUNT b -> :5
        PFDEBUG DECODE a -> -ERR HLL encoding is not sparse
        PFDEBUG GETREG nope -> -ERR The specified key does not exist
        PFDEBUG OTHER a -> -ERR Unknown PFDEBUG subcommand 'OTHER'
        PFSELFTEST -> OK
        SET s string -> OK
        PFADD s x -> -WRONGTYPE Key is not a valid HyperLogLog string value.
        PFCOUNT s -> -WRONGTYPE Key is not a valid HyperLogLog string value.
        PFCOUNT a s -> -WRONGTYPE Key is not a valid HyperLogLog string value.
        PFMERGE new s -> -WRONGTYPE Key is not a valid HyperLogLog string value.
        PFMERGE s a -> -WRONGTYPE Key is not a valid HyperLogLog string value.
        EXISTS new -> :0
        PFADD c x -> :1
        APPEND c more -> :24
        PFCOUNT c -> -INVALIDOBJ Corrupted HLL object detected
        PFCOUNT a c -> -INVALIDOBJ Corrupted HLL object detected
        PFMERGE new c -> -INVALIDOBJ Corrupted HLL object detected
        PFDEBUG TODENSE c -> -INVALIDOBJ Corrupted HLL object detected
        ",
    );
    rig.keyspace
        .rules()
        .packing
        .hll_sparse_bytes
        .store(30, Relaxed);
    rig.script(
        "
        PFADD few a b c -> :1
        PFDEBUG ENCODING few -> sparse
        PFADD few d e f g h i j k -> :1
        PFDEBUG ENCODING few -> dense
        PFCOUNT few -> :11
        ",
    );
}

#[test]
fn only_registers_that_change_are_announced() {
    let mut rig = Rig::new();
    rig.notify("KEA");
    for (line, expected) in [
        ("PFADD a", &["0:pfadd:a"][..]),
        ("PFADD a x", &["0:pfadd:a"]),
        ("PFADD a x", &[]),
        ("PFCOUNT a", &[]),
        ("PFDEBUG TODENSE a", &[]),
        ("PFADD a x", &[]),
        ("PFADD a y", &["0:pfadd:a"]),
        ("PFMERGE b a", &["0:pfadd:b"]),
    ] {
        rig.run(line);
        assert_eq!(rig.events(), expected, "{line}");
    }
}

/// The last byte of the header says whether the estimate holds.
#[test]
fn the_estimate_is_kept_until_a_register_changes() {
    let mut rig = Rig::new();
    for dense in [false, true] {
        rig.run("DEL k");
        rig.run("PFADD k a b c");
        if dense {
            rig.run("PFDEBUG TODENSE k");
        }
        for (line, stale) in [
            ("PFCOUNT k", false),
            ("PFADD k a b c", false),
            ("PFADD k 1 2 3", true),
        ] {
            rig.run(line);
            let on = if stale { ":1" } else { ":0" };
            assert_eq!(rig.run("GETBIT k 120"), on, "{line}");
        }
    }
}

#[test]
fn what_registers_will_need_is_known_before() {
    let mut rig = Rig::new();
    rig.keyspace.rules().maxmemory.store(10_000, Relaxed);
    assert_eq!(rig.run("PFADD k x"), OOM);
    assert_eq!(rig.run("PFMERGE k nope"), OOM);
    assert_eq!(rig.run("PFCOUNT k"), ":0");
}
