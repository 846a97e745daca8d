//! RESTORE of any bytes: they are refused, or what was taken is dumped as it is.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tidewheel_oracle::payload;

fuzz_target!(|bytes: &[u8]| payload::check(bytes));
