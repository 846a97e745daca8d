//! Commands on keys of any type.

use super::{Entry, Expect, Model, bulk, error, int, integer, invalid_time, ok};
use crate::op::{Call, Db, Key, Span, Unit, When};
use tidewheel_resp::Reply;

impl Model {
    /// Runs a call and says what the answer must be.
    pub fn run(&mut self, call: &Call) -> Expect {
        let expect = match call {
            Call::DbSize => integer(self.names().len()),
            Call::Keys => {
                let names = self.names().into_iter().map(Reply::Bulk);
                return Expect::Groups(1, names.collect());
            }
            Call::Scan(_) => return Expect::Scan(self.names()),
            Call::RandomKey => return Expect::OneOf(self.names()),
            Call::FlushDb => {
                self.touch(&[self.db]);
                let db = self.db;
                self.entries.retain(|(of, _), _| *of != db);
                ok()
            }
            Call::FlushAll => {
                self.touch(&[0, 1, 2]);
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
                self.expire(call.expire_name(*unit), key.0, *unit, *span, conditions)
            }
            Call::Ttl(key) => self.time_left(key.0, Unit::Seconds),
            Call::PTtl(key) => self.time_left(key.0, Unit::Millis),
            Call::ExpireTime(key) => self.time_left(key.0, Unit::AtSeconds),
            Call::PExpireTime(key) => self.time_left(key.0, Unit::AtMillis),
            Call::Persist(key) => {
                let entry = self.find(key.0);
                let done = entry.is_some_and(|entry| entry.deadline.take().is_some());
                if done {
                    self.note(&key.0.bytes(), "persist");
                }
                integer(done)
            }
            Call::Del(key, keys) | Call::Unlink(key, keys) => {
                let all = std::iter::once(key).chain(keys);
                integer(all.filter(|key| self.remove(key.0)).count())
            }
            Call::Exists(key, keys) | Call::Touch(key, keys) => {
                let all = std::iter::once(key).chain(keys);
                integer(all.filter(|key| self.find(key.0).is_some()).count())
            }
            Call::Type(key) => {
                let name = self.find(key.0).map_or("none", |entry| entry.kind.name());
                Reply::Simple(name.to_owned())
            }
            Call::Rename(from, to) => self.rename(from.0, to.0, false),
            Call::RenameNx(from, to) => self.rename(from.0, to.0, true),
            Call::Copy {
                from,
                to,
                db,
                replace,
            } => {
                let db = db.map_or(self.db, Db::index);
                self.copy(from.0, to.0, db, *replace)
            }
            Call::Move(key, db) => self.relocate(key.0, db.index()),
            _ => self.string(call),
        };
        // A deadline that has passed already kills at once.
        self.bury();
        Expect::Reply(expect)
    }

    fn names(&self) -> Vec<Vec<u8>> {
        let here = self.entries.keys().filter(|(db, _)| *db == self.db);
        here.map(|(_, key)| key.clone()).collect()
    }

    pub(super) fn find(&mut self, key: Key) -> Option<&mut Entry> {
        self.entry(&key.bytes())
    }

    pub(super) fn take(&mut self, key: Key) -> Option<Entry> {
        self.entries.remove(&(self.db, key.bytes()))
    }

    /// Removes a key as DEL does. False if there is none.
    pub(super) fn remove(&mut self, key: Key) -> bool {
        let found = self.take(key).is_some();
        if found {
            self.note(&key.bytes(), "del");
        }
        found
    }

    /// Puts an entry elsewhere, as another value.
    fn settle(&mut self, db: u32, key: Key, entry: Entry) {
        let here = std::mem::replace(&mut self.db, db);
        self.put(&key.bytes(), entry.kind, entry.deadline);
        self.db = here;
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
            self.settle(self.db, to, entry);
            self.note(&from.bytes(), "rename_from");
            self.note(&to.bytes(), "rename_to");
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
        if self.entries.contains_key(&(db, to.bytes())) && !replace {
            return integer(false);
        }
        self.settle(db, to, entry);
        self.note_in(db, &to.bytes(), "copy_to");
        integer(true)
    }

    fn relocate(&mut self, key: Key, db: u32) -> Reply {
        if db == self.db {
            return error("ERR source and destination objects are the same");
        }
        if self.entries.contains_key(&(db, key.bytes())) {
            return integer(false);
        }
        let Some(entry) = self.take(key) else {
            return integer(false);
        };
        self.settle(db, key, entry);
        self.note_in(self.db, &key.bytes(), "move_from");
        self.note_in(db, &key.bytes(), "move_to");
        integer(true)
    }

    /// All keys of some databases change, in each of them.
    fn touch(&mut self, databases: &[u32]) {
        for (_, key) in self.entries.keys().filter(|(db, _)| databases.contains(db)) {
            self.touched
                .extend(databases.iter().map(|db| (*db, key.clone())));
        }
    }

    fn swap(&mut self, a: Db, b: Db) -> Reply {
        let (a, b) = (a.index(), b.index());
        if a != b {
            self.touch(&[a, b]);
        }
        let swapped = std::mem::take(&mut self.entries)
            .into_iter()
            .map(|((db, key), entry)| {
                let db = match db {
                    db if db == a => b,
                    db if db == b => a,
                    db => db,
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
        let holds = allow(conditions, entry.deadline, new);
        if holds && new <= tick {
            self.remove(key);
        } else if holds {
            entry.deadline = Some(new);
            self.note(&key.bytes(), "expire");
        }
        integer(holds)
    }

    /// -2 without the key, -1 without a deadline, else what is told of it.
    fn time_left(&mut self, key: Key, unit: Unit) -> Reply {
        Reply::Integer(match self.find(key).map(|entry| entry.deadline) {
            None => -2,
            Some(None) => -1,
            Some(Some(deadline)) => self.told(deadline, unit),
        })
    }

    /// Keys of a database that have a deadline of their own.
    pub fn expires(&self, db: u32) -> u64 {
        let here = self.entries.iter().filter(|((of, _), _)| *of == db);
        here.filter(|(_, entry)| entry.deadline.is_some()).count() as u64
    }

    /// The reads that show all of a key, in words.
    pub fn views(&self, place: &super::Place) -> Vec<String> {
        let Some(entry) = self.entries.get(place) else {
            return Vec::new();
        };
        let key = String::from_utf8_lossy(&place.1);
        let members = |letter| {
            let names = entry.kind.names().into_iter();
            let names: Vec<_> = names
                .map(|name| String::from_utf8_lossy(&name).into_owned())
                .collect();
            format!(
                "{letter}PEXPIRETIME {key} FIELDS {} {}",
                names.len(),
                names.join(" ")
            )
        };
        match &entry.kind {
            super::Kind::Text(_) => Vec::new(),
            super::Kind::Hash(_) => vec![format!("HGETALL {key}"), members('H')],
            super::Kind::List(_) => vec![format!("LRANGE {key} 0 -1")],
            super::Kind::Set(_) => vec![format!("SMEMBERS {key}"), members('S')],
            super::Kind::ZSet(_) => vec![format!("ZRANGE {key} 0 -1 WITHSCORES"), members('Z')],
        }
    }

    /// What GET must answer for a key of any name.
    pub fn text(&self, place: &super::Place) -> Option<Expect> {
        match &self.entries.get(place)?.kind {
            super::Kind::Text(text) => Some(Expect::Reply(bulk(Some(text.clone())))),
            _ => None,
        }
    }

    /// What PEXPIRETIME must answer for a key of any name.
    pub fn end(&self, place: &super::Place) -> Expect {
        let end = self.entries.get(place).map(|entry| entry.deadline);
        int(end.map_or(-2, |end| {
            end.map_or(-1, |end| self.told(end, Unit::AtMillis))
        }))
    }
}

/// Whether a deadline may take the place of another.
pub(super) fn allow(conditions: &[When], old: Option<i128>, new: i128) -> bool {
    let has = |when| conditions.contains(&when);
    match old {
        None => !has(When::Some) && !has(When::Greater),
        Some(old) => {
            let excluded = has(When::None)
                || has(When::Greater) && new <= old
                || has(When::Less) && new >= old;
            !excluded
        }
    }
}
