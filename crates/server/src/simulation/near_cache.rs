//! Caches of clients: each keeps what it has read until it is told that it is invalid.
//!
//! At quiet points every cached value equals the server's. Loops take their turns in any order,
//! clients pipeline, die and come back, keys expire, scripts fail half-way, and long reads run on a
//! thread of their own. Some clients have another one told, which may die: then they hear that.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::Ordering;
use std::time::Duration;

use tidewheel_keyspace::TrackingStats;
use tidewheel_resp::Reply;

use super::is_deep;
use super::rig::{Peer, Rig, bulk};
use crate::config::Settings;

const CLIENTS: usize = 6;
const STEPS: usize = 400;

/// How a client tracks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Plain,
    NoLoop,
    Broadcast,
    OptIn,
    OptOut,
    /// Another client is told, which speaks RESP3 or RESP2.
    Redirect(bool),
}

const KINDS: [Kind; 7] = [
    Kind::Plain,
    Kind::NoLoop,
    Kind::Broadcast,
    Kind::OptIn,
    Kind::OptOut,
    Kind::Redirect(true),
    Kind::Redirect(false),
];

/// What a reply is an answer to.
#[derive(Debug, Clone)]
enum Asked {
    Nothing,
    /// Reads of these keys, which may be cached or not.
    Read(Vec<String>, bool),
    Wrote(String),
    /// A key was written, and then another one read, or the same.
    Both(String, String, bool),
    /// A key was read, and then written.
    ReadThenWrote(String, bool),
    /// A script has written a key, and failed then.
    Failed(String),
    /// From here on the new listener is told.
    Redirected,
    Several(Vec<Self>),
}

#[derive(Debug)]
struct Cache {
    peer: Peer,
    kind: Kind,
    asked: VecDeque<Asked>,
    input: Vec<u8>,
    held: BTreeMap<String, Option<Vec<u8>>>,
    told: usize,
    listener: Option<Listener>,
    /// It has heard that its listener is gone, and has no other yet.
    is_broken: bool,
    broken: usize,
}

/// A client that is told instead of another.
#[derive(Debug)]
struct Listener {
    peer: Peer,
    id: String,
    input: Vec<u8>,
}

impl Listener {
    fn new(rig: &mut Rig, owner: usize, resp3: bool) -> Self {
        let peer = rig.connect(owner);
        let id = rig.ask(&peer, b"CLIENT ID\r\n");
        let id = String::from_utf8_lossy(&id[1..]).trim_end().to_owned();
        let hello: &[u8] = match resp3 {
            true => b"HELLO 3\r\n",
            false => b"SUBSCRIBE __redis__:invalidate\r\n",
        };
        rig.ask(&peer, hello);
        let input = Vec::new();
        Self { peer, id, input }
    }
}

struct Dice(u64);

impl Dice {
    fn below(&mut self, sides: u64) -> u64 {
        self.0 = (self.0.wrapping_mul(6_364_136_223_846_793_005)).wrapping_add(1_442_695_040_888);
        (self.0 >> 33) % sides
    }

    fn key(&mut self) -> String {
        let name = ["a", "ab", "b", "c"][self.below(4) as usize];
        format!("{name}{}", self.below(4))
    }
}

impl Cache {
    fn new(rig: &mut Rig, owner: usize, kind: Kind) -> Self {
        let mut cache = Self {
            peer: rig.connect(owner),
            kind,
            asked: VecDeque::new(),
            input: Vec::new(),
            held: BTreeMap::new(),
            told: 0,
            listener: None,
            is_broken: false,
            broken: 0,
        };
        if let Kind::Redirect(resp3) = kind {
            let owner = (owner + 1) % rig.loops.len();
            cache.listener = Some(Listener::new(rig, owner, resp3));
        }
        let id = cache
            .listener
            .as_ref()
            .map_or("0", |listener| &listener.id)
            .to_owned();
        cache.say(&["HELLO", "3"], Asked::Nothing);
        let options: &[&str] = match kind {
            Kind::Plain => &[],
            Kind::NoLoop => &["NOLOOP"],
            Kind::Broadcast => &["BCAST", "PREFIX", "a", "PREFIX", "b1"],
            Kind::OptIn => &["OPTIN"],
            Kind::OptOut => &["OPTOUT"],
            Kind::Redirect(_) => &["REDIRECT", &id],
        };
        let words = [&["CLIENT", "TRACKING", "ON"], options].concat();
        cache.say(&words, Asked::Nothing);
        cache
    }

    /// Its listener dies when all that it was told is heard. The next message cannot be told.
    fn lose_listener(&mut self, rig: &mut Rig) {
        if self.listener.is_some() {
            rig.settle();
            self.hear();
            let listener = self.listener.take().expect("it has one");
            listener.peer.wire.borrow_mut().reset();
            rig.settle();
        }
    }

    /// Another listener is told from now on.
    fn find_listener(&mut self, rig: &mut Rig, owner: usize) {
        if let Kind::Redirect(resp3) = self.kind
            && self.is_broken
            && self.listener.is_none()
        {
            let listener = Listener::new(rig, owner, resp3);
            self.say(&["CLIENT", "TRACKING", "OFF"], Asked::Nothing);
            let on = ["CLIENT", "TRACKING", "ON", "REDIRECT", &listener.id];
            self.say(&on, Asked::Redirected);
            self.listener = Some(listener);
        }
    }

    fn say(&mut self, words: &[&str], asked: Asked) {
        let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        self.peer.send(&bulk(&words));
        self.asked.push_back(asked);
    }

    fn leave(&self) {
        self.peer.wire.borrow_mut().reset();
        if let Some(listener) = &self.listener {
            listener.peer.wire.borrow_mut().reset();
        }
    }

    /// Says something at random.
    fn speak(&mut self, dice: &mut Dice, value: &str) {
        let (key, other) = (dice.key(), dice.key());
        let mut caches = self.kind != Kind::OptIn;
        if dice.below(3) == 0 {
            match self.kind {
                Kind::OptIn => self.say(&["CLIENT", "CACHING", "YES"], Asked::Nothing),
                Kind::OptOut => self.say(&["CLIENT", "CACHING", "NO"], Asked::Nothing),
                _ => {}
            }
            caches = self.kind != Kind::OptOut;
        }
        let ms = (1 + dice.below(15)).to_string();
        let wrote = Asked::Wrote(key.clone());
        match dice.below(24) {
            0..6 => self.say(&["GET", &key], Asked::Read(vec![key.clone()], caches)),
            6..9 => {
                let keys = vec![key.clone(), other.clone()];
                self.say(&["MGET", &key, &other], Asked::Read(keys, caches));
            }
            9..12 => self.say(&["SET", &key, value], wrote),
            12 => self.say(&["DEL", &key], wrote),
            13 | 14 => self.say(&["SET", &key, value, "PX", &ms], wrote),
            15 => self.say(&["PEXPIRE", &key, &ms], wrote),
            16 => {
                let text = "redis.call('set', KEYS[1], ARGV[1]) return redis.call('get', KEYS[1])";
                let both = Asked::Both(key.clone(), key.clone(), caches);
                self.say(&["EVAL", text, "1", &key, value], both);
            }
            18 => {
                // What it changes is not declared.
                let text = "redis.call('set', ARGV[1], ARGV[2]) return redis.call('get', KEYS[1])";
                let both = Asked::Both(key.clone(), other.clone(), caches);
                self.say(&["EVAL", text, "1", &other, &key, value], both);
            }
            19 => {
                let text = "local old = redis.call('get', KEYS[1]) \
                            redis.call('set', KEYS[1], ARGV[1], 'px', ARGV[2]) return old";
                let asked = Asked::ReadThenWrote(key.clone(), caches);
                self.say(&["EVAL", text, "1", &key, value, &ms], asked);
            }
            20 => {
                let text = "redis.call('set', KEYS[1], ARGV[1]) redis.call('nonsense')";
                self.say(
                    &["EVAL", text, "1", &key, value],
                    Asked::Failed(key.clone()),
                );
            }
            21 => {
                self.say(&["MULTI"], Asked::Nothing);
                let text = "return redis.call('getset', KEYS[1], ARGV[1])";
                self.say(&["EVAL", text, "1", &key, value], Asked::Nothing);
                self.say(&["GET", &key], Asked::Nothing);
                let several = vec![wrote, Asked::Read(vec![key.clone()], caches)];
                self.say(&["EXEC"], Asked::Several(several));
            }
            17 if dice.below(12) == 0 => self.say(&["FLUSHALL"], Asked::Nothing),
            17 if dice.below(12) == 0 => self.say(&["SWAPDB", "0", "1"], Asked::Nothing),
            _ => {
                let reads = |key: &String| Asked::Read(vec![key.clone()], caches);
                self.say(&["MULTI"], Asked::Nothing);
                self.say(&["GET", &key], Asked::Nothing);
                self.say(&["SET", &key, value], Asked::Nothing);
                self.say(&["GET", &other], Asked::Nothing);
                let several = vec![reads(&key), wrote, reads(&other)];
                self.say(&["EXEC"], Asked::Several(several));
            }
        }
    }

    /// Takes what has arrived.
    fn hear(&mut self) {
        self.input.extend(self.peer.take());
        let input = std::mem::take(&mut self.input);
        let mut at = 0;
        while let Some((reply, used)) = Reply::read(&input[at..]).expect("replies") {
            at += used;
            match reply {
                Reply::Push(parts)
                    if parts[0] == Reply::Bulk(b"tracking-redir-broken".to_vec()) =>
                {
                    self.is_broken = true;
                    self.broken += 1;
                    self.held.clear();
                }
                Reply::Push(parts) => self.invalidate(&parts),
                reply => {
                    let asked = self.asked.pop_front().expect("it has asked");
                    self.answer(asked, reply);
                }
            }
        }
        self.input = input[at..].to_vec();
        self.listen();
    }

    /// Takes what its listener was told.
    fn listen(&mut self) {
        let Some(listener) = &mut self.listener else {
            return;
        };
        listener.input.extend(listener.peer.take());
        let input = std::mem::take(&mut listener.input);
        let (mut at, mut messages) = (0, Vec::new());
        while let Some((message, used)) = Reply::read(&input[at..]).expect("messages") {
            at += used;
            messages.push(message);
        }
        listener.input = input[at..].to_vec();
        for message in messages {
            match message {
                Reply::Push(parts) => self.invalidate(&parts),
                Reply::Array(mut parts) => {
                    parts[1] = Reply::Bulk(b"invalidate".to_vec());
                    self.invalidate(&parts[1..]);
                }
                other => panic!("{other:?}"),
            }
        }
    }

    fn invalidate(&mut self, parts: &[Reply]) {
        assert_eq!(parts[0], Reply::Bulk(b"invalidate".to_vec()));
        self.told += 1;
        match &parts[1] {
            Reply::Null => self.held.clear(),
            Reply::Array(keys) => {
                for key in keys {
                    self.held.remove(&text(key).expect("a key"));
                }
            }
            other => panic!("{other:?}"),
        }
    }

    fn answer(&mut self, asked: Asked, reply: Reply) {
        let (is_error, fails) = (
            matches!(reply, Reply::Error(_)),
            matches!(asked, Asked::Failed(_)),
        );
        assert_eq!(is_error, fails, "{reply:?} to {asked:?}");
        match (asked, reply) {
            (Asked::Nothing, _) => {}
            (Asked::Redirected, _) => self.is_broken = false,
            (Asked::Failed(key), _) => self.wrote(&key),
            (Asked::ReadThenWrote(key, caches), value) => {
                self.cache(key.clone(), value, caches);
                self.wrote(&key);
            }
            (Asked::Read(keys, caches), Reply::Array(values)) => {
                for (key, value) in keys.into_iter().zip(values) {
                    self.cache(key, value, caches);
                }
            }
            (Asked::Read(keys, caches), value) => self.cache(keys[0].clone(), value, caches),
            (Asked::Wrote(key), _) => self.wrote(&key),
            (Asked::Both(key, read, caches), value) => {
                self.wrote(&key);
                self.cache(read, value, caches);
            }
            (Asked::Several(asked), Reply::Array(replies)) => {
                for (asked, reply) in asked.into_iter().zip(replies) {
                    self.answer(asked, reply);
                }
            }
            other => panic!("{other:?}"),
        }
    }

    /// A client that is not told of its own changes knows of them.
    fn wrote(&mut self, key: &str) {
        if self.kind == Kind::NoLoop {
            self.held.remove(key);
        }
    }

    fn cache(&mut self, key: String, value: Reply, caches: bool) {
        let is_tracked = self.kind != Kind::Broadcast || key.starts_with(['a']) || key == "b1";
        if caches && is_tracked && !self.is_broken {
            let value = match value {
                Reply::Bulk(bytes) => Some(bytes),
                Reply::Null => None,
                other => panic!("{other:?}"),
            };
            self.held.insert(key, value);
        }
    }
}

fn text(reply: &Reply) -> Option<String> {
    match reply {
        Reply::Bulk(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        _ => None,
    }
}

/// Every cached value is the server's. Returns how many were looked at.
fn check(rig: &mut Rig, plain: &Peer, caches: &mut [Cache], seed: u64, step: usize) -> usize {
    rig.settle();
    let mut looked = 0;
    for cache in caches {
        cache.hear();
        assert!(cache.asked.is_empty(), "everything was answered");
        for (key, value) in &cache.held {
            let reply = rig.ask(plain, &bulk(&[b"GET", key.as_bytes()]));
            let (reply, _) = Reply::read(&reply).expect("valid").expect("a reply");
            let now = match reply {
                Reply::Bulk(bytes) => Some(bytes),
                _ => None,
            };
            assert_eq!(
                &now, value,
                "seed {seed}, step {step}: {key} of a client that tracks {:?}",
                cache.kind
            );
            looked += 1;
        }
    }
    looked
}

fn episode(seed: u64) -> (usize, usize, usize) {
    let mut dice = Dice(seed);
    let loops = 1 + dice.below(3) as usize;
    let tracking_keys_max = [0, 1, 3, 1_000][dice.below(4) as usize];
    let keys_max = match tracking_keys_max {
        0 => usize::MAX,
        max => max,
    };
    let settings = Settings {
        tracking_keys_max,
        ..Settings::default()
    };
    let mut rig = Rig::new(loops, settings);
    let rules = rig.server.keyspace.rules();
    // A read of two keys is a long command, in some episodes.
    let long_ns = [300, 1_000_000][dice.below(2) as usize];
    rules.long_ns.store(long_ns, Ordering::Relaxed);
    let plain = rig.connect(0);
    let new = |rig: &mut Rig, dice: &mut Dice| {
        let kind = KINDS[dice.below(KINDS.len() as u64) as usize];
        Cache::new(rig, dice.below(loops as u64) as usize, kind)
    };
    let mut caches: Vec<_> = (0..CLIENTS).map(|_| new(&mut rig, &mut dice)).collect();
    let (mut looked, mut told, mut broken) = (0, 0, 0);
    for step in 0..STEPS {
        let at = dice.below(CLIENTS as u64) as usize;
        for _ in 0..dice.below(4) {
            caches[at].speak(&mut dice, &step.to_string());
        }
        for _ in 0..dice.below(3) {
            rig.turn(dice.below(loops as u64) as usize);
        }
        caches[dice.below(CLIENTS as u64) as usize].hear();
        if dice.below(4) == 0 {
            rig.advance(Duration::from_millis(dice.below(6)));
        }
        if dice.below(60) == 0 {
            caches[at].lose_listener(&mut rig);
        }
        if dice.below(8) == 0 {
            let owner = dice.below(loops as u64) as usize;
            caches[at].find_listener(&mut rig, owner);
        }
        if dice.below(40) == 0 {
            told += caches[at].told;
            broken += caches[at].broken;
            caches[at].leave();
            caches[at] = new(&mut rig, &mut dice);
        }
        if dice.below(10) == 0 {
            looked += check(&mut rig, &plain, &mut caches, seed, step);
        }
    }
    looked += check(&mut rig, &plain, &mut caches, seed, STEPS);
    let kept = rig.server.keyspace.tracking_stats().keys;
    assert!(kept <= keys_max, "{kept} keys are tracked, seed {seed}");
    for cache in &caches {
        told += cache.told;
        broken += cache.broken;
        cache.leave();
    }
    rig.settle();
    let left = rig.server.keyspace.tracking_stats();
    assert_eq!(
        left,
        TrackingStats::default(),
        "nothing is left, seed {seed}"
    );
    (looked, told, broken)
}

#[test]
fn what_clients_have_cached_is_what_the_server_has_at_every_quiet_point() {
    let seeds = if is_deep() { 2_000 } else { 60 };
    let (mut looked, mut told, mut broken) = (0, 0, 0);
    for seed in 1..=seeds {
        let (more, messages, losses) = episode(seed);
        looked += more;
        told += messages;
        broken += losses;
    }
    assert!(looked as u64 > seeds * 100, "{looked} looks");
    assert!(told as u64 > seeds * 50, "{told} messages");
    assert!(broken as u64 > seeds / 4, "{broken} listeners lost");
}

fn tracking(rig: &mut Rig, owner: usize, options: &[u8]) -> Peer {
    let peer = rig.connect(owner);
    peer.send(b"HELLO 3\r\n");
    peer.send(&[b"CLIENT TRACKING ON ", options, b"\r\n"].concat());
    rig.settle();
    peer.take();
    peer
}

const INVALID_K: &[u8] = b">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n";

#[test]
fn the_authors_message_follows_the_reply_to_its_command() {
    let mut rig = Rig::new(1, Settings::default());
    let peer = tracking(&mut rig, 0, b"");
    let answer = rig.ask(&peer, b"GET k\r\nSET k 1\r\n");
    assert_eq!(answer, [b"_\r\n+OK\r\n", INVALID_K].concat());
    let answer = rig.ask(&peer, b"MULTI\r\nGET k\r\nSET k 2\r\nEXEC\r\n");
    let replies: &[u8] = b"+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n$1\r\n1\r\n+OK\r\n";
    assert_eq!(answer, [replies, INVALID_K].concat());
    let answer = rig.ask(&peer, b"GET k\r\nFLUSHALL\r\n");
    assert_eq!(
        answer,
        b"$1\r\n2\r\n+OK\r\n>2\r\n$10\r\ninvalidate\r\n_\r\n"
    );
    // Its own changes are no news to one that says so; but the end of a key's time is.
    let peer = tracking(&mut rig, 0, b"NOLOOP");
    assert_eq!(
        rig.ask(&peer, b"GET k\r\nSET k 1 PX 5\r\n"),
        b"_\r\n+OK\r\n"
    );
    assert_eq!(rig.ask(&peer, b"GET k\r\n"), b"$1\r\n1\r\n");
    rig.advance(Duration::from_millis(4));
    rig.settle();
    assert_eq!(peer.take(), b"");
    rig.advance(Duration::from_millis(1));
    rig.settle();
    assert_eq!(
        peer.take(),
        INVALID_K,
        "at the deadline, and nobody has touched it"
    );
}

#[test]
fn a_lower_limit_of_tracked_keys_is_kept_at_once_over_several_turns() {
    let mut rig = Rig::new(2, Settings::default());
    let reader = tracking(&mut rig, 0, b"");
    for i in 0..2_000 {
        reader.send(format!("GET key:{i}\r\n").as_bytes());
    }
    rig.settle();
    reader.take();
    assert_eq!(rig.server.keyspace.tracking_stats().keys, 2_000);
    let writer = rig.connect(1);
    rig.ask(&writer, b"CONFIG SET tracking-table-max-keys 1\r\n");
    rig.settle();
    assert_eq!(rig.server.keyspace.tracking_stats().keys, 1);
    let told = reader.take();
    let told = told.windows(10).filter(|part| *part == b"invalidate");
    assert_eq!(told.count(), 1_999);
}

#[test]
fn the_message_of_a_client_that_was_served_follows_its_reply() {
    for loops in [1, 2] {
        let mut rig = Rig::new(loops, Settings::default());
        let waits = tracking(&mut rig, 0, b"");
        rig.ask(&waits, b"LRANGE k 0 -1\r\n");
        waits.send(b"BLMOVE other k LEFT LEFT 0\r\n");
        rig.settle();
        let pushes = rig.connect(loops - 1);
        rig.ask(&pushes, b"RPUSH other foo\r\n");
        rig.settle();
        assert_eq!(waits.take(), [b"$3\r\nfoo\r\n", INVALID_K].concat());
    }
}

/// The reply of a long command takes another way than messages.
#[test]
fn a_long_read_is_told_to_be_invalid_right_after_its_reply() {
    let mut rig = Rig::new(2, Settings::default());
    let rules = rig.server.keyspace.rules();
    rules.long_ns.store(1, Ordering::Relaxed);
    let writer = rig.connect(1);
    rig.ask(&writer, b"SET k 1\r\n");
    let reader = tracking(&mut rig, 0, b"");
    reader.send(b"MGET k k\r\n");
    rig.turn(0);
    writer.send(b"SET k 2\r\n");
    rig.settle();
    let answer = reader.take();
    let keys = b">2\r\n$10\r\ninvalidate\r\n*2\r\n$1\r\nk\r\n$1\r\nk\r\n";
    assert!(answer.starts_with(b"*2\r\n"), "{}", answer.escape_ascii());
    assert!(answer.ends_with(keys), "{}", answer.escape_ascii());
    assert_eq!(rig.server.keyspace.tracking_stats().keys, 0);
}

#[test]
fn a_client_that_does_not_read_its_messages_is_closed_and_leaves_nothing() {
    let mut settings = Settings::default();
    settings.output_limits.normal.hard = 1 << 20;
    let mut rig = Rig::new(2, settings);
    let lazy = tracking(&mut rig, 0, b"BCAST");
    lazy.wire.borrow_mut().narrow(1_000, 1_000);
    let writer = rig.connect(1);
    for i in 0..100_000 {
        writer.send(format!("SET key:{i} x\r\n").as_bytes());
        if i % 1_000 == 0 {
            rig.settle();
            writer.take();
        }
        if lazy.is_closed() {
            break;
        }
    }
    assert!(lazy.is_closed());
    rig.settle();
    assert_eq!(
        rig.server.keyspace.tracking_stats(),
        TrackingStats::default()
    );
}

/// A full table costs what it holds, and FLUSHALL gives all of it back.
#[test]
fn flushall_leaves_nothing_of_a_full_table_of_tracked_keys() {
    const MOST: usize = 1_000;
    let settings = Settings {
        tracking_keys_max: MOST,
        ..Settings::default()
    };
    let mut rig = Rig::new(2, settings);
    let shards = rig.server.keyspace.shards();
    let readers = [0, 1].map(|owner| tracking(&mut rig, owner, b""));
    let writer = rig.connect(1);
    rig.ask(&writer, b"MSET live:0 1 live:1 1\r\n");
    let empty = rig.server.keyspace.tracking_stats();
    let memory = rig.server.keyspace.used_memory();
    for round in 0..3 {
        let mut told = [0; 2];
        for i in 0..3 * MOST {
            for (reader, told) in readers.iter().zip(&mut told) {
                let name = ["live", "key", "key"][i % 3];
                let answer = rig.ask(reader, format!("GET {name}:{i}\r\n").as_bytes());
                *told += answer
                    .windows(10)
                    .filter(|bytes| bytes == b"invalidate")
                    .count();
            }
        }
        let full = rig.server.keyspace.tracking_stats();
        assert!((MOST..=MOST + shards).contains(&full.keys), "{full:?}");
        assert!(full.bytes >= MOST * 100, "{full:?}");
        // Each reader reads a key right after the other: what has left was told to both, or to
        // the only one that had read it.
        let left = 3 * MOST - full.keys;
        assert!(
            told.iter().all(|told| (left - 1..=left + 1).contains(told)),
            "{told:?}, {left}"
        );
        rig.ask(&writer, b"FLUSHALL\r\n");
        for reader in &readers {
            assert_eq!(reader.take(), b">2\r\n$10\r\ninvalidate\r\n_\r\n");
        }
        let stats = rig.server.keyspace.tracking_stats();
        assert_eq!(stats, empty, "round {round}");
        let now = rig.server.keyspace.used_memory();
        assert!(now <= memory, "{now} bytes, {memory} before");
    }
}
