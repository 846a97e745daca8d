//! One Lua state: compiles scripts, keeps what it compiled, runs them.

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::rc::Rc;

use mlua::chunk::ChunkMode;
use mlua::{Function, HookTriggers, Lua, LuaOptions, StdLib, Table, Value, VmState};
use tidewheel_resp::{Protocol, Writer};

use crate::direct::{Direct, Ended, Form};
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
    pub(crate) state: Rc<State>,
    direct: Direct,
    /// The prelude's function that drops what the last run has left.
    forget: Function,
    /// The prelude's function that chooses the globals, and for which form it did so last.
    see: Function,
    seen: Form,
    /// What is compiled, by place. Lua keeps few references for Rust, so it is one table.
    functions: Table,
    places: HashMap<Sha, Kept>,
    /// The places of each library's functions, in the order in which it registers them.
    pub(crate) libraries: HashMap<u64, Box<[usize]>>,
    /// What a library that loads has registered.
    pub(crate) registered: Table,
    /// Places of `functions` that are free, and how many there are in all.
    free: Vec<usize>,
    used: usize,
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
            .field("libraries", &self.libraries.len())
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
        let registered = lua.create_table()?;
        let sandbox = sandbox::install(&lua, &state, &registered)?;
        let functions = lua.create_table()?;
        let (globals, redis) = (&sandbox.globals, &sandbox.redis);
        let direct = Direct::new(&lua, &state, &functions, globals, &sandbox.handler, redis)?;
        for name in ["call", "pcall", "acl_check_cmd"] {
            let function: Function = redis.raw_get(name)?;
            sandbox.of_functions.raw_set(name, function)?;
        }
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
            direct,
            forget: sandbox.forget,
            see: sandbox.see,
            seen: Form::Script,
            functions,
            places: HashMap::new(),
            libraries: HashMap::new(),
            registered,
            free: Vec::new(),
            used: 0,
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
        self.place(name, body).map(drop)
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
        let place = match self.place(name, body) {
            Ok(place) => place,
            Err(error) => return error_line(out, error.line().as_bytes()),
        };
        self.run_place(Form::Script, place, name, (keys, args), host, out);
    }

    /// Runs what is at a place, which messages call by its name.
    pub(crate) fn run_place(
        &mut self,
        form: Form,
        place: usize,
        name: &dyn fmt::Display,
        given: (&[&[u8]], &[&[u8]]),
        host: &mut dyn Host,
        out: &mut Writer,
    ) {
        let mark = out.mark();
        if let Err(failure) = self.try_place(form, place, given, host, out) {
            out.truncate(mark);
            write_failure(out, name, &failure);
        }
        self.tidy();
    }

    /// As [`run_place`](Self::run_place); what is in `out` after a failure is no reply.
    pub(crate) fn try_place(
        &mut self,
        form: Form,
        place: usize,
        given: (&[&[u8]], &[&[u8]]),
        host: &mut dyn Host,
        out: &mut Writer,
    ) -> Result<(), Failure> {
        self.turn += 1;
        self.state.begin();
        self.state.random.set(self.seeds.hash_one(self.turn));
        let result = self.look(form).and_then(|()| {
            let place = (form, place as i32);
            host::lend(host, || self.run_lent(place, given, out))
        });
        result.map_err(|error| {
            let failure = self.failure(&error);
            // It fails only without memory. Then the next run's end frees it.
            let _ = self.forget.call::<()>(());
            failure
        })
    }

    /// Shows the globals for this form.
    fn look(&mut self, form: Form) -> mlua::Result<()> {
        if self.seen != form {
            self.see.call::<()>(form as usize + 1)?;
            self.seen = form;
        }
        Ok(())
    }

    /// Bytes of the Lua state.
    pub fn memory(&self) -> usize {
        self.lua.used_memory()
    }

    /// Drops all compiled scripts.
    pub fn forget_scripts(&mut self) {
        for kept in std::mem::take(&mut self.places).into_values() {
            self.give_back(kept.place);
        }
        let _ = self.lua.gc_collect();
    }

    /// Drops all compiled scripts and libraries.
    pub fn forget_all(&mut self) {
        self.places = HashMap::new();
        self.libraries = HashMap::new();
        self.free = Vec::new();
        self.used = 0;
        // Both fail only without memory, and free nothing then.
        let _ = self.functions.clear();
        let _ = self.lua.gc_collect();
    }

    fn run_lent(
        &self,
        place: (Form, i32),
        given: (&[&[u8]], &[&[u8]]),
        out: &mut Writer,
    ) -> mlua::Result<()> {
        match (self.direct).run(&self.lua, &self.state, place, given, out)? {
            Ended::Replied => Ok(()),
            Ended::Returned(value) => returned::write(&self.state, &value, out),
            Ended::Failed(text) => {
                // Lua calls no handler if it is out of memory.
                let text = text.unwrap_or_else(|| b"unknown error".to_vec());
                Err(Raise::Reply([b"ERR ", &text[..]].concat()).into())
            }
        }
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

    /// The place of a body's compiled function.
    fn place(&mut self, name: &Sha, body: &[u8]) -> Result<usize, ScriptError> {
        self.turn += 1;
        if let Some(kept) = self.places.get_mut(name) {
            kept.used = self.turn;
            return Ok(kept.place);
        }
        let code = Shebang::of(body)?.code;
        let place = self.compiled(code, CHUNK).map_err(|text| {
            ScriptError::new(format!("ERR Error compiling script (new function): {text}"))
        })?;
        while self.places.len() >= self.limits.scripts.max(1) {
            let oldest = self.places.iter().min_by_key(|(_, kept)| kept.used);
            let Some((&oldest, &kept)) = oldest else {
                break;
            };
            self.places.remove(&oldest);
            self.give_back(kept.place);
        }
        let used = self.turn;
        self.places.insert(*name, Kept { place, used });
        Ok(place)
    }

    /// Compiles a text, and returns its place.
    pub(crate) fn compiled(&mut self, code: &[u8], chunk: &str) -> Result<usize, String> {
        let compile = |engine: &mut Self| {
            let function = load_text(&engine.lua, code, chunk)?;
            engine.keep(&function)
        };
        let mut place = compile(self);
        if matches!(place, Err(mlua::Error::MemoryError(_))) {
            self.forget_all();
            place = compile(self);
        }
        place.map_err(|error| match &error {
            mlua::Error::SyntaxError { message, .. } => message.clone(),
            other => String::from_utf8_lossy(&sandbox::text_of(other)).into_owned(),
        })
    }

    /// Gives a function a place.
    pub(crate) fn keep(&mut self, function: &Function) -> mlua::Result<usize> {
        let place = self.free.last().copied().unwrap_or(self.used + 1);
        self.functions.raw_set(place, function)?;
        if self.free.pop().is_none() {
            self.used = place;
        }
        Ok(place)
    }

    /// Drops the function at a place.
    pub(crate) fn give_back(&mut self, place: usize) {
        self.free.push(place);
        // A place that is there is overwritten: that takes no memory, and cannot fail.
        let _ = self.functions.raw_set(place, Value::Nil);
    }

    /// Collects what the run left, if it is much.
    pub(crate) fn tidy(&mut self) {
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
fn write_failure(out: &mut Writer, name: &dyn fmt::Display, failure: &Failure) {
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
