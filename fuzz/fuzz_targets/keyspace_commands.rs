//! Command sequences: strings and deadlines against a naive model, and every command of the table with
//! any arguments, which must answer one well-formed reply.

#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use tidewheel_fuzz::check::against_model;
use tidewheel_fuzz::loose::{Loose, any_command};
use tidewheel_fuzz::op::Step;
use tidewheel_fuzz::rig::Rig;
use tidewheel_resp::Protocol;

#[derive(Arbitrary, Debug)]
enum Input<'a> {
    /// Calls that the model knows.
    Model { resp3: bool, steps: Vec<Step> },
    /// Rows of the table with any arguments.
    Any { resp3: bool, steps: Vec<Loose<'a>> },
}

fuzz_target!(|input: Input<'_>| match input {
    Input::Model { resp3, steps } => against_model(rig(resp3), &steps),
    Input::Any { resp3, steps } => any_command(rig(resp3), &steps),
});

fn rig(resp3: bool) -> Rig {
    Rig::new(if resp3 {
        Protocol::Resp3
    } else {
        Protocol::Resp2
    })
}
