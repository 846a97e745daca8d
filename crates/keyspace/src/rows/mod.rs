//! The table of commands. Each row has a command's name, arguments and properties. It is data
//! alone; the functions that run the rows are in `commands/handlers.rs`, at the rows' numbers.
//!
//! | file | holds |
//! |---|---|
//! | a chapter, e.g. `string.rs` | the rows of some commands |
//! | `command.rs` | one row |
//! | `keys.rs`, `flags.rs`, `kinds.rs`, `cost.rs`, `syntax.rs` | the types of a row's fields |
//! | `index.rs` | the index from names to rows |

mod acl;
mod bitmap;
mod blocking;
mod command;
mod connection;
pub(crate) mod cost;
mod diagnosis;
mod expiry;
mod flags;
mod geo;
mod geo_radius;
mod hash;
mod hyperloglog;
mod index;
mod inspect;
mod key;
mod keys;
mod kinds;
mod list;
mod members;
mod pubsub;
mod scripting;
mod server;
mod set;
mod stream;
mod string;
mod syntax;
mod text;
mod transaction;
mod zset;
mod zset_combine;
mod zset_range;

pub use self::command::Command;
pub use self::flags::Flags;
pub use self::index::{COUNT, all_rows, lookup, number_of, rows};
pub use self::keys::KeySpec;
pub(crate) use self::kinds::Adds;
pub use self::kinds::Group;
pub use self::syntax::{Argument, ArgumentKind};

/// The chapters of the table.
const CHAPTERS: &[&[Command]] = &[
    string::ROWS,
    bitmap::ROWS,
    hyperloglog::ROWS,
    hash::ROWS,
    set::ROWS,
    members::ROWS,
    zset::ROWS,
    zset_range::ROWS,
    list::ROWS,
    zset_combine::ROWS,
    geo::ROWS,
    geo_radius::ROWS,
    stream::ROWS,
    blocking::ROWS,
    key::ROWS,
    expiry::ROWS,
    connection::ROWS,
    pubsub::ROWS,
    server::ROWS,
    diagnosis::ROWS,
    acl::ROWS,
    inspect::ROWS,
    transaction::ROWS,
    scripting::ROWS,
];
