//! The operations of `throughput`: the requests of each, and what must be stored before.
//!
//! Requests are templates. `{key}` is one of the loaded keys, `{at}` the number of a collection,
//! `{member}` one of its members, `{new}` a number that was hardly drawn before, `{value}` 16
//! bytes, `{ttl}` seconds that outlast the run.

use anyhow::{Context, Result};
use serde::Serialize;
use tidewheel_resp::{Protocol, Writer};

use super::client::Connection;
use super::keys::Key;
use super::loader::long_ttl_s;
use crate::progress;
use crate::rng::Rng;
use crate::zipf::Zipf;

/// The number of collections from which an operation draws.
const COLLECTIONS: u64 = 10_000;
/// Commands under way while collections are stored.
const BATCH: u64 = 500;

/// An operation: its requests, and the collections that it needs.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Op {
    pub(crate) name: &'static str,
    /// The first words of each collection, the words of one member, and the number of members; they
    /// are stored before the first request.
    stored: Option<(&'static str, &'static str, u64)>,
    /// Sent in turn, to one collection: what goes in by the first comes out by the second.
    requests: &'static [&'static str],
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

const HASH: Option<(&str, &str, u64)> = Some(("HSET hash:{at}", "field:{member} {value}", 10));
const ZSET: Option<(&str, &str, u64)> = Some(("ZADD zset:{at}", "{member} member:{member}", 100));
const LIST: Option<(&str, &str, u64)> = Some(("RPUSH list:{at}", "{value}", 100));
const QUEUE: Option<(&str, &str, u64)> = Some(("RPUSH queue:{at}", "{value}", 10));
const BAG: Option<(&str, &str, u64)> = Some(("SADD bag:{at}", "member:{member}", 10));
const RANKS: Option<(&str, &str, u64)> = Some(("ZADD ranks:{at}", "{member} member:{member}", 10));

const OPS: &[Op] = &[
    op("get", None, &["GET {key}"]),
    op("set_ex", None, &["SET {key} {value}{value} EX {ttl}"]),
    op(
        "mset_10",
        None,
        &[
            "MSET {key} {value} {key} {value} {key} {value} {key} {value} {key} {value} \
           {key} {value} {key} {value} {key} {value} {key} {value} {key} {value}",
        ],
    ),
    op(
        "mget_10",
        None,
        &["MGET {key} {key} {key} {key} {key} {key} {key} {key} {key} {key}"],
    ),
    op("incr", None, &["INCR counter:{at}"]),
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
];

const fn op(
    name: &'static str,
    stored: Option<(&'static str, &'static str, u64)>,
    requests: &'static [&'static str],
) -> Op {
    Op {
        name,
        stored,
        requests,
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
#[derive(Debug)]
pub(crate) struct Requests {
    op: &'static Op,
    templates: Vec<Vec<Argument>>,
    rng: Rng,
    keys: u64,
    /// The numbers of the next keys in turn; empty if they are uniform.
    drawn: Vec<u64>,
    at: usize,
    collection: u64,
    word: Vec<u8>,
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
            collection: 0,
            word: Vec::new(),
        }
    }

    /// Appends the next `count` requests.
    pub(crate) fn append(&mut self, count: usize, out: &mut Writer) {
        let templates = std::mem::take(&mut self.templates);
        let members = self.op.stored.map_or(1, |(_, _, members)| members);
        for turn in 0..count {
            let request = turn % templates.len();
            if request == 0 {
                self.collection = self.draw() % COLLECTIONS;
            }
            out.array(templates[request].len());
            let member = self.rng.below(members);
            self.append_words(&templates[request], member, out);
        }
        self.templates = templates;
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
            Piece::Filled("at") => self.fill_number(self.collection),
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

    /// Stores what the operation wants to find.
    pub(crate) fn store(&mut self, connection: &mut Connection) -> Result<()> {
        let Some((command, member, members)) = self.op.stored else {
            return Ok(());
        };
        progress::say("storing collections");
        let (command, member) = (words(command), words(member));
        for first in (0..COLLECTIONS).step_by(BATCH as usize) {
            let mut out = Writer::new(Protocol::Resp2);
            for at in first..first + BATCH {
                self.collection = at;
                out.array(command.len() + member.len() * members as usize);
                self.append_words(&command, 0, &mut out);
                (0..members).for_each(|id| self.append_words(&member, id, &mut out));
            }
            connection.send(out.as_bytes())?;
            let stored = connection.expect_replies(BATCH as usize);
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
            Requests::new(op, Rng::new(1), 10, Draw::Zipf).append(op.requests.len(), &mut out);
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
        Requests::new(op, Rng::new(1), 1, Draw::Uniform).append(2, &mut out);
        let text = String::from_utf8_lossy(out.as_bytes()).into_owned();
        let keys: Vec<_> = text
            .lines()
            .filter(|line| line.starts_with("queue:"))
            .collect();
        assert_eq!(keys.len(), 2);
        assert_eq!(keys[0], keys[1]);
    }
}
