//! Random commands in virtual time against a naive model: every reply, every deadline, every event.

use std::collections::BTreeMap;

use crate::common::{Rig, START, WALL_START_MS, show};
use proptest::prelude::*;

#[derive(Debug, Clone)]
enum Step {
    Set {
        key: u8,
        value: u8,
        lifetime: Lifetime,
        condition: u8,
        get: bool,
    },
    Get(u8),
    GetDel(u8),
    GetEx {
        key: u8,
        ms: i64,
    },
    Append {
        key: u8,
        value: u8,
    },
    IncrBy {
        key: u8,
        by: i64,
    },
    Del(u8, u8),
    Exists(u8, u8),
    MSet(u8, u8),
    PExpire {
        key: u8,
        ms: i64,
        condition: u8,
    },
    PExpireAt {
        key: u8,
        ms: i64,
    },
    Persist(u8),
    Ttl(u8),
    PTtl(u8),
    PExpireTime(u8),
    Rename {
        from: u8,
        to: u8,
        unless: bool,
    },
    Copy {
        from: u8,
        to: u8,
        db: u8,
        replace: bool,
    },
    Move {
        key: u8,
        db: u8,
    },
    Select(u8),
    SwapDb(u8, u8),
    FlushDb,
    DbSize,
    Keys,
    Pass(u64),
    Expire {
        budget: u32,
    },
    Maintain,
    Freeze,
    Resume,
}

#[derive(Debug, Clone, Copy)]
enum Lifetime {
    Forever,
    Keep,
    Ms(i64),
    AtMs(i64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let key = || 0_u8..5;
    let ms = || prop_oneof![4 => 1_i64..60, 1 => -5_i64..2, 1 => 1000_i64..100_000];
    let lifetime = prop_oneof![
        Just(Lifetime::Forever),
        Just(Lifetime::Keep),
        ms().prop_map(Lifetime::Ms),
        ms().prop_map(Lifetime::AtMs),
    ];
    let step = prop_oneof![
        6 => (key(), any::<u8>(), lifetime, 0_u8..3, any::<bool>()).prop_map(
            |(key, value, lifetime, condition, get)| Step::Set { key, value, lifetime, condition, get }
        ),
        3 => key().prop_map(Step::Get),
        1 => key().prop_map(Step::GetDel),
        2 => (key(), ms()).prop_map(|(key, ms)| Step::GetEx { key, ms }),
        1 => (key(), any::<u8>()).prop_map(|(key, value)| Step::Append { key, value }),
        2 => (key(), prop_oneof![-3_i64..3, any::<i64>()]).prop_map(|(key, by)| Step::IncrBy { key, by }),
        2 => (key(), key()).prop_map(|(a, b)| Step::Del(a, b)),
        1 => (key(), key()).prop_map(|(a, b)| Step::Exists(a, b)),
        1 => (key(), key()).prop_map(|(a, b)| Step::MSet(a, b)),
        4 => (key(), ms(), 0_u8..5).prop_map(|(key, ms, condition)| Step::PExpire { key, ms, condition }),
        1 => (key(), ms()).prop_map(|(key, ms)| Step::PExpireAt { key, ms }),
        1 => key().prop_map(Step::Persist),
        1 => key().prop_map(Step::Ttl),
        2 => key().prop_map(Step::PTtl),
        1 => key().prop_map(Step::PExpireTime),
        2 => (key(), key(), any::<bool>()).prop_map(|(from, to, unless)| Step::Rename { from, to, unless }),
        2 => (key(), key(), 0_u8..3, any::<bool>())
            .prop_map(|(from, to, db, replace)| Step::Copy { from, to, db, replace }),
        1 => (key(), 0_u8..3).prop_map(|(key, db)| Step::Move { key, db }),
        1 => (0_u8..3).prop_map(Step::Select),
        1 => (0_u8..3, 0_u8..3).prop_map(|(a, b)| Step::SwapDb(a, b)),
        1 => Just(Step::FlushDb),
        1 => Just(Step::DbSize),
        1 => Just(Step::Keys),
        6 => prop_oneof![4 => 0_u64..40, 1 => 0_u64..200_000].prop_map(Step::Pass),
        3 => (1_u32..20).prop_map(|budget| Step::Expire { budget }),
        1 => Just(Step::Maintain),
        1 => Just(Step::Freeze),
        2 => Just(Step::Resume),
    ];
    proptest::collection::vec(step, 1..120)
}

type Place = (u8, u8);

/// Values and deadlines in engine time; nothing dead is ever in it.
#[derive(Default)]
struct Model {
    entries: BTreeMap<Place, (String, Option<i64>)>,
    db: u8,
    now: i64,
    wall: i64,
    frozen: bool,
    expired: usize,
}

fn bulk(value: Option<&String>) -> String {
    value.map_or("nil".to_owned(), |value| format!("'{value}'"))
}

fn integer(n: impl TryInto<i64>) -> String {
    format!(":{}", n.try_into().unwrap_or(i64::MAX))
}

impl Model {
    fn bury(&mut self) {
        let (now, before) = (self.now, self.entries.len());
        self.entries
            .retain(|_, (_, deadline)| deadline.is_none_or(|deadline| deadline > now));
        self.expired += before - self.entries.len();
    }

    fn at(&self, key: u8) -> Place {
        (self.db, key)
    }

    /// The command's words and the reply that it must get.
    fn run(&mut self, step: &Step) -> (String, String) {
        match *step {
            Step::Set {
                key,
                value,
                lifetime,
                condition,
                get,
            } => self.set(key, value, lifetime, condition, get),
            Step::Get(key) => (
                format!("GET k{key}"),
                bulk(self.entries.get(&self.at(key)).map(|e| &e.0)),
            ),
            Step::GetDel(key) => {
                let gone = self.entries.remove(&self.at(key));
                (format!("GETDEL k{key}"), bulk(gone.as_ref().map(|e| &e.0)))
            }
            Step::GetEx { key, ms } => {
                let place = self.at(key);
                let value = bulk(self.entries.get(&place).map(|e| &e.0));
                let reply = if value != "nil" && ms <= 0 {
                    "-ERR invalid expire time in 'getex' command".to_owned()
                } else {
                    value
                };
                if ms > 0
                    && let Some(entry) = self.entries.get_mut(&place)
                {
                    entry.1 = Some(self.now + ms);
                }
                (format!("GETEX k{key} PX {ms}"), reply)
            }
            Step::Append { key, value } => {
                let entry = self.entries.entry((self.db, key)).or_default();
                entry.0.push_str(&value.to_string());
                (format!("APPEND k{key} {value}"), integer(entry.0.len()))
            }
            Step::IncrBy { key, by } => {
                let old = self
                    .entries
                    .get(&self.at(key))
                    .cloned()
                    .unwrap_or(("0".into(), None));
                let parsed = tidewheel_resp::parse_i64(old.0.as_bytes());
                let reply = match parsed.map(|n| n.checked_add(by)) {
                    None => "-ERR value is not an integer or out of range".to_owned(),
                    Some(None) => "-ERR increment or decrement would overflow".to_owned(),
                    Some(Some(sum)) => {
                        self.entries.insert(self.at(key), (sum.to_string(), old.1));
                        integer(sum)
                    }
                };
                (format!("INCRBY k{key} {by}"), reply)
            }
            Step::Del(a, b) => {
                let (db, entries) = (self.db, &mut self.entries);
                let n = [a, b]
                    .iter()
                    .filter(|&&k| entries.remove(&(db, k)).is_some())
                    .count();
                (format!("DEL k{a} k{b}"), integer(n))
            }
            Step::Exists(a, b) => {
                let n = [a, b]
                    .iter()
                    .filter(|&&k| self.entries.contains_key(&self.at(k)))
                    .count();
                (format!("EXISTS k{a} k{b}"), integer(n))
            }
            Step::MSet(a, b) => {
                self.entries.insert(self.at(a), ("1".into(), None));
                self.entries.insert(self.at(b), ("2".into(), None));
                (format!("MSET k{a} 1 k{b} 2"), "OK".into())
            }
            Step::PExpire { key, ms, condition } => {
                let word = ["", "NX", "XX", "GT", "LT"][condition as usize];
                let reply = self.expire(key, self.now + ms, word);
                (format!("PEXPIRE k{key} {ms} {word}"), reply)
            }
            Step::PExpireAt { key, ms } => {
                let reply = self.expire(key, self.now + ms, "");
                (format!("PEXPIREAT k{key} {}", self.wall + ms), reply)
            }
            Step::Persist(key) => {
                let place = self.at(key);
                let had = self
                    .entries
                    .get_mut(&place)
                    .is_some_and(|e| e.1.take().is_some());
                (format!("PERSIST k{key}"), integer(had))
            }
            Step::Ttl(key) => (
                format!("TTL k{key}"),
                self.left(key, |ms| (ms + 500) / 1000),
            ),
            Step::PTtl(key) => (format!("PTTL k{key}"), self.left(key, |ms| ms)),
            Step::PExpireTime(key) => {
                let wall = self.wall;
                (
                    format!("PEXPIRETIME k{key}"),
                    self.left(key, |ms| wall + ms),
                )
            }
            _ => self.run_on_keys(step),
        }
    }

    fn run_on_keys(&mut self, step: &Step) -> (String, String) {
        match *step {
            Step::Rename { from, to, unless } => {
                let name = if unless { "RENAMENX" } else { "RENAME" };
                let exists = self.entries.contains_key(&self.at(to));
                let reply = match self.entries.get(&self.at(from)).cloned() {
                    None => "-ERR no such key".to_owned(),
                    Some(_) if unless && exists => ":0".to_owned(),
                    Some(entry) => {
                        self.entries.remove(&self.at(from));
                        self.entries.insert(self.at(to), entry);
                        if unless {
                            ":1".to_owned()
                        } else {
                            "OK".to_owned()
                        }
                    }
                };
                (format!("{name} k{from} k{to}"), reply)
            }
            Step::Copy {
                from,
                to,
                db,
                replace,
            } => {
                let word = if replace { "REPLACE" } else { "" };
                let reply = if db == self.db && from == to {
                    "-ERR source and destination objects are the same".to_owned()
                } else if let Some(entry) = self.entries.get(&self.at(from)).cloned()
                    && (replace || !self.entries.contains_key(&(db, to)))
                {
                    self.entries.insert((db, to), entry);
                    ":1".to_owned()
                } else {
                    ":0".to_owned()
                };
                (format!("COPY k{from} k{to} DB {db} {word}"), reply)
            }
            Step::Move { key, db } => {
                let reply = if db == self.db {
                    "-ERR source and destination objects are the same".to_owned()
                } else if !self.entries.contains_key(&(db, key))
                    && let Some(entry) = self.entries.remove(&self.at(key))
                {
                    self.entries.insert((db, key), entry);
                    ":1".to_owned()
                } else {
                    ":0".to_owned()
                };
                (format!("MOVE k{key} {db}"), reply)
            }
            Step::Select(db) => {
                self.db = db;
                (format!("SELECT {db}"), "OK".into())
            }
            Step::SwapDb(a, b) => {
                let swapped = |db| {
                    if db == a {
                        b
                    } else if db == b {
                        a
                    } else {
                        db
                    }
                };
                let entries = std::mem::take(&mut self.entries);
                self.entries = entries
                    .into_iter()
                    .map(|((db, key), entry)| ((swapped(db), key), entry))
                    .collect();
                (format!("SWAPDB {a} {b}"), "OK".into())
            }
            Step::FlushDb => {
                let db = self.db;
                self.entries.retain(|place, _| place.0 != db);
                ("FLUSHDB".into(), "OK".into())
            }
            ref other => unreachable!("{other:?}"),
        }
    }

    fn set(
        &mut self,
        key: u8,
        value: u8,
        lifetime: Lifetime,
        condition: u8,
        get: bool,
    ) -> (String, String) {
        let (option, ms) = match lifetime {
            Lifetime::Forever => (String::new(), None),
            Lifetime::Keep => ("KEEPTTL".into(), None),
            Lifetime::Ms(ms) => (format!("PX {ms}"), Some(ms)),
            Lifetime::AtMs(ms) => (format!("PXAT {}", self.wall + ms), Some(ms)),
        };
        let word = ["", "NX", "XX"][condition as usize];
        let get_word = if get { "GET" } else { "" };
        let line = format!("SET k{key} {value} {word} {option} {get_word}");
        if let Lifetime::Ms(..=0) = lifetime {
            return (line, "-ERR invalid expire time in 'set' command".into());
        }
        let old = self.entries.get(&self.at(key)).cloned();
        let done = condition == 0 || (condition == 1) == old.is_none();
        let reply = match (get, done) {
            (true, _) => bulk(old.as_ref().map(|e| &e.0)),
            (false, true) => "OK".to_owned(),
            (false, false) => "nil".to_owned(),
        };
        if done {
            let kept = matches!(lifetime, Lifetime::Keep)
                .then(|| old.and_then(|e| e.1))
                .flatten();
            let deadline = ms.map(|ms| self.now + ms).or(kept);
            self.entries
                .insert(self.at(key), (value.to_string(), deadline));
        }
        (line, reply)
    }

    fn expire(&mut self, key: u8, deadline: i64, condition: &str) -> String {
        let place = self.at(key);
        let Some(entry) = self.entries.get_mut(&place) else {
            return ":0".into();
        };
        let allowed = match (condition, entry.1) {
            ("NX", old) => old.is_none(),
            ("XX", old) => old.is_some(),
            ("GT", old) => old.is_some_and(|old| deadline > old),
            ("LT", old) => old.is_none_or(|old| deadline < old),
            _ => true,
        };
        if allowed {
            entry.1 = Some(deadline);
            if deadline <= self.now {
                // Deleted, not expired.
                self.entries.remove(&place);
            }
        }
        integer(allowed)
    }

    fn left(&self, key: u8, of: impl Fn(i64) -> i64) -> String {
        match self.entries.get(&self.at(key)) {
            None => ":-2".into(),
            Some((_, None)) => ":-1".into(),
            Some((_, Some(deadline))) => integer(of(deadline - self.now)),
        }
    }
}

fn names(model: &Model) -> Vec<String> {
    let here = model.entries.keys().filter(|place| place.0 == model.db);
    here.map(|place| format!("'k{}'", place.1)).collect()
}

fn check(steps: &[Step], shards: usize) {
    let mut rig = Rig::with(tidewheel_keyspace::Options {
        shards,
        databases: 3,
        seed: 3,
    });
    rig.notify("Ex");
    let mut model = Model {
        now: START as i64,
        wall: WALL_START_MS,
        ..Model::default()
    };
    let mut expired_events = 0;
    for step in steps {
        match *step {
            Step::Pass(ms) => {
                rig.pass(ms);
                model.wall += ms as i64;
                if !model.frozen {
                    model.now += ms as i64;
                }
            }
            Step::Expire { budget } => {
                for shard in 0..rig.keyspace.shards() {
                    rig.keyspace.expire(&mut rig.seat, shard, rig.time, budget);
                }
            }
            Step::Maintain => {
                for shard in 0..rig.keyspace.shards() {
                    rig.keyspace.maintain(&mut rig.seat, shard, 8);
                }
            }
            Step::Freeze => {
                rig.run("EXPIRY FREEZE");
                model.frozen = true;
            }
            Step::Resume => {
                rig.run("EXPIRY RESUME");
                model.frozen = false;
            }
            Step::Keys => {
                let tidewheel_resp::Reply::Array(keys) = rig.words(&[b"KEYS", b"*"]) else {
                    panic!("an array");
                };
                let mut keys: Vec<_> = keys.iter().map(show).collect();
                keys.sort();
                assert_eq!(keys, names(&model));
            }
            Step::DbSize | Step::FlushDb => {
                // What is dead and not removed yet is counted, and may be flushed in silence.
                rig.expire_all();
                if matches!(step, Step::FlushDb) {
                    let (line, reply) = model.run(step);
                    assert_eq!(rig.run(&line), reply);
                } else {
                    assert_eq!(rig.run("DBSIZE"), integer(names(&model).len()));
                }
            }
            _ => {
                let (line, reply) = model.run(step);
                assert_eq!(rig.run(&line), reply, "{line}");
            }
        }
        model.bury();
        let events = rig.events();
        expired_events += events.len();
        assert!(
            expired_events <= model.expired,
            "announced before its deadline: {events:?}"
        );
        if !model.frozen {
            let earliest = model.entries.values().filter_map(|entry| entry.1).min();
            let behind = rig.time.tick as i64 - model.now;
            if let Some(earliest) = earliest {
                assert!(
                    rig.next_deadline() <= (earliest + behind) as u64,
                    "sleeps too long"
                );
            }
        }
    }
    rig.run("EXPIRY RESUME");
    rig.expire_all();
    expired_events += rig.events().len();
    assert_eq!(
        expired_events, model.expired,
        "every death is announced once"
    );
    let stats = rig.keyspace.stats(rig.time);
    assert_eq!(
        stats.databases.iter().map(|db| db.keys).sum::<u64>(),
        model.entries.len() as u64
    );
    assert_eq!(stats.expired, model.expired as u64);
    assert_eq!((stats.backlog_shards, stats.backlog_ms), (0, 0));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases / 4, ..ProptestConfig::default() })]

    #[test]
    fn one_shard_agrees_with_the_model(steps in steps()) {
        check(&steps, 1);
    }

    #[test]
    fn many_shards_agree_with_the_model(steps in steps()) {
        check(&steps, 16);
    }
}
