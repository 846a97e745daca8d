//! Commands on keys of any type.

use tidewheel_resp::Reply;

use super::{
    Answered, Entry, Expect, Kind, Model, Unit, bulk, error, int, integer, invalid_time, number,
    ok, upper,
};
use crate::draw::Draw;

/// How many databases there are.
const DATABASES: u32 = 16;

impl Draw<'_> {
    /// A command for keys of any type, or for all keys.
    pub fn any(&mut self) -> String {
        let (k, other, db) = (self.any_key(), self.any_key(), self.below(3));
        match self.below(32) {
            0..5 => {
                let name = self.pick(&["DEL", "UNLINK", "EXISTS", "EXISTS", "TOUCH", "TOUCH"]);
                format!("{name} {k} {}", self.few(2, Self::any_key).join(" "))
            }
            5 => format!("TYPE {k}"),
            6 | 7 => format!("RENAME {k} {other}"),
            8 => format!("RENAMENX {k} {other}"),
            9 | 10 => {
                let db = if self.once_in(2) {
                    format!("DB {db}")
                } else {
                    String::new()
                };
                format!("COPY {k} {other} {db} {}", self.pick(&["", "REPLACE"]))
            }
            11 => format!("MOVE {k} {db}"),
            12 => "DBSIZE".to_owned(),
            13 => self
                .pick(&["FLUSHDB", "FLUSHALL", "DBSIZE", "KEYS *", "RANDOMKEY"])
                .to_owned(),
            14 => format!("SWAPDB {db} {}", self.below(3)),
            15 => format!("SELECT {}", [0, 0, db, 16][usize::from(self.below(4))]),
            16..23 => {
                let name = self.pick(&["PEXPIRE", "PEXPIRE", "EXPIRE", "PEXPIREAT", "EXPIREAT"]);
                let when = self.pick(&[
                    "", "", "", "NX", "XX", "gt", "LT", "xx gt", "XX LT", "NX GT", "GT LT",
                ]);
                format!("{name} {k} {} {when}", self.time(Unit::of(name)))
            }
            23..26 => {
                let name = self.pick(&["TTL", "PTTL", "EXPIRETIME", "PEXPIRETIME"]);
                format!("{name} {k}")
            }
            26 | 30 => format!("PERSIST {k}"),
            27 => "KEYS *".to_owned(),
            28 => format!("SCAN 0 COUNT {}", 1 + self.below(255)),
            29 => "RANDOMKEY".to_owned(),
            _ => format!("PEXPIRE {k} {}", self.below(60)),
        }
    }

    /// How long: mostly short, sometimes more than can be computed with.
    pub(crate) fn time(&mut self, unit: Unit) -> String {
        let from = match unit {
            Unit::Seconds | Unit::Millis => "",
            Unit::AtSeconds => "@s",
            Unit::AtMillis => "@",
        };
        let number = match self.below(16) {
            0..9 if matches!(unit, Unit::Seconds | Unit::AtSeconds) => i64::from(self.below(5)) - 1,
            0..9 => i64::from(self.below(150)) - 8,
            9..11 => i64::from(self.wide::<2>() as i16),
            11 | 12 => i64::from(self.wide::<4>() as i32),
            13 => return self.wide::<8>().to_string(),
            _ => {
                let (max, min) = (i64::MAX, i64::MIN);
                let edges = [
                    0,
                    max,
                    min,
                    max / 1000,
                    min / 1000,
                    max / 1000 + 1,
                    min / 1000 - 1,
                ];
                return match self.below(9) {
                    7 => "@max".to_owned(),
                    8 => "@maxs".to_owned(),
                    n => edges[usize::from(n)].to_string(),
                };
            }
        };
        match from {
            "" => number.to_string(),
            from => format!("{from}{number:+}"),
        }
    }
}

impl Model {
    pub(super) fn any(&mut self, name: &str, w: &[&[u8]]) -> Answered {
        let db = |at: usize| number(w[at]) as u32;
        let told = match name {
            "DBSIZE" => Ok(integer(self.names().len())),
            "KEYS" => {
                let names = self.names().into_iter().map(Reply::Bulk);
                return Some(Ok(Expect::Groups(1, names.collect())));
            }
            "SCAN" => return Some(Ok(Expect::Scan(self.names()))),
            "RANDOMKEY" => return Some(Ok(Expect::OneOf(self.names()))),
            "FLUSHDB" => {
                self.touch(&[self.db]);
                let db = self.db;
                self.entries.retain(|(of, _), _| *of != db);
                Ok(ok())
            }
            "FLUSHALL" => {
                (0..DATABASES).for_each(|db| self.touch(&[db]));
                self.entries.clear();
                Ok(ok())
            }
            "SWAPDB" => Ok(self.swap(db(1), db(2))),
            "SELECT" if db(1) >= DATABASES => Err(error("ERR DB index is out of range")),
            "SELECT" => {
                self.db = db(1);
                Ok(ok())
            }
            "EXPIRE" | "PEXPIRE" | "EXPIREAT" | "PEXPIREAT" => self.expire(name, w),
            "TTL" | "PTTL" | "EXPIRETIME" | "PEXPIRETIME" => {
                Ok(self.time_left(w[1], Unit::of(name)))
            }
            "PERSIST" => {
                let entry = self.entry(w[1]);
                let done = entry.is_some_and(|entry| entry.deadline.take().is_some());
                if done {
                    self.note(w[1], "persist");
                }
                Ok(integer(done))
            }
            "DEL" | "UNLINK" => Ok(integer(
                w[1..].iter().filter(|key| self.remove(key)).count(),
            )),
            "EXISTS" | "TOUCH" => {
                let there = w[1..].iter().filter(|key| self.entry(key).is_some());
                Ok(integer(there.count()))
            }
            "TYPE" => {
                let name = self.entry(w[1]).map_or("none", |entry| entry.kind.name());
                Ok(Reply::Simple(name.to_owned()))
            }
            "RENAME" => self.rename(w[1], w[2], false),
            "RENAMENX" => self.rename(w[1], w[2], true),
            "COPY" => {
                let options: Vec<_> = w[3..].iter().map(|word| upper(word)).collect();
                let db = if options.iter().any(|word| word == "DB") {
                    db(4)
                } else {
                    self.db
                };
                self.copy(w[1], w[2], db, options.iter().any(|word| word == "REPLACE"))
            }
            "MOVE" => self.relocate(w[1], db(2)),
            _ => return None,
        };
        Some(told.map(Expect::Reply))
    }

    fn names(&self) -> Vec<Vec<u8>> {
        let here = self.entries.keys().filter(|(db, _)| *db == self.db);
        here.map(|(_, key)| key.clone()).collect()
    }

    /// Removes a key as DEL does. False if there is none.
    pub(super) fn remove(&mut self, key: &[u8]) -> bool {
        let found = self.take(key).is_some();
        if found {
            self.note(key, "del");
        }
        found
    }

    fn take(&mut self, key: &[u8]) -> Option<Entry> {
        self.entries.remove(&(self.db, key.to_vec()))
    }

    /// Puts an entry elsewhere, as another value.
    fn settle(&mut self, db: u32, key: &[u8], entry: Entry) {
        let here = std::mem::replace(&mut self.db, db);
        self.put(key, entry.kind, entry.deadline);
        self.db = here;
    }

    fn rename(&mut self, from: &[u8], to: &[u8], only_if_absent: bool) -> Result<Reply, Reply> {
        let answer = |done| if only_if_absent { integer(done) } else { ok() };
        if self.entry(from).is_none() {
            return Err(error("ERR no such key"));
        }
        if from == to || only_if_absent && self.entry(to).is_some() {
            return Ok(answer(false));
        }
        if let Some(entry) = self.take(from) {
            self.settle(self.db, to, entry);
            self.note(from, "rename_from");
            self.note(to, "rename_to");
        }
        Ok(answer(true))
    }

    fn copy(&mut self, from: &[u8], to: &[u8], db: u32, replace: bool) -> Result<Reply, Reply> {
        if db == self.db && from == to {
            return Err(same_object());
        }
        let Some(entry) = self.entry(from).cloned() else {
            return Ok(integer(false));
        };
        if self.entries.contains_key(&(db, to.to_vec())) && !replace {
            return Ok(integer(false));
        }
        self.settle(db, to, entry);
        self.note_in(db, to, "copy_to");
        Ok(integer(true))
    }

    fn relocate(&mut self, key: &[u8], db: u32) -> Result<Reply, Reply> {
        if db == self.db {
            return Err(same_object());
        }
        if self.entries.contains_key(&(db, key.to_vec())) {
            return Ok(integer(false));
        }
        let Some(entry) = self.take(key) else {
            return Ok(integer(false));
        };
        self.settle(db, key, entry);
        self.note_in(self.db, key, "move_from");
        self.note_in(db, key, "move_to");
        Ok(integer(true))
    }

    /// All keys of some databases change, in each of them.
    fn touch(&mut self, databases: &[u32]) {
        for (_, key) in self.entries.keys().filter(|(db, _)| databases.contains(db)) {
            self.touched
                .extend(databases.iter().map(|db| (*db, key.clone())));
        }
    }

    fn swap(&mut self, a: u32, b: u32) -> Reply {
        if a != b {
            self.touch(&[a, b]);
        }
        let swapped = |db| match db {
            db if db == a => b,
            db if db == b => a,
            db => db,
        };
        let entries = std::mem::take(&mut self.entries).into_iter();
        self.entries = entries
            .map(|((db, key), entry)| ((swapped(db), key), entry))
            .collect();
        ok()
    }

    fn expire(&mut self, name: &str, w: &[&[u8]]) -> Result<Reply, Reply> {
        let conditions: Vec<_> = w[3..].iter().map(|word| upper(word)).collect();
        let conditions: Vec<_> = conditions.iter().map(String::as_str).collect();
        let has = |when| conditions.contains(&when);
        if has("NX") && (has("XX") || has("GT") || has("LT")) {
            return Err(error(
                "ERR NX and XX, GT or LT options at the same time are not compatible",
            ));
        }
        if has("GT") && has("LT") {
            return Err(error(
                "ERR GT and LT options at the same time are not compatible",
            ));
        }
        let Some(new) = self.wall_deadline(Unit::of(name), number(w[2])) else {
            return Err(invalid_time(&name.to_lowercase()));
        };
        let tick = self.tick;
        let Some(entry) = self.entry(w[1]) else {
            return Ok(integer(false));
        };
        let holds = allow(&conditions, entry.deadline, new);
        if holds && new <= tick {
            self.remove(w[1]);
        } else if holds {
            entry.deadline = Some(new);
            self.note(w[1], "expire");
        }
        Ok(integer(holds))
    }

    /// -2 without the key, -1 without a deadline, else what is told of it.
    fn time_left(&mut self, key: &[u8], unit: Unit) -> Reply {
        Reply::Integer(match self.entry(key).map(|entry| entry.deadline) {
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
            Kind::Text(_) => Vec::new(),
            Kind::Hash(_) => vec![format!("HGETALL {key}"), members('H')],
            Kind::List(_) => vec![format!("LRANGE {key} 0 -1")],
            Kind::Set(_) => vec![format!("SMEMBERS {key}"), members('S')],
            Kind::ZSet(_) => vec![format!("ZRANGE {key} 0 -1 WITHSCORES"), members('Z')],
            Kind::Stream(stream) => stream.views(&key),
        }
    }

    /// What GET must answer for a key of any name.
    pub fn text_of(&self, place: &super::Place) -> Option<Expect> {
        match &self.entries.get(place)?.kind {
            Kind::Text(text) => Some(Expect::Reply(bulk(Some(text.clone())))),
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
pub(super) fn allow(conditions: &[&str], old: Option<i128>, new: i128) -> bool {
    let has = |when| conditions.contains(&when);
    match old {
        None => !has("XX") && !has("GT"),
        Some(old) => !(has("NX") || has("GT") && new <= old || has("LT") && new >= old),
    }
}

fn same_object() -> Reply {
    error("ERR source and destination objects are the same")
}
