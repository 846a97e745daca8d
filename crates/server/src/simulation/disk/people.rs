//! The clients of a server with a log: they change data and look at it, hear of changes, wait for
//! them, and move money. Each knows what its replies depend on.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use tidewheel_oracle::{Dice, Draw, spell};
use tidewheel_resp::Reply;

use super::super::recorder::Ran;
use super::super::rig::{Peer, bulk};

pub(super) const ACCOUNTS: usize = 4;
pub(super) const EACH: i64 = 100;

/// What a client does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Talker,
    Banker,
    Listener,
    Blocker,
}

/// One client.
pub(super) struct Person {
    pub(super) kind: Kind,
    pub(super) peer: Peer,
    outgoing: VecDeque<u8>,
    /// Replies that were written for it, and how many records there were then.
    expected: VecDeque<(Vec<u8>, u64)>,
    received: Vec<u8>,
    /// The marks of the commands that it has queued.
    queued: Vec<u64>,
}

/// What all clients share.
#[derive(Default)]
pub(super) struct Town {
    /// Numbers that were given to values, names and messages.
    marks: u64,
    /// How many records there were when a mark came into the data.
    pub(super) seen: BTreeMap<u64, u64>,
    /// Replies wait for the disk.
    pub(super) relies_on_replies: bool,
    /// Marks that clients had queued who are gone: their EXEC may still run.
    left: Vec<u64>,
    /// Elements that clients were given, and that must not come back.
    pub(super) popped: BTreeSet<u64>,
}

impl Town {
    fn mark(&mut self) -> String {
        self.marks += 1;
        format!("mark:{}", self.marks)
    }

    /// A command of one who is gone has run.
    pub(super) fn ran_late(&mut self, ran: &Ran, records: u64) {
        let marks = ran.words.iter().flat_map(|word| marks_in(word));
        if ran.reply == b"+QUEUED\r\n" {
            self.left.extend(marks);
        } else {
            self.note(marks, records);
            let left = std::mem::take(&mut self.left);
            self.note(left, records);
        }
    }

    fn note(&mut self, marks: impl IntoIterator<Item = u64>, records: u64) {
        for mark in marks {
            self.seen.entry(mark).or_insert(records);
        }
    }
}

/// The numbers of the marks in some bytes.
fn marks_in(bytes: &[u8]) -> Vec<u64> {
    let text = String::from_utf8_lossy(bytes);
    let number = |rest: &str| {
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok()
    };
    text.split("mark:").skip(1).filter_map(number).collect()
}

/// The greater one of two numbers of records, if replies wait for that.
fn greater(needed: u64, records: u64, held: u64) -> u64 {
    match records <= held {
        true => needed.max(records),
        false => needed,
    }
}

impl Person {
    pub(super) fn new(kind: Kind, peer: Peer) -> Self {
        let mut person = Self {
            kind,
            peer,
            outgoing: VecDeque::new(),
            expected: VecDeque::new(),
            received: Vec::new(),
            queued: Vec::new(),
        };
        match kind {
            Kind::Talker => {}
            Kind::Banker => person.say("SELECT 2"),
            Kind::Listener => {
                person.say("PSUBSCRIBE __keyspace@*");
                person.say("SUBSCRIBE news");
            }
            Kind::Blocker => {}
        }
        person
    }

    /// It is gone.
    pub(super) fn leave(&mut self, town: &mut Town) {
        self.peer.wire.borrow_mut().reset();
        town.left.append(&mut self.queued);
    }

    fn say(&mut self, line: &str) {
        self.call(&line.split(' ').map(str::as_bytes).collect::<Vec<_>>());
    }

    fn call(&mut self, words: &[&[u8]]) {
        self.outgoing.extend(bulk(words));
    }

    /// Sends some of what it has to send.
    pub(super) fn send(&mut self, most: usize) {
        let n = self.outgoing.len().min(most);
        let bytes: Vec<u8> = self.outgoing.drain(..n).collect();
        if n > 0 {
            self.peer.send(&bytes);
        }
    }

    /// A command of its has run, when there were so many records.
    pub(super) fn ran(&mut self, ran: &Ran, records: u64, town: &mut Town) {
        let marks = ran.words.iter().flat_map(|word| marks_in(word));
        if ran.reply == b"+QUEUED\r\n" {
            self.queued.extend(marks);
        } else {
            town.note(marks, records);
            town.note(std::mem::take(&mut self.queued), records);
        }
        if matches!(self.kind, Kind::Talker | Kind::Banker) {
            self.expected.push_back((ran.reply.clone(), records));
        }
    }

    /// Takes what has arrived. Returns the number of records that it depends on, where it waits
    /// for no more than `held`.
    pub(super) fn hear(&mut self, town: &mut Town, held: u64) -> Result<u64, String> {
        if self.peer.wire.borrow().sent() == 0 {
            return Ok(0);
        }
        self.received.extend(self.peer.take());
        match self.kind {
            Kind::Talker | Kind::Banker => self.hear_replies(held),
            Kind::Listener | Kind::Blocker => self.hear_marks(town, held),
        }
    }

    fn hear_replies(&mut self, held: u64) -> Result<u64, String> {
        let mut needed = 0;
        while !self.received.is_empty() {
            let Some((reply, records)) = self.expected.front() else {
                let bytes = self.received.escape_ascii();
                return Err(format!("nobody has written {bytes}"));
            };
            let n = reply.len().min(self.received.len());
            if reply[..n] != self.received[..n] {
                let (had, was) = (self.received[..n].escape_ascii(), reply.escape_ascii());
                return Err(format!("received {had}, and {was} was written"));
            }
            needed = greater(needed, *records, held);
            if n < reply.len() {
                break;
            }
            self.received.drain(..n);
            self.expected.pop_front();
        }
        Ok(needed)
    }

    fn hear_marks(&mut self, town: &mut Town, held: u64) -> Result<u64, String> {
        let mut needed = 0;
        while let Some((reply, used)) = Reply::read(&self.received).map_err(|_| "no reply")? {
            let marks = marks_in(&self.received[..used]);
            self.received.drain(..used);
            for mark in marks {
                let seen = town.seen.get(&mark);
                let records = seen.ok_or_else(|| format!("mark {mark} in {reply:?}"))?;
                needed = greater(needed, *records, held);
                if self.kind == Kind::Blocker && town.relies_on_replies {
                    town.popped.insert(mark);
                }
            }
        }
        Ok(needed)
    }

    /// Says the next thing.
    pub(super) fn talk(&mut self, dice: &mut Dice, town: &mut Town, wall_ms: i64) {
        if self.outgoing.len() > 20_000 {
            return;
        }
        match self.kind {
            Kind::Talker => self.talk_of_data(dice, town, wall_ms),
            Kind::Banker => self.move_money(dice),
            Kind::Listener => {}
            Kind::Blocker => {
                let wait = [".01", ".1", "1"][dice.below(3)];
                self.say(&format!("BLPOP q0 q1 {wait}"));
            }
        }
    }

    fn move_money(&mut self, dice: &mut Dice) {
        let (from, to, n) = (dice.below(ACCOUNTS), dice.below(ACCOUNTS), dice.below(50));
        self.say("MULTI");
        if dice.once_in(8) {
            let pairs = (0..ACCOUNTS).map(|n| format!(" a{n} {EACH}"));
            self.say(&format!("MSET{}", pairs.collect::<String>()));
        } else {
            self.say(&format!("DECRBY a{from} {n}"));
            self.say(&format!("INCRBY a{to} {n}"));
        }
        self.say("EXEC");
    }

    fn talk_of_data(&mut self, dice: &mut Dice, town: &mut Town, wall_ms: i64) {
        let (key, queue) = (dice.below(12), dice.below(2));
        let mark = town.mark();
        match dice.below(40) {
            0..4 => {
                let ms = 1 + dice.below(3_000);
                self.say(&format!("SET {mark} v PX {ms}"));
            }
            4..7 => self.say(&format!("SET k{key} {mark}")),
            7..10 => self.say(&format!("RPUSH q{queue} {mark}")),
            10..12 => self.say(&format!("GET k{key}")),
            12..14 => {
                self.say("MULTI");
                self.say(&format!("SET k{key} {mark}"));
                self.drawn(dice, wall_ms);
                self.say(&format!("PUBLISH news {mark}"));
                self.say("EXEC");
            }
            14..16 => self.script(dice, &mark, key, queue),
            16 => self.library(dice, key),
            17 => self.wide(dice),
            18 => match dice.below(12) {
                0 => self.say("FLUSHALL"),
                1 | 2 => self.say("FLUSHDB"),
                3..6 => self.say("SWAPDB 0 1"),
                _ => self.say(&format!("SELECT {}", dice.below(2))),
            },
            19 if dice.once_in(2) => self.say("BGREWRITEAOF"),
            _ => self.drawn(dice, wall_ms),
        }
    }

    fn drawn(&mut self, dice: &mut Dice, wall_ms: i64) {
        let bytes = dice.fill(60);
        let words = spell(&Draw::new(&bytes).line(), wall_ms);
        // Nobody records the reply of one that waits.
        let waits = |word: &Vec<u8>| word == b"BLOCK";
        if words.iter().any(waits) || [&b"BL"[..], b"BZ", b"BR"].contains(&&words[0][..2]) {
            return;
        }
        self.call(&words.iter().map(Vec::as_slice).collect::<Vec<_>>());
    }

    fn script(&mut self, dice: &mut Dice, mark: &str, key: usize, queue: usize) {
        if dice.once_in(2) {
            let bytes = dice.fill(300);
            let line = Draw::new(&bytes).script(&mut |draw| draw.line());
            let words = spell(&line, 0);
            let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
            self.call(&[&[&b"EVAL"[..]], &words[..]].concat());
            return;
        }
        let body = "redis.call('set', KEYS[1], ARGV[1]) redis.call('rpush', KEYS[2], ARGV[1]) \
                    return redis.call('publish', 'news', ARGV[1])";
        let (key, queue) = (format!("k{key}"), format!("q{queue}"));
        self.call(&[
            b"EVAL",
            body.as_bytes(),
            b"2",
            key.as_bytes(),
            queue.as_bytes(),
            mark.as_bytes(),
        ]);
    }

    fn library(&mut self, dice: &mut Dice, key: usize) {
        let at = dice.below(3);
        if dice.once_in(2) {
            let code = format!(
                "#!lua name=lib{at}\nredis.register_function('f{at}', function(KEYS) redis.call('incrby', KEYS[1], {}) \
                 return redis.call('append', KEYS[2], 'x') end)",
                dice.below(1_000)
            );
            self.call(&[b"FUNCTION", b"LOAD", b"REPLACE", code.as_bytes()]);
        } else if dice.once_in(6) {
            self.say(&format!("FUNCTION DELETE lib{at}"));
        } else {
            self.say(&format!("FCALL f{at} 2 n{at} k{key}"));
        }
    }

    /// A collection that is too large to be copied at once.
    fn wide(&mut self, dice: &mut Dice) {
        let first = dice.below(300);
        let members = first..first + 150;
        let key = dice.below(2);
        let line = match dice.below(6) {
            0 | 1 => members.fold(format!("SADD ws{key}"), |line, n| format!("{line} m{n}")),
            2 => members.fold(format!("HSET wh{key}"), |line, n| {
                format!("{line} m{n} {n}")
            }),
            3 => members.fold(format!("ZADD wz{key}"), |line, n| {
                format!("{line} {n} m{n}")
            }),
            4 => format!("RENAME ws{key} ws{}", 1 - key),
            _ => format!("HPEXPIRE wh{key} {} FIELDS 1 m{first}", dice.below(3_000)),
        };
        self.say(&line);
    }
}
