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
//!   numbers, runs the row's function, and unlocks. `incremental` is a command over all keys, which
//!   runs in steps.
//! - `commands` holds the functions that run commands; its `handlers.rs` ties them to the rows.
//!   `serving`, `parking` and `long` run those that have waited.
//! - `memory`, `expire` and `stats` evict, expire and count. `recording` starts to record changes,
//!   and replays them; `records` has their page. `portable` has keys in forms for other servers.
//! - `context` is what such a function works with.
//! - `keyspace` holds the shards. `shard/mutate.rs` is the only file that changes data, so it can
//!   tell each change to those that observe the shard.
//! - [`Seat`] and [`Gate`] give one thread the whole keyspace for a moment. [`order`] is the order
//!   in which locks are taken; debug builds assert it.
//! - [`Time`] is the only notion of now, and `time` has all arithmetic on times to live. [`Event`]
//!   and [`NotifyFlags`] are keyspace notifications. [`Policy`] says what `maxmemory` evicts.
//! - [`mod@rows`] is the table of commands, as data: COMMAND, HELP, arity and the positions of keys
//!   follow from it. `resolve` finds a call's row.
//! - `snapshot` writes all data to a file of the public format, and reads such files.
//! - `value` says what a key holds, `value/collection` a collection. `dump` has the public format
//!   of DUMP and RESTORE; its readers trust no length, count or order. `bits`, `hyperloglog` and
//!   `geo` are arithmetic on strings and scores, without keys.
//!
//! # What is promised
//!
//! - A key is alive while `now < deadline` and dead from then on, even if it is not yet removed.
//! - A command that finds a dead key removes it, and queues `expired` before its own event.
//! - Events of one key keep their order, and so do events that one thread causes.
//! - Other threads see FLUSHALL, FLUSHDB and SWAPDB as one step. KEYS, SCAN and DBSIZE visit one
//!   shard after another, so they do not show a single moment.
//!
//! # Shards
//!
//! The number of shards is a power of two, 64 by default. The top bits of a key's hash choose the
//! shard, the low 32 bits are its place there. A shard is a mutex over one store for each database
//! in use. FLUSHDB, FLUSHALL and SWAPDB swap stores while nobody else is inside the keyspace.
//!
//! Keys are hashed with SipHash-1-3 under 128 secret bits, because clients choose the keys, and
//! SCAN shows them the order of the hashes.
//!
//! There is one queue of events for all shards. An event enters it while the key's shard is locked,
//! and leaves it under the hub's lock. Events are published before the command's reply is sent.
//!
//! # Commands that are not like the others
//!
//! - **Over all keys** (KEYS, SCAN, DBSIZE, RANDOMKEY): an [`IncrementalCommand`] comes back after
//!   a step of about 0.1 ms. See `incremental.rs`.
//! - **Everything at once** (SWAPDB, FLUSHALL, FLUSHDB, CLIENT PAUSE): the gate, `gate.rs`. It
//!   costs the other threads two stores a turn. Code that uses the keyspace without a seat does not
//!   compile. A thread that has the whole keyspace may ask for it again and keeps it; so a
//!   transaction can hold it while its commands run. Work that needs no keys any more leaves the
//!   gate, for example LCS when it has read its strings.
//! - **Long ones** (ZUNIONSTORE of two million members): `long.rs` says which they are, `claims.rs`
//!   in which order they and the clients behind them go on. Most shards have no large collection,
//!   and then nothing is looked at. Expiry, tidying and eviction pass over a shard that is busy;
//!   incremental commands are parked at it; INFO shows it as it was. What must be done to it, for
//!   example when a client stops watching a key, is done when the long command has ended. A loop
//!   waits half a millisecond at most for a lock that is not marked. If a transaction has it,
//!   whoever waits marks it, and is told of its end.
//! - **Several as one** (MULTI, EXEC, WATCH): `transaction.rs` and `watch.rs`. The commands run at
//!   one point in time, over one set of locks. The server's own commands run between them: PUBLISH,
//!   PING and ECHO while shards are locked; with any other the gate is taken. Long commands run
//!   where they are, so EXEC stays whole on its thread.
//! - **Waiting ones** (BLPOP): `waiters.rs`. A served command is the command itself, run in place
//!   of its client: it takes from the first of its keys that holds something. Readers of streams
//!   take nothing: `waiters/readers.rs` says who is served. A transaction serves at its end, a
//!   command that had the whole keyspace before others go in. During CLIENT PAUSE
//!   nobody is served, and who waits for a noted key is neither timed out nor unblocked; the thread
//!   that ends the pause serves first. A client may go away after its ticket was claimed and before
//!   the reply has left: then the element is gone, as with the public servers. A command that waits
//!   counts when it ends, with the time that it ran and not the time that it waited.
//! - **Told of changes** (CLIENT TRACKING): `tracking` and `invalidation.rs`. What a tracking
//!   client reads is noted in its shard, and the funnel takes it out when it changes; then its
//!   readers are told.
//! - **Kept in a stream** (`expired-stream`): the funnel queues each key that expires, and the
//!   loops append what is queued: `expired` and `append_expired.rs`.
//! - **With very many members that are due**: `drain_due.rs`.
//! - **Recorded**: what changes data is written down before its locks are released, so that a log
//!   can make the same data again: `records`.
//!
//! Commands over many members that are not long (unions, wide searches, COPY, DUMP) run to their
//! end under the locks of their keys' shards. SORT with patterns may read any key: it locks all
//! shards, or takes the gate within EXEC.
//!
//! # Collections
//!
//! A packed collection of up to 2 KiB lies beside its key, so a small one costs one block. It is
//! copied for a change, and written back; any other is changed where it is
//! (`context/collections.rs`). The change says which event it caused, or that it has changed
//! nothing. A large collection of which nothing lives any more leaves as a whole.
//!
//! The entry of a key is filed in the shard's wheel for the earlier of two: the key's own deadline,
//! and the earliest of its members'. When it is due, the collection removes its due members within
//! the shard's budget, and the entry is filed again. A pass that finds several such collections
//! prefetches all of them first (`shard/mutate/prefetch.rs`). A command that finds such an entry
//! due removes the due members first, so no command counts a dead member.
//!
//! While CLIENT PAUSE holds writes back, nothing is removed that anybody can see: a key of which
//! nothing lives is hidden, and dead members that a reader meets leave quietly. They are counted,
//! and announced, when the pause is over.
//!
//! # Invariants
//!
//! - **Exclusive work overlaps no other exclusive work, no command, no expiry and no tidying.** All
//!   threads that stepped outside go in before the next one may have everything.
//! - **Observers of a shard are told of each change in it, by the funnel and by nothing else.**
//! - **Time of a shard never goes back.** A command's time is not before that of its shards.
//! - **A hold that changed data has recorded it before it is released**, while changes are
//!   recorded. Only what time alone has made is not.
//! - **A record depends only on its own time, and on keys that it changes.**
//! - **Records that are one are applied together or not at all.**
//! - **No thread waits for a shard's lock for longer than a usual command takes.**
//! - **A claim waits only for earlier ones.** Clients that go on do so in portions, 64 in a turn of
//!   their loop.
//! - **No long command that writes begins during CLIENT PAUSE.** Exclusive use is refused while a
//!   long command runs, and while its client is parked, no later long command begins.
//! - **Nobody sees the data between two commands of a transaction.** One that runs has seen no
//!   change of a watched key since WATCH: the mark is set and read under the lock of the key's
//!   shard.
//! - **A client that tracks keeps no old value without being told.** What it reads is noted under
//!   the lock under which it is read, and the funnel tells of each change, also of those that time
//!   alone has made.
//! - **Those who take from a key are served in the order in which they came**, and so are those who
//!   read for one group. A key holds nothing of what somebody waits for when its shard is unlocked,
//!   except between two portions of many who read, for a command that was handed back, and
//!   during CLIENT PAUSE. A wait ends once, and an element is taken only for a client that was
//!   there.

#![forbid(unsafe_code)]

mod access;
mod append_expired;
mod bits;
mod budget;
mod call;
mod candidates;
mod claims;
mod commands;
mod context;
mod demand;
mod digest;
mod drain_due;
mod dump;
mod error;
mod events;
mod eviction;
mod execute;
mod expire;
mod expired;
mod format;
mod garbage;
mod gate;
mod geo;
mod glob;
mod hooks;
mod hyperloglog;
mod incremental;
mod invalidation;
mod key;
mod keyspace;
mod lcs;
mod long;
mod memory;
pub mod order;
mod packing;
mod parking;
mod planted;
mod portable;
mod prefetch;
mod random;
mod reading;
mod recording;
mod records;
mod resolve;
pub mod rows;
mod rules;
mod serving;
mod session;
mod shard;
mod snapshot;
mod stats;
mod steps;
mod time;
mod tracking;
mod transaction;
mod value;
mod waiters;
mod watch;
mod word;

pub use call::Call;
pub use claims::{Blocked, Parked};
pub use commands::access::{CATEGORIES, KeyUse};
pub use commands::handlers::is_run_here;
pub use commands::help::write_help;
pub use context::Context;
pub use dump::{read_functions, write_functions};
pub use error::CommandError;
pub use events::{Event, NotifyClass, NotifyFlags};
pub use eviction::Policy;
pub use execute::Unfinished;
pub use expired::{AppendedExpired, ExpiredStream, ExpiredStreamStats, ExpiredStreamTrouble};
pub use format::FileFormat;
pub use garbage::Garbage;
pub use gate::{Exclusive, Gate, PAUSED, RAISED, Seat};
pub use glob::glob_match;
pub use hooks::Hooks;
pub use incremental::IncrementalCommand;
pub use keyspace::{Keyspace, Options};
pub use packing::{AtomicPackedLimit, PackedLimit, Packing};
pub use parking::NoLongCommands;
#[cfg(feature = "planted")]
pub use planted::plant_forgetting;
pub use portable::{Dead, LookedAt, PortableKey};
pub use prefetch::ResolvedCalls;
pub use reading::DatabaseStats;
pub use records::{DamagedRecords, Record, RecordReader, TakenRecords};
pub use resolve::resolve;
pub use rows::{Command, all_rows, lookup, rows};
pub use rules::Rules;
pub use session::Session;
pub use snapshot::{
    Checksum, Fields, LoadRules, Loaded, Saved, Snapshot, SnapshotCourse, SnapshotError,
    SnapshotFailure, SnapshotItem, SnapshotKey, SnapshotLimits, SnapshotPart, SnapshotReader,
    SnapshotValue, SnapshotValues, Walked,
};
pub use stats::Stats;
pub use steps::StepsFn;
pub use tidewheel_store::Progress;
pub use tidewheel_time::{Histogram, Quantiles};
pub use time::Time;
pub use tracking::{PREFIX_BYTES_MAX, PREFIXES_MAX, PrefixError, TrackingMode, TrackingStats};
pub use transaction::{Begun, Reach, Transaction};
pub use waiters::{Served, Ticket, Waiter};
pub use watch::{WatchMark, Watching};
