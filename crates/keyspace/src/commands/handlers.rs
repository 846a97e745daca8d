//! The handler of each row of the table of commands.

use tidewheel_collections::{Hash, Set, ZSet};

use self::Handler::{Incremental, Keys, Unlocked, Whole};
use super::blocking::ServeFn;
use super::{
    bitfield, bitmap, bitop, compare, database, debug, dump, edit, expire, expiry, forecast, geo,
    hash, help, hyperloglog, introspect, key, lcs, list, members, number, object, scan, set, sort,
    stream, string, throttle, zset,
};
use crate::context::Context;
use crate::error::CommandError;
use crate::rows::{COUNT, Command, number_of};
use crate::steps::StepsFn;
use crate::time::TimeOrigin::{Epoch, Now};
use crate::time::Unit::{Milliseconds, Seconds};

/// The part of the program that runs a command, and its function.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Handler {
    /// The keyspace.
    Keys(HandlerFn),
    /// The keyspace, while no other thread uses it.
    Whole(HandlerFn),
    /// The keyspace, in steps.
    Incremental(StepsFn),
    /// The keyspace, without a look at any key.
    Unlocked(HandlerFn),
    /// The server around the keyspace. Or nobody: a row that has subcommands.
    Host,
}

/// A keyspace command's body. It runs with its keys' shards locked, or alone.
pub(crate) type HandlerFn = fn(&mut Context<'_, '_>) -> Result<(), CommandError>;

/// True if the keyspace runs a row; if not, the server around it does.
#[inline]
#[must_use]
pub fn is_run_here(row: &Command) -> bool {
    !matches!(handler(row), Handler::Host)
}

/// The row's handler.
#[inline]
pub(crate) fn handler(row: &Command) -> Handler {
    HANDLERS[usize::from(row.number)]
}

/// The function that runs a blocking command on one of its keys.
pub(crate) fn serve(row: Option<&Command>) -> ServeFn {
    let serve = row.and_then(|row| SERVES[usize::from(row.number)]);
    serve.unwrap_or(|_, _| Ok(false))
}

static HANDLERS: [Handler; COUNT] = {
    let mut handlers = [Handler::Host; COUNT];
    let mut i = 0;
    while i < BY_NAME.len() {
        let (name, handler) = BY_NAME[i];
        handlers[number_of(name)] = handler;
        i += 1;
    }
    handlers
};

static SERVES: [Option<ServeFn>; COUNT] = {
    let mut serves: [Option<ServeFn>; COUNT] = [None; COUNT];
    let mut i = 0;
    while i < BLOCKING.len() {
        let (name, serve) = BLOCKING[i];
        serves[number_of(name)] = Some(serve);
        i += 1;
    }
    serves
};

const BLOCKING: &[(&str, ServeFn)] = &[
    ("blmove", list::blocking::serve_blmove),
    ("blmpop", list::blocking::serve_blmpop),
    ("blpop", list::blocking::serve_blpop),
    ("brpop", list::blocking::serve_brpop),
    ("brpoplpush", list::blocking::serve_brpoplpush),
    ("bzmpop", zset::blocking::serve_bzmpop),
    ("bzpopmax", zset::blocking::serve_bzpopmax),
    ("bzpopmin", zset::blocking::serve_bzpopmin),
    ("xread", stream::read::serve_xread),
    ("xreadgroup", stream::read::serve_xreadgroup),
];

#[rustfmt::skip] // A line for each.
const BY_NAME: &[(&str, Handler)] = &[
    // string.rs
    ("append", Keys(edit::append)),
    ("cl.throttle", Keys(throttle::throttle)),
    ("decr", Keys(number::decr)),
    ("decrby", Keys(number::decrby)),
    ("delex", Keys(compare::delex)),
    ("delifeq", Keys(compare::delifeq)),
    ("get", Keys(string::get)),
    ("getdel", Keys(string::getdel)),
    ("getex", Keys(string::getex)),
    ("getrange", Keys(string::getrange)),
    ("getset", Keys(string::getset)),
    ("incr", Keys(number::incr)),
    ("incrby", Keys(number::incrby)),
    ("incrbyfloat", Keys(number::incrbyfloat)),
    ("lcs", Keys(lcs::lcs)),
    ("mget", Keys(string::mget)),
    ("mset", Keys(string::mset)),
    ("msetex", Keys(string::msetex)),
    ("msetnx", Keys(string::msetnx)),
    ("psetex", Keys(string::psetex)),
    ("set", Keys(string::set)),
    ("setex", Keys(string::setex)),
    ("setnx", Keys(string::setnx)),
    ("setrange", Keys(edit::setrange)),
    ("strlen", Keys(string::strlen)),
    ("substr", Keys(string::getrange)),
    // bitmap.rs
    ("bitcount", Keys(bitmap::bitcount)),
    ("bitfield", Keys(bitfield::bitfield)),
    ("bitfield_ro", Keys(bitfield::bitfield_ro)),
    ("bitop", Keys(bitop::bitop)),
    ("bitpos", Keys(bitmap::bitpos)),
    ("getbit", Keys(bitmap::getbit)),
    ("setbit", Keys(bitmap::setbit)),
    // hyperloglog.rs
    ("pfadd", Keys(hyperloglog::pfadd)),
    ("pfcount", Keys(hyperloglog::pfcount)),
    ("pfdebug", Keys(hyperloglog::pfdebug)),
    ("pfmerge", Keys(hyperloglog::pfmerge)),
    ("pfselftest", Keys(hyperloglog::pfselftest)),
    // hash.rs
    ("hdel", Keys(hash::write::hdel)),
    ("hexists", Keys(hash::read::hexists)),
    ("hget", Keys(hash::read::hget)),
    ("hgetall", Keys(hash::read::hgetall)),
    ("hgetdel", Keys(hash::lifetime::hgetdel)),
    ("hgetex", Keys(hash::lifetime::hgetex)),
    ("hincrby", Keys(hash::number::hincrby)),
    ("hincrbyfloat", Keys(hash::number::hincrbyfloat)),
    ("hkeys", Keys(hash::read::hkeys)),
    ("hlen", Keys(hash::read::hlen)),
    ("hmget", Keys(hash::read::hmget)),
    ("hmset", Keys(hash::write::hmset)),
    ("hrandfield", Keys(hash::random::hrandfield)),
    ("hscan", Keys(hash::hscan)),
    ("hset", Keys(hash::write::hset)),
    ("hsetex", Keys(hash::lifetime::hsetex)),
    ("hsetnx", Keys(hash::write::hsetnx)),
    ("hstrlen", Keys(hash::read::hstrlen)),
    ("hvals", Keys(hash::read::hvals)),
    // set.rs
    ("sadd", Keys(set::basic::sadd)),
    ("scard", Keys(set::basic::scard)),
    ("sdiff", Keys(set::algebra::sdiff)),
    ("sdiffstore", Keys(set::algebra::sdiffstore)),
    ("sinter", Keys(set::algebra::sinter)),
    ("sintercard", Keys(set::algebra::sintercard)),
    ("sinterstore", Keys(set::algebra::sinterstore)),
    ("sismember", Keys(set::basic::sismember)),
    ("smembers", Keys(set::basic::smembers)),
    ("smismember", Keys(set::basic::smismember)),
    ("smove", Keys(set::basic::smove)),
    ("spop", Keys(set::random::spop)),
    ("srandmember", Keys(set::random::srandmember)),
    ("srem", Keys(set::basic::srem)),
    ("sscan", Keys(set::sscan)),
    ("sunion", Keys(set::algebra::sunion)),
    ("sunionstore", Keys(set::algebra::sunionstore)),
    // members.rs
    ("hexpire", Keys(|ctx| members::expire::<Hash>(ctx, Seconds, Now))),
    ("hpexpire", Keys(|ctx| members::expire::<Hash>(ctx, Milliseconds, Now))),
    ("hexpireat", Keys(|ctx| members::expire::<Hash>(ctx, Seconds, Epoch))),
    ("hpexpireat", Keys(|ctx| members::expire::<Hash>(ctx, Milliseconds, Epoch))),
    ("httl", Keys(|ctx| members::report::<Hash>(ctx, Seconds, Now))),
    ("hpttl", Keys(|ctx| members::report::<Hash>(ctx, Milliseconds, Now))),
    ("hexpiretime", Keys(|ctx| members::report::<Hash>(ctx, Seconds, Epoch))),
    ("hpexpiretime", Keys(|ctx| members::report::<Hash>(ctx, Milliseconds, Epoch))),
    ("hpersist", Keys(members::persist::<Hash>)),
    ("sexpire", Keys(|ctx| members::expire::<Set>(ctx, Seconds, Now))),
    ("spexpire", Keys(|ctx| members::expire::<Set>(ctx, Milliseconds, Now))),
    ("sexpireat", Keys(|ctx| members::expire::<Set>(ctx, Seconds, Epoch))),
    ("spexpireat", Keys(|ctx| members::expire::<Set>(ctx, Milliseconds, Epoch))),
    ("sttl", Keys(|ctx| members::report::<Set>(ctx, Seconds, Now))),
    ("spttl", Keys(|ctx| members::report::<Set>(ctx, Milliseconds, Now))),
    ("sexpiretime", Keys(|ctx| members::report::<Set>(ctx, Seconds, Epoch))),
    ("spexpiretime", Keys(|ctx| members::report::<Set>(ctx, Milliseconds, Epoch))),
    ("spersist", Keys(members::persist::<Set>)),
    ("zexpire", Keys(|ctx| members::expire::<ZSet>(ctx, Seconds, Now))),
    ("zpexpire", Keys(|ctx| members::expire::<ZSet>(ctx, Milliseconds, Now))),
    ("zexpireat", Keys(|ctx| members::expire::<ZSet>(ctx, Seconds, Epoch))),
    ("zpexpireat", Keys(|ctx| members::expire::<ZSet>(ctx, Milliseconds, Epoch))),
    ("zttl", Keys(|ctx| members::report::<ZSet>(ctx, Seconds, Now))),
    ("zpttl", Keys(|ctx| members::report::<ZSet>(ctx, Milliseconds, Now))),
    ("zexpiretime", Keys(|ctx| members::report::<ZSet>(ctx, Seconds, Epoch))),
    ("zpexpiretime", Keys(|ctx| members::report::<ZSet>(ctx, Milliseconds, Epoch))),
    ("zpersist", Keys(members::persist::<ZSet>)),
    ("expiremember", Keys(|ctx| members::expire_member(ctx, Seconds, Now))),
    ("expirememberat", Keys(|ctx| members::expire_member(ctx, Seconds, Epoch))),
    ("pexpirememberat", Keys(|ctx| members::expire_member(ctx, Milliseconds, Epoch))),
    // zset.rs
    ("zadd", Keys(zset::write::zadd)),
    ("zcard", Keys(zset::read::zcard)),
    ("zincrby", Keys(zset::write::zincrby)),
    ("zmpop", Keys(zset::pop::zmpop)),
    ("zmscore", Keys(zset::read::zmscore)),
    ("zpopmax", Keys(zset::pop::zpopmax)),
    ("zpopmin", Keys(zset::pop::zpopmin)),
    ("zrandmember", Keys(zset::random::zrandmember)),
    ("zrank", Keys(zset::read::zrank)),
    ("zrem", Keys(zset::write::zrem)),
    ("zrevrank", Keys(zset::read::zrevrank)),
    ("zscan", Keys(zset::zscan)),
    ("zscore", Keys(zset::read::zscore)),
    // zset_range.rs
    ("zcount", Keys(zset::read::zcount)),
    ("zlexcount", Keys(zset::read::zlexcount)),
    ("zrange", Keys(zset::range::zrange)),
    ("zrangebylex", Keys(zset::range::zrangebylex)),
    ("zrangebyscore", Keys(zset::range::zrangebyscore)),
    ("zrangestore", Keys(zset::range::zrangestore)),
    ("zremrangebylex", Keys(zset::remove::zremrangebylex)),
    ("zremrangebyrank", Keys(zset::remove::zremrangebyrank)),
    ("zremrangebyscore", Keys(zset::remove::zremrangebyscore)),
    ("zrevrange", Keys(zset::range::zrevrange)),
    ("zrevrangebylex", Keys(zset::range::zrevrangebylex)),
    ("zrevrangebyscore", Keys(zset::range::zrevrangebyscore)),
    // list.rs
    ("lindex", Keys(list::read::lindex)),
    ("linsert", Keys(list::write::linsert)),
    ("llen", Keys(list::read::llen)),
    ("lmove", Keys(list::transfer::lmove)),
    ("lmpop", Keys(list::pop::lmpop)),
    ("lpop", Keys(list::pop::lpop)),
    ("lpos", Keys(list::read::lpos)),
    ("lpush", Keys(list::push::lpush)),
    ("lpushx", Keys(list::push::lpushx)),
    ("lrange", Keys(list::read::lrange)),
    ("lrem", Keys(list::write::lrem)),
    ("lset", Keys(list::write::lset)),
    ("ltrim", Keys(list::write::ltrim)),
    ("rpop", Keys(list::pop::rpop)),
    ("rpoplpush", Keys(list::transfer::rpoplpush)),
    ("rpush", Keys(list::push::rpush)),
    ("rpushx", Keys(list::push::rpushx)),
    // zset_combine.rs
    ("zdiff", Keys(zset::combine::zdiff)),
    ("zdiffstore", Keys(zset::combine::zdiffstore)),
    ("zinter", Keys(zset::combine::zinter)),
    ("zintercard", Keys(zset::combine::zintercard)),
    ("zinterstore", Keys(zset::combine::zinterstore)),
    ("zunion", Keys(zset::combine::zunion)),
    ("zunionstore", Keys(zset::combine::zunionstore)),
    // geo.rs
    ("geoadd", Keys(geo::place::geoadd)),
    ("geodist", Keys(geo::place::geodist)),
    ("geohash", Keys(geo::place::geohash)),
    ("geopos", Keys(geo::place::geopos)),
    ("geosearch", Keys(geo::search::geosearch)),
    ("geosearchstore", Keys(geo::search::geosearchstore)),
    // geo_radius.rs
    ("georadius", Keys(geo::search::georadius)),
    ("georadius_ro", Keys(geo::search::georadius_ro)),
    ("georadiusbymember", Keys(geo::search::georadiusbymember)),
    ("georadiusbymember_ro", Keys(geo::search::georadiusbymember_ro)),
    // stream.rs
    ("xack", Keys(stream::group::xack)),
    ("xackdel", Keys(stream::delete::xackdel)),
    ("xadd", Keys(stream::add::xadd)),
    ("xautoclaim", Keys(stream::claim::xautoclaim)),
    ("xclaim", Keys(stream::claim::xclaim)),
    ("xdel", Keys(stream::delete::xdel)),
    ("xdelex", Keys(stream::delete::xdelex)),
    ("xgroup|create", Keys(stream::group::create)),
    ("xgroup|createconsumer", Keys(stream::group::createconsumer)),
    ("xgroup|delconsumer", Keys(stream::group::delconsumer)),
    ("xgroup|destroy", Keys(stream::group::destroy)),
    ("xgroup|help", Unlocked(help::help)),
    ("xgroup|setid", Keys(stream::group::setid)),
    ("xinfo|consumers", Keys(stream::info::consumers)),
    ("xinfo|groups", Keys(stream::info::groups)),
    ("xinfo|help", Unlocked(help::help)),
    ("xinfo|stream", Keys(stream::info::stream)),
    ("xlen", Keys(stream::xlen)),
    ("xpending", Keys(stream::pending::xpending)),
    ("xrange", Keys(stream::range::xrange)),
    ("xread", Keys(stream::read::xread)),
    ("xreadgroup", Keys(stream::read::xreadgroup)),
    ("xrevrange", Keys(stream::range::xrevrange)),
    ("xsetid", Keys(stream::add::xsetid)),
    ("xtrim", Keys(stream::trim::xtrim)),
    // blocking.rs
    ("blmove", Keys(list::blocking::blmove)),
    ("blmpop", Keys(list::blocking::blmpop)),
    ("blpop", Keys(list::blocking::blpop)),
    ("brpop", Keys(list::blocking::brpop)),
    ("brpoplpush", Keys(list::blocking::brpoplpush)),
    ("bzmpop", Keys(zset::blocking::bzmpop)),
    ("bzpopmax", Keys(zset::blocking::bzpopmax)),
    ("bzpopmin", Keys(zset::blocking::bzpopmin)),
    ("function|help", Unlocked(help::help)),
    ("script|help", Unlocked(help::help)),
    // key.rs
    ("copy", Keys(key::copy)),
    ("del", Keys(key::del)),
    ("dump", Keys(dump::dump)),
    ("exists", Keys(key::exists)),
    ("keys", Incremental(scan::KEYS)),
    ("move", Keys(key::move_to)),
    ("object|encoding", Keys(object::encoding)),
    ("object|freq", Keys(object::freq)),
    ("object|help", Unlocked(help::help)),
    ("object|idletime", Keys(object::idletime)),
    ("object|refcount", Keys(object::refcount)),
    ("randomkey", Incremental(scan::RANDOMKEY)),
    ("rename", Keys(key::rename)),
    ("renamenx", Keys(key::renamenx)),
    ("restore", Keys(dump::restore)),
    ("scan", Incremental(scan::SCAN)),
    ("sort", Keys(sort::sort)),
    ("sort_ro", Keys(sort::sort_ro)),
    ("touch", Keys(key::touch)),
    ("type", Keys(key::type_of)),
    ("unlink", Keys(key::del)),
    // expiry.rs
    ("expire", Keys(expire::expire)),
    ("expireat", Keys(expire::expireat)),
    ("expiretime", Keys(expire::expiretime)),
    ("expiry|forecast", Incremental(forecast::FORECAST)),
    ("expiry|freeze", Keys(expiry::freeze)),
    ("expiry|help", Unlocked(help::help)),
    ("expiry|resume", Keys(expiry::resume)),
    ("persist", Keys(expire::persist)),
    ("pexpire", Keys(expire::pexpire)),
    ("pexpireat", Keys(expire::pexpireat)),
    ("pexpiretime", Keys(expire::pexpiretime)),
    ("pttl", Keys(expire::pttl)),
    ("ttl", Keys(expire::ttl)),
    // connection.rs
    ("client|help", Unlocked(help::help)),
    ("select", Keys(database::select)),
    // pubsub.rs
    ("pubsub|help", Unlocked(help::help)),
    // server.rs
    ("command", Unlocked(introspect::all)),
    ("command|count", Unlocked(introspect::count)),
    ("command|docs", Unlocked(introspect::docs)),
    ("command|getkeys", Unlocked(introspect::getkeys)),
    ("command|getkeysandflags", Unlocked(introspect::getkeysandflags)),
    ("command|help", Unlocked(help::help)),
    ("command|info", Unlocked(introspect::info)),
    ("command|list", Unlocked(introspect::list)),
    ("config|help", Unlocked(help::help)),
    ("dbsize", Incremental(database::DBSIZE)),
    ("flushall", Whole(database::flushall)),
    ("flushdb", Whole(database::flushdb)),
    ("swapdb", Whole(database::swapdb)),
    ("time", Keys(database::time)),
    // diagnosis.rs
    ("acl|help", Unlocked(help::help)),
    ("latency|help", Unlocked(help::help)),
    ("slowlog|help", Unlocked(help::help)),
    // inspect.rs
    ("debug|digest", Whole(debug::digest)),
    ("debug|digest-value", Keys(debug::digest_value)),
    ("debug|listpack", Keys(debug::listpack)),
    ("debug|object", Keys(debug::object)),
    ("memory|help", Unlocked(help::help)),
    ("memory|usage", Keys(object::memory_usage)),
];
