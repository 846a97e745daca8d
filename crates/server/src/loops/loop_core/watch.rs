//! Whether a loop must look at what all clients hold together.

/// Whether a loop must look at what clients hold.
#[derive(Debug, Default)]
pub(super) struct Watch {
    pub(super) due: bool,
    /// What the loop's clients held at the end of its last turn.
    pub(super) held: usize,
}

impl Watch {
    pub(super) fn is_due(&self) -> bool {
        self.due
    }

    /// The limit or the clients may have changed.
    pub(super) fn alert(&mut self) {
        self.due = true;
    }
}
