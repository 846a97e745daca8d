//! A command's reply, as a value of Lua.

use mlua::{Lua, Table, Value};
use tidewheel_resp::{Protocol, parse_i64, parse_u64};

use crate::error::raise_reply;
use crate::state::State;

/// Elements that a table gets room for before they are seen.
const ROOM_MAX: usize = 1 << 16;

/// How deeply a command's reply may nest. It is read by a function that calls itself.
const DEPTH_MAX: usize = 64;

/// What a command answered.
pub(crate) enum Answer {
    Value(Value),
    /// An error line without `-`.
    Error(Vec<u8>),
}

/// Reads the one reply that `bytes` are.
pub(crate) fn read(lua: &Lua, state: &State, bytes: &[u8]) -> mlua::Result<Answer> {
    if let Some(line) = bytes.strip_prefix(b"-") {
        let end = line
            .iter()
            .position(|byte| *byte == b'\r')
            .unwrap_or(line.len());
        return Ok(Answer::Error(coded(&line[..end])));
    }
    let mut reader = Reader {
        lua,
        state,
        rest: bytes,
    };
    reader.value(DEPTH_MAX).map(Answer::Value)
}

/// An error line with a code: text of one word has none.
pub(crate) fn coded(line: &[u8]) -> Vec<u8> {
    if line.contains(&b' ') {
        return line.to_vec();
    }
    [b"ERR ", line].concat()
}

struct Reader<'a> {
    lua: &'a Lua,
    state: &'a State,
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn value(&mut self, depth: usize) -> mlua::Result<Value> {
        let depth = depth.checked_sub(1).ok_or_else(malformed)?;
        self.state.step(1)?;
        let line = self.line()?;
        let (&kind, line) = line.split_first().ok_or_else(malformed)?;
        let names = &self.state.names;
        Ok(match kind {
            b':' => match parse_i64(line) {
                Some(number) => Value::Number(number as f64),
                None => return Err(malformed()),
            },
            b'$' if line == b"-1" => self.nothing(),
            b'$' => {
                let text = self.bytes(line)?;
                Value::String(self.lua.create_string(text)?)
            }
            b'*' if line == b"-1" => self.nothing(),
            b'*' | b'>' => Value::Table(self.array(line, depth)?),
            b'+' => self.field(&names.ok, Value::String(self.lua.create_string(line)?))?,
            b'-' => self.field(
                &names.err,
                Value::String(self.lua.create_string(coded(line))?),
            )?,
            b'_' => Value::Nil,
            b'#' => Value::Boolean(line == b"t"),
            b',' => {
                let text = std::str::from_utf8(line).map_err(|_| malformed())?;
                let number = text.parse().map_err(|_| malformed())?;
                self.field(&names.double, Value::Number(number))?
            }
            b'(' => self.field(
                &names.big_number,
                Value::String(self.lua.create_string(line)?),
            )?,
            b'=' => {
                let text = self.bytes(line)?;
                let (format, text) = text.split_at_checked(4).ok_or_else(malformed)?;
                let table = self.lua.create_table_with_capacity(0, 2)?;
                table.raw_set(&names.string, self.lua.create_string(text)?)?;
                table.raw_set(&names.format, self.lua.create_string(&format[..3])?)?;
                self.field(&names.verbatim, Value::Table(table))?
            }
            b'%' => {
                let len = count(line)?;
                let table = self.lua.create_table_with_capacity(0, self.room(len))?;
                for _ in 0..len {
                    let (key, value) = (self.value(depth)?, self.value(depth)?);
                    if !no_key(&key) {
                        table.raw_set(key, value)?;
                    }
                }
                self.field(&names.map, Value::Table(table))?
            }
            b'~' => {
                let len = count(line)?;
                let table = self.lua.create_table_with_capacity(0, self.room(len))?;
                for _ in 0..len {
                    let member = self.value(depth)?;
                    if !no_key(&member) {
                        table.raw_set(member, true)?;
                    }
                }
                self.field(&names.set, Value::Table(table))?
            }
            _ => return Err(malformed()),
        })
    }

    fn array(&mut self, line: &[u8], depth: usize) -> mlua::Result<Table> {
        let len = count(line)?;
        let table = self.lua.create_table_with_capacity(self.room(len), 0)?;
        for i in 1..=len {
            let value = self.value(depth)?;
            table.raw_set(i, value)?;
        }
        Ok(table)
    }

    /// The absence of a value in RESP2.
    fn nothing(&self) -> Value {
        match self.state.protocol.get() {
            Protocol::Resp2 => Value::Boolean(false),
            Protocol::Resp3 => Value::Nil,
        }
    }

    fn field(&self, name: &mlua::LuaString, value: Value) -> mlua::Result<Value> {
        let table = self.lua.create_table_with_capacity(0, 1)?;
        table.raw_set(name, value)?;
        Ok(Value::Table(table))
    }

    /// How many elements to make room for: not more than can follow.
    fn room(&self, len: usize) -> usize {
        len.min(self.rest.len() / 3).min(ROOM_MAX)
    }

    fn line(&mut self) -> mlua::Result<&'a [u8]> {
        let end = self.rest.iter().position(|byte| *byte == b'\r');
        let (line, rest) = end
            .and_then(|end| Some((&self.rest[..end], self.rest.get(end + 2..)?)))
            .ok_or_else(malformed)?;
        self.rest = rest;
        Ok(line)
    }

    fn bytes(&mut self, line: &[u8]) -> mlua::Result<&'a [u8]> {
        let len = count(line)?;
        let (bytes, rest) = self.rest.split_at_checked(len).ok_or_else(malformed)?;
        self.rest = rest.get(2..).ok_or_else(malformed)?;
        Ok(bytes)
    }
}

fn count(line: &[u8]) -> mlua::Result<usize> {
    parse_u64(line)
        .and_then(|len| usize::try_from(len).ok())
        .ok_or_else(malformed)
}

/// Whether no table can have this key.
fn no_key(value: &Value) -> bool {
    match value {
        Value::Nil => true,
        Value::Number(number) => number.is_nan(),
        _ => false,
    }
}

fn malformed() -> mlua::Error {
    raise_reply("ERR malformed reply of a command")
}
