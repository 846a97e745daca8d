//! Scripts: their bodies, which all loops share, and each loop's Lua state.
//!
//! 1. EVAL and SCRIPT LOAD put a body into [`Bodies`] under the SHA1 of its text. EVALSHA finds it
//!    there. A loop keeps what it has found ([`Scripts`]) until a body is dropped.
//! 2. A loop makes its Lua state when its first script runs, and compiles a body at its first use.
//! 3. A script that runs for long has the other clients of its loop served in between, which can
//!    end it (`loops/loop_core/beside_script.rs`).
//! 4. A body remembers how much of the keyspace it has ever reached for ([`Body::reach`]), so that
//!    its next run begins with the right locks.

pub(crate) mod bodies;
pub(crate) mod running;

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;

use tidewheel_resp::Writer;
use tidewheel_scripts::{Engine, Limits, ScriptError, Sha};

use self::bodies::{BYTES_MAX, Bodies, Body};

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

/// One loop's scripts.
#[derive(Debug, Default)]
pub(crate) struct Scripts {
    known: HashMap<Sha, Arc<Body>>,
    /// The version of the bodies that are known here.
    version: u64,
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

    /// Forgets bodies if some were dropped.
    fn follow(&mut self, bodies: &Bodies) {
        let version = bodies.version();
        if version != self.version {
            self.version = version;
            self.known.clear();
            if let Some(mut interpreter) = INTERPRETER.take() {
                interpreter.engine.forget_all();
                put_back(interpreter);
            }
        }
    }
}
