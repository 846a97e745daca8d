//! Tests of the whole log.

#[cfg(unix)]
mod real;
