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
