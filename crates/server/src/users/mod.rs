//! Users: who a client is, and what it may do.
//!
//! ```text
//! Users ── a table by name, exchanged as a whole
//!   └─ User ── is it on? which passwords?
//!        └─ Selector ── the first is the user's own; others stand in parentheses
//!             ├─ AllowedCommands ── +get -@admin +config|get
//!             ├─ KeyPatterns ────── ~cache:* %R~config:*
//!             ├─ ChannelPatterns ── &news.*
//!             └─ Databases ──────── db=0,1
//! ```
//!
//! 1. A connection keeps its user. One bit of its checks says whether that is a limited one: who
//!    may do everything pays nothing.
//! 2. A command of a limited user is compared with each selector until one allows all of it: the
//!    command, its databases, its keys and its channels ([`User::check`]). What is queued after
//!    MULTI is compared twice, when it is queued and when it runs. So is each call of a script.
//! 3. A change makes a new table, with a new version. A connection compares the version before each
//!    batch of commands, and then looks its user up again.
//!
//! | file | idea |
//! |---|---|
//! | `table.rs` | all users |
//! | `user.rs` | one: its passwords, its rules, and whether they allow a call |
//! | `selector.rs` | what one selector allows |
//! | `commands.rs` | a set of commands, and the rules that have made it |
//! | `patterns.rs` | patterns of keys and of channels |
//! | `databases.rs` | databases |
//! | `rule_error.rs` | what is wrong with a rule |
//! | `password.rs` | passwords as SHA-256 |
//! | `lines.rs` | users as lines of a file |
//! | `denials.rs` | what was denied (ACL LOG) |

mod commands;
mod databases;
mod denials;
mod lines;
mod password;
mod patterns;
mod rule_error;
mod selector;
mod table;
mod user;

pub(crate) use databases::Place;
pub(crate) use denials::{Denial, DenialContext, Denials, Reason};
pub(crate) use lines::{apply, as_lines, from_lines, merge_selectors, unmatched};
pub(crate) use selector::Selector;
pub(crate) use table::{DEFAULT, SetUserError, Users};
pub(crate) use user::User;
