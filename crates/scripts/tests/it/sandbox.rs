//! A script leaves nothing behind for the next one.

use tidewheel_scripts::{Engine, Limits};

use crate::host::text;

#[test]
fn no_script_changes_what_the_next_one_sees() {
    let mut engine = Engine::new(Limits::default()).unwrap();
    for body in [
        "rawset(_G, 'x', 1)",
        "table.insert(redis, 1)",
        "table.sort(_G)",
        "getmetatable('').__index.sub = nil",
        "getmetatable(_G).__index = nil",
        "cjson.encode_max_depth(1)",
        "math.randomseed(1)",
        "redis.setresp(3)",
        "KEYS.x = 1 setmetatable(KEYS, {})",
        "for _, v in pairs(_G) do pcall(rawset, v, 'x', 1) end",
    ] {
        text(&mut engine, body);
    }
    assert_eq!(
        text(&mut engine, "return {pcall(function() return x end)}").get(..2),
        Some("*2")
    );
    assert_eq!(
        text(&mut engine, "return cjson.encode({{{}}})"),
        "$6 [[{}]]"
    );
    assert_eq!(text(&mut engine, "return tostring(KEYS.x)"), "$3 nil");
    assert_eq!(text(&mut engine, "return ('abc'):sub(2)"), "$2 bc");
}

#[test]
fn keys_and_arguments_are_those_of_the_run() {
    let mut engine = Engine::new(Limits::default()).unwrap();
    let shows = "local t = {} for k, v in pairs(KEYS) do t[#t + 1] = k .. '=' .. v end \
                 for k, v in pairs(ARGV) do t[#t + 1] = k .. '=' .. v end \
                 return table.concat(t, ' ') .. tostring(getmetatable(KEYS))";
    let fresh = text(&mut engine, shows);
    assert_eq!(fresh, "$30 1=key:1 2=key:2 1=first 2=2nil");
    for body in [
        "KEYS[1] = nil",
        "KEYS[3] = 'x'",
        "KEYS.x = 1 ARGV.x = 1",
        "setmetatable(KEYS, {__index = function() return 1 end})",
        "for i = 1, 100 do KEYS[i] = i end for i = 1, 99 do KEYS[i] = nil end",
        "KEYS[1], KEYS[2] = nil, nil KEYS[0] = 1 KEYS[-1] = 2",
        "KEYS[1] = {} ARGV[2] = KEYS",
    ] {
        text(&mut engine, body);
        assert_eq!(text(&mut engine, shows), fresh, "{body}");
    }
}

/// The bound is in time that others lose, which no test can assert; this shows that the memory
/// goes.
#[test]
fn a_large_table_of_arguments_is_not_kept() {
    let mut engine = Engine::new(Limits::default()).unwrap();
    text(&mut engine, "return 1");
    let before = engine.memory();
    let grows =
        "for i = 1, 1e5 do KEYS['x' .. i] = 1 end for i = 1, 1e5 do KEYS['x' .. i] = nil end";
    text(&mut engine, grows);
    for _ in 0..100 {
        text(&mut engine, "return 1");
    }
    text(&mut engine, "collectgarbage()");
    let kept = engine.memory().saturating_sub(before);
    assert!(kept < 1 << 20, "{kept}");
}
