//! The commands that a client has queued since MULTI.

use std::ops::Range;

use tidewheel_keyspace::Command;
use tidewheel_keyspace::command::Flags;
use tidewheel_resp::Args;

/// The commands that a client has queued since MULTI.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    /// The arguments of all commands, one after the other.
    bytes: Vec<u8>,
    /// Where each argument ends.
    ends: Vec<usize>,
    /// Each command, and where its arguments end.
    commands: Vec<(&'static Command, usize)>,
    /// A command could not be queued: EXEC will refuse all.
    failed: bool,
}

impl Queue {
    /// Adds a command.
    pub(crate) fn push(&mut self, row: &'static Command, args: Args<'_>) {
        for arg in args.iter() {
            self.bytes.extend_from_slice(arg);
            self.ends.push(self.bytes.len());
        }
        self.commands.push((row, self.ends.len()));
    }

    /// EXEC will refuse all commands: nothing of them is kept.
    pub(crate) fn fail(&mut self) {
        *self = Self {
            failed: true,
            ..Self::default()
        };
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.failed
    }

    /// How many commands there are.
    pub(crate) fn len(&self) -> usize {
        self.commands.len()
    }

    /// Whether one of them changes data.
    pub(crate) fn writes(&self) -> bool {
        let writes = |(row, _): &(&Command, usize)| row.flags.has(Flags::WRITE);
        self.commands.iter().any(writes)
    }

    /// Bytes held.
    pub(crate) fn held_bytes(&self) -> usize {
        self.bytes.capacity()
            + self.ends.capacity() * size_of::<usize>()
            + self.commands.capacity() * size_of::<(&Command, usize)>()
    }

    /// All arguments, one after the other.
    pub(crate) fn arguments(&self) -> Vec<&[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let spans = starts.zip(&self.ends);
        spans.map(|(start, &end)| &self.bytes[start..end]).collect()
    }

    /// Each command, and which arguments are its own.
    pub(crate) fn commands(
        &self,
    ) -> impl Iterator<Item = (&'static Command, Range<usize>)> + Clone + '_ {
        let mut start = 0;
        self.commands.iter().map(move |&(row, end)| {
            let range = start..end;
            start = end;
            (row, range)
        })
    }
}
