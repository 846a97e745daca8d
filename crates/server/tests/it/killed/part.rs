//! What a client sends: one command, or several that are one.

use crate::common::command;
use tidewheel_oracle::Dice;

/// Accounts between which money moves. The sum never changes.
pub(super) const ACCOUNTS: u64 = 8;
pub(super) const CLIENTS: usize = 8;
pub(super) const FIELDS: [&str; 3] = ["f0", "f1", "f2"];
pub(super) const QUEUES: u64 = 2;

/// The number that each transaction and each script of a client writes. It never falls.
pub(super) const COUNT: &str = "count";

/// Strings of a client.
const STRINGS: [&str; 5] = ["s0", "s1", "v0", "v1", "v2"];

const ENDS_SOON_MS: u64 = 60;
const ENDS_LATE_MS: u64 = 1_000_000;

/// One command of client `of`. Keys without a client's name are shared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    Set(&'static str, String),
    SetFor(&'static str, String, u64),
    Get(&'static str),
    Increase(&'static str),
    Append(&'static str, String),
    Expire(&'static str, u64),
    Persist(&'static str),
    Left(&'static str),
    Delete(&'static str),
    Rename(&'static str, &'static str),
    Copy(&'static str, &'static str),
    SetField(&'static str, String),
    ExpireField(&'static str, u64),
    IncreaseField(&'static str),
    GetField(&'static str),
    PushOwn(String),
    /// From a shared queue to the end of an own list.
    Take(u64),
    Score(&'static str, u64),
    Add(String),
    SetOther(&'static str, String),
    FlushOther,
    Move(u64, i64),
    Hit,
    Push(u64, String),
    Pop(u64),
    WaitAndPop,
    /// The count of another client.
    ReadCount(usize),
    Tell(u64),
    Rewrite,
}

/// How the parts are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Alone,
    Transaction,
    /// EVAL with its keys declared.
    Script,
    /// EVAL that declares none.
    Undeclared,
    /// In the other database.
    Other,
}

#[derive(Debug, Clone)]
pub(super) struct Op {
    pub(super) form: Form,
    pub(super) parts: Vec<Part>,
}

/// The name of a client's key.
pub(super) fn own(of: usize, name: &str) -> String {
    format!("c{of}:{name}")
}

impl Part {
    fn words(&self, of: usize) -> Vec<String> {
        let key = |name: &str| own(of, name);
        let list = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
        match self {
            Self::Set(at, value) | Self::SetOther(at, value) => list(&["SET", &key(at), value]),
            Self::SetFor(at, value, ms) => list(&["SET", &key(at), value, "PX", &ms.to_string()]),
            Self::Get(at) => list(&["GET", &key(at)]),
            Self::Increase(at) => list(&["INCR", &key(at)]),
            Self::Append(at, text) => list(&["APPEND", &key(at), text]),
            Self::Expire(at, ms) => list(&["PEXPIRE", &key(at), &ms.to_string()]),
            Self::Persist(at) => list(&["PERSIST", &key(at)]),
            Self::Left(at) => list(&["PTTL", &key(at)]),
            Self::Delete(at) => list(&["DEL", &key(at)]),
            Self::Rename(from, to) => list(&["RENAME", &key(from), &key(to)]),
            Self::Copy(from, to) => list(&["COPY", &key(from), &key(to), "REPLACE"]),
            Self::SetField(field, value) => list(&["HSET", &key("h"), field, value]),
            Self::ExpireField(field, ms) => {
                list(&["HPEXPIRE", &key("h"), &ms.to_string(), "FIELDS", "1", field])
            }
            Self::IncreaseField(field) => list(&["HINCRBY", &key("h"), field, "1"]),
            Self::GetField(field) => list(&["HGET", &key("h"), field]),
            Self::PushOwn(element) => list(&["LPUSH", &key("l"), element]),
            Self::Take(from) => list(&["LMOVE", &queue(*from), &key("taken"), "RIGHT", "RIGHT"]),
            Self::Score(member, score) => list(&["ZADD", &key("z"), &score.to_string(), member]),
            Self::Add(value) => list(&["XADD", &key("x"), "*", "v", value]),
            Self::FlushOther => list(&["FLUSHDB"]),
            Self::Move(account, by) => list(&["INCRBY", &account_key(*account), &by.to_string()]),
            Self::Hit => list(&["INCR", "hits"]),
            Self::Push(to, element) => list(&["LPUSH", &queue(*to), element]),
            Self::Pop(from) => list(&["RPOP", &queue(*from)]),
            Self::WaitAndPop => list(&["BLPOP", &queue(0), &queue(1), "0.01"]),
            Self::ReadCount(of) => list(&["GET", &own(*of, COUNT)]),
            Self::Tell(count) => list(&["PUBLISH", "told", &format!("{of} {count}")]),
            Self::Rewrite => list(&["BGREWRITEAOF"]),
        }
    }
}

impl Op {
    pub(super) fn alone(part: Part) -> Self {
        Self {
            form: Form::Alone,
            parts: vec![part],
        }
    }

    /// Its bytes, and how many replies come.
    pub(super) fn bytes(&self, of: usize) -> (Vec<u8>, usize) {
        let words: Vec<_> = self.parts.iter().map(|part| part.words(of)).collect();
        let mut bytes = Vec::new();
        let mut send = |words: &[String]| {
            let words: Vec<_> = words.iter().map(String::as_str).collect();
            bytes.extend_from_slice(&command(&words));
        };
        let one = |word: &str| vec![word.to_owned()];
        let replies = match self.form {
            Form::Alone => {
                send(&words[0]);
                1
            }
            Form::Transaction => {
                send(&one("MULTI"));
                words.iter().for_each(|words| send(words));
                send(&one("EXEC"));
                words.len() + 2
            }
            Form::Other => {
                send(&["SELECT".to_owned(), "9".to_owned()]);
                send(&words[0]);
                send(&["SELECT".to_owned(), "0".to_owned()]);
                3
            }
            Form::Script | Form::Undeclared => {
                let mut call = vec!["EVAL".to_owned(), SCRIPT.to_owned()];
                let mut keys: Vec<_> = (words.iter())
                    .filter(|words| words[0] != "PUBLISH")
                    .map(|words| words[1].clone())
                    .collect();
                if self.form == Form::Undeclared {
                    keys.clear();
                }
                call.push(keys.len().to_string());
                call.append(&mut keys);
                for words in words {
                    call.push(words.len().to_string());
                    call.extend(words);
                }
                send(&call);
                1
            }
        };
        (bytes, replies)
    }

    /// Which of its replies has the answer.
    pub(super) fn answer_at(&self) -> usize {
        match self.form {
            Form::Alone | Form::Script | Form::Undeclared => 0,
            Form::Transaction => self.parts.len() + 1,
            Form::Other => 1,
        }
    }
}

/// Runs the commands that its arguments are.
const SCRIPT: &str = "local i, out = 1, {} \
     while i <= #ARGV do \
       local n = tonumber(ARGV[i]) \
       out[#out + 1] = redis.call(unpack(ARGV, i + 1, i + n)) \
       i = i + n + 1 \
     end \
     return out";

pub(super) fn queue(number: u64) -> String {
    format!("q{number}")
}

pub(super) fn account_key(number: u64) -> String {
    format!("bank:{number}")
}

/// Draws what a client sends next. `count` goes up with each call, also over restarts.
pub(super) fn draw(dice: &mut Dice, of: usize, count: &mut u64) -> Op {
    *count += 1;
    let n = *count;
    let value = || format!("{n}");
    let string = STRINGS[dice.below(STRINGS.len())];
    let field = FIELDS[dice.below(FIELDS.len())];
    let queue = dice.below(QUEUES);
    let ms = match dice.below(3) {
        0 => ENDS_LATE_MS,
        _ => 1 + dice.below(ENDS_SOON_MS),
    };
    let part = match dice.below(100) {
        0..8 => Part::Set(string, value()),
        8..16 => Part::SetFor(string, value(), ms),
        16..20 => Part::Increase(string),
        20..23 => Part::Append(string, dice.below(10).to_string()),
        23..26 => Part::Expire(string, ms),
        26..29 => Part::Persist(string),
        29..31 => Part::Left(string),
        31..33 => Part::Get(string),
        33..35 => Part::Delete(string),
        35..37 => Part::Rename(string, STRINGS[dice.below(STRINGS.len())]),
        37..39 => Part::Copy("s0", STRINGS[1 + dice.below(STRINGS.len() - 1)]),
        39..44 => Part::SetField(field, value()),
        44..48 => Part::ExpireField(field, ms),
        48..50 => Part::IncreaseField(field),
        50..51 => Part::GetField(field),
        51..54 => Part::PushOwn(value()),
        54..55 => Part::Delete(["l", "taken", "z", "x", "h"][dice.below(5_usize)]),
        55..58 => Part::Take(queue),
        58..61 => Part::Score(field, n),
        61..64 => Part::Add(value()),
        64..66 if of == 0 => {
            let part = match dice.below(4) {
                0 => Part::FlushOther,
                _ => Part::SetOther(string, value()),
            };
            return Op {
                form: Form::Other,
                parts: vec![part],
            };
        }
        66 if of == 1 && dice.below(4) == 0 => Part::Rewrite,
        64..68 => Part::Hit,
        68..75 => Part::Push(queue, format!("{of}-{n}")),
        75..77 => Part::Pop(queue),
        77..80 => Part::WaitAndPop,
        80..86 => Part::ReadCount(dice.below(CLIENTS)),
        _ => return transfer(dice, n, string, ms),
    };
    Op::alone(part)
}

/// Moves money, and some more that is one with it.
fn transfer(dice: &mut Dice, n: u64, string: &'static str, ms: u64) -> Op {
    let form = match dice.below(6) {
        0..3 => Form::Transaction,
        3..5 => Form::Script,
        _ => Form::Undeclared,
    };
    let (from, by) = (dice.below(ACCOUNTS), dice.below(100_u64) as i64);
    let to = (from + 1 + dice.below(ACCOUNTS - 1)) % ACCOUNTS;
    let mut parts = vec![
        Part::Set(COUNT, n.to_string()),
        Part::Move(from, -by),
        Part::Move(to, by),
    ];
    match dice.below(4) {
        0 => parts.push(Part::SetFor(string, n.to_string(), ms)),
        1 => parts.push(Part::PushOwn(n.to_string())),
        // A script that fails in the middle has done what came before.
        2 if form == Form::Transaction => parts.push(Part::Increase(string)),
        _ => {}
    }
    if form != Form::Transaction {
        parts.push(Part::Tell(n));
    }
    Op { form, parts }
}
