//! Deadlines of members: exact, without anybody touching them, beside the deadline of the key.

use std::collections::BTreeMap;

use tidewheel_keyspace::{Options, PAUSED};

use crate::common::{Rig, START, call_at, show};
use crate::walks::Walker;

/// Fields of each form: packed beside the key, packed as an object, large.
const FORMS: [(&str, u64); 3] = [("beside", 5), ("packed", 300), ("large", 2_000)];

fn fill(rig: &mut Rig, name: &str, fields: u64) {
    for i in 0..fields {
        rig.run(&format!("HSET {name} field:{i} value:{i}"));
    }
}

#[test]
fn a_field_is_alive_one_tick_before_its_deadline_and_gone_at_it_though_nobody_asks() {
    for (name, fields) in FORMS {
        let mut rig = Rig::new();
        rig.notify("KEA");
        fill(&mut rig, name, fields);
        rig.events();
        rig.script(&format!(
            "HPEXPIRE {name} 10 FIELDS 2 field:0 field:1 -> [:1 :1]
             HPTTL {name} FIELDS 3 field:0 field:2 x -> [:10 :-1 :-2]
             HTTL {name} FIELDS 1 field:0 -> [:0]
             PTTL {name} -> :-1"
        ));
        assert_eq!(rig.next_deadline(), START + 10, "{name}");
        rig.pass(9);
        assert_eq!(rig.expire_all(), 0);
        rig.script(&format!(
            "HLEN {name} -> :{fields}\nHGET {name} field:0 -> 'value:0'"
        ));
        rig.pass(1);
        assert_eq!(rig.expire_all(), 2, "{name}");
        assert_eq!(
            rig.events(),
            [format!("0:hexpire:{name}"), format!("0:hexpired:{name}")]
        );
        rig.script(&format!(
            "HLEN {name} -> :{}\nHGET {name} field:0 -> nil",
            fields - 2
        ));
        assert_eq!(rig.next_deadline(), u64::MAX, "nothing is left to do");
    }
}

/// HSETEX and HGETEX took any time; HPEXPIRE took one millisecond more than Redis does.
#[test]
fn members_have_one_latest_deadline_whichever_command_sets_it() {
    let mut rig = Rig::new();
    let (last, end) = ((1_u64 << 46) - 1, 1_u64 << 46);
    rig.script(&format!(
        "HSETEX h PXAT {last} FIELDS 1 f v -> :1
         HGETEX h PXAT {last} FIELDS 1 f -> ['v']
         HPEXPIREAT h {last} FIELDS 1 f -> [:1]
         HSETEX h PXAT {end} FIELDS 1 f v -> -ERR invalid expire time in 'hsetex' command
         HGETEX h PXAT {end} FIELDS 1 f -> -ERR invalid expire time in 'hgetex' command
         HPEXPIREAT h {end} FIELDS 1 f -> -ERR invalid expire time in 'hpexpireat' command
         HPEXPIRETIME h FIELDS 1 f -> [:{last}]"
    ));
}

#[test]
fn a_command_meets_no_dead_field_though_no_pass_came_and_an_empty_hash_leaves() {
    for (name, fields) in FORMS {
        let mut rig = Rig::new();
        rig.notify("KEA");
        fill(&mut rig, name, fields);
        for i in 0..fields {
            rig.run(&format!(
                "HPEXPIRE {name} {} FIELDS 1 field:{i}",
                10 + i % 5
            ));
        }
        rig.events();
        rig.pass(12);
        let left = (0..fields).filter(|i| i % 5 > 2).count();
        rig.script(&format!("HLEN {name} -> :{left}"));
        rig.pass(2);
        rig.script(&format!("EXISTS {name} -> :0\nDBSIZE -> :0"));
        let mut events = rig.events();
        // Fields that leave in steps are announced with each.
        events.dedup();
        let expected = [format!("0:hexpired:{name}"), format!("0:del:{name}")];
        assert_eq!(events, expected);
        // The bound that others see is brought up to date by the next pass.
        assert_eq!(rig.expire_all(), 0);
        assert_eq!(rig.next_deadline(), u64::MAX);
    }
}

#[test]
fn a_walk_over_keys_shows_no_hash_whose_fields_are_all_dead_though_no_pass_came() {
    for look in ["KEYS *", "SCAN 0 COUNT 1000", "RANDOMKEY", "DEBUG DIGEST"] {
        let mut rig = Rig::new();
        rig.session.may_debug = true;
        let nothing = rig.run(look);
        for (name, fields) in FORMS {
            fill(&mut rig, name, fields);
            for i in 0..fields {
                rig.run(&format!("HPEXPIRE {name} 10 FIELDS 1 field:{i}"));
            }
        }
        rig.pass(10);
        assert_eq!(rig.run(look), nothing, "{look}");
    }
}

#[test]
fn the_key_and_its_fields_have_deadlines_of_their_own() {
    for (name, fields) in FORMS {
        let mut rig = Rig::new();
        fill(&mut rig, name, fields);
        rig.script(&format!(
            "PEXPIRE {name} 100 -> :1
             HPEXPIRE {name} 50 FIELDS 1 field:0 -> [:1]
             PTTL {name} -> :100
             PEXPIRE {name} 30 -> :1
             PTTL {name} -> :30
             PERSIST {name} -> :1
             PTTL {name} -> :-1
             PEXPIRE {name} 60 -> :1
             HPERSIST {name} FIELDS 2 field:0 field:1 -> [:1 :-1]
             PTTL {name} -> :60
             HPEXPIRE {name} 50 FIELDS 1 field:0 -> [:1]
             COPY {name} copy -> :1
             RENAME {name} renamed -> OK
             pass 50
             HLEN renamed -> :{left}
             HLEN copy -> :{left}
             PTTL renamed -> :10
             PTTL copy -> :10
             pass 10
             EXISTS renamed copy -> :0",
            left = fields - 1
        ));
    }
}

#[test]
fn conditions_past_times_and_wrong_calls_are_answered_as_by_the_public_server() {
    let mut rig = Rig::new();
    rig.script(
        "HSET h a 1 b 2 c 3 -> :3
         HPEXPIRE h 100 NX FIELDS 2 a x -> [:1 :-2]
         HPEXPIRE h 100 NX FIELDS 1 a -> [:0]
         HPEXPIRE h 50 GT FIELDS 2 a b -> [:0 :0]
         HPEXPIRE h 200 GT FIELDS 1 a -> [:1]
         HPEXPIRE h 50 LT FIELDS 2 a b -> [:1 :1]
         HPEXPIRE h 70 XX FIELDS 2 a c -> [:1 :0]
         HEXPIRETIME h FIELDS 1 a -> [:1700000000]
         HPEXPIRETIME h FIELDS 1 a -> [:1700000000070]
         HPEXPIREAT h 1 FIELDS 1 b -> [:2]
         HLEN h -> :2
         HEXPIRE none 1 FIELDS 2 a b -> [:-2 :-2]
         HTTL none FIELDS 1 a -> [:-2]
         HPEXPIRE h 1 FIELDS 2 a -> -ERR The `numfields` parameter must match the number of arguments
         HPEXPIRE h 1 FIELDS 0 a -> -ERR Parameter `numFields` should be greater than 0
         HPEXPIRE h 1 NX a b c -> -ERR Mandatory argument FIELDS is missing or not at the right position
         HPEXPIRE h -1 FIELDS 1 a -> -ERR invalid expire time, must be >= 0
         HPEXPIRE h 281474976710656 FIELDS 1 a -> -ERR invalid expire time in 'hpexpire' command
         HPERSIST h FIELDS 1 a -> [:1]
         HPERSIST h FIELDS 1 a -> [:-1]
         HGETEX h PX 30 FIELDS 2 a x -> ['1' nil]
         HPTTL h FIELDS 1 a -> [:30]
         HGETEX h PERSIST FIELDS 1 a -> ['1']
         HPTTL h FIELDS 1 a -> [:-1]
         HSETEX h PX 40 FIELDS 2 a 9 d 8 -> :1
         HPTTL h FIELDS 2 a d -> [:40 :40]
         HSETEX h FNX FIELDS 1 a 7 -> :0
         HSETEX h NX FIELDS 1 new 7 -> :0
         HSETEX new XX FIELDS 1 new 7 -> :0
         EXISTS new -> :0
         HSETEX new NX PX 40 FNX FIELDS 1 new 7 -> :1
         HSETEX new XX FIELDS 1 new 8 -> :1
         HSETEX new XX NX FIELDS 1 new 8 -> -ERR Only one of FXX or FNX arguments can be specified
         DEL new -> :1
         HSETEX h FXX KEEPTTL FIELDS 1 a 7 -> :1
         HPTTL h FIELDS 1 a -> [:40]
         HINCRBY h a 1 -> :8
         HPTTL h FIELDS 1 a -> [:40]
         HSET h a 1 -> :0
         HPTTL h FIELDS 1 a -> [:-1]
         HGETDEL h FIELDS 2 a x -> ['1' nil]
         HLEN h -> :2
         EXPIREMEMBER h c 5 ms -> :1
         HPTTL h FIELDS 1 c -> [:5]
         SET s 1 -> OK
         HPEXPIRE s 1 FIELDS 1 a -> -WRONGTYPE Operation against a key holding the wrong kind of value",
    );
}

#[test]
fn fields_that_are_told_to_live_for_no_time_leave_at_once() {
    let mut rig = Rig::new();
    rig.script(
        "HSET h a 1 b 2 c 3 -> :3
         HGETEX h EX 0 FIELDS 1 a -> ['1']
         HSETEX h PX 0 FIELDS 1 b 5 -> :1
         HGETEX h PXAT 0 FIELDS 1 x -> [nil]
         HGETALL h -> ['c' '3']
         HGETEX h EX -1 FIELDS 1 c -> -ERR invalid expire time, must be >= 0
         HSETEX h PXAT 0 FIELDS 1 c 1 -> :1
         EXISTS h -> :0",
    );
}

/// A model in virtual time: each field's end, the key's own end, what is there after each step.
#[test]
fn random_deadlines_of_fields_and_keys_agree_with_a_model() {
    for seed in 0..40_u64 {
        run_model(seed);
    }
}

#[derive(Default)]
struct Model {
    fields: BTreeMap<String, Option<u64>>,
    own: Option<u64>,
}

fn run_model(seed: u64) {
    let mut rig = Rig::new();
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = |n: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % n
    };
    let names = if seed.is_multiple_of(2) { 12 } else { 700 };
    let mut keys: BTreeMap<String, Model> = BTreeMap::new();
    for step in 0..600 {
        let (key, field) = (format!("key:{}", next(3)), format!("field:{}", next(names)));
        let ttl = 1 + next(60);
        let end = rig.time.tick + ttl;
        match next(12) {
            0..4 => {
                rig.run(&format!("HSET {key} {field} {step}"));
                keys.entry(key).or_default().fields.insert(field, None);
            }
            4..7 => {
                rig.run(&format!("HPEXPIRE {key} {ttl} FIELDS 1 {field}"));
                if let Some(old) = keys
                    .get_mut(&key)
                    .and_then(|key| key.fields.get_mut(&field))
                {
                    *old = Some(end);
                }
            }
            7 => {
                rig.run(&format!("PEXPIRE {key} {ttl}"));
                if let Some(model) = keys.get_mut(&key) {
                    model.own = Some(end);
                }
            }
            8 => {
                rig.run(&format!("HDEL {key} {field}"));
                if let Some(model) = keys.get_mut(&key) {
                    model.fields.remove(&field);
                }
            }
            9 => {
                rig.run(&format!("HPERSIST {key} FIELDS 1 {field}"));
                if let Some(old) = keys
                    .get_mut(&key)
                    .and_then(|key| key.fields.get_mut(&field))
                {
                    *old = None;
                }
            }
            10 => {
                rig.run(&format!("PERSIST {key}"));
                if let Some(model) = keys.get_mut(&key) {
                    model.own = None;
                }
            }
            _ => {
                rig.pass(next(25));
                if next(2) == 0 {
                    rig.expire_all();
                }
            }
        }
        let now = rig.time.tick;
        for model in keys.values_mut() {
            model
                .fields
                .retain(|_, end| end.is_none_or(|end| now < end));
        }
        keys.retain(|_, model| !model.fields.is_empty() && model.own.is_none_or(|own| now < own));
        compare(&mut rig, &keys, seed, step);
    }
}

fn compare(rig: &mut Rig, keys: &BTreeMap<String, Model>, seed: u64, step: i32) {
    let now = rig.time.tick;
    for n in 0..3 {
        let key = format!("key:{n}");
        let len = keys.get(&key).map_or(0, |model| model.fields.len());
        assert_eq!(
            rig.run(&format!("HLEN {key}")),
            format!(":{len}"),
            "{key}, seed {seed}, step {step}"
        );
        let Some(model) = keys.get(&key) else {
            continue;
        };
        let own = model.own.map_or(-1, |own| (own - now) as i64);
        assert_eq!(
            rig.run(&format!("PTTL {key}")),
            format!(":{own}"),
            "{key}, seed {seed}, step {step}"
        );
        if step % 16 == 0 {
            for (field, end) in &model.fields {
                let ttl = end.map_or(-1, |end| (end - now) as i64);
                let told = show(&rig.words(&[
                    b"HPTTL",
                    key.as_bytes(),
                    b"FIELDS",
                    b"1",
                    field.as_bytes(),
                ]));
                assert_eq!(
                    told,
                    format!("[:{ttl}]"),
                    "{key} {field}, seed {seed}, step {step}"
                );
            }
        }
    }
    // Whoever sleeps until the next deadline misses nothing.
    let ends = keys
        .values()
        .flat_map(|model| model.fields.values().copied().chain([model.own]));
    if let Some(end) = ends.flatten().min() {
        assert!(
            rig.next_deadline() <= end,
            "seed {seed}, step {step}: would sleep too long"
        );
    }
}

/// A hash in a shard of its own: some fields are due 10 ms later, and others live on.
fn fill_with_due(rig: &mut Rig, name: &str, due: u64, living: u64) {
    fill(rig, name, due + living);
    for i in 0..due {
        rig.run(&format!("HPEXPIRE {name} 10 FIELDS 1 field:{i}"));
    }
}

#[test]
fn what_is_dead_is_hidden_and_stays_while_writes_are_paused() {
    for (name, fields) in FORMS {
        let mut rig = Rig::new();
        rig.notify("KEA");
        fill_with_due(&mut rig, name, fields - 2, 2);
        fill_with_due(&mut rig, "dead", fields, 0);
        rig.events();
        let gate = std::sync::Arc::clone(rig.keyspace.gate());
        gate.set(PAUSED);
        rig.pass(10);
        for _ in 0..2 {
            rig.script(&format!(
                "HLEN {name} -> :2
                 HGET {name} field:0 -> nil
                 EXISTS {name} dead -> :1
                 HLEN dead -> :0
                 KEYS * -> ['{name}']
                 DBSIZE -> :2"
            ));
        }
        assert_eq!(rig.expire_all(), 0);
        assert_eq!(rig.events(), [] as [String; 0], "{name}");
        assert_eq!(rig.keyspace.stats(rig.time).expired_members, 0);
        gate.clear(PAUSED);
        rig.expire_all();
        let mut events = rig.events();
        events.sort_unstable();
        events.dedup();
        let hexpired = format!("0:hexpired:{name}");
        let mut expected = vec!["0:del:dead".into(), "0:hexpired:dead".into(), hexpired];
        expected.sort_unstable();
        assert_eq!(events, expected, "{name}");
        assert_eq!(
            rig.keyspace.stats(rig.time).expired_members,
            2 * fields - 2,
            "{name}"
        );
        rig.script(&format!("HLEN {name} -> :2\nDBSIZE -> :1"));
    }
}

#[test]
fn a_large_hash_of_which_nothing_lives_is_in_no_scan_and_leaves_at_once() {
    let mut rig = Rig::new();
    rig.notify("KEA");
    fill_with_due(&mut rig, "h", 2_000, 0);
    rig.events();
    rig.pass(10);
    rig.script(
        "KEYS * -> []
         HLEN h -> :0
         DBSIZE -> :0",
    );
    assert_eq!(rig.events(), ["0:hexpired:h", "0:del:h"]);
    assert_eq!(rig.keyspace.stats(rig.time).expired_members, 2_000);
}

#[test]
fn a_command_that_meets_very_many_dead_fields_lets_others_go_between() {
    let mut rig = Rig::new();
    fill_with_due(&mut rig, "h", 2_000, 1_000);
    rig.run("SET other 1");
    rig.pass(10);
    let tick = rig.time.tick;
    let mut others = 0;
    let (steps, reply) =
        Walker::begin(&rig.keyspace, tick, "HSET h field:0 again").run(tick, || {
            assert_eq!(show(&call_at(&rig.keyspace, tick, 0, "GET other")), "'1'");
            others += 1;
        });
    assert_eq!(show(&reply), ":1");
    assert!(steps > 4 && others + 1 == steps, "{steps} steps");
    rig.script("HLEN h -> :1001");
    // In a transaction, and for a client that was never put off, it is the same.
    rig.script("HGET h field:1 -> nil\nHGET h field:0 -> 'again'");
}

#[test]
fn hashes_that_a_pass_had_no_budget_for_are_due_at_once() {
    let mut rig = Rig::with(Options {
        shards: 1,
        databases: 1,
        seed: 3,
    });
    for i in 0..40 {
        fill_with_due(&mut rig, &format!("h{i}"), 4, 0);
    }
    rig.pass(10);
    while rig.next_deadline() <= rig.time.tick {
        let progress = rig.keyspace.expire(&mut rig.seat, 0, rig.time, 32);
        assert!(progress.fired > 0, "something is due");
    }
    rig.script("DBSIZE -> :0");
}

/// Each event loop has a reading of the clock of its own, and one may be older than that of a pass
/// before it.
#[test]
fn a_reader_with_an_older_clock_than_a_pass_that_left_off_sees_no_dead_field() {
    for (hashes, dead, alive) in [(40, 4, 1), (1, 2_000, 1_000)] {
        let mut rig = Rig::with(Options {
            shards: 1,
            databases: 1,
            seed: 3,
        });
        for i in 0..hashes {
            fill_with_due(&mut rig, &format!("h{i}"), dead, alive);
        }
        rig.pass(1_000);
        let progress = rig.keyspace.expire(&mut rig.seat, 0, rig.time, 32);
        assert!(progress.backlog, "it has left off");
        rig.time.tick -= 900;
        for i in 0..hashes {
            rig.script(&format!("HLEN h{i} -> :{alive}"));
        }
    }
}

/// The texts and the order of the checks are those of Redis 8.2.
#[test]
fn calls_about_fields_are_refused_in_the_words_of_redis() {
    let mut rig = Rig::new();
    rig.script(
        "SET s 1 -> OK
         HGETEX k FIELDS 0 a -> -ERR Number of fields must be a positive integer
         HGETEX k EX 5 PX 5 FIELDS 1 a -> -ERR Mandatory argument FIELDS is missing or not at the right position
         HGETEX k KEEPTTL FIELDS 1 a -> -ERR Mandatory argument FIELDS is missing or not at the right position
         HGETEX k EX 5 FIELDS -> -ERR wrong number of arguments for 'hgetex' command
         HGETEX k EX FIELDS 1 a -> -ERR value is not an integer or out of range
         HGETEX k EX -1 more 1 a -> -ERR invalid expire time, must be >= 0
         HGETEX k FIELDS 2 a -> -ERR The `numfields` parameter must match the number of arguments
         HGETEX s EX x FIELDS 1 a -> -WRONGTYPE Operation against a key holding the wrong kind of value
         HGETDEL k FIELDS x a -> -ERR Number of fields must be a positive integer
         HGETDEL s FIELDS 0 a -> -WRONGTYPE Operation against a key holding the wrong kind of value
         HSETEX k FIELDS 0 a 1 -> -ERR invalid number of fields
         HSETEX k FIELDS 2147483648 a 1 -> -ERR invalid number of fields
         HSETEX k FIELDS 2 a 1 -> -ERR wrong number of arguments for 'hsetex' command
         HSETEX k FIELDS 1 a 1 EX 5 -> -ERR wrong number of arguments for 'hsetex' command
         HSETEX k EX 5 FIELDS 0 a -> -ERR wrong number of arguments for 'hsetex' command
         HSETEX k PERSIST FIELDS 1 a 1 -> -ERR unknown argument: PERSIST
         HSETEX k EX 5 more 1 a 1 -> -ERR unknown argument: more
         HSETEX k EX 5 KEEPTTL FIELDS 1 a 1 -> -ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified
         HSETEX k FNX FXX FIELDS 1 a 1 -> -ERR Only one of FXX or FNX arguments can be specified
         HSETEX k EX -1 FNX FNX FIELDS 1 a 1 -> -ERR invalid expire time, must be >= 0
         HEXPIRE k -1 more -> -ERR wrong number of arguments for 'hexpire' command
         HEXPIRE k -1 more 1 a b -> -ERR invalid expire time, must be >= 0
         HEXPIRE k 1 more FIELDS 1 a -> -ERR Mandatory argument FIELDS is missing or not at the right position
         HEXPIRE s x FIELDS 1 a -> -WRONGTYPE Operation against a key holding the wrong kind of value
         HTTL k FIELDS 0 a -> -ERR Number of fields must be a positive integer",
    );
}

#[test]
fn ranks_and_pops_are_refused_in_the_words_of_redis() {
    let mut rig = Rig::new();
    rig.script(
        "ZRANK k a WITHSCORE more -> -ERR wrong number of arguments for 'zrank' command
         ZREVRANK k a WITHSCORE more -> -ERR wrong number of arguments for 'zrevrank' command
         ZRANK k a more -> -ERR syntax error
         ZMPOP 1 k MIN COUNT x COUNT 1 -> -ERR count should be greater than 0
         ZMPOP 1 k MIN COUNT 1 COUNT 1 -> -ERR syntax error
         LMPOP 1 k LEFT COUNT 0 COUNT 1 -> -ERR count should be greater than 0
         LMPOP 1 k LEFT COUNT -> -ERR syntax error
         SRANDMEMBER k x more -> -ERR syntax error",
    );
}

#[test]
fn a_hash_whose_fields_expire_gives_its_memory_back() {
    let mut rig = Rig::new();
    for from in (0..4_000).step_by(500) {
        let fields: Vec<String> = (from..from + 500).map(|i| format!("f{i} v{i}")).collect();
        rig.run(&format!("HSET h {}", fields.join(" ")));
        let names: Vec<String> = (from..from + 500).map(|i| format!("f{i}")).collect();
        let left = if from == 0 { 100_000 } else { 10 + from };
        rig.run(&format!("HPEXPIRE h {left} FIELDS 500 {}", names.join(" ")));
    }
    for _ in 0..8 {
        rig.pass(600);
        rig.expire_all();
        rig.keyspace.assert_counted();
    }
    assert_eq!(rig.run("HLEN h"), ":500");
}
