//! Commands over strings, beside a stock redis-server: equal replies, equal values.

use std::sync::atomic::Ordering::Relaxed;

use tidewheel_resp::Reply;

use crate::common::Rig;
use crate::oracle::{Dice, Oracle};

/// A number near those at which things change.
fn edge(dice: &mut Dice, most: i64) -> String {
    let number = match dice.below(8) {
        0 => dice.number() as i64,
        1 => -1 - dice.below(most as u64 + 1) as i64,
        2 => most - 1 + dice.below(3) as i64,
        3 => dice.below(4) as i64 - 2,
        _ => dice.below(most as u64 + 1) as i64,
    };
    number.to_string()
}

#[test]
fn bits_are_counted_found_and_combined_as_there() {
    let Some(mut redis) = Oracle::start("") else {
        return;
    };
    let (mut rig, mut dice) = (Rig::new(), Dice::new(7));
    for _ in 0..1_000 {
        for key in [&b"a"[..], b"b", b"c"] {
            let value = dice.bytes(40);
            redis.agrees(&mut rig, &[b"SET", key, &value]);
        }
        for _ in 0..4 {
            let (start, end) = (edge(&mut dice, 340), edge(&mut dice, 340));
            let unit = dice.pick(&["BIT", "BYTE", ""]);
            let bit = dice.below(2);
            redis.agrees_on(&mut rig, &format!("BITCOUNT a {start} {end} {unit}"));
            redis.agrees_on(&mut rig, &format!("BITPOS a {bit} {start} {end} {unit}"));
            redis.agrees_on(&mut rig, &format!("BITPOS a {bit} {start}"));
            redis.agrees_on(&mut rig, &format!("BITPOS a {bit}"));
        }
        let op = dice.pick(&["AND", "OR", "XOR", "NOT"]);
        let more = if *op == "NOT" { "" } else { "b nope a c" };
        redis.agrees_on(&mut rig, &format!("BITOP {op} b a {more}"));
        redis.agrees_on(&mut rig, "GET b");
    }
}

#[test]
fn bits_and_fields_are_read_and_written_as_there() {
    let Some(mut redis) = Oracle::start("") else {
        return;
    };
    let (mut rig, mut dice) = (Rig::new(), Dice::new(8));
    for round in 0..6_000 {
        if round % 20 == 0 {
            let value = dice.bytes(20);
            redis.agrees(&mut rig, &[b"SET", b"k", &value]);
        }
        let (offset, value) = (edge(&mut dice, 150), edge(&mut dice, 2));
        redis.agrees_on(&mut rig, &format!("SETBIT k {} {value}", dice.below(170)));
        redis.agrees_on(&mut rig, &format!("GETBIT k {offset}"));
        let line: String = (0..=dice.below(4)).map(|_| access(&mut dice)).collect();
        redis.agrees_on(&mut rig, &format!("BITFIELD k{line}"));
        redis.agrees_on(&mut rig, &format!("BITFIELD_RO k{line}"));
        redis.agrees_on(&mut rig, "GET k");
    }
}

fn access(dice: &mut Dice) -> String {
    let sign = *dice.pick(&["u", "i"]);
    let bits = dice.below(66);
    let hash = *dice.pick(&["", "", "#"]);
    let offset = if hash.is_empty() {
        edge(dice, 150)
    } else {
        dice.below(4).to_string()
    };
    let most = 1 << dice.below(62);
    let number = edge(dice, most);
    let rule = *dice.pick(&["WRAP", "SAT", "FAIL"]);
    match dice.below(4) {
        0 => format!(" GET {sign}{bits} {hash}{offset}"),
        1 => format!(" SET {sign}{bits} {hash}{offset} {number}"),
        2 => format!(" INCRBY {sign}{bits} {hash}{offset} {number}"),
        _ => format!(" OVERFLOW {rule}"),
    }
}

/// The values are equal byte by byte, so each server reads what the other one wrote.
#[test]
fn registers_are_kept_counted_and_merged_as_there() {
    let Some(mut redis) = Oracle::start("--hll-sparse-max-bytes 600") else {
        return;
    };
    let (mut rig, mut dice) = (Rig::new(), Dice::new(9));
    let packing = &rig.keyspace.rules().packing;
    packing.hll_sparse_bytes.store(600, Relaxed);
    for round in 0..3_000 {
        let key = format!("k{}", dice.below(5));
        let elements = (0..dice.below(8)).map(|_| dice.below(3_000).to_string());
        let line = elements.fold(format!("PFADD {key}"), |line, element| {
            line + " " + &element
        });
        redis.agrees_on(&mut rig, &line);
        redis.agrees_on(&mut rig, &format!("PFDEBUG ENCODING {key}"));
        match round % 16 {
            0..4 => redis.agrees_on(&mut rig, &format!("GET {key}")),
            4..8 => redis.agrees_on(&mut rig, &format!("PFCOUNT {key}")),
            8 => redis.agrees_on(&mut rig, "PFCOUNT k0 k1 nope k2"),
            9 => redis.agrees_on(&mut rig, &format!("PFDEBUG DECODE {key}")),
            10 => {
                redis.agrees_on(&mut rig, &format!("PFMERGE to {key} k0"));
                redis.agrees_on(&mut rig, "PFCOUNT to")
            }
            11 => redis.agrees_on(&mut rig, "PFDEBUG GETREG to"),
            12 => redis.agrees_on(&mut rig, &format!("DEL {key} to")),
            _ => continue,
        };
    }
}

/// Sparse ones and dense ones with a few wrong bytes are refused or read as there, and nothing panics.
#[test]
fn corrupt_registers_are_refused_as_there() {
    let Some(mut redis) = Oracle::start("") else {
        return;
    };
    let (mut rig, mut dice) = (Rig::new(), Dice::new(10));
    for round in 0..4_000 {
        if round % 10 == 0 {
            let elements = (0..dice.below(200)).map(|_| dice.below(100_000).to_string());
            let line = elements.fold("PFADD k".to_owned(), |line, element| line + " " + &element);
            redis.agrees_on(&mut rig, "DEL k bad to");
            redis.agrees_on(&mut rig, &line);
        }
        let Reply::Bulk(mut bytes) = redis.agrees_on(&mut rig, "GET k") else {
            panic!("a string");
        };
        for _ in 0..=dice.below(3) {
            let at = dice.below(bytes.len() as u64 + 6) as usize;
            let byte = dice.number() as u8;
            match bytes.get_mut(at) {
                Some(old) => *old = byte,
                None => bytes.push(byte),
            }
        }
        redis.agrees(&mut rig, &[b"SET", b"bad", &bytes]);
        for line in [
            "PFCOUNT bad",
            "PFCOUNT bad k",
            "PFDEBUG TODENSE bad",
            "PFMERGE to k bad",
        ] {
            redis.agrees_on(&mut rig, line);
        }
        // A register may lie before the fault, and there elements before it stay added.
        rig.run(&format!("PFADD bad {}", dice.number()));
    }
}

/// Moves a value from there to here and back, as bytes; both say the same of it then.
fn move_both_ways(redis: &mut Oracle, rig: &mut Rig, look: &[u8]) {
    let Reply::Bulk(theirs) = redis.words(&[b"DUMP", b"k"]) else {
        panic!("a payload");
    };
    let restored = rig.words(&[b"RESTORE", b"k", b"0", &theirs, b"REPLACE"]);
    assert_eq!(restored, Reply::Simple("OK".to_owned()));
    redis.agrees(rig, &[look, b"k"]);
    let Reply::Bulk(ours) = rig.words(&[b"DUMP", b"k"]) else {
        panic!("a payload");
    };
    let restored = redis.words(&[b"RESTORE", b"k", b"0", &ours, b"REPLACE"]);
    assert_eq!(restored, Reply::Simple("OK".to_owned()));
    redis.agrees(rig, &[look, b"k"]);
}

#[test]
fn strings_are_dumped_and_restored_as_there() {
    let Some(mut redis) = Oracle::start("") else {
        return;
    };
    let (mut rig, mut dice) = (Rig::new(), Dice::new(11));
    for round in 0..600 {
        let value = match round % 3 {
            0 => dice.bytes(1 << (round % 18)),
            1 => edge(&mut dice, 1 << (round % 62)).into_bytes(),
            _ => format!("{:?}", vec![dice.below(50); 1 + round % 900]).into_bytes(),
        };
        redis.words(&[b"SET", b"k", &value]);
        move_both_ways(&mut redis, &mut rig, b"GET");
    }
}
