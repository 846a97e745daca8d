//! What a call must answer.

use tidewheel_resp::{Protocol, Reply, Writer};

/// What a call must answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Expect {
    /// Exactly this.
    Reply(Reply),
    /// These, however the protocol nests them.
    Flat(Vec<Reply>),
    /// These in any order; so many belong together.
    Groups(usize, Vec<Reply>),
    /// All of these over one complete iteration.
    Scan(Vec<Vec<u8>>),
    /// One of these, or nothing if there are none.
    OneOf(Vec<Vec<u8>>),
    /// A number about as large.
    About(f64),
    /// What it has answered is right.
    AsAnswered,
}

/// What a command of words must answer, or its error; `None` if the file does not know it.
pub(super) type Answered = Option<Result<Expect, Reply>>;

impl Expect {
    /// The bytes of the only right answer, if there is only one.
    pub fn bytes(&self, protocol: Protocol) -> Option<Writer> {
        let Self::Reply(reply) = self else {
            return None;
        };
        let mut out = Writer::new(protocol);
        write(reply, &mut out);
        Some(out)
    }

    /// Compares an answer with it. `None` for a scan, which takes more calls.
    pub fn check(&self, call: &dyn std::fmt::Debug, reply: &Reply) -> Option<()> {
        match self {
            Self::Reply(expect) => assert_eq!(reply, expect, "{call:?}"),
            Self::Flat(expect) => assert_eq!(&leaves(reply), expect, "{call:?}"),
            Self::Groups(width, expect) => {
                let (found, expect) = (leaves(reply), expect.clone());
                assert_eq!(sorted(*width, found), sorted(*width, expect), "{call:?}");
            }
            Self::OneOf(keys) => match reply {
                Reply::Null => assert!(keys.is_empty(), "{call:?} found none of {keys:?}"),
                Reply::Bulk(key) => assert!(keys.contains(key), "{call:?} found {key:?}"),
                other => panic!("{call:?} answered {other:?}"),
            },
            Self::About(expect) => {
                let found = match reply {
                    Reply::Integer(n) => *n as f64,
                    Reply::Bulk(text) => String::from_utf8_lossy(text).parse().unwrap_or(f64::NAN),
                    Reply::Double(n) => *n,
                    other => panic!("{call:?} answered {other:?}"),
                };
                let near = (found - expect).abs() <= 3.0 + expect / 20.0;
                assert!(near, "{call:?} answered {found}, not about {expect}");
            }
            Self::AsAnswered => {}
            Self::Scan(_) => return None,
        }
        Some(())
    }
}

/// Writes a reply as a server does.
fn write(reply: &Reply, out: &mut Writer) {
    match reply {
        Reply::Simple(text) => out.simple(text),
        Reply::Error(text) => out.error(text),
        Reply::Integer(number) => out.integer(*number),
        Reply::Bulk(bytes) => out.bulk(bytes),
        Reply::Null => out.null(),
        Reply::Array(items) => {
            out.array(items.len());
            items.iter().for_each(|item| write(item, out));
        }
        other => unreachable!("the model answers no {other:?}"),
    }
}

/// The parts of a reply that have none themselves, written as the older protocol writes them.
pub(super) fn leaves(reply: &Reply) -> Vec<Reply> {
    match reply {
        Reply::Array(items) | Reply::Set(items) | Reply::Push(items) => {
            items.iter().flat_map(leaves).collect()
        }
        Reply::Map(pairs) => {
            let both = pairs.iter().flat_map(|(key, value)| [key, value]);
            both.flat_map(leaves).collect()
        }
        Reply::Double(number) => vec![double(*number)],
        other => vec![other.clone()],
    }
}

fn sorted(width: usize, leaves: Vec<Reply>) -> Vec<String> {
    let mut groups: Vec<_> = leaves
        .chunks(width)
        .map(|group| format!("{group:?}"))
        .collect();
    groups.sort();
    groups
}

pub(super) fn ok() -> Reply {
    Reply::Simple("OK".to_owned())
}

pub(super) fn error(text: &str) -> Reply {
    Reply::Error(text.to_owned())
}

pub(super) fn wrong_type() -> Reply {
    error("WRONGTYPE Operation against a key holding the wrong kind of value")
}

pub(super) fn invalid_time(command: &str) -> Reply {
    error(&format!("ERR invalid expire time in '{command}' command"))
}

pub(super) fn bulk(value: Option<Vec<u8>>) -> Reply {
    value.map_or(Reply::Null, Reply::Bulk)
}

pub(super) fn integer(value: impl TryInto<i64>) -> Reply {
    Reply::Integer(value.try_into().unwrap_or(i64::MAX))
}

/// Numbers here are such that the shortest text is the whole text.
pub(super) fn double(number: f64) -> Reply {
    Reply::Bulk(number.to_string().into_bytes())
}

pub(super) fn int(value: impl TryInto<i64>) -> Expect {
    Expect::Reply(integer(value))
}

pub(super) fn flat(leaves: impl IntoIterator<Item = Reply>) -> Expect {
    Expect::Flat(leaves.into_iter().collect())
}
