//! `struct`: values as the bytes of C's types, as lua-struct 0.2 writes and reads them.

use std::rc::Rc;

use mlua::{Lua, MultiValue, Table, Value};

use crate::args::Given;
use crate::error::raise;
use crate::sandbox::add;
use crate::state::State;

/// The longest integer, in bytes. Bytes beyond the eighth are zeros.
const INTEGER_MAX: usize = 32;

/// What `!` without a number aligns to.
const ALIGN: usize = 8;

/// The most values that one unpacking returns: as many as Lua lets a function return.
const VALUES_MAX: usize = 7_000;

pub(crate) fn table(lua: &Lua, state: &Rc<State>) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    add(
        lua,
        state,
        &table,
        "pack",
        |lua, state, args: MultiValue| {
            let given = Given::new(lua, "pack", args);
            let packed = pack(lua, state, &given)?;
            lua.create_string(packed)
        },
    )?;
    add(
        lua,
        state,
        &table,
        "unpack",
        |lua, state, args: MultiValue| unpack(lua, state, &Given::new(lua, "unpack", args)),
    )?;
    add(
        lua,
        state,
        &table,
        "size",
        |lua, state, args: MultiValue| size(lua, state, &Given::new(lua, "size", args)),
    )?;
    Ok(table)
}

/// A format, read option by option.
struct Format<'a> {
    lua: &'a Lua,
    rest: &'a [u8],
    is_little: bool,
    align: usize,
}

impl<'a> Format<'a> {
    fn new(lua: &'a Lua, text: &'a [u8]) -> Self {
        // Formats end with their first zero.
        let end = text
            .iter()
            .position(|byte| *byte == 0)
            .unwrap_or(text.len());
        Self {
            lua,
            rest: &text[..end],
            is_little: cfg!(target_endian = "little"),
            align: 1,
        }
    }

    /// The next option and the size of its value, 0 if that depends on the value.
    fn next(&mut self) -> mlua::Result<Option<(u8, usize)>> {
        let Some((&option, rest)) = self.rest.split_first() else {
            return Ok(None);
        };
        self.rest = rest;
        let size = match option {
            b'b' | b'B' | b'x' => 1,
            b'h' | b'H' => 2,
            b'l' | b'L' | b'T' | b'd' => 8,
            b'f' => 4,
            b'c' => self.number(1)?,
            b'i' | b'I' => {
                let size = self.number(4)?;
                if size > INTEGER_MAX {
                    let text =
                        format!("integral size {size} is larger than limit of {INTEGER_MAX}");
                    return Err(raise(self.lua, text));
                }
                size
            }
            _ => 0,
        };
        Ok(Some((option, size)))
    }

    fn number(&mut self, otherwise: usize) -> mlua::Result<usize> {
        let mut number = None;
        while let Some((&digit @ b'0'..=b'9', rest)) = self.rest.split_first() {
            let next = number.unwrap_or(0) * 10 + usize::from(digit - b'0');
            if next > i32::MAX as usize {
                return Err(raise(self.lua, "integral size overflow"));
            }
            (number, self.rest) = (Some(next), rest);
        }
        Ok(number.unwrap_or(otherwise))
    }

    /// An option that is about what follows.
    fn control(&mut self, option: u8, given: &Given<'_>) -> mlua::Result<()> {
        match option {
            b' ' => {}
            b'>' => self.is_little = false,
            b'<' => self.is_little = true,
            b'!' => {
                let align = self.number(ALIGN)?;
                if !align.is_power_of_two() {
                    let text = format!("alignment {align} is not a power of 2");
                    return Err(raise(self.lua, text));
                }
                self.align = align;
            }
            other => {
                let other = char::from(other);
                return Err(given.bad(0, &format!("invalid format option '{other}'")));
            }
        }
        Ok(())
    }

    /// Bytes to leave out before a value.
    fn gap(&self, at: usize, option: u8, size: usize) -> usize {
        if size == 0 || option == b'c' {
            return 0;
        }
        let size = size.min(self.align);
        size.wrapping_sub(at & (size - 1)) & (size - 1)
    }
}

fn pack(lua: &Lua, state: &State, given: &Given<'_>) -> mlua::Result<Vec<u8>> {
    let text = given.text(0)?;
    let text = text.as_bytes();
    let mut format = Format::new(lua, &text);
    let mut out = Vec::new();
    let mut at = 1;
    while let Some((option, size)) = format.next()? {
        state.step(1)?;
        state.admit(out.len())?;
        out.resize(out.len() + format.gap(out.len(), option, size), 0);
        match option {
            b'b' | b'B' | b'h' | b'H' | b'l' | b'L' | b'T' | b'i' | b'I' => {
                let number = number(given, at)?;
                let bits = if number < 0.0 {
                    number as i64 as u64
                } else {
                    number as u64
                };
                let mut bytes = [0; INTEGER_MAX];
                bytes[..8].copy_from_slice(&bits.to_le_bytes());
                let bytes = &mut bytes[..size];
                if !format.is_little {
                    bytes.reverse();
                }
                out.extend_from_slice(bytes);
                at += 1;
            }
            b'x' => out.push(0),
            b'f' => {
                let number = number(given, at)? as f32;
                out.extend_from_slice(&match format.is_little {
                    true => number.to_le_bytes(),
                    false => number.to_be_bytes(),
                });
                at += 1;
            }
            b'd' => {
                let number = number(given, at)?;
                out.extend_from_slice(&match format.is_little {
                    true => number.to_le_bytes(),
                    false => number.to_be_bytes(),
                });
                at += 1;
            }
            b'c' | b's' => {
                let text = given.text(at)?;
                let text = text.as_bytes();
                at += 1;
                let len = if size == 0 { text.len() } else { size };
                let Some(part) = text.get(..len) else {
                    return Err(given.bad(at, "string too short"));
                };
                state.admit(out.len().saturating_add(len))?;
                out.extend_from_slice(part);
                if option == b's' {
                    out.push(0);
                }
            }
            other => format.control(other, given)?,
        }
    }
    Ok(out)
}

/// A number; what is missing counts as nil.
fn number(given: &Given<'_>, at: usize) -> mlua::Result<f64> {
    match given.get(at) {
        Some(_) => given.number(at),
        None => Err(given.bad(at, "number expected, got nil")),
    }
}

fn unpack(lua: &Lua, state: &State, given: &Given<'_>) -> mlua::Result<MultiValue> {
    let text = given.text(0)?;
    let text = text.as_bytes();
    let data = given.text(1)?;
    let data = data.as_bytes();
    let offset = given.integer_or(2, 1)?;
    if offset == 0 {
        return Err(given.bad(2, "offset must be 1 or greater"));
    }
    let too_short = || given.bad(1, "data string too short");
    let mut at = usize::try_from(offset - 1).map_err(|_| too_short())?;
    let mut format = Format::new(lua, &text);
    let mut values = MultiValue::new();
    while let Some((option, size)) = format.next()? {
        state.step(1)?;
        if values.len() == VALUES_MAX {
            return Err(raise(lua, "stack overflow (too many results)"));
        }
        at = at.saturating_add(format.gap(at, option, size));
        let end = at.saturating_add(size);
        let bytes = data.get(at..end).ok_or_else(too_short)?;
        at = end;
        match option {
            b'b' | b'B' | b'h' | b'H' | b'l' | b'L' | b'T' | b'i' | b'I' => {
                let number = integer(bytes, format.is_little, option.is_ascii_lowercase());
                values.push_back(Value::Number(number));
            }
            b'x' => {}
            b'f' => {
                let bytes = bytes.try_into().map_err(|_| too_short())?;
                let number = match format.is_little {
                    true => f32::from_le_bytes(bytes),
                    false => f32::from_be_bytes(bytes),
                };
                values.push_back(Value::Number(f64::from(number)));
            }
            b'd' => {
                let bytes = bytes.try_into().map_err(|_| too_short())?;
                let number = match format.is_little {
                    true => f64::from_le_bytes(bytes),
                    false => f64::from_be_bytes(bytes),
                };
                values.push_back(Value::Number(number));
            }
            b'c' if size == 0 => {
                let Some(Value::Number(len)) = values.pop_back() else {
                    return Err(raise(lua, "format 'c0' needs a previous size"));
                };
                // A negative length is an endless one.
                let len = if len < 0.0 { usize::MAX } else { len as usize };
                let end = at.saturating_add(len);
                let bytes = data.get(at..end).ok_or_else(too_short)?;
                values.push_back(Value::String(lua.create_string(bytes)?));
                at = end;
            }
            b'c' => values.push_back(Value::String(lua.create_string(bytes)?)),
            b's' => {
                let rest = data.get(at..).unwrap_or_default();
                let Some(len) = rest.iter().position(|byte| *byte == 0) else {
                    return Err(raise(lua, "unfinished string in data"));
                };
                values.push_back(Value::String(lua.create_string(&rest[..len])?));
                at += len + 1;
            }
            other => format.control(other, given)?,
        }
    }
    values.push_back(Value::Number((at + 1) as f64));
    Ok(values)
}

fn integer(bytes: &[u8], is_little: bool, is_signed: bool) -> f64 {
    let shifted = |bits: u64, byte: &u8| bits << 8 | u64::from(*byte);
    let bits = match is_little {
        true => bytes.iter().rev().fold(0, shifted),
        false => bytes.iter().fold(0, shifted),
    };
    if !is_signed {
        return bits as f64;
    }
    let unused = 64_usize.saturating_sub(8 * bytes.len()) as u32;
    match unused {
        64 => 0.0,
        unused => ((bits << unused) as i64 >> unused) as f64,
    }
}

fn size(lua: &Lua, state: &State, given: &Given<'_>) -> mlua::Result<f64> {
    let text = given.text(0)?;
    let text = text.as_bytes();
    let mut format = Format::new(lua, &text);
    let mut total = 0_usize;
    while let Some((option, size)) = format.next()? {
        state.step(1)?;
        total += format.gap(total, option, size);
        if option == b's' || (option == b'c' && size == 0) {
            let option = if option == b's' { "s" } else { "c0" };
            return Err(given.bad(0, &format!("option '{option}' has no fixed size")));
        }
        if !option.is_ascii_alphanumeric() {
            format.control(option, given)?;
        }
        total = total.saturating_add(size);
    }
    Ok(total as f64)
}
