//! Runs commands over very many names in parts, and lets other clients have their turn in between.
//!
//! 1. A handler [begins](Turn::begin_part) a part, which has the number of names that earlier parts
//!    have done.
//! 2. It does one name after the other, as long as the part [takes](CommandPart::takes) them.
//! 3. It [ends](Turn::end_part) the part. If names are left, the command stays at the start of its
//!    connection's input, and the handler is called again with the same arguments.

use crate::clients::connection::{Connection, PartialCommand};
use crate::commands::turn::{CommandStep, Turn};
use crate::pubsub::hub::FoundChannels;

/// Names after which others have their turn: some 0.3 ms.
const PART_NAMES: usize = 128;

/// Bytes of names after which others have their turn.
const PART_BYTES: usize = 64 << 10;

/// One part of a command over many names.
pub(super) struct CommandPart {
    /// The number of names that are done, in this part and in earlier ones.
    pub(super) done: usize,
    /// The channels that all parts so far have found.
    pub(super) found: FoundChannels,
    names_left: usize,
    bytes_left: usize,
}

impl CommandPart {
    /// Returns true if another name may follow, and counts it as done.
    pub(super) fn takes(&mut self, name: &[u8]) -> bool {
        let takes = self.names_left > 0 && self.bytes_left > 0;
        if takes {
            self.done += 1;
            self.names_left -= 1;
            self.bytes_left = self.bytes_left.saturating_sub(name.len());
        }
        takes
    }
}

impl Turn<'_> {
    /// Begins the next part of a command. A transaction is whole, and so are its commands.
    pub(super) fn begin_part(&self, conn: &mut Connection) -> CommandPart {
        let whole = self.in_transaction;
        let begun = conn.begun.take();
        let (done, found) = begun.map_or_else(Default::default, |begun| (begun.done, begun.found));
        CommandPart {
            done,
            found,
            names_left: if whole { usize::MAX } else { PART_NAMES },
            bytes_left: if whole { usize::MAX } else { PART_BYTES },
        }
    }

    /// Takes a part back that has changed nothing; it began with so many names done, or as the
    /// first.
    pub(super) fn restart_part(&self, conn: &mut Connection, done: Option<usize>) {
        conn.begun = done.map(|done| PartialCommand {
            done,
            found: FoundChannels::default(),
            bytes: self.command_bytes,
        });
    }

    /// Ends a part of a command. `all`: it was the last, and this is what became of the command.
    pub(super) fn end_part(
        &self,
        conn: &mut Connection,
        part: CommandPart,
        all: bool,
        last: CommandStep,
    ) -> CommandStep {
        if all || self.out.is_over() {
            return last;
        }
        conn.begun = Some(PartialCommand {
            done: part.done,
            found: part.found,
            bytes: self.command_bytes,
        });
        CommandStep::Begun
    }
}
