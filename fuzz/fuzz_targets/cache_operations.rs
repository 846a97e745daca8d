//! Operations on an in-process cache of any configuration against the naive model of its tests, in
//! virtual time. Eight bytes choose the configuration, eight more are each operation.

#![no_main]

#[path = "../../crates/cache/tests/it/support/mod.rs"]
mod support;

use libfuzzer_sys::fuzz_target;
use support::op::Op;
use support::setup::Setup;

fuzz_target!(|bytes: &[u8]| {
    if let Some((setup, ops)) = bytes.split_first_chunk() {
        let setup = Setup::from_bits(u64::from_le_bytes(*setup));
        support::run(&setup, &Op::all_from_bytes(ops));
    }
});
