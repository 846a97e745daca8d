//! The budget of one step of an incremental command.

/// The budget of one step, in units of about a hundred nanoseconds.
const STEP_BUDGET: usize = 1024;

/// The budget that is left of a step.
#[derive(Debug)]
pub(crate) struct Budget(usize);

impl Default for Budget {
    fn default() -> Self {
        Self(STEP_BUDGET)
    }
}

impl Budget {
    pub(crate) fn spend(&mut self, cost: usize) {
        self.0 = self.0.saturating_sub(cost);
    }

    pub(crate) fn is_spent(&self) -> bool {
        self.0 == 0
    }
}
