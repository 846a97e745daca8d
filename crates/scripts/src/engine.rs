//! One Lua state: compiles scripts, keeps what it compiled, runs them.

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::rc::Rc;

use mlua::chunk::ChunkMode;
use mlua::{Function, HookTriggers, Lua, LuaOptions, StdLib, Table, Value, VmState};
use tidewheel_resp::{Protocol, Writer};

use crate::error::{PRELUDE, Raise};
use crate::host::{self, Host};
use crate::shebang::Shebang;
use crate::state::{Failure, STEPS, State};
use crate::{ScriptError, Sha, returned, sandbox};

/// Runs between two full collections of what they left, in bytes beyond the memory at start.
const GARBAGE: usize = 16 << 20;

/// What bytecode begins with.
const BYTECODE: u8 = 0x1b;

/// What messages call a script.
const CHUNK: &str = "@user_script";

/// Bounds of an [`Engine`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the Lua state beyond those that it has at first.
    pub memory: usize,
    /// How many compiled scripts are kept.
    pub scripts: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory: 64 << 20,
            scripts: 1_000,
        }
    }
}

/// One Lua state, and the scripts that it has compiled. It stays on its thread.
pub struct Engine {
    lua: Lua,
    state: Rc<State>,
    /// The prelude's function that runs a script.
    runner: Function,
    /// The prelude's function that drops the arguments of the last run.
    forget: Function,
    /// The compiled scripts, by place. Lua keeps few references for Rust, so it is one table.
    functions: Table,
    places: HashMap<Sha, Kept>,
    /// Places of `functions` that are free.
    free: Vec<usize>,
    limits: Limits,
    /// Bytes of the state at first.
    base: usize,
    /// Counts compilations and runs: what was used last has the highest.
    turn: u64,
    /// Seeds `math.random`, differently for each run.
    seeds: RandomState,
}

#[derive(Clone, Copy, Debug)]
struct Kept {
    place: usize,
    used: u64,
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("scripts", &self.places.len())
            .field("memory", &self.memory())
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

impl Engine {
    /// A state without scripts.
    ///
    /// # Errors
    /// If there is not enough memory for it.
    pub fn new(limits: Limits) -> Result<Self, ScriptError> {
        Self::start(limits).map_err(|error| ScriptError::new(format!("ERR {error}")))
    }

    fn start(limits: Limits) -> mlua::Result<Self> {
        let libs = StdLib::TABLE | StdLib::STRING | StdLib::MATH | StdLib::OS;
        let lua = Lua::new_with(libs, LuaOptions::new())?;
        let state = State::new(&lua, limits.memory)?;
        let (runner, forget) = sandbox::install(&lua, &state)?;
        let functions = lua.create_table()?;
        let asked = Rc::clone(&state);
        let triggers = HookTriggers::new().every_nth_instruction(STEPS);
        lua.set_global_hook(triggers, move |_, _| {
            asked.ask()?;
            Ok(VmState::Continue)
        })?;
        lua.gc_collect()?;
        let base = lua.used_memory();
        lua.set_memory_limit(base.saturating_add(limits.memory))?;
        Ok(Self {
            lua,
            state,
            runner,
            forget,
            functions,
            places: HashMap::new(),
            free: Vec::new(),
            limits,
            base,
            turn: 0,
            seeds: RandomState::new(),
        })
    }

    /// Compiles a body without running it, and keeps it by its name. Of too many, the one that was
    /// not used for the longest time is dropped.
    ///
    /// # Errors
    /// If the first line or the script is wrong.
    pub fn compile(&mut self, name: &Sha, body: &[u8]) -> Result<(), ScriptError> {
        self.function(name, body).map(drop)
    }

    /// Runs a body, which it compiles if it is not kept. Appends exactly one reply to `out`, also
    /// for an error.
    pub fn run(
        &mut self,
        name: &Sha,
        body: &[u8],
        keys: &[&[u8]],
        args: &[&[u8]],
        host: &mut dyn Host,
        out: &mut Writer,
    ) {
        let function = match self.function(name, body) {
            Ok(function) => function,
            Err(error) => return error_line(out, error.line().as_bytes()),
        };
        self.state.begin();
        self.state.random.set(self.seeds.hash_one(self.turn));
        let mark = out.mark();
        let result = host::lend(host, || self.run_lent(&function, keys, args, out));
        if let Err(error) = result {
            out.truncate(mark);
            let failure = self.failure(&error);
            write_failure(out, name, &failure);
        }
        drop(function);
        self.tidy();
    }

    /// Bytes of the Lua state.
    pub fn memory(&self) -> usize {
        self.lua.used_memory()
    }

    /// Drops all compiled scripts.
    pub fn forget_all(&mut self) {
        self.places = HashMap::new();
        self.free = Vec::new();
        // Both fail only without memory, and free nothing then.
        let _ = self.functions.clear();
        let _ = self.lua.gc_collect();
    }

    fn run_lent(
        &self,
        function: &Function,
        keys: &[&[u8]],
        args: &[&[u8]],
        out: &mut Writer,
    ) -> mlua::Result<()> {
        let keys = self.strings(keys)?;
        let argv = self.strings(args)?;
        let (ok, value): (bool, Value) = self.runner.call((function, keys, argv))?;
        // A coroutine may hide the end of the run.
        self.state.alive()?;
        if !ok {
            // Lua calls no handler if it is out of memory.
            return Err(Raise::Reply(sandbox::line_of_value(&self.state, &value, "")).into());
        }
        returned::write(&self.state, &value, out)
    }

    fn strings(&self, from: &[&[u8]]) -> mlua::Result<Table> {
        let table = self.lua.create_table_with_capacity(from.len(), 0)?;
        for bytes in from {
            table.raw_push(self.lua.create_string(bytes)?)?;
        }
        Ok(table)
    }

    /// What a run failed with.
    fn failure(&self, error: &mlua::Error) -> Failure {
        if let Some(failure) = self.state.failure.take() {
            return failure;
        }
        let line = match self.state.killed.take() {
            Some(line) => line.into_bytes(),
            None => sandbox::line_of(error),
        };
        Failure { line, place: None }
    }

    /// The compiled function of a body.
    fn function(&mut self, name: &Sha, body: &[u8]) -> Result<Function, ScriptError> {
        self.turn += 1;
        if let Some(kept) = self.places.get_mut(name) {
            kept.used = self.turn;
            if let Ok(function) = self.functions.raw_get(kept.place) {
                return Ok(function);
            }
        }
        let code = Shebang::of(body)?.code;
        let mut compiled = self.load(code);
        if matches!(compiled, Err(mlua::Error::MemoryError(_))) {
            self.forget_all();
            compiled = self.load(code);
        }
        let function = compiled.map_err(|error| {
            let text = match &error {
                mlua::Error::SyntaxError { message, .. } => message.clone(),
                other => String::from_utf8_lossy(&sandbox::text_of(other)).into_owned(),
            };
            ScriptError::new(format!("ERR Error compiling script (new function): {text}"))
        })?;
        self.keep(name, &function);
        Ok(function)
    }

    fn load(&self, code: &[u8]) -> mlua::Result<Function> {
        load_text(&self.lua, code, CHUNK)
    }

    fn keep(&mut self, name: &Sha, function: &Function) {
        while self.places.len() >= self.limits.scripts {
            let oldest = self.places.iter().min_by_key(|(_, kept)| kept.used);
            let Some((&oldest, &kept)) = oldest else {
                return;
            };
            self.places.remove(&oldest);
            self.free.push(kept.place);
            let _ = self.functions.raw_set(kept.place, Value::Nil);
        }
        let place = self.free.pop().unwrap_or(self.places.len() + 1);
        // Without memory it is compiled again the next time.
        if self.functions.raw_set(place, function).is_ok() {
            let used = self.turn;
            self.places.insert(*name, Kept { place, used });
        }
    }

    /// Collects what the run left, if it is much.
    fn tidy(&mut self) {
        let bound = GARBAGE.min(self.limits.memory / 2);
        if self.memory().saturating_sub(self.base) <= bound {
            return;
        }
        let _ = self.forget.call::<()>(());
        let _ = self.lua.gc_collect();
        if self.memory().saturating_sub(self.base) > bound {
            self.forget_all();
        }
    }
}

/// Writes the reply of a run that failed.
fn write_failure(out: &mut Writer, name: &Sha, failure: &Failure) {
    let mut line = failure.line.clone();
    if let Some(place) = &failure.place {
        line.extend_from_slice(format!(" script: {name}, on {place}.").as_bytes());
    }
    error_line(out, &line);
}

/// Writes an error of any bytes.
pub(crate) fn error_line(out: &mut Writer, line: &[u8]) {
    raw_line(out, b'-', line);
}

/// Writes a line of any bytes. A line end at its end is left out, others become blanks.
pub(crate) fn raw_line(out: &mut Writer, kind: u8, text: &[u8]) {
    if let Ok(text) = std::str::from_utf8(text) {
        match kind {
            b'-' => return out.error(text),
            b'+' => return out.simple(text),
            b'(' if out.protocol() == Protocol::Resp3 => return out.big_number(text),
            _ => {}
        }
    }
    let mut whole = Vec::with_capacity(text.len() + 3);
    whole.push(kind);
    whole.extend(text.iter().map(|byte| match byte {
        b'\r' | b'\n' => b' ',
        other => *other,
    }));
    whole.extend_from_slice(b"\r\n");
    out.raw(&whole);
}

/// Compiles a text. Bytecode is refused: Lua does not check it, and it could do anything.
pub(crate) fn load_text(lua: &Lua, code: &[u8], name: &str) -> mlua::Result<Function> {
    if code.first() == Some(&BYTECODE) {
        let message = "bytecode is not allowed".to_owned();
        return Err(mlua::Error::SyntaxError {
            message,
            incomplete_input: false,
        });
    }
    let chunk = lua.load(code).set_name(name);
    chunk.set_mode(ChunkMode::Text).into_function()
}

/// The prelude, which is called with the functions that are written in Rust.
pub(crate) fn prelude(lua: &Lua) -> mlua::Result<Function> {
    load_text(lua, include_bytes!("prelude.lua"), &format!("={PRELUDE}"))
}
