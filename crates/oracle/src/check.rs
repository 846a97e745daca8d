//! The keyspace beside the model, step by step.

use std::collections::VecDeque;
use std::sync::atomic::Ordering::Relaxed;

use tidewheel_keyspace::NotifyClass;
use tidewheel_resp::Reply;

use crate::draw::{spell, spell_word};
use crate::model::{Event, Expect, Model, Place, STRING_MAX};
use crate::rig::{Done, Ran, Rig};
use crate::script::Script;
use crate::step::{Step, meets_dead};
use crate::walk::Walk;

/// Calls of one SCAN; more means that it does not end.
const SCAN_CALLS_MAX: usize = 10_000;

/// Steps between two looks at everything.
const STEPS_BETWEEN_LOOKS: usize = 80;

/// Bytes of a shard that it may keep to itself.
const UNPUBLISHED_BYTES: u64 = 4 << 10;

/// Runs the steps on both and compares after each.
pub fn against_model(rig: Rig, steps: &[Step]) {
    let longest = &rig.keyspace.rules().proto_max_bulk_len;
    longest.store(STRING_MAX as u64, Relaxed);
    rig.queue_expired();
    let mut both = Both {
        rig,
        model: Model::default(),
        walk: None,
        expired: 0,
        flushed: 0,
    };
    for (i, step) in steps.iter().enumerate() {
        both.step(step);
        // Beginning would append what waits for a stream of expired keys.
        both.settle();
        both.rig.walk_background(i);
        if i % STEPS_BETWEEN_LOOKS == 0 {
            both.look_at_everything();
            both.rig.keyspace.assert_counted();
            both.rig.check_records();
            // Saving would append what waits for a stream of expired keys.
            both.settle();
            both.rig.check_snapshot();
        }
    }
    both.rig.finish_background();
    both.finish();
}

struct Both {
    rig: Rig,
    model: Model,
    walk: Option<Walk>,
    /// Keys that were announced to have expired.
    expired: u64,
    /// Expired keys that a flush has taken out of the queue.
    flushed: u64,
}

impl Both {
    fn step(&mut self, step: &Step) {
        self.sync();
        match step {
            Step::Line(line) => self.command(line),
            Step::Script(line) => self.script(line),
            Step::Reload(from, to, ms) => self.reload(from, to, *ms),
            Step::Exec {
                watched,
                between,
                commands,
            } => self.exec(watched, between, commands),
            Step::Wait(line) => self.wait(line),
            Step::Leave(at) => {
                let waiting = self.model.waiting().max(1);
                if let Some(id) = self.rig.leave(usize::from(*at) % waiting) {
                    self.model.leaves(id);
                }
            }
            Step::Page(key, count) => self.page(&spell_word(key, 0), *count),
            other => self.rig.step(other),
        }
        self.settle();
    }

    /// What follows from a step, in both.
    fn settle(&mut self) {
        self.sync();
        for (id, reply) in self.rig.served() {
            let expect = self.model.serve(id, &reply);
            expect.check(&"served", &reply);
            self.sync();
        }
        self.model.check_waiters();
        assert_eq!(
            self.rig.keyspace.waiting(),
            self.model.waiting(),
            "who waits"
        );
        self.compare_events();
        self.check_next_deadline();
        let walk = self.walk.take();
        self.walk = walk.and_then(|walk| walk.still(&self.model));
    }

    fn sync(&mut self) {
        let (tick, begun) = self.rig.engine();
        self.model.at(tick, begun, self.rig.wall_ms());
    }

    /// Expires all that is due. While time stands still nothing is removed, so it has to go on
    /// first.
    fn expire_all(&mut self) {
        self.rig.resume();
        self.sync();
        self.rig.expire_all();
    }

    fn command(&mut self, line: &str) {
        self.prepare(line);
        let Some(words) = self.words(line) else {
            return;
        };
        let reply = self.rig.command(&words);
        let expect = self.model.run(&words, &reply);
        if expect.check(&line, &reply).is_none() {
            self.scan(words, expect, reply);
        }
        self.learn(line);
    }

    /// A script does what its commands do, one after the other at one instant. Those before an
    /// error stay.
    fn script(&mut self, line: &str) {
        self.prepare(line);
        self.sync();
        let words = spell(line, self.rig.wall_ms());
        let ran = self.rig.script(&words);
        self.check_script(line, ran);
    }

    fn check_script(&mut self, line: &str, ran: Vec<Ran>) {
        let here = self.model.db();
        for (words, reply) in ran {
            // A scan shows one page only.
            let call = (line, &words);
            let _ = self.model.run(&words, &reply).check(&call, &reply);
        }
        self.model.select(here);
    }

    /// What is dead but not removed yet is counted, and may be flushed in silence.
    fn prepare(&mut self, line: &str) {
        if self.counts_dead(line) {
            self.expire_all();
        }
    }

    fn counts_dead(&self, line: &str) -> bool {
        let counts = |script: Script| {
            let mut names = script.names().map(String::from_utf8_lossy);
            names.any(|name| meets_dead(&name))
        };
        match line.starts_with("EVAL") {
            true => Script::of(&spell(line, 0)[1]).is_some_and(counts),
            false => meets_dead(line),
        }
    }

    /// The words of a command; `None` if nobody could tell what it answers.
    fn words(&mut self, line: &str) -> Option<Vec<Vec<u8>>> {
        let words = spell(line, self.rig.wall_ms());
        (!self.model.is_vague(&words)).then_some(words)
    }

    /// The model does not hash: it is told the bytes of HyperLogLogs.
    fn learn(&mut self, line: &str) {
        for key in line.split_whitespace().skip(1).filter(|_| is_log(line)) {
            let words = [b"GET".to_vec(), key.as_bytes().to_vec()];
            if let Reply::Bulk(bytes) = self.rig.command(&words) {
                self.model.learn(key, bytes);
            }
        }
    }

    /// A whole iteration: it shows everything, each member once.
    fn scan(&mut self, mut words: Vec<Vec<u8>>, expect: Expect, reply: Reply) {
        let Expect::Scan(expect) = expect else {
            unreachable!("all others have been checked");
        };
        let of_members = words[0] != b"SCAN";
        let width = if words[0] == b"HSCAN" || words[0] == b"ZSCAN" {
            2
        } else {
            1
        };
        let (mut cursor, mut found) = page_of(reply, width);
        for calls in 0.. {
            if cursor == b"0" {
                break;
            }
            assert!(calls < SCAN_CALLS_MAX, "the scan does not end");
            words[1 + usize::from(of_members)] = cursor;
            let (next, more) = page_of(self.rig.command(&words), width);
            found.extend(more);
            cursor = next;
        }
        found.sort();
        assert_eq!(found, expect, "{words:?}");
    }

    /// One page of a scan that goes on while other steps change things.
    fn page(&mut self, key: &[u8], count: u8) {
        let walk = self
            .walk
            .take()
            .unwrap_or_else(|| Walk::new(&self.model, key));
        let (cursor, found) = page_of(self.rig.command(&walk.words(count)), walk.width());
        self.walk = walk.goes_on(cursor, &found);
    }

    /// DUMP under one name, RESTORE under another.
    fn reload(&mut self, from: &str, to: &str, ms: u8) {
        let (from, to) = (spell_word(from, 0), spell_word(to, 0));
        let place = (self.model.db(), from.clone());
        // Streams are not dumped yet.
        if self
            .model
            .look(&place)
            .is_some_and(|(kind, _)| kind == "stream")
        {
            return;
        }
        let reply = self.rig.command(&[b"DUMP".to_vec(), from]);
        let Reply::Bulk(payload) = reply else {
            assert_eq!((reply, self.model.look(&place)), (Reply::Null, None));
            return;
        };
        let (deadline, ttl) = (self.model.in_ms(ms), ms.to_string().into_bytes());
        let words = [
            b"RESTORE".to_vec(),
            to.clone(),
            ttl,
            payload,
            b"REPLACE".to_vec(),
        ];
        assert_eq!(self.rig.command(&words), Reply::Simple("OK".to_owned()));
        self.model.reload(&place, &to, deadline);
    }

    fn exec(&mut self, watched: &[String], between: &[Step], commands: &[Step]) {
        let keys: Vec<_> = watched.iter().map(|key| spell_word(key, 0)).collect();
        let places: Vec<Place> = keys
            .iter()
            .map(|key| (self.model.db(), key.clone()))
            .collect();
        let watching = self.rig.watch(&keys);
        self.model.watch();
        // PFCOUNT may change what it keeps beside the members.
        for step in between.iter().filter(|step| !is_about_logs(step)) {
            self.step(step);
        }
        let mut may_have_killed = false;
        let mut lines = Vec::new();
        for step in commands {
            if let Step::Line(line) | Step::Script(line) = step
                && !is_log(line)
                && !(may_have_killed && self.counts_dead(line))
            {
                may_have_killed |= may_kill(line);
                lines.push(line.as_str());
            }
        }
        lines.iter().for_each(|line| self.prepare(line));
        self.sync();
        let calls: Vec<_> = lines
            .into_iter()
            .filter_map(|line| Some((line, self.words(line)?)))
            .collect();
        let changed = places.iter().any(|place| self.model.is_touched(place));
        let words: Vec<_> = calls.iter().map(|(_, words)| words.clone()).collect();
        let replies = self.rig.transact(watching, &words);
        assert_eq!(
            replies.is_none(),
            changed,
            "EXEC after {between:?} of {watched:?}"
        );
        let Some(replies) = replies else { return };
        assert_eq!(replies.len(), calls.len());
        for ((line, words), done) in calls.iter().zip(replies) {
            match done {
                // A scan shows one page only.
                Done::Reply(reply) => {
                    let _ = self.model.run(words, &reply).check(line, &reply);
                }
                Done::Script(ran) => self.check_script(line, ran),
            }
        }
    }

    fn wait(&mut self, line: &str) {
        let words: Vec<_> = line.split_whitespace().collect();
        let (id, reply) = self.rig.wait(&words);
        match reply {
            None => self.model.waits(id, &words),
            Some(reply) => {
                let _ = self.model.run(&words, &reply).check(&line, &reply);
                assert_ne!(reply, Reply::Null, "{line} should wait");
            }
        }
    }

    /// Events of commands come as the model says; between them only what has died is announced.
    fn compare_events(&mut self) {
        let tick = self.rig.engine().0;
        let mut expected: VecDeque<Event> = self.model.events().into();
        let mut expired = Vec::new();
        for event in self.rig.events() {
            if matches!(event.class, NotifyClass::New | NotifyClass::KeyMiss) {
                continue;
            }
            let found = (event.db, event.key.into_vec(), event.name);
            if event.name == "expired" {
                expired.push((found.0, found.1.clone()));
            }
            if expected.front() == Some(&found) {
                expected.pop_front();
                continue;
            }
            let explained = self.model.deaths().explain(&found.1, found.2, tick);
            assert!(explained, "announced: {found:?}, expected {expected:?}");
        }
        assert_eq!(expected, VecDeque::new(), "events that were not announced");
        self.expired += expired.len() as u64;
        self.compare_expired(expired, tick);
    }

    /// Each key that was announced to have expired is queued once for its database's stream, in the
    /// same order, if it was not flushed.
    fn compare_expired(&mut self, mut announced: Vec<(u32, Vec<u8>)>, tick: u64) {
        let flushed = self.rig.keyspace.expired_stream_stats().flushed;
        let mut queued = Vec::new();
        for (db, key, deadline, fired) in self.rig.keyspace.take_expired() {
            assert!(deadline <= fired && fired <= tick, "{deadline}, {fired}");
            queued.push((db, key.into_vec()));
        }
        let gone = flushed - std::mem::replace(&mut self.flushed, flushed);
        assert_eq!(queued.len() as u64 + gone, announced.len() as u64);
        // Those of a database are in order.
        announced.sort_by_key(|(db, _)| *db);
        queued.sort_by_key(|(db, _)| *db);
        let mut rest = announced.iter();
        let in_order = queued.iter().all(|key| rest.any(|other| other == key));
        assert!(in_order, "queued {queued:?}, announced {announced:?}");
    }

    /// A sleeper must never sleep past a deadline.
    fn check_next_deadline(&self) {
        let (Some(behind), Some(earliest)) = (self.rig.behind(), self.model.next_deadline()) else {
            return;
        };
        let shards = 0..self.rig.keyspace.shards();
        let published = shards
            .map(|shard| self.rig.keyspace.next_deadline(shard))
            .min();
        let published = published.expect("at least one shard");
        assert!(
            i128::from(published) <= earliest + i128::from(behind),
            "published {published}, earliest {earliest} + {behind}"
        );
    }

    /// Every key, its value, its deadline and those of its members.
    fn look_at_everything(&mut self) {
        let here = self.model.db();
        for place in self.model.places() {
            self.select(place.0);
            let key = place.1.clone();
            let end = self.model.end(&place);
            let reply = self.rig.command(&[b"PEXPIRETIME".to_vec(), key.clone()]);
            end.check(&(&place, "PEXPIRETIME"), &reply);
            if let Some(text) = self.model.text_of(&place) {
                let reply = self.rig.command(&[b"GET".to_vec(), key.clone()]);
                text.check(&(&place, "GET"), &reply);
            }
            let plain = !key.is_empty() && key.iter().all(u8::is_ascii_graphic);
            for line in self.model.views(&place).into_iter().filter(|_| plain) {
                self.command(&line);
            }
        }
        self.select(here);
    }

    fn select(&mut self, db: u32) {
        self.rig
            .command(&[b"SELECT".to_vec(), db.to_string().into_bytes()]);
        self.model.select(db);
    }

    /// Everything is compared, then nothing is left.
    fn finish(&mut self) {
        self.expire_all();
        self.settle();
        self.look_at_everything();
        self.rig.check_records();
        self.model.deaths().check_all_heard();
        let (told, keys) = (self.rig.stats(), self.model.places());
        assert_eq!(told.expired, self.expired, "each death is announced once");
        assert_eq!((told.backlog_shards, told.backlog_ms), (0, 0));
        for db in 0..3 {
            self.select(db);
            let here = keys.iter().filter(|(of, _)| *of == db).count();
            let reply = self.rig.command(&[b"DBSIZE".to_vec()]);
            assert_eq!(reply, Reply::Integer(here as i64), "keys of database {db}");
            let expires = told.databases.get(db as usize).map_or(0, |of| of.expires);
            assert_eq!(
                expires,
                self.model.expires(db),
                "deadlines in database {db}"
            );
        }
        while self.rig.leave(0).is_some() {}
        assert_eq!(self.rig.keyspace.waiting(), 0);
        self.rig.command(&[b"FLUSHALL".to_vec()]);
        let (held, shards) = (self.rig.keyspace.used_memory(), self.rig.keyspace.shards());
        assert!(
            held <= UNPUBLISHED_BYTES * shards as u64,
            "{held} bytes without keys"
        );
    }
}

/// Whether it may set a deadline that has passed already.
fn may_kill(line: &str) -> bool {
    let line = line.to_uppercase();
    ["EX", "PX"].iter().any(|word| line.contains(word))
}

fn is_log(line: &str) -> bool {
    line.starts_with("PF")
}

fn is_about_logs(step: &Step) -> bool {
    matches!(step, Step::Line(line) if is_log(line))
}

/// The cursor and the members of a page; so many elements belong to one.
fn page_of(reply: Reply, width: usize) -> (Vec<u8>, Vec<Vec<u8>>) {
    let Reply::Array(parts) = &reply else {
        panic!("a scan answered {reply:?}");
    };
    let [Reply::Bulk(cursor), Reply::Array(members)] = &parts[..] else {
        panic!("a scan answered {reply:?}");
    };
    let names = members.iter().step_by(width).map(|member| match member {
        Reply::Bulk(name) => name.clone(),
        other => panic!("no member: {other:?}"),
    });
    (cursor.clone(), names.collect())
}
