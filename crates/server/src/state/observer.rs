//! Tells an observer of each command. The product's observer is nobody, and costs nothing; that of
//! the tests records what was run, when, and what was answered.

use tidewheel_keyspace::{Event, TakenRecords, Time};
use tidewheel_resp::{Args, Writer};

use crate::time::clock::Clock;

#[cfg(test)]
pub(crate) type Observer = crate::simulation::recorder::Recorder;
#[cfg(not(test))]
pub(crate) type Observer = Nobody;

/// Hears of what becomes of commands. Each method does nothing unless an observer wants to know.
pub(crate) trait Observe {
    /// A command has run, or its first step. The observer may let virtual time pass for it.
    #[inline(always)]
    fn advance_clock(&self, _: &Clock, _: Args<'_>, _in_steps: bool) {}

    /// One more step of a command has run.
    #[inline(always)]
    fn advance_clock_by_step(&self, _: &Clock) {}

    /// CLIENT REPLY suppresses the answer that begins at this place.
    #[inline(always)]
    fn take_back(&self, _: &Writer, _mark: usize) {}

    /// A command of a client has run, or was refused. Its reply begins at the place.
    #[inline(always)]
    fn ran(&self, _: &Clock, _: Time, _client: u64, _: Args<'_>, _reply: (&Writer, usize)) {}

    /// A command has begun whose reply comes later.
    #[inline(always)]
    fn began(&self, _: &Clock, _: Time, _client: u64, _: Args<'_>) {}

    /// The script that the running command calls begins, at this time. `full`: it may add nothing.
    #[inline(always)]
    fn script_begins(&self, _: Time, _full: bool) {}

    /// A part of a reply was written, from this place on.
    #[inline(always)]
    fn part(&self, _client: u64, _: &Writer, _mark: usize) {}

    /// A command that has begun before has ended.
    #[inline(always)]
    fn ended(&self, _client: u64, _: &Writer, _mark: usize) {}

    /// A client has sent something that is no command.
    #[inline(always)]
    fn refused(&self, _client: u64) {}

    /// The server has let go of a client.
    #[inline(always)]
    fn closed(&self, _client: u64) {}

    /// An event is published.
    #[inline(always)]
    fn published(&self, _: &Event) {}

    /// These records were taken, to be written.
    #[inline(always)]
    fn took(&self, _records: &[u8], _taken: TakenRecords) {}
}

/// The product's observer.
#[cfg(not(test))]
#[derive(Debug, Default)]
pub(crate) struct Nobody;

#[cfg(not(test))]
impl Observe for Nobody {}
