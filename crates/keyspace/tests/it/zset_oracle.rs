//! Sorted sets beside a stock redis-server: equal replies to calls drawn at random.

use crate::common::Rig;
use crate::oracle::{Dice, Oracle};

/// Scores that both versions of the server print alike.
fn score(dice: &mut Dice) -> String {
    match dice.below(11) {
        0 => "inf".to_owned(),
        1 => "-inf".to_owned(),
        2 => "(".to_owned() + &dice.below(20).to_string(),
        3 => "x".to_owned(),
        4 => "1e3".to_owned(),
        5 => format!("{}.5", dice.below(20)),
        _ => (dice.below(40) as i64 - 10).to_string(),
    }
}

fn member(dice: &mut Dice) -> String {
    format!("m{}", dice.below(40))
}

fn lex(dice: &mut Dice) -> String {
    let edge = *dice.pick(&["[", "(", "-", "+", "["]);
    match edge {
        "-" | "+" => edge.to_owned(),
        edge => edge.to_owned() + &member(dice),
    }
}

fn rank(dice: &mut Dice) -> i64 {
    dice.below(60) as i64 - 30
}

fn key(dice: &mut Dice) -> &'static str {
    let keys: [&str; 6] = ["z", "z", "z", "y", "none", "s"];
    keys[dice.below(6) as usize]
}

fn limit(dice: &mut Dice) -> String {
    match dice.below(3) {
        0 => format!("LIMIT {} {}", rank(dice) / 5, rank(dice) / 3),
        _ => String::new(),
    }
}

fn change(dice: &mut Dice) -> String {
    let (key, member_of, score_of) = (key(dice), member(dice), score(dice));
    match dice.below(16) {
        0..7 => {
            let rule = *dice.pick(&[
                "", "", "NX", "XX", "GT", "LT", "CH", "INCR", "GT CH", "XX INCR",
            ]);
            let more = match dice.below(3) {
                0 => format!("{} {}", score(dice), member(dice)),
                _ => String::new(),
            };
            format!("ZADD {key} {rule} {score_of} {member_of} {more}")
        }
        7 => format!("ZINCRBY {key} {score_of} {member_of}"),
        8 | 9 => format!("ZREM {key} {member_of} {}", member(dice)),
        10 => format!("ZPOPMIN {key} {}", dice.below(3)),
        11 => format!("ZPOPMAX {key}"),
        12 => format!("ZREMRANGEBYSCORE {key} {score_of} {}", score(dice)),
        13 => {
            let start = rank(dice);
            format!("ZREMRANGEBYRANK {key} {start} {}", start + 2)
        }
        14 => format!("ZRANGESTORE y {key} {} {}", rank(dice), rank(dice)),
        _ => format!("ZMPOP 2 none {key} {} COUNT 2", dice.pick(&["MIN", "MAX"])),
    }
}

fn look(dice: &mut Dice) -> String {
    let (key, from, to) = (key(dice), score(dice), score(dice));
    let (first, last, limit) = (rank(dice), rank(dice), limit(dice));
    let (rev, scores) = (*dice.pick(&["", "REV"]), *dice.pick(&["", "WITHSCORES"]));
    match dice.below(14) {
        0 | 1 => format!("ZRANGE {key} {first} {last} {rev} {scores}"),
        2 | 3 => format!("ZRANGE {key} {from} {to} BYSCORE {rev} {scores} {limit}"),
        4 => format!("ZREVRANGE {key} {first} {last} {scores}"),
        5 => format!("ZRANGEBYSCORE {key} {from} {to} {scores} {limit}"),
        6 => format!("ZREVRANGEBYSCORE {key} {from} {to} {limit} {scores}"),
        7 => format!("ZCOUNT {key} {from} {to}"),
        8 => format!("ZRANK {key} {}", member(dice)),
        9 => format!("ZREVRANK {key} {}", member(dice)),
        10 => format!("ZSCORE {key} {}", member(dice)),
        11 => format!("ZMSCORE {key} {} {}", member(dice), member(dice)),
        12 => format!("ZRANGE {key} 0 -1 {rev} WITHSCORES"),
        _ => format!("ZCARD {key}"),
    }
}

fn compare(settings: &str, limits: (u32, u32), seed: u64) {
    let Some(mut redis) = Oracle::start(settings) else {
        return;
    };
    let (mut rig, mut dice) = (Rig::new(), Dice::new(seed));
    let (entries, value) = limits;
    let limit = tidewheel_keyspace::PackedLimit { entries, value };
    rig.keyspace.rules().packing.zset.set(limit);
    redis.agrees_on(&mut rig, "SET s 1");
    for round in 0..6_000 {
        let line = change(&mut dice);
        redis.agrees_on(&mut rig, &line);
        for _ in 0..2 {
            let line = look(&mut dice);
            redis.agrees_on(&mut rig, &line);
        }
        if round % 50 == 0 {
            redis.agrees_on(&mut rig, "OBJECT ENCODING z");
        }
        if round % 1_000 == 999 {
            redis.agrees_on(&mut rig, "DEL z y");
        }
    }
}

#[test]
fn packed_sorted_sets_answer_as_there() {
    compare("", (128, 64), 21);
}

#[test]
fn large_sorted_sets_answer_as_there() {
    compare("--zset-max-listpack-entries 4", (4, 64), 22);
}

#[test]
fn ranges_of_members_answer_as_there() {
    for entries in [4, 128] {
        let settings = format!("--zset-max-listpack-entries {entries}");
        let Some(mut redis) = Oracle::start(&settings) else {
            return;
        };
        let (mut rig, mut dice) = (Rig::new(), Dice::new(23));
        let packed = tidewheel_keyspace::PackedLimit { entries, value: 64 };
        rig.keyspace.rules().packing.zset.set(packed);
        for _ in 0..1_500 {
            let line = format!("ZADD z 0 {}", member(&mut dice));
            redis.agrees_on(&mut rig, &line);
            let (min, max, limit) = (lex(&mut dice), lex(&mut dice), limit(&mut dice));
            let line = match dice.below(6) {
                0 => format!("ZRANGEBYLEX z {min} {max} {limit}"),
                1 => format!("ZREVRANGEBYLEX z {min} {max} {limit}"),
                2 => format!("ZRANGE z {min} {max} BYLEX {limit}"),
                3 => format!("ZRANGE z {min} {max} BYLEX REV {limit}"),
                4 => format!("ZLEXCOUNT z {min} {max}"),
                _ if dice.below(4) == 0 => format!("ZREMRANGEBYLEX z {min} {max}"),
                _ => format!("ZRANGESTORE y z {min} {max} BYLEX {limit}"),
            };
            redis.agrees_on(&mut rig, &line);
            redis.agrees_on(&mut rig, "ZRANGE y 0 -1");
        }
    }
}

/// What is refused, and in which words.
#[test]
fn calls_are_refused_as_there() {
    let Some(mut redis) = Oracle::start("") else {
        return;
    };
    let mut rig = Rig::new();
    for line in [
        "SET s 1",
        "ZADD z 1 a 2 b",
        "ZADD z",
        "ZADD z 1",
        "ZADD z NX a",
        "ZADD z NX",
        "ZADD s NX XX 1 a",
        "ZADD s x a",
        "ZADD z 1e400 a",
        "ZADD z +5 b",
        "ZADD z 1 a INCR",
        "ZADD z INCR 1 a b",
        "ZRANGE z 0",
        "ZRANGE z 1.5 2",
        "ZRANGE z 0 1 LIMIT 0",
        "ZRANGE z 0 1 LIMIT 0 -1",
        "ZRANGE z 0 1 BYSCORE LIMIT 0 x",
        "ZRANGE z 0 1 BYSCORE LIMIT x 0",
        "ZRANGE z 0 1 BYSCORE LIMIT -1 5",
        "ZRANGE s x y BYSCORE",
        "ZRANGE none x y BYSCORE",
        "ZRANGEBYSCORE z ( 5",
        "ZRANGEBYSCORE z 1e400 5",
        "ZRANGEBYSCORE z -1e400 5",
        "ZRANGEBYSCORE z nan 5",
        "ZRANGEBYSCORE z (inf 5",
        "ZRANGEBYLEX z - + WITHSCORES",
        "ZRANGEBYLEX z +a -",
        "ZRANGEBYLEX z a b",
        "ZCOUNT s x y",
        "ZLEXCOUNT s x y",
        "ZREMRANGEBYRANK s x y",
        "ZREMRANGEBYSCORE s x y",
        "ZPOPMIN s -1",
        "ZPOPMIN none -1",
        "ZPOPMIN none 0",
        "ZPOPMIN s 0",
        "ZPOPMIN z x",
        "ZPOPMIN z 1 2",
        "ZMPOP x z MIN",
        "ZMPOP -1 z MIN",
        "ZMPOP 1 z",
        "ZMPOP 1 s MIN",
        "ZMPOP 1 none MIN",
        "ZMPOP 2 none s MIN COUNT 1",
        "ZMPOP 1 z MIN COUNT x",
        "ZMPOP 1 z MIN COUNT",
        "ZMPOP 5 z MIN",
        "ZRANDMEMBER z x",
        "ZRANDMEMBER s",
        "ZRANDMEMBER z 1 X",
        "ZRANDMEMBER z 1 WITHSCORES X",
        "ZRANDMEMBER z -9223372036854775808",
        "ZRANDMEMBER z -9223372036854775807 WITHSCORES",
        "ZSCAN z 0",
        "ZSCAN z 0 COUNT x",
        "ZSCAN z 0 COUNT 0",
        "ZSCAN z 0 MATCH",
        "ZSCAN z 0 MATCH a*",
        "ZSCAN z x",
        "ZSCAN none x",
        "ZSCAN none 0 COUNT 0",
        "ZSCAN s 0 COUNT 0",
        "ZSCAN z 0 TYPE zset",
        "ZINCRBY z x a",
        "ZINCRBY s x a",
        "ZINCRBY z 1.5 a",
        "ZSCORE s a",
        "ZRANK s a",
        "ZREM s a",
        "ZRANGESTORE d s 0 -1",
        "ZRANGESTORE d z 0",
        "ZRANGESTORE s z 0 -1",
        "ZRANGE s 0 -1",
        "ZUNION 0 z",
        "ZUNION x z",
        "ZINTER -1 z",
        "ZDIFF 2 z",
        "ZUNION 9223372036854775807 z",
        "ZINTERCARD 0 z",
        "ZINTERCARD 1 z LIMIT -1",
        "ZINTERCARD 1 z LIMIT x",
        "ZINTERCARD 1 z LIMIT",
        "ZINTERCARD 1 z WITHSCORES",
        "ZUNIONSTORE d 0 z",
        "ZUNIONSTORE d 1 z WITHSCORES",
        "ZUNIONSTORE d 1 z WEIGHTS",
        "ZUNIONSTORE d 1 z WEIGHTS x",
        "ZUNIONSTORE d 2 z z WEIGHTS 1",
        "ZUNIONSTORE d 1 z AGGREGATE",
        "ZUNIONSTORE d 1 z AGGREGATE AVG",
        "ZDIFF 1 z WEIGHTS 1",
        "ZDIFFSTORE d 1 z AGGREGATE SUM",
        "ZINTERSTORE d 2 z s X",
        "ZINTER 2 none s",
        "ZUNION 1 z WITHSCORES WITHSCORES",
    ] {
        redis.agrees_on(&mut rig, line);
    }
}

fn combination(dice: &mut Dice) -> String {
    let keys: Vec<&str> = (0..=dice.below(3)).map(|_| set_key(dice)).collect();
    let (n, keys) = (keys.len(), keys.join(" "));
    let name = *dice.pick(&["ZUNION", "ZINTER", "ZDIFF", "ZINTERCARD"]);
    let mut words = String::new();
    if ["ZUNION", "ZINTER"].contains(&name) && dice.below(2) == 0 {
        let weights = (0..n).map(|_| format!(" {}", 1 + dice.below(4)));
        words = " WEIGHTS".to_owned() + &weights.collect::<String>();
        words += *dice.pick(&["", " AGGREGATE MIN", " AGGREGATE max", " AGGREGATE SUM"]);
    }
    match dice.below(3) {
        0 if name != "ZINTERCARD" => format!("{name}STORE d {n} {keys}{words}"),
        1 if name == "ZINTERCARD" => format!("{name} {n} {keys} LIMIT {}", dice.below(4)),
        _ if name == "ZINTERCARD" => format!("{name} {n} {keys}"),
        _ => format!("{name} {n} {keys}{words} WITHSCORES"),
    }
}

fn set_key(dice: &mut Dice) -> &'static str {
    ["x", "y", "s", "t", "none"][dice.below(5) as usize]
}

#[test]
fn combinations_answer_as_there() {
    let Some(mut redis) = Oracle::start("") else {
        return;
    };
    let (mut rig, mut dice) = (Rig::new(), Dice::new(24));
    for round in 0..3_000 {
        let (first, second) = (score(&mut dice), member(&mut dice));
        redis.agrees_on(
            &mut rig,
            &format!("ZADD {} {first} {second}", ["x", "y"][round % 2]),
        );
        redis.agrees_on(
            &mut rig,
            &format!("SADD {} {second}", ["s", "t"][round / 2 % 2]),
        );
        if round % 100 == 99 {
            redis.agrees_on(&mut rig, &format!("DEL {}", set_key(&mut dice)));
        }
        let line = combination(&mut dice);
        redis.agrees_on(&mut rig, &line);
        redis.agrees_on(&mut rig, "ZRANGE d 0 -1 WITHSCORES");
    }
}
