//! Strings.

use tidewheel_resp::{Reply, parse_i64};

use super::{
    Answered, Expect, Kind, Model, Unit, bulk, error, integer, invalid_time, number, ok, upper,
    wrong_type,
};
use crate::draw::Draw;

/// The longest string (`proto-max-bulk-len`): few of them fill no memory.
pub(crate) const STRING_MAX: i64 = 1 << 20;

impl Draw<'_> {
    /// A command for strings.
    pub fn text(&mut self) -> String {
        let (k, v) = (self.text_key(), self.value());
        match self.below(32) {
            0..4 => format!("GET {k}"),
            4..9 => {
                let (only, get) = (
                    self.pick(&["", "", "NX", "xx"]),
                    self.pick(&["", "", "GET"]),
                );
                format!("SET {k} {v} {only} {get} {}", self.life("KEEPTTL"))
            }
            9 => format!("GETEX {k}"),
            10 | 11 => format!("GETEX {k} {}", self.life("PERSIST")),
            12 => format!("GETDEL {k}"),
            13 => format!("GETSET {k} {v}"),
            14 => format!("SETEX {k} {} {v}", self.time(Unit::Seconds)),
            15 => format!("PSETEX {k} {} {v}", self.time(Unit::Millis)),
            16 => format!("SETNX {k} {v}"),
            17 => format!("MGET {k} {}", self.few(3, Self::text_key).join(" ")),
            18 => {
                // Each key once: one that is stored dead twice dies twice.
                let mut keys = self.few(3, Self::text_key);
                keys.push(k);
                keys.sort();
                keys.dedup();
                let pairs = keys.iter().map(|key| format!("{key} {}", self.value()));
                let pairs: Vec<_> = pairs.collect();
                let only = self.pick(&["", "", "NX", "xx"]);
                let (count, pairs) = (pairs.len(), pairs.join(" "));
                format!("MSETEX {count} {pairs} {only} {}", self.life("KEEPTTL"))
            }
            19 => {
                let pair = |draw: &mut Self| format!("{} {}", draw.text_key(), draw.value());
                let name = self.pick(&["MSET", "MSET", "MSETNX"]);
                format!("{name} {k} {v} {}", self.few(3, pair).join(" "))
            }
            20 | 21 => format!("APPEND {k} {v}"),
            22 => format!("STRLEN {k}"),
            23 => format!("GETRANGE {k} {} {}", self.place(), self.place()),
            24 => format!("SUBSTR {k} {} {}", self.wide::<8>(), self.place()),
            25 => format!("SETRANGE {k} {} {v}", self.wide::<2>()),
            26 => format!("SETRANGE {k} {} x", self.wide::<8>()),
            27 | 28 => format!("{} {k}", self.pick(&["incr", "Decr"])),
            n => {
                let name = self.pick(&["INCRBY", "DECRBY"]);
                let by = if n == 31 {
                    self.wide::<8>()
                } else {
                    self.near(100)
                };
                format!("{name} {k} {by}")
            }
        }
    }

    fn place(&mut self) -> i64 {
        match self.once_in(4) {
            true => i64::from(self.wide::<2>() as i16),
            false => self.near(30),
        }
    }

    /// What SET and GETEX do with the deadline.
    fn life(&mut self, other: &str) -> String {
        match self.below(8) {
            0..3 => String::new(),
            3 => other.to_owned(),
            _ => {
                let name = self.pick(&["PX", "PX", "EX", "exat", "PXAT"]);
                format!("{name} {}", self.time(Unit::of(&name.to_uppercase())))
            }
        }
    }
}

impl Model {
    pub(super) fn text(&mut self, name: &str, w: &[&[u8]]) -> Answered {
        let told = match name {
            "GET" => self.value(w[1]).map(bulk),
            "SET" => self.set_with(w),
            "GETEX" => self.get_ex(w),
            "GETDEL" => self.value(w[1]).map(|value| {
                self.remove(w[1]);
                bulk(value)
            }),
            "GETSET" => self.value(w[1]).map(|old| {
                self.write(w[1], w[2], None);
                bulk(old)
            }),
            "SETEX" | "PSETEX" => self.set_ex(name, w),
            "SETNX" => Ok(self.write_if_absent(&w[1..])),
            "MGET" => {
                let values = w[1..]
                    .iter()
                    .map(|key| bulk(self.value(key).unwrap_or(None)));
                Ok(Reply::Array(values.collect()))
            }
            "MSET" => {
                self.write_all(&w[1..]);
                Ok(ok())
            }
            "MSETEX" => self.set_all_with(w),
            "MSETNX" => Ok(self.write_if_absent(&w[1..])),
            "STRLEN" => self
                .value(w[1])
                .map(|value| integer(value.map_or(0, |value| value.len()))),
            "GETRANGE" | "SUBSTR" => self.range(w[1], number(w[2]), number(w[3])),
            "APPEND" => self.append(w[1], w[2]),
            "SETRANGE" => self.set_range(w[1], number(w[2]), w[3]),
            "INCR" => self.add(w[1], 1),
            "DECR" => self.add(w[1], -1),
            "INCRBY" => self.add(w[1], number(w[2])),
            "DECRBY" => match number(w[2]).checked_neg() {
                Some(by) => self.add(w[1], by),
                None => Err(error("ERR decrement would overflow")),
            },
            _ => return None,
        };
        Some(told.map(Expect::Reply))
    }

    fn value(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, Reply> {
        match self.entry(key).map(|entry| &entry.kind) {
            None => Ok(None),
            Some(Kind::Text(text)) => Ok(Some(text.clone())),
            Some(_) => Err(wrong_type()),
        }
    }

    fn write(&mut self, key: &[u8], value: &[u8], deadline: Option<i128>) {
        self.put(key, Kind::Text(value.to_vec()), deadline);
        self.note(key, "set");
        if deadline.is_some() {
            self.note(key, "expire");
        }
    }

    fn write_all(&mut self, pairs: &[&[u8]]) {
        for pair in pairs.chunks(2) {
            self.write(pair[0], pair[1], None);
        }
    }

    fn write_if_absent(&mut self, pairs: &[&[u8]]) -> Reply {
        let absent = pairs.iter().step_by(2).all(|key| self.entry(key).is_none());
        if absent {
            self.write_all(pairs);
        }
        integer(absent)
    }

    fn set_all_with(&mut self, w: &[&[u8]]) -> Result<Reply, Reply> {
        let (pairs, options) = w[2..].split_at(2 * number(w[1]) as usize);
        let (mut only, mut keeps, mut new) = (None, false, None);
        let mut options = options.iter();
        while let Some(word) = options.next() {
            match upper(word).as_str() {
                "NX" => only = Some(false),
                "XX" => only = Some(true),
                "KEEPTTL" => keeps = true,
                unit => new = Some((Unit::of(unit), options.next().expect("a time"))),
            }
        }
        let new = match new {
            Some((unit, at)) => Some(self.future("msetex", unit, at)?),
            None => None,
        };
        let mut keys = pairs.iter().step_by(2);
        if only.is_some_and(|present| keys.any(|key| self.entry(key).is_some() != present)) {
            return Ok(integer(0));
        }
        for pair in pairs.chunks(2) {
            let old = self.entry(pair[0]).and_then(|entry| entry.deadline);
            self.write(pair[0], pair[1], new);
            if keeps && let Some(entry) = self.entry(pair[0]) {
                entry.deadline = old;
            }
        }
        Ok(integer(1))
    }

    fn set_with(&mut self, w: &[&[u8]]) -> Result<Reply, Reply> {
        let (key, mut options) = (w[1], w[3..].iter());
        let (mut only, mut get, mut keeps, mut new) = (None, false, false, None);
        while let Some(word) = options.next() {
            match upper(word).as_str() {
                "NX" => only = Some(false),
                "XX" => only = Some(true),
                "GET" => get = true,
                "KEEPTTL" => keeps = true,
                unit => new = Some((Unit::of(unit), options.next().expect("a time"))),
            }
        }
        let new = match new {
            Some((unit, at)) => Some(self.future("set", unit, at)?),
            None => None,
        };
        let old = self.entry(key).map(|entry| entry.deadline);
        let answer = if get { bulk(self.value(key)?) } else { ok() };
        if only.is_some_and(|present| present != old.is_some()) {
            return Ok(if get { answer } else { Reply::Null });
        }
        self.write(key, w[2], new);
        if keeps && let Some(entry) = self.entry(key) {
            entry.deadline = old.flatten();
        }
        Ok(answer)
    }

    fn get_ex(&mut self, w: &[&[u8]]) -> Result<Reply, Reply> {
        let key = w[1];
        let Some(value) = self.value(key)? else {
            return Ok(Reply::Null);
        };
        let new = match w.get(2).map(|word| upper(word)).as_deref() {
            None => return Ok(Reply::Bulk(value)),
            Some("PERSIST") => None,
            Some(unit) => Some(self.future("getex", Unit::of(unit), w[3])?),
        };
        // Redis deletes at once what it is told has died; nobody calls that expired.
        if new.is_some_and(|deadline| deadline <= self.tick) {
            self.remove(key);
        } else if let Some(entry) = self.entry(key) {
            let old = std::mem::replace(&mut entry.deadline, new);
            if new.is_some() {
                self.note(key, "expire");
            } else if old.is_some() {
                self.note(key, "persist");
            }
        }
        Ok(Reply::Bulk(value))
    }

    fn set_ex(&mut self, name: &str, w: &[&[u8]]) -> Result<Reply, Reply> {
        let deadline = self.future(&name.to_lowercase(), Unit::of(name), w[2])?;
        self.write(w[1], w[3], Some(deadline));
        Ok(ok())
    }

    /// The deadline that a number means, which must lie in the future of the epoch.
    fn future(&self, command: &str, unit: Unit, at: &[u8]) -> Result<i128, Reply> {
        let deadline = Some(number(at)).filter(|number| *number > 0);
        let deadline = deadline.and_then(|number| self.wall_deadline(unit, number));
        deadline.ok_or_else(|| invalid_time(command))
    }

    fn append(&mut self, key: &[u8], tail: &[u8]) -> Result<Reply, Reply> {
        let old = self.value(key)?.map_or(0, |old| old.len());
        check_length(old + tail.len())?;
        self.edit(key, "append", |old| old.extend(tail))
    }

    fn range(&mut self, key: &[u8], start: i64, end: i64) -> Result<Reply, Reply> {
        let value = self.value(key)?.unwrap_or_default();
        let len = value.len() as i64;
        if start < 0 && end < 0 && start > end {
            return Ok(Reply::Bulk(Vec::new()));
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
            return Ok(Reply::Bulk(Vec::new()));
        }
        Ok(Reply::Bulk(value[start as usize..=end as usize].to_vec()))
    }

    /// Changes a string, an absent one being empty, and answers its length.
    fn edit(
        &mut self,
        key: &[u8],
        event: &'static str,
        change: impl FnOnce(&mut Vec<u8>),
    ) -> Result<Reply, Reply> {
        self.value(key)?;
        let Kind::Text(text) = self.or_insert(key, Kind::Text(Vec::new())) else {
            unreachable!("it is a string");
        };
        change(text);
        let len = text.len();
        self.note(key, event);
        Ok(integer(len))
    }

    fn set_range(&mut self, key: &[u8], offset: i64, piece: &[u8]) -> Result<Reply, Reply> {
        if offset < 0 {
            return Err(error("ERR offset is out of range"));
        }
        let old = self.value(key)?;
        if piece.is_empty() {
            return Ok(integer(old.map_or(0, |value| value.len())));
        }
        check_length((offset as usize).saturating_add(piece.len()))?;
        let start = offset as usize;
        self.edit(key, "setrange", |value| {
            value.resize(value.len().max(start + piece.len()), 0);
            value[start..start + piece.len()].copy_from_slice(piece);
        })
    }

    fn add(&mut self, key: &[u8], by: i64) -> Result<Reply, Reply> {
        let old = self.value(key)?.map_or(Some(0), |value| parse_i64(&value));
        let old = old.ok_or_else(|| error("ERR value is not an integer or out of range"))?;
        let Some(sum) = old.checked_add(by) else {
            return Err(error("ERR increment or decrement would overflow"));
        };
        self.edit(key, "incrby", |value| *value = sum.to_string().into_bytes())?;
        Ok(Reply::Integer(sum))
    }
}

fn check_length(len: usize) -> Result<(), Reply> {
    match len as u64 > STRING_MAX as u64 {
        true => Err(error(
            "ERR string exceeds maximum allowed size (proto-max-bulk-len)",
        )),
        false => Ok(()),
    }
}
