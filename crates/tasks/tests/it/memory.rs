//! The store in memory.

use crate::common::{MS, engine};
use crate::conformance::suite;

#[test]
fn the_memory_does_what_every_store_must() {
    let (clock, store) = engine();
    suite(&*store, MS(2000), &|time| clock.advance(time));
    assert!(store.is_empty());
}
