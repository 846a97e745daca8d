//! A mortal value tells when it is dropped.
//!
//! A mortal is an `Arc` of its 32 bytes: a reader's clone touches the entry's own count and nothing
//! that is shared, so the counting costs a write to one of 64 striped counters where a value is
//! made and where the last handle to it goes, and nothing in a read.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};

use super::subject::Value;

const STRIPES: usize = 64;

/// Two cache lines, since neighbouring lines are fetched as a pair.
#[repr(align(128))]
struct Stripe(AtomicI64);

static ALIVE: [Stripe; STRIPES] = [const { Stripe(AtomicI64::new(0)) }; STRIPES];
static NEXT_STRIPE: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static STRIPE: Cell<usize> =
        Cell::new(NEXT_STRIPE.fetch_add(1, Ordering::Relaxed) % STRIPES);
}

/// A value whose life is counted.
#[derive(Clone)]
pub(super) struct Mortal(#[expect(dead_code, reason = "held to be dropped")] Arc<Counted>);

struct Counted {
    #[expect(dead_code, reason = "bytes that a value has")]
    bytes: [u8; 32],
}

impl Value for Mortal {
    fn for_key(id: u64) -> Self {
        count(1);
        Self(Arc::new(Counted {
            bytes: <[u8; 32]>::for_key(id),
        }))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        count(-1);
    }
}

/// Values of this process that were made and not dropped yet.
pub(super) fn alive() -> i64 {
    ALIVE
        .iter()
        .map(|stripe| stripe.0.load(Ordering::Relaxed))
        .sum()
}

fn count(by: i64) {
    // A thread that is ending has no stripe any more.
    let stripe = STRIPE.try_with(Cell::get).unwrap_or(0);
    ALIVE[stripe].0.fetch_add(by, Ordering::Relaxed);
}
