//! Scripts and functions: their texts, which all loops share, and each loop's Lua state.
//!
//! 1. EVAL and SCRIPT LOAD put a body into [`Bodies`] under the SHA1 of its text. EVALSHA finds it
//!    there. A loop keeps what it has found ([`Scripts`]) until a body is dropped.
//! 2. A loop makes its Lua state when its first script runs, and compiles a body at its first use.
//! 3. A script that runs for long has the other clients of its loop served in between, which can
//!    end it (`loops/loop_core/beside_script.rs`).
//! 4. A body remembers how much of the keyspace it has ever reached for
//!    ([`Learned`](bodies::Learned)), so that its next run begins with the right locks.
//! 5. FUNCTION LOAD runs a library's code, and adds what it registers to [`Libraries`]. Each loop
//!    runs it again when it first calls one of its functions, and drops what others have removed.

pub(crate) mod bodies;
pub(crate) mod libraries;
pub(crate) mod running;

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;

use tidewheel_resp::{Args, Writer};
use tidewheel_scripts::{Engine, Host, LibraryHead, Limits, ScriptError, Sha};

use self::bodies::{BYTES_MAX, Bodies, Body};
use self::libraries::{Libraries, Library, Place};
use crate::state::server::Server;

thread_local! {
    /// What the thread's loop runs scripts with, unless one runs.
    static INTERPRETER: Cell<Option<Box<Interpreter>>> = const { Cell::new(None) };
}

/// What a loop runs scripts with.
pub(crate) struct Interpreter {
    pub(crate) engine: Engine,
    /// The reply of a script, before it is its client's.
    pub(crate) reply: Writer,
}

/// The time that the code of a library may take, and that of all libraries of one command.
const LOAD_NS: u64 = 500_000_000;
pub(crate) const LOAD_ALL_NS: u64 = 5_000_000_000;

/// Bytes of a reply's memory that are kept for the next one.
const KEPT_BYTES: usize = 64 << 10;

/// Returns what the thread's loop runs scripts with, for one of them. It is [put back](put_back)
/// afterwards.
pub(crate) fn take_interpreter() -> Result<Box<Interpreter>, ScriptError> {
    match INTERPRETER.take() {
        Some(interpreter) => Ok(interpreter),
        None => Ok(Box::new(Interpreter {
            engine: Engine::new(Limits::default())?,
            reply: Writer::default(),
        })),
    }
}

pub(crate) fn put_back(mut interpreter: Box<Interpreter>) {
    let reply = &mut interpreter.reply;
    if reply.capacity() > KEPT_BYTES {
        reply.clear();
        reply.shrink_to(KEPT_BYTES);
    }
    INTERPRETER.set(Some(interpreter));
}

/// Returns the bytes of the thread's Lua state, unless there is none, or a script runs.
pub(crate) fn lua_bytes() -> Option<usize> {
    let interpreter = INTERPRETER.take()?;
    let bytes = interpreter.engine.memory();
    INTERPRETER.set(Some(interpreter));
    Some(bytes)
}

/// One loop's scripts.
#[derive(Debug, Default)]
pub(crate) struct Scripts {
    known: HashMap<Sha, Arc<Body>>,
    /// The version of the bodies that are known here.
    version: u64,
    /// Functions by their names in small letters.
    functions: HashMap<Box<[u8]>, Place>,
    /// The version of the libraries that are known here.
    libraries_version: u64,
}

impl Scripts {
    /// Returns the body of that name, if there is one.
    pub(crate) fn find(&mut self, bodies: &Bodies, name: &Sha) -> Option<Arc<Body>> {
        self.follow(bodies);
        if let Some(body) = self.known.get(name) {
            return Some(Arc::clone(body));
        }
        let body = bodies.find(name)?;
        self.known.insert(*name, Arc::clone(&body));
        Some(body)
    }

    /// Compiles a body, and adds it for all loops.
    pub(crate) fn add(
        &mut self,
        bodies: &Bodies,
        name: Sha,
        text: &[u8],
    ) -> Result<Arc<Body>, ScriptError> {
        if text.len() > BYTES_MAX / 2 {
            return Err(ScriptError::new("ERR the script is too long".to_owned()));
        }
        let flags = tidewheel_scripts::shebang(text)?;
        let mut interpreter = take_interpreter()?;
        let compiled = interpreter.engine.compile(&name, text);
        put_back(interpreter);
        compiled?;
        let body = bodies.add(Body::new(name, text, flags));
        self.follow(bodies);
        self.known.insert(name, Arc::clone(&body));
        Ok(body)
    }

    /// Finds a function, whatever the case of its name.
    pub(crate) fn function(&mut self, libraries: &Libraries, name: &[u8]) -> Option<Place> {
        let version = libraries.version();
        if version != self.libraries_version {
            self.libraries_version = version;
            self.functions.clear();
            if let Some(mut interpreter) = INTERPRETER.take() {
                let engine = &mut interpreter.engine;
                let missing = libraries.missing(engine.libraries());
                missing.into_iter().for_each(|id| engine.drop_library(id));
                put_back(interpreter);
            }
        }
        let small;
        let name = match name.iter().any(u8::is_ascii_uppercase) {
            true => {
                small = name.to_ascii_lowercase();
                &small
            }
            false => name,
        };
        if let Some(place) = self.functions.get(name) {
            return Some(place.clone());
        }
        let place = libraries.find(name)?;
        self.functions.insert(name.into(), place.clone());
        Some(place)
    }

    /// Runs the code of a library, unless its name is `present`. It ends by `ends_ns`, and earlier
    /// if it takes long.
    pub(crate) fn load(
        &mut self,
        server: &Server,
        code: &[u8],
        present: impl Fn(&str) -> bool,
        ends_ns: u64,
    ) -> Result<Library, ScriptError> {
        let name = LibraryHead::of(code)?.name;
        if present(&name) {
            return Err(ScriptError::new(format!(
                "ERR Library '{name}' already exists"
            )));
        }
        if code.len() > libraries::BYTES_MAX / 2 {
            return Err(ScriptError::new("ERR the library is too long"));
        }
        let id = server.libraries.next_id();
        let mut interpreter = take_interpreter()?;
        let loaded = interpreter
            .engine
            .load_library(id, code, &mut Loading::new(server, ends_ns));
        put_back(interpreter);
        Ok(Library::new(id, name, code, loaded?))
    }

    /// Drops libraries that were loaded here, and are not those of the server.
    pub(crate) fn unload(&mut self, libraries: &[Arc<Library>]) {
        if let Some(mut interpreter) = INTERPRETER.take() {
            let ids = libraries.iter().map(|library| library.id);
            ids.for_each(|id| interpreter.engine.drop_library(id));
            put_back(interpreter);
        }
    }

    /// Forgets bodies if some were dropped.
    fn follow(&mut self, bodies: &Bodies) {
        let version = bodies.version();
        if version != self.version {
            self.version = version;
            self.known.clear();
            if let Some(mut interpreter) = INTERPRETER.take() {
                interpreter.engine.forget_scripts();
                put_back(interpreter);
            }
        }
    }
}

/// Runs the code of a library in an engine that does not have it.
pub(crate) fn load_again(
    server: &Server,
    engine: &mut Engine,
    library: &Library,
) -> Result<(), ScriptError> {
    let mut loading = Loading::new(server, u64::MAX);
    let loaded = engine.load_library(library.id, &library.code, &mut loading)?;
    if !library.has_registered(&loaded) {
        engine.drop_library(library.id);
        return Err(ScriptError::new(
            "ERR the library has registered other functions than when it was loaded first",
        ));
    }
    Ok(())
}

/// What the code of a library may ask of the server.
struct Loading<'s> {
    server: &'s Server,
    ends_ns: u64,
}

impl<'s> Loading<'s> {
    fn new(server: &'s Server, ends_ns: u64) -> Self {
        let ends_ns = ends_ns.min(server.clock.monotonic_ns() + LOAD_NS);
        Self { server, ends_ns }
    }
}

impl Host for Loading<'_> {
    fn call(&mut self, _: Args<'_>, out: &mut Writer) {
        out.error("ERR a library calls no commands while it is loaded");
    }

    fn may_call(&mut self, _: Args<'_>) -> Option<bool> {
        None
    }

    fn log(&mut self, level: i64, text: &[u8]) {
        log(level, text);
    }

    fn interrupt(&mut self) -> Option<String> {
        let is_late = self.server.clock.monotonic_ns() >= self.ends_ns;
        is_late.then(|| "ERR FUNCTION LOAD timeout".to_owned())
    }
}

/// Logs what a script says.
pub(crate) fn log(level: i64, text: &[u8]) {
    let text = String::from_utf8_lossy(text);
    match level {
        0 | 1 => tracing::debug!("script: {text}"),
        2 => tracing::info!("script: {text}"),
        _ => tracing::warn!("script: {text}"),
    }
}
