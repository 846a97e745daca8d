//! HyperLogLogs.

use std::sync::atomic::Ordering::Relaxed;

use tidewheel_resp::Reply;

use crate::common::Rig;
use crate::redis::Redis;
use tidewheel_oracle::Dice;

/// The values are equal byte by byte, so each server reads what the other one wrote.
#[test]
fn registers_are_kept_counted_and_merged_as_there() {
    let Some(mut redis) = Redis::start("--hll-sparse-max-bytes 600") else {
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

/// Sparse ones and dense ones with a few wrong bytes are refused or read as there, and nothing
/// panics.
#[test]
fn corrupt_registers_are_refused_as_there() {
    let Some(mut redis) = Redis::start("") else {
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
