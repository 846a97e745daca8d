//! The tier's protocol, without sockets, clocks of its own or threads.
//!
//! It closes fourteen holes, each of which some cache with two tiers has had. Tests switch each
//! rule off by its number.
//!
//! | | hole | rule, and where it is |
//! |---|---|---|
//! | H1 | a value is stored after the message of its change was handled | the load is registered before anything is sent; an invalidation message supersedes it (`invalidation_stream.rs`, `Local::forget`) |
//! | H2 | changes are missed while disconnected | entries hold the watch that they were read under; it ends with the connection (`watch.rs`) |
//! | H3 | "everything was flushed", or all keys but the first of a message, are overlooked | `invalidation_stream.rs`, `flushed` and `changed` |
//! | H4 | an entry outlives the engine's | its life begins when the question was sent (`age.rs`, `flow/`) |
//! | H5 | value and time to live are of different versions | one script reads both |
//! | H6 | clocks of different machines are compared | envelopes have lengths only (`envelope.rs`) |
//! | H7 | a slow load stores an old value | only the holder of the lease fills; every write ends it |
//! | H8 | a failover brings back an old value | another owner ends every watch (`invalidation_stream.rs`, `owned`) |
//! | H9 | a slot's new owner is not watched | the same |
//! | H10 | a replica lags | values are read from primaries alone (`valkey/`) |
//! | H11 | an absence hides what was created | absences are entries like others |
//! | H12 | everything ends at once | jitter when a value is written, a soft deadline, and the lease |
//! | H13 | a server that is watched no more goes on answering | an answer is kept only if the watched server gave it (`server.rs`, `flow/`) |
//! | H14 | a failover loses what the server before had taken | what it has taken lately is repeated, and nothing is read until all processes have had time for that (`guard/recent.rs`, `invalidation_stream.rs`, `owned`) |

pub(crate) mod age;
pub(crate) mod change_waiters;
pub(crate) mod envelope;
pub(crate) mod faults;
pub(crate) mod invalidation_stream;
pub(crate) mod names;
pub(crate) mod server;
pub(crate) mod slot;
pub(crate) mod tags;
pub(crate) mod watch;
