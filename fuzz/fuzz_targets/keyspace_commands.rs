//! Command sequences: all types, deadlines of keys and members, transactions and clients that wait,
//! against a naive model; and every command of the table with any arguments, which must answer one
//! well-formed reply.

#![no_main]

use libfuzzer_sys::arbitrary::{Arbitrary, Result, Unstructured};
use libfuzzer_sys::fuzz_target;
use tidewheel_oracle::Run;

/// `cargo fuzz fmt` prints it.
#[derive(Debug)]
struct Input(Run);

impl<'a> Arbitrary<'a> for Input {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        Ok(Self(Run::either(u.bytes(u.len())?)))
    }
}

fuzz_target!(|input: Input| input.0.check());
