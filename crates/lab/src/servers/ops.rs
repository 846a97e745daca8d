//! The operations of `throughput`: the requests of each, and what must be stored before.
//!
//! Requests are templates. `{key}` is one of the loaded keys, `{at}` the number of a collection,
//! `{own}` the number of one that no other connection uses, `{member}` one of its members, `{new}`
//! a number that was hardly drawn before, `{turn}` the number of the turn, greater than all before,
//! `{value}` 16 bytes, `{ttl}` seconds that outlast the run, `{sha}` the operation's script.

use anyhow::{Context, Result, bail};
use serde::Serialize;
use tidewheel_resp::{Protocol, Reply, Writer};

use super::client::Connection;
use super::keys::Key;
use super::loader::long_ttl_s;
use crate::clock;
use crate::progress;
use crate::rng::Rng;
use crate::zipf::Zipf;

/// The number of collections from which an operation draws.
const COLLECTIONS: u64 = 10_000;
/// Collections that are stored at a time.
const BATCH: u64 = 100;
/// The number of connections that can have collections of their own.
const OWNERS: u64 = 100;

/// An operation: its requests, and what they need.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Op {
    pub(crate) name: &'static str,
    stored: Stored,
    /// Sent in turn, to one collection: what goes in by the first comes out by the second.
    requests: &'static [&'static str],
    /// The script that `{sha}` names.
    script: Option<&'static str>,
}

/// The collections that are stored before the first request.
#[derive(Debug, PartialEq, Eq)]
enum Stored {
    Nothing,
    /// One command a collection: its first words, the words of one member, and the number of
    /// members.
    Whole(&'static str, &'static str, u64),
    /// The first command of a collection, that of each member, and the number of members. Members
    /// are counted from one.
    Each(&'static str, &'static str, u64),
}

impl Stored {
    fn members(&self) -> u64 {
        match *self {
            Self::Nothing => 1,
            Self::Whole(_, _, members) | Self::Each(_, _, members) => members,
        }
    }
}

/// Keys by popularity are drawn before the run, this many: a draw takes longer than a request.
const DRAWN: usize = 1 << 20;
/// The exponent of Zipf's law.
const EXPONENT: f64 = 0.99;

/// The distribution by which requests choose keys or collections.
#[derive(Clone, Copy, Debug, Default, clap::ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Draw {
    /// Each as often as the others.
    #[default]
    Uniform,
    /// By Zipf's law with the exponent 0.99.
    Zipf,
    /// The same one always.
    Hot,
}

const HASH: Stored = Stored::Whole("HSET hash:{at}", "field:{member} {value}", 10);
const ZSET: Stored = Stored::Whole("ZADD zset:{at}", "{member} member:{member}", 100);
const LIST: Stored = Stored::Whole("RPUSH list:{at}", "{value}", 100);
const QUEUE: Stored = Stored::Whole("RPUSH queue:{at}", "{value}", 10);
const BAG: Stored = Stored::Whole("SADD bag:{at}", "member:{member}", 10);
const RANKS: Stored = Stored::Whole("ZADD ranks:{at}", "{member} member:{member}", 10);
const LOG: Stored = Stored::Each(
    "XGROUP CREATE log:{at} workers 0 MKSTREAM",
    "XADD log:{at} {member}-1 name {value} state {member}",
    100,
);
const TASKS: Stored = Stored::Each(
    "XGROUP CREATE tasks:{at} workers 0 MKSTREAM",
    "XADD tasks:{at} {member}-1 name {value} state {member}",
    100,
);
const WORK: Stored = Stored::Each(
    "XGROUP CREATE work:{at} workers 0 MKSTREAM",
    "XADD work:{at} NOMKSTREAM MAXLEN 0 * job {value}",
    1,
);

/// A limit of calls per window: the first call of a window starts it.
const LIMITER: &str = "local calls = redis.call('INCR', KEYS[1])
if calls == 1 then redis.call('EXPIRE', KEYS[1], ARGV[1]) end
return calls";
/// The release of a lock by whoever holds it.
const UNLOCK: &str = "if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0";
const TWENTY_CALLS: &str = "for field = 1, 20 do redis.call('HSET', KEYS[1], field, ARGV[1]) end
return 20";
/// Reads and writes a key that the call does not declare.
const UNDECLARED: &str = "return redis.call('INCR', ARGV[1])";

const OPS: &[Op] = &[
    op("get", Stored::Nothing, &["GET {key}"]),
    op(
        "set_ex",
        Stored::Nothing,
        &["SET {key} {value}{value} EX {ttl}"],
    ),
    op(
        "mset_10",
        Stored::Nothing,
        &[
            "MSET {key} {value} {key} {value} {key} {value} {key} {value} {key} {value} \
           {key} {value} {key} {value} {key} {value} {key} {value} {key} {value}",
        ],
    ),
    op(
        "mget_10",
        Stored::Nothing,
        &["MGET {key} {key} {key} {key} {key} {key} {key} {key} {key} {key}"],
    ),
    op("incr", Stored::Nothing, &["INCR counter:{at}"]),
    op(
        "lpush_rpop",
        QUEUE,
        &["LPUSH queue:{at} {value}", "RPOP queue:{at}"],
    ),
    op("lrange_100", LIST, &["LRANGE list:{at} 0 99"]),
    op(
        "sadd_spop",
        BAG,
        &["SADD bag:{at} member:{new}", "SPOP bag:{at}"],
    ),
    op("hset", HASH, &["HSET hash:{at} field:{member} {value}"]),
    op("hget", HASH, &["HGET hash:{at} field:{member}"]),
    op("hgetall_10", HASH, &["HGETALL hash:{at}"]),
    op("zadd", ZSET, &["ZADD zset:{at} {new} member:{member}"]),
    op("zrange_10", ZSET, &["ZRANGE zset:{at} 0 9"]),
    op("zrank", ZSET, &["ZRANK zset:{at} member:{member}"]),
    op(
        "zadd_zpopmin",
        RANKS,
        &["ZADD ranks:{at} {new} member:{new}", "ZPOPMIN ranks:{at}"],
    ),
    // Each call is allowed, and moves the key's deadline by a second.
    op(
        "cl_throttle",
        Stored::Nothing,
        &["CL.THROTTLE throttle:{at} 1000000 60 60"],
    ),
    op(
        "cl_throttle_refused",
        Stored::Nothing,
        &["CL.THROTTLE refusing:{at} 0 1 3600"],
    ),
    op(
        "xadd",
        Stored::Nothing,
        &["XADD stream:{at} * name {value} state {member}"],
    ),
    op(
        "xadd_maxlen",
        Stored::Nothing,
        &["XADD short:{at} MAXLEN ~ 100 * name {value} state {member}"],
    ),
    op(
        "xread_10",
        LOG,
        &["XREAD COUNT 10 STREAMS log:{at} {member}"],
    ),
    // Ten entries are read and acknowledged; then the group goes back to the first.
    op(
        "xreadgroup_xack_10",
        TASKS,
        &[
            "XREADGROUP GROUP workers one COUNT 10 STREAMS tasks:{at} >",
            "XACK tasks:{at} workers 1-1 2-1 3-1 4-1 5-1 6-1 7-1 8-1 9-1 10-1",
            "XGROUP SETID tasks:{at} workers 0 ENTRIESREAD 0",
        ],
    ),
    op(
        "xadd_xreadgroup_xack",
        WORK,
        &[
            "XADD work:{own} MAXLEN ~ 100 {turn}-1 job {value}",
            "XREADGROUP GROUP workers one COUNT 10 STREAMS work:{own} >",
            "XACK work:{own} workers {turn}-1",
        ],
    ),
    script("limiter", LIMITER, &["EVALSHA {sha} 1 limit:{at} {ttl}"]),
    script(
        "set_unlock",
        UNLOCK,
        &[
            "SET lock:{at} token EX {ttl}",
            "EVALSHA {sha} 1 lock:{at} token",
        ],
    ),
    script("unlock_refused", UNLOCK, &["EVALSHA {sha} 1 {key} token"]),
    script(
        "twenty_calls",
        TWENTY_CALLS,
        &["EVALSHA {sha} 1 twenty:{at} {value}"],
    ),
    script("undeclared", UNDECLARED, &["EVALSHA {sha} 0 hidden:{at}"]),
];

const fn op(name: &'static str, stored: Stored, requests: &'static [&'static str]) -> Op {
    Op {
        name,
        stored,
        requests,
        script: None,
    }
}

const fn script(name: &'static str, script: &'static str, requests: &'static [&'static str]) -> Op {
    Op {
        name,
        stored: Stored::Nothing,
        requests,
        script: Some(script),
    }
}

/// Reads an operation's name.
pub(crate) fn parse(name: &str) -> Result<&'static Op, String> {
    let names = || OPS.iter().map(|op| op.name).collect::<Vec<_>>().join(", ");
    OPS.iter()
        .find(|op| op.name == name)
        .ok_or_else(|| format!("one of {}", names()))
}

/// An argument of a request: text, and what is filled in. Cut once, since the client shares the
/// server's cores.
type Argument = Vec<Piece>;

#[derive(Clone, Copy, Debug)]
enum Piece {
    Text(&'static str),
    Filled(&'static str),
}

fn words(template: &'static str) -> Vec<Argument> {
    let cut = |word: &'static str| {
        let pieces = word.split(['{', '}']).enumerate();
        let piece = |(at, text)| match at % 2 {
            0 => Piece::Text(text),
            _ => Piece::Filled(text),
        };
        pieces.map(piece).collect()
    };
    template.split_ascii_whitespace().map(cut).collect()
}

/// Writes the requests of one operation.
#[derive(Clone, Debug)]
pub(crate) struct Requests {
    op: &'static Op,
    templates: Vec<Vec<Argument>>,
    rng: Rng,
    keys: u64,
    /// The numbers of the next keys in turn; empty if they are uniform.
    drawn: Vec<u64>,
    at: usize,
    /// The turn of each connection, by its number.
    turns: Vec<Turn>,
    /// The turn that is being written, and the connection that it is of.
    turn: Turn,
    connection: u64,
    /// The number of the turn that started last.
    started: u64,
    sha: String,
    word: Vec<u8>,
}

/// Turns are counted from here: later runs have greater numbers.
fn now() -> u64 {
    u64::try_from(clock::wall_us()).unwrap_or(0)
}

/// A turn of the operation's requests.
#[derive(Clone, Copy, Debug, Default)]
struct Turn {
    number: u64,
    collection: u64,
    /// The request that comes next.
    request: usize,
}

impl Requests {
    pub(crate) fn new(op: &'static Op, mut rng: Rng, keys: u64, draw: Draw) -> Self {
        let drawn = match draw {
            Draw::Uniform => Vec::new(),
            Draw::Zipf => {
                let zipf = Zipf::new(keys, EXPONENT);
                (0..DRAWN).map(|_| zipf.draw(&mut rng)).collect()
            }
            Draw::Hot => vec![0],
        };
        Self {
            op,
            templates: op.requests.iter().map(|text| words(text)).collect(),
            rng,
            keys,
            drawn,
            at: 0,
            turns: Vec::new(),
            turn: Turn::default(),
            connection: 0,
            started: now(),
            sha: String::new(),
            word: Vec::new(),
        }
    }

    /// The same requests for connections that come later.
    pub(crate) fn anew(&self) -> Self {
        Self {
            turns: Vec::new(),
            started: now(),
            ..self.clone()
        }
    }

    /// Appends the next `count` requests of a connection.
    pub(crate) fn append(&mut self, connection: usize, count: usize, out: &mut Writer) {
        let templates = std::mem::take(&mut self.templates);
        let members = self.op.stored.members();
        if self.turns.len() <= connection {
            self.turns.resize(connection + 1, Turn::default());
        }
        self.turn = self.turns[connection];
        self.connection = connection as u64;
        for _ in 0..count {
            let request = self.turn.request;
            if request == 0 {
                self.turn.collection = self.draw() % COLLECTIONS;
                self.started += 1;
                self.turn.number = self.started;
            }
            self.turn.request = (request + 1) % templates.len();
            let member = self.rng.below(members);
            self.append_command(&templates[request], member, out);
        }
        self.turns[connection] = self.turn;
        self.templates = templates;
    }

    fn append_command(&mut self, words: &[Argument], member: u64, out: &mut Writer) {
        out.array(words.len());
        self.append_words(words, member, out);
    }

    fn append_words(&mut self, words: &[Argument], member: u64, out: &mut Writer) {
        for word in words {
            self.word.clear();
            word.iter().for_each(|&piece| self.fill(piece, member));
            out.bulk(&self.word);
        }
    }

    fn fill(&mut self, piece: Piece, member: u64) {
        match piece {
            Piece::Text(text) => self.word.extend_from_slice(text.as_bytes()),
            Piece::Filled("key") => {
                let key = Key::live(self.draw());
                self.word.extend_from_slice(&key.bytes());
            }
            Piece::Filled("at") => self.fill_number(self.turn.collection),
            Piece::Filled("own") => {
                let collection = self.turn.collection;
                self.fill_number(collection - collection % OWNERS + self.connection % OWNERS);
            }
            Piece::Filled("turn") => self.fill_number(self.turn.number),
            Piece::Filled("sha") => self.word.extend_from_slice(self.sha.as_bytes()),
            Piece::Filled("member") => self.fill_number(member),
            Piece::Filled("new") => {
                let number = self.rng.next_u64() >> 34;
                self.fill_number(number);
            }
            Piece::Filled("value") => {
                let value = Key::live(self.rng.below(self.keys)).value();
                self.word.extend_from_slice(&value[..16]);
            }
            Piece::Filled("ttl") => {
                let seconds = long_ttl_s(&mut self.rng);
                self.fill_number(seconds);
            }
            Piece::Filled(_) => unreachable!("a template names what exists"),
        }
    }

    /// The number of the next key.
    fn draw(&mut self) -> u64 {
        if self.drawn.is_empty() {
            return self.rng.below(self.keys);
        }
        self.at = (self.at + 1) % self.drawn.len();
        self.drawn[self.at]
    }

    fn fill_number(&mut self, number: u64) {
        let mut digits = itoa::Buffer::new();
        self.word
            .extend_from_slice(digits.format(number).as_bytes());
    }

    /// Stores what the operation wants to find, and its script.
    pub(crate) fn store(&mut self, connection: &mut Connection) -> Result<()> {
        if let Some(script) = self.op.script {
            match connection.call(&["SCRIPT", "LOAD", script])? {
                Reply::Bulk(sha) => self.sha = String::from_utf8(sha)?,
                other => bail!("SCRIPT LOAD was answered with {other:?}"),
            }
        }
        let (first, member, members) = match self.op.stored {
            Stored::Nothing => return Ok(()),
            Stored::Whole(first, member, members) | Stored::Each(first, member, members) => {
                (words(first), words(member), members)
            }
        };
        let each = matches!(self.op.stored, Stored::Each(..));
        progress::say("storing collections");
        for start in (0..COLLECTIONS).step_by(BATCH as usize) {
            let mut out = Writer::new(Protocol::Resp2);
            for at in start..start + BATCH {
                self.turn.collection = at;
                if each {
                    self.append_command(&first, 0, &mut out);
                    (1..=members).for_each(|id| self.append_command(&member, id, &mut out));
                } else {
                    out.array(first.len() + member.len() * members as usize);
                    self.append_words(&first, 0, &mut out);
                    (0..members).for_each(|id| self.append_words(&member, id, &mut out));
                }
            }
            connection.send(out.as_bytes())?;
            let replies = BATCH * if each { 1 + members } else { 1 };
            let stored = connection.expect_replies(replies as usize);
            stored.with_context(|| format!("failed to store what {} needs", self.op.name))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_fills_its_templates() {
        for op in OPS {
            let mut out = Writer::new(Protocol::Resp2);
            Requests::new(op, Rng::new(1), 10, Draw::Zipf).append(0, op.requests.len(), &mut out);
            let text = String::from_utf8_lossy(out.as_bytes()).into_owned();
            assert!(!text.contains(['{', '}']), "{text}");
            assert!(text.starts_with('*'), "{text}");
        }
        assert!(parse("nothing").is_err());
        assert_eq!(parse("get").map(|op| op.name), Ok("get"));
    }

    #[test]
    fn what_goes_in_and_what_comes_out_is_of_one_collection() {
        let mut out = Writer::new(Protocol::Resp2);
        let op = parse("lpush_rpop").expect("it exists");
        Requests::new(op, Rng::new(1), 1, Draw::Uniform).append(0, 2, &mut out);
        let text = String::from_utf8_lossy(out.as_bytes()).into_owned();
        let keys: Vec<_> = text
            .lines()
            .filter(|line| line.starts_with("queue:"))
            .collect();
        assert_eq!(keys.len(), 2);
        assert_eq!(keys[0], keys[1]);
    }
}
