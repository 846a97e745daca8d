//! What the engine keeps, and what it counts.

use std::panic::{AssertUnwindSafe, catch_unwind};

use tidewheel_resp::{Args, Writer};
use tidewheel_scripts::{Engine, Host, Limits, Sha};

use crate::host::text;

#[test]
fn the_oldest_unused_script_is_dropped_above_the_bound() {
    let limits = Limits {
        scripts: 2,
        ..Limits::default()
    };
    let mut engine = Engine::new(limits).unwrap();
    for i in 0..100 {
        assert_eq!(text(&mut engine, &format!("return {i}")), format!(":{i}"));
    }
    engine.forget_all();
    assert_eq!(text(&mut engine, "return 1"), ":1");
    assert!(engine.memory() > 0);
    let error = engine
        .compile(&Sha::of(b"x"), b"return return")
        .unwrap_err();
    assert!(
        error.line().starts_with("ERR Error compiling script"),
        "{error}"
    );
}

/// A host that fails.
struct Panics;

impl Host for Panics {
    fn call(&mut self, _: Args<'_>, _: &mut Writer) {
        panic!("a command");
    }

    fn may_call(&mut self, _: Args<'_>) -> Option<bool> {
        panic!("a question");
    }

    fn log(&mut self, _: i64, _: &[u8]) {
        panic!("a log");
    }

    fn interrupt(&mut self) -> Option<String> {
        panic!("an interrupt");
    }
}

/// A panic of the host passes by all of Lua, whatever the script does, and the engine is as before.
#[test]
fn a_panic_of_the_host_is_the_callers() {
    let mut engine = Engine::new(Limits::default()).unwrap();
    for body in [
        "redis.call('get', 'a')",
        "redis.pcall('get', 'a')",
        "redis.acl_check_cmd('get', 'a')",
        "while true do pcall(redis.call, 'get', 'a') end",
        "return coroutine.wrap(function() redis.call('get', 'a') end)()",
        "return {pcall(function() return redis.pcall('get', 'a') end)}",
        "while true do end",
        "while true do pcall(function() while true do end end) end",
        "return string.find(string.rep('a', 5000), string.rep('a-', 20) .. 'b')",
    ] {
        let mut out = Writer::default();
        let ran = catch_unwind(AssertUnwindSafe(|| {
            let name = Sha::of(body.as_bytes());
            engine.run(&name, body.as_bytes(), &[], &[], &mut Panics, &mut out);
        }));
        assert!(ran.is_err(), "{body}: {:?}", out.as_bytes().escape_ascii());
        assert_eq!(text(&mut engine, "return {1, 'a'}"), "*2 :1 $1 a");
    }
}

#[test]
fn a_script_asks_what_it_may_call() {
    let mut engine = Engine::new(Limits::default()).unwrap();
    for (body, reply) in [
        ("return redis.acl_check_cmd('get', 'a')", ":1"),
        ("return type(redis.acl_check_cmd('get'))", "$7 boolean"),
        ("return redis.acl_check_cmd('flushall')", "$-1"),
        (
            "return redis.acl_check_cmd('nosuch')",
            "-ERR Invalid command passed to redis.acl_check_cmd()",
        ),
        (
            "return redis.acl_check_cmd()",
            "-ERR Please specify at least one argument for this redis lib call",
        ),
        (
            "return redis.acl_check_cmd({})",
            "-ERR Lua redis lib command arguments must be strings or integers",
        ),
    ] {
        assert_eq!(text(&mut engine, body), reply, "{body}");
    }
}
