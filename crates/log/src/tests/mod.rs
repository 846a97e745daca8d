//! Tests of the whole log.

mod model;
mod random;
#[cfg(unix)]
mod real;
