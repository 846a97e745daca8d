//! What every run passes through, straight over Lua's C interface: the way into a script,
//! `redis.call` and its kin, and replies that are no deep tables.
//!
//! The rest of the crate uses the safe interface, which takes a protected call for each string and
//! each table. Here that was half of the cost of a short script.
//!
//! # Why this is sound
//!
//! An error of Lua is a jump, over all frames up to the nearest protected call. So:
//!
//! - **No destructor is jumped over.** [`enter`], [`command`] and [`unpack_some`] are the only
//!   functions that Lua calls. What of them may raise has only plain values in its frames.
//!   Everything that owns something ([`ask`]) has returned before.
//! - **No panic passes through Lua.** [`ask`] is the only one that runs code of others, and catches
//!   its panic, which goes on when Lua is left. What comes after it has no panic.
//! - **Nothing raises outside a protected call.** [`Direct::run`] and [`Direct::reply`] only use
//!   functions that neither allocate nor call, but for `lua_pcall`: pushes into slots that
//!   [`SLOTS`] has reserved, raw reads of tables, `lua_tolstring` of strings, and `lua_next` with a
//!   key that is there.
//! - **Pointers live long enough.** [`State`] is shared with other functions of the same Lua state,
//!   so it lives for as long as this. What [`enter`] gets is borrowed by the caller of
//!   `lua_pcall`. Bytes of a Lua string stay where they are while the string is on the stack.
#![allow(unsafe_code)]

use std::any::Any;
use std::cell::Cell;
use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::{ptr, slice};

use mlua::ffi::{
    LUA_OK, LUA_REGISTRYINDEX, LUA_TBOOLEAN, LUA_TNIL, LUA_TNONE, LUA_TNUMBER, LUA_TSTRING,
    LUA_TTABLE, lua_CFunction, lua_Integer, lua_State, lua_call, lua_checkstack, lua_concat,
    lua_createtable, lua_error, lua_getmetatable, lua_gettop, lua_next, lua_objlen, lua_pcall,
    lua_pushboolean, lua_pushcclosure, lua_pushlightuserdata, lua_pushlstring_, lua_pushnil,
    lua_pushnumber, lua_pushvalue, lua_rawget_, lua_rawgeti_, lua_rawset, lua_rawseti_, lua_settop,
    lua_toboolean, lua_tolstring, lua_tonumber, lua_touserdata, lua_type, lua_upvalueindex,
    luaL_checkinteger, luaL_checkstack_, luaL_checktype, luaL_error, luaL_optinteger, luaL_ref,
};
use mlua::{Function, Lua, Table, Value};
use tidewheel_resp::{Args, Protocol, Writer, parse_i64, parse_u64};

use crate::engine::raw_line;
use crate::returned::{trimmed, whole};
use crate::state::State;
use crate::{host, number};

/// Arguments of a command that take no memory of their own.
const FEW: usize = 16;

/// Bytes that are kept from one command to the next.
const KEPT_BYTES: usize = 64 << 10;

/// Runs that have one table of arguments. A script may have made it large, and emptied it: then
/// each of them looks at many places that are free.
const RUNS_PER_TABLE: u32 = 64;

/// Slots of the stack that [`Direct`] may use.
const SLOTS: c_int = 64;

/// How deeply a reply may nest that is written here. Each level takes three slots.
const LEVELS_MAX: usize = 12;

/// How deeply a command's reply may nest. It is read by a function that calls itself.
const DEPTH_MAX: usize = 64;

/// Elements that a table gets room for before they are seen.
const ROOM_MAX: usize = 1 << 16;

const NO_COMMAND: &str = "ERR Please specify at least one argument for this redis lib call";
const BAD_ARGUMENTS: &str = "ERR Lua redis lib command arguments must be strings or integers";
const NO_RUN: &str = "ERR commands run only within a script";
const TOO_LARGE: &str = "ERR the reply is too large for a script";
const NO_SUCH_COMMAND: &str = "ERR Invalid command passed to redis.acl_check_cmd()";
const MALFORMED: &str = "ERR malformed reply of a command";

/// Names of fields, in the order of the upvalues of `redis.call`.
const NAMES: [&str; 10] = [
    "err",
    "ok",
    "double",
    "map",
    "set",
    "big_number",
    "verbatim_string",
    "format",
    "string",
    "ignore_error_stats_update",
];
const ERR: c_int = 2;
const OK: c_int = 3;
const DOUBLE: c_int = 4;
const MAP: c_int = 5;
const SET: c_int = 6;
const BIG_NUMBER: c_int = 7;
const VERBATIM: c_int = 8;
const FORMAT: c_int = 9;
const STRING: c_int = 10;
const IGNORE: c_int = 11;

/// What is below the ways that a run takes.
pub(crate) struct Direct {
    /// The main thread of the Lua state.
    main: *mut lua_State,
    /// References: the function [`enter`], the handler of errors, the fields that make a table a
    /// reply of another kind, and a place for a value on its way.
    enter: c_int,
    handler: c_int,
    fields: [c_int; FIELDS],
    place: c_int,
    runs: Cell<u32>,
}

/// How many of [`NAMES`] make a table a reply of another kind.
const FIELDS: usize = 7;

/// The end of a run.
pub(crate) enum Ended {
    /// Its reply is written.
    Replied,
    /// It has returned this, of which nothing is written yet.
    Returned(Value),
    /// It has failed, with this if no handler was called.
    Failed(Option<Vec<u8>>),
}

/// The way in which a run gets its keys and arguments.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// As globals.
    Script,
    /// As two arguments.
    Function,
    /// Not at all: the code of a library registers functions, and returns nothing.
    Library,
}

/// What [`enter`] gets.
struct Given<'a> {
    /// KEYS and ARGV may be the tables of the run before.
    again: bool,
    place: c_int,
    form: Form,
    keys: &'a [&'a [u8]],
    args: &'a [&'a [u8]],
}

impl Direct {
    /// Makes the functions. `functions` has the compiled scripts, `globals` gets KEYS and ARGV,
    /// `handler` is called where something fails. Adds the functions over commands to
    /// `redis`.
    pub(crate) fn new(
        lua: &Lua,
        state: &Rc<State>,
        functions: &Table,
        globals: &Table,
        handler: &Function,
        redis: &Table,
    ) -> mlua::Result<Self> {
        let mut direct = Self {
            main: ptr::null_mut(),
            enter: 0,
            handler: 0,
            fields: [0; FIELDS],
            place: 0,
            runs: Cell::new(0),
        };
        let (made, state) = (&raw mut direct, Rc::as_ptr(state));
        // SAFETY: the closure has only pointers, to what outlives the call, and no destructor. It
        // runs in a protected call of its own, with its four arguments on the stack.
        unsafe {
            lua.exec_raw::<()>((functions, globals, handler, redis), move |l| {
                luaL_checkstack_(l, SLOTS, ptr::null());
                (*made).main = l;
                let (functions, globals, handler, redis) = (1, 2, 3, 4);
                lua_pushvalue(l, functions);
                lua_pushvalue(l, globals);
                push(l, b"KEYS");
                push(l, b"ARGV");
                lua_pushcclosure(l, enter, 4);
                (*made).enter = luaL_ref(l, LUA_REGISTRYINDEX);
                lua_pushvalue(l, handler);
                (*made).handler = luaL_ref(l, LUA_REGISTRYINDEX);
                lua_pushboolean(l, 1);
                (*made).place = luaL_ref(l, LUA_REGISTRYINDEX);
                for (name, field) in NAMES.iter().zip(&mut (*made).fields) {
                    push(l, name.as_bytes());
                    *field = luaL_ref(l, LUA_REGISTRYINDEX);
                }
                push(l, b"call");
                push_command(l, state, command::<CALL>);
                lua_rawset(l, redis);
                push(l, b"pcall");
                push_command(l, state, command::<PCALL>);
                lua_rawset(l, redis);
                push(l, b"acl_check_cmd");
                push_command(l, state, command::<MAY_CALL>);
                lua_rawset(l, redis);
                lua_settop(l, 0);
            })?;
            // Nothing of Lua runs, so this is for the lowest frame, for good. There is no limit of
            // memory yet that it could exceed.
            lua_checkstack(direct.main, SLOTS);
        }
        Ok(direct)
    }

    /// Runs what has been compiled. Nothing of this Lua state runs.
    pub(crate) fn run(
        &self,
        lua: &Lua,
        state: &State,
        (form, place): (Form, c_int),
        (keys, args): (&[&[u8]], &[&[u8]]),
        out: &mut Writer,
    ) -> mlua::Result<Ended> {
        let l = self.main;
        let runs = self.runs.get().wrapping_add(1);
        self.runs.set(runs);
        let again = !runs.is_multiple_of(RUNS_PER_TABLE);
        let given = Given {
            again,
            place,
            form,
            keys,
            args,
        };
        // SAFETY: three of the reserved slots are used. `given` outlives the call.
        let (top, status) = unsafe {
            let top = Top(l, lua_gettop(l));
            lua_rawgeti_(l, LUA_REGISTRYINDEX, self.handler);
            lua_rawgeti_(l, LUA_REGISTRYINDEX, self.enter);
            lua_pushlightuserdata(l, (&raw const given).cast_mut().cast());
            (top, lua_pcall(l, 1, 1, -3))
        };
        state.settle();
        if let Some(payload) = state.panic.take() {
            drop(top);
            resume_unwind(payload);
        }
        state.alive()?;
        if status != LUA_OK {
            // SAFETY: `lua_pcall` has left the error on the stack.
            let line = unsafe { text(l, -1) }.map(<[u8]>::to_vec);
            return Ok(Ended::Failed(line));
        }
        let mark = out.mark();
        let mut left = state.values_max();
        // SAFETY: the value is on the stack.
        if unsafe { self.reply(state, out, &mut left, LEVELS_MAX) }? {
            return Ok(Ended::Replied);
        }
        out.truncate(mark);
        // SAFETY: the place has a value already, so that setting it allocates nothing. The closure
        // has nothing to drop, and runs in a protected call.
        let value = unsafe {
            lua_rawseti_(l, LUA_REGISTRYINDEX, self.place);
            let place = self.place;
            let value = lua.exec_raw(
                (),
                #[inline]
                move |l| lua_rawgeti_(l, LUA_REGISTRYINDEX, place),
            );
            lua_pushboolean(l, 1);
            lua_rawseti_(l, LUA_REGISTRYINDEX, self.place);
            value?
        };
        Ok(Ended::Returned(value))
    }

    /// Writes the value on top of the stack. False if it is not one of those that are written here.
    ///
    /// # Safety
    /// `levels` times three slots, and three more, are free.
    unsafe fn reply(
        &self,
        state: &State,
        out: &mut Writer,
        left: &mut usize,
        levels: usize,
    ) -> mlua::Result<bool> {
        let l = self.main;
        state.step(1)?;
        if out.is_over() {
            // Whoever asked sees that, wherever the limit was reached.
            return Ok(true);
        }
        // A table that contains itself twice would never end.
        match left.checked_sub(1) {
            Some(less) => *left = less,
            None => state.admit(usize::MAX)?,
        }
        // SAFETY: see `# Why this is sound`; no function here raises.
        unsafe {
            match lua_type(l, -1) {
                LUA_TSTRING => out.bulk(text(l, -1).unwrap_or_default()),
                LUA_TNUMBER => out.integer(whole(lua_tonumber(l, -1))),
                LUA_TBOOLEAN => match (state.protocol.get(), lua_toboolean(l, -1) != 0) {
                    (Protocol::Resp3, value) => out.boolean(value),
                    (Protocol::Resp2, true) => out.integer(1),
                    (Protocol::Resp2, false) => out.null(),
                },
                LUA_TTABLE if levels == 0 => return Ok(false),
                LUA_TTABLE => return self.table(state, out, left, levels),
                _ => out.null(),
            }
        }
        Ok(true)
    }

    /// Writes the table on top of the stack.
    ///
    /// # Safety
    /// As for [`reply`](Self::reply).
    unsafe fn table(
        &self,
        state: &State,
        out: &mut Writer,
        left: &mut usize,
        levels: usize,
    ) -> mlua::Result<bool> {
        let l = self.main;
        // SAFETY: see `# Why this is sound`. The key for `lua_next` is nil, or the index of an
        // element that is there. Three slots are used at most.
        unsafe {
            let border = lua_objlen(l, -1);
            match border {
                0 => lua_pushnil(l),
                _ => lua_pushnumber(l, border as f64),
            }
            if lua_next(l, -2) != 0 {
                lua_settop(l, -3);
                for (at, field) in self.fields.iter().enumerate() {
                    lua_rawgeti_(l, LUA_REGISTRYINDEX, *field);
                    lua_rawget_(l, -2);
                    let done = match (at, lua_type(l, -1)) {
                        (_, LUA_TNIL) => None,
                        (0, LUA_TSTRING) => {
                            raw_line(out, b'-', trimmed(text(l, -1).unwrap_or_default()));
                            Some(true)
                        }
                        (1, LUA_TSTRING) => {
                            raw_line(out, b'+', text(l, -1).unwrap_or_default());
                            Some(true)
                        }
                        (0 | 1, _) => None,
                        _ => Some(false),
                    };
                    lua_settop(l, -2);
                    if let Some(done) = done {
                        return Ok(done);
                    }
                }
            }
            let mut len = 0;
            while len < border && c_int::try_from(len + 1).is_ok() {
                state.step(1)?;
                lua_rawgeti_(l, -1, len as c_int + 1);
                let is_there = lua_type(l, -1) != LUA_TNIL;
                lua_settop(l, -2);
                if !is_there {
                    break;
                }
                len += 1;
            }
            out.array(len);
            for at in 1..=len {
                lua_rawgeti_(l, -1, at as c_int);
                let done = self.reply(state, out, left, levels - 1)?;
                lua_settop(l, -2);
                if !done {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }
}

/// Pushes a function over [`command`].
///
/// # Safety
/// Slots for all upvalues are free. It may raise.
unsafe fn push_command(l: *mut lua_State, state: *const State, function: lua_CFunction) {
    // SAFETY: the upvalues are those that `command` expects.
    unsafe {
        lua_pushlightuserdata(l, state.cast_mut().cast());
        for name in &NAMES {
            push(l, name.as_bytes());
        }
        lua_pushcclosure(l, function, 1 + NAMES.len() as c_int);
    }
}

/// Takes back what was pushed on a stack.
struct Top(*mut lua_State, c_int);

impl Drop for Top {
    fn drop(&mut self) {
        // SAFETY: the state lives, and its top was there before.
        unsafe { lua_settop(self.0, self.1) }
    }
}

/// Gives keys and arguments to what it calls: a script, a function or a library's code.
///
/// Upvalues: the compiled scripts, the globals, the two names. Argument: [`Given`].
///
/// # Safety
/// Lua calls it as [`Direct::run`] says. It may raise, and has only plain values.
unsafe extern "C-unwind" fn enter(l: *mut lua_State) -> c_int {
    // SAFETY: the argument points to what the caller of `lua_pcall` has borrowed.
    unsafe {
        let given = &*lua_touserdata(l, 1).cast::<Given<'_>>();
        let (keys, args) = (given.keys, given.args);
        if matches!(given.form, Form::Script) {
            lua_pushvalue(l, lua_upvalueindex(2));
            set_texts(l, 3, keys, given.again);
            set_texts(l, 4, args, given.again);
        }
        lua_rawgeti_(l, lua_upvalueindex(1), given.place);
        match given.form {
            Form::Script => lua_call(l, 0, 1),
            Form::Function => {
                push_texts(l, keys);
                push_texts(l, args);
                lua_call(l, 2, 1);
            }
            Form::Library => {
                lua_call(l, 0, 0);
                lua_pushnil(l);
            }
        }
        1
    }
}

/// Sets a field of the globals, which are on top of the stack, to a table of strings. `name` is
/// the upvalue with its name. The table of the run before may be used `again`, if it has become the
/// same as a new one.
///
/// # Safety
/// As for [`enter`].
unsafe fn set_texts(l: *mut lua_State, name: c_int, texts: &[&[u8]], again: bool) {
    // SAFETY: four slots are used.
    unsafe {
        if again && texts.len() <= FEW {
            lua_pushvalue(l, lua_upvalueindex(name));
            lua_rawget_(l, -2);
            let is_table = lua_type(l, -1) == LUA_TTABLE;
            if is_table {
                fill(l, texts);
            }
            let is_done = is_table && has_no_more(l, texts.len());
            lua_settop(l, -2);
            if is_done {
                return;
            }
        }
        lua_pushvalue(l, lua_upvalueindex(name));
        push_texts(l, texts);
        lua_rawset(l, -3);
    }
}

/// Pushes a new table of strings.
///
/// # Safety
/// As for [`enter`].
unsafe fn push_texts(l: *mut lua_State, texts: &[&[u8]]) {
    // SAFETY: two slots are used.
    unsafe {
        lua_createtable(l, c_int::try_from(texts.len()).unwrap_or(0), 0);
        fill(l, texts);
    }
}

/// Sets the first elements of the table on top of the stack.
///
/// # Safety
/// As for [`enter`].
unsafe fn fill(l: *mut lua_State, texts: &[&[u8]]) {
    // SAFETY: a slot is used.
    unsafe {
        for (at, text) in (1..).zip(texts) {
            push(l, text);
            lua_rawseti_(l, -2, at);
        }
    }
}

/// Returns whether the table on top of the stack has just so many elements, and no metatable.
///
/// # Safety
/// As for [`enter`].
unsafe fn has_no_more(l: *mut lua_State, len: usize) -> bool {
    // SAFETY: two slots are used, and given back. Each key is one that is there.
    unsafe {
        if lua_getmetatable(l, -1) != 0 {
            lua_settop(l, -2);
            return false;
        }
        let mut count = 0;
        lua_pushnil(l);
        while lua_next(l, -2) != 0 {
            lua_settop(l, -2);
            count += 1;
            if count > len {
                lua_settop(l, -2);
                return false;
            }
        }
    }
    true
}

/// `redis.call`, which raises errors.
const CALL: u8 = 0;
/// `redis.pcall`, which returns them.
const PCALL: u8 = 1;
/// `redis.acl_check_cmd`, which runs nothing.
const MAY_CALL: u8 = 2;

/// One of the three.
///
/// Upvalues: the [`State`], then [`NAMES`].
///
/// # Safety
/// Lua calls it. It may raise, and has only plain values.
unsafe extern "C-unwind" fn command<const WHICH: u8>(l: *mut lua_State) -> c_int {
    // SAFETY: the first upvalue is the state of this engine. `ask` has returned all borrows of the
    // reply, and nobody else runs until this function returns.
    unsafe {
        let state = &*lua_touserdata(l, lua_upvalueindex(1)).cast::<State>();
        let problem = match ask(l, state, WHICH) {
            Asked::Answered => {
                let bytes: &[u8] = match state.reply.try_borrow_unguarded() {
                    Ok(reply) => reply.as_bytes(),
                    Err(_) => &[],
                };
                match bytes.strip_prefix(b"-") {
                    Some(line) => line_of(line).map_or(line, |(line, _)| line),
                    None if put(l, state.protocol.get(), bytes, DEPTH_MAX).is_some() => return 1,
                    None => MALFORMED.as_bytes(),
                }
            }
            Asked::Refused(why) => why.as_bytes(),
            Asked::Over => {
                push(l, b"the script was ended");
                return raise(l);
            }
        };
        lua_createtable(l, 0, 2);
        put_error(l, problem);
        if WHICH != PCALL {
            return raise(l);
        }
        lua_pushvalue(l, lua_upvalueindex(IGNORE));
        lua_pushboolean(l, 1);
        lua_rawset(l, -3);
        1
    }
}

/// Raises what is on top of the stack.
///
/// # Safety
/// As for [`command`].
unsafe fn raise(l: *mut lua_State) -> c_int {
    // SAFETY: the caller has nothing to drop.
    unsafe { lua_error(l) }
}

/// The outcome of a command.
#[derive(Clone, Copy)]
enum Asked {
    /// The host has written a reply.
    Answered,
    Refused(&'static str),
    /// The run is over.
    Over,
}

/// Runs a command of the host. Raises nothing, and keeps a panic for later.
fn ask(l: *mut lua_State, state: &State, which: u8) -> Asked {
    let asked = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: called by Lua, so its arguments are on the stack.
        let asked = unsafe { run_command(l, state, which) };
        let bytes = state.reply.borrow().as_bytes().len();
        match asked {
            Asked::Answered if state.step(bytes / 16).is_err() => Asked::Over,
            asked => asked,
        }
    }));
    asked.unwrap_or_else(|payload| keep_panic(state, payload))
}

#[cold]
fn keep_panic(state: &State, payload: Box<dyn Any + Send>) -> Asked {
    state.end("ERR a command has panicked");
    state.panic.set(Some(payload));
    Asked::Over
}

/// # Safety
/// The arguments of a call are on the stack, and nothing else.
unsafe fn run_command(l: *mut lua_State, state: &State, which: u8) -> Asked {
    // SAFETY: this only looks.
    let len = unsafe { lua_gettop(l) } as usize;
    if len == 0 {
        return Asked::Refused(NO_COMMAND);
    }
    if state.step(100).is_err() {
        return Asked::Over;
    }
    let mut few = [&[][..]; FEW];
    let mut many = Vec::new();
    let slices = match few.get_mut(..len) {
        Some(slices) => slices,
        None => {
            many.resize(len, &[][..]);
            &mut many[..]
        }
    };
    let mut numbers = state.numbers.borrow_mut();
    numbers.clear();
    let mut has_numbers = false;
    for (at, slice) in (1..).zip(&mut *slices) {
        // SAFETY: the arguments stay on the stack for longer than the slices are used. The type is
        // looked at first, so nothing is converted.
        unsafe {
            match lua_type(l, at) {
                LUA_TSTRING => *slice = text(l, at).unwrap_or_default(),
                LUA_TNUMBER => {
                    has_numbers = true;
                    write_number(lua_tonumber(l, at), &mut numbers);
                    numbers.push(0);
                }
                _ => return Asked::Refused(BAD_ARGUMENTS),
            }
        }
    }
    if has_numbers {
        let mut texts = numbers.split(|byte| *byte == 0);
        for (at, slice) in (1..).zip(&mut *slices) {
            // SAFETY: this only looks.
            if unsafe { lua_type(l, at) } == LUA_TNUMBER {
                *slice = texts.next().unwrap_or_default();
            }
        }
    }
    let mut reply = state.reply.borrow_mut();
    reply.clear();
    if reply.capacity() > KEPT_BYTES {
        reply.shrink_to(KEPT_BYTES);
    }
    reply.set_protocol(state.protocol.get());
    reply.set_limit(state.bytes_max);
    let args = Args::from_slices(slices);
    if which == MAY_CALL {
        let may = host::with(|host| host.may_call(args)).flatten();
        let Some(may) = may else {
            return Asked::Refused(NO_SUCH_COMMAND);
        };
        reply.raw(if may { b"#t\r\n" } else { b"#f\r\n" });
        return Asked::Answered;
    }
    match host::with(|host| host.call(args, &mut reply)) {
        None => Asked::Refused(NO_RUN),
        Some(()) if reply.is_over() => Asked::Refused(TOO_LARGE),
        Some(()) => Asked::Answered,
    }
}

/// Writes a number as an argument.
fn write_number(number: f64, out: &mut Vec<u8>) {
    let integer = number as i64;
    // Of the largest it is not known whether it is one.
    if integer as f64 == number && integer.unsigned_abs() < i64::MAX as u64 {
        out.extend_from_slice(itoa::Buffer::new().format(integer).as_bytes());
    } else if number.is_finite() {
        out.extend_from_slice(tidewheel_resp::format_f64_short(number).as_bytes());
    } else {
        out.extend_from_slice(number::general(number, 17).as_bytes());
    }
}

/// Lua's `unpack`. That one computes the number of results so that it overflows, and the compiler
/// takes for granted that it does not.
pub(crate) fn unpack(lua: &Lua) -> mlua::Result<Function> {
    // SAFETY: it takes what Lua's functions take.
    unsafe { lua.create_c_function(unpack_some) }
}

/// # Safety
/// Lua calls it. It may raise, and has only plain values.
unsafe extern "C-unwind" fn unpack_some(l: *mut lua_State) -> c_int {
    // SAFETY: there is a slot for each result before it is pushed.
    unsafe {
        luaL_checktype(l, 1, LUA_TTABLE);
        let first = luaL_optinteger(l, 2, 1);
        let last = match lua_type(l, 3) {
            LUA_TNONE | LUA_TNIL => lua_objlen(l, 1) as lua_Integer,
            _ => luaL_checkinteger(l, 3),
        };
        // Lua counts in 32 bits.
        let (first, last) = (first as i32, last as i32);
        if first > last {
            return 0;
        }
        let count = i64::from(last) - i64::from(first) + 1;
        let has_room = c_int::try_from(count).map(|count| lua_checkstack(l, count) != 0);
        if has_room != Ok(true) {
            return luaL_error(l, c"too many results to unpack".as_ptr());
        }
        for at in first..=last {
            lua_rawgeti_(l, 1, at);
        }
        count as c_int
    }
}

/// Pushes the value that is the first reply in `bytes`, and returns what follows it. `None` if the
/// bytes are no reply; then something else may have been pushed.
///
/// # Safety
/// The running function is [`command`]. It may raise, and has only plain values.
unsafe fn put(l: *mut lua_State, protocol: Protocol, bytes: &[u8], depth: usize) -> Option<&[u8]> {
    let (line, rest) = line_of(bytes)?;
    let (&kind, line) = line.split_first()?;
    // SAFETY: each kind pushes one value in the end, and has five on the stack at most.
    unsafe {
        match kind {
            b':' => lua_pushnumber(l, parse_i64(line)? as f64),
            b'$' | b'*' if line == b"-1" => put_nothing(l, protocol),
            b'$' => {
                let (text, rest) = text_of(line, rest)?;
                push(l, text);
                return Some(rest);
            }
            b'+' => {
                lua_createtable(l, 0, 1);
                lua_pushvalue(l, lua_upvalueindex(OK));
                push(l, line);
                lua_rawset(l, -3);
            }
            b'*' | b'>' => return put_array(l, protocol, (line, rest), depth.checked_sub(1)?),
            b'-' => {
                lua_createtable(l, 0, 1);
                put_error(l, line);
            }
            b'_' => lua_pushnil(l),
            b'#' => lua_pushboolean(l, c_int::from(line == b"t")),
            b',' => {
                let number: f64 = std::str::from_utf8(line).ok()?.parse().ok()?;
                lua_createtable(l, 0, 1);
                lua_pushvalue(l, lua_upvalueindex(DOUBLE));
                lua_pushnumber(l, number);
                lua_rawset(l, -3);
            }
            b'(' => {
                lua_createtable(l, 0, 1);
                lua_pushvalue(l, lua_upvalueindex(BIG_NUMBER));
                push(l, line);
                lua_rawset(l, -3);
            }
            b'=' => {
                let (text, rest) = text_of(line, rest)?;
                let (format, text) = text.split_at_checked(4)?;
                luaL_checkstack_(l, 8, ptr::null());
                lua_createtable(l, 0, 1);
                lua_pushvalue(l, lua_upvalueindex(VERBATIM));
                lua_createtable(l, 0, 2);
                lua_pushvalue(l, lua_upvalueindex(STRING));
                push(l, text);
                lua_rawset(l, -3);
                lua_pushvalue(l, lua_upvalueindex(FORMAT));
                push(l, format.get(..3)?);
                lua_rawset(l, -3);
                lua_rawset(l, -3);
                return Some(rest);
            }
            b'%' | b'~' => {
                let (is_map, depth) = (kind == b'%', depth.checked_sub(1)?);
                return put_pairs(l, protocol, (line, rest), is_map, depth);
            }
            _ => return None,
        }
    }
    Some(rest)
}

/// # Safety
/// As for [`put`].
unsafe fn put_array<'b>(
    l: *mut lua_State,
    protocol: Protocol,
    (line, mut rest): (&[u8], &'b [u8]),
    depth: usize,
) -> Option<&'b [u8]> {
    let len = count(line)?;
    // SAFETY: each element is pushed, and becomes one of the table's.
    unsafe {
        luaL_checkstack_(l, 8, ptr::null());
        lua_createtable(l, room(len, rest), 0);
        for at in 1..=c_int::try_from(len).ok()? {
            rest = put(l, protocol, rest, depth)?;
            lua_rawseti_(l, -2, at);
        }
    }
    Some(rest)
}

/// # Safety
/// As for [`put`].
unsafe fn put_pairs<'b>(
    l: *mut lua_State,
    protocol: Protocol,
    (line, mut rest): (&[u8], &'b [u8]),
    is_map: bool,
    depth: usize,
) -> Option<&'b [u8]> {
    let len = count(line)?;
    // SAFETY: each pair is pushed, and becomes one of the inner table's, or is taken back.
    unsafe {
        luaL_checkstack_(l, 10, ptr::null());
        lua_createtable(l, 0, 1);
        lua_pushvalue(l, lua_upvalueindex(if is_map { MAP } else { SET }));
        lua_createtable(l, 0, room(len, rest));
        for _ in 0..len {
            rest = put(l, protocol, rest, depth)?;
            match is_map {
                true => rest = put(l, protocol, rest, depth)?,
                false => lua_pushboolean(l, 1),
            }
            let is_key = match lua_type(l, -2) {
                LUA_TNIL => false,
                LUA_TNUMBER => !lua_tonumber(l, -2).is_nan(),
                _ => true,
            };
            match is_key {
                true => lua_rawset(l, -3),
                false => lua_settop(l, -3),
            }
        }
        lua_rawset(l, -3);
    }
    Some(rest)
}

/// Pushes the absence of a value in RESP2.
///
/// # Safety
/// A slot is free.
unsafe fn put_nothing(l: *mut lua_State, protocol: Protocol) {
    // SAFETY: neither raises.
    unsafe {
        match protocol {
            Protocol::Resp2 => lua_pushboolean(l, 0),
            Protocol::Resp3 => lua_pushnil(l),
        }
    }
}

/// Sets the field `err` of the table on top of the stack. Text of one word has no code.
///
/// # Safety
/// As for [`put`].
unsafe fn put_error(l: *mut lua_State, line: &[u8]) {
    // SAFETY: three values are pushed, and taken again.
    unsafe {
        lua_pushvalue(l, lua_upvalueindex(ERR));
        if line.contains(&b' ') {
            push(l, line);
        } else {
            push(l, b"ERR ");
            push(l, line);
            lua_concat(l, 2);
        }
        lua_rawset(l, -3);
    }
}

/// How many elements to make room for: not more than can follow.
fn room(len: usize, rest: &[u8]) -> c_int {
    len.min(rest.len() / 3).min(ROOM_MAX) as c_int
}

fn count(line: &[u8]) -> Option<usize> {
    parse_u64(line).and_then(|len| usize::try_from(len).ok())
}

/// The first line, without its end, and what follows it.
fn line_of(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.iter().position(|byte| *byte == b'\r')?;
    Some((bytes.get(..end)?, bytes.get(end + 2..)?))
}

/// The text behind a line with its length, and what follows it.
fn text_of<'b>(line: &[u8], rest: &'b [u8]) -> Option<(&'b [u8], &'b [u8])> {
    let (text, rest) = rest.split_at_checked(count(line)?)?;
    Some((text, rest.get(2..)?))
}

/// Pushes a string.
///
/// # Safety
/// A slot is free. It may raise.
unsafe fn push(l: *mut lua_State, text: &[u8]) {
    // SAFETY: Lua copies the bytes.
    unsafe { lua_pushlstring_(l, text.as_ptr().cast(), text.len()) }
}

/// The bytes of a string on the stack; `None` if it is none.
///
/// # Safety
/// The value stays on the stack for as long as the bytes are used.
unsafe fn text<'l>(l: *mut lua_State, at: c_int) -> Option<&'l [u8]> {
    // SAFETY: of a string `lua_tolstring` changes nothing.
    unsafe {
        if lua_type(l, at) != LUA_TSTRING {
            return None;
        }
        let mut len = 0;
        let bytes = lua_tolstring(l, at, &raw mut len);
        Some(slice::from_raw_parts(bytes.cast(), len))
    }
}
