//! The store in memory.

use std::sync::Arc;

use tidewheel_tasks::MemoryStore;

use crate::common::{MS, engine, shares_a_limit};
use crate::conformance::suite;
use crate::model::models;

#[test]
fn the_memory_does_what_every_store_must() {
    let (clock, store) = engine();
    suite(&*store, MS(2000), &|time| clock.advance(time));
    assert!(store.is_empty());
}

#[test]
fn the_memory_answers_as_the_model_does() {
    let (clock, store) = engine();
    models(&*store, 0..300, &|time| clock.advance(time));
    assert!(store.is_empty());
}

#[test]
fn a_limit_holds_over_workers() {
    let store = Arc::new(MemoryStore::new());
    shares_a_limit(&[Arc::clone(&store), store]);
}
