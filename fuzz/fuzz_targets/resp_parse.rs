//! The request parser: any cut of any bytes into reads gives the same commands.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tidewheel_oracle::Requests;

fuzz_target!(|bytes: &[u8]| Requests::draw(bytes).check());
