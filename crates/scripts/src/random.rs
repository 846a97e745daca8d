//! `math.random`: a generator of our own, so that no script's seed reaches the next one.
//!
//! It is the 48-bit linear congruential generator of `drand48`, so equal seeds give the numbers
//! that they give elsewhere.

use std::rc::Rc;

use mlua::{Lua, MultiValue, Table, Value};

use crate::error::{bad_argument, raise};
use crate::sandbox::add;
use crate::state::State;

const FACTOR: u64 = 0x5_DEEC_E66D;
const MORE: u64 = 0xB;
const MASK: u64 = (1 << 48) - 1;

/// What 31 bits of it are divided by.
const END: f64 = 2_147_483_647.0;

pub(crate) fn install(lua: &Lua, state: &Rc<State>, native: &Table) -> mlua::Result<()> {
    add(lua, state, native, "random", random)?;
    add(
        lua,
        state,
        native,
        "randomseed",
        |lua, state, args: MultiValue| {
            let seed = integer(lua, &args, 0, "randomseed")?;
            let seed = u64::from(seed as i32 as u32);
            state.random.set(seed << 16 | 0x330E);
            Ok(())
        },
    )
}

fn random(lua: &Lua, state: &State, args: MultiValue) -> mlua::Result<Value> {
    let next = (state.random.get().wrapping_mul(FACTOR).wrapping_add(MORE)) & MASK;
    state.random.set(next);
    let part = ((next >> 17) as f64 % END) / END;
    let (low, high, place) = match args.len() {
        0 => return Ok(Value::Number(part)),
        1 => (1, integer(lua, &args, 0, "random")?, 1),
        2 => (
            integer(lua, &args, 0, "random")?,
            integer(lua, &args, 1, "random")?,
            2,
        ),
        _ => return Err(raise(lua, "wrong number of arguments")),
    };
    if low > high {
        return Err(bad_argument(lua, place, "random", "interval is empty"));
    }
    let span = (high as f64 - low as f64) + 1.0;
    Ok(Value::Number((part * span).floor() + low as f64))
}

fn integer(lua: &Lua, args: &MultiValue, at: usize, name: &str) -> mlua::Result<i64> {
    let value = args.get(at).cloned().unwrap_or(Value::Nil);
    let kind = if args.len() > at {
        value.type_name()
    } else {
        "no value"
    };
    match lua.coerce_number(value)? {
        Some(number) => Ok(number as i64),
        None => {
            let why = format!("number expected, got {kind}");
            Err(bad_argument(lua, at + 1, name, &why))
        }
    }
}
