//! `bit`: operations on numbers of 32 bits.

use mlua::{Lua, MultiValue, Table};

use crate::args::Given;

/// Added to a number, it moves the integer part into the lowest bits of the float.
const BIAS: f64 = 6_755_399_441_055_744.0;

pub(crate) fn table(lua: &Lua) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    one(lua, &table, "tobit", |bits| bits)?;
    one(lua, &table, "bnot", |bits| !bits)?;
    one(lua, &table, "bswap", u32::swap_bytes)?;
    fold(lua, &table, "band", |a, b| a & b)?;
    fold(lua, &table, "bor", |a, b| a | b)?;
    fold(lua, &table, "bxor", |a, b| a ^ b)?;
    shift(lua, &table, "lshift", |bits, by| bits << by)?;
    shift(lua, &table, "rshift", |bits, by| bits >> by)?;
    shift(lua, &table, "arshift", |bits, by| {
        (bits as i32 >> by) as u32
    })?;
    shift(lua, &table, "rol", u32::rotate_left)?;
    shift(lua, &table, "ror", u32::rotate_right)?;
    let function = lua.create_function(|lua, args: MultiValue| {
        let given = Given::new(lua, "tohex", args);
        let bits = bits(given.number(0)?);
        let digits = match given.is_none_or_nil(1) {
            true => 8,
            false => self::bits(given.number(1)?) as i32,
        };
        let width = (digits.unsigned_abs() as usize).min(8);
        let text = if digits < 0 {
            format!("{bits:08X}")
        } else {
            format!("{bits:08x}")
        };
        Ok(text[8 - width..].to_owned())
    })?;
    table.raw_set("tohex", function)?;
    Ok(table)
}

fn one(lua: &Lua, table: &Table, name: &'static str, f: fn(u32) -> u32) -> mlua::Result<()> {
    let function = lua.create_function(move |lua, args: MultiValue| {
        let given = Given::new(lua, name, args);
        Ok(signed(f(bits(given.number(0)?))))
    })?;
    table.raw_set(name, function)
}

fn fold(lua: &Lua, table: &Table, name: &'static str, f: fn(u32, u32) -> u32) -> mlua::Result<()> {
    let function = lua.create_function(move |lua, args: MultiValue| {
        let given = Given::new(lua, name, args);
        let mut all = bits(given.number(0)?);
        for at in 1..given.len() {
            all = f(all, bits(given.number(at)?));
        }
        Ok(signed(all))
    })?;
    table.raw_set(name, function)
}

fn shift(lua: &Lua, table: &Table, name: &'static str, f: fn(u32, u32) -> u32) -> mlua::Result<()> {
    let function = lua.create_function(move |lua, args: MultiValue| {
        let given = Given::new(lua, name, args);
        let (value, by) = (bits(given.number(0)?), bits(given.number(1)?));
        Ok(signed(f(value, by & 31)))
    })?;
    table.raw_set(name, function)
}

/// The lowest 32 bits of a number, rounded.
fn bits(number: f64) -> u32 {
    (number + BIAS).to_bits() as u32
}

fn signed(bits: u32) -> i64 {
    i64::from(bits as i32)
}
