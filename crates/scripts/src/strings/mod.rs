//! The functions of `string` whose work Lua does not bound: patterns and repetition.
//!
//! Lua's own would run in C for as long as they like, since hooks run between instructions of Lua
//! only. These count their steps and ask the host.

use std::rc::Rc;

use mlua::{Lua, MultiValue, Table, Value};

use crate::args::Given;
use crate::error::{Raise, raise};
use crate::sandbox::add;
use crate::state::State;

mod pattern;

use pattern::{Matched, Matcher, Problem};

/// Bytes that make a text a pattern.
const SPECIAL: &[u8] = b"^$*+?.([%-";

pub(crate) fn install(lua: &Lua, state: &Rc<State>, native: &Table) -> mlua::Result<()> {
    let table = lua.create_table()?;
    add(lua, state, &table, "rep", |lua, state, args: MultiValue| {
        let given = Given::new(lua, "rep", args);
        let (text, times) = (given.text(0)?, given.integer(1)?);
        let text = text.as_bytes();
        // Lua counts in 32 bits.
        let times = usize::try_from(times as i32).unwrap_or(0);
        let bytes = text.len().saturating_mul(times);
        state.admit(bytes)?;
        state.step(bytes / 1024)?;
        match bytes {
            0 => lua.create_string(""),
            _ => lua.create_string(text.repeat(times)),
        }
    })?;
    add(
        lua,
        state,
        &table,
        "find",
        |lua, state, args: MultiValue| find(lua, state, &Given::new(lua, "find", args), true),
    )?;
    add(
        lua,
        state,
        &table,
        "match",
        |lua, state, args: MultiValue| find(lua, state, &Given::new(lua, "match", args), false),
    )?;
    native.raw_set("strings", table)?;
    add(
        lua,
        state,
        native,
        "match_from",
        |lua, state, args: MultiValue| match_from(lua, state, &Given::new(lua, "gmatch", args)),
    )?;
    add(
        lua,
        state,
        native,
        "replaced",
        |lua, state, args: MultiValue| replaced(lua, state, &Given::new(lua, "gsub", args)),
    )
}

/// `find` and `match`.
fn find(lua: &Lua, state: &State, given: &Given<'_>, is_find: bool) -> mlua::Result<MultiValue> {
    let (text, pattern) = (given.text(0)?, given.text(1)?);
    let (text, pattern) = (text.as_bytes(), pattern.as_bytes());
    let from = match given.integer_or(2, 1)? {
        from @ 1.. => usize::try_from(from - 1).unwrap_or(usize::MAX),
        0 => 0,
        back => text
            .len()
            .saturating_sub(usize::try_from(back.unsigned_abs()).unwrap_or(usize::MAX)),
    };
    let from = from.min(text.len());
    let is_plain = match given.get(3) {
        None | Some(Value::Nil | Value::Boolean(false)) => {
            !pattern.iter().any(|byte| SPECIAL.contains(byte))
        }
        Some(_) => true,
    };
    if is_find && is_plain {
        let at = plain(state, &text[from..], &pattern)?;
        return Ok(MultiValue::from_vec(match at {
            Some(at) => vec![place(from + at + 1), place(from + at + pattern.len())],
            None => vec![Value::Nil],
        }));
    }
    let (pattern, anchored) = match pattern.strip_prefix(b"^") {
        Some(pattern) => (pattern, true),
        None => (&pattern[..], false),
    };
    let mut matcher = Matcher::new(state, &text, pattern);
    let Some(found) = matcher
        .find(from, anchored)
        .map_err(|it| problem(lua, it))?
    else {
        return Ok(MultiValue::from_vec(vec![Value::Nil]));
    };
    let mut values = Vec::with_capacity(2 + matcher.count());
    if is_find {
        values.push(place(found.start + 1));
        values.push(place(found.end));
    }
    captures(lua, &matcher, found, !is_find, &mut values)?;
    Ok(MultiValue::from_vec(values))
}

/// The next match from a place on: where it begins and ends, and what it captured. A pattern that
/// begins with `^` matches there only, if the caller says so.
fn match_from(lua: &Lua, state: &State, given: &Given<'_>) -> mlua::Result<MultiValue> {
    let (text, pattern) = (given.text(0)?, given.text(1)?);
    let (text, pattern) = (text.as_bytes(), pattern.as_bytes());
    let from = usize::try_from(given.integer(2)? - 1).unwrap_or(usize::MAX);
    if from > text.len() {
        return Ok(MultiValue::new());
    }
    let minds_anchor = matches!(given.get(3), Some(Value::Boolean(true)));
    let (pattern, anchored) = match pattern.strip_prefix(b"^") {
        Some(pattern) if minds_anchor => (pattern, true),
        _ => (&pattern[..], false),
    };
    let mut matcher = Matcher::new(state, &text, pattern);
    let Some(found) = matcher
        .find(from, anchored)
        .map_err(|it| problem(lua, it))?
    else {
        return Ok(MultiValue::new());
    };
    let mut values = vec![place(found.start + 1), place(found.end)];
    captures(lua, &matcher, found, true, &mut values)?;
    Ok(MultiValue::from_vec(values))
}

/// `gsub` with a text.
fn replaced(lua: &Lua, state: &State, given: &Given<'_>) -> mlua::Result<MultiValue> {
    let (text, pattern, by) = (given.text(0)?, given.text(1)?, given.text(2)?);
    let (text, pattern, by) = (text.as_bytes(), pattern.as_bytes(), by.as_bytes());
    let most = given.integer_or(3, i64::MAX)?;
    let (pattern, anchored) = match pattern.strip_prefix(b"^") {
        Some(pattern) => (pattern, true),
        None => (&pattern[..], false),
    };
    let mut matcher = Matcher::new(state, &text, pattern);
    let (mut out, mut from, mut times) = (Vec::new(), 0, 0);
    while times < most && from <= text.len() {
        let Some(found) = matcher
            .find(from, anchored)
            .map_err(|it| problem(lua, it))?
        else {
            break;
        };
        times += 1;
        out.extend_from_slice(&text[from..found.start]);
        replacement(&matcher, found, &by, &mut out).map_err(|it| problem(lua, it))?;
        state.admit(out.len())?;
        state.step(1 + by.len() / 64)?;
        from = found.end;
        if found.start == found.end {
            // An empty match: the byte behind it is passed over.
            out.extend(text.get(from));
            from += 1;
        }
        if anchored {
            break;
        }
    }
    out.extend_from_slice(text.get(from..).unwrap_or_default());
    state.admit(out.len())?;
    let out = Value::String(lua.create_string(out)?);
    Ok(MultiValue::from_vec(vec![out, Value::Integer(times)]))
}

/// Appends what replaces a match: `%0` to `%9` in it are captures.
fn replacement(
    matcher: &Matcher<'_>,
    found: Matched,
    by: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), Problem> {
    let mut rest = by;
    while let Some(at) = rest.iter().position(|byte| *byte == b'%') {
        out.extend_from_slice(&rest[..at]);
        match rest.get(at + 1) {
            Some(b'0') => out.extend_from_slice(matcher.whole(found)),
            Some(digit @ b'1'..=b'9') => match matcher.capture(usize::from(digit - b'1'), found)? {
                Ok(bytes) => out.extend_from_slice(bytes),
                Err(place) => out.extend_from_slice(place.to_string().as_bytes()),
            },
            Some(other) => out.push(*other),
            None => out.push(0),
        }
        rest = rest.get(at + 2..).unwrap_or_default();
    }
    out.extend_from_slice(rest);
    Ok(())
}

/// Appends the captures; the whole match if there are none and the caller wants it.
fn captures(
    lua: &Lua,
    matcher: &Matcher<'_>,
    found: Matched,
    or_whole: bool,
    values: &mut Vec<Value>,
) -> mlua::Result<()> {
    let count = match matcher.count() {
        0 if or_whole => 1,
        count => count,
    };
    for at in 0..count {
        values.push(
            match matcher.capture(at, found).map_err(|it| problem(lua, it))? {
                Ok(bytes) => Value::String(lua.create_string(bytes)?),
                Err(at) => place(at),
            },
        );
    }
    Ok(())
}

/// Where a text begins in another one.
fn plain(state: &State, text: &[u8], what: &[u8]) -> mlua::Result<Option<usize>> {
    let Some((&first, more)) = what.split_first() else {
        return Ok(Some(0));
    };
    let mut at = 0;
    while let Some(found) = text[at..].iter().position(|byte| *byte == first) {
        state.step(1 + found / 64 + more.len() / 64)?;
        at += found;
        if text[at + 1..].starts_with(more) {
            return Ok(Some(at));
        }
        at += 1;
    }
    Ok(None)
}

fn place(at: usize) -> Value {
    Value::Number(at as f64)
}

fn problem(lua: &Lua, problem: Problem) -> mlua::Error {
    match problem {
        Problem::Text(text) => raise(lua, text),
        Problem::Killed => Raise::Killed.into(),
    }
}
