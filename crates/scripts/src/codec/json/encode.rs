//! Writing JSON.

use mlua::{Lua, Table, Value};

use super::{Invalid, Settings};
use crate::args::kind;
use crate::error::raise;
use crate::number::general;
use crate::state::State;
use crate::walk::Pairs;

/// A value as JSON.
pub(super) fn text(lua: &Lua, state: &State, value: &Value) -> mlua::Result<Vec<u8>> {
    let settings = state.json.get();
    let mut encoder = Encoder {
        lua,
        state,
        settings,
        out: Vec::new(),
        open: Vec::new(),
    };
    encoder.value(value)?;
    while let Some(open) = encoder.open.pop() {
        encoder.more(open)?;
    }
    Ok(encoder.out)
}

struct Encoder<'a> {
    lua: &'a Lua,
    state: &'a State,
    settings: Settings,
    out: Vec<u8>,
    /// Tables that are not at their end, the innermost last.
    open: Vec<Open>,
}

enum Open {
    Array { table: Table, next: u64, len: u64 },
    Object { pairs: Pairs, is_first: bool },
}

/// What a table is written as.
enum Form {
    Array(u64),
    Object,
    /// An object whose values are no tables.
    FlatObject,
}

impl Encoder<'_> {
    /// Writes a value; of a table perhaps just the beginning.
    fn value(&mut self, value: &Value) -> mlua::Result<()> {
        self.state.step(1)?;
        self.state.admit(self.out.len())?;
        match value {
            Value::Nil => self.out.extend_from_slice(b"null"),
            Value::LightUserData(data) if data.0.is_null() => self.out.extend_from_slice(b"null"),
            Value::Boolean(true) => self.out.extend_from_slice(b"true"),
            Value::Boolean(false) => self.out.extend_from_slice(b"false"),
            Value::Integer(number) => self.integer(*number),
            Value::Number(number) => self.number(*number)?,
            Value::String(text) => self.string(&text.as_bytes())?,
            Value::Table(table) => self.table(table)?,
            other => return Err(self.refusal(other, "type not supported")),
        }
        Ok(())
    }

    fn table(&mut self, table: &Table) -> mlua::Result<()> {
        let depth = self.open.len() + 1;
        if depth > self.settings.encode_depth {
            let text = format!("Cannot serialise, excessive nesting ({depth})");
            return Err(raise(self.lua, text));
        }
        match self.form(table)? {
            Form::Array(len) => {
                self.out.push(b'[');
                let table = table.clone();
                self.open.push(Open::Array {
                    table,
                    next: 1,
                    len,
                });
            }
            Form::Object => {
                self.out.push(b'{');
                let pairs = Pairs::new(table.clone());
                self.open.push(Open::Object {
                    pairs,
                    is_first: true,
                });
            }
            Form::FlatObject => {
                self.out.push(b'{');
                let mut is_first = true;
                table.for_each(|key: Value, value: Value| {
                    self.key(&key, is_first)?;
                    is_first = false;
                    self.value(&value)
                })?;
                self.out.push(b'}');
            }
        }
        Ok(())
    }

    /// Goes on with the innermost table, up to the next one within it.
    fn more(&mut self, mut open: Open) -> mlua::Result<()> {
        let depth = self.open.len();
        loop {
            let value = match &mut open {
                Open::Array { next, len, .. } if *next > *len => {
                    self.out.push(b']');
                    return Ok(());
                }
                Open::Array { table, next, .. } => {
                    if *next > 1 {
                        self.out.push(b',');
                    }
                    *next += 1;
                    table.raw_get(*next - 1)?
                }
                Open::Object { pairs, is_first } => {
                    let Some((key, value)) = pairs.next(self.state)? else {
                        self.out.push(b'}');
                        return Ok(());
                    };
                    self.key(&key, *is_first)?;
                    *is_first = false;
                    value
                }
            };
            if let Value::Table(table) = &value {
                self.open.push(open);
                self.state.step(1)?;
                self.table(table)?;
                if self.open.len() > depth + 1 {
                    return Ok(());
                }
                match self.open.pop() {
                    Some(same) => open = same,
                    None => return Ok(()),
                }
            } else {
                self.value(&value)?;
            }
        }
    }

    fn key(&mut self, key: &Value, is_first: bool) -> mlua::Result<()> {
        if !is_first {
            self.out.push(b',');
        }
        match key {
            Value::String(text) => self.string(&text.as_bytes())?,
            Value::Integer(number) => {
                self.out.push(b'"');
                self.integer(*number);
                self.out.push(b'"');
            }
            Value::Number(number) => {
                self.out.push(b'"');
                self.number(*number)?;
                self.out.push(b'"');
            }
            other => {
                return Err(self.refusal(other, "table key must be a number or string"));
            }
        }
        self.out.push(b':');
        Ok(())
    }

    fn form(&self, table: &Table) -> mlua::Result<Form> {
        let (mut max, mut items) = (0_u64, 0_u64);
        let (mut is_object, mut is_flat) = (false, true);
        table.for_each(|key: Value, value: Value| {
            self.state.step(1)?;
            items += 1;
            is_flat &= !value.is_table();
            match key {
                Value::Integer(place @ 1..) if !is_object => max = max.max(place as u64),
                _ => is_object = true,
            }
            Ok(())
        })?;
        let object = if is_flat {
            Form::FlatObject
        } else {
            Form::Object
        };
        if is_object || max == 0 {
            return Ok(object);
        }
        let Settings {
            sparse_ratio,
            sparse_safe,
            sparse_convert,
            ..
        } = self.settings;
        let is_sparse =
            sparse_ratio > 0 && max > items.saturating_mul(sparse_ratio) && max > sparse_safe;
        match (is_sparse, sparse_convert) {
            (false, _) => Ok(Form::Array(max)),
            (true, true) => Ok(object),
            (true, false) => {
                let text = "Cannot serialise table: excessively sparse array";
                Err(raise(self.lua, text))
            }
        }
    }

    fn integer(&mut self, number: i64) {
        if number.unsigned_abs() < 10_u64.pow(self.settings.precision as u32) {
            let mut digits = itoa::Buffer::new();
            self.out.extend_from_slice(digits.format(number).as_bytes());
        } else {
            let text = general(number as f64, self.settings.precision);
            self.out.extend_from_slice(text.as_bytes());
        }
    }

    fn number(&mut self, number: f64) -> mlua::Result<()> {
        if !number.is_finite() {
            match self.settings.encode_invalid {
                Invalid::Refused => {
                    let text = "Cannot serialise number: must not be NaN or Inf";
                    return Err(raise(self.lua, text));
                }
                Invalid::Null => {
                    self.out.extend_from_slice(b"null");
                    return Ok(());
                }
                // The sign of what is no number says nothing.
                Invalid::Written if number.is_nan() => {
                    self.out.extend_from_slice(b"nan");
                    return Ok(());
                }
                Invalid::Written => {}
            }
        }
        let text = general(number, self.settings.precision);
        self.out.extend_from_slice(text.as_bytes());
        Ok(())
    }

    fn string(&mut self, text: &[u8]) -> mlua::Result<()> {
        self.state.step(text.len() / 16)?;
        self.state.admit(self.out.len() + text.len())?;
        self.out.push(b'"');
        let mut rest = text;
        while let Some(at) = rest.iter().position(|byte| is_escaped(*byte)) {
            self.out.extend_from_slice(&rest[..at]);
            match rest[at] {
                b'"' => self.out.extend_from_slice(b"\\\""),
                b'\\' => self.out.extend_from_slice(b"\\\\"),
                b'/' => self.out.extend_from_slice(b"\\/"),
                8 => self.out.extend_from_slice(b"\\b"),
                b'\t' => self.out.extend_from_slice(b"\\t"),
                b'\n' => self.out.extend_from_slice(b"\\n"),
                12 => self.out.extend_from_slice(b"\\f"),
                b'\r' => self.out.extend_from_slice(b"\\r"),
                byte => self
                    .out
                    .extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            }
            rest = &rest[at + 1..];
        }
        self.out.extend_from_slice(rest);
        self.out.push(b'"');
        Ok(())
    }

    fn refusal(&self, value: &Value, why: &str) -> mlua::Error {
        let kind = kind(value);
        // What looks like a library to scripts is refused for its functions.
        let kind = match value {
            Value::UserData(_) => "function",
            _ => kind,
        };
        raise(self.lua, format!("Cannot serialise {kind}: {why}"))
    }
}

fn is_escaped(byte: u8) -> bool {
    matches!(byte, 0..=31 | 127 | b'"' | b'\\' | b'/')
}
