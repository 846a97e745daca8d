//! Runs Lua scripts as EVAL and FCALL of a Redis-protocol server do, without the server.
//!
//! - `engine.rs` keeps compiled scripts and runs them; `prelude.lua` and `sandbox.rs` are what
//!   scripts see.
//! - `library.rs` loads libraries, whose functions are called by name.
//! - `host.rs` is what a script asks of the program around it.
//! - `codec/`, `strings/`, `api.rs` and `random.rs` are the libraries, in Rust, with bounds.
//! - `direct.rs` is what every run passes through: the way into a script, `redis.call`, replies
//!   of simple values. It has the crate's unsafe code. `returned.rs` writes all other replies.
#![deny(unsafe_code)]

/// Compiles and runs the code of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod api;
mod args;
mod codec;
mod direct;
mod engine;
mod error;
mod host;
mod library;
mod number;
mod random;
mod returned;
mod sandbox;
mod sha;
mod shebang;
mod state;
mod strings;
mod walk;

pub use engine::{Engine, Limits};
pub use error::ScriptError;
pub use host::Host;
pub use library::Registered;
pub use sha::Sha;
pub use shebang::{LibraryHead, ScriptFlags, Shebang, shebang};
