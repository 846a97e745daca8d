//! Command sequences: all types, deadlines of keys and members, transactions and clients that wait,
//! against a naive model; and every command of the table with any arguments, which must answer one
//! well-formed reply.

#![no_main]

use arbitrary::{Arbitrary, Result, Unstructured};
use libfuzzer_sys::fuzz_target;
use tidewheel_fuzz::check::against_model;
use tidewheel_fuzz::loose::{Loose, any_command};
use tidewheel_fuzz::op::{Step, all};
use tidewheel_fuzz::rig::Rig;
use tidewheel_resp::Protocol;

#[derive(Debug)]
enum Input<'a> {
    /// Calls that the model knows.
    Model(Protocol, Vec<Step>),
    /// Rows of the table with any arguments.
    Any(Protocol, Vec<Loose<'a>>),
}

impl<'a> Arbitrary<'a> for Input<'a> {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let (any, resp3): (bool, bool) = u.arbitrary()?;
        let protocol = if resp3 {
            Protocol::Resp3
        } else {
            Protocol::Resp2
        };
        Ok(if any {
            Self::Any(protocol, all(u)?)
        } else {
            Self::Model(protocol, all(u)?)
        })
    }
}

fuzz_target!(|input: Input<'_>| match input {
    Input::Model(protocol, steps) => against_model(Rig::new(protocol), &steps),
    Input::Any(protocol, steps) => any_command(Rig::new(protocol), &steps),
});
