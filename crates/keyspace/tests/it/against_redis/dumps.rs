//! DUMP and RESTORE.

use std::sync::atomic::Ordering::Relaxed;

use tidewheel_resp::Reply;

use super::edge;
use crate::common::{Rig, show};
use crate::redis::Redis;
use tidewheel_oracle::Dice;

/// Moves a value from there to here and back, as bytes; both say the same of it then.
fn move_both_ways(redis: &mut Redis, rig: &mut Rig, look: &[u8]) {
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
    let Some(mut redis) = Redis::start("") else {
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

/// The call that shows all of a value, and whether its order means something.
fn content(redis: &mut Redis, kind: &str) -> String {
    let look: &[&[u8]] = match kind {
        "hash" => &[b"HGETALL", b"k"],
        "list" => &[b"LRANGE", b"k", b"0", b"-1"],
        "set" => &[b"SMEMBERS", b"k"],
        _ => &[b"ZRANGE", b"k", b"0", b"-1", b"WITHSCORES"],
    };
    let Reply::Array(items) = redis.words(look) else {
        panic!("{kind}: an array");
    };
    let step = if kind == "hash" { 2 } else { 1 };
    let mut items: Vec<_> = items.chunks(step).map(|item| format!("{item:?}")).collect();
    if matches!(kind, "hash" | "set") {
        items.sort();
    }
    items.concat()
}

/// A member, a score or a value: numbers at the edges of their widths, short and long texts.
fn word(dice: &mut Dice, longest: u64) -> Vec<u8> {
    match dice.below(6) {
        0 => edge(dice, 130).into_bytes(),
        1 => edge(dice, 70_000).into_bytes(),
        2 => (dice.number() as i64).to_string().into_bytes(),
        3 => dice.bytes(longest),
        _ => format!("word:{}", dice.below(100_000)).into_bytes(),
    }
}

fn fill(redis: &mut Redis, dice: &mut Dice, kind: &str, n: u64, longest: u64) {
    redis.words(&[b"DEL", b"k"]);
    for _ in 0..n {
        let (word, value) = (word(dice, longest), word(dice, longest));
        let score = [&b"1.5"[..], b"-inf", b"3", b"1e300", b"-0.1"];
        let score = score[dice.below(5) as usize];
        redis.words(&match kind {
            "hash" => vec![&b"HSET"[..], b"k", &word, &value],
            "list" => vec![&b"RPUSH"[..], b"k", &word],
            "set" => vec![&b"SADD"[..], b"k", &word],
            _ => vec![&b"ZADD"[..], b"k", score, &word],
        });
    }
}

/// All types, all sizes: from there to here, and back.
#[test]
fn collections_are_dumped_and_restored_as_there() {
    let Some(mut redis) = Redis::start("") else {
        return;
    };
    let (mut rig, mut dice) = (Rig::new(), Dice::new(12));
    for kind in ["hash", "list", "set", "zset"] {
        for n in [1, 2, 10, 127, 129, 600, 3_000] {
            for longest in [10, 64, 70, 5_000] {
                let n = if longest == 5_000 { n.min(200) } else { n };
                fill(&mut redis, &mut dice, kind, n, longest);
                let before = content(&mut redis, kind);
                let Reply::Bulk(theirs) = redis.words(&[b"DUMP", b"k"]) else {
                    panic!("a payload");
                };
                let restored = rig.words(&[b"RESTORE", b"k", b"0", &theirs, b"REPLACE"]);
                assert_eq!(show(&restored), "OK", "{kind} of {n}");
                assert_eq!(rig.run("TYPE k"), kind);
                let Reply::Bulk(ours) = rig.words(&[b"DUMP", b"k"]) else {
                    panic!("a payload");
                };
                let restored = redis.words(&[b"RESTORE", b"k", b"0", &ours, b"REPLACE"]);
                assert_eq!(show(&restored), "OK", "{kind} of {n}");
                assert_eq!(content(&mut redis, kind), before, "{kind} of {n}");
            }
        }
    }
}

/// Sets of numbers of each width.
#[test]
fn sets_of_numbers_are_dumped_and_restored_as_there() {
    let Some(mut redis) = Redis::start("") else {
        return;
    };
    let mut rig = Rig::new();
    for most in [10, 40_000, 3_000_000_000_i64, i64::MAX] {
        redis.words(&[b"DEL", b"k"]);
        for number in [0, 1, -1, most, -most, most / 2] {
            redis.words(&[b"SADD", b"k", number.to_string().as_bytes()]);
        }
        let before = content(&mut redis, "set");
        let Reply::Bulk(theirs) = redis.words(&[b"DUMP", b"k"]) else {
            panic!("a payload");
        };
        rig.words(&[b"RESTORE", b"k", b"0", &theirs, b"REPLACE"]);
        let Reply::Bulk(ours) = rig.words(&[b"DUMP", b"k"]) else {
            panic!("a payload");
        };
        redis.words(&[b"RESTORE", b"k", b"0", &ours, b"REPLACE"]);
        assert_eq!(content(&mut redis, "set"), before);
        redis.agrees_on(&mut rig, "OBJECT ENCODING k");
    }
}

/// What a stock server wrote, with a few wrong bytes and the right checksum: nothing panics, and
/// what is taken can be written again.
#[test]
fn changed_payloads_of_a_stock_server_do_no_harm() {
    let Some(mut redis) = Redis::start("") else {
        return;
    };
    let (mut rig, mut dice) = (Rig::new(), Dice::new(13));
    rig.keyspace.rules().skip_checksums.store(true, Relaxed);
    let mut taken = 0;
    for round in 0..1_200 {
        if round % 12 == 0 {
            let kind = dice.pick(&["hash", "list", "set", "zset"]);
            let n = 1 + dice.below(150);
            fill(&mut redis, &mut dice, kind, n, 70);
        }
        let Reply::Bulk(mut payload) = redis.words(&[b"DUMP", b"k"]) else {
            panic!("a payload");
        };
        for _ in 0..=dice.below(3) {
            let end = payload.len() as u64 - 10;
            let end = *dice.pick(&[end, end.min(30)]);
            let at = dice.below(end);
            payload[at as usize] = dice.number() as u8;
        }
        if show(&rig.words(&[b"RESTORE", b"k", b"0", &payload, b"REPLACE"])) == "OK" {
            taken += 1;
            let Reply::Bulk(ours) = rig.words(&[b"DUMP", b"k"]) else {
                panic!("a payload");
            };
            let again = rig.words(&[b"RESTORE", b"k", b"0", &ours, b"REPLACE"]);
            assert_eq!(show(&again), "OK");
            redis.words(&[b"RESTORE", b"other", b"0", &ours, b"REPLACE"]);
        }
    }
    assert!(taken > 50, "{taken}");
}
