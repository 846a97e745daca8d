//! The table `redis`, but for what runs commands.

use std::rc::Rc;

use mlua::{Lua, MultiValue, Table, Value};
use tidewheel_resp::Protocol;

use crate::args::Given;
use crate::error::raise_reply;
use crate::sandbox::add;
use crate::state::State;
use crate::{Sha, host, library};

/// The version whose scripts run here, as `redis.REDIS_VERSION` says it.
const VERSION: (u32, u32, u32) = (8, 2, 3);

const LEVELS: [(&str, i64); 4] = [
    ("LOG_DEBUG", 0),
    ("LOG_VERBOSE", 1),
    ("LOG_NOTICE", 2),
    ("LOG_WARNING", 3),
];

const REPLICATION: [(&str, i64); 5] = [
    ("REPL_NONE", 0),
    ("REPL_AOF", 1),
    ("REPL_SLAVE", 2),
    ("REPL_REPLICA", 2),
    ("REPL_ALL", 3),
];

/// The globals of scripts.
pub(crate) fn table(lua: &Lua, state: &Rc<State>) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    general(lua, state, &table)?;
    for (name, value) in REPLICATION {
        table.raw_set(name, value)?;
    }
    let (major, minor, patch) = VERSION;
    table.raw_set("SERVER_NAME", "redis")?;
    table.raw_set("SERVER_VERSION", format!("{major}.{minor}.{patch}"))?;
    table.raw_set("SERVER_VERSION_NUM", major << 16 | minor << 8 | patch)?;

    replies(lua, state, &table)?;
    settings(lua, state, &table)?;
    Ok(table)
}

/// The globals of functions, but for those that `Direct` adds to the globals of scripts.
pub(crate) fn of_functions(lua: &Lua, redis: &Table) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    redis.for_each(|name: String, value: Value| match name.as_str() {
        "breakpoint" | "debug" | "replicate_commands" => Ok(()),
        _ => table.raw_set(name, value),
    })?;
    Ok(table)
}

/// What the code of a library sees. `registered` gets the functions that it registers.
pub(crate) fn of_libraries(
    lua: &Lua,
    state: &Rc<State>,
    registered: &Table,
) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    general(lua, state, &table)?;
    let registered = registered.clone();
    add(
        lua,
        state,
        &table,
        "register_function",
        move |_, state, args| library::register(state, &registered, &args),
    )?;
    Ok(table)
}

/// The globals of all.
fn general(lua: &Lua, state: &Rc<State>, table: &Table) -> mlua::Result<()> {
    for (name, value) in LEVELS {
        table.raw_set(name, value)?;
    }
    let (major, minor, patch) = VERSION;
    table.raw_set("REDIS_VERSION", format!("{major}.{minor}.{patch}"))?;
    table.raw_set("REDIS_VERSION_NUM", major << 16 | minor << 8 | patch)?;
    log(lua, state, table)
}

/// What makes values.
fn replies(lua: &Lua, state: &Rc<State>, table: &Table) -> mlua::Result<()> {
    add(
        lua,
        state,
        table,
        "error_reply",
        |lua, state, args: MultiValue| {
            let Some(text) = only_text(&args) else {
                return error_table(lua, state, b"ERR wrong number or type of arguments");
            };
            let text = text.as_bytes();
            let mut line = match text.strip_prefix(b"-") {
                Some(line) => coded(line),
                None => coded(&text),
            };
            let is_end = |byte: &u8| matches!(byte, b'\r' | b'\n');
            let end = line
                .iter()
                .rposition(|byte| !is_end(byte))
                .map_or(0, |at| at + 1);
            line.truncate(end);
            for byte in &mut line {
                if is_end(byte) {
                    *byte = b' ';
                }
            }
            error_table(lua, state, &line)
        },
    )?;
    add(
        lua,
        state,
        table,
        "status_reply",
        |lua, state, args: MultiValue| {
            let Some(text) = only_text(&args) else {
                return error_table(lua, state, b"ERR wrong number or type of arguments");
            };
            let table = lua.create_table_with_capacity(0, 1)?;
            table.raw_set(&state.names.ok, text)?;
            Ok(table)
        },
    )?;
    add(lua, state, table, "sha1hex", |lua, _, args: MultiValue| {
        if args.len() != 1 {
            return Err(raise_reply("ERR wrong number of arguments"));
        }
        let given = Given::new(lua, "sha1hex", args);
        // What is no text counts as an empty one.
        let sha = match given.text(0) {
            Ok(text) => Sha::of(&text.as_bytes()),
            Err(_) => Sha::of(b""),
        };
        lua.create_string(sha.as_bytes())
    })
}

fn log(lua: &Lua, state: &Rc<State>, table: &Table) -> mlua::Result<()> {
    add(lua, state, table, "log", |lua, state, args: MultiValue| {
        if args.len() < 2 {
            return Err(raise_reply(
                "ERR redis.log() requires two arguments or more.",
            ));
        }
        let level = match args.front() {
            Some(Value::Integer(level)) => *level,
            Some(Value::Number(level)) => *level as i64,
            _ => {
                return Err(raise_reply(
                    "ERR First argument must be a number (log level).",
                ));
            }
        };
        if !(0..=3).contains(&level) {
            return Err(raise_reply("ERR Invalid log level."));
        }
        let mut text = Vec::new();
        for (i, value) in args.iter().skip(1).enumerate() {
            let Some(part) = lua.coerce_string(value.clone()).ok().flatten() else {
                continue;
            };
            if i > 0 {
                text.push(b' ');
            }
            state.admit(text.len() + part.as_bytes().len())?;
            text.extend_from_slice(&part.as_bytes());
        }
        host::with(|host| host.log(level, &text));
        Ok(())
    })
}

/// What changes how the run goes on.
fn settings(lua: &Lua, state: &Rc<State>, table: &Table) -> mlua::Result<()> {
    add(
        lua,
        state,
        table,
        "setresp",
        |lua, state, args: MultiValue| {
            if args.len() != 1 {
                return Err(raise_reply("ERR redis.setresp() requires one argument."));
            }
            let version = lua.coerce_integer(args[0].clone())?;
            let protocol = match version {
                Some(2) => Protocol::Resp2,
                Some(3) => Protocol::Resp3,
                _ => return Err(raise_reply("ERR RESP version must be 2 or 3.")),
            };
            state.protocol.set(protocol);
            Ok(())
        },
    )?;
    add(lua, state, table, "set_repl", |_, _, args: MultiValue| {
        if args.len() != 1 {
            return Err(raise_reply("ERR redis.set_repl() requires one argument."));
        }
        match args.front() {
            Some(Value::Integer(0..=3)) => Ok(()),
            Some(value) if value.as_f64().is_none() => Ok(()),
            _ => Err(raise_reply(
                "ERR Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.",
            )),
        }
    })?;
    add(
        lua,
        state,
        table,
        "replicate_commands",
        |_, _, _: MultiValue| Ok(true),
    )?;
    add(lua, state, table, "breakpoint", |_, _, _: MultiValue| {
        Ok(false)
    })?;
    add(lua, state, table, "debug", |_, _, _: MultiValue| Ok(()))
}

fn error_table(lua: &Lua, state: &State, line: &[u8]) -> mlua::Result<Table> {
    let table = lua.create_table_with_capacity(0, 2)?;
    table.raw_set(&state.names.err, lua.create_string(line)?)?;
    Ok(table)
}

/// The one argument, if it is a text.
fn only_text(args: &MultiValue) -> Option<&mlua::LuaString> {
    match (args.len(), args.front()) {
        (1, Some(Value::String(text))) => Some(text),
        _ => None,
    }
}

/// An error line with a code: text of one word has none.
fn coded(line: &[u8]) -> Vec<u8> {
    if line.contains(&b' ') {
        return line.to_vec();
    }
    [b"ERR ", line].concat()
}
