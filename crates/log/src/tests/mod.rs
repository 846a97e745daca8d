//! Tests of the whole log.

mod damage;
mod disk;
mod model;
mod poisoned;
mod random;
#[cfg(unix)]
mod real;
