//! Typed values and the command table of a Redis-protocol server.
//!
//! [`Keyspace::execute`] runs one command at one point in time and appends its reply. [`Keyspace::begin`] does the
//! same for a caller that wants to do other work between the steps of a command that walks over all keys.
//! Nothing here knows sockets or clocks. Time comes in as an argument ([`Time`]), and what the keyspace needs
//! from the program around it goes through [`Hooks`].
//!
//! ```
//! use tidewheel_keyspace::{Hooks, Garbage, Keyspace, Options, Session, Time, resolve};
//! use tidewheel_resp::{Args, Protocol, Writer};
//!
//! struct Shell;
//! impl Hooks for Shell {
//!     fn wake(&self, _shard: usize, _deadline: u64) {}
//!     fn reclaim(&self, garbage: Garbage) {
//!         drop(garbage);
//!     }
//!     fn stopwatch_ns(&self) -> u64 {
//!         0
//!     }
//! }
//!
//! let keyspace = Keyspace::new(Options::default(), Box::new(Shell));
//! let mut seat = keyspace.seat();
//! let mut session = Session::default();
//! let mut time = Time { tick: 1 << 40, micros: 0, wall_offset_ms: 0 };
//! let mut call = |time: Time, words: &[&[u8]]| {
//!     let args = Args::from_slices(words);
//!     let mut out = Writer::new(Protocol::Resp2);
//!     match resolve(args) {
//!         Ok(row) => keyspace.execute(&mut seat, row, &mut session, time, args, &mut out),
//!         Err(error) => error.write(&mut out),
//!     }
//!     out.into_vec()
//! };
//! assert_eq!(call(time, &[b"SET", b"tea", b"hot", b"PX", b"10"]), b"+OK\r\n");
//! time.tick += 9;
//! assert_eq!(call(time, &[b"GET", b"tea"]), b"$3\r\nhot\r\n");
//! time.tick += 1;
//! assert_eq!(call(time, &[b"GET", b"tea"]), b"$-1\r\n");
//! ```
//!
//! # The rooms
//!
//! - [`command`] says what a row of the table is; [`lookup`] and [`resolve`] find it. COMMAND, arity
//!   checks, key positions and dispatch follow from the rows.
//! - [`Keyspace`] owns the shards: it locks those of a command's keys in shard order, runs the row's
//!   handler, unlocks, and publishes deadlines, events and garbage.
//! - [`Seat`] and [`Gate`] give one thread the whole keyspace for a moment.
//! - All changes of data go through one file, `shard/mutate.rs`, which tells whoever observes a shard.
//! - [`order`] is the order in which locks are taken; debug builds assert it.
//! - [`Walk`] is a command over everything that gives way to others.
//! - [`Time`] is the only notion of now; all TTL arithmetic is in one file.
//! - [`Event`] and [`NotifyFlags`] are keyspace notifications; [`Policy`] is what `maxmemory` evicts.
//!
//! # What is promised
//!
//! A key is alive while `now < deadline` and dead from then on, whether or not anything has removed it
//! yet. A command that meets a dead key removes it and queues `expired` before its own event. Events of
//! one key, and events that one thread causes, keep their order. FLUSHALL, FLUSHDB and SWAPDB are one step for
//! everybody else. KEYS, SCAN and DBSIZE are not a point-in-time view across shards.

mod access;
pub mod command;
mod commands;
mod context;
mod demand;
mod error;
mod events;
mod eviction;
mod execute;
mod expire;
mod garbage;
mod gate;
mod glob;
mod hooks;
mod keyspace;
mod lcs;
mod memory;
pub mod order;
mod random;
mod resolve;
mod rules;

mod shape;
mod shard;
mod stats;
mod steps;
mod table;
mod time;
mod value;
mod walk;

pub use command::{Command, Handler};
pub use commands::help::write_help;
pub use context::Context;
pub use error::CommandError;
pub use events::{Event, NotifyClass, NotifyFlags};
pub use eviction::Policy;
pub use garbage::Garbage;
pub use gate::{Exclusive, Gate, KEEP_DEAD, RAISED, Seat};
pub use glob::glob_match;
pub use hooks::Hooks;
pub use keyspace::{Keyspace, Options, Session};
pub use resolve::resolve;
pub use rules::Rules;
pub use stats::{DatabaseStats, Stats};
pub use steps::WalkFn;
pub use table::{lookup, rows};
pub use tidewheel_store::Progress;
pub use tidewheel_time::{Histogram, Quantiles};
pub use time::Time;
pub use walk::Walk;
