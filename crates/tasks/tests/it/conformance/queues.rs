//! Every store claims from the queues that are asked for, and from no others.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tidewheel_tasks::{Due, Failure, Priority, Rate, StoreError, Task, TaskStore, wait};

use super::Suite;
use crate::common::MS;

impl<S: TaskStore> Suite<'_, S> {
    pub(super) fn only_queues_that_are_asked_for_are_claimed_from(&self) {
        for queue in ["", "mails", "reports"] {
            self.schedule(Task::new(format!("in {queue}"), "").queue(queue));
        }
        assert_eq!(self.ask_of(&["nobody's"]), []);
        let mail = self.claim_of(&["mails", "nobody's"]);
        assert_eq!((&*mail.id, &*mail.terms.queue), ("in mails", "mails"));
        assert_eq!(self.ask_of(&["mails", "nobody's"]), []);
        let default = self.claim_of(&[""]);
        assert_eq!(default.id, "in ");
        // All queues are those that are left.
        let report = self.claim("in reports");
        for claim in [mail, default, report] {
            assert!(self.extends(&claim));
            assert!(self.is_done(&claim));
        }
        self.claims_nothing();
    }

    pub(super) fn a_task_keeps_its_queue_until_another_replaces_it(&self) {
        self.schedule(Task::new("queued", "").queue("mails"));
        let first = self.claim_of(&["mails"]);
        assert!(self.fails(&first, Failure::retry(Due::After(MS(10)), "busy")));
        let second = self.claim_of(&["mails"]);
        assert_eq!(second.attempt, 2);
        let released = wait(self.store.release(&[Arc::clone(&second)]));
        assert!(released.expect("answered")[0].is_accepted());
        let third = self.claim_of(&["mails"]);
        assert!(self.fails(&third, Failure::dead("gone")));
        let letters = wait(self.store.dead_letters(10)).expect("letters");
        assert_eq!(letters[0].terms.queue, "mails");
        assert_eq!(
            wait(self.store.requeue("queued", Due::After(MS(0)))),
            Ok(true)
        );
        let again = self.claim_of(&["mails"]);
        assert_eq!((&*again.id, again.attempt), ("queued", 1));
        assert_eq!(
            wait(self.store.reschedule("queued", Due::After(MS(350)))),
            Ok(true)
        );
        let moved = self.claim_of(&["mails"]);
        assert_eq!(moved.id, "queued");
        // Its lease ends.
        (self.pass)(self.lease + MS(50));
        let left = self.claim_of(&["mails"]);
        assert!(left.fence > moved.fence);
        // The same id in another queue is another task instead of it.
        self.schedule(Task::new("queued", "new").queue("reports"));
        assert!(!self.is_done(&left));
        let other = self.claim_of(&["reports"]);
        assert_eq!(other.payload, b"new");
        assert_eq!(self.ask_of(&["mails"]), []);
        assert!(self.is_done(&other));
        self.claims_nothing();
    }

    pub(super) fn priorities_come_before_queues(&self) {
        let low = [
            ("a", Priority::Low),
            ("z", Priority::High),
            ("m", Priority::Normal),
        ];
        for (queue, priority) in low {
            let task = Task::new(queue, "").queue(queue).priority(priority);
            self.schedule(task.after(MS(400)));
        }
        self.claims_nothing();
        (self.pass)(MS(800));
        for id in ["z", "m", "a"] {
            let claim = self.claim(id);
            assert!(self.is_done(&claim));
        }
        self.claims_nothing();
    }

    pub(super) fn a_paused_queue_gives_no_claims_and_what_runs_goes_on(&self) {
        let paused = || wait(self.store.paused()).expect("answered");
        assert_eq!(paused(), [""; 0]);
        for queue in ["mails", ""] {
            let other = if queue.is_empty() { "mails" } else { "" };
            for id in ["runs", "back", "ends"] {
                self.schedule(Task::new(id, "").queue(queue));
            }
            let mut claims = Vec::new();
            while claims.len() < 3 {
                claims.extend(self.ask_of(&[queue]).into_iter().map(Arc::new));
                (self.pass)(MS(25));
            }
            claims.sort_by(|a, b| a.id.cmp(&b.id));
            assert_eq!(wait(self.store.pause(queue)), Ok(()));
            assert_eq!(wait(self.store.pause(queue)), Ok(()), "twice");
            assert_eq!(paused(), [queue]);
            // What runs goes on, and what goes back stays.
            assert!(self.extends(&claims[2]));
            assert!(self.is_done(&claims[2]));
            assert!(self.is_done(&claims[1]));
            let back = wait(self.store.release(&claims[..1])).expect("answered");
            assert!(back[0].is_accepted());
            self.schedule(Task::new("new", "").queue(queue));
            self.schedule(Task::new("other", "").queue(other));
            let of_other = self.claim("other");
            assert!(self.is_done(&of_other));
            (self.pass)(MS(400));
            self.claims_nothing();
            assert_eq!(self.ask_of(&[queue]), []);
            assert_eq!(wait(self.store.cancel("new")), Ok(true));
            assert_eq!(wait(self.store.resume(queue)), Ok(()));
            assert_eq!(wait(self.store.resume(queue)), Ok(()), "twice");
            assert_eq!(paused(), [""; 0]);
            let back = self.claim("back");
            assert!(self.is_done(&back));
            self.claims_nothing();
        }
        let refused = wait(self.store.pause("a\nb"));
        assert!(
            matches!(refused, Err(StoreError::Refused(_))),
            "{refused:?}"
        );
    }

    pub(super) fn a_limited_queue_gives_so_many_slots_in_each_period(&self) {
        let rate = Rate::new(3, MS(400));
        assert_eq!(wait(self.store.limit("mails", Some(rate))), Ok(()));
        let rules = wait(self.store.queue_rules()).expect("answered");
        assert_eq!(rules.get("mails").and_then(|rules| rules.limit), Some(rate));
        for n in 0..8 {
            self.schedule(Task::new(format!("{n}"), "").queue("mails"));
        }
        let due = self.schedule(Task::new("free", ""));
        let (mut slots, mut free) = (Vec::new(), Vec::new());
        for _ in 0..400 {
            let claims: Vec<_> = self.ask(10).into_iter().map(Arc::new).collect();
            let done = wait(self.store.done(&claims)).expect("answered");
            assert!(done.iter().all(|verdict| verdict.is_accepted()));
            for claim in claims {
                match &*claim.terms.queue {
                    "mails" => slots.push(claim.due.0 / 400_000),
                    _ => free.push(claim.due),
                }
            }
            if slots.len() + free.len() == 9 {
                break;
            }
            (self.pass)(MS(25));
        }
        assert_eq!((slots.len(), free), (8, vec![due]));
        for slot in &slots {
            let times = slots.iter().filter(|other| *other == slot).count();
            assert!(times <= 3, "{slots:?}");
        }
        assert_eq!(wait(self.store.limit("mails", None)), Ok(()));
        assert_eq!(wait(self.store.queue_rules()), Ok(BTreeMap::new()));
        for wrong in [Rate::new(0, MS(400)), Rate::new(1, MS(99))] {
            let refused = wait(self.store.limit("mails", Some(wrong)));
            assert!(matches!(refused, Err(StoreError::Refused(_))), "{wrong:?}");
        }
        self.claims_nothing();
    }

    pub(super) fn a_claim_that_goes_back_frees_its_slot(&self) {
        // A test that runs at the end of a week has bad luck.
        let rate = Rate::new(2, Duration::from_secs(7 * 86_400));
        assert_eq!(wait(self.store.limit("mails", Some(rate))), Ok(()));
        for n in 0..3 {
            self.schedule(Task::new(format!("{n}"), "").queue("mails"));
        }
        let mut claims = Vec::new();
        while claims.len() < 2 {
            claims.extend(self.ask_of(&["mails"]).into_iter().map(Arc::new));
            (self.pass)(MS(25));
        }
        assert_eq!(claims.len(), 2);
        (self.pass)(MS(100));
        self.claims_nothing();
        let back = wait(self.store.release(&claims[..1])).expect("answered");
        assert!(back[0].is_accepted());
        // Nor does one that is put off keep it.
        let again = self.claim_of(&["mails"]);
        assert!(self.fails(&again, Failure::put_off(Due::After(MS(0)))));
        let again = self.claim_of(&["mails"]);
        self.claims_nothing();
        // A claim stays whose slot is freed.
        assert_eq!(wait(self.store.free_slot(&again)), Ok(()));
        assert!(self.is_done(&again));
        assert!(self.is_done(&claims[1]));
        // Nor does one that goes back because its queue is paused.
        let last = self.claim_of(&["mails"]);
        assert_eq!(wait(self.store.pause("mails")), Ok(()));
        let back = wait(self.store.release(std::slice::from_ref(&last)));
        assert!(back.expect("answered")[0].is_accepted());
        assert_eq!(wait(self.store.resume("mails")), Ok(()));
        let last = self.claim_of(&["mails"]);
        assert!(self.is_done(&last));
        self.claims_nothing();
        assert_eq!(wait(self.store.limit("mails", None)), Ok(()));
    }

    pub(super) fn what_is_put_off_keeps_its_attempt_and_whom_it_waits_for(&self) {
        let parent = Task::new("parent", "payload").needs(["a b", "c\nd"]);
        let children = vec![Task::new("a b", "").after(MS(60_000))];
        let dues = wait(self.store.batch(parent.clone(), children)).expect("scheduled");
        assert_eq!(dues.len(), 2);
        let first = self.claim("parent");
        assert_eq!(first.terms, parent.terms);
        assert!(self.fails(&first, Failure::put_off(Due::After(MS(400)))));
        self.claims_nothing();
        let second = self.claim("parent");
        assert_eq!((second.attempt, second.began), (1, first.due));
        assert_eq!(
            (&second.terms, &*second.payload),
            (&parent.terms, &b"payload"[..])
        );
        assert!(self.fails(&second, Failure::retry(Due::After(MS(0)), "busy")));
        let third = self.claim("parent");
        assert_eq!(third.attempt, 2);
        assert!(self.is_done(&third));
        assert_eq!(wait(self.store.cancel("a b")), Ok(true));
        self.claims_nothing();
    }

    pub(super) fn any_name_of_a_queue_is_kept_or_refused(&self) {
        for queue in ["a.b", "*", ">", "ä 漢=%41-1", "'; --", "-", &"x".repeat(64)] {
            self.schedule(Task::new("named", "").queue(queue));
            let claim = self.claim_of(&[queue]);
            assert_eq!((&*claim.id, &*claim.terms.queue), ("named", queue));
            assert!(self.is_done(&claim));
        }
        for queue in ["a\nb", "a\0b", &"x".repeat(65)] {
            let refused = wait(self.store.schedule(Task::new("named", "").queue(queue)));
            assert!(matches!(refused, Err(StoreError::Refused(_))), "{queue:?}");
        }
        self.claims_nothing();
    }
}
