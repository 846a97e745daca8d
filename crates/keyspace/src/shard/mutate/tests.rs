//! The funnel tells its observers each change that a command makes, and nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering::Relaxed;

use tidewheel_resp::{Args, Protocol, Writer};

use super::super::ShardState;
use super::TEST_OBSERVER;
use crate::eviction::Policy;
use crate::garbage::Garbage;
use crate::hooks::Hooks;
use crate::keyspace::{Keyspace, Options};
use crate::resolve::resolve;
use crate::rows::{Command, Flags};
use crate::session::Session;
use crate::time::Time;
use crate::value::collection;

impl ShardState {
    pub(super) fn record_key(&mut self, db: u32, key: &[u8]) {
        if self.observers & TEST_OBSERVER != 0 {
            self.test_observer.0.insert((db, key.to_vec()));
        }
    }

    pub(super) fn record_flush(&mut self, db: u32, entries: &crate::value::Entries) {
        entries.scan(0, usize::MAX, |slot| {
            self.record_key(db, entries.key(slot));
        });
    }

    pub(super) fn record_swap(&mut self, first: u32, second: u32) {
        let mut keys = Vec::new();
        for entries in [first, second].map(|db| self.entries(db)) {
            entries.scan(0, usize::MAX, |slot| keys.push(entries.key(slot).to_vec()));
        }
        for key in keys {
            self.record_key(first, &key);
            self.record_key(second, &key);
        }
    }
}

struct Shell;

impl Hooks for Shell {
    fn wake(&self, _shard: usize, _deadline: u64) {}

    fn reclaim(&self, garbage: Garbage) {
        drop(garbage);
    }

    fn stopwatch_ns(&self) -> u64 {
        0
    }
}

const START: u64 = 1 << 40;
const DATABASES: usize = 3;

/// A value that is an object; twenty thousand bytes.
const LONG: &str = "<long>";

/// The reply of DUMP to a string.
const DUMP: &str = "<dump>";

/// The reply of DUMP to a list of `x` and `y`.
const LIST: &str = "<list>";

fn list_of(elements: &[&[u8]]) -> tidewheel_collections::List {
    let mut list = tidewheel_collections::List::new();
    let limits = tidewheel_collections::ListLimits::new(-2);
    for element in elements {
        list.push_back(element, &limits);
    }
    list
}

/// A stream of two entries, which a consumer has not acknowledged.
const STREAM: &[&str] = &[
    "XADD s 1 a 1",
    "XADD s 2 a 2",
    "XGROUP CREATE s g 0",
    "XREADGROUP GROUP g c STREAMS s >",
];

/// For each row that is flagged `write`: what is there before, and calls, one after the other.
/// `pass 5` lets five milliseconds pass.
const CASES: &[(&str, &[&str], &[&str])] = &[
    (
        "append",
        &["SET a 1", "SET b <long>"],
        &["APPEND a 2", "APPEND b 3", "APPEND new 4"],
    ),
    (
        "bitfield",
        &["SET a 1", "SET b <long>"],
        &[
            "BITFIELD a GET u8 0",
            "BITFIELD a SET u8 0 49",
            "BITFIELD a SET u8 0 50",
            "BITFIELD b INCRBY i16 99 5",
            "BITFIELD new SET u8 0 1",
        ],
    ),
    (
        "bitop",
        &["SET a 1", "SET b <long>"],
        &[
            "BITOP NOT new a",
            "BITOP OR a a b",
            "BITOP AND a none",
            "BITOP AND new none",
        ],
    ),
    (
        "blmove",
        &["RPUSH l a b"],
        &["BLMOVE l new LEFT RIGHT 0", "BLMOVE none l LEFT RIGHT 0"],
    ),
    (
        "blmpop",
        &["RPUSH l a b"],
        &["BLMPOP 0 2 none l LEFT", "BLMPOP 0 1 none LEFT"],
    ),
    (
        "blpop",
        &["RPUSH l a b"],
        &["BLPOP none l 0", "BLPOP none 0"],
    ),
    (
        "brpop",
        &["RPUSH l a b"],
        &["BRPOP none l 0", "BRPOP none 0"],
    ),
    (
        "brpoplpush",
        &["RPUSH l a b"],
        &["BRPOPLPUSH l new 0", "BRPOPLPUSH none l 0"],
    ),
    (
        "bzmpop",
        &["ZADD z 1 a 2 b"],
        &["BZMPOP 0 2 none z MIN", "BZMPOP 0 1 none MAX"],
    ),
    (
        "bzpopmax",
        &["ZADD z 1 a 2 b"],
        &["BZPOPMAX none z 0", "BZPOPMAX none 0"],
    ),
    (
        "bzpopmin",
        &["ZADD z 1 a 2 b"],
        &["BZPOPMIN none z 0", "BZPOPMIN none 0"],
    ),
    (
        "cl.throttle",
        &[],
        &[
            "CL.THROTTLE new 1 1 60",
            "CL.THROTTLE new 1 1 60",
            "CL.THROTTLE new 1 1 60",
            "CL.THROTTLE new 1 1 60 0",
        ],
    ),
    (
        "copy",
        &["SET a 1 PX 9", "SET b 2", "SET c <long>"],
        &[
            "COPY a new",
            "COPY a b REPLACE",
            "COPY a a DB 2",
            "COPY c a REPLACE",
            "COPY none b",
        ],
    ),
    ("decr", &["SET a 5"], &["DECR a", "DECR new"]),
    ("decrby", &["SET a 5"], &["DECRBY a 10", "DECRBY new 3"]),
    (
        "del",
        &["SET a 1", "SET b <long>", "SET c 3"],
        &["DEL a none b"],
    ),
    (
        "delex",
        &["SET a 1", "SET b 1", "SET c 1"],
        &[
            "DELEX a IFEQ 2",
            "DELEX a IFEQ 1",
            "DELEX b IFNE 2",
            "DELEX c",
            "DELEX none",
        ],
    ),
    (
        "delifeq",
        &["SET a 1"],
        &["DELIFEQ a 2", "DELIFEQ a 1", "DELIFEQ none 1"],
    ),
    (
        "expire",
        &["SET a 1", "SET b 2"],
        &[
            "EXPIRE a 5",
            "EXPIRE b -1",
            "EXPIRE none 5",
            "EXPIRE a 9 NX",
        ],
    ),
    ("expireat", &["SET a 1"], &["EXPIREAT a 9999999999"]),
    ("expiry|freeze", &["SET a 1 PX 5"], &["EXPIRY FREEZE"]),
    ("expiry|resume", &["SET a 1 PX 5"], &["EXPIRY RESUME"]),
    ("flushall", &["SET a 1", "SET b <long>"], &["FLUSHALL"]),
    ("flushdb", &["SET a 1", "SET b <long>"], &["FLUSHDB"]),
    // Not the keyspace's, and there is nothing to flush.
    (
        "getdel",
        &["SET a 1", "SET b <long>"],
        &["GETDEL a", "GETDEL b", "GETDEL none"],
    ),
    (
        "getex",
        &["SET a 1", "SET b 2 PX 50", "SET c 3"],
        &[
            "GETEX a",
            "GETEX a PX 9",
            "GETEX b PERSIST",
            "GETEX c PXAT 1",
            "GETEX b PERSIST",
        ],
    ),
    (
        "getset",
        &["SET a 1"],
        &["GETSET a 2", "GETSET a <long>", "GETSET new 3"],
    ),
    (
        "incr",
        &["SET a 1", "SET b 9", "SET c x"],
        &["INCR a", "INCR b", "INCR new", "INCR c"],
    ),
    (
        "incrby",
        &["SET a 1"],
        &["INCRBY a 3", "INCRBY a 30", "INCRBY new 3"],
    ),
    (
        "incrbyfloat",
        &["SET a 1"],
        &["INCRBYFLOAT a 0.5", "INCRBYFLOAT new 0.5"],
    ),
    (
        "move",
        &["SET a 1 PX 9", "SET b <long>"],
        &["MOVE a 2", "MOVE b 2", "MOVE none 2"],
    ),
    ("mset", &["SET a 1"], &["MSET a 2 b 3 c <long>"]),
    (
        "msetex",
        &["SET a 1 PX 9"],
        &[
            "MSETEX 2 a 2 b <long> EX 9",
            "MSETEX 2 b 2 c 3 NX",
            "MSETEX 2 a 3 b 4 XX KEEPTTL",
        ],
    ),
    (
        "msetnx",
        &["SET a 1"],
        &["MSETNX b 2 c 3", "MSETNX c 4 d 5"],
    ),
    (
        "persist",
        &["SET a 1 PX 9", "SET b 1"],
        &["PERSIST a", "PERSIST b"],
    ),
    ("pexpire", &["SET a 1"], &["PEXPIRE a 5", "PEXPIRE a 0"]),
    ("pexpireat", &["SET a 1"], &["PEXPIREAT a 9999999999999"]),
    (
        "hdel",
        &["HSET h a 1 b 2", "HSET l a <long> b 1"],
        &["HDEL h a", "HDEL h x", "HDEL h b", "HDEL l a", "HDEL l b"],
    ),
    (
        "hexpire",
        &["HSET h a 1 b 2 c 3", "HSET l a <long> b 1"],
        &[
            "HEXPIRE h 100 FIELDS 2 a x",
            "HEXPIRE l 100 FIELDS 1 b",
            "HEXPIRE h 100 NX FIELDS 1 a",
            "HEXPIRE h 0 FIELDS 3 a b c",
        ],
    ),
    (
        "hpexpire",
        &["HSET h a 1 b 2 c 3", "HSET l a <long> b 1"],
        &[
            "HPEXPIRE h 100 FIELDS 2 a x",
            "HPEXPIRE l 100 FIELDS 1 b",
            "HPEXPIRE h 100 NX FIELDS 1 a",
            "HPEXPIRE h 0 FIELDS 3 a b c",
        ],
    ),
    (
        "hexpireat",
        &["HSET h a 1 b 2 c 3", "HSET l a <long> b 1"],
        &[
            "HEXPIREAT h 1900000000 FIELDS 2 a x",
            "HEXPIREAT l 1900000000 FIELDS 1 b",
            "HEXPIREAT h 1900000000 NX FIELDS 1 a",
            "HEXPIREAT h 0 FIELDS 3 a b c",
        ],
    ),
    (
        "hpexpireat",
        &["HSET h a 1 b 2 c 3", "HSET l a <long> b 1"],
        &[
            "HPEXPIREAT h 1900000000000 FIELDS 2 a x",
            "HPEXPIREAT l 1900000000000 FIELDS 1 b",
            "HPEXPIREAT h 1900000000000 NX FIELDS 1 a",
            "HPEXPIREAT h 0 FIELDS 3 a b c",
        ],
    ),
    (
        "hpersist",
        &["HSET h a 1", "HPEXPIRE h 100 FIELDS 1 a"],
        &["HPERSIST h FIELDS 1 a", "HPERSIST h FIELDS 1 a"],
    ),
    (
        "hgetdel",
        &["HSET h a 1 b 2"],
        &[
            "HGETDEL h FIELDS 1 a",
            "HGETDEL h FIELDS 1 x",
            "HGETDEL h FIELDS 1 b",
        ],
    ),
    (
        "hgetex",
        &["HSET h a 1 b 2"],
        &[
            "HGETEX h FIELDS 1 a",
            "HGETEX h PX 100 FIELDS 1 a",
            "HGETEX h PERSIST FIELDS 2 a b",
            "HGETEX h PXAT 1 FIELDS 2 a b",
        ],
    ),
    (
        "hsetex",
        &["HSET h a 1"],
        &[
            "HSETEX h PX 100 FIELDS 1 a 2",
            "HSETEX h FNX FIELDS 1 a 3",
            "HSETEX n FIELDS 1 a 1",
        ],
    ),
    (
        "hincrby",
        &["HSET h a 1 b x"],
        &["HINCRBY h a 1", "HINCRBY h b 1", "HINCRBY n a 1"],
    ),
    (
        "hincrbyfloat",
        &["HSET h a 1 b x"],
        &["HINCRBYFLOAT h a 1", "HINCRBYFLOAT h b 1"],
    ),
    (
        "expiremember",
        &["HSET h a 1 b 2"],
        &[
            "EXPIREMEMBER h a 10",
            "EXPIREMEMBER h x 10",
            "EXPIREMEMBER h b 0",
        ],
    ),
    (
        "expirememberat",
        &["HSET h a 1"],
        &["EXPIREMEMBERAT h a 1900000000"],
    ),
    (
        "pexpirememberat",
        &["HSET h a 1"],
        &["PEXPIREMEMBERAT h a 1900000000000"],
    ),
    (
        "sadd",
        &["SADD s a"],
        &["SADD s a", "SADD s a b", "SADD n a", "SADD n <long>"],
    ),
    (
        "sdiffstore",
        &["SADD s a b", "SADD t b", "SET x 1"],
        &[
            "SDIFFSTORE n s t",
            "SDIFFSTORE x s t none",
            "SDIFFSTORE s s t",
            "SDIFFSTORE s none t",
            "SDIFFSTORE none t t",
        ],
    ),
    (
        "sinterstore",
        &["SADD s a b", "SADD t b <long>", "SET x 1"],
        &[
            "SINTERSTORE n s t",
            "SINTERSTORE x s t",
            "SINTERSTORE s s t",
            "SINTERSTORE s s none",
            "SINTERSTORE t x t",
            "SINTERSTORE t t n none",
        ],
    ),
    (
        "sunionstore",
        &["SADD s a b", "SADD t b <long>", "SET x 1"],
        &[
            "SUNIONSTORE n s t",
            "SUNIONSTORE x t",
            "SUNIONSTORE s s t",
            "SUNIONSTORE s none",
            "SUNIONSTORE none none",
        ],
    ),
    (
        "smove",
        &["SADD s a b", "SADD t c"],
        &["SMOVE s t a", "SMOVE s t x", "SMOVE s n b"],
    ),
    (
        "spop",
        &["SADD s a b c", "SADD t a"],
        &["SPOP s", "SPOP s 2", "SPOP t", "SPOP n"],
    ),
    (
        "srem",
        &["SADD s a b"],
        &["SREM s a", "SREM s x", "SREM s b"],
    ),
    (
        "sexpire",
        &["SADD s a b"],
        &["SEXPIRE s 100 MEMBERS 2 a x", "SEXPIRE s 0 MEMBERS 2 a b"],
    ),
    (
        "spexpire",
        &["SADD s a b"],
        &["SPEXPIRE s 100 MEMBERS 2 a x", "SPEXPIRE s 0 MEMBERS 2 a b"],
    ),
    (
        "sexpireat",
        &["SADD s a b"],
        &[
            "SEXPIREAT s 1900000000 MEMBERS 2 a x",
            "SEXPIREAT s 0 MEMBERS 2 a b",
        ],
    ),
    (
        "spexpireat",
        &["SADD s a b"],
        &[
            "SPEXPIREAT s 1900000000000 MEMBERS 2 a x",
            "SPEXPIREAT s 0 MEMBERS 2 a b",
        ],
    ),
    (
        "spersist",
        &["SADD s a", "SPEXPIRE s 100 MEMBERS 1 a"],
        &["SPERSIST s MEMBERS 1 a"],
    ),
    ("hmset", &[], &["HMSET h a 1", "HMSET h b <long>"]),
    (
        "hset",
        &["HSET l a <long>"],
        &["HSET h a 1", "HSET h a 2 b 3", "HSET l c 1"],
    ),
    (
        "hsetnx",
        &["HSET h a 1"],
        &["HSETNX h a 2", "HSETNX h b 2", "HSETNX n a 1"],
    ),
    (
        "linsert",
        &["RPUSH l a b", "RPUSH o <long>"],
        &[
            "LINSERT l BEFORE b x",
            "LINSERT l AFTER none x",
            "LINSERT o AFTER <long> x",
            "LINSERT none AFTER a x",
        ],
    ),
    (
        "lmove",
        &["RPUSH l a b", "RPUSH o <long>"],
        &[
            "LMOVE l l LEFT RIGHT",
            "LMOVE l new LEFT RIGHT",
            "LMOVE l new LEFT LEFT",
            "LMOVE o new RIGHT LEFT",
            "LMOVE none new RIGHT LEFT",
        ],
    ),
    (
        "lmpop",
        &["RPUSH l a b c", "RPUSH o <long>"],
        &[
            "LMPOP 2 none l LEFT",
            "LMPOP 2 l o RIGHT COUNT 9",
            "LMPOP 2 l o RIGHT COUNT 9",
            "LMPOP 2 l o RIGHT",
        ],
    ),
    (
        "lpop",
        &["RPUSH l a b c", "RPUSH o <long>"],
        &["LPOP l", "LPOP l 0", "LPOP l 5", "LPOP o", "LPOP none"],
    ),
    (
        "lpush",
        &["RPUSH o <long>"],
        &["LPUSH l a b", "LPUSH l c", "LPUSH l <long>", "LPUSH o a"],
    ),
    ("lpushx", &["RPUSH l a"], &["LPUSHX l b", "LPUSHX none b"]),
    (
        "lrem",
        &["RPUSH l a b a", "RPUSH o <long>"],
        &[
            "LREM l 1 a",
            "LREM l 0 x",
            "LREM l -5 a",
            "LREM o 0 <long>",
            "LREM l 1 b",
        ],
    ),
    (
        "lset",
        &["RPUSH l a b", "RPUSH o <long> a"],
        &["LSET l -1 c", "LSET l 5 c", "LSET o 0 x", "LSET o 1 y"],
    ),
    (
        "ltrim",
        &["RPUSH l a b c d", "RPUSH o <long> a"],
        &[
            "LTRIM l 1 2",
            "LTRIM o 1 1",
            "LTRIM l 5 9",
            "LTRIM none 0 1",
        ],
    ),
    (
        "pfadd",
        &["PFADD a x", "PFADD b x", "PFDEBUG TODENSE b"],
        &["PFADD a x", "PFADD a y", "PFADD b y", "PFADD new x"],
    ),
    (
        "pfdebug",
        &["PFADD a x"],
        &["PFDEBUG GETREG a", "PFDEBUG TODENSE a"],
    ),
    (
        "pfmerge",
        &["PFADD a x", "PFADD b y"],
        &["PFMERGE a b", "PFMERGE new a b", "PFMERGE other none"],
    ),
    ("psetex", &["SET a 1"], &["PSETEX a 5 2", "PSETEX new 5 2"]),
    (
        "rename",
        &["SET a 1 PX 9", "SET b 2", "SET c <long>"],
        &[
            "RENAME a new",
            "RENAME b new",
            "RENAME c b",
            "RENAME none b",
            "RENAME b b",
        ],
    ),
    (
        "renamenx",
        &["SET a 1", "SET b 2"],
        &["RENAMENX a b", "RENAMENX a new"],
    ),
    (
        "restore",
        &["SET a 1"],
        &[
            "RESTORE a 0 <dump>",
            "RESTORE a 0 <dump> REPLACE",
            "RESTORE a 1 <dump> REPLACE ABSTTL",
            "RESTORE new 5 <dump>",
        ],
    ),
    (
        "rpop",
        &["RPUSH l a b c", "RPUSH o <long>"],
        &["RPOP l", "RPOP l 0", "RPOP l 5", "RPOP o", "RPOP none"],
    ),
    (
        "rpoplpush",
        &["RPUSH l a b", "RPUSH o <long>"],
        &[
            "RPOPLPUSH l l",
            "RPOPLPUSH l new",
            "RPOPLPUSH o new",
            "RPOPLPUSH none new",
        ],
    ),
    (
        "rpush",
        &["RPUSH o <long>"],
        &["RPUSH l a b", "RPUSH l c", "RPUSH l <long>", "RPUSH o a"],
    ),
    ("rpushx", &["RPUSH l a"], &["RPUSHX l b", "RPUSHX none b"]),
    (
        "set",
        &["SET a 1", "SET b <long>", "SET c 1 PX 5"],
        &[
            "SET a 2 PX 50",
            "SET a 3 KEEPTTL",
            "SET a 4",
            "SET a <long>",
            "SET b 1",
            "SET new 1",
            "SET a 5 NX",
            "SET none 1 XX",
            "pass 5",
            "SET c 1 XX",
            "SET c 1",
        ],
    ),
    (
        "setbit",
        &["SET a 1", "SET b <long>"],
        &[
            "SETBIT a 6 1",
            "SETBIT a 6 1",
            "SETBIT b 2000 1",
            "SETBIT new 4 0",
        ],
    ),
    ("setex", &["SET a 1"], &["SETEX a 5 2", "SETEX new 5 2"]),
    ("setnx", &["SET a 1"], &["SETNX a 2", "SETNX new 2"]),
    (
        "setrange",
        &["SET a 1", "SET b <long>"],
        &[
            "SETRANGE a 3 x",
            "SETRANGE b 3 y",
            "SETRANGE new 3 z",
            "SETRANGE a 900 x",
            "SETRANGE none 3 \"\"",
        ],
    ),
    (
        "sort",
        &["RESTORE a 0 <list>", "SET b 1", "SET w_x 2"],
        &[
            "SORT a ALPHA",
            "SORT a ALPHA STORE b",
            "SORT a BY w_* GET w_* STORE new",
            "SORT none STORE b",
            "SORT a LIMIT 9 9 ALPHA STORE none",
        ],
    ),
    (
        "swapdb",
        &["SET a 1", "SET b 2 PX 9"],
        &["SWAPDB 0 1", "SWAPDB 1 2", "SWAPDB 1 1"],
    ),
    (
        "unlink",
        &["SET a 1", "SET b <long>", "SET c 3"],
        &["UNLINK a none b"],
    ),
    (
        "geoadd",
        &["GEOADD g 1 1 a"],
        &[
            "GEOADD g 1 1 a",
            "GEOADD g 2 2 a 3 3 b",
            "GEOADD g NX 4 4 a",
            "GEOADD n XX 1 1 a",
            "GEOADD n 1 1 <long>",
        ],
    ),
    (
        "georadius",
        &["GEOADD g 1 1 a 2 2 b", "SET s 1"],
        &[
            "GEORADIUS g 1 1 100 km",
            "GEORADIUS g 1 1 100 km STORE s",
            "GEORADIUS g 1 1 900 km STOREDIST g",
            "GEORADIUS none 1 1 1 km STORE s",
        ],
    ),
    (
        "georadiusbymember",
        &["GEOADD g 1 1 a 2 2 b", "SET s 1"],
        &[
            "GEORADIUSBYMEMBER g a 100 km",
            "GEORADIUSBYMEMBER g a 100 km STORE s",
            "GEORADIUSBYMEMBER g b 900 km STOREDIST n",
        ],
    ),
    (
        "geosearchstore",
        &["GEOADD g 1 1 a 2 2 b", "SET s 1"],
        &[
            "GEOSEARCHSTORE s g FROMMEMBER a BYRADIUS 900 km",
            "GEOSEARCHSTORE g g FROMMEMBER a BYBOX 1 1 km",
            "GEOSEARCHSTORE s g FROMLONLAT 50 50 BYBOX 1 1 km",
        ],
    ),
    (
        "xack",
        STREAM,
        &["XACK s g 9", "XACK s g 1 2", "XACK none g 1"],
    ),
    (
        "xackdel",
        STREAM,
        &[
            "XACKDEL s g IDS 1 9",
            "XACKDEL s g ACKED IDS 1 1",
            "XACKDEL none g IDS 1 1",
        ],
    ),
    (
        "xadd",
        STREAM,
        &[
            "XADD s 2 a 1",
            "XADD s * a 1",
            "XADD s MAXLEN 1 * a 1",
            "XADD n NOMKSTREAM * a 1",
            "XADD n MAXLEN 0 * a 1",
        ],
    ),
    (
        "xautoclaim",
        STREAM,
        &[
            "XAUTOCLAIM s g c 9 0",
            "pass 9",
            "XAUTOCLAIM s g d 9 0 COUNT 1",
            "XDEL s 1",
            "XAUTOCLAIM s g d 0 0",
        ],
    ),
    (
        "xclaim",
        STREAM,
        &[
            "XCLAIM s g c 9 1",
            "XCLAIM s g c 0 9",
            "XCLAIM s g d 0 1",
            "XCLAIM s g d 0 9 LASTID 9",
            "XDEL s 2",
            "XCLAIM s g d 0 2",
        ],
    ),
    ("xdel", STREAM, &["XDEL s 9", "XDEL s 1 2", "XDEL none 1"]),
    (
        "xdelex",
        STREAM,
        &[
            "XDELEX s IDS 1 9",
            "XDELEX s ACKED IDS 1 1",
            "XDEL s 1",
            "XDELEX s DELREF IDS 1 1",
            "XDELEX s IDS 1 2",
        ],
    ),
    (
        "xgroup|create",
        STREAM,
        &[
            "XGROUP CREATE s g 0",
            "XGROUP CREATE s h $",
            "XGROUP CREATE n g 0",
            "XGROUP CREATE n g 0 MKSTREAM",
        ],
    ),
    (
        "xgroup|createconsumer",
        STREAM,
        &["XGROUP CREATECONSUMER s g c", "XGROUP CREATECONSUMER s g d"],
    ),
    (
        "xgroup|delconsumer",
        STREAM,
        &["XGROUP DELCONSUMER s g d", "XGROUP DELCONSUMER s g c"],
    ),
    (
        "xgroup|destroy",
        STREAM,
        &["XGROUP DESTROY s h", "XGROUP DESTROY s g"],
    ),
    (
        "xgroup|setid",
        STREAM,
        &["XGROUP SETID s h 0", "XGROUP SETID s g 1 ENTRIESREAD 1"],
    ),
    (
        "xreadgroup",
        STREAM,
        &[
            "XREADGROUP GROUP g c STREAMS s >",
            "XREADGROUP GROUP g d STREAMS s 0",
            "XREADGROUP GROUP g c STREAMS s 0",
            "XADD s 3 a 1",
            "XREADGROUP GROUP g d NOACK STREAMS s >",
            "XREADGROUP GROUP h c STREAMS s >",
        ],
    ),
    (
        "xsetid",
        STREAM,
        &["XSETID s 1", "XSETID s 9 ENTRIESADDED 9 MAXDELETEDID 1"],
    ),
    (
        "xtrim",
        STREAM,
        &[
            "XTRIM s MAXLEN 9",
            "XTRIM s MAXLEN 1 DELREF",
            "XTRIM s MINID 9",
            "XTRIM n MAXLEN 0",
        ],
    ),
    (
        "zadd",
        &["ZADD z 1 a", "ZADD l 1 <long>"],
        &[
            "ZADD z 1 a",
            "ZADD z 2 a 3 b",
            "ZADD z NX 4 a",
            "ZADD n XX 1 a",
            "ZADD n INCR 1 a",
            "ZADD n INCR nan a",
            "ZADD l 2 b",
            "ZADD n 1 <long>",
        ],
    ),
    (
        "zdiffstore",
        &["ZADD z 1 a 2 b", "ZADD l 1 <long> 2 a", "SET s 1"],
        &[
            "ZDIFFSTORE n 2 z l",
            "ZDIFFSTORE s 2 l z",
            "ZDIFFSTORE n 2 z z",
        ],
    ),
    (
        "zinterstore",
        &["ZADD z 1 a 2 b", "ZADD l 1 <long> 2 a", "SADD s a"],
        &[
            "ZINTERSTORE n 2 z l",
            "ZINTERSTORE s 2 z s WEIGHTS 1 5",
            "ZINTERSTORE n 2 z none",
        ],
    ),
    (
        "zunionstore",
        &["ZADD z 1 a 2 b", "ZADD l 1 <long> 2 a", "SADD s a"],
        &[
            "ZUNIONSTORE n 2 z l",
            "ZUNIONSTORE z 2 z s WEIGHTS 3 1",
            "ZUNIONSTORE n 1 none",
        ],
    ),
    (
        "zexpire",
        &["ZADD z 1 a 2 b"],
        &["ZEXPIRE z 100 MEMBERS 2 a x", "ZEXPIRE z 0 MEMBERS 2 a b"],
    ),
    (
        "zexpireat",
        &["ZADD z 1 a 2 b"],
        &[
            "ZEXPIREAT z 1900000000 MEMBERS 2 a x",
            "ZEXPIREAT z 0 MEMBERS 2 a b",
        ],
    ),
    (
        "zpexpire",
        &["ZADD z 1 a 2 b"],
        &["ZPEXPIRE z 100 MEMBERS 2 a x", "ZADD z 5 a"],
    ),
    (
        "zpexpireat",
        &["ZADD z 1 a 2 b"],
        &["ZPEXPIREAT z 1900000000000 MEMBERS 2 a x"],
    ),
    (
        "zpersist",
        &["ZADD z 1 a", "ZPEXPIRE z 100 MEMBERS 1 a"],
        &["ZPERSIST z MEMBERS 1 a"],
    ),
    (
        "zincrby",
        &["ZADD z inf a", "ZADD l 1 <long>"],
        &[
            "ZINCRBY z 1 a",
            "ZINCRBY z -inf a",
            "ZINCRBY z 1 b",
            "ZINCRBY l 0 <long>",
            "ZINCRBY l 1 <long>",
        ],
    ),
    (
        "zmpop",
        &["ZADD z 1 a 2 b", "ZADD l 1 <long>"],
        &[
            "ZMPOP 2 none z MIN",
            "ZMPOP 2 z l MAX COUNT 5",
            "ZMPOP 2 z l MAX",
        ],
    ),
    (
        "zpopmax",
        &["ZADD z 1 a 2 b", "ZADD l 1 <long> 2 b"],
        &["ZPOPMAX z 0", "ZPOPMAX z", "ZPOPMAX l 9", "ZPOPMAX none"],
    ),
    (
        "zpopmin",
        &["ZADD z 1 a 2 b", "ZADD l 1 <long> 2 b"],
        &["ZPOPMIN z 0", "ZPOPMIN z", "ZPOPMIN l 9", "ZPOPMIN none"],
    ),
    (
        "zrangestore",
        &["ZADD z 1 a 2 b", "ZADD l 1 <long>", "SET s 1"],
        &[
            "ZRANGESTORE n z 0 -1",
            "ZRANGESTORE s l 0 -1",
            "ZRANGESTORE z z 1 1",
            "ZRANGESTORE l none 0 -1",
        ],
    ),
    (
        "zrem",
        &["ZADD z 1 a 2 b", "ZADD l 1 <long> 2 b"],
        &[
            "ZREM z x",
            "ZREM z a",
            "ZREM z b",
            "ZREM l b",
            "ZREM l <long>",
        ],
    ),
    (
        "zremrangebylex",
        &["ZADD z 1 a 1 b", "ZADD l 1 <long> 1 b"],
        &[
            "ZREMRANGEBYLEX z (b +",
            "ZREMRANGEBYLEX z - [a",
            "ZREMRANGEBYLEX l - +",
        ],
    ),
    (
        "zremrangebyrank",
        &["ZADD z 1 a 2 b", "ZADD l 1 <long> 2 b"],
        &["ZREMRANGEBYRANK z 1 1", "ZREMRANGEBYRANK l 0 -1"],
    ),
    (
        "zremrangebyscore",
        &["ZADD z 1 a 2 b", "ZADD l 1 <long> 2 b"],
        &[
            "ZREMRANGEBYSCORE z (2 inf",
            "ZREMRANGEBYSCORE z 2 inf",
            "ZREMRANGEBYSCORE l 1 2",
        ],
    ),
];

type Dump = BTreeMap<(u32, Vec<u8>), (u8, Vec<u8>, Option<u64>)>;

struct Rig {
    keyspace: Keyspace,
    time: Time,
}

impl Rig {
    fn new(setup: &[&'static str]) -> Self {
        let options = Options {
            shards: 4,
            databases: DATABASES,
            seed: 3,
        };
        let mut rig = Self {
            keyspace: Keyspace::new(options, Box::new(Shell)),
            time: Time {
                tick: START,
                micros: 0,
                wall_offset_ms: 0,
            },
        };
        setup.iter().for_each(|line| rig.call(line));
        for shard in &rig.keyspace.shards {
            shard.lock().observers |= TEST_OBSERVER;
        }
        rig
    }

    fn call(&mut self, line: &'static str) {
        if let Some(ms) = line.strip_prefix("pass ") {
            self.time.tick += ms.parse::<u64>().expect("milliseconds");
            return;
        }
        let long = "x".repeat(20_000);
        let dump = crate::dump::of_string(b"dumped");
        let list = {
            let of = list_of(&[b"x", b"y"]);
            let own_deadline = None;
            let object =
                crate::value::Object::List(Box::new(collection::Owned { own_deadline, of }));
            let now = crate::time::Now::of_engine(self.time);
            let value = tidewheel_store::Value::Object(&object);
            crate::dump::of_value(crate::value::TAG_LIST, &value, &now)
        };
        let word = |word: &'static str| match word {
            "\"\"" => b"",
            LONG => long.as_bytes(),
            DUMP => &dump,
            LIST => &list,
            _ => word.as_bytes(),
        };
        let words: Vec<_> = line.split(' ').map(word).collect();
        let args = Args::from_slices(&words);
        let row = resolve(args).expect("a command");
        let (mut session, mut out) = (Session::default(), Writer::new(Protocol::Resp2));
        let seat = &mut self.keyspace.seat();
        let keyspace = &self.keyspace;
        keyspace.execute(seat, row, &mut session, self.time, args, &mut out);
    }

    /// All that is there, dead or alive.
    fn dump(&self) -> Dump {
        let mut dump = Dump::new();
        for shard in &self.keyspace.shards {
            let hold = shard.lock();
            for db in 0..DATABASES as u32 {
                let entries = hold.entries(db);
                entries.scan(0, usize::MAX, |slot| {
                    let bytes = collection::content(entries, slot);
                    let held = (entries.tag(slot), bytes, entries.deadline(slot));
                    dump.insert((db, entries.key(slot).to_vec()), held);
                });
            }
        }
        dump
    }

    fn recorded(&self) -> BTreeSet<(u32, Vec<u8>)> {
        let shards = self.keyspace.shards.iter();
        shards
            .flat_map(|shard| std::mem::take(&mut shard.lock().test_observer.0))
            .collect()
    }

    /// Runs `act`, and compares the changes of data with those that the observer was told. Returns
    /// the number of changed keys.
    #[track_caller]
    fn check(&mut self, what: &str, act: impl FnOnce(&mut Self)) -> usize {
        let before = self.dump();
        act(self);
        let after = self.dump();
        let keys = before.keys().chain(after.keys());
        let changed: BTreeSet<_> = keys
            .filter(|key| before.get(*key) != after.get(*key))
            .cloned()
            .collect();
        assert_eq!(self.recorded(), changed, "{what}");
        self.keyspace.assert_counted();
        changed.len()
    }
}

fn rows_that_write() -> impl Iterator<Item = &'static Command> {
    let rows = crate::rows::all_rows().iter();
    rows.filter(|row| row.flags.has(Flags::WRITE) && crate::is_run_here(row))
}

#[test]
fn every_command_that_writes_has_a_case_and_each_change_of_each_passes_the_funnel() {
    let rows: BTreeSet<_> = rows_that_write().map(|row| row.name).collect();
    let cases: BTreeSet<_> = CASES.iter().map(|(name, _, _)| *name).collect();
    assert_eq!(cases, rows, "write a case for each command that writes");
    for (name, setup, calls) in CASES {
        let mut rig = Rig::new(setup);
        let mut changed = 0;
        for line in *calls {
            changed += rig.check(line, |rig| rig.call(line));
        }
        // Other subcommands change the server.
        let data = !name.contains('|') || name.starts_with("xgroup");
        assert_eq!(changed > 0, data, "{name} changes what it should");
    }
}

#[test]
fn reads_that_meet_dead_keys_tell_of_them() {
    let mut rig = Rig::new(&["SET a 1 PX 5", "SET b 1 PX 5", "SET c 1 PX 50", "pass 5"]);
    for (line, changes) in [("MGET a c", 1), ("EXISTS c", 0), ("SCAN 0", 1)] {
        assert_eq!(rig.check(line, |rig| rig.call(line)), changes, "{line}");
    }
}

#[test]
fn observers_are_told_of_keys_that_expire_or_are_evicted() {
    let mut rig = Rig::new(&["SET a 1 PX 5", "SET b <long> PX 5", "SET c 1", "pass 5"]);
    let expired = rig.check("expiry", |rig| {
        for shard in 0..rig.keyspace.shards() {
            let seat = &mut rig.keyspace.seat();
            while rig.keyspace.expire(seat, shard, rig.time, 1).backlog {}
        }
    });
    assert_eq!(expired, 2);
    let evicted = rig.check("eviction", |rig| {
        rig.keyspace.rules().set_policy(Policy::AllKeysLru);
        rig.keyspace.rules().maxmemory.store(1, Relaxed);
        rig.keyspace.shrink(&mut rig.keyspace.seat(), rig.time);
    });
    assert_eq!(evicted, 1);
}
