//! Sorted sets: members, ranges, forms, and how they leave.

use tidewheel_resp::Protocol;

use crate::common::{OOM, Rig, limit_to_what_is_used};

#[test]
fn members_are_added_scored_ranked_and_removed() {
    let mut rig = Rig::new();
    rig.notify("KEA");
    rig.script(
        "ZADD z 1 a 2.5 b -inf c -> :3
         ZADD z 3 a 9 d -> :1
         ZADD z CH 3 a 4 b 5 e -> :2
         ZADD z NX 7 a 8 f -> :1
         ZADD z XX CH 7 a 8 g -> :1
         ZADD z GT CH 6 a 9 f -> :1
         ZADD z LT CH 6 a 10 f -> :1
         ZADD z INCR 1 a -> '7'
         ZADD z XX INCR 1 nope -> nil
         ZADD z NX INCR 1 a -> nil
         ZADD z -0 zero -> :1
         ZSCORE z zero -> '0'
         ZREM z zero -> :1
         ZINCRBY z -0.25 a -> '6.75'
         ZSCORE z a -> '6.75'
         ZSCORE z c -> '-inf'
         ZSCORE z nope -> nil
         ZSCORE none a -> nil
         ZMSCORE z a nope b -> ['6.75' nil '4']
         ZMSCORE none a b -> [nil nil]
         ZCARD z -> :6
         ZCARD none -> :0
         ZRANK z c -> :0
         ZREVRANK z c -> :5
         ZRANK z a WITHSCORE -> [:3 '6.75']
         ZREVRANK z a WITHSCORE -> [:2 '6.75']
         ZRANK z nope -> nil
         ZRANK z nope WITHSCORE -> nil
         ZRANK z a WITHSCORES -> -ERR syntax error
         ZRANGE z 0 -1 -> ['c' 'b' 'e' 'a' 'd' 'f']
         TYPE z -> zset
         OBJECT ENCODING z -> 'listpack'
         ZREM z a nope b -> :2
         ZREM z c d e f -> :4
         EXISTS z -> :0
         ZADD z XX 1 a -> :0
         EXISTS z -> :0
         SET s 1 -> OK
         ZADD s 1 a -> -WRONGTYPE Operation against a key holding the wrong kind of value
         ZSCORE s a -> -WRONGTYPE Operation against a key holding the wrong kind of value",
    );
    let events = rig.events();
    assert!(events.contains(&"0:zadd:z".to_owned()), "{events:?}");
    assert!(events.contains(&"0:zincr:z".to_owned()), "{events:?}");
    let last = events
        .windows(2)
        .any(|pair| pair == ["0:zrem:z", "0:del:z"]);
    assert!(last, "{events:?}");
}

/// A rule that refuses a member, or writes the score that is there, is no change.
#[test]
fn what_changes_nothing_is_not_announced() {
    let mut rig = Rig::new();
    rig.script("ZADD z 0 a -> :1");
    rig.notify("KEA");
    rig.script(
        "ZADD z -0 a -> :0
         ZADD z NX 5 a -> :0
         ZADD z XX 5 b -> :0
         ZADD z GT CH -5 a -> :0
         ZADD z INCR 0 a -> '0'
         ZINCRBY z 0 a -> '0'
         ZREM z b -> :0
         ZPOPMIN z 0 -> []
         ZREMRANGEBYRANK z 5 9 -> :0
         ZRANGESTORE none nope 0 -1 -> :0",
    );
    assert_eq!(rig.events(), Vec::<String>::new());
}

#[test]
fn calls_that_make_no_sense_are_refused() {
    let mut rig = Rig::new();
    rig.script(
        "ZADD z 1 -> -ERR wrong number of arguments for 'zadd' command
         ZADD z 1 a 2 -> -ERR syntax error
         ZADD z NX XX 1 a -> -ERR XX and NX options at the same time are not compatible
         ZADD z NX GT 1 a -> -ERR GT, LT, and/or NX options at the same time are not compatible
         ZADD z GT LT 1 a -> -ERR GT, LT, and/or NX options at the same time are not compatible
         ZADD z INCR 1 a 2 b -> -ERR INCR option supports a single increment-element pair
         ZADD z 1 a x b -> -ERR value is not a valid float
         ZADD z nan a -> -ERR value is not a valid float
         EXISTS z -> :0
         ZADD z inf a -> :1
         ZINCRBY z -inf a -> -ERR resulting score is not a number (NaN)
         ZADD z INCR -inf a -> -ERR resulting score is not a number (NaN)
         ZSCORE z a -> 'inf'
         ZRANGE z a b -> -ERR value is not an integer or out of range
         ZRANGE z a b BYSCORE -> -ERR min or max is not a float
         ZRANGE z a b BYLEX -> -ERR min or max not valid string range item
         ZRANGE z 0 1 LIMIT 0 1 -> -ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX
         ZRANGE z - + BYLEX WITHSCORES -> -ERR syntax error, WITHSCORES not supported in combination with BYLEX
         ZRANGE z 0 1 BYSCORE BYLEX -> -ERR syntax error
         ZREVRANGE z 0 1 REV -> -ERR syntax error
         ZRANGESTORE d z 0 1 WITHSCORES -> -ERR syntax error
         ZPOPMIN z -1 -> -ERR value is out of range, must be positive
         ZPOPMIN z x -> -ERR value is out of range, must be positive
         ZPOPMIN z 1 2 -> -ERR syntax error
         ZMPOP 0 z MIN -> -ERR numkeys should be greater than 0
         ZMPOP 1 z MID -> -ERR syntax error
         ZMPOP 2 z MIN -> -ERR syntax error
         ZMPOP 9223372036854775807 z MIN -> -ERR syntax error
         ZMPOP 1 z MIN COUNT 0 -> -ERR count should be greater than 0
         ZMPOP 1 z MIN COUNT 1 COUNT 2 -> -ERR syntax error
         ZRANDMEMBER z 1 SCORES -> -ERR syntax error
         ZRANDMEMBER z -9223372036854775807 WITHSCORES -> -ERR value is out of range
         ZSCAN z x -> -ERR invalid cursor
         ZSCAN z 0 COUNT 0 -> -ERR syntax error
         ZSCAN z 0 NOVALUES -> -ERR syntax error",
    );
}

#[test]
fn scores_are_doubles_in_pairs_in_the_newer_protocol() {
    let mut rig = Rig::new();
    rig.script(
        "ZADD z 1 a 2.5 b 3 c 4 d 5 e -> :5
         ZRANGE z 0 1 WITHSCORES -> ['a' '1' 'b' '2.5']
         ZREVRANGEBYSCORE z 2.5 1 WITHSCORES -> ['b' '2.5' 'a' '1']
         ZPOPMIN z -> ['a' '1']
         ZADD z 1 a -> :1",
    );
    rig.protocol = Protocol::Resp3;
    rig.script(
        "ZSCORE z b -> Double(2.5)
         ZINCRBY z 1 a -> Double(2.0)
         ZRANK z a WITHSCORE -> [:0 Double(2.0)]
         ZRANGE z 0 1 WITHSCORES -> [['a' Double(2.0)] ['b' Double(2.5)]]
         ZRANDMEMBER z 9 -> ['a' 'b' 'c' 'd' 'e']
         ZRANDMEMBER z 9 WITHSCORES -> [['a' Double(2.0)] ['b' Double(2.5)] ['c' Double(3.0)] ['d' Double(4.0)] ['e' Double(5.0)]]
         ZSCAN z 0 MATCH [ab] -> ['0' ['a' '2' 'b' '2.5']]
         ZPOPMIN z -> ['a' Double(2.0)]
         ZPOPMAX z 2 -> [['e' Double(5.0)] ['d' Double(4.0)]]
         ZMPOP 2 none z MAX -> ['z' [['c' Double(3.0)]]]
         ZPOPMIN z 5 -> [['b' Double(2.5)]]
         ZPOPMIN z -> []
         ZMPOP 1 z MAX -> nil",
    );
}

#[test]
fn a_sorted_set_grows_large_by_its_members_or_by_a_long_one_and_stays_so() {
    let mut rig = Rig::new();
    rig.run(&format!("ZADD long 1 {}", "m".repeat(65)));
    rig.script("OBJECT ENCODING long -> 'skiplist'\nZADD long 2 b -> :1\nZPOPMIN long 0 -> []");
    for i in 0..128 {
        rig.run(&format!("ZADD z {i} m{i}"));
    }
    rig.script(
        "OBJECT ENCODING z -> 'listpack'
         ZADD z 128 m128 -> :1
         OBJECT ENCODING z -> 'skiplist'
         ZRANK z m100 -> :100
         ZRANGE z 126 -1 -> ['m126' 'm127' 'm128']
         ZRANGE z 0 1 REV -> ['m128' 'm127']
         ZCOUNT z (100 inf -> :28
         ZREMRANGEBYRANK z 0 -2 -> :128
         OBJECT ENCODING z -> 'skiplist'
         ZRANGE z 0 -1 WITHSCORES -> ['m128' '128']
         ZPOPMAX z -> ['m128' '128']
         EXISTS z -> :0",
    );
}

#[test]
fn a_scan_meets_each_member_of_a_large_set_once() {
    let mut rig = Rig::new();
    for i in 0..1_000 {
        rig.run(&format!("ZADD z {i} m{i}"));
    }
    let (mut cursor, mut met) = ("0".to_owned(), Vec::new());
    loop {
        let reply = rig.run(&format!("ZSCAN z {cursor} COUNT 50 MATCH m*"));
        let words: Vec<&str> = reply.split('\'').skip(1).step_by(2).collect();
        cursor = words[0].to_owned();
        for pair in words[1..].chunks(2) {
            assert_eq!(pair[0], format!("m{}", pair[1]));
            met.push(pair[0].to_owned());
        }
        if cursor == "0" {
            break;
        }
    }
    met.sort();
    met.dedup();
    assert_eq!(met.len(), 1_000);
}

#[test]
fn a_stored_range_takes_the_place_and_the_deadline_of_what_was_there() {
    let mut rig = Rig::new();
    rig.notify("KEA");
    rig.script(
        "ZADD z 1 a 2 b 3 c -> :3
         SET d 1 PX 100 -> OK
         ZRANGESTORE d z (1 3 BYSCORE LIMIT 0 1 -> :1
         ZRANGE d 0 -1 WITHSCORES -> ['b' '2']
         TTL d -> :-1
         ZRANGESTORE d z 5 9 -> :0
         EXISTS d -> :0",
    );
    let events = rig.events();
    assert_eq!(events.last().map(String::as_str), Some("0:del:d"));
    assert!(events.contains(&"0:zrangestore:d".to_owned()), "{events:?}");
}

#[test]
fn random_members_are_distinct_or_repeat_as_the_sign_says() {
    let mut rig = Rig::new();
    rig.script("ZADD z 1 a 2 b 3 c -> :3\nZRANDMEMBER none -> nil\nZRANDMEMBER none 3 -> []");
    rig.script("ZRANDMEMBER z 0 -> []\nZRANDMEMBER z 5 -> ['a' 'b' 'c']");
    for _ in 0..50 {
        let two = rig.run("ZRANDMEMBER z 2 WITHSCORES");
        let choices = [
            "['a' '1' 'b' '2']",
            "['a' '1' 'c' '3']",
            "['b' '2' 'c' '3']",
        ];
        assert!(choices.contains(&two.as_str()), "{two}");
        let five = rig.run("ZRANDMEMBER z -5");
        assert_eq!(five.split(' ').count(), 5, "{five}");
    }
}

/// A call that asks for more than the reply may hold ends soon.
#[test]
fn an_endless_reply_stops_at_its_limit() {
    use tidewheel_keyspace::resolve;
    use tidewheel_resp::{Args, Writer};
    let mut rig = Rig::new();
    rig.script("ZADD z 1 a -> :1");
    let words: [&[u8]; 3] = [b"ZRANDMEMBER", b"z", b"-16000000"];
    let args = Args::from_slices(&words);
    let mut out = Writer::new(Protocol::Resp2);
    out.set_limit(10_000);
    let row = resolve(args).expect("a command");
    let (seat, session, time) = (&mut rig.seat, &mut rig.session, rig.time);
    rig.keyspace
        .execute(seat, row, session, time, args, &mut out);
    assert!(out.is_over());
}

#[test]
fn a_stored_result_needs_the_memory_of_its_sources() {
    let mut rig = Rig::new();
    for i in 0..2_000 {
        rig.run(&format!("ZADD z {i} member:{i}"));
    }
    limit_to_what_is_used(&rig);
    assert_eq!(rig.run("ZRANGESTORE d z 0 -1"), OOM);
    assert_eq!(rig.run("ZADD z 1 a"), OOM);
    assert_eq!(rig.run("ZREM z member:1"), ":1");
}

/// Another score leaves a member's deadline as it is.
#[test]
fn members_end_at_their_deadlines() {
    let mut rig = Rig::new();
    rig.notify("KEA");
    for i in 0..300 {
        rig.run(&format!("ZADD large {i} m{i}"));
    }
    rig.script(
        "ZADD z 1 a 2 b 3 c -> :3
         ZPEXPIRE z 100 MEMBERS 2 a b -> [:1 :1]
         ZPEXPIRE large 100 MEMBERS 2 m0 m299 -> [:1 :1]
         ZADD z 5 b -> :0
         ZINCRBY large 1000 m0 -> '1000'
         ZPTTL z MEMBERS 3 a b c -> [:100 :100 :-1]
         pass 99
         ZCARD z -> :3
         ZREVRANK large m0 -> :0
         pass 1
         ZRANGE z 0 -1 WITHSCORES -> ['c' '3']
         ZCARD large -> :298
         ZRANK large m1 -> :0
         ZREVRANK large m298 -> :0
         ZSCORE large m299 -> nil",
    );
    let events = rig.events();
    assert!(events.contains(&"0:zexpired:z".to_owned()), "{events:?}");
    assert!(
        events.contains(&"0:zexpired:large".to_owned()),
        "{events:?}"
    );
}

#[test]
fn sorted_sets_and_sets_are_combined() {
    let mut rig = Rig::new();
    rig.notify("KEA");
    rig.script(
        "ZADD x 1 a 2 b inf i -> :3
         ZADD y 10 b 20 c -inf i -> :3
         SADD s a b -> :2
         ZUNION 2 x y -> ['i' 'a' 'b' 'c']
         ZUNION 2 x y WITHSCORES -> ['i' '0' 'a' '1' 'b' '12' 'c' '20']
         ZUNION 3 x y s WEIGHTS 2 3 0.5 WITHSCORES -> ['i' '0' 'a' '2.5' 'b' '34.5' 'c' '60']
         ZUNION 2 x y AGGREGATE MIN WITHSCORES -> ['i' '-inf' 'a' '1' 'b' '2' 'c' '20']
         ZINTER 2 x y AGGREGATE MAX WITHSCORES -> ['b' '10' 'i' 'inf']
         ZINTER 2 x x WITHSCORES -> ['a' '2' 'b' '4' 'i' 'inf']
         ZINTER 2 x none -> []
         ZDIFF 2 x s WITHSCORES -> ['i' 'inf']
         ZDIFF 1 s WITHSCORES -> ['a' '1' 'b' '1']
         ZDIFF 2 none x -> []
         ZINTERCARD 3 x y s -> :1
         ZINTERCARD 2 x s -> :2
         ZINTERCARD 2 x s LIMIT 1 -> :1
         ZINTERCARD 2 x s LIMIT 0 -> :2
         ZUNIONSTORE d 2 x s -> :3
         ZRANGE d 0 -1 WITHSCORES -> ['a' '2' 'b' '3' 'i' 'inf']
         ZINTERSTORE x 2 x y WEIGHTS 0 1 -> :2
         ZRANGE x 0 -1 WITHSCORES -> ['i' '-inf' 'b' '10']
         ZDIFFSTORE s 2 d x -> :1
         ZRANGE s 0 -1 WITHSCORES -> ['a' '2']
         ZDIFFSTORE s 2 d d -> :0
         EXISTS s -> :0",
    );
    let events = rig.events();
    for event in [
        "0:zunionstore:d",
        "0:zinterstore:x",
        "0:zdiffstore:s",
        "0:del:s",
    ] {
        assert!(events.contains(&event.to_owned()), "{event}: {events:?}");
    }
    rig.protocol = Protocol::Resp3;
    rig.script("ZUNION 1 x WITHSCORES -> [['i' Double(-inf)] ['b' Double(10.0)]]");
}

#[test]
fn a_scan_leaves_the_scores_out_if_it_is_asked_to() {
    let mut rig = Rig::new();
    rig.script(
        "ZADD z 1 a 2 b -> :2\n\
         ZSCAN z 0 -> ['0' ['a' '1' 'b' '2']]\n\
         ZSCAN z 0 MATCH b noscores -> ['0' ['b']]\n\
         ZSCAN z 0 NOVALUES -> -ERR syntax error",
    );
}

/// 1e-400 was taken as 0.
#[test]
fn a_number_that_would_become_zero_is_refused() {
    let mut rig = Rig::new();
    let float = "-ERR value is not a valid float";
    rig.script(&format!(
        "ZADD z 1 m -> :1
         ZADD z 1e-400 m -> {float}
         ZADD z INCR -1e-400 m -> {float}
         ZINCRBY z 1e-400 m -> {float}
         ZADD z 0x1p-1080 m -> {float}
         ZUNION 1 z WEIGHTS 1e-400 -> -ERR weight value is not a float
         ZUNIONSTORE o 1 z WEIGHTS 1e-400 -> -ERR weight value is not a float
         GEOADD g 1e-400 1 m -> {float}
         GEOADD g 1 1e-400 m -> {float}
         GEOSEARCH g FROMLONLAT 1e-400 1 BYRADIUS 1 m -> {float}
         GEOSEARCH g FROMLONLAT 1 1 BYRADIUS 1e-400 m -> -ERR need numeric radius
         GEOSEARCH g FROMLONLAT 1 1 BYBOX 1e-400 1 m -> -ERR need numeric width
         GEOSEARCH g FROMLONLAT 1 1 BYBOX 1 1e-400 m -> -ERR need numeric height
         ZSCORE z m -> '1'
         ZADD z 0e-400 m -> :0
         ZSCORE z m -> '0'
         ZADD z 5e-324 m -> :0
         ZRANGEBYSCORE z (1e-400 1 -> ['m']"
    ));
}

/// From 10^16 on they had exponents or too few digits.
#[test]
fn whole_scores_have_all_their_digits_up_to_two_to_the_sixty_second() {
    let mut rig = Rig::new();
    rig.script(
        "ZADD z 1e16 m -> :1
         ZSCORE z m -> '10000000000000000'
         ZADD z -1e18 m -> :0
         ZRANGE z 0 -1 WITHSCORES -> ['m' '-1000000000000000000']
         ZADD z 1234567890123456789 m -> :0
         ZINCRBY z 0 m -> '1234567890123456768'
         ZADD z 4611686018427387904 m -> :0
         ZMSCORE z m -> ['4611686018427387904']
         ZADD z 9223372036854774784 m -> :0
         ZSCORE z m -> '9223372036854775000'
         ZADD z 1e19 m -> :0
         ZSCORE z m -> '1e+19'",
    );
}

/// It removed `a`, which stands behind `c` where scores differ.
#[test]
fn zremrangebylex_removes_nothing_outside_its_range_where_scores_differ() {
    for entries in [128, 0] {
        let mut rig = Rig::new();
        let members = ["c", "a", "d", "z", "b"];
        let limit = tidewheel_keyspace::PackedLimit { entries, value: 64 };
        rig.keyspace.rules().packing.zset.set(limit);
        for (score, member) in members.iter().enumerate() {
            rig.run(&format!("ZADD z {score} {member}"));
        }
        for (min, max) in [
            ("[b", "[d"),
            ("(a", "(e"),
            ("-", "[a"),
            ("[y", "+"),
            ("+", "-"),
        ] {
            let before = rig.run("ZRANGE z 0 -1");
            rig.run("COPY z copy REPLACE");
            rig.run(&format!("ZREMRANGEBYLEX copy {min} {max}"));
            let after = rig.run("ZRANGE copy 0 -1");
            for member in members {
                let text = format!("'{member}'");
                let stays = after.contains(&text) || !before.contains(&text);
                let is_above = min == "-" || min != "+" && member >= &min[1..];
                let is_below = max == "+" || max != "-" && member <= &max[1..];
                assert!(stays || is_above && is_below, "{member} within {min} {max}");
            }
        }
    }
}
