//! What the public holes of Lua in servers of this protocol were used for, tried here. Nothing
//! comes of it: each script gets the reply beside it, and the engine goes on.
//!
//! The interpreter is Lua 5.1 as it was published. Holes in its C code are closed outside of it:
//! `unpack` is ours, a reader function is called before the parser runs, bytecode is refused. The
//! codecs are in Rust.

use tidewheel_scripts::{Engine, Limits};

use crate::host::text;

/// A hole, a script that uses it, and a part of its reply.
const ATTACKS: &[(&str, &str, &str)] = &[
    // Bytecode is not checked by Lua, and can read and write all memory.
    (
        "CVE-2015-4335 bytecode",
        "return tostring(loadstring(string.char(27) .. 'Lua'))",
        "$3 nil",
    ),
    (
        "CVE-2015-4335 bytecode",
        "local n = 0 return tostring(load(function() n = n + 1 return n == 1 and string.char(27) or nil end))",
        "$3 nil",
    ),
    (
        "CVE-2015-4335 bytecode",
        "return tostring(string.dump)",
        "$3 nil",
    ),
    // Sizes and depths of the codecs.
    (
        "CVE-2018-11218 cmsgpack",
        "local t = {} for i = 1, 4000 do t = {t} end return #cmsgpack.pack(t)",
        ":",
    ),
    (
        "CVE-2018-11218 cmsgpack",
        "return cmsgpack.unpack(string.char(0xdd, 255, 255, 255, 255))",
        "-ERR",
    ),
    (
        "CVE-2018-11218 cmsgpack",
        "return cmsgpack.unpack(string.char(0xdb, 255, 255, 255, 255))",
        "-ERR",
    ),
    (
        "CVE-2018-11218 cmsgpack",
        "return #cmsgpack.pack(unpack({string.byte(string.rep('a', 7000), 1, -1)}))",
        ":7000",
    ),
    (
        "CVE-2018-11218 cmsgpack",
        "return {pcall(cmsgpack.unpack_limit, string.rep(string.char(1), 1e5), 2147483647, -1)}",
        "*2",
    ),
    (
        "CVE-2018-11219 struct",
        "return struct.pack('i2147483647', 1)",
        "-ERR",
    ),
    (
        "CVE-2018-11219 struct",
        "return struct.pack('>I99999999999999999999', 1)",
        "-ERR",
    ),
    (
        "CVE-2018-11219 struct",
        "return struct.unpack('c2147483647', 'a')",
        "-ERR",
    ),
    (
        "CVE-2018-11219 struct",
        "return struct.unpack('c0', 'a')",
        "-ERR",
    ),
    (
        "CVE-2018-11219 struct",
        "return struct.unpack('i', 'abcd', 2147483647)",
        "-ERR",
    ),
    (
        "CVE-2018-11219 struct",
        "return struct.unpack('i', 'abcd', -1)",
        "-ERR",
    ),
    (
        "CVE-2018-11219 struct",
        "return struct.size('c1073741824c1073741824c1073741824')",
        ":3221225472",
    ),
    (
        "CVE-2022-24834 cjson",
        "return #cjson.encode(string.rep(string.char(0), 12e6))",
        "-ERR not enough memory",
    ),
    (
        "CVE-2022-24834 cjson",
        "local t = {} for i = 1, 2000 do t = {t} end return cjson.encode(t)",
        "-ERR",
    ),
    (
        "CVE-2022-24834 cjson",
        "return cjson.decode(string.rep('[', 1e6))",
        "-ERR",
    ),
    (
        "CVE-2022-24834 cjson",
        "return cjson.encode({[2147483647] = 1})",
        "-ERR",
    ),
    (
        "CVE-2022-24834 cjson",
        "return #cjson.encode({[1] = 1, [4294967297] = 1})",
        "",
    ),
    // More values than Lua's stack has room for.
    (
        "CVE-2020-14147 getnum",
        "return struct.pack('c2147483648', 'a')",
        "-ERR",
    ),
    (
        "CVE-2021-32626 stack",
        "local t = {} for i = 1, 2000 do t = {t} end return #redis.pcall('echo', 1)",
        "",
    ),
    (
        "CVE-2021-32626 stack",
        "return redis.call('mget', unpack({string.byte(string.rep('a', 7900), 1, -1)}))",
        "*7900",
    ),
    (
        "CVE-2021-32626 stack",
        "return select('#', string.byte(string.rep('a', 7000), 1, -1))",
        ":7000",
    ),
    (
        "CVE-2021-32626 stack",
        "return {string.byte(string.rep('a', 1e6), 1, -1)}",
        "-ERR",
    ),
    // What the system around Lua offers.
    (
        "CVE-2022-0543 package",
        "return tostring((pcall(function() return package end))) .. tostring((pcall(function() return io end)))",
        "falsefalse",
    ),
    (
        "CVE-2022-0543 package",
        "return type(os.execute or os.getenv or os.exit or os.remove)",
        "$3 nil",
    ),
    (
        "CVE-2022-0543 package",
        "return {pcall(function() return debug end)}",
        "*2",
    ),
    (
        "CVE-2022-0543 package",
        "return {pcall(function() return getfenv, setfenv, newproxy, module, require, dofile end)}",
        "*2",
    ),
    // Writing into what other scripts see.
    (
        "CVE-2022-24735 globals",
        "rawset(_G, 'redis', 1)",
        "-ERR Attempt to modify a readonly table",
    ),
    (
        "CVE-2022-24735 globals",
        "redis.call = nil",
        "Attempt to modify a readonly table",
    ),
    (
        "CVE-2022-24735 globals",
        "setmetatable(_G, nil)",
        "-ERR Attempt to modify a readonly table",
    ),
    (
        "CVE-2022-24735 globals",
        "getmetatable(_G).__index = nil",
        "-ERR",
    ),
    ("CVE-2022-24736 nil", "return loadstring(nil)", "-ERR"),
    ("CVE-2022-24736 nil", "return load(nil)", "-ERR"),
    ("CVE-2022-24736 nil", "return redis.sha1hex()", "-ERR"),
    (
        "CVE-2025-46818 metatables",
        "getmetatable('').__index = function() return 1 end",
        "-ERR",
    ),
    (
        "CVE-2025-46818 metatables",
        "getmetatable('').__add = function() return 1 end",
        "-ERR",
    ),
    (
        "CVE-2025-46818 metatables",
        "return tostring(getmetatable(1)) .. tostring(getmetatable(nil)) .. tostring(getmetatable(true)) .. tostring(getmetatable(next))",
        "nilnilnilnil",
    ),
    // Lengths that overflow.
    (
        "CVE-2024-31449 bit",
        "return bit.tohex(65535, -2147483648)",
        "$8 0000FFFF",
    ),
    (
        "CVE-2024-31449 bit",
        "return bit.tohex(65535, 2147483647)",
        "$8 0000ffff",
    ),
    (
        "CVE-2024-31449 bit",
        "return bit.lshift(1, -2147483648)",
        ":",
    ),
    (
        "CVE-2025-46817 unpack",
        "return {unpack({1, 2, 3}, 2147483646, 2147483647)}",
        "*0",
    ),
    (
        "CVE-2025-46817 unpack",
        "return unpack({}, 0, 2147483647)",
        "-ERR user_script:1: too many results to unpack",
    ),
    (
        "CVE-2025-46817 unpack",
        "return unpack({1}, -1, 2147483646)",
        "too many results to unpack",
    ),
    (
        "CVE-2025-46817 unpack",
        "return unpack({1}, -2147483648, 2147483647)",
        "too many results to unpack",
    ),
    (
        "CVE-2025-46817 unpack",
        "return unpack({1}, -2147483648)",
        "too many results to unpack",
    ),
    (
        "CVE-2025-46817 unpack",
        "return unpack({1}, 1, 2147483647)",
        "too many results to unpack",
    ),
    (
        "CVE-2025-46817 unpack",
        "return unpack({1}, 1, 8000)",
        "too many results to unpack",
    ),
    (
        "CVE-2025-46817 unpack",
        "return unpack({1}, -1e300, 1e300)",
        "",
    ),
    (
        "CVE-2025-46817 unpack",
        "return {unpack({5, 6, 7}, '2')}",
        "*2 :6 :7",
    ),
    (
        "CVE-2025-46817 unpack",
        "return unpack(1)",
        "-ERR user_script:1: bad argument #1 to 'unpack' (table expected, got number)",
    ),
    (
        "CVE-2025-46817 unpack",
        "return unpack({}, {})",
        "-ERR user_script:1: bad argument #2 to 'unpack' (number expected, got table)",
    ),
    (
        "CVE-2025-46817 select",
        "return {pcall(select, -2147483648, 1)}",
        "*2",
    ),
    (
        "CVE-2025-46817 concat",
        "return {pcall(table.concat, {}, '', -2147483648, 2147483647)}",
        "*2",
    ),
    (
        "CVE-2025-46817 sub",
        "return ('abc'):sub(-2^63, 2^63) .. ('abc'):sub(2^53) .. tostring((('abc'):byte(-2^63)))",
        "$3 nil",
    ),
    (
        "CVE-2025-46819 long strings",
        "return #loadstring('return [' .. string.rep('=', 1e6) .. '[a]' .. string.rep('=', 1e6) .. ']')()",
        ":1",
    ),
    (
        "CVE-2025-46819 long strings",
        "return loadstring('return [' .. string.rep('=', 1e6)) == nil and 1",
        ":1",
    ),
    // Collecting what the parser still uses.
    (
        "CVE-2025-49844 parser",
        "local n = 0 local f = load(function() collectgarbage() n = n + 1 return n == 1 and 'return ' or n == 2 and '7' or nil end, ('chunk'):rep(1000)) collectgarbage() return f()",
        ":7",
    ),
    (
        "CVE-2025-49844 parser",
        "return {pcall(load, function() error('x') end, ('name'):rep(9))}",
        "*2",
    ),
    (
        "CVE-2024-46981 destructors",
        "local t = setmetatable({}, {__gc = function() redis.call('set', 'a', 1) end}) t = nil collectgarbage() return redis.call('get', 'a') or 0",
        ":0",
    ),
    // Lua's own list of bugs: many fixed parameters, called with few arguments, on a small stack.
    (
        "CVE-2014-5461 parameters",
        "local p = {} for i = 1, 190 do p[i] = 'p' .. i end local f = loadstring('return function(' .. table.concat(p, ',') .. ', ...) return 1 end')() local n = 0 for i = 1, 100 do n = n + coroutine.wrap(function() return f() end)() end return n",
        ":100",
    ),
    // Numbers that are no indexes.
    (
        "insert far below",
        "return {pcall(table.insert, {}, -2^31, 1)}",
        "*2",
    ),
    (
        "insert at no number",
        "return {pcall(table.insert, {}, 0/0, 1)}",
        "*2",
    ),
    (
        "rep beyond memory",
        "return string.rep('x', 2^31 - 1)",
        "-ERR not enough memory",
    ),
    ("format", "return #string.format('%99.99f', 1e308)", ":409"),
    ("format", "return {pcall(string.format, '%100d', 1)}", "*2"),
    (
        "deep returns",
        "local t = {} for i = 1, 5000 do t = {t} end return #t",
        ":1",
    ),
];

#[test]
fn nothing_comes_of_the_public_holes() {
    let mut engine = Engine::new(Limits::default()).unwrap();
    let mut wrong = Vec::new();
    for (hole, script, part) in ATTACKS {
        let reply = text(&mut engine, script);
        if !reply.contains(part) {
            wrong.push(format!(
                "{hole}: {script}\n  got {reply:.200}\n  expected {part}"
            ));
        }
        // Nothing is left of it for the next script.
        let next = "return {redis.call('echo', 'a'), type(redis), ('x'):upper(), #KEYS, tostring(getmetatable(1))}";
        assert_eq!(
            text(&mut engine, next),
            "*5 $1 a $5 table $1 X :2 $3 nil",
            "{script}"
        );
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
