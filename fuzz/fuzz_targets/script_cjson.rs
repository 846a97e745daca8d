//! Texts of any kind for `cjson.decode`. What it takes is encoded, if it can be, and that is taken
//! and encoded again.

#![no_main]

mod script;

use libfuzzer_sys::fuzz_target;

const BODY: &str = "
    local taken, value = pcall(cjson.decode, ARGV[1])
    if not taken then return 0 end
    local written, text = pcall(cjson.encode, value)
    if not written then return 1 end
    local again, copy = pcall(cjson.decode, text)
    if not again then error('broken: ' .. copy .. ' in ' .. text) end
    if #cjson.encode(copy) ~= #text then error('broken: ' .. text .. cjson.encode(copy)) end
    return text";

fuzz_target!(|bytes: &[u8]| script::run(BODY, &[bytes]));
