//! Formats of any kind for `struct`. The first byte says how long the format is; the rest is
//! unpacked with it, and what comes of it is packed and unpacked again.

#![no_main]

mod script;

use libfuzzer_sys::fuzz_target;

const BODY: &str = "
    local format, bytes = ARGV[1], ARGV[2]
    pcall(struct.size, format)
    pcall(struct.pack, format, bytes, 1, bytes, -1, 2 ^ 53, bytes)
    pcall(struct.unpack, format, bytes, #bytes / 2)
    local values = {pcall(struct.unpack, format, bytes)}
    if not values[1] then return 0 end
    local packed, copy = pcall(struct.pack, format, unpack(values, 2, #values - 1))
    if not packed then return 1 end
    local again, first = pcall(struct.unpack, format, copy)
    local exact = type(first) == 'string' or type(first) == 'number' and math.abs(first) < 2 ^ 53
    if again and exact and first ~= values[2] then error('broken: ' .. format) end
    return copy";

fuzz_target!(|bytes: &[u8]| {
    if let Some((&len, bytes)) = bytes.split_first() {
        let (format, bytes) = bytes.split_at(bytes.len().min(usize::from(len) % 32));
        script::run(BODY, &[format, bytes]);
    }
});
