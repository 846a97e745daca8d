//! Scripts that would run, grow or nest for ever are ended.

use tidewheel_resp::Protocol;
use tidewheel_scripts::{Engine, Limits};

use crate::host::{Fake, answer, run, text};

#[test]
fn an_interrupt_ends_every_kind_of_loop() {
    let mut engine = Engine::new(Limits::default()).unwrap();
    for body in [
        "while true do end",
        "while true do pcall(function() while true do end end) end",
        "while true do xpcall(function() while true do end end, function() while true do end end) end",
        "local f = coroutine.wrap(function() while true do end end) f()",
        "while true do coroutine.resume(coroutine.create(function() while true do end end)) end",
        "return string.find(string.rep('a', 5000), string.rep('a-', 20) .. 'b')",
        "return (string.rep('a', 5000)):gsub(string.rep('a*', 20) .. 'b', '')",
        "local t = {} for i = 1, 900 do t = {t, t} end return cjson.encode(t)",
        "return load(function() return ' ' end)",
    ] {
        let mut host = Fake {
            patience: Some(5),
            ..Fake::default()
        };
        let reply = run(&mut engine, &mut host, body.as_bytes(), Protocol::Resp2);
        let reply = String::from_utf8_lossy(&reply).into_owned();
        assert!(
            reply.starts_with("-ERR Script killed by user") || reply.starts_with("-ERR not enough"),
            "{body}: {reply}"
        );
        assert_eq!(text(&mut engine, "return 1"), ":1");
    }
}

#[test]
fn memory_and_nesting_are_bounded() {
    let mut engine = Engine::new(Limits::default()).unwrap();
    for (body, reply) in [
        (
            "local t = {} for i = 1, 1e9 do t[i] = {} end",
            "not enough memory",
        ),
        (
            "local s = 'x' while true do s = s .. s end",
            "not enough memory",
        ),
        ("return string.rep('x', 2^30)", "not enough memory"),
        ("local a = {} a[1] = a a[2] = a return a", ""),
        (
            "local function f() local ok = pcall(f) return ok end return tostring(f())",
            "",
        ),
        (
            "local function f() return coroutine.wrap(f)() end return f()",
            "",
        ),
        (
            "local function f() return ('x'):gsub('x', f) end return f()",
            "",
        ),
        (
            "return string.find(string.rep('a', 1000), string.rep('a?', 100000))",
            "pattern too complex",
        ),
        (
            "local t = {} table.insert(t, -2^31, 1)",
            "position out of bounds",
        ),
        (
            "return #cmsgpack.unpack(string.rep('\\145', 1e6))",
            "stack overflow",
        ),
    ] {
        let got = text(&mut engine, body);
        assert!(got.contains(reply), "{body}: {:.200}", got);
        assert_eq!(text(&mut engine, "return 1"), ":1");
    }
    assert_eq!(answer("return loadstring('\\27Lua') == nil"), ":1");
}
