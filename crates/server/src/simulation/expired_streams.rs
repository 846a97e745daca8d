//! Keys that expire into streams: each once, none early, in order, however it was met.
//!
//! Each value is written once. A command that replaces or deletes a key answers with the value
//! that it has found alive. So the replies tell, whatever the order of the commands, which values
//! have not expired; all others must be in the streams at the end.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tidewheel_oracle::Dice;
use tidewheel_resp::Reply;

use super::crowd::{Crowd, Member, seeds};
use super::rig::bulk;

const WRITERS: usize = 8;
const CONSUMERS: usize = 3;
const STEPS: usize = 4_000;
const KEYS: usize = 12;
const READ: &str = "XREADGROUP GROUP all me COUNT 7 BLOCK 0 NOACK STREAMS gone >";

/// The meaning of a reply.
#[derive(Debug)]
enum Want {
    Nothing,
    /// The value that was there, of one command or of several.
    Old,
    /// New entries.
    Entries,
}

#[derive(Default)]
struct History {
    /// The earliest wall time at which each value may expire.
    written: BTreeMap<String, i64>,
    /// The values that were met alive by a command that ended them.
    ended: BTreeSet<String>,
    /// The values that consumers were given.
    given: Vec<String>,
}

/// One entry of a stream.
struct Expired {
    key: String,
    deadline: i64,
    fired: i64,
    value: String,
}

fn list(reply: &Reply) -> &[Reply] {
    match reply {
        Reply::Array(items) => items,
        other => panic!("no list: {other:?}"),
    }
}

fn entries(reply: &Reply) -> Vec<Expired> {
    let entries = list(reply).iter().map(|entry| {
        let words = super::crowd::texts(&list(entry)[1]);
        let names: Vec<_> = words.iter().step_by(2).map(String::as_str).collect();
        assert_eq!(names, ["key", "deadline", "fired", "type", "value"]);
        assert_eq!(words[7], "string");
        let time = |at: usize| words[at].parse().expect("milliseconds");
        Expired {
            key: words[1].clone(),
            deadline: time(3),
            fired: time(5),
            value: words[9].clone(),
        }
    });
    entries.collect()
}

impl History {
    fn hear(&mut self, crowd: &mut Crowd<Want>) {
        for member in &mut crowd.members {
            while let Some((want, reply)) = member.reply() {
                self.check(&want, &reply);
            }
        }
    }

    fn check(&mut self, want: &Want, reply: &Reply) {
        match (want, reply) {
            (_, Reply::Error(text)) => panic!("{text}"),
            (Want::Old, Reply::Array(several)) => {
                several.iter().for_each(|reply| self.check(want, reply));
            }
            (Want::Old, Reply::Bulk(value)) => {
                let value = String::from_utf8_lossy(value).into_owned();
                assert!(self.ended.insert(value), "a value ends once");
            }
            (Want::Entries, reply @ Reply::Array(_)) => {
                let stream = list(&list(reply)[0]);
                let values = entries(&stream[1]).into_iter().map(|entry| entry.value);
                self.given.extend(values);
            }
            _ => {}
        }
    }

    /// A writer says something.
    fn speak(&mut self, dice: &mut Dice, member: &mut Member<Want>, now: i64, swaps: bool) {
        let key = format!("k{}", dice.below(KEYS));
        let mut new = |dice: &mut Dice| {
            let (value, ms) = (format!("v{}", self.written.len()), 1 + dice.below(20));
            self.written.insert(value.clone(), now + ms as i64);
            (value, ms)
        };
        match dice.below(24) {
            0..10 => {
                let (value, ms) = new(dice);
                member.say(&format!("SET {key} {value} PX {ms} GET"), Want::Old);
            }
            10..13 => member.say(&format!("GETDEL {key}"), Want::Old),
            13..15 => member.say(&format!("EXISTS {key} {key}"), Want::Nothing),
            15 | 16 => {
                let (value, ms) = new(dice);
                let text = "return(redis.call('set',KEYS[1],ARGV[1],'px',ARGV[2],'get'))";
                let line = format!("EVAL {text} 1 {key} {value} {ms}");
                member.say(&line, Want::Old);
            }
            17..20 => {
                let ((first, ms), other) = (new(dice), dice.below(KEYS));
                member.say("MULTI", Want::Nothing);
                member.say(&format!("GETDEL {key}"), Want::Nothing);
                member.say(&format!("SET {key} {first} PX {ms} GET"), Want::Nothing);
                member.say(&format!("GETDEL k{other}"), Want::Nothing);
                member.say("EXEC", Want::Old);
            }
            20 => member.say("CLIENT PAUSE 4 WRITE", Want::Nothing),
            21 => member.say("EXPIRY FREEZE", Want::Nothing),
            22 => member.say("EXPIRY RESUME", Want::Nothing),
            _ if swaps => member.say("SWAPDB 0 1", Want::Nothing),
            _ => member.say("RANDOMKEY", Want::Nothing),
        }
    }
}

/// Returns how many keys have expired.
fn episode(seed: u64) -> usize {
    let mut crowd = Crowd::<Want>::new(seed, WRITERS + CONSUMERS);
    let mut history = History::default();
    let configured = crowd.rig.connect(0);
    let setting = b"0 gone 1000000 values 1 gone 1000000 values";
    let set = bulk(&[b"CONFIG", b"SET", b"expired-stream", setting]);
    assert_eq!(crowd.rig.ask(&configured, &set), b"+OK\r\n");
    let swaps = crowd.dice.once_in(2);
    if !swaps {
        crowd.ask("XGROUP CREATE gone all $ MKSTREAM");
    }
    for at in 0..2 {
        crowd.members[at].say("SELECT 1", Want::Nothing);
    }
    for _ in 0..STEPS {
        let now = crowd.rig.server.clock.now().wall_ms();
        let at = crowd.dice.below(WRITERS + CONSUMERS);
        let member = &mut crowd.members[at];
        if at < WRITERS {
            if crowd.dice.once_in(4) {
                history.speak(&mut crowd.dice, member, now, swaps);
            }
        } else if !swaps && member.is_idle() {
            member.say(READ, Want::Entries);
        }
        crowd.pass();
        history.hear(&mut crowd);
    }
    // The pauses, and then the deadlines, that are left.
    for _ in 0..WRITERS * 100 {
        crowd.settle();
        crowd.rig.advance(Duration::from_millis(5));
        history.hear(&mut crowd);
        if crowd.members[..WRITERS].iter().all(Member::is_idle) {
            break;
        }
    }
    crowd.rig.advance(Duration::from_millis(5));
    crowd.settle();
    crowd.ask("EXPIRY RESUME");
    crowd.rig.advance(Duration::from_millis(30));
    crowd.settle();
    history.hear(&mut crowd);
    // While one of them waits there is nothing to read.
    let consumers = &mut crowd.members[WRITERS..];
    if !swaps && consumers.iter().all(Member::is_idle) {
        consumers[0].say(&READ.replace("COUNT 7 BLOCK 0", ""), Want::Entries);
        crowd.settle();
        history.hear(&mut crowd);
    }
    let mut told = Vec::new();
    for db in 0..2 {
        let peer = crowd.rig.connect(0);
        let lines = format!("SELECT {db}\r\nXRANGE gone - +\r\n");
        let reply = crowd.rig.ask(&peer, lines.as_bytes());
        let (reply, _) = Reply::read(&reply[5..]).expect("valid").expect("whole");
        let mut last = BTreeMap::new();
        for entry in entries(&reply) {
            let may = history.written[&entry.value];
            assert!(
                may <= entry.deadline && entry.deadline <= entry.fired,
                "early"
            );
            let before = last.insert(entry.key, entry.deadline);
            assert!(
                before.is_none_or(|before| before <= entry.deadline),
                "order"
            );
            told.push((db, entry.value));
        }
    }
    let of_first = told.iter().filter(|(db, _)| *db == 0);
    let of_first: Vec<_> = of_first.map(|(_, value)| value.clone()).collect();
    let mut values: Vec<_> = told.into_iter().map(|(_, value)| value).collect();
    values.sort_unstable();
    let all = history.written.keys();
    let expired: Vec<_> = all
        .filter(|value| !history.ended.contains(*value))
        .cloned()
        .collect();
    assert_eq!(values, expired, "each once");
    if !swaps {
        let mut given = history.given.clone();
        let mut read = of_first;
        given.sort_unstable();
        read.sort_unstable();
        assert_eq!(given, read, "consumers were given each once");
    }
    let stats = crowd.rig.server.keyspace.expired_stream_stats();
    assert_eq!(stats.appended, expired.len() as u64);
    assert_eq!((stats.queued, stats.failed, stats.dropped), (0, 0, 0));
    expired.len()
}

#[test]
fn each_key_that_expires_is_told_once_in_order_and_none_early() {
    let mut expired = 0;
    for seed in 0..seeds() * 2 {
        expired += std::panic::catch_unwind(|| episode(seed))
            .unwrap_or_else(|_| panic!("seed {seed} fails"));
    }
    assert!(expired as u64 > seeds() * 200, "{expired}");
}
