//! `cmsgpack`: MessagePack, as lua-cmsgpack 0.4 reads and writes it.

use std::rc::Rc;

use mlua::{Lua, MultiValue, Table, Value};

use crate::args::Given;
use crate::error::{raise, raise_reply};
use crate::sandbox::add;
use crate::state::{DEPTH_MAX, State};

/// Tables nested deeper are packed as nil.
const PACK_DEPTH_MAX: usize = 16;

/// The most values that one unpacking returns: as many as Lua lets a function return.
const VALUES_MAX: usize = 7_000;

/// Elements that a table gets room for before they are seen.
const ROOM_MAX: usize = 1 << 16;

pub(crate) fn table(lua: &Lua, state: &Rc<State>) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    table.raw_set("_NAME", "cmsgpack")?;
    table.raw_set("_VERSION", "lua-cmsgpack 0.4.0")?;
    table.raw_set("_DESCRIPTION", "MessagePack for Lua")?;
    add(
        lua,
        state,
        &table,
        "pack",
        |lua, state, args: MultiValue| {
            if args.is_empty() {
                let text = "bad argument #0 to 'pack' (MessagePack pack needs input.)";
                return Err(raise(lua, text));
            }
            let mut packer = Packer {
                state,
                out: Vec::new(),
            };
            for value in &args {
                packer.value(value, 0)?;
            }
            lua.create_string(packer.out)
        },
    )?;
    add(
        lua,
        state,
        &table,
        "unpack",
        |lua, state, args: MultiValue| unpack(&Given::new(lua, "unpack", args), lua, state, 0, 0),
    )?;
    add(
        lua,
        state,
        &table,
        "unpack_one",
        |lua, state, args: MultiValue| {
            let given = Given::new(lua, "unpack_one", args);
            let offset = given.integer_or(1, 0)?;
            unpack(&given, lua, state, 1, offset)
        },
    )?;
    add(
        lua,
        state,
        &table,
        "unpack_limit",
        |lua, state, args: MultiValue| {
            let given = Given::new(lua, "unpack_limit", args);
            let limit = given.integer(1)?;
            let offset = given.integer_or(2, 0)?;
            unpack(&given, lua, state, limit, offset)
        },
    )?;
    Ok(table)
}

struct Packer<'a> {
    state: &'a State,
    out: Vec<u8>,
}

impl Packer<'_> {
    fn value(&mut self, value: &Value, depth: usize) -> mlua::Result<()> {
        self.state.step(1)?;
        self.state.admit(self.out.len())?;
        match value {
            Value::Boolean(false) => self.out.push(0xC2),
            Value::Boolean(true) => self.out.push(0xC3),
            Value::Integer(number) => self.integer(*number),
            Value::Number(number) => self.float(*number),
            Value::String(text) => self.string(&text.as_bytes())?,
            Value::Table(_) if depth == PACK_DEPTH_MAX => self.out.push(0xC0),
            Value::Table(table) => self.table(table, depth + 1)?,
            _ => self.out.push(0xC0),
        }
        Ok(())
    }

    #[allow(clippy::match_overlapping_arm)] // The shortest form comes first.
    fn integer(&mut self, number: i64) {
        let out = &mut self.out;
        match number {
            -32..=127 => out.push(number as u8),
            0..=0xFF => out.extend_from_slice(&[0xCC, number as u8]),
            0..=0xFFFF => put(out, 0xCD, &(number as u16).to_be_bytes()),
            0..=0xFFFF_FFFF => put(out, 0xCE, &(number as u32).to_be_bytes()),
            0.. => put(out, 0xCF, &number.to_be_bytes()),
            -0x80.. => out.extend_from_slice(&[0xD0, number as u8]),
            -0x8000.. => put(out, 0xD1, &(number as i16).to_be_bytes()),
            -0x8000_0000.. => put(out, 0xD2, &(number as i32).to_be_bytes()),
            _ => put(out, 0xD3, &number.to_be_bytes()),
        }
    }

    fn float(&mut self, number: f64) {
        let short = number as f32;
        if f64::from(short) == number {
            put(&mut self.out, 0xCA, &short.to_be_bytes());
        } else {
            put(&mut self.out, 0xCB, &number.to_be_bytes());
        }
    }

    #[allow(clippy::match_overlapping_arm)] // The shortest form comes first.
    fn string(&mut self, text: &[u8]) -> mlua::Result<()> {
        self.state.admit(self.out.len() + text.len())?;
        let out = &mut self.out;
        match text.len() {
            len @ 0..=31 => out.push(0xA0 | len as u8),
            len @ 0..=0xFF => out.extend_from_slice(&[0xD9, len as u8]),
            len @ 0..=0xFFFF => put(out, 0xDA, &(len as u16).to_be_bytes()),
            len => put(out, 0xDB, &(len as u32).to_be_bytes()),
        }
        self.out.extend_from_slice(text);
        Ok(())
    }

    fn table(&mut self, table: &Table, depth: usize) -> mlua::Result<()> {
        let (mut items, mut max, mut is_map) = (0_usize, 0_usize, false);
        table.for_each(|key: Value, _: Value| {
            self.state.step(1)?;
            items += 1;
            match key {
                Value::Integer(place @ 1..) => max = max.max(place as usize),
                _ => is_map = true,
            }
            Ok(())
        })?;
        if is_map || max != items {
            self.head(items, 0x80, 0xDE);
            return table.for_each(|key: Value, value: Value| {
                self.value(&key, depth)?;
                self.value(&value, depth)
            });
        }
        self.head(items, 0x90, 0xDC);
        for i in 1..=items {
            self.value(&table.raw_get(i)?, depth)?;
        }
        Ok(())
    }

    /// The head of a collection; `long` is that of 16 bits of length.
    #[allow(clippy::match_overlapping_arm)] // The shortest form comes first.
    fn head(&mut self, len: usize, short: u8, long: u8) {
        match len {
            0..=15 => self.out.push(short | len as u8),
            0..=0xFFFF => put(&mut self.out, long, &(len as u16).to_be_bytes()),
            _ => put(&mut self.out, long + 1, &(len as u32).to_be_bytes()),
        }
    }
}

fn put(out: &mut Vec<u8>, head: u8, bytes: &[u8]) {
    out.push(head);
    out.extend_from_slice(bytes);
}

/// Reads `limit` values from `offset` on, 0 meaning all; then the place behind them is returned
/// first, -1 at the end.
fn unpack(
    given: &Given<'_>,
    lua: &Lua,
    state: &State,
    limit: i64,
    offset: i64,
) -> mlua::Result<MultiValue> {
    let text = given.text(0)?;
    let text = text.as_bytes();
    let len = text.len();
    if offset < 0 || limit < 0 {
        let text = format!("Invalid request to unpack with offset of {offset} and limit of {len}.");
        return Err(raise(lua, text));
    }
    let Some(rest) = text.get(offset as usize..) else {
        let text = format!("Start offset {offset} greater than input length {len}.");
        return Err(raise(lua, text));
    };
    let all = limit == 0;
    let mut reader = Reader { lua, state, rest };
    let mut values = MultiValue::new();
    while !reader.rest.is_empty() && (all || (values.len() as i64) < limit) {
        if values.len() == VALUES_MAX {
            return Err(raise(lua, "too many results to unpack"));
        }
        let value = reader.value()?;
        values.push_back(value);
    }
    if !all {
        let next = match reader.rest.len() {
            0 => -1,
            left => (len - left) as i64,
        };
        values.push_front(Value::Integer(next));
    }
    Ok(values)
}

struct Reader<'a> {
    lua: &'a Lua,
    state: &'a State,
    rest: &'a [u8],
}

/// A value, or the beginning of one.
enum Head {
    Value(Value),
    Array(usize),
    Map(usize),
}

/// A table that is not at its end.
enum Open {
    Array {
        table: Table,
        len: usize,
        next: usize,
    },
    Map {
        table: Table,
        left: usize,
        key: Option<Value>,
    },
}

impl<'a> Reader<'a> {
    /// Reads a value.
    fn value(&mut self) -> mlua::Result<Value> {
        // The innermost last.
        let mut open: Vec<Open> = Vec::new();
        loop {
            let mut value = match self.head()? {
                Head::Value(value) => value,
                Head::Array(len) => {
                    self.deeper(open.len(), "array")?;
                    let table = self.lua.create_table_with_capacity(self.room(len), 0)?;
                    if len > 0 {
                        open.push(Open::Array {
                            table,
                            len,
                            next: 1,
                        });
                        continue;
                    }
                    Value::Table(table)
                }
                Head::Map(left) => {
                    self.deeper(open.len(), "hash")?;
                    let table = self
                        .lua
                        .create_table_with_capacity(0, self.room(left / 2))?;
                    if left > 0 {
                        open.push(Open::Map {
                            table,
                            left,
                            key: None,
                        });
                        continue;
                    }
                    Value::Table(table)
                }
            };
            // The value is whole. It may be the last one of its table, and that of another.
            loop {
                match open.last_mut() {
                    None => return Ok(value),
                    Some(Open::Array { table, len, next }) => {
                        table.raw_set(*next, value)?;
                        *next += 1;
                        if *next <= *len {
                            break;
                        }
                    }
                    Some(Open::Map { table, left, key }) => {
                        let Some(key) = key.take() else {
                            *key = Some(keyed(value)?);
                            break;
                        };
                        table.raw_set(key, value)?;
                        *left -= 1;
                        if *left > 0 {
                            break;
                        }
                    }
                }
                value = match open.pop() {
                    Some(Open::Array { table, .. } | Open::Map { table, .. }) => {
                        Value::Table(table)
                    }
                    None => Value::Nil,
                };
            }
        }
    }

    fn head(&mut self) -> mlua::Result<Head> {
        self.state.step(1)?;
        let head = self.number::<1>()?[0];
        Ok(Head::Value(match head {
            0x00..=0x7F => Value::Integer(i64::from(head)),
            0x80..=0x8F => return Ok(Head::Map(usize::from(head & 15))),
            0x90..=0x9F => return Ok(Head::Array(usize::from(head & 15))),
            0xA0..=0xBF => self.string(usize::from(head & 31))?,
            0xC0 => Value::Nil,
            0xC2 => Value::Boolean(false),
            0xC3 => Value::Boolean(true),
            0xCA => Value::Number(f64::from(f32::from_be_bytes(self.number()?))),
            0xCB => Value::Number(f64::from_be_bytes(self.number()?)),
            0xCC => Value::Integer(i64::from(self.number::<1>()?[0])),
            0xCD => Value::Integer(i64::from(u16::from_be_bytes(self.number()?))),
            0xCE => Value::Integer(i64::from(u32::from_be_bytes(self.number()?))),
            0xCF | 0xD3 => Value::Number(i64::from_be_bytes(self.number()?) as f64),
            0xD0 => Value::Integer(i64::from(i8::from_be_bytes(self.number()?))),
            0xD1 => Value::Integer(i64::from(i16::from_be_bytes(self.number()?))),
            0xD2 => Value::Integer(i64::from(i32::from_be_bytes(self.number()?))),
            0xD9 => {
                let len = usize::from(self.number::<1>()?[0]);
                self.string(len)?
            }
            0xDA => {
                let len = self.short_len()?;
                self.string(len)?
            }
            0xDB => {
                let len = self.long_len()?;
                self.string(len)?
            }
            0xDC => return Ok(Head::Array(self.short_len()?)),
            0xDD => return Ok(Head::Array(self.long_len()?)),
            0xDE => return Ok(Head::Map(self.short_len()?)),
            0xDF => return Ok(Head::Map(self.long_len()?)),
            0xE0..=0xFF => Value::Integer(i64::from(head as i8)),
            _ => return Err(raise(self.lua, "Bad data format in input.")),
        }))
    }

    fn deeper(&self, depth: usize, what: &str) -> mlua::Result<()> {
        if depth < DEPTH_MAX {
            return Ok(());
        }
        let text = format!("stack overflow (in function mp_decode_to_lua_{what})");
        Err(raise(self.lua, text))
    }

    /// How many elements to make room for: not more than can follow.
    fn room(&self, len: usize) -> usize {
        len.min(self.rest.len()).min(ROOM_MAX)
    }

    fn string(&mut self, len: usize) -> mlua::Result<Value> {
        let bytes = self.bytes(len)?;
        Ok(Value::String(self.lua.create_string(bytes)?))
    }

    fn short_len(&mut self) -> mlua::Result<usize> {
        Ok(usize::from(u16::from_be_bytes(self.number()?)))
    }

    fn long_len(&mut self) -> mlua::Result<usize> {
        Ok(u32::from_be_bytes(self.number()?) as usize)
    }

    fn number<const N: usize>(&mut self) -> mlua::Result<[u8; N]> {
        let bytes = self.bytes(N)?;
        bytes.try_into().map_err(|_| self.missing())
    }

    fn bytes(&mut self, len: usize) -> mlua::Result<&'a [u8]> {
        let parts = self.rest.split_at_checked(len);
        let (bytes, rest) = parts.ok_or_else(|| self.missing())?;
        self.rest = rest;
        Ok(bytes)
    }

    fn missing(&self) -> mlua::Error {
        raise(self.lua, "Missing bytes in input.")
    }
}

/// A value that can be a key.
fn keyed(value: Value) -> mlua::Result<Value> {
    match value {
        Value::Nil => Err(raise_reply("ERR table index is nil")),
        Value::Number(number) if number.is_nan() => Err(raise_reply("ERR table index is NaN")),
        other => Ok(other),
    }
}
