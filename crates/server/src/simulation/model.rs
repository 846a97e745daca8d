//! What the server should have answered, and which messages it still owes to each client.
//!
//! What a data command answers, changes and announces, the oracle's model says: the one that the
//! keyspace's tests and the fuzz targets have. [`Data`] runs it. This model has what that does not
//! know: clients with their databases, protocols, subscriptions, passwords and silence; pauses;
//! walks over many keys; refusals for want of memory.
//!
//! The model runs each command in the order and with the time that the recorder saw. Loops run one
//! after the other, and each reads the clock before it does something. So nobody has acted at a
//! later time before, and what is dead is known. The recorder also saw how many events there had
//! been at the end of each command, so it is known which keys were evicted before it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use tidewheel_keyspace::{Event, Time, lookup};
use tidewheel_resp::{Protocol, Reply, Writer, parse_i64};
use tidewheel_scripts::Sha;

use super::data::{Data, grows};
use super::recorder::Ran;
use super::terms::{Terms, Victims};
use crate::clients::pause::is_write;
use crate::time::clock::micros;

/// What CLIENT REPLY chose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Silence {
    #[default]
    None,
    Always,
    ThisAndNext,
    This,
}

/// A client as the server knows it.
#[derive(Debug, Clone, Default)]
pub(super) struct Talker {
    pub(super) protocol: Protocol,
    /// A password was asked when it came, or said RESET, and it has given none since.
    pub(super) lacks_password: bool,
    db: u32,
    silence: Silence,
    channels: BTreeSet<Vec<u8>>,
    patterns: BTreeSet<Vec<u8>>,
    /// The server has been told to close it.
    pub(super) leaves: bool,
    pub(super) closed: bool,
    /// Another client wants it closed, answered or not.
    pub(super) killed: bool,
    /// Messages on their way to it.
    pub(super) owed: VecDeque<Vec<Vec<u8>>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pause {
    Off,
    Writes,
    All,
}

/// The whole server, as simple as it can be.
#[derive(Debug)]
pub(super) struct Model {
    terms: Terms,
    /// Empty when none is asked.
    pub(super) password: Vec<u8>,
    /// Engine microseconds of the clock when it was changed.
    pub(super) password_since: u64,
    data: Data,
    pub(super) talkers: BTreeMap<u64, Talker>,
    /// Keys `f…` that nobody touches alone, and the database that they are in.
    pub(super) fillers: usize,
    fillers_db: u32,
    /// Engine microseconds of the clock when databases were last emptied or swapped.
    upheaval: u64,
    pause: Pause,
    /// Engine microseconds of the clock at which it was asked for.
    pause_began: u64,
    pause_ends: u64,
    /// The bodies of scripts and of functions that are there, by name.
    scripts: BTreeMap<Vec<u8>, Vec<u8>>,
    functions: BTreeMap<Vec<u8>, Vec<u8>>,
}

/// What a command should be answered.
#[derive(Debug)]
pub(super) enum Answer {
    Exactly(Writer),
    /// Something that is not told in advance, but begins like this.
    Like(&'static [u8]),
}

impl Model {
    pub(super) fn new(terms: Terms) -> Self {
        Self {
            terms,
            password: Vec::new(),
            password_since: 0,
            data: Data::default(),
            talkers: BTreeMap::new(),
            fillers: 0,
            fillers_db: 0,
            upheaval: 0,
            pause: Pause::Off,
            pause_began: 0,
            pause_ends: 0,
            scripts: BTreeMap::new(),
            functions: BTreeMap::new(),
        }
    }

    /// The server has closed a client that was answered more than it may hold.
    fn give_up(&mut self, client: u64) {
        let talker = self.talkers.entry(client).or_default();
        talker.leaves = true;
        talker.killed = true;
    }

    /// Explains a command and the events since the one before it, or says what is wrong.
    pub(super) fn run(&mut self, ran: &Ran, events: &[Event]) -> Result<(), String> {
        let caused = self.data.hear(events, ran.end, self.terms.victims)?;
        match is_script(&ran.words[0]) {
            true => self.explain_call(&without_place(ran))?,
            false => self.explain_call(ran)?,
        }
        self.data.compare(&caused)
    }

    /// Explains events that no command has caused.
    pub(super) fn hear(&mut self, events: &[Event], tick: u64) -> Result<(), String> {
        let caused = self.data.hear(events, tick, self.terms.victims)?;
        self.data.compare(&caused)
    }

    /// All that is due was removed.
    pub(super) fn check_all_expired(&mut self, now: Time) -> Result<(), String> {
        self.data.check_all_expired(now)
    }

    fn explain_call(&mut self, ran: &Ran) -> Result<(), String> {
        let talker = self.talkers.entry(ran.client).or_default();
        // What was handed over goes on without its client.
        if (talker.leaves || talker.closed) && !ran.long {
            return Err("it ran after its connection was to be closed".to_owned());
        }
        let silence = talker.silence;
        let limited = talker.protocol == Protocol::Resp2 && talker.subscriptions() > 0;
        let word = ran.words[0].to_ascii_uppercase();
        let denied = !ran.long && self.denies(ran, &word);
        let barred = !denied && limited && !is_for_subscribers(&word);
        if !denied && !barred {
            self.check_pause(ran, &word)?;
        }
        let answer = if denied {
            Answer::Like(b"-NOAUTH Authentication required.\r\n")
        } else if barred {
            Answer::Like(b"-ERR Can't execute")
        } else {
            self.answer(ran, &word)?
        };
        let talker = self.talkers.entry(ran.client).or_default();
        let pushed = !denied && !barred && (word.ends_with(b"SUBSCRIBE"));
        let muted = match word.as_slice() {
            b"CLIENT" | b"RESET" => talker.silence != Silence::None,
            _ => silence != Silence::None,
        };
        if muted {
            talker.silence = match talker.silence {
                Silence::ThisAndNext => Silence::This,
                Silence::This => Silence::None,
                kept => kept,
            };
        }
        let unwanted = muted && !pushed;
        // Nothing is put out for a client that has gone before its command has run.
        let gone = ran.long && self.talkers[&ran.client].closed;
        if unwanted && !gone {
            matches(&ran.reply, b"")?;
        }
        if ran.too_long {
            // What is not sent closes nobody.
            if !unwanted {
                self.give_up(ran.client);
            }
            return self.check_too_long(&answer);
        }
        match answer {
            Answer::Exactly(out) => matches(&ran.answer, out.as_bytes()),
            Answer::Like(start) if ran.answer.starts_with(start) => Ok(()),
            Answer::Like(start) => matches(&ran.answer, start),
        }
    }

    /// Only a reply beyond the limit may be left unbuilt.
    fn check_too_long(&self, answer: &Answer) -> Result<(), String> {
        let len = match answer {
            Answer::Exactly(out) => out.len() as u64,
            Answer::Like(_) => 0,
        };
        match self.terms.output_max {
            max if max > 0 && len > max => Ok(()),
            max => Err(format!("its reply of {len} bytes is too long for {max}")),
        }
    }

    /// The server let go of a client.
    pub(super) fn closed(&mut self, client: u64) {
        let talker = self.talkers.entry(client).or_default();
        talker.closed = true;
        talker.channels.clear();
        talker.patterns.clear();
    }

    fn check_pause(&mut self, ran: &Ran, word: &[u8]) -> Result<(), String> {
        if ran.clock.tick >= self.pause_ends {
            self.pause = Pause::Off;
        }
        let waits = match self.pause {
            Pause::Off => false,
            Pause::Writes => changes(word),
            // What is no command at all is refused at once.
            Pause::All => !is_no_command(word),
        };
        // Functions of these names are those that change nothing, and say so.
        let reads = word == b"FCALL" && ran.words.get(1).is_some_and(|name| name[0] == b'r');
        // A walk that had begun before goes on.
        let walked = word == b"KEYS" && micros(ran.clock) <= self.pause_began;
        // Neither changes anything; nor does a long command that was handed over before.
        let looks = walked || ran.long && !changes(word);
        let reads = reads && self.pause == Pause::Writes;
        if waits && !looks && !reads {
            return Err("it ran during a pause".to_owned());
        }
        Ok(())
    }

    fn answer(&mut self, ran: &Ran, word: &[u8]) -> Result<Answer, String> {
        let protocol = self.talkers[&ran.client].protocol;
        let mut out = Writer::new(protocol);
        let words = &ran.words;
        match word {
            b"PING" if self.talkers[&ran.client].is_limited() => {
                out.array(2);
                out.bulk(b"pong");
                out.bulk(b"");
            }
            b"PING" => out.simple("PONG"),
            b"ECHO" => out.bulk(&words[1]),
            b"SELECT" => {
                let db = parse_i64(&words[1]).unwrap_or(0) as u32;
                self.talker(ran).db = db;
                out.ok();
            }
            b"FLUSHDB" | b"FLUSHALL" | b"SWAPDB" => {
                self.upheave(ran, word);
                return self.explain(ran, word);
            }
            b"KEYS" if words[1] == b"f1*" => return self.all_fillers(ran),
            b"KEYS" => out.array(0),
            b"NONSENSE" => return Ok(Answer::Like(b"-ERR unknown command")),
            b"INFO" => {
                return Ok(Answer::Like(match protocol {
                    Protocol::Resp3 => b"=",
                    Protocol::Resp2 => b"$",
                }));
            }
            b"QUIT" => {
                self.talker(ran).leaves = true;
                out.ok();
            }
            // Another protocol is not answered.
            b"POST" => self.talker(ran).leaves = true,
            b"AUTH" => return Ok(self.auth(ran)),
            b"HELLO" => return Ok(self.hello(ran)),
            b"CONFIG" => {
                self.ask_password(ran);
                out.ok();
            }
            b"RESET" => {
                let lacks_password = self.asks_password();
                let talker = self.talker(ran);
                talker.channels.clear();
                talker.patterns.clear();
                talker.protocol = Protocol::Resp2;
                talker.lacks_password = lacks_password;
                talker.db = 0;
                if talker.silence != Silence::This {
                    talker.silence = Silence::None;
                }
                out.simple("RESET");
            }
            b"CLIENT" => self.client(ran, &mut out),
            b"SUBSCRIBE" | b"PSUBSCRIBE" | b"UNSUBSCRIBE" | b"PUNSUBSCRIBE" => {
                self.subscribe(ran, word, &mut out);
            }
            b"PUBLISH" => out.integer(self.publish(&words[1], &words[2])),
            b"SCRIPT" => self.script(ran, &mut out),
            b"FUNCTION" => self.function(ran, &mut out),
            _ if is_script(word) => return self.call(ran, word, out),
            _ => return self.explain(ran, word),
        }
        Ok(Answer::Exactly(out))
    }

    /// A script that was named runs like its body.
    fn call(&mut self, ran: &Ran, word: &[u8], mut out: Writer) -> Result<Answer, String> {
        let name = &ran.words[1];
        let (body, missing) = match word {
            b"EVAL" | b"EVAL_RO" => {
                let sha = Sha::of(name);
                self.scripts.insert(sha.as_bytes().to_vec(), name.clone());
                return self.explain(ran, word);
            }
            b"EVALSHA" | b"EVALSHA_RO" => (
                self.scripts.get(name),
                "NOSCRIPT No matching script. Please use EVAL.",
            ),
            _ => {
                let function = [b"f", &name[1..]].concat();
                (self.functions.get(&function), "ERR Function not found")
            }
        };
        let only_reads = word.ends_with(b"_RO") || word == b"FCALL" && name.starts_with(b"r");
        let Some(body) = body else {
            out.error(missing);
            return Ok(Answer::Exactly(out));
        };
        if word == b"FCALL_RO" && name.starts_with(b"f") {
            // Whether there is memory is asked first.
            if self.terms.max_memory > 0 && ran.answer.starts_with(b"-OOM ") {
                return Ok(Answer::Like(b"-OOM "));
            }
            out.error("ERR Can not execute a script with write flag using *_ro command.");
            return Ok(Answer::Exactly(out));
        }
        let mut ran = ran.clone();
        ran.words[1] = body.clone();
        ran.words[0] = match only_reads {
            true => b"EVAL_RO".to_vec(),
            false => b"EVAL".to_vec(),
        };
        let word = ran.words[0].clone();
        self.explain(&ran, &word)
    }

    fn script(&mut self, ran: &Ran, out: &mut Writer) {
        match &*ran.words[1] {
            b"LOAD" => {
                let sha = Sha::of(&ran.words[2]);
                let name = sha.as_bytes().to_vec();
                out.bulk(&name);
                self.scripts.insert(name, ran.words[2].clone());
            }
            _ => {
                self.scripts.clear();
                out.ok();
            }
        }
    }

    /// The library `lib1` has the function `f1`, and `r1`, which only reads.
    fn function(&mut self, ran: &Ran, out: &mut Writer) {
        let last = ran.words.last().expect("words");
        match &*ran.words[1] {
            b"LOAD" => {
                let code = String::from_utf8_lossy(last);
                let name = code
                    .lines()
                    .next()
                    .and_then(|line| line.strip_prefix("#!lua name="));
                let name = name.expect("a name");
                let function = name.replace("lib", "f").into_bytes();
                if self.terms.max_memory > 0 && ran.answer.starts_with(b"-OOM ") {
                    return out.raw(&ran.answer);
                }
                if ran.words[2] != b"REPLACE" && self.functions.contains_key(&function) {
                    return out.error(&format!("ERR Library '{name}' already exists"));
                }
                out.bulk(name.as_bytes());
                self.functions.insert(function, last.clone());
            }
            b"DELETE" => {
                let function = String::from_utf8_lossy(last).replace("lib", "f");
                match self.functions.remove(function.as_bytes()) {
                    Some(_) => out.ok(),
                    None => out.error("ERR Library not found"),
                }
            }
            _ => {
                self.functions.clear();
                out.ok();
            }
        }
    }

    /// Empties or swaps databases.
    fn upheave(&mut self, ran: &Ran, word: &[u8]) {
        self.upheaval = micros(ran.clock);
        let db = self.talkers[&ran.client].db;
        if word == b"SWAPDB" {
            self.fillers_db = 1 - self.fillers_db;
        } else if word == b"FLUSHALL" || self.fillers_db == db {
            self.fillers = 0;
        }
    }

    /// A walk meets every key that is there all the time, once.
    fn all_fillers(&self, ran: &Ran) -> Result<Answer, String> {
        let talker = &self.talkers[&ran.client];
        if self.upheaval >= micros(ran.clock) {
            return Ok(Answer::Like(b""));
        }
        if talker.db != self.fillers_db {
            return Ok(Answer::Exactly({
                let mut out = Writer::new(talker.protocol);
                out.array(0);
                out
            }));
        }
        let all = (0..self.fillers).map(filler);
        let mut wanted: Vec<_> = all.filter(|name| name.starts_with(b"f1")).collect();
        let Ok(Some((Reply::Array(found), _))) = Reply::read(&ran.answer) else {
            return Err("KEYS answers no list".to_owned());
        };
        let mut found: Vec<_> = found.into_iter().filter_map(bulk_of).collect();
        found.sort();
        wanted.sort();
        if found != wanted {
            return Err(format!("{} keys, not {}", found.len(), wanted.len()));
        }
        Ok(Answer::Like(b"*"))
    }

    pub(super) fn talker(&mut self, ran: &Ran) -> &mut Talker {
        self.talkers.entry(ran.client).or_default()
    }

    fn client(&mut self, ran: &Ran, out: &mut Writer) {
        let words = &ran.words;
        match words[1].to_ascii_uppercase().as_slice() {
            b"ID" => out.integer(ran.client as i64),
            b"REPLY" => {
                let talker = self.talker(ran);
                match words[2].as_slice() {
                    b"ON" => {
                        talker.silence = Silence::None;
                        out.ok();
                    }
                    b"OFF" => talker.silence = Silence::Always,
                    _ if talker.silence != Silence::Always => {
                        talker.silence = Silence::ThisAndNext;
                    }
                    _ => {}
                }
            }
            b"PAUSE" => {
                let ms = parse_i64(&words[2]).unwrap_or(0) as u64;
                let all = words[3] == b"ALL";
                self.pause = if all || self.pause == Pause::All {
                    Pause::All
                } else {
                    Pause::Writes
                };
                self.pause_began = micros(ran.clock);
                self.pause_ends = self.pause_ends.max(ran.time.tick + ms);
                out.ok();
            }
            b"UNPAUSE" => {
                self.pause = Pause::Off;
                self.pause_ends = 0;
                out.ok();
            }
            b"KILL" => {
                let id = parse_i64(&words[3]).unwrap_or(0) as u64;
                let victim = self.talkers.get_mut(&id).filter(|victim| !victim.closed);
                let known = i64::from(victim.is_some());
                if let Some(victim) = victim {
                    victim.killed = true;
                }
                out.integer(known);
            }
            _ => out.error("ERR"),
        }
    }

    fn subscribe(&mut self, ran: &Ran, word: &[u8], out: &mut Writer) {
        let talker = self.talkers.entry(ran.client).or_default();
        let name = &ran.words[1];
        let set = match word {
            b"SUBSCRIBE" | b"UNSUBSCRIBE" => &mut talker.channels,
            _ => &mut talker.patterns,
        };
        if word.ends_with(b"UNSUBSCRIBE") {
            set.remove(name);
        } else {
            set.insert(name.clone());
        }
        out.push(3);
        out.bulk(&word.to_ascii_lowercase());
        out.bulk(name);
        out.integer(talker.subscriptions() as i64);
    }

    fn publish(&mut self, channel: &[u8], payload: &[u8]) -> i64 {
        let mut receivers = 0;
        let word = |word: &[u8]| word.to_vec();
        for talker in self.talkers.values_mut().filter(|talker| !talker.closed) {
            if talker.channels.contains(channel) {
                let message = vec![word(b"message"), channel.to_vec(), payload.to_vec()];
                talker.owed.push_back(message);
                receivers += 1;
            }
            // The only pattern of clients that publish: `n*`.
            if channel.starts_with(b"n") && talker.patterns.contains(&b"n*"[..]) {
                let (channel, payload) = (channel.to_vec(), payload.to_vec());
                let message = vec![word(b"pmessage"), word(b"n*"), channel, payload];
                talker.owed.push_back(message);
                receivers += 1;
            }
        }
        receivers
    }

    /// A command was refused for want of memory: one that would have needed some, while nothing
    /// could go.
    fn explain_oom(&self, ran: &Ran, word: &[u8]) -> Result<Answer, String> {
        let mut brought: usize = ran.words.iter().map(Vec::len).sum();
        if word == b"SETRANGE" {
            // It fills the gap in front of its bytes.
            brought += parse_i64(&ran.words[2]).map_or(0, |offset| offset as usize);
        }
        let needed = brought + self.data.weight(&ran.words, self.talkers[&ran.client].db);
        let all_may_go = self.terms.victims == Victims::All;
        if !grows(word) || (all_may_go && (needed as u64) < self.terms.max_memory / 2) {
            return Err("it was refused although there is memory for it".to_owned());
        }
        Ok(Answer::Like(b"-OOM "))
    }

    /// Runs a data command on what should be there.
    fn explain(&mut self, ran: &Ran, word: &[u8]) -> Result<Answer, String> {
        let is_limited = self.terms.max_memory > 0;
        if is_limited && ran.answer.windows(4).any(|bytes| bytes == b"OOM ") {
            let refused = self.explain_oom(ran, word)?;
            if ran.answer.starts_with(b"-OOM ") {
                return Ok(refused);
            }
        }
        let talker = &self.talkers[&ran.client];
        let (db, protocol) = (talker.db, talker.protocol);
        let expect = self.data.run(ran, db, is_limited && ran.is_full)?;
        let out = expect.bytes(protocol);
        Ok(Answer::Exactly(out.expect("nothing is left to chance")))
    }
}

impl Talker {
    fn subscriptions(&self) -> usize {
        self.channels.len() + self.patterns.len()
    }

    pub(super) fn is_subscribed(&self) -> bool {
        self.subscriptions() > 0
    }

    fn is_limited(&self) -> bool {
        self.protocol == Protocol::Resp2 && self.subscriptions() > 0
    }
}

/// The name of a key that nobody touches.
pub(super) fn filler(i: usize) -> Vec<u8> {
    format!("f{i:04}").into_bytes()
}

fn bulk_of(reply: Reply) -> Option<Vec<u8>> {
    match reply {
        Reply::Bulk(bytes) => Some(bytes),
        _ => None,
    }
}

fn is_for_subscribers(word: &[u8]) -> bool {
    let known = word.ends_with(b"SUBSCRIBE") || matches!(word, b"PING" | b"QUIT" | b"RESET");
    known || is_no_command(word)
}

/// Whether a command runs a script or a function.
pub(super) fn is_script(word: &[u8]) -> bool {
    word.starts_with(b"EVAL") || word.starts_with(b"FCALL")
}

/// A script's error, without the place where it arose.
fn without_place(ran: &Ran) -> Ran {
    const PLACE: &[u8] = b" script: ";
    let mut ran = ran.clone();
    let place = ran
        .answer
        .windows(PLACE.len())
        .rposition(|bytes| bytes == PLACE);
    if let Some(at) = place.filter(|_| ran.answer.starts_with(b"-")) {
        ran.answer.truncate(at);
        ran.answer.extend_from_slice(b"\r\n");
    }
    ran
}

/// Whether a command does not exist: nothing but its name is looked at.
pub(super) fn is_no_command(word: &[u8]) -> bool {
    matches!(word, b"NONSENSE" | b"POST")
}

/// Whether a pause of writes holds a command back.
fn changes(word: &[u8]) -> bool {
    lookup(word).is_some_and(is_write)
}

fn matches(reply: &[u8], wanted: &[u8]) -> Result<(), String> {
    // The older protocol has two words for nothing, and the oracle knows one.
    let is_nothing = reply == b"*-1\r\n" && wanted == b"$-1\r\n";
    if reply == wanted || is_nothing {
        return Ok(());
    }
    let short = |bytes: &[u8]| bytes[..bytes.len().min(200)].escape_ascii().to_string();
    Err(format!(
        "answered {:?} for {} bytes of {:?}",
        short(reply),
        wanted.len(),
        short(wanted)
    ))
}
