//! Bitmaps.

use super::edge;
use crate::common::Rig;
use crate::redis::Redis;
use tidewheel_oracle::Dice;

#[test]
fn bits_are_counted_found_and_combined_as_there() {
    let Some(mut redis) = Redis::start("") else {
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
    let Some(mut redis) = Redis::start("") else {
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
