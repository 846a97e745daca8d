//! Every store counts a run that is never answered, if its start was noted.

use std::sync::Arc;

use tidewheel_tasks::{Claim, Due, Failure, Task, TaskStore, Verdict, wait};

use super::Suite;
use crate::common::MS;

impl<S: TaskStore> Suite<'_, S> {
    fn notes_start(&self, claim: &Arc<Claim>) -> Verdict {
        wait(self.store.note_start(claim)).expect("answered")
    }

    /// Claims once nobody has answered for a lease.
    fn claim_after_lease(&self, id: &str) -> Arc<Claim> {
        (self.pass)(self.lease + MS(300));
        self.claim(id)
    }

    pub(super) fn a_run_that_is_never_answered_counts_if_its_start_was_noted(&self) {
        let counted = |claim: &Claim| (claim.attempt, claim.lost, claim.doubtful);
        self.schedule(Task::new("lost", ""));
        let first = self.claim("lost");
        assert_eq!(counted(&first), (1, 0, false));
        let second = self.claim_after_lease("lost");
        assert_eq!(counted(&second), (1, 0, true), "it may never have begun");
        assert_eq!(self.notes_start(&first), Verdict::Refused);
        for _ in 0..2 {
            assert_eq!(self.notes_start(&second), Verdict::Accepted);
        }
        assert!(self.extends(&second));
        let third = self.claim_after_lease("lost");
        assert_eq!(counted(&third), (2, 1, true), "once");
        let released = wait(self.store.release(&[third])).expect("answered");
        assert!(released[0].is_accepted());
        let fourth = self.claim("lost");
        assert_eq!(counted(&fourth), (2, 1, true), "it was not begun");
        assert_eq!(self.notes_start(&fourth), Verdict::Accepted);
        let fifth = self.claim_after_lease("lost");
        assert_eq!(counted(&fifth), (3, 2, true));
        assert!(self.fails(&fifth, Failure::retry(Due::After(MS(0)), "busy")));
        let sixth = self.claim("lost");
        assert_eq!(counted(&sixth), (4, 0, false), "it was answered");
        let mut never = Failure::dead("the process ended");
        never.counts = false;
        assert!(self.fails(&sixth, never));
        let letters = wait(self.store.dead_letters(10)).expect("letters");
        let letters: Vec<_> = letters.iter().map(|letter| letter.attempts).collect();
        assert_eq!(letters, [3]);
        assert_eq!(wait(self.store.remove_dead("lost")), Ok(true));
    }
}
