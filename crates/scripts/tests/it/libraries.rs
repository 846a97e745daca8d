//! Libraries: what their code may do, what is kept of them, what they leave to others.

use tidewheel_resp::Writer;
use tidewheel_scripts::{Engine, Limits};

use crate::host::{Fake, text};

fn engine() -> Engine {
    Engine::new(Limits::default()).unwrap()
}

/// The names that a library registers, or why it fails.
fn load(engine: &mut Engine, id: u64, code: &str) -> Result<Vec<String>, String> {
    load_with(engine, id, code, &mut Fake::default())
}

fn load_with(
    engine: &mut Engine,
    id: u64,
    code: &str,
    host: &mut Fake,
) -> Result<Vec<String>, String> {
    let code = format!("#!lua name=lib\n{code}");
    let loaded = engine.load_library(id, code.as_bytes(), host);
    loaded
        .map(|functions| functions.into_iter().map(|f| f.name).collect())
        .map_err(|why| why.to_string())
}

/// The reply of a library's function, in RESP2.
fn call(engine: &mut Engine, id: u64, at: usize) -> String {
    let mut out = Writer::default();
    let given: (&[&[u8]], &[&[u8]]) = (&[b"key"], &[b"first", b"2"]);
    engine.call((id, at), "f", given, &mut Fake::default(), &mut out);
    let reply = String::from_utf8_lossy(out.as_bytes()).replace("\r\n", " ");
    reply.trim_end().to_owned()
}

#[test]
fn functions_are_called_by_their_place_and_keep_what_is_their_library_s() {
    let mut engine = engine();
    let count = "local n = 0\n\
                 redis.register_function('count', function() n = n + 1 return n end)\n\
                 redis.register_function('show', function(k, a) return {n, k[1], a[2]} end)";
    assert_eq!(load(&mut engine, 1, count).unwrap(), ["count", "show"]);
    assert_eq!(load(&mut engine, 2, count).unwrap(), ["count", "show"]);
    for n in 1..=3 {
        assert_eq!(call(&mut engine, 1, 0), format!(":{n}"));
    }
    assert_eq!(call(&mut engine, 1, 1), "*3 :3 $3 key $1 2");
    assert_eq!(call(&mut engine, 2, 1), "*3 :0 $3 key $1 2");
    engine.drop_library(1);
    assert_eq!(engine.libraries().collect::<Vec<_>>(), [2]);
    assert!(!engine.has_library(1));
    assert_eq!(call(&mut engine, 1, 0), "-ERR Function not found");
    assert_eq!(call(&mut engine, 2, 7), "-ERR Function not found");
    assert_eq!(call(&mut engine, 2, 0), ":1");
    assert_eq!(text(&mut engine, "return 7"), ":7");
    engine.forget_scripts();
    assert_eq!(text(&mut engine, "return 8"), ":8");
    assert_eq!(call(&mut engine, 2, 0), ":2");
    engine.forget_all();
    assert!(!engine.has_library(2));
}

#[test]
fn each_call_has_its_own_random_numbers() {
    let mut engine = engine();
    let code = "redis.register_function('f', function() return math.random(2^30) end)";
    load(&mut engine, 1, code).unwrap();
    assert_ne!(call(&mut engine, 1, 0), call(&mut engine, 1, 0));
}

/// Places are used again, and never by two.
#[test]
fn libraries_come_and_go_beside_scripts() {
    let mut engine = Engine::new(Limits {
        scripts: 3,
        ..Limits::default()
    })
    .unwrap();
    for i in 0..200_u64 {
        let code = format!(
            "redis.register_function('a', function() return {i} end)\n\
             redis.register_function('b', function() return {i} + 1 end)"
        );
        load(&mut engine, i, &code).unwrap();
        assert_eq!(text(&mut engine, &format!("return {i}")), format!(":{i}"));
        load(&mut engine, 1000 + i, "return x").unwrap_err();
        for kept in i.saturating_sub(5)..=i {
            assert_eq!(call(&mut engine, kept, 0), format!(":{kept}"));
            assert_eq!(call(&mut engine, kept, 1), format!(":{}", kept + 1));
        }
        if i >= 5 {
            engine.drop_library(i - 5);
        }
    }
}

/// While a library loads there is nothing but what registers functions.
#[test]
fn the_code_of_a_library_reaches_nothing() {
    let mut engine = engine();
    for name in [
        "redis.call",
        "redis.pcall",
        "redis.sha1hex",
        "redis.setresp",
        "redis.error_reply",
        "KEYS",
        "ARGV",
        "_G",
        "pcall",
        "error",
        "rawset",
        "setmetatable",
        "getmetatable",
        "pairs",
        "loadstring",
        "load",
        "dofile",
        "require",
        "string",
        "table",
        "os",
        "cjson",
        "coroutine",
        "print",
        "collectgarbage",
        "newproxy",
        "setfenv",
        "getfenv",
        "debug",
        "io",
        "package",
    ] {
        let why = load(&mut engine, 1, &format!("local x = {name}")).unwrap_err();
        let last = name.rsplit('.').next().unwrap();
        let expected = format!("Script attempted to access nonexistent global variable '{last}'");
        assert!(why.contains(&expected), "{name}: {why}");
    }
    for code in [
        "x = 1",
        "redis = 1",
        "redis.x = 1",
        "redis.log = 1",
        "function f() end",
    ] {
        let why = load(&mut engine, 1, code).unwrap_err();
        assert!(
            why.contains("Attempt to modify a readonly table"),
            "{code}: {why}"
        );
    }
    let mut host = Fake::default();
    let logs = "redis.log(redis.LOG_NOTICE, 'loads', redis.REDIS_VERSION)";
    load_with(&mut engine, 1, logs, &mut host).unwrap_err();
    assert_eq!(host.logs, [(2, b"loads 8.2.3".to_vec())]);
    assert_eq!(host.calls, 0);
}

/// What fails leaves no function, no open load and no memory.
#[test]
fn what_a_library_takes_is_bounded() {
    let mut engine = engine();
    let before = engine.memory();
    for (code, expected) in [
        (
            "local t = {} while true do t[#t + 1] = {1, 2, 3} end",
            "not enough memory",
        ),
        (
            "local s = ('x'):rep(1000) while true do s = s .. s end",
            "not enough memory",
        ),
        ("('x'):rep(1e9)", "not enough memory"),
        (
            "local function f() return 1 + f() end f()",
            "stack overflow",
        ),
        (
            "local n = 0 while true do n = n + 1 redis.register_function('f' .. n, function() end) end",
            "too many functions",
        ),
        (
            "local d = ('d'):rep(300000) for n = 1, 9 do redis.register_function{function_name='f' .. n, \
          description=d, callback=function() end} end",
            "too many functions",
        ),
        (
            "redis.register_function('f', function() end) local x = nil .. 1",
            "attempt to concatenate",
        ),
    ] {
        let why = load(&mut engine, 1, code).unwrap_err();
        assert!(why.contains(expected), "{code}: {why}");
        assert!(!engine.has_library(1));
        assert_eq!(text(&mut engine, "return redis.call('echo', 'x')"), "$1 x");
    }
    let mut host = Fake {
        patience: Some(20),
        ..Fake::default()
    };
    let why = load_with(&mut engine, 1, "while true do end", &mut host).unwrap_err();
    assert!(
        why.starts_with("ERR Error registering functions: ERR Script killed"),
        "{why}"
    );
    // Lua gives stacks and tables of strings back bit by bit.
    engine.forget_all();
    assert!(
        engine.memory() < before + (8 << 20),
        "{} {before}",
        engine.memory()
    );
}

/// Functions and scripts do not see each other's globals, whoever ran last.
#[test]
fn functions_and_scripts_see_their_own_globals() {
    let mut engine = engine();
    let code = "local early = redis\n\
        local register = redis.register_function\n\
        redis.register_function('keys', function() return {pcall(function() return KEYS end)} end)\n\
        redis.register_function('text', function() return loadstring('return ARGV')() end)\n\
        redis.register_function('early', function() return early.call('echo', 'x') end)\n\
        redis.register_function('late', function() register('g', function() end) end)\n\
        redis.register_function('call', function() return redis.call('echo', 'x') end)\n\
        redis.register_function('all', function()\n\
            local t = {}\n\
            for name in pairs(_G) do t[#t + 1] = name end\n\
            for name in pairs(redis) do t[#t + 1] = name end\n\
            table.sort(t)\n\
            return table.concat(t, ' ')\n\
        end)";
    load(&mut engine, 1, code).unwrap();
    for _ in 0..2 {
        assert_eq!(text(&mut engine, "return KEYS[1]"), "$5 key:1");
        let keys = call(&mut engine, 1, 0);
        assert!(
            keys.contains("nonexistent global variable 'KEYS'"),
            "{keys}"
        );
        let text = call(&mut engine, 1, 1);
        assert!(
            text.contains("nonexistent global variable 'ARGV'"),
            "{text}"
        );
        let early = call(&mut engine, 1, 2);
        assert!(
            early.contains("nonexistent global variable 'call'"),
            "{early}"
        );
        let late = call(&mut engine, 1, 3);
        assert!(
            late.contains("can only be called on FUNCTION LOAD command"),
            "{late}"
        );
        assert_eq!(call(&mut engine, 1, 4), "$1 x");
        let all = call(&mut engine, 1, 5);
        for name in [" KEYS", " ARGV", "register_function", "breakpoint", "debug"] {
            assert!(!all.contains(name), "{name}: {all}");
        }
        let names = "local t = {} for name in pairs(redis) do t[#t + 1] = name end \
            return table.concat(t, ' ')";
        let of_scripts = crate::host::text(&mut engine, names);
        for name in of_scripts.split(' ').skip(1) {
            let is_own = ["breakpoint", "debug", "replicate_commands"].contains(&name);
            assert!(
                is_own || all.split(' ').any(|other| other == name),
                "{name}: {all}"
            );
        }
    }
}

/// A function may do to its own tables what it likes; what it changes of others is refused.
#[test]
fn no_function_changes_what_others_see() {
    let mut engine = engine();
    for (id, body) in (0..).zip([
        "rawset(_G, 'x', 1)",
        "rawset(redis, 'call', 1)",
        "table.insert(redis, 1)",
        "table.sort(_G)",
        "getmetatable('').__index.sub = nil",
        "getmetatable(_G).__index = nil",
        "getmetatable(redis).__index = nil",
        "x = 1",
        "redis.setresp(3)",
        "cjson.encode_max_depth(1)",
        "keys[1] = nil keys.x = 1 setmetatable(args, {__index = function() return 1 end})",
        "for _, v in pairs(_G) do pcall(rawset, v, 'x', 1) end",
        "local co = coroutine.wrap(function() coroutine.yield() end) co() error('x')",
    ]) {
        let code = format!("redis.register_function('f', function(keys, args) {body} end)");
        load(&mut engine, id, &code).unwrap();
        call(&mut engine, id, 0);
        let shows = "redis.register_function('f', function(keys, args)\n\
            local t = {keys[1], args[1], args[2], tostring(getmetatable(args)), tostring(keys.x)}\n\
            t[#t + 1] = cjson.encode({{{}}}) .. ('abc'):sub(2) .. type(redis.call)\n\
            t[#t + 1] = tostring(pcall(function() return x end))\n\
            return table.concat(t, ' ')\n\
        end)";
        load(&mut engine, 1000, shows).unwrap();
        let expected = "key first 2 nil nil [[{}]]bcfunction false";
        assert!(call(&mut engine, 1000, 0).ends_with(expected), "{body}");
        assert_eq!(text(&mut engine, "return KEYS[1]"), "$5 key:1", "{body}");
    }
}
