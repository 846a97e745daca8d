//! What the functions of one engine share.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use mlua::{Function, Lua, LuaString};
use tidewheel_resp::{Protocol, Writer};

use crate::codec::json::Settings;
use crate::error::Raise;
use crate::host;
use crate::library::Loading;

/// Instructions of Lua, or steps of a function of ours, between two questions to the host.
pub(crate) const STEPS: u32 = 100_000;

/// How deeply tables may nest in what is returned, encoded or decoded.
pub(crate) const DEPTH_MAX: usize = 1_000;

/// Bytes of a buffer that are kept from one run to the next.
const KEPT_BYTES: usize = 64 << 10;

/// What the functions of one engine share.
pub(crate) struct State {
    /// Why the run is over: an error line.
    pub(crate) killed: RefCell<Option<String>>,
    /// What the run failed with.
    pub(crate) failure: RefCell<Option<Failure>>,
    /// What `redis.setresp` chose.
    pub(crate) protocol: Cell<Protocol>,
    /// Steps that are left until the host is asked.
    steps: Cell<u32>,
    /// The reply of the last command.
    pub(crate) reply: RefCell<Writer>,
    /// Arguments of the last command that were numbers.
    pub(crate) numbers: RefCell<Vec<u8>>,
    /// A panic of the host, which goes on when Lua is left.
    pub(crate) panic: Cell<Option<Box<dyn Any + Send>>>,
    /// The state of `math.random`.
    pub(crate) random: Cell<u64>,
    /// What the library that loads has registered; `None` if none loads.
    pub(crate) loading: RefCell<Option<Loading>>,
    /// What `cjson`'s functions chose.
    pub(crate) json: Cell<Settings>,
    /// The longest text that one function makes.
    pub(crate) bytes_max: usize,
    pub(crate) names: Names,
    /// Lua's `next`.
    pub(crate) next: Function,
}

/// Names of fields, made once.
#[derive(Debug)]
pub(crate) struct Names {
    pub(crate) err: LuaString,
    pub(crate) ok: LuaString,
    pub(crate) double: LuaString,
    pub(crate) map: LuaString,
    pub(crate) set: LuaString,
    pub(crate) big_number: LuaString,
    pub(crate) verbatim: LuaString,
    pub(crate) format: LuaString,
    pub(crate) string: LuaString,
}

/// What a run failed with.
#[derive(Debug)]
pub(crate) struct Failure {
    /// An error line without `-`.
    pub(crate) line: Vec<u8>,
    /// `@user_script:1`.
    pub(crate) place: Option<String>,
}

impl State {
    pub(crate) fn new(lua: &Lua, bytes_max: usize) -> mlua::Result<Rc<Self>> {
        let name = |name: &str| lua.create_string(name);
        Ok(Rc::new(Self {
            killed: RefCell::default(),
            failure: RefCell::default(),
            protocol: Cell::default(),
            steps: Cell::new(STEPS),
            reply: RefCell::default(),
            numbers: RefCell::default(),
            panic: Cell::default(),
            random: Cell::default(),
            loading: RefCell::default(),
            json: Cell::default(),
            bytes_max,
            next: lua.globals().raw_get("next")?,
            names: Names {
                err: name("err")?,
                ok: name("ok")?,
                double: name("double")?,
                map: name("map")?,
                set: name("set")?,
                big_number: name("big_number")?,
                verbatim: name("verbatim_string")?,
                format: name("format")?,
                string: name("string")?,
            },
        }))
    }

    /// Forgets the run before.
    pub(crate) fn begin(&self) {
        *self.killed.borrow_mut() = None;
        *self.failure.borrow_mut() = None;
        self.protocol.set(Protocol::Resp2);
        self.json.set(Settings::default());
    }

    /// Gives back much memory that commands have taken.
    pub(crate) fn settle(&self) {
        let mut reply = self.reply.borrow_mut();
        if reply.capacity() > KEPT_BYTES {
            reply.clear();
            reply.shrink_to(KEPT_BYTES);
        }
        let mut numbers = self.numbers.borrow_mut();
        if numbers.capacity() > KEPT_BYTES {
            *numbers = Vec::new();
        }
    }

    /// The run is over, with this error line.
    pub(crate) fn end(&self, line: impl Into<String>) {
        *self.killed.borrow_mut() = Some(line.into());
    }

    /// How many values one reply may have.
    pub(crate) fn values_max(&self) -> usize {
        self.bytes_max / 8
    }

    /// Counts steps, and asks the host when there were many.
    #[inline]
    pub(crate) fn step(&self, steps: usize) -> Result<(), Raise> {
        let steps = u32::try_from(steps).unwrap_or(u32::MAX);
        match self.steps.get().checked_sub(steps) {
            Some(left) => {
                self.steps.set(left);
                Ok(())
            }
            None => self.ask(),
        }
    }

    /// Asks the host whether the script may go on.
    pub(crate) fn ask(&self) -> Result<(), Raise> {
        self.steps.set(STEPS);
        self.alive()?;
        // A panic must not pass through Lua.
        let asked = catch_unwind(AssertUnwindSafe(|| host::with(|host| host.interrupt())));
        let answer = asked.unwrap_or_else(|payload| {
            self.panic.set(Some(payload));
            Some(Some(
                "ERR the program around the script has panicked".to_owned(),
            ))
        });
        match answer.flatten() {
            Some(line) => {
                self.end(line);
                Err(Raise::Killed)
            }
            None => Ok(()),
        }
    }

    /// Whether the run goes on.
    pub(crate) fn alive(&self) -> Result<(), Raise> {
        match &*self.killed.borrow() {
            Some(_) => Err(Raise::Killed),
            None => Ok(()),
        }
    }

    /// Whether a text of this length may be made.
    pub(crate) fn admit(&self, bytes: usize) -> mlua::Result<()> {
        if bytes <= self.bytes_max {
            return Ok(());
        }
        Err(mlua::Error::MemoryError("not enough memory".to_owned()))
    }
}
