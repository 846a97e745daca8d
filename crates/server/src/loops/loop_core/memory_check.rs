//! Notes that a loop must check the memory of all clients together.

/// Notes that a loop must check the memory of all clients together.
#[derive(Debug, Default)]
pub(super) struct MemoryCheck {
    pub(super) due: bool,
    /// The memory of the loop's clients at the end of its last turn.
    pub(super) held: usize,
}

impl MemoryCheck {
    pub(super) fn is_due(&self) -> bool {
        self.due
    }

    /// Requests a check, because the limit or the clients may have changed.
    pub(super) fn request(&mut self) {
        self.due = true;
    }
}
