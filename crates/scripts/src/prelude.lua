-- Builds what scripts see. Rust passes its functions in `native`, and gets the table of globals back.
--
-- Scripts never get hold of a table that lives longer than they do. What they see of the libraries
-- are proxies, userdata whose `__index` is the table, so functions that write past metatables
-- (`rawset`, `table.insert`, `table.sort`) refuse them.
local native = ...

local assert, error, getmetatable, ipairs, next, pairs = assert, error, getmetatable, ipairs, next, pairs
local pcall, rawequal, rawget, rawset, select = pcall, rawequal, rawget, rawset, select
local setmetatable, tonumber, tostring, type, unpack = setmetatable, tonumber, tostring, type, unpack
local xpcall, collectgarbage, newproxy, gcinfo = xpcall, collectgarbage, newproxy, gcinfo
local insert, sort, concat, sub = table.insert, table.sort, table.concat, string.sub
local create, resume = coroutine.create, coroutine.resume
local caught, handled, alive = native.caught, native.handled, native.alive

local NESTED_MAX = 50

-- Each proxy, and the table behind it. It grows only here.
local behind = {}

local function readonly()
    error("Attempt to modify a readonly table", 2)
end

local function shield(of, hidden)
    local proxy = newproxy(true)
    local meta = getmetatable(proxy)
    meta.__index, meta.__newindex, meta.__metatable = of, readonly, hidden or false
    behind[proxy] = of
    return proxy
end

local function bad(place, name, expected, got)
    local what = got == nil and "nil" or type(got)
    error("bad argument #" .. place .. " to '" .. name .. "' (" .. expected .. " expected, got " .. what .. ")", 3)
end

-- The globals: `env` is empty, so that each assignment reaches `__newindex`.
local globals = {}
local seen = { __index = globals, __newindex = readonly, __metatable = false }
local env = setmetatable({}, seen)

local function strict(t)
    return setmetatable(t, {
        __index = function(_, name)
            error("Script attempted to access nonexistent global variable '" .. tostring(name) .. "'", 2)
        end,
        __metatable = false,
    })
end

strict(globals)

-- Errors.

local function settled(ok, ...)
    if ok then
        return true, ...
    end
    return false, caught((...))
end

function globals.pcall(...)
    return settled(pcall(...))
end

local function survived(ok, ...)
    if not ok then
        alive()
    end
    return ok, ...
end

function globals.xpcall(f, handler)
    return survived(xpcall(f, function(problem)
        local dead, value = handled(problem)
        if dead then
            return nil
        end
        return handler(value)
    end))
end

-- Coroutines: each resume nests in C, which has no bound of its own.

local nested = 0

local function resumed(ok, ...)
    nested = nested - 1
    if ok then
        return true, ...
    end
    local dead, value = handled((...))
    if dead then
        alive()
    end
    return false, value
end

local function resume_bounded(co, ...)
    if nested >= NESTED_MAX then
        return false, "C stack overflow"
    end
    nested = nested + 1
    return resumed(resume(co, ...))
end

local function unwrapped(ok, ...)
    if ok then
        return ...
    end
    error((...), 3)
end

local coroutines = {
    create = create,
    running = coroutine.running,
    status = coroutine.status,
    yield = coroutine.yield,
    resume = function(co, ...)
        if type(co) ~= "thread" then
            error("bad argument #1 to 'resume' (coroutine expected)", 2)
        end
        return resume_bounded(co, ...)
    end,
    wrap = function(f)
        if type(f) ~= "function" then
            bad(1, "wrap", "function", f)
        end
        local co = create(f)
        return function(...)
            return unwrapped(resume_bounded(co, ...))
        end
    end,
}

-- The basic functions.

for _, name in ipairs({
    "_VERSION", "assert", "error", "getmetatable", "ipairs", "next", "rawequal", "rawget", "select",
    "tonumber", "tostring", "unpack", "gcinfo",
}) do
    globals[name] = native.base[name]
end

function globals.type(...)
    local kind = type(...)
    if kind == "userdata" and behind[(...)] then
        return "table"
    end
    return kind
end

function globals.rawset(t, k, v)
    if type(t) ~= "table" then
        if behind[t] then
            error("Attempt to modify a readonly table", 0)
        end
        bad(1, "rawset", "table", t)
    end
    return rawset(t, k, v)
end

function globals.setmetatable(t, ...)
    local meta = ...
    if type(t) ~= "table" then
        if t ~= nil and behind[t] then
            error("Attempt to modify a readonly table", 0)
        end
        bad(1, "setmetatable", "table", t)
    end
    if (meta == nil and select("#", ...) == 0) or (meta ~= nil and type(meta) ~= "table") then
        error("bad argument #2 to 'setmetatable' (nil or table expected)", 2)
    end
    return setmetatable(t, meta)
end

function globals.pairs(t)
    if type(t) == "table" then
        return next, t, nil
    end
    local real = t ~= nil and behind[t]
    if not real then
        bad(1, "pairs", "table", t)
    end
    local copy = {}
    for name, value in next, real do
        copy[name] = value
    end
    return next, copy, nil
end

function globals.collectgarbage(what)
    if what == "count" then
        return collectgarbage("count")
    elseif what == nil or what == "collect" then
        alive()
        return collectgarbage("collect")
    elseif what == "step" then
        return true
    end
    return 0
end

globals.loadstring = native.loadstring

function globals.load(reader, name)
    if type(reader) ~= "function" then
        bad(1, "load", "function", reader)
    end
    local parts = {}
    while true do
        local part = reader()
        if part == nil or part == "" then
            break
        end
        if type(part) ~= "string" then
            return nil, "reader function must return a string"
        end
        parts[#parts + 1] = part
    end
    return native.loadstring(concat(parts), name or "=(load)")
end

-- Tables.

local tables = {}
for name, f in pairs(table) do
    tables[name] = f
end

function tables.insert(t, ...)
    if select("#", ...) == 2 then
        local place = tonumber((...))
        -- A place far below would be walked to step by step, in C, where nothing can stop it.
        if type(t) == "table" and place and not (place >= -1000 and place < 2 ^ 31) then
            error("bad argument #2 to 'insert' (position out of bounds)", 2)
        end
    elseif type(t) ~= "table" and behind[t] then
        error("Attempt to modify a readonly table", 0)
    end
    return insert(t, ...)
end

-- Sorting without a function runs in C, quadratic at worst, where nothing can stop it.
local function by_order(a, b)
    return a < b
end

function tables.sort(t, order)
    if type(t) ~= "table" then
        bad(1, "sort", "table", t)
    end
    if order ~= nil and type(order) ~= "function" then
        bad(2, "sort", "function", order)
    end
    return sort(t, order or by_order)
end

-- Strings.

local strings = {}
for name, f in pairs(string) do
    strings[name] = f
end
for name, f in pairs(native.strings) do
    strings[name] = f
end
strings.dump = nil

local match_from, replaced = native.match_from, native.replaced

local function gmatch(s, pattern)
    if type(s) == "number" then
        s = tostring(s)
    elseif type(s) ~= "string" then
        bad(1, "gmatch", "string", s)
    end
    if type(pattern) == "number" then
        pattern = tostring(pattern)
    elseif type(pattern) ~= "string" then
        bad(2, "gmatch", "string", pattern)
    end
    local from = 1
    local function found(first, last, ...)
        if first then
            from = last < first and last + 2 or last + 1
            return ...
        end
    end
    return function()
        return found(match_from(s, pattern, from))
    end
end

strings.gmatch, strings.gfind = gmatch, gmatch

local function piece(whole, value)
    if value == nil or value == false then
        return whole
    end
    local kind = type(value)
    if kind ~= "string" and kind ~= "number" then
        error("invalid replacement value (a " .. kind .. ")", 4)
    end
    return value
end

function strings.gsub(s, pattern, by, most)
    local kind = type(by)
    if kind == "string" or kind == "number" then
        return replaced(s, pattern, by, most)
    end
    if type(s) == "number" then
        s = tostring(s)
    elseif type(s) ~= "string" then
        bad(1, "gsub", "string", s)
    end
    if type(pattern) == "number" then
        pattern = tostring(pattern)
    elseif type(pattern) ~= "string" then
        bad(2, "gsub", "string", pattern)
    end
    if kind ~= "table" and kind ~= "function" then
        error("bad argument #3 to 'gsub' (string/function/table expected)", 2)
    end
    most = most and tonumber(most) or #s + 1
    local parts, count, from, times = {}, 0, 1, 0
    local anchored = sub(pattern, 1, 1) == "^"
    local function use(first, last, ...)
        if not first then
            return false
        end
        times = times + 1
        local whole = sub(s, first, last)
        local value
        if kind == "table" then
            value = by[(...)]
        else
            value = by(...)
        end
        parts[count + 1] = sub(s, from, first - 1)
        parts[count + 2] = piece(whole, value)
        count = count + 2
        if last < first then
            -- An empty match: the byte behind it is passed over.
            count = count + 1
            parts[count] = sub(s, first, first)
            from = first + 1
        else
            from = last + 1
        end
        return true
    end
    while times < most and from <= #s + 1 and use(match_from(s, pattern, from, anchored)) do
        if anchored then
            break
        end
    end
    parts[count + 1] = sub(s, from)
    return concat(parts), times
end

-- The string metatable serves methods and cannot be reached.
local of_strings = getmetatable("")
of_strings.__index = strings
of_strings.__metatable = shield({ __index = shield(strings) })

-- Libraries.

local maths = {}
for name, f in pairs(math) do
    maths[name] = f
end
maths.random, maths.randomseed = native.random, native.randomseed

globals.string = shield(strings)
globals.table = shield(tables)
globals.math = shield(maths)
globals.coroutine = shield(coroutines)
globals.os = shield({ clock = native.clock })
globals.redis = shield(native.redis)
globals.server = globals.redis
globals.cjson = shield(native.cjson)
globals.cmsgpack = shield(native.cmsgpack)
globals.struct = shield(native.struct)
globals.bit = shield(native.bit)
globals._G = shield(globals, shield({}))

-- What functions of libraries see: other globals, for they get their keys as arguments.
local of_functions = strict({})
for name, value in next, globals do
    of_functions[name] = value
end
of_functions.redis = shield(native.of_functions)
of_functions.server = of_functions.redis
of_functions._G = shield(of_functions, shield({}))

-- What the code of a library sees while it registers them.
local registers = shield(strict(native.of_libraries))
local of_libraries = strict({ redis = registers, server = registers })

local views = { globals, of_functions, of_libraries }

local function see(view)
    seen.__index = views[view]
end

local function forget()
    nested = 0
    globals.KEYS, globals.ARGV = nil, nil
end

return env, globals, forget, see
