//! What is refused, and in which words.

use crate::common::Rig;
use crate::redis::Redis;

fn agree(lines: &str) {
    let Some(mut redis) = Redis::start("") else {
        return;
    };
    let mut rig = Rig::new();
    for line in lines.trim().lines() {
        redis.agrees_on(&mut rig, line);
    }
}

#[test]
fn calls_on_sorted_sets_are_refused_as_there() {
    agree(SORTED_SETS);
}

#[test]
fn calls_on_sets_are_refused_as_there() {
    agree(SETS);
}

const SORTED_SETS: &str = "
    SET s 1
    ZADD z 1 a 2 b
    ZADD z
    ZADD z 1
    ZADD z NX a
    ZADD z NX
    ZADD s NX XX 1 a
    ZADD s x a
    ZADD z 1e400 a
    ZADD z +5 b
    ZADD z 1 a INCR
    ZADD z INCR 1 a b
    ZRANGE z 0
    ZRANGE z 1.5 2
    ZRANGE z 0 1 LIMIT 0
    ZRANGE z 0 1 LIMIT 0 -1
    ZRANGE z 0 1 BYSCORE LIMIT 0 x
    ZRANGE z 0 1 BYSCORE LIMIT x 0
    ZRANGE z 0 1 BYSCORE LIMIT -1 5
    ZRANGE s x y BYSCORE
    ZRANGE none x y BYSCORE
    ZRANGEBYSCORE z ( 5
    ZRANGEBYSCORE z 1e400 5
    ZRANGEBYSCORE z -1e400 5
    ZRANGEBYSCORE z nan 5
    ZRANGEBYSCORE z (inf 5
    ZRANGEBYLEX z - + WITHSCORES
    ZRANGEBYLEX z +a -
    ZRANGEBYLEX z a b
    ZCOUNT s x y
    ZLEXCOUNT s x y
    ZREMRANGEBYRANK s x y
    ZREMRANGEBYSCORE s x y
    ZPOPMIN s -1
    ZPOPMIN none -1
    ZPOPMIN none 0
    ZPOPMIN s 0
    ZPOPMIN z x
    ZPOPMIN z 1 2
    ZMPOP x z MIN
    ZMPOP -1 z MIN
    ZMPOP 1 z
    ZMPOP 1 s MIN
    ZMPOP 1 none MIN
    ZMPOP 2 none s MIN COUNT 1
    ZMPOP 1 z MIN COUNT x
    ZMPOP 1 z MIN COUNT
    ZMPOP 5 z MIN
    ZRANDMEMBER z x
    ZRANDMEMBER s
    ZRANDMEMBER z 1 X
    ZRANDMEMBER z 1 WITHSCORES X
    ZRANDMEMBER z -9223372036854775808
    ZRANDMEMBER z -9223372036854775807 WITHSCORES
    ZSCAN z 0
    ZSCAN z 0 COUNT x
    ZSCAN z 0 COUNT 0
    ZSCAN z 0 MATCH
    ZSCAN z 0 MATCH a*
    ZSCAN z x
    ZSCAN none x
    ZSCAN none 0 COUNT 0
    ZSCAN s 0 COUNT 0
    ZSCAN z 0 TYPE zset
    ZINCRBY z x a
    ZINCRBY s x a
    ZINCRBY z 1.5 a
    ZSCORE s a
    ZRANK s a
    ZREM s a
    ZRANGESTORE d s 0 -1
    ZRANGESTORE d z 0
    ZRANGESTORE s z 0 -1
    ZRANGE s 0 -1
    ZUNION 0 z
    ZUNION x z
    ZINTER -1 z
    ZDIFF 2 z
    ZUNION 9223372036854775807 z
    ZINTERCARD 0 z
    ZINTERCARD 1 z LIMIT -1
    ZINTERCARD 1 z LIMIT x
    ZINTERCARD 1 z LIMIT
    ZINTERCARD 1 z WITHSCORES
    ZUNIONSTORE d 0 z
    ZUNIONSTORE d 1 z WITHSCORES
    ZUNIONSTORE d 1 z WEIGHTS
    ZUNIONSTORE d 1 z WEIGHTS x
    ZUNIONSTORE d 2 z z WEIGHTS 1
    ZUNIONSTORE d 1 z AGGREGATE
    ZUNIONSTORE d 1 z AGGREGATE AVG
    ZDIFF 1 z WEIGHTS 1
    ZDIFFSTORE d 1 z AGGREGATE SUM
    ZINTERSTORE d 2 z s X
    ZINTER 2 none s
    ZUNION 1 z WITHSCORES WITHSCORES
";

const SETS: &str = "
    SADD s a b
    SET str 1
    SINTER
    SINTER str
    SINTER none str
    SINTER str none
    SUNION none str
    SDIFF none str
    SDIFF s str
    SINTERSTORE d
    SINTERSTORE d none str
    SUNIONSTORE d s str
    SDIFFSTORE d none str
    SDIFFSTORE str none
    EXISTS str
    SET str 1
    SINTERCARD 0 s
    SINTERCARD -1 s
    SINTERCARD x s
    SINTERCARD 2 s
    SINTERCARD 9223372036854775807 s
    SINTERCARD 1 s s
    SINTERCARD 1 s LIMIT
    SINTERCARD 1 s LIMIT -1
    SINTERCARD 1 s LIMIT x
    SINTERCARD 1 s LIMIT 1 LIMIT 0
    SINTERCARD 1 s limit 1
    SINTERCARD 2 none str
    SINTERCARD 2 none str LIMIT x
    SSCAN s x
    SSCAN s 0 COUNT 0
    SSCAN s 0 COUNT x
    SSCAN s 0 MATCH
    SSCAN s 0 MATCH x*
    SSCAN s 0 TYPE set
    SSCAN none 0
    SSCAN none x
    SSCAN str 0
    HSET h f v
    HSCAN h 0
    HSCAN h 0 MATCH x
    HSCAN h x
    HSCAN str 0
    HSCAN none 0 COUNT x
    HSCAN h 0 COUNT 0
";
