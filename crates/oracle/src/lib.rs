//! What the keyspace should do: drawn commands, a naive model, and a checker that runs both.
//!
//! # The way of one check
//!
//! 1. [`Draw`] makes choices from bytes: those of a fuzzer, or those that [`Dice`] makes of a seed.
//! 2. From these choices come [`Step`]s: commands as lines of text (`SET key:4 ~v300 PX 50`), time
//!    that passes, expiry, transactions, clients that wait. Few keys and members exist, so commands
//!    meet.
//! 3. A [`Rig`] has a keyspace, one client, those who wait, and clocks. It sends the command as
//!    bytes through the request parser, and reads the reply.
//! 4. The [`Model`] is a `BTreeMap` of keys. It runs the same words and says what the answer
//!    must be: an [`Expect`]. What is left to chance (SPOP) it learns from the answer.
//! 5. [`check`] compares the reply, the events, the published deadlines and who waits after each
//!    step, and everything that is stored every 80 steps.
//!
//! Some steps are a [`Script`]: the rig runs its commands as one, with what the keyspace has for
//! scripts, and does without Lua what Lua does with their replies. The simulated server runs its
//! Lua.
//!
//! A [`Run`] is all of this. The fuzz targets draw runs from the fuzzer's bytes; the tests of the
//! keyspace draw them from fixed seeds, and shorten those that fail. The simulated server explains
//! with the same [`Model`] what its clients were answered. Tests with a stock redis-server compare
//! the model with that.
//!
//! # A new command
//!
//! 1. A line in the drawing function of its type: `Draw::list` in `model/list.rs`.
//! 2. What it answers and changes, in the function of the model below it: `Model::list`. `note`
//!    says which event it causes.
//! 3. Runs draw it from then on. Seeds mean other runs than before.
//! 4. Simulated clients say the commands of `Draw::any`, `Draw::text` and `Draw::list` that name
//!    their keys (`simulation/talk.rs` of the server).
//!
//! `Draw::any` in `model/keys.rs` has the commands for keys of any type, and `Draw::text` in
//! `model/text.rs` those for strings. These two may have words that are no text.
//!
//! Beside the model there are checks that need none: [`Run::any`] sends rows of the command table
//! with any arguments, [`Requests`] parses bytes in several ways, and [`payload`] restores them.

mod background;
pub mod check;
mod dice;
mod draw;
mod draw_script;
mod hex;
mod loose;
mod model;
pub mod payload;
mod replay;
mod requests;
mod rig;
mod run;
mod script;
mod shell;
mod step;
mod walk;

pub use dice::{Dice, Number};
pub use draw::{Draw, spell};
pub use model::{Entry, Event, Expect, Model, Place};
pub use replay::Replica;
pub use requests::Requests;
pub use rig::Rig;
pub use run::Run;
pub use script::{Given, Script};
pub use step::Step;
