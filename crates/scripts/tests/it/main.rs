//! Tests of whole scripts, with a host that knows a dozen commands.
#![forbid(unsafe_code)]

mod attacks;
mod bounds;
mod engine;
mod host;
mod libraries;
mod replies;
mod sandbox;
