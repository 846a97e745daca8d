//! What the server does at this moment, as a user may know it.

use serde_json::{Value, json};
use tidewheel_resp::Reply;

use super::ask::{Asker, NoAnswer};
use super::desk::Desk;
use super::parts::{bytes, databases, fields, integer, items, part, plain, text};
use super::query::Query;

/// Connections above which they are not listed: each would be a line.
const LISTED_CLIENTS: usize = 1_000;

/// Clients that are told.
const CLIENTS: usize = 20;

/// The parts that a viewer wants. It leaves out what it was refused before: to ask each second
/// would fill the list of what was denied (ACL LOG).
#[derive(Debug)]
pub(super) struct Wanted(Option<String>);

impl Wanted {
    /// Reads `parts=numbers,slow`; all, if it is not there.
    pub(super) fn of(query: &Query) -> Self {
        let parts = query.bytes("parts");
        Self(parts.map(|parts| String::from_utf8_lossy(parts).into_owned()))
    }

    /// True if the part is wanted.
    fn has(&self, name: &str) -> bool {
        let Self(parts) = self;
        parts
            .as_ref()
            .is_none_or(|parts| parts.split(',').any(|part| part == name))
    }
}

/// What changes each second: the newest numbers, the databases, and what will expire.
pub(super) async fn second(
    desk: &Desk,
    asker: &mut Asker,
    wanted: &Wanted,
) -> Result<Value, NoAnswer> {
    let mut second = json!({});
    if wanted.has("numbers") {
        // The numbers are INFO's: who may not run it does not see them.
        let databases = part(asker, &[b"INFO", b"keyspace"], databases).await?;
        second["numbers"] = match databases.get("no") {
            Some(_) => databases.clone(),
            None => desk.hour.lock().newest(),
        };
        second["databases"] = databases;
    }
    if wanted.has("forecast") {
        let words: [&[u8]; 3] = [b"EXPIRY", b"FORECAST", b"65"];
        second["forecast"] = part(asker, &words, plain).await?;
    }
    Ok(second)
}

/// A part that is looked at less often: its name, how it is asked for, and what is made of the
/// reply.
type Part = (&'static str, &'static [&'static [u8]], fn(&Reply) -> Value);

const PARTS: &[Part] = &[
    ("user", &[b"ACL", b"WHOAMI"], plain),
    ("about", &[b"INFO", b"server", b"memory"], fields),
    ("latencies", &[b"LATENCY", b"HISTOGRAM"], latencies),
    ("slow", &[b"SLOWLOG", b"GET", b"20"], slow),
    ("clients", &[b"CLIENT", b"LIST"], clients),
];

/// All of it: what changes each second, and what is looked at less often.
pub(super) async fn now(
    desk: &Desk,
    asker: &mut Asker,
    wanted: &Wanted,
) -> Result<Value, NoAnswer> {
    let mut now = second(desk, asker, wanted).await?;
    for (name, words, read) in PARTS.iter().filter(|(name, ..)| wanted.has(name)) {
        let are_many = *name == "clients" && desk.server.clients.len() > LISTED_CLIENTS;
        now[*name] = match are_many {
            true => json!({ "no": "there are too many to list" }),
            false => part(asker, words, read).await?,
        };
    }
    Ok(now)
}

/// Times of commands: `[command, calls, [[µs, calls within that], …]]`, most calls first.
fn latencies(reply: &Reply) -> Value {
    let mut all: Vec<(i64, Value)> = items(reply)
        .chunks_exact(2)
        .filter_map(|pair| {
            let [_, calls, _, histogram] = items(&pair[1]) else {
                return None;
            };
            let calls = integer(calls)?;
            let buckets = items(histogram).chunks_exact(2).map(<[Reply]>::to_vec);
            let buckets: Value = buckets.map(|pair| plain(&Reply::Array(pair))).collect();
            Some((calls, json!([text(bytes(&pair[0])), calls, buckets])))
        })
        .collect();
    all.sort_by_key(|(calls, _)| std::cmp::Reverse(*calls));
    all.into_iter().map(|(_, command)| command).collect()
}

/// The slow log: when, how long and what, the newest first.
fn slow(reply: &Reply) -> Value {
    let entries = items(reply).iter().filter_map(|entry| {
        let [_, at_s, us, words, from, ..] = items(entry) else {
            return None;
        };
        let words: Vec<String> = items(words).iter().map(|word| text(bytes(word))).collect();
        Some(json!({
            "at_s": integer(at_s)?,
            "us": integer(us)?,
            "call": text(words.join(" ").as_bytes()),
            "from": text(bytes(from)),
        }))
    });
    entries.collect()
}

/// The clients that hold most memory.
fn clients(reply: &Reply) -> Value {
    let list = String::from_utf8_lossy(bytes(reply));
    let mut clients: Vec<(u64, Value)> = list
        .lines()
        .map(|line| {
            let of = |name: &str| {
                let mut words = line.split(' ').filter_map(|word| word.split_once('='));
                words
                    .find(|(own, _)| *own == name)
                    .map_or("", |(_, value)| value)
            };
            let held = of("tot-mem").parse().unwrap_or(0);
            let client = json!({
                "address": of("addr"),
                "name": text(of("name").as_bytes()),
                "user": text(of("user").as_bytes()),
                "age_s": of("age").parse().unwrap_or(0_u64),
                "idle_s": of("idle").parse().unwrap_or(0_u64),
                "command": of("cmd"),
                "bytes": held,
            });
            (held, client)
        })
        .collect();
    clients.sort_by_key(|(held, _)| std::cmp::Reverse(*held));
    clients
        .into_iter()
        .take(CLIENTS)
        .map(|(_, client)| client)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_read_and_the_greatest_comes_first() {
        let list = "id=1 addr=127.0.0.1:5 name= age=3 idle=1 tot-mem=7 cmd=get user=default\n\
                    id=2 addr=[::1]:6 name=a=b age=4 idle=0 tot-mem=90 cmd=set user=eve\n";
        let read = clients(&Reply::Bulk(list.as_bytes().to_vec()));
        assert_eq!(read[0]["user"], "eve");
        assert_eq!(read[0]["name"], "a=b");
        assert_eq!(read[1]["bytes"], 7);
    }

    #[test]
    fn a_viewer_gets_the_parts_that_it_wants() {
        let wants = |query: &str, name: &str| Wanted::of(&Query::of(Some(query))).has(name);
        assert!(wants("", "slow"));
        assert!(wants("parts=slow,user", "user"));
        assert!(!wants("parts=slow,user", "numbers"));
        assert!(!wants("parts=", "numbers"));
    }

    #[test]
    fn replies_of_another_shape_become_nothing() {
        let odd = [
            Reply::Null,
            Reply::Integer(1),
            Reply::Array(vec![Reply::Null, Reply::Array(vec![Reply::Null; 4])]),
            Reply::Array(vec![Reply::Array(vec![Reply::Null; 6])]),
        ];
        for reply in odd {
            assert_eq!(latencies(&reply), json!([]), "{reply:?}");
            assert_eq!(slow(&reply), json!([]), "{reply:?}");
        }
    }
}
