//! SORT.

use tidewheel_resp::Reply;

use super::edge;
use crate::common::Rig;
use crate::redis::Redis;
use tidewheel_oracle::Dice;

#[test]
fn elements_are_sorted_as_there() {
    let Some(mut redis) = Redis::start("") else {
        return;
    };
    let (mut rig, mut dice) = (Rig::new(), Dice::new(14));
    for i in 0..60 {
        let weight = dice.pick(&["5", "-1.5", "1e3", "", " 7", "5"]).to_string();
        for words in [
            vec!["SET".to_owned(), format!("w_{i}"), weight.clone()],
            vec!["SET".to_owned(), format!("o_{i}_x"), format!("object {i}")],
            vec!["HSET".to_owned(), format!("h_{i}"), "f".to_owned(), weight],
        ] {
            let words: Vec<&[u8]> = words.iter().map(String::as_bytes).collect();
            redis.agrees(&mut rig, &words);
        }
    }
    redis.agrees_on(&mut rig, "SET w_7 seven");
    redis.agrees_on(&mut rig, "DEL w_9 h_11");
    for round in 0..1_500 {
        if round % 10 == 0 {
            let kind = *dice.pick(&["list", "set", "zset"]);
            redis.words(&[b"DEL", b"k"]);
            for _ in 0..=dice.below(30) {
                let member = dice.below(60).to_string();
                redis.words(&match kind {
                    "list" => vec![&b"RPUSH"[..], b"k", member.as_bytes()],
                    "set" => vec![&b"SADD"[..], b"k", member.as_bytes()],
                    _ => vec![&b"ZADD"[..], b"k", b"1", member.as_bytes()],
                });
            }
            let Reply::Bulk(payload) = redis.words(&[b"DUMP", b"k"]) else {
                panic!("a payload");
            };
            rig.words(&[b"RESTORE", b"k", b"0", &payload, b"REPLACE"]);
        }
        let line = sort_call(&mut dice);
        redis.agrees_on(&mut rig, &line);
        if line.contains("STORE") {
            let (ours, theirs) = (rig.words(&[b"DUMP", b"to"]), redis.words(&[b"DUMP", b"to"]));
            let Reply::Bulk(ours) = ours else {
                assert_eq!(theirs, Reply::Null);
                continue;
            };
            redis.words(&[b"RESTORE", b"k2", b"0", &ours, b"REPLACE"]);
            let all = [b"k2", &b"to"[..]].map(|key| redis.words(&[b"LRANGE", key, b"0", b"-1"]));
            assert_eq!(all[0], all[1], "{line}");
        }
    }
}

fn sort_call(dice: &mut Dice) -> String {
    let by = *dice.pick(&["", "", "BY w_*", "BY h_*->f", "BY nope_*", "BY #"]);
    let get = *dice.pick(&[
        "",
        "",
        "GET #",
        "GET o_*_x GET #",
        "GET h_*->f",
        "GET w_* GET o_*",
        "GET x",
    ]);
    let order = *dice.pick(&["", "ASC", "DESC"]);
    let alpha = *dice.pick(&["ALPHA", ""]);
    let limit = match dice.below(3) {
        0 => format!("LIMIT {} {}", edge(dice, 30), edge(dice, 10)),
        _ => String::new(),
    };
    let store = *dice.pick(&["", "", "STORE to"]);
    // Elements that no BY distinguishes have no order there.
    let by = if alpha == "ALPHA" && by != "BY w_*" {
        ""
    } else {
        by
    };
    let by = if alpha == "ALPHA" && by == "BY w_*" {
        "BY o_*_x"
    } else {
        by
    };
    format!("SORT k {by} {limit} {get} {order} {alpha} {store}")
}
