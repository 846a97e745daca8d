//! Strings.

use tidewheel_resp::{Reply, parse_i64};

use super::{Kind, Model, bulk, error, integer, invalid_time, ok, wrong_type};
use crate::op::{Call, Deadline, Key, Only, Span, Unit, Value};

/// The longest string (`proto-max-bulk-len`): few of them fill no memory.
pub const STRING_MAX: i64 = 1 << 20;

impl Model {
    pub(super) fn string(&mut self, call: &Call) -> Reply {
        self.string_of_type(call).unwrap_or_else(|error| error)
    }

    fn string_of_type(&mut self, call: &Call) -> Result<Reply, Reply> {
        Ok(match call {
            Call::Get(key) => bulk(self.value(*key)?),
            Call::Set {
                key,
                value,
                only,
                get,
                deadline,
            } => self.set_with(*key, value, *only, *get, *deadline)?,
            Call::GetEx(key, deadline) => self.get_ex(*key, *deadline)?,
            Call::GetDel(key) => {
                let value = self.value(*key)?;
                self.remove(*key);
                bulk(value)
            }
            Call::GetSet(key, value) => {
                let old = self.value(*key)?;
                self.write(*key, value, None);
                bulk(old)
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
                    self.write(*key, value, None);
                }
                integer(absent)
            }
            Call::MGet(key, keys) => {
                let keys = std::iter::once(key).chain(keys);
                Reply::Array(
                    keys.map(|key| bulk(self.value(*key).unwrap_or(None)))
                        .collect(),
                )
            }
            Call::MSet(key, value, more) => {
                self.write_all(*key, value, more);
                ok()
            }
            Call::MSetNx(key, value, more) => {
                let absent = self.find(*key).is_none()
                    && more.iter().all(|(key, _)| self.find(*key).is_none());
                if absent {
                    self.write_all(*key, value, more);
                }
                integer(absent)
            }
            Call::StrLen(key) => integer(self.value(*key)?.map_or(0, |value| value.len())),
            Call::GetRange(key, start, end) => self.range(*key, (*start).into(), (*end).into())?,
            Call::SubStr(key, start, end) => self.range(*key, *start, *end)?,
            Call::Append(key, value) => {
                let old = self.value(*key)?.map_or(0, |old| old.len());
                check_length(old + value.bytes().len())?;
                self.edit(*key, "append", |old| old.extend(value.bytes()))?
            }
            Call::SetRange(key, offset, value) => {
                self.set_range(*key, (*offset).into(), &value.bytes())?
            }
            Call::SetRangeAt(key, offset) => self.set_range(*key, *offset, b"x")?,
            Call::Incr(key) => self.add(*key, 1)?,
            Call::Decr(key) => self.add(*key, -1)?,
            Call::IncrBy(key, by) => self.add(*key, *by)?,
            Call::DecrBy(key, by) => match by.checked_neg() {
                Some(by) => self.add(*key, by)?,
                None => error("ERR decrement would overflow"),
            },
            other => unreachable!("not a string command: {other:?}"),
        })
    }

    fn value(&mut self, key: Key) -> Result<Option<Vec<u8>>, Reply> {
        match self.find(key).map(|entry| &entry.kind) {
            None => Ok(None),
            Some(Kind::Text(text)) => Ok(Some(text.clone())),
            Some(_) => Err(wrong_type()),
        }
    }

    fn write(&mut self, key: Key, value: &Value, deadline: Option<i128>) {
        self.put(&key.bytes(), Kind::Text(value.bytes()), deadline);
        self.note(&key.bytes(), "set");
    }

    fn write_all(&mut self, key: Key, value: &Value, more: &[(Key, Value)]) {
        self.write(key, value, None);
        for (key, value) in more {
            self.write(*key, value, None);
        }
    }

    fn set_with(
        &mut self,
        key: Key,
        value: &Value,
        only: Option<Only>,
        get: bool,
        deadline: Option<Deadline>,
    ) -> Result<Reply, Reply> {
        let new = match deadline {
            Some(Deadline::In(unit, span)) => match self.deadline(unit, span) {
                None => return Err(invalid_time("set")),
                new => new,
            },
            _ => None,
        };
        let (exists, kept) = match self.find(key) {
            None => (false, None),
            Some(entry) => (true, entry.deadline),
        };
        let old = if get { self.value(key)? } else { None };
        let answer = |done| if get { bulk(old) } else { done };
        if only.is_some_and(|only| (only == Only::IfPresent) != exists) {
            return Ok(answer(Reply::Null));
        }
        let keeps = matches!(deadline, Some(Deadline::Other));
        self.write(key, value, if keeps { kept } else { new });
        if new.is_some() {
            self.note(&key.bytes(), "expire");
        }
        Ok(answer(ok()))
    }

    fn get_ex(&mut self, key: Key, deadline: Option<Deadline>) -> Result<Reply, Reply> {
        let Some(value) = self.value(key)? else {
            return Ok(Reply::Null);
        };
        let new = match deadline {
            None => return Ok(Reply::Bulk(value)),
            Some(Deadline::Other) => None,
            Some(Deadline::In(unit, span)) => match self.deadline(unit, span) {
                None => return Err(invalid_time("getex")),
                new => new,
            },
        };
        // Redis deletes at once what it is told has died; nobody calls that expired.
        if new.is_some_and(|deadline| deadline <= self.tick) {
            self.remove(key);
        } else if let Some(entry) = self.find(key) {
            let old = std::mem::replace(&mut entry.deadline, new);
            if new.is_some() {
                self.note(&key.bytes(), "expire");
            } else if old.is_some() {
                self.note(&key.bytes(), "persist");
            }
        }
        Ok(Reply::Bulk(value))
    }

    fn set_ex(&mut self, name: &str, key: Key, unit: Unit, span: Span, value: &Value) -> Reply {
        let Some(deadline) = self.deadline(unit, span) else {
            return invalid_time(name);
        };
        self.write(key, value, Some(deadline));
        self.note(&key.bytes(), "expire");
        ok()
    }

    fn range(&mut self, key: Key, start: i64, end: i64) -> Result<Reply, Reply> {
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
        key: Key,
        event: &'static str,
        change: impl FnOnce(&mut Vec<u8>),
    ) -> Result<Reply, Reply> {
        self.value(key)?;
        if self.find(key).is_none() {
            self.put(&key.bytes(), Kind::Text(Vec::new()), None);
        }
        let Some(Kind::Text(text)) = self.find(key).map(|entry| &mut entry.kind) else {
            unreachable!("it is a string");
        };
        change(text);
        let len = text.len();
        self.note(&key.bytes(), event);
        Ok(integer(len))
    }

    fn set_range(&mut self, key: Key, offset: i64, piece: &[u8]) -> Result<Reply, Reply> {
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

    fn add(&mut self, key: Key, by: i64) -> Result<Reply, Reply> {
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
