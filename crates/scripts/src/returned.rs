//! What a script returns, as a reply.

use mlua::{Table, Value};
use tidewheel_resp::{Protocol, Writer};

use crate::engine::raw_line;
use crate::state::{DEPTH_MAX, State};
use crate::walk::Pairs;

/// The first number beyond those of 64 bits.
const WHOLE_END: f64 = 9_223_372_036_854_775_808.0;

/// Appends one reply.
pub(crate) fn write(state: &State, value: &Value, out: &mut Writer) -> mlua::Result<()> {
    let left = state.values_max();
    let mut returned = Returned {
        state,
        out,
        open: Vec::new(),
        left,
    };
    returned.value(value)?;
    while let Some(mut open) = returned.open.pop() {
        let (value, more) = match &mut open {
            Open::Array { next, len, .. } if *next > *len => continue,
            Open::Array { table, next, .. } => {
                *next += 1;
                (table.raw_get(*next - 1)?, None)
            }
            Open::Map(pairs) => match pairs.next(state)? {
                Some((key, value)) => (key, Some(value)),
                None => continue,
            },
            Open::Set(pairs) => match pairs.next(state)? {
                Some((member, _)) => (member, None),
                None => continue,
            },
            Open::Value(value) => {
                let value = std::mem::replace(value, Value::Nil);
                returned.value(&value)?;
                continue;
            }
        };
        returned.open.push(open);
        returned.open.extend(more.map(Open::Value));
        returned.value(&value)?;
    }
    Ok(())
}

struct Returned<'a> {
    state: &'a State,
    out: &'a mut Writer,
    /// Tables that are not at their end, the innermost last.
    open: Vec<Open>,
    /// How many values may still be written.
    left: usize,
}

enum Open {
    Array {
        table: Table,
        next: usize,
        len: usize,
    },
    Map(Pairs),
    Set(Pairs),
    /// A map's value, after its key.
    Value(Value),
}

impl Returned<'_> {
    /// Writes a value; of a table just the beginning.
    fn value(&mut self, value: &Value) -> mlua::Result<()> {
        self.state.step(1)?;
        if self.out.is_over() {
            return Ok(());
        }
        // A table that contains itself twice would never end.
        match self.left.checked_sub(1) {
            Some(left) => self.left = left,
            None => return self.state.admit(usize::MAX),
        }
        let is_resp3 = self.state.protocol.get() == Protocol::Resp3;
        match value {
            Value::String(text) => self.out.bulk(&text.as_bytes()),
            Value::Integer(number) => self.out.integer(*number),
            Value::Number(number) => self.out.integer(whole(*number)),
            Value::Boolean(value) if is_resp3 => self.out.boolean(*value),
            Value::Boolean(true) => self.out.integer(1),
            Value::Table(_) if self.open.len() >= DEPTH_MAX => {
                self.out.error("ERR reached lua stack limit");
            }
            Value::Table(table) => self.table(table)?,
            _ => self.out.null(),
        }
        Ok(())
    }

    fn table(&mut self, table: &Table) -> mlua::Result<()> {
        let (state, names) = (self.state, &self.state.names);
        let out = &mut *self.out;
        if let Value::String(line) = table.raw_get(&names.err)? {
            raw_line(out, b'-', trimmed(&line.as_bytes()));
            return Ok(());
        }
        if let Value::String(line) = table.raw_get(&names.ok)? {
            raw_line(out, b'+', &line.as_bytes());
            return Ok(());
        }
        match table.raw_get(&names.double)? {
            Value::Number(number) => {
                out.double(number);
                return Ok(());
            }
            Value::Integer(number) => {
                out.double(number as f64);
                return Ok(());
            }
            _ => {}
        }
        if let Value::Table(map) = table.raw_get(&names.map)? {
            out.map(count(state, &map)?);
            self.open.push(Open::Map(Pairs::new(map)));
            return Ok(());
        }
        if let Value::Table(set) = table.raw_get(&names.set)? {
            out.set(count(state, &set)?);
            self.open.push(Open::Set(Pairs::new(set)));
            return Ok(());
        }
        if let Value::String(digits) = table.raw_get(&names.big_number)? {
            match out.protocol() {
                Protocol::Resp3 => raw_line(out, b'(', &digits.as_bytes()),
                Protocol::Resp2 => {
                    let mut text = digits.as_bytes().to_vec();
                    blank_line_ends(&mut text);
                    out.bulk(&text);
                }
            }
            return Ok(());
        }
        if let Value::Table(verbatim) = table.raw_get(&names.verbatim)? {
            let format = verbatim.raw_get(&names.format)?;
            let text = verbatim.raw_get(&names.string)?;
            if let (Value::String(format), Value::String(text)) = (format, text) {
                let mut three = *b"   ";
                let format = format.as_bytes();
                let len = format.len().min(3);
                three[..len].copy_from_slice(&format[..len]);
                let format = std::str::from_utf8(&three).unwrap_or("txt");
                out.verbatim(format, &text.as_bytes());
                return Ok(());
            }
        }
        let len = elements(state, table)?;
        out.array(len);
        if len > 0 {
            let table = table.clone();
            self.open.push(Open::Array {
                table,
                next: 1,
                len,
            });
        }
        Ok(())
    }
}

/// A line without line ends at its end.
pub(crate) fn trimmed(line: &[u8]) -> &[u8] {
    let is_end = |byte: &u8| matches!(byte, b'\r' | b'\n');
    let end = line.iter().rposition(|byte| !is_end(byte));
    end.map_or(&[], |end| &line[..=end])
}

/// How many elements there are before the first nil.
fn elements(state: &State, table: &Table) -> mlua::Result<usize> {
    // The length may be that of a later nil's place.
    let border = table.raw_len();
    for len in 0..border {
        state.step(1)?;
        if table.raw_get::<Value>(len + 1)?.is_nil() {
            return Ok(len);
        }
    }
    Ok(border)
}

/// How many pairs there are.
fn count(state: &State, table: &Table) -> mlua::Result<usize> {
    let mut len = 0;
    table.for_each(|_: Value, _: Value| {
        len += 1;
        Ok(state.step(1)?)
    })?;
    Ok(len)
}

/// A number as C's conversion gives it: without decimals, and the least one if it does not fit.
pub(crate) fn whole(number: f64) -> i64 {
    if (-WHOLE_END..WHOLE_END).contains(&number) {
        number as i64
    } else {
        i64::MIN
    }
}

fn blank_line_ends(text: &mut [u8]) {
    for byte in text {
        if matches!(byte, b'\r' | b'\n') {
            *byte = b' ';
        }
    }
}
