//! Bytes of any kind for `cmsgpack.unpack` and its kin. What they take is packed, and that is taken
//! again. The first two bytes are a limit and an offset.

#![no_main]

mod script;

use libfuzzer_sys::fuzz_target;

const BODY: &str = "
    pcall(cmsgpack.unpack_one, ARGV[1], ARGV[3])
    pcall(cmsgpack.unpack_limit, ARGV[1], ARGV[2], ARGV[3])
    local results = {pcall(cmsgpack.unpack, ARGV[1])}
    if not results[1] then return 0 end
    local packed, bytes = pcall(cmsgpack.pack, unpack(results, 2, 100))
    if not packed then return 1 end
    local again = {pcall(cmsgpack.unpack, bytes)}
    -- A key that is a deep table is packed as nil.
    local deep = string.find(tostring(again[2]), 'index is nil', 1, true)
    if not again[1] and not deep then error('broken: ' .. tostring(again[2])) end
    return bytes";

fuzz_target!(|bytes: &[u8]| {
    if let Some((&[limit, offset], bytes)) = bytes.split_first_chunk() {
        let [limit, offset] = [limit, offset].map(|byte| (i32::from(byte) - 8).to_string());
        script::run(BODY, &[bytes, limit.as_bytes(), offset.as_bytes()]);
    }
});
