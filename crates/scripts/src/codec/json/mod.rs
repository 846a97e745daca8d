//! `cjson`: JSON, as lua-cjson 2.1 reads and writes it.

use std::rc::Rc;

use mlua::{Lua, MultiValue, Table, Value};

use crate::args::Given;
use crate::sandbox::add;
use crate::state::{DEPTH_MAX, State};

mod decode;
mod encode;

/// What a script chose. Each run begins with the defaults.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    encode_depth: usize,
    decode_depth: usize,
    /// Whether too sparse an array is written as an object.
    sparse_convert: bool,
    /// An array is too sparse if it has fewer than one element in so many. 0: never.
    sparse_ratio: u64,
    /// Indices up to this are never too sparse.
    sparse_safe: u64,
    encode_invalid: Invalid,
    decode_invalid: bool,
    /// Significant digits of numbers.
    precision: usize,
    keep_buffer: bool,
}

/// What becomes of numbers that JSON does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Invalid {
    Refused,
    Written,
    Null,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            encode_depth: DEPTH_MAX,
            decode_depth: DEPTH_MAX,
            sparse_convert: false,
            sparse_ratio: 2,
            sparse_safe: 10,
            encode_invalid: Invalid::Refused,
            decode_invalid: true,
            precision: 14,
            keep_buffer: true,
        }
    }
}

pub(crate) fn table(lua: &Lua, state: &Rc<State>) -> mlua::Result<Table> {
    let table = functions(lua, state)?;
    let settings = Rc::clone(state);
    // Settings belong to the run, so a second instance shares them.
    let new = lua.create_function(move |lua, _: MultiValue| functions(lua, &settings))?;
    table.raw_set("new", new)?;
    Ok(table)
}

fn functions(lua: &Lua, state: &Rc<State>) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    table.raw_set("_NAME", "cjson")?;
    table.raw_set("_VERSION", "2.1.0")?;
    table.raw_set("null", Value::NULL)?;
    add(
        lua,
        state,
        &table,
        "encode",
        |lua, state, args: MultiValue| {
            let given = Given::new(lua, "encode", args);
            let value = only(&given)?;
            let text = encode::text(lua, state, value)?;
            lua.create_string(text)
        },
    )?;
    add(
        lua,
        state,
        &table,
        "decode",
        |lua, state, args: MultiValue| {
            let given = Given::new(lua, "decode", args);
            only(&given)?;
            let text = given.text(0)?;
            decode::value(lua, state, &text.as_bytes())
        },
    )?;
    configuration(lua, state, &table)?;
    Ok(table)
}

fn only<'a>(given: &'a Given<'_>) -> mlua::Result<&'a Value> {
    match (given.len(), given.get(0)) {
        (1, Some(value)) => Ok(value),
        _ => Err(given.bad(0, "expected 1 argument")),
    }
}

/// The functions that set something if they get arguments, and return what is set.
fn configuration(lua: &Lua, state: &Rc<State>, table: &Table) -> mlua::Result<()> {
    add(
        lua,
        state,
        table,
        "encode_max_depth",
        |lua, state, args: MultiValue| {
            let given = Given::new(lua, "encode_max_depth", args);
            let mut settings = state.json.get();
            depth(&given, &mut settings.encode_depth)?;
            state.json.set(settings);
            Ok(settings.encode_depth)
        },
    )?;
    add(
        lua,
        state,
        table,
        "decode_max_depth",
        |lua, state, args: MultiValue| {
            let given = Given::new(lua, "decode_max_depth", args);
            let mut settings = state.json.get();
            depth(&given, &mut settings.decode_depth)?;
            state.json.set(settings);
            Ok(settings.decode_depth)
        },
    )?;
    add(
        lua,
        state,
        table,
        "encode_sparse_array",
        |lua, state, args: MultiValue| {
            let given = Given::new(lua, "encode_sparse_array", args);
            at_most(&given, 3)?;
            let mut settings = state.json.get();
            if let Some(choice) = choice(&given, 0, &["off", "on"])? {
                settings.sparse_convert = choice == 1;
            }
            if let Some(ratio) = within(&given, 1, 0, i64::from(i32::MAX))? {
                settings.sparse_ratio = ratio;
            }
            if let Some(safe) = within(&given, 2, 0, i64::from(i32::MAX))? {
                settings.sparse_safe = safe;
            }
            state.json.set(settings);
            Ok((
                settings.sparse_convert,
                settings.sparse_ratio,
                settings.sparse_safe,
            ))
        },
    )?;
    add(
        lua,
        state,
        table,
        "encode_invalid_numbers",
        |lua, state, args: MultiValue| {
            let given = Given::new(lua, "encode_invalid_numbers", args);
            at_most(&given, 1)?;
            let mut settings = state.json.get();
            if let Some(choice) = choice(&given, 0, &["off", "on", "null"])? {
                settings.encode_invalid =
                    [Invalid::Refused, Invalid::Written, Invalid::Null][choice];
            }
            state.json.set(settings);
            match settings.encode_invalid {
                Invalid::Refused => Ok(Value::Boolean(false)),
                Invalid::Written => Ok(Value::Boolean(true)),
                Invalid::Null => Ok(Value::String(lua.create_string("null")?)),
            }
        },
    )?;
    add(
        lua,
        state,
        table,
        "decode_invalid_numbers",
        |lua, state, args: MultiValue| {
            let given = Given::new(lua, "decode_invalid_numbers", args);
            at_most(&given, 1)?;
            let mut settings = state.json.get();
            if let Some(choice) = choice(&given, 0, &["off", "on"])? {
                settings.decode_invalid = choice == 1;
            }
            state.json.set(settings);
            Ok(settings.decode_invalid)
        },
    )?;
    add(
        lua,
        state,
        table,
        "encode_keep_buffer",
        |lua, state, args: MultiValue| {
            let given = Given::new(lua, "encode_keep_buffer", args);
            at_most(&given, 1)?;
            let mut settings = state.json.get();
            if let Some(choice) = choice(&given, 0, &["off", "on"])? {
                settings.keep_buffer = choice == 1;
            }
            state.json.set(settings);
            Ok(settings.keep_buffer)
        },
    )?;
    add(
        lua,
        state,
        table,
        "encode_number_precision",
        |lua, state, args: MultiValue| {
            let given = Given::new(lua, "encode_number_precision", args);
            at_most(&given, 1)?;
            let mut settings = state.json.get();
            if let Some(precision) = within(&given, 0, 1, 14)? {
                settings.precision = precision as usize;
            }
            state.json.set(settings);
            Ok(settings.precision)
        },
    )
}

fn at_most(given: &Given<'_>, most: usize) -> mlua::Result<()> {
    if given.len() > most {
        return Err(given.bad(most, "found too many arguments"));
    }
    Ok(())
}

fn depth(given: &Given<'_>, depth: &mut usize) -> mlua::Result<()> {
    at_most(given, 1)?;
    if let Some(chosen) = within(given, 0, 1, i64::from(i32::MAX))? {
        // Deeper is never walked, whatever is chosen.
        *depth = (chosen as usize).min(DEPTH_MAX);
    }
    Ok(())
}

fn within(given: &Given<'_>, at: usize, low: i64, high: i64) -> mlua::Result<Option<u64>> {
    if given.is_none_or_nil(at) {
        return Ok(None);
    }
    let number = given.integer(at)?;
    if !(low..=high).contains(&number) {
        return Err(given.bad(at, &format!("expected integer between {low} and {high}")));
    }
    Ok(u64::try_from(number).ok())
}

/// One of some words, or a truth value for the first two.
fn choice(given: &Given<'_>, at: usize, words: &[&str]) -> mlua::Result<Option<usize>> {
    match given.get(at) {
        None | Some(Value::Nil) => Ok(None),
        Some(Value::Boolean(value)) => Ok(Some(usize::from(*value))),
        Some(_) => {
            let text = given.text(at)?;
            let text = text.to_string_lossy();
            match words.iter().position(|word| *word == text) {
                Some(place) => Ok(Some(place)),
                None => Err(given.bad(at, &format!("invalid option '{text}'"))),
            }
        }
    }
}
