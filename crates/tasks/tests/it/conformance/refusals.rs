//! Every store refuses ids that it could not keep, and claims that it has not given out. And when a
//! letter stays.

use std::sync::Arc;
use std::time::Duration;

use tidewheel_tasks::{Ask, Claim, Due, Failure, Fence, StoreError, Task, TaskStore, wait};

use super::Suite;
use crate::common::MS;

impl<S: TaskStore> Suite<'_, S> {
    pub(super) fn a_circle_of_waits_in_a_call_is_refused(&self) {
        let waits = |id: &str, of: &[&str]| Task::new(id, "").waits_for(of.iter().copied());
        let circle = [
            waits("in", &["a"]),
            waits("a", &["out", "b"]),
            waits("b", &["out", "c"]),
            waits("c", &["a"]),
            waits("out", &["nobody"]),
        ];
        let refused = wait(self.store.schedule_many(circle.to_vec()));
        let why = format!("{refused:?}");
        assert!(matches!(refused, Err(StoreError::Refused(_))), "{why}");
        assert!(why.contains("circle: a, b, c"), "{why}");
        let parent = Task::new("parent", "");
        let refused = wait(self.store.batch(parent, vec![waits("child", &["parent"])]));
        assert!(
            matches!(refused, Err(StoreError::Refused(_))),
            "{refused:?}"
        );
        // Of two that are to be unique the first counts.
        let unique = |task: Task| task.unique_for(MS(60_000));
        let first = [
            unique(waits("a", &["b"])),
            waits("b", &["a"]),
            unique(waits("a", &[])),
        ];
        let refused = wait(self.store.schedule_many(first.to_vec()));
        assert!(
            matches!(refused, Err(StoreError::Refused(_))),
            "{refused:?}"
        );
        // Many ways lead to one, and of two with one id the last counts.
        let mut tasks = circle.to_vec();
        tasks.push(waits("c", &["out"]));
        tasks.push(waits("d", &["a", "b", "c", "out"]));
        let dues = wait(self.store.schedule_many(tasks));
        assert_eq!(dues.expect("scheduled").len(), 7);
        for id in ["in", "a", "b", "c", "d", "out"] {
            assert_eq!(wait(self.store.cancel(id)), Ok(true), "{id}");
        }
        self.claims_nothing();
    }

    pub(super) fn an_id_that_cannot_be_kept_is_refused_by_every_call(&self) {
        for id in ["", "a\0b", &"x".repeat(201)] {
            let due = Due::After(MS(0));
            let answers = [
                wait(self.store.schedule(Task::new(id, ""))).map(|_| true),
                wait(self.store.cancel(id)),
                wait(self.store.reschedule(id, due)),
                wait(self.store.requeue(id, due)),
                wait(self.store.remove_dead(id)),
            ];
            for (at, answer) in answers.iter().enumerate() {
                assert!(
                    matches!(answer, Err(StoreError::Refused(_))),
                    "{id:?} {at} {answer:?}"
                );
            }
        }
        self.claims_nothing();
    }

    pub(super) fn what_is_too_much_is_refused_by_every_store(&self) {
        let refused = |answer: bool, what: &str| assert!(answer, "{what}");
        let children: Vec<_> = (0..101)
            .map(|n| Task::new(format!("child-{n}"), ""))
            .collect();
        let parent = Task::new("parent", "").waits_for(["child-0"]);
        let answer = wait(self.store.batch(parent, children));
        refused(matches!(answer, Err(StoreError::Refused(_))), "children");
        for queue in ["a\0b".to_owned(), "x".repeat(65)] {
            let ask = Ask::new("suite", MS(100), self.lease, 1).queues([queue]);
            let answer = wait(self.store.claim(ask));
            refused(matches!(answer, Err(StoreError::Refused(_))), "a queue");
        }
        self.schedule(Task::new("result", "").keep_result(MS(60_000)));
        let mut claim = Claim::clone(&self.claim("result"));
        claim.result = Some(vec![0; 100_001]);
        let answer = wait(self.store.done(&[Arc::new(claim.clone())]));
        refused(matches!(answer, Err(StoreError::Refused(_))), "a result");
        claim.result = None;
        assert!(self.is_done(&Arc::new(claim)));
        self.claims_nothing();
    }

    /// Every call under a claim is refused.
    fn is_forged(&self, claim: Claim) {
        let claim = Arc::new(claim);
        for end in ["extend", "release", "retry", "dead", "done"] {
            assert!(!self.takes(end, &claim), "{end} {claim:?}");
        }
    }

    pub(super) fn a_claim_that_was_not_given_out_is_refused(&self) {
        let now = wait(self.store.now()).expect("the time");
        for fence in [0, 1, u64::MAX] {
            self.is_forged(Claim::new("nobody", now, Fence(fence), self.lease));
        }
        self.schedule(Task::new("real", "payload"));
        self.schedule(Task::new("other", "").after(MS(1_000_000)));
        let mut real = self.claim("real");
        for again in [false, true] {
            if again {
                // A second claim has a fence of its own.
                let released = wait(self.store.release(&[Arc::clone(&real)]));
                assert!(released.expect("answered")[0].is_accepted());
                real = self.claim("real");
            }
            let fence = real.fence.0;
            for forged in [0, fence - 1, fence + 1, u64::MAX] {
                let mut claim = Claim::clone(&real);
                claim.fence = Fence(forged);
                self.is_forged(claim);
            }
            for id in ["other", "nobody", "re\0al", ""] {
                let mut claim = Claim::clone(&real);
                claim.id = id.to_owned();
                self.is_forged(claim);
            }
        }
        assert_eq!(wait(self.store.dead_letters(10)), Ok(vec![]));
        assert!(self.is_done(&real));
        assert_eq!(wait(self.store.cancel("other")), Ok(true));
        self.claims_nothing();
    }

    pub(super) fn of_two_equal_claims_in_a_call_the_first_counts(&self) {
        self.schedule(Task::new("equal", ""));
        let first = self.claim("equal");
        let released = wait(self.store.release(&[Arc::clone(&first)]));
        assert!(released.expect("answered")[0].is_accepted());
        let second = self.claim("equal");
        let claims = [&second, &first, &second].map(Arc::clone);
        let extended = wait(self.store.extend(&claims, self.lease)).expect("answered");
        let accepted: Vec<_> = extended
            .iter()
            .map(|verdict| verdict.is_accepted())
            .collect();
        assert_eq!(accepted, [true, false, true], "extended twice");
        let done = wait(self.store.done(&claims)).expect("answered");
        let accepted: Vec<_> = done.iter().map(|verdict| verdict.is_accepted()).collect();
        assert_eq!(accepted, [true, false, false]);
    }

    pub(super) fn no_task_is_due_after_the_year_9999(&self) {
        let latest = 253_402_300_799_999_999;
        let far = || Task::new("far", "").after(Duration::MAX);
        let due = wait(self.store.schedule(far())).expect("scheduled");
        assert!(due.0 <= latest, "{due:?}");
        let dues = wait(self.store.schedule_many(vec![far()])).expect("scheduled");
        assert!(dues[0].is_some_and(|due| due.0 <= latest), "{dues:?}");
        assert_eq!(wait(self.store.cancel("far")), Ok(true));
    }

    pub(super) fn a_letter_stays_while_a_task_has_its_id(&self) {
        let requeue = || wait(self.store.requeue("letter", Due::After(MS(0))));
        let letters = || wait(self.store.dead_letters(10)).map(|letters| letters.len());
        assert_eq!(requeue(), Ok(false));
        self.schedule(Task::new("letter", "old"));
        let claim = self.claim("letter");
        assert!(self.fails(&claim, Failure::dead("gone")));
        self.schedule(Task::new("letter", "new").after(MS(1_000_000)));
        assert_eq!((requeue(), letters()), (Ok(false), Ok(1)), "far");
        self.schedule(Task::new("letter", "new").after(MS(400)));
        assert_eq!((requeue(), letters()), (Ok(false), Ok(1)), "near");
        let claim = self.claim("letter");
        assert_eq!((requeue(), letters()), (Ok(false), Ok(1)), "claimed");
        assert!(self.extends(&claim));
        assert!(self.is_done(&claim));
        assert_eq!((requeue(), letters()), (Ok(true), Ok(0)));
        let again = self.claim("letter");
        assert_eq!((again.attempt, &*again.payload), (1, &b"old"[..]));
        // It is claimed again, by another one.
        let released = wait(self.store.release(&[again]));
        assert!(released.expect("answered")[0].is_accepted());
        let again = self.claim("letter");
        assert!(self.fails(&again, Failure::dead("gone")));
        assert_eq!((requeue(), letters()), (Ok(true), Ok(0)));
        let again = self.claim("letter");
        assert!(self.is_done(&again));
        assert_eq!(requeue(), Ok(false));
    }
}
