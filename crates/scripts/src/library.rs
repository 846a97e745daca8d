//! Libraries: their code runs once, and registers functions, which are called by name.

use std::collections::HashSet;

use mlua::{Function, MultiValue, Table, Value};
use tidewheel_resp::Writer;

use crate::direct::Form;
use crate::error::raise_reply;
use crate::shebang::{BAD_NAME, Shebang, name_of};
use crate::state::State;
use crate::{Engine, Host, ScriptError, ScriptFlags};

/// What messages call the code of a library.
const CHUNK: &str = "@user_function";

/// Functions that one library may have.
const FUNCTIONS_MAX: usize = 10_000;

/// Bytes of all names and descriptions of one library.
const TEXTS_MAX: usize = 1 << 20;

/// A function that a library has registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registered {
    /// Letters, digits and underscores.
    pub name: String,
    /// What it is for.
    pub description: Option<Vec<u8>>,
    /// What it needs.
    pub flags: ScriptFlags,
}

/// What the library that loads has registered so far.
#[derive(Debug, Default)]
pub(crate) struct Loading {
    functions: Vec<Registered>,
    names: HashSet<String>,
    bytes: usize,
}

impl Registered {
    /// Bytes of its texts.
    pub fn bytes(&self) -> usize {
        self.name.len() + self.description.as_ref().map_or(0, Vec::len)
    }
}

impl Engine {
    /// Runs the code of a library, and keeps the functions that it registers under `id`. The host
    /// is asked whether it may go on, and gets what is logged; no command reaches it.
    ///
    /// # Errors
    /// If the code is wrong, fails, or registers nothing. Then nothing is kept.
    pub fn load_library(
        &mut self,
        id: u64,
        code: &[u8],
        host: &mut dyn Host,
    ) -> Result<Vec<Registered>, ScriptError> {
        let code = Shebang::behind(code);
        let chunk = self
            .compiled(code, CHUNK)
            .map_err(|why| ScriptError::new(format!("ERR Error compiling function: {why}")))?;
        *self.state.loading.borrow_mut() = Some(Loading::default());
        let mut nothing = Writer::default();
        let ran = self.try_place(Form::Library, chunk, (&[], &[]), host, &mut nothing);
        let loading = self.state.loading.take().unwrap_or_default();
        let registered = loading.functions;
        self.give_back(chunk);
        let kept = match ran {
            Err(failure) => {
                let why = String::from_utf8_lossy(&failure.line);
                let line = format!("ERR Error registering functions: {why}");
                Err(ScriptError::new(line))
            }
            Ok(()) if registered.is_empty() => Err(ScriptError::new("ERR No functions registered")),
            Ok(()) => self.keep_all(id, registered.len()),
        };
        // It fails only without memory, and frees nothing then.
        let _ = self.registered.clear();
        kept?;
        Ok(registered)
    }

    fn keep_all(&mut self, id: u64, len: usize) -> Result<(), ScriptError> {
        let mut places = Vec::with_capacity(len);
        for at in 1..=len {
            let function: mlua::Result<Function> = self.registered.raw_get(at);
            match function.and_then(|function| self.keep(&function)) {
                Ok(place) => places.push(place),
                Err(_) => {
                    places.into_iter().for_each(|place| self.give_back(place));
                    return Err(ScriptError::new("ERR not enough memory for the library"));
                }
            }
        }
        self.drop_library(id);
        self.libraries.insert(id, places.into());
        Ok(())
    }

    /// Whether a library is loaded.
    pub fn has_library(&self, id: u64) -> bool {
        self.libraries.contains_key(&id)
    }

    /// Drops a library.
    pub fn drop_library(&mut self, id: u64) {
        let places = self.libraries.remove(&id).unwrap_or_default();
        places.into_iter().for_each(|place| self.give_back(place));
    }

    /// The libraries that are loaded.
    pub fn libraries(&self) -> impl Iterator<Item = u64> {
        self.libraries.keys().copied()
    }

    /// Calls the function at the place `at` among those of a library that is loaded. Appends
    /// exactly one reply to `out`, also for an error, in which `name` is the function's.
    pub fn call(
        &mut self,
        (id, at): (u64, usize),
        name: &str,
        given: (&[&[u8]], &[&[u8]]),
        host: &mut dyn Host,
        out: &mut Writer,
    ) {
        let places = self.libraries.get(&id);
        match places.and_then(|places| places.get(at)).copied() {
            Some(place) => self.run_place(Form::Function, place, &name, given, host, out),
            None => out.error("ERR Function not found"),
        }
    }
}

/// `redis.register_function`.
pub(crate) fn register(state: &State, into: &Table, args: &MultiValue) -> mlua::Result<()> {
    let mut loading = state.loading.borrow_mut();
    let Some(loading) = &mut *loading else {
        return Err(raise_reply(
            "ERR redis.register_function can only be called on FUNCTION LOAD command",
        ));
    };
    let (registered, callback) = match args.len() {
        1 => by_fields(&args[0])?,
        2 => by_place(&args[0], &args[1])?,
        _ => {
            return Err(raise_reply(
                "ERR wrong number of arguments to redis.register_function",
            ));
        }
    };
    if loading.names.contains(&registered.name) {
        return Err(raise_reply("ERR Function already exists in the library"));
    }
    loading.bytes += registered.bytes();
    if loading.functions.len() >= FUNCTIONS_MAX || loading.bytes > TEXTS_MAX {
        return Err(raise_reply("ERR the library has too many functions"));
    }
    into.raw_set(loading.functions.len() + 1, callback)?;
    loading.names.insert(registered.name.clone());
    loading.functions.push(registered);
    Ok(())
}

fn by_place(name: &Value, callback: &Value) -> mlua::Result<(Registered, Function)> {
    let name = text(
        name,
        "ERR first argument to redis.register_function must be a string",
    )?;
    let Value::Function(callback) = callback else {
        return Err(raise_reply(
            "ERR second argument to redis.register_function must be a function",
        ));
    };
    let registered = Registered {
        name: name_of(&name).ok_or_else(|| raise_reply(BAD_NAME))?,
        description: None,
        flags: unflagged(),
    };
    Ok((registered, callback.clone()))
}

fn by_fields(fields: &Value) -> mlua::Result<(Registered, Function)> {
    let Value::Table(fields) = fields else {
        return Err(raise_reply(
            "ERR calling redis.register_function with a single argument is only applicable to Lua \
             table (representing named arguments).",
        ));
    };
    let (mut name, mut description, mut callback) = (None, None, None);
    let mut flags = unflagged();
    fields.for_each(|field: Value, value: Value| {
        let field = match &field {
            Value::String(field) => field.as_bytes().to_vec(),
            _ => Vec::new(),
        };
        match &*field {
            b"function_name" => {
                let why = "ERR function_name argument given to redis.register_function must be a \
                           string";
                name = Some(text(&value, why)?);
            }
            b"description" => {
                let why = "ERR description argument given to redis.register_function must be a \
                           string";
                description = Some(text(&value, why)?);
            }
            b"callback" => match value {
                Value::Function(function) => callback = Some(function),
                _ => {
                    return Err(raise_reply(
                        "ERR callback argument given to redis.register_function must be a function",
                    ));
                }
            },
            b"flags" => match value {
                Value::Table(names) => read_flags(&names, &mut flags)?,
                _ => {
                    return Err(raise_reply(
                        "ERR flags argument to redis.register_function must be a table \
                         representing function flags",
                    ));
                }
            },
            _ => {
                return Err(raise_reply(
                    "ERR unknown argument given to redis.register_function",
                ));
            }
        }
        Ok(())
    })?;
    let name = name.ok_or_else(|| {
        raise_reply("ERR redis.register_function must get a function name argument")
    })?;
    let callback = callback
        .ok_or_else(|| raise_reply("ERR redis.register_function must get a callback argument"))?;
    let registered = Registered {
        name: name_of(&name).ok_or_else(|| raise_reply(BAD_NAME))?,
        description,
        flags,
    };
    Ok((registered, callback))
}

/// The flags of a function that names none.
fn unflagged() -> ScriptFlags {
    ScriptFlags {
        has_shebang: true,
        ..ScriptFlags::default()
    }
}

fn read_flags(names: &Table, flags: &mut ScriptFlags) -> mlua::Result<()> {
    for at in 1_usize.. {
        let named = match names.raw_get(at)? {
            Value::Nil => return Ok(()),
            Value::String(name) => flags.named(&name.as_bytes()).map(|flag| *flag = true),
            _ => None,
        };
        named.ok_or_else(|| raise_reply("ERR unknown flag given"))?;
    }
    Ok(())
}

/// A text, or a number as one.
fn text(value: &Value, why: &str) -> mlua::Result<Vec<u8>> {
    match value {
        Value::String(text) => Ok(text.as_bytes().to_vec()),
        Value::Integer(number) => Ok(number.to_string().into_bytes()),
        Value::Number(number) => Ok(crate::number::general(*number, 14).into_bytes()),
        _ => Err(raise_reply(why)),
    }
}
