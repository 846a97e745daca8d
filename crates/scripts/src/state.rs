//! What the functions of one engine share.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use mlua::{Function, Lua, LuaString};
use tidewheel_resp::{Protocol, Writer};

use crate::codec::json::Settings;
use crate::error::Raise;
use crate::host;

/// Instructions of Lua, or steps of a function of ours, between two questions to the host.
pub(crate) const STEPS: u32 = 100_000;

/// How deeply tables may nest in what is returned, encoded or decoded.
pub(crate) const DEPTH_MAX: usize = 1_000;

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
    /// The reply of the last command, kept for its memory.
    pub(crate) reply: Cell<Writer>,
    /// The arguments of the last command, kept for their memory.
    pub(crate) args: Cell<Vec<u8>>,
    /// The state of `math.random`.
    pub(crate) random: Cell<u64>,
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
    pub(crate) ignore: LuaString,
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
            reply: Cell::default(),
            args: Cell::default(),
            random: Cell::default(),
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
                ignore: name("ignore_error_stats_update")?,
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
        match host::with(|host| host.interrupt()).flatten() {
            Some(line) => {
                *self.killed.borrow_mut() = Some(line);
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
