//! Typed values and the command table of a Redis-protocol server.
//!
//! [`resolve()`] finds the row of a command, and [`Keyspace::execute`] runs it at one point in time
//! and appends its reply. The crate knows no sockets and no clocks: time is an argument ([`Time`]),
//! and the keyspace calls the program around it through [`Hooks`]. [`Keyspace`] says in which order
//! its methods are called.
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
//! # The modules, from the top down
//!
//! - `execute` runs a command: it locks the shards of the command's keys in the order of their
//!   numbers, runs the row's handler, and unlocks. `walk` is a command over all keys, which runs in
//!   steps.
//! - `resolve` finds a row in `table`, which holds all rows. COMMAND, HELP, arity checks, key
//!   positions and dispatch follow from the rows; [`command`] says what a row is. `commands` holds
//!   the handlers.
//! - `memory`, `expire` and `stats` evict, expire and count.
//! - `context` is what a handler works with.
//! - `keyspace` holds the shards. `shard/mutate.rs` is the only file that changes data, so it can
//!   tell each change to those that observe the shard.
//! - [`Seat`] and [`Gate`] give one thread the whole keyspace for a moment. [`order`] is the order
//!   in which locks are taken; debug builds assert it.
//! - [`Time`] is the only notion of now, and `time` has all arithmetic on times to live. [`Event`]
//!   and [`NotifyFlags`] are keyspace notifications. [`Policy`] says what `maxmemory` evicts.
//!
//! # What is promised
//!
//! - A key is alive while `now < deadline` and dead from then on, even if it is not yet removed.
//! - A command that finds a dead key removes it, and queues `expired` before its own event.
//! - Events of one key keep their order, and so do events that one thread causes.
//! - Other threads see FLUSHALL, FLUSHDB and SWAPDB as one step. KEYS, SCAN and DBSIZE visit one
//!   shard after another, so they do not show a single moment.

#![forbid(unsafe_code)]

mod access;
mod bits;
mod budget;
mod call;
mod candidates;
mod claims;
mod commands;
mod context;
mod demand;
mod digest;
mod dump;
mod error;
mod events;
mod eviction;
mod execute;
mod expire;
mod foresee;
mod garbage;
mod gate;
mod geo;
mod glob;
mod hooks;
mod hyperloglog;
mod key;
mod keyspace;
mod lcs;
mod long;
mod memory;
pub mod order;
mod overdue;
mod packing;
mod parking;
mod random;
mod reading;
mod resolve;
pub mod rows;
mod rules;
mod serving;
mod session;
mod shard;
mod stats;
mod steps;
mod time;
mod transaction;
mod value;
mod waiters;
mod walk;
mod watch;
mod word;

pub use call::Call;
pub use claims::{Blocked, Parked};
pub use commands::handlers::is_run_here;
pub use commands::help::write_help;
pub use context::Context;
pub use error::CommandError;
pub use events::{Event, NotifyClass, NotifyFlags};
pub use eviction::Policy;
pub use execute::Unfinished;
pub use foresee::Foreseen;
pub use garbage::Garbage;
pub use gate::{Exclusive, Gate, PAUSED, RAISED, Seat};
pub use glob::glob_match;
pub use hooks::Hooks;
pub use keyspace::{Keyspace, Options};
pub use packing::{AtomicPackedLimit, PackedLimit, Packing};
pub use parking::NoLongCommands;
pub use reading::DatabaseStats;
pub use resolve::resolve;
pub use rows::{Command, all_rows, lookup, rows};
pub use rules::Rules;
pub use session::Session;
pub use stats::Stats;
pub use steps::WalkFn;
pub use tidewheel_store::Progress;
pub use tidewheel_time::{Histogram, Quantiles};
pub use time::Time;
pub use transaction::{Begun, Transaction};
pub use waiters::{Served, Ticket, Waiter};
pub use walk::Walk;
pub use watch::{WatchMark, Watching};
