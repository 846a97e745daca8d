//! The commands that a client has queued since MULTI.

use tidewheel_keyspace::Command;
use tidewheel_resp::{Args, Copies, parse_i64};

/// The commands that a client has queued since MULTI.
#[derive(Debug, Default)]
pub(crate) struct QueuedCommands {
    calls: Copies<&'static Command>,
    /// A pause of writes holds one of them back.
    writes: bool,
    /// A command could not be queued: EXEC will refuse all.
    failed: bool,
    /// The database that the last SELECT selects.
    db: Option<u32>,
}

impl QueuedCommands {
    /// Adds a command. `writes`: a pause of writes holds it back. `databases`: how many there are.
    pub(crate) fn push(
        &mut self,
        row: &'static Command,
        args: Args<'_>,
        (writes, databases): (bool, usize),
    ) {
        self.writes |= writes;
        if row.name == "select" {
            let number = args.get(1).and_then(parse_i64);
            let db = number.and_then(|number| u32::try_from(number).ok());
            // Another one fails, and selects none.
            self.db = db.filter(|db| (*db as usize) < databases).or(self.db);
        }
        self.calls.push(row, args);
    }

    /// The database in which the next command will run, if it is `selected` now.
    pub(crate) fn db(&self, selected: u32) -> u32 {
        self.db.unwrap_or(selected)
    }

    /// Forgets all commands, and lets EXEC refuse them.
    pub(crate) fn fail(&mut self) {
        *self = Self {
            failed: true,
            ..Self::default()
        };
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.failed
    }

    /// Returns the number of commands.
    pub(crate) fn len(&self) -> usize {
        self.calls.len()
    }

    /// Returns true if a pause of writes holds one of them back.
    pub(crate) fn writes(&self) -> bool {
        self.writes
    }

    /// Bytes held.
    pub(crate) fn held_bytes(&self) -> usize {
        self.calls.held_bytes()
    }

    /// Bytes held once this command is added.
    pub(crate) fn held_bytes_with(&self, args: Args<'_>) -> usize {
        self.calls.held_bytes_with(args)
    }

    /// Returns the commands in their order.
    pub(crate) fn calls(&self) -> impl Iterator<Item = (&'static Command, Args<'_>)> + Clone {
        self.calls.iter()
    }
}
