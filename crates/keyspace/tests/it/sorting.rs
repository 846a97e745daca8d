//! SORT: what it refuses, and what it stores.

use std::sync::atomic::Ordering::Relaxed;

use crate::common::{OOM, Rig};

#[test]
fn hashes_and_strings_are_not_sorted_and_words_are_no_numbers() {
    let mut rig = Rig::new();
    rig.script(
        "
        SORT nope -> []
        SORT_RO nope BY w_* GET # LIMIT 0 5 DESC ALPHA -> []
        SORT nope STORE to -> :0
        SET s v -> OK
        SORT s -> -WRONGTYPE Operation against a key holding the wrong kind of value
        HSET h f v -> :1
        SORT_RO h -> -WRONGTYPE Operation against a key holding the wrong kind of value
        SORT nope STORE s -> :0
        EXISTS s -> :0
        SORT_RO nope STORE s -> -ERR syntax error
        SORT nope LIMIT 1 -> -ERR syntax error
        SORT nope LIMIT a b -> -ERR value is not an integer or out of range
        SORT nope BY -> -ERR syntax error
        SORT nope BOGUS -> -ERR syntax error
        ",
    );
    // A list of `x` and `10`.
    let payload = b"\x12\x01\x02\x0c\x0c\0\0\0\x02\0\x81x\x02\x0a\x01\xff\x0a\0........";
    let skips = &rig.keyspace.rules().skip_checksums;
    skips.store(true, Relaxed);
    rig.words(&[b"RESTORE", b"l", b"0", payload]);
    rig.script(
        "
        TYPE l -> list
        SORT l -> -ERR One or more scores can't be converted into double
        SORT l BY w_* -> ['10' 'x']
        SORT l ALPHA DESC -> ['x' '10']
        SET w_x -1 -> OK
        SORT l BY w_* GET w_* GET # -> ['-1' 'x' nil '10']
        SORT l BY w_* STORE to -> :2
        TYPE to -> list
        SORT_RO to BY nosort -> ['x' '10']
        ",
    );
    let no_fields = "SORT l ALPHA BY h*->f GET h->f GET h*->";
    assert_eq!(rig.run(no_fields), "[nil nil nil nil]");
    rig.notify("KEA");
    rig.run("SORT l ALPHA STORE to");
    assert_eq!(rig.events(), ["0:sortstore:to"]);
    rig.run("SORT l ALPHA LIMIT 5 5 STORE to");
    assert_eq!(rig.events(), ["0:del:to"]);
}

#[test]
fn the_key_of_the_result_is_one_of_the_keys() {
    Rig::new().script(
        "
        COMMAND GETKEYS SORT abc STORE def -> ['abc' 'def']
        COMMAND GETKEYS SORT abc STORE a STORE b BY store GET store LIMIT store x -> ['abc' 'b']
        COMMAND GETKEYS SORT abc STORE -> ['abc']
        COMMAND GETKEYS SORT_RO abc -> ['abc']
        ",
    );
}

/// Elements of a byte each stood for values of a hundred thousand.
#[test]
fn a_result_that_exceeds_the_limit_is_refused() {
    let mut rig = Rig::new();
    for i in 0..9 {
        rig.run(&format!("SADD k {i}"));
        rig.words(&[b"SET", format!("v_{i}").as_bytes(), &vec![b'x'; 100_000]]);
    }
    let limit = rig.keyspace.used_memory() + 500_000;
    rig.keyspace.rules().maxmemory.store(limit, Relaxed);
    assert_eq!(rig.run("SORT k GET v_* STORE to"), OOM);
    assert_eq!(rig.run("SORT k GET v_* LIMIT 0 3 STORE to"), ":3");
    assert!(rig.keyspace.used_memory() <= limit);
}
