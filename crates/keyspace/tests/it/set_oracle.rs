//! Sets beside a stock redis-server: the same members, the same results, the same refusals.

use std::sync::atomic::Ordering::Relaxed;

use tidewheel_keyspace::PackedLimit;
use tidewheel_resp::Reply;

use crate::common::{Rig, show};
use crate::oracle::{Dice, Oracle};

/// Runs a line on both; members may come in any order.
#[track_caller]
fn agree(redis: &mut Oracle, rig: &mut Rig, line: &str) {
    let words: Vec<&[u8]> = line.split_whitespace().map(str::as_bytes).collect();
    let sorted = |reply: Reply| match reply {
        Reply::Array(items) => {
            let mut items: Vec<_> = items.iter().map(show).collect();
            items.sort();
            items.join(" ")
        }
        other => show(&other),
    };
    let (ours, theirs) = (sorted(rig.words(&words)), sorted(redis.words(&words)));
    assert_eq!(ours, theirs, "{line}");
}

fn key(dice: &mut Dice) -> &'static str {
    dice.pick::<&str>(&["a", "b", "c", "d", "e", "none"])
}

fn keys(dice: &mut Dice) -> String {
    let n = 1 + dice.below(4);
    let keys: Vec<_> = (0..n).map(|_| key(dice)).collect();
    keys.join(" ")
}

fn member(dice: &mut Dice, members: u64) -> String {
    let n = dice.below(members);
    match dice.below(20) {
        0 => format!("m{n}"),
        _ => n.to_string(),
    }
}

fn call(dice: &mut Dice, members: u64) -> String {
    let keys = keys(dice);
    match dice.below(12) {
        0 => format!("SINTER {keys}"),
        1 => format!("SUNION {keys}"),
        2 => format!("SDIFF {keys}"),
        3 => format!("SINTERSTORE d {keys}"),
        4 => format!("SUNIONSTORE d {keys}"),
        5 => format!("SDIFFSTORE d {keys}"),
        6 => {
            let n = keys.split(' ').count();
            format!("SINTERCARD {n} {keys} LIMIT {}", dice.below(9))
        }
        7 => format!("SREM {} {}", key(dice), member(dice, members)),
        8 if dice.below(9) == 0 => format!("DEL {}", key(dice)),
        _ => {
            let key = *dice.pick(&["a", "b", "c", "e"]);
            let added: Vec<_> = (0..8).map(|_| member(dice, members)).collect();
            format!("SADD {key} {}", added.join(" "))
        }
    }
}

#[test]
fn sets_are_combined_as_there() {
    for (members, packed, seed) in [(12, 128, 31), (90, 0, 32), (3_000, 128, 33)] {
        let Some(mut redis) = Oracle::start("--set-max-intset-entries 40") else {
            return;
        };
        let (mut rig, mut dice) = (Rig::new(), Dice::new(seed));
        let packing = &rig.keyspace.rules().packing;
        packing.intset_entries.store(40, Relaxed);
        let (entries, value) = (packed, 64);
        packing.set.set(PackedLimit { entries, value });
        for _ in 0..4_000 {
            let line = call(&mut dice, members);
            agree(&mut redis, &mut rig, &line);
            agree(&mut redis, &mut rig, "SMEMBERS d");
            // Version 7.0 has no packed sets but those of integers, and keeps the form of what
            // SDIFFSTORE begins with.
            if packed == 0 && !line.starts_with("SDIFF") && line.contains("STORE") {
                agree(&mut redis, &mut rig, "OBJECT ENCODING d");
            }
        }
    }
}

/// What is refused, and in which words.
#[test]
fn calls_on_sets_are_refused_as_there() {
    let Some(mut redis) = Oracle::start("") else {
        return;
    };
    let mut rig = Rig::new();
    for line in [
        "SADD s a b",
        "SET str 1",
        "SINTER",
        "SINTER str",
        "SINTER none str",
        "SINTER str none",
        "SUNION none str",
        "SDIFF none str",
        "SDIFF s str",
        "SINTERSTORE d",
        "SINTERSTORE d none str",
        "SUNIONSTORE d s str",
        "SDIFFSTORE d none str",
        "SDIFFSTORE str none",
        "EXISTS str",
        "SET str 1",
        "SINTERCARD 0 s",
        "SINTERCARD -1 s",
        "SINTERCARD x s",
        "SINTERCARD 2 s",
        "SINTERCARD 9223372036854775807 s",
        "SINTERCARD 1 s s",
        "SINTERCARD 1 s LIMIT",
        "SINTERCARD 1 s LIMIT -1",
        "SINTERCARD 1 s LIMIT x",
        "SINTERCARD 1 s LIMIT 1 LIMIT 0",
        "SINTERCARD 1 s limit 1",
        "SINTERCARD 2 none str",
        "SINTERCARD 2 none str LIMIT x",
        "SSCAN s x",
        "SSCAN s 0 COUNT 0",
        "SSCAN s 0 COUNT x",
        "SSCAN s 0 MATCH",
        "SSCAN s 0 MATCH x*",
        "SSCAN s 0 TYPE set",
        "SSCAN none 0",
        "SSCAN none x",
        "SSCAN str 0",
        "HSET h f v",
        "HSCAN h 0",
        "HSCAN h 0 MATCH x",
        "HSCAN h x",
        "HSCAN str 0",
        "HSCAN none 0 COUNT x",
        "HSCAN h 0 COUNT 0",
    ] {
        agree(&mut redis, &mut rig, line);
    }
}
