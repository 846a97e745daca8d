//! A host that knows a dozen commands, and a way to run a script with it.

use std::collections::BTreeMap;

use tidewheel_resp::{Args, Protocol, Writer};
use tidewheel_scripts::{Engine, Host, Limits, Sha};

type Fields = Vec<(Vec<u8>, Vec<u8>)>;

/// A host for tests.
#[derive(Default)]
pub(crate) struct Fake {
    pub(crate) strings: BTreeMap<Vec<u8>, Vec<u8>>,
    pub(crate) lists: BTreeMap<Vec<u8>, Vec<Vec<u8>>>,
    pub(crate) hashes: BTreeMap<Vec<u8>, Fields>,
    /// Commands that were run.
    pub(crate) calls: usize,
    /// What was logged.
    pub(crate) logs: Vec<(i64, Vec<u8>)>,
    /// How often it was asked whether the script may go on.
    pub(crate) asked: usize,
    /// From which time on it says no.
    pub(crate) patience: Option<usize>,
}

impl Host for Fake {
    fn call(&mut self, args: Args<'_>, out: &mut Writer) {
        self.calls += 1;
        let name = String::from_utf8_lossy(&args[0]).to_lowercase();
        let arg = |i: usize| args.get(i).unwrap_or_default().to_vec();
        match (name.as_str(), args.len()) {
            ("ping", 1) => out.simple("PONG"),
            ("echo", 2) => out.bulk(&args[1]),
            ("set", 3) => {
                self.strings.insert(arg(1), arg(2));
                out.ok();
            }
            ("get", 2) => match self.strings.get(&args[1]) {
                Some(value) => out.bulk(value),
                None if self.lists.contains_key(&args[1]) => {
                    out.error("WRONGTYPE Operation against a key holding the wrong kind of value");
                }
                None => out.null(),
            },
            ("incr", 2) => {
                let value = self.strings.entry(arg(1)).or_insert_with(|| b"0".to_vec());
                let number = std::str::from_utf8(value)
                    .ok()
                    .and_then(|it| it.parse::<i64>().ok());
                match number {
                    Some(number) => {
                        *value = (number + 1).to_string().into_bytes();
                        out.integer(number + 1);
                    }
                    None => out.error("ERR value is not an integer or out of range"),
                }
            }
            ("rpush", 3..) => {
                let list = self.lists.entry(arg(1)).or_default();
                list.extend(args.from(2).iter().map(<[u8]>::to_vec));
                out.integer(list.len() as i64);
            }
            ("lrange", 4) => {
                let list = self.lists.get(&args[1]).cloned().unwrap_or_default();
                out.array(list.len());
                list.iter().for_each(|member| out.bulk(member));
            }
            ("mget", 2..) => {
                out.array(args.len() - 1);
                for key in args.from(1) {
                    match self.strings.get(key) {
                        Some(value) => out.bulk(value),
                        None => out.null(),
                    }
                }
            }
            ("hset", 4) => {
                self.hashes
                    .entry(arg(1))
                    .or_default()
                    .push((arg(2), arg(3)));
                out.integer(1);
            }
            ("hgetall", 2) => {
                let hash = self.hashes.get(&args[1]).cloned().unwrap_or_default();
                out.map(hash.len());
                for (field, value) in hash {
                    out.bulk(&field);
                    out.bulk(&value);
                }
            }
            ("sadd", 3) => {
                self.hashes
                    .entry(arg(1))
                    .or_default()
                    .push((arg(2), Vec::new()));
                out.integer(1);
            }
            ("smembers", 2) => {
                let members = self.hashes.get(&args[1]).cloned().unwrap_or_default();
                out.set(members.len());
                members.iter().for_each(|(member, _)| out.bulk(member));
            }
            ("zadd", 4) => {
                self.hashes
                    .entry(arg(1))
                    .or_default()
                    .push((arg(3), arg(2)));
                out.integer(1);
            }
            ("zscore", 3) => {
                let scores = self.hashes.get(&args[1]).cloned().unwrap_or_default();
                match scores.iter().find(|(member, _)| *member == args[2]) {
                    Some((_, score)) => out.double(String::from_utf8_lossy(score).parse().unwrap()),
                    None => out.null(),
                }
            }
            ("debug", 3) if &args[1] == b"protocol" => match &args[2] {
                b"bignum" => out.big_number("1234567999999999999999999999999999999"),
                b"true" => out.boolean(true),
                b"false" => out.boolean(false),
                b"null" => out.null(),
                b"verbatim" => out.verbatim("txt", b"This is a verbatim\nstring"),
                #[allow(clippy::approx_constant, reason = "the table of replies has it")]
                b"double" => out.double(3.141),
                _ => out.error("ERR no such reply"),
            },
            (
                "ping" | "echo" | "set" | "get" | "incr" | "rpush" | "lrange" | "mget" | "hset"
                | "hgetall" | "sadd" | "smembers" | "zadd" | "zscore",
                _,
            ) => out.error("ERR Wrong number of args calling Redis command from script"),
            _ => out.error("ERR Unknown Redis command called from script"),
        }
    }

    fn may_call(&mut self, args: Args<'_>) -> Option<bool> {
        match &args[0] {
            b"get" => Some(true),
            b"flushall" => Some(false),
            _ => None,
        }
    }

    fn log(&mut self, level: i64, text: &[u8]) {
        self.logs.push((level, text.to_vec()));
    }

    fn interrupt(&mut self) -> Option<String> {
        self.asked += 1;
        let over = self.patience.is_some_and(|patience| self.asked > patience);
        over.then(|| "ERR Script killed by user with SCRIPT KILL.".to_owned())
    }
}

pub(crate) const KEYS: [&[u8]; 2] = [b"key:1", b"key:2"];
pub(crate) const ARGS: [&[u8]; 2] = [b"first", b"2"];

/// The reply of a script.
pub(crate) fn run(
    engine: &mut Engine,
    host: &mut Fake,
    body: &[u8],
    protocol: Protocol,
) -> Vec<u8> {
    let mut out = Writer::new(protocol);
    engine.run(&Sha::of(body), body, &KEYS, &ARGS, host, &mut out);
    out.into_vec()
}

/// The reply of a script to a client of RESP2, by a new engine, as text.
pub(crate) fn answer(body: &str) -> String {
    let mut engine = Engine::new(Limits::default()).unwrap();
    text(&mut engine, body)
}

/// The reply of a script to a client of RESP2, without what names the script.
pub(crate) fn text(engine: &mut Engine, body: &str) -> String {
    let reply = run(
        engine,
        &mut Fake::default(),
        body.as_bytes(),
        Protocol::Resp2,
    );
    let reply = String::from_utf8_lossy(&reply).replace("\r\n", " ");
    let reply = match reply.split_once(" script: ") {
        Some((error, _)) => error.to_owned(),
        None => reply,
    };
    reply.trim_end().to_owned()
}
