//! What scripts see: loads the prelude, and gives it the functions that are written in Rust.

use std::rc::Rc;

use mlua::{FromLuaMulti, Function, IntoLuaMulti, Lua, MultiValue, Table, Value};

use crate::error::{PRELUDE, Place, Raise, bad_argument, place};
use crate::state::{Failure, State};
use crate::{api, codec, direct, engine, random, strings};

/// Functions of Lua's own that the prelude takes over as they are.
const BASE: [&str; 12] = [
    "_VERSION",
    "assert",
    "error",
    "getmetatable",
    "ipairs",
    "next",
    "rawequal",
    "rawget",
    "select",
    "tonumber",
    "tostring",
    "gcinfo",
];

/// What of the sandbox runs need.
pub(crate) struct Sandbox {
    /// The table of globals, which gets KEYS and ARGV.
    pub(crate) globals: Table,
    /// The handler of what a run fails with.
    pub(crate) handler: Function,
    /// The table `redis`.
    pub(crate) redis: Table,
    /// The table `redis` of functions.
    pub(crate) of_functions: Table,
    /// Forgets what a run has left: its arguments, and how deep it was when it failed.
    pub(crate) forget: Function,
    /// Chooses the globals, by number: of scripts, of functions, of libraries while they load.
    pub(crate) see: Function,
}

/// Makes the globals. `registered` gets what a library registers.
pub(crate) fn install(lua: &Lua, state: &Rc<State>, registered: &Table) -> mlua::Result<Sandbox> {
    let native = lua.create_table()?;
    let globals = lua.globals();
    let base = lua.create_table()?;
    for name in BASE {
        base.raw_set(name, globals.raw_get::<Value>(name)?)?;
    }
    base.raw_set("unpack", direct::unpack(lua)?)?;
    native.raw_set("base", base)?;
    let os: Table = globals.raw_get("os")?;
    native.raw_set("clock", os.raw_get::<Function>("clock")?)?;
    errors(lua, state, &native)?;
    native.raw_set("loadstring", lua.create_function(loadstring)?)?;
    random::install(lua, state, &native)?;
    strings::install(lua, state, &native)?;
    let redis = api::table(lua, state)?;
    native.raw_set("redis", &redis)?;
    let of_functions = api::of_functions(lua, &redis)?;
    native.raw_set("of_functions", &of_functions)?;
    native.raw_set("of_libraries", api::of_libraries(lua, state, registered)?)?;
    native.raw_set("cjson", codec::json::table(lua, state)?)?;
    native.raw_set("cmsgpack", codec::msgpack::table(lua, state)?)?;
    native.raw_set("struct", codec::structs::table(lua, state)?)?;
    native.raw_set("bit", codec::bits::table(lua)?)?;
    let handler = native.raw_get("traced")?;
    let (env, globals, forget, see): (Table, Table, Function, Function) =
        engine::prelude(lua)?.call(native)?;
    lua.set_globals(env)?;
    Ok(Sandbox {
        globals,
        handler,
        redis,
        of_functions,
        forget,
        see,
    })
}

/// Adds a function that has the state of the engine at hand.
pub(crate) fn add<A, R>(
    lua: &Lua,
    state: &Rc<State>,
    table: &Table,
    name: &str,
    f: impl Fn(&Lua, &State, A) -> mlua::Result<R> + 'static,
) -> mlua::Result<()>
where
    A: FromLuaMulti,
    R: IntoLuaMulti,
{
    let state = Rc::clone(state);
    let function = lua.create_function(move |lua, args| f(lua, &state, args))?;
    table.raw_set(name, function)
}

/// What the prelude asks when something failed.
fn errors(lua: &Lua, state: &Rc<State>, native: &Table) -> mlua::Result<()> {
    // What `pcall` returns beside false: of a table that is an error just its line.
    add(
        lua,
        state,
        native,
        "caught",
        |lua, state, problem: Value| {
            state.alive()?;
            match seen(lua, state, problem)? {
                Value::Table(table) => match table.raw_get(&state.names.err)? {
                    line @ Value::String(_) => Ok(line),
                    _ => Ok(Value::Table(table)),
                },
                other => Ok(other),
            }
        },
    )?;
    // Whether the run is over, and what the script's own handler sees if not.
    add(
        lua,
        state,
        native,
        "handled",
        |lua, state, problem: Value| {
            if state.alive().is_err() {
                return Ok((true, Value::Nil));
            }
            Ok((false, seen(lua, state, problem)?))
        },
    )?;
    // Ends the run again, if it is over.
    add(lua, state, native, "alive", |_, state, ()| {
        Ok(state.alive()?)
    })?;
    // The handler of the run itself: what failed, and where.
    add(
        lua,
        state,
        native,
        "traced",
        |lua, state, problem: Value| {
            let place = place(lua, 1);
            let prefix = place.as_ref().map(Place::prefix).unwrap_or_default();
            let line = match &*state.killed.borrow() {
                Some(line) => line.clone().into_bytes(),
                None => line_of_value(state, &problem, &prefix),
            };
            let place = place.map(|place| {
                let line = place.line.map_or(-1, |line| line as i64);
                format!("{}:{line}", place.source)
            });
            *state.failure.borrow_mut() = Some(Failure { line, place });
            Ok(())
        },
    )
}

/// A problem as a script may see it.
fn seen(lua: &Lua, state: &State, problem: Value) -> mlua::Result<Value> {
    match problem {
        Value::Error(error) => match Raise::within(&error) {
            Some(Raise::Reply(line)) => {
                let table = lua.create_table_with_capacity(0, 2)?;
                table.raw_set(&state.names.err, lua.create_string(line)?)?;
                Ok(Value::Table(table))
            }
            _ => Ok(Value::String(lua.create_string(text_of(&error))?)),
        },
        Value::String(text) => {
            let bytes = text.as_bytes();
            match without_prelude(&bytes) {
                Some(rest) => Ok(Value::String(lua.create_string(rest)?)),
                None => Ok(Value::String(text.clone())),
            }
        }
        other => Ok(other),
    }
}

/// The error line of what a run failed with.
pub(crate) fn line_of_value(state: &State, problem: &Value, prefix: &str) -> Vec<u8> {
    let text = match problem {
        Value::Error(error) => return line_of(error),
        Value::Table(table) => {
            return match table.raw_get(&state.names.err) {
                Ok(Value::String(line)) => line.as_bytes().to_vec(),
                _ => b"ERR unknown error".to_vec(),
            };
        }
        Value::String(text) => {
            let bytes = text.as_bytes();
            match without_prelude(&bytes) {
                Some(rest) => [prefix.as_bytes(), rest].concat(),
                None => bytes.to_vec(),
            }
        }
        Value::Nil => b"nil".to_vec(),
        Value::Boolean(value) => value.to_string().into_bytes(),
        Value::Integer(number) => number.to_string().into_bytes(),
        Value::Number(number) => crate::number::general(*number, 14).into_bytes(),
        other => format!("(error object is a {} value)", other.type_name()).into_bytes(),
    };
    [b"ERR ", &text[..]].concat()
}

/// The error line of an error that Rust has met.
pub(crate) fn line_of(error: &mlua::Error) -> Vec<u8> {
    match Raise::within(error) {
        Some(Raise::Reply(line)) => line.clone(),
        _ => [b"ERR ", &text_of(error)[..]].concat(),
    }
}

/// The text of an error that Rust has met.
pub(crate) fn text_of(error: &mlua::Error) -> Vec<u8> {
    match error {
        mlua::Error::CallbackError { cause, .. } => text_of(cause),
        mlua::Error::MemoryError(_) => b"not enough memory".to_vec(),
        mlua::Error::StackError => b"stack overflow".to_vec(),
        mlua::Error::ExternalError(_) => match Raise::within(error) {
            Some(Raise::Text(text) | Raise::Reply(text)) => text.clone(),
            _ => error.to_string().into_bytes(),
        },
        mlua::Error::RuntimeError(text) => text.clone().into_bytes(),
        other => other.to_string().into_bytes(),
    }
}

/// The text of an error that a function of Lua's own raised when the prelude called it.
fn without_prelude(text: &[u8]) -> Option<&[u8]> {
    let rest = text.strip_prefix(PRELUDE.as_bytes())?.strip_prefix(b":")?;
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    rest[digits..].strip_prefix(b": ")
}

/// `loadstring`: text only, never bytecode, which could do anything.
fn loadstring(lua: &Lua, args: MultiValue) -> mlua::Result<MultiValue> {
    let mut args = args.into_iter();
    let code = match args.next() {
        Some(value) => lua.coerce_string(value)?,
        None => None,
    };
    let Some(code) = code else {
        return Err(bad_argument(lua, 1, "loadstring", "string expected"));
    };
    let name = match args.next() {
        Some(value) => lua.coerce_string(value)?,
        None => None,
    };
    let name = name.unwrap_or_else(|| code.clone());
    // A name must not end early, nor be mistaken for the prelude's.
    let name = String::from_utf8_lossy(&name.as_bytes()).replace('\0', "?");
    let name = match name.strip_prefix(['=', '@']) {
        Some(PRELUDE) => "=?".to_owned(),
        _ => name,
    };
    match engine::load_text(lua, &code.as_bytes(), &name) {
        Ok(function) => function.into_lua_multi(lua),
        Err(error) => {
            let text = match &error {
                mlua::Error::SyntaxError { message, .. } => message.clone().into_bytes(),
                other => text_of(other),
            };
            (Value::Nil, lua.create_string(text)?).into_lua_multi(lua)
        }
    }
}
