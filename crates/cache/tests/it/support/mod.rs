//! The naive model of a cache, which the model tests and the fuzz target share.
#![allow(dead_code, reason = "the fuzz target uses a part")]

pub(crate) mod check;
pub(crate) mod closures;
pub(crate) mod labels;
pub(crate) mod load;
pub(crate) mod model;
pub(crate) mod op;
pub(crate) mod refresh;
pub(crate) mod setup;
pub(crate) mod unchanged;
pub(crate) mod value;
pub(crate) mod versions;

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use op::Op;
use setup::Setup;

/// Runs operations on a cache and on its model, and compares both after every step. Panics where
/// they differ.
pub(crate) fn run(setup: &Setup, ops: &[Op]) {
    let mut model = model::Model::new(setup);
    for op in ops {
        model.step(op);
    }
    model.finish();
}

/// Polls a future that has nobody to wait for.
fn once<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("it waits"),
    }
}

/// Well-mixed bits of a seed: operations for tests that are to be replayed by their seed.
pub(crate) fn mixed(seed: u64) -> u64 {
    let mut bits = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// Numbers that follow from a seed.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(1);
        mixed(self.0) % bound
    }
}

/// Returns whether all seeds are asked for: `TIDEWHEEL_DEEP=1`.
pub(crate) fn is_deep() -> bool {
    std::env::var_os("TIDEWHEEL_DEEP").is_some()
}
