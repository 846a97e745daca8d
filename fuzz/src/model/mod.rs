//! A naive keyspace: one map, walked whole whenever time passes.

use std::collections::BTreeMap;

use tidewheel_resp::{Reply, parse_i64};

use crate::op::{Call, Db, Deadline, Key, Only, Span, Unit, Value, When};

/// The longest string (`proto-max-bulk-len`).
const STRING_MAX: i64 = 512 << 20;

/// A string and when it dies, in ticks; a deadline beyond the ticks is kept as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    value: Vec<u8>,
    deadline: Option<i128>,
}

/// All databases, one client, and the time.
#[derive(Debug)]
pub struct Model {
    entries: BTreeMap<(u32, Vec<u8>), Entry>,
    db: u32,
    tick: i128,
    /// Whether the tick has begun already: times to live are rounded up to whole ticks.
    begun: bool,
    wall_offset: i128,
    expired: u64,
}

/// What a call must answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Expect {
    /// Exactly this.
    Reply(Reply),
    /// These in any order.
    Keys(Vec<Vec<u8>>),
    /// All of these over one complete iteration.
    Scan(Vec<Vec<u8>>),
    /// One of these, or nothing if there are none.
    OneOf(Vec<Vec<u8>>),
}

impl Model {
    /// An empty keyspace.
    pub fn new() -> Self {
        Self {
            entries: BTreeMap::new(),
            db: 0,
            tick: 0,
            begun: false,
            wall_offset: 0,
            expired: 0,
        }
    }

    /// Sets engine time and wall time, and removes what is dead by then. `begun`: the clock is beyond
    /// the start of the tick.
    pub fn at(&mut self, tick: u64, begun: bool, wall_ms: i64) {
        self.tick = tick.into();
        self.begun = begun;
        self.wall_offset = i128::from(wall_ms) - self.tick;
        self.bury();
    }

    /// Live keys in all databases.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no key lives.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Keys that died of their deadline so far.
    pub fn expired(&self) -> u64 {
        self.expired
    }

    /// The earliest deadline.
    pub fn next_deadline(&self) -> Option<i128> {
        self.entries
            .values()
            .filter_map(|entry| entry.deadline)
            .min()
    }

    /// Runs a call and says what the answer must be.
    pub fn run(&mut self, call: &Call) -> Expect {
        let expect = match call {
            Call::DbSize => integer(self.names().len()),
            Call::Keys => return Expect::Keys(self.names()),
            Call::Scan(_) => return Expect::Scan(self.names()),
            Call::RandomKey => return Expect::OneOf(self.names()),
            Call::FlushDb => {
                let db = self.db;
                self.entries.retain(|(of, _), _| *of != db);
                ok()
            }
            Call::FlushAll => {
                self.entries.clear();
                ok()
            }
            Call::SwapDb(a, b) => self.swap(*a, *b),
            Call::Select(db) => {
                self.db = db.index();
                ok()
            }
            Call::SelectBeyond => error("ERR DB index is out of range"),
            Call::Expire(key, unit, span, conditions) => {
                self.expire(call.expire_name(*unit), *key, *unit, *span, conditions)
            }
            Call::Ttl(key) => self.time_left(*key, |_, left| (left + 500) / 1000),
            Call::PTtl(key) => self.time_left(*key, |_, left| left),
            Call::ExpireTime(key) => self.time_left(*key, |wall, _| (wall + 500) / 1000),
            Call::PExpireTime(key) => self.time_left(*key, |wall, _| wall),
            Call::Persist(key) => {
                let entry = self.find(*key);
                integer(entry.is_some_and(|entry| entry.deadline.take().is_some()))
            }
            Call::Del(key, keys) | Call::Unlink(key, keys) => {
                self.each(*key, keys, |model, key| model.take(key).is_some())
            }
            Call::Exists(key, keys) | Call::Touch(key, keys) => {
                self.each(*key, keys, |model, key| model.find(key).is_some())
            }
            Call::Type(key) => {
                let name = if self.find(*key).is_some() {
                    "string"
                } else {
                    "none"
                };
                Reply::Simple(name.to_owned())
            }
            Call::Rename(from, to) => self.rename(*from, *to, false),
            Call::RenameNx(from, to) => self.rename(*from, *to, true),
            Call::Copy {
                from,
                to,
                db,
                replace,
            } => {
                let db = db.map_or(self.db, Db::index);
                self.copy(*from, *to, db, *replace)
            }
            Call::Move(key, db) => self.relocate(*key, db.index()),
            _ => self.string(call),
        };
        // A deadline that has passed already kills at once.
        self.bury();
        Expect::Reply(expect)
    }

    fn string(&mut self, call: &Call) -> Reply {
        match call {
            Call::Get(key) => self.value(*key),
            Call::Set {
                key,
                value,
                only,
                get,
                deadline,
            } => self.set_with(*key, value, *only, *get, *deadline),
            Call::GetEx(key, deadline) => self.get_ex(*key, *deadline),
            Call::GetDel(key) => bulk(self.take(*key).map(|entry| entry.value)),
            Call::GetSet(key, value) => {
                let old = self.value(*key);
                self.put(*key, value, None);
                old
            }
            Call::SetEx(key, span, value) => {
                self.set_ex("setex", *key, Unit::Seconds, *span, value)
            }
            Call::PSetEx(key, span, value) => {
                self.set_ex("psetex", *key, Unit::Millis, *span, value)
            }
            Call::SetNx(key, value) => {
                let absent = self.find(*key).is_none();
                if absent {
                    self.put(*key, value, None);
                }
                integer(absent)
            }
            Call::MGet(key, keys) => {
                let keys = std::iter::once(key).chain(keys);
                Reply::Array(keys.map(|key| self.value(*key)).collect())
            }
            Call::MSet(key, value, more) => {
                self.put_all(*key, value, more);
                ok()
            }
            Call::MSetNx(key, value, more) => {
                let absent = self.find(*key).is_none()
                    && more.iter().all(|(key, _)| self.find(*key).is_none());
                if absent {
                    self.put_all(*key, value, more);
                }
                integer(absent)
            }
            Call::StrLen(key) => integer(self.find(*key).map_or(0, |entry| entry.value.len())),
            Call::GetRange(key, start, end) => self.range(*key, (*start).into(), (*end).into()),
            Call::SubStr(key, start, end) => self.range(*key, (*start).into(), (*end).into()),
            Call::Append(key, value) => self.edit(*key, |old| old.extend(value.bytes())),
            Call::SetRange(key, offset, value) => {
                self.set_range(*key, (*offset).into(), &value.bytes())
            }
            Call::SetRangeAt(key, offset) => self.set_range(*key, *offset, b"x"),
            Call::Incr(key) => self.add(*key, 1),
            Call::Decr(key) => self.add(*key, -1),
            Call::IncrBy(key, by) => self.add(*key, *by),
            Call::DecrBy(key, by) => match by.checked_neg() {
                Some(by) => self.add(*key, by),
                None => error("ERR decrement would overflow"),
            },
            other => unreachable!("not a string command: {other:?}"),
        }
    }

    fn bury(&mut self) {
        let (tick, before) = (self.tick, self.entries.len());
        self.entries
            .retain(|_, entry| entry.deadline.is_none_or(|deadline| deadline > tick));
        self.expired += (before - self.entries.len()) as u64;
    }

    fn names(&self) -> Vec<Vec<u8>> {
        let here = self.entries.keys().filter(|(db, _)| *db == self.db);
        here.map(|(_, key)| key.clone()).collect()
    }

    fn find(&mut self, key: Key) -> Option<&mut Entry> {
        self.entries.get_mut(&(self.db, key.bytes()))
    }

    fn take(&mut self, key: Key) -> Option<Entry> {
        self.entries.remove(&(self.db, key.bytes()))
    }

    fn put(&mut self, key: Key, value: &Value, deadline: Option<i128>) {
        self.entries.insert(
            (self.db, key.bytes()),
            Entry {
                value: value.bytes(),
                deadline,
            },
        );
    }

    fn put_all(&mut self, key: Key, value: &Value, more: &[(Key, Value)]) {
        self.put(key, value, None);
        for (key, value) in more {
            self.put(*key, value, None);
        }
    }

    fn each(
        &mut self,
        key: Key,
        keys: &[Key],
        mut does: impl FnMut(&mut Self, Key) -> bool,
    ) -> Reply {
        let keys = std::iter::once(&key).chain(keys);
        integer(keys.filter(|key| does(self, **key)).count())
    }

    fn value(&mut self, key: Key) -> Reply {
        bulk(self.find(key).map(|entry| entry.value.clone()))
    }

    fn wall(&self) -> i128 {
        self.tick + self.wall_offset
    }

    /// The wall time of a deadline that must lie in the future of the epoch.
    fn deadline(&self, unit: Unit, span: Span) -> Option<i128> {
        let number = span.number(unit, self.wall() as i64);
        if number <= 0 {
            return None;
        }
        self.wall_deadline(unit, number)
    }

    /// A deadline in ticks, unless its wall time overflows.
    fn wall_deadline(&self, unit: Unit, number: i64) -> Option<i128> {
        let scaled = match unit {
            Unit::Seconds | Unit::AtSeconds => number.checked_mul(1000)?,
            Unit::Millis | Unit::AtMillis => number,
        };
        let wall = match unit {
            Unit::Seconds | Unit::Millis => scaled.checked_add(self.wall() as i64)?,
            Unit::AtSeconds | Unit::AtMillis => scaled,
        };
        let relative = matches!(unit, Unit::Seconds | Unit::Millis);
        let rounded_up = relative && number > 0 && self.begun;
        Some(i128::from(wall) - self.wall_offset + i128::from(rounded_up))
    }

    fn set_with(
        &mut self,
        key: Key,
        value: &Value,
        only: Option<Only>,
        get: bool,
        deadline: Option<Deadline>,
    ) -> Reply {
        let new = match deadline {
            Some(Deadline::In(unit, span)) => match self.deadline(unit, span) {
                None => return invalid_time("set"),
                new => new,
            },
            _ => None,
        };
        let old = self.find(key).cloned();
        let kept = old.as_ref().and_then(|entry| entry.deadline);
        let answer = |done| {
            if get {
                bulk(old.clone().map(|entry| entry.value))
            } else {
                done
            }
        };
        if only.is_some_and(|only| (only == Only::IfPresent) != old.is_some()) {
            return answer(Reply::Null);
        }
        let keeps = matches!(deadline, Some(Deadline::Other));
        let done = answer(ok());
        self.put(key, value, if keeps { kept } else { new });
        done
    }

    fn get_ex(&mut self, key: Key, deadline: Option<Deadline>) -> Reply {
        let value = self.value(key);
        if value == Reply::Null {
            return value;
        }
        let new = match deadline {
            None => return value,
            Some(Deadline::Other) => None,
            Some(Deadline::In(unit, span)) => match self.deadline(unit, span) {
                None => return invalid_time("getex"),
                new => new,
            },
        };
        // Redis deletes at once what it is told has died; nobody calls that expired.
        if new.is_some_and(|deadline| deadline <= self.tick) {
            self.take(key);
        } else if let Some(entry) = self.find(key) {
            entry.deadline = new;
        }
        value
    }

    fn set_ex(&mut self, name: &str, key: Key, unit: Unit, span: Span, value: &Value) -> Reply {
        let Some(deadline) = self.deadline(unit, span) else {
            return invalid_time(name);
        };
        self.put(key, value, Some(deadline));
        ok()
    }

    fn range(&mut self, key: Key, start: i64, end: i64) -> Reply {
        let value = self
            .find(key)
            .map(|entry| entry.value.clone())
            .unwrap_or_default();
        let len = value.len() as i64;
        if start < 0 && end < 0 && start > end {
            return Reply::Bulk(Vec::new());
        }
        let place = |at: i64| {
            if at < 0 {
                at.saturating_add(len).max(0)
            } else {
                at
            }
        };
        let (start, end) = (place(start), place(end).min(len - 1));
        if start > end {
            return Reply::Bulk(Vec::new());
        }
        Reply::Bulk(value[start as usize..=end as usize].to_vec())
    }

    /// Changes a string, an absent one being empty, and answers its length.
    fn edit(&mut self, key: Key, change: impl FnOnce(&mut Vec<u8>)) -> Reply {
        let place = (self.db, key.bytes());
        let empty = Entry {
            value: Vec::new(),
            deadline: None,
        };
        let entry = self.entries.entry(place).or_insert(empty);
        change(&mut entry.value);
        integer(entry.value.len())
    }

    fn set_range(&mut self, key: Key, offset: i64, piece: &[u8]) -> Reply {
        if offset < 0 {
            return error("ERR offset is out of range");
        }
        if piece.is_empty() {
            return integer(self.find(key).map_or(0, |entry| entry.value.len()));
        }
        if offset.saturating_add(piece.len() as i64) > STRING_MAX {
            return error("ERR string exceeds maximum allowed size (proto-max-bulk-len)");
        }
        let start = offset as usize;
        self.edit(key, |value| {
            value.resize(value.len().max(start + piece.len()), 0);
            value[start..start + piece.len()].copy_from_slice(piece);
        })
    }

    fn add(&mut self, key: Key, by: i64) -> Reply {
        let old = self
            .find(key)
            .map_or(Some(0), |entry| parse_i64(&entry.value));
        let Some(old) = old else {
            return error("ERR value is not an integer or out of range");
        };
        let Some(sum) = old.checked_add(by) else {
            return error("ERR increment or decrement would overflow");
        };
        self.edit(key, |value| *value = sum.to_string().into_bytes());
        Reply::Integer(sum)
    }

    fn rename(&mut self, from: Key, to: Key, only_if_absent: bool) -> Reply {
        let done = || if only_if_absent { integer(true) } else { ok() };
        if self.find(from).is_none() {
            return error("ERR no such key");
        }
        if from.bytes() == to.bytes() {
            return if only_if_absent { integer(false) } else { ok() };
        }
        if only_if_absent && self.find(to).is_some() {
            return integer(false);
        }
        if let Some(entry) = self.take(from) {
            self.entries.insert((self.db, to.bytes()), entry);
        }
        done()
    }

    fn copy(&mut self, from: Key, to: Key, db: u32, replace: bool) -> Reply {
        if db == self.db && from.bytes() == to.bytes() {
            return error("ERR source and destination objects are the same");
        }
        let Some(entry) = self.find(from).cloned() else {
            return integer(false);
        };
        let place = (db, to.bytes());
        if self.entries.contains_key(&place) && !replace {
            return integer(false);
        }
        self.entries.insert(place, entry);
        integer(true)
    }

    fn relocate(&mut self, key: Key, db: u32) -> Reply {
        if db == self.db {
            return error("ERR source and destination objects are the same");
        }
        let place = (db, key.bytes());
        if self.entries.contains_key(&place) {
            return integer(false);
        }
        let Some(entry) = self.take(key) else {
            return integer(false);
        };
        self.entries.insert(place, entry);
        integer(true)
    }

    fn swap(&mut self, a: Db, b: Db) -> Reply {
        let (a, b) = (a.index(), b.index());
        let swapped = std::mem::take(&mut self.entries)
            .into_iter()
            .map(|((db, key), entry)| {
                let db = if db == a {
                    b
                } else if db == b {
                    a
                } else {
                    db
                };
                ((db, key), entry)
            });
        self.entries = swapped.collect();
        ok()
    }

    fn expire(
        &mut self,
        name: &str,
        key: Key,
        unit: Unit,
        span: Span,
        conditions: &[When],
    ) -> Reply {
        let has = |when| conditions.contains(&when);
        if has(When::None) && (has(When::Some) || has(When::Greater) || has(When::Less)) {
            return error("ERR NX and XX, GT or LT options at the same time are not compatible");
        }
        if has(When::Greater) && has(When::Less) {
            return error("ERR GT and LT options at the same time are not compatible");
        }
        let number = span.number(unit, self.wall() as i64);
        let Some(new) = self.wall_deadline(unit, number) else {
            return invalid_time(name);
        };
        let tick = self.tick;
        let Some(entry) = self.find(key) else {
            return integer(false);
        };
        let holds = match entry.deadline {
            None => !has(When::Some) && !has(When::Greater),
            Some(old) => {
                !has(When::None)
                    && !(has(When::Greater) && new <= old)
                    && !(has(When::Less) && new >= old)
            }
        };
        if holds && new <= tick {
            self.take(key);
        } else if holds {
            entry.deadline = Some(new);
        }
        integer(holds)
    }

    /// -2 without the key, -1 without a deadline, else what `shown` makes of its wall time and of the
    /// time left.
    fn time_left(&mut self, key: Key, shown: impl Fn(i128, i128) -> i128) -> Reply {
        let (tick, offset) = (self.tick + i128::from(self.begun), self.wall_offset);
        Reply::Integer(match self.find(key).map(|entry| entry.deadline) {
            None => -2,
            Some(None) => -1,
            Some(Some(deadline)) => {
                // Steps of the wall clock may carry it beyond what a client can be told.
                let told = |ms: i128| ms.clamp(0, i64::MAX.into());
                shown(told(deadline + offset), told(deadline - tick)) as i64
            }
        })
    }
}

fn ok() -> Reply {
    Reply::Simple("OK".to_owned())
}

fn error(text: &str) -> Reply {
    Reply::Error(text.to_owned())
}

fn invalid_time(command: &str) -> Reply {
    error(&format!("ERR invalid expire time in '{command}' command"))
}

fn bulk(value: Option<Vec<u8>>) -> Reply {
    value.map_or(Reply::Null, Reply::Bulk)
}

fn integer(value: impl TryInto<i64>) -> Reply {
    Reply::Integer(value.try_into().unwrap_or(i64::MAX))
}
