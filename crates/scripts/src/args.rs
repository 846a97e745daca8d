//! Arguments of functions that are written in Rust, checked as Lua's own functions check theirs.

use mlua::{Lua, LuaString, MultiValue, Value};

use crate::error::bad_argument;

/// The arguments of one call of the function `name`.
pub(crate) struct Given<'a> {
    lua: &'a Lua,
    name: &'static str,
    values: MultiValue,
}

impl<'a> Given<'a> {
    pub(crate) fn new(lua: &'a Lua, name: &'static str, values: MultiValue) -> Self {
        Self { lua, name, values }
    }

    pub(crate) fn len(&self) -> usize {
        self.values.len()
    }

    pub(crate) fn get(&self, at: usize) -> Option<&Value> {
        self.values.get(at)
    }

    pub(crate) fn is_none_or_nil(&self, at: usize) -> bool {
        self.get(at).is_none_or(Value::is_nil)
    }

    /// A text, or a number as one. Places count from 0.
    pub(crate) fn text(&self, at: usize) -> mlua::Result<LuaString> {
        match self.get(at) {
            Some(Value::String(text)) => Ok(text.clone()),
            Some(value @ (Value::Integer(_) | Value::Number(_))) => {
                let text = self.lua.coerce_string(value.clone())?;
                text.ok_or_else(|| self.unexpected(at, "string"))
            }
            _ => Err(self.unexpected(at, "string")),
        }
    }

    /// A number, or a text that is one.
    pub(crate) fn number(&self, at: usize) -> mlua::Result<f64> {
        match self.get(at) {
            Some(Value::Integer(number)) => Ok(*number as f64),
            Some(Value::Number(number)) => Ok(*number),
            Some(value @ Value::String(_)) => {
                let number = self.lua.coerce_number(value.clone())?;
                number.ok_or_else(|| self.unexpected(at, "number"))
            }
            _ => Err(self.unexpected(at, "number")),
        }
    }

    /// A number without its decimals.
    pub(crate) fn integer(&self, at: usize) -> mlua::Result<i64> {
        self.number(at).map(|number| number as i64)
    }

    pub(crate) fn integer_or(&self, at: usize, otherwise: i64) -> mlua::Result<i64> {
        if self.is_none_or_nil(at) {
            return Ok(otherwise);
        }
        self.integer(at)
    }

    /// The error of an argument of another type.
    pub(crate) fn unexpected(&self, at: usize, expected: &str) -> mlua::Error {
        let got = self.get(at).map_or("no value", kind);
        self.bad(at, &format!("{expected} expected, got {got}"))
    }

    /// The error of an argument.
    pub(crate) fn bad(&self, at: usize, why: &str) -> mlua::Error {
        bad_argument(self.lua, at + 1, self.name, why)
    }
}

/// A value's type, as Lua 5.1 calls it.
pub(crate) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Nil => "nil",
        Value::Boolean(_) => "boolean",
        Value::Integer(_) | Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Table(_) => "table",
        Value::Function(_) => "function",
        Value::Thread(_) => "thread",
        _ => "userdata",
    }
}
