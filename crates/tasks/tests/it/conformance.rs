//! Every store passes these tests: the same steps for each, in the store's own time.

mod lists;
mod looks;
mod queues;
mod races;
mod refusals;
mod rhythms;
mod starts;
mod unique;

use std::sync::Arc;
use std::time::Duration;

use tidewheel_tasks::{
    Ask, Claim, Due, Failure, Priority, StoreError, Task, TaskStore, Terms, Timestamp, wait,
};

use crate::common::MS;

/// The way in which a store's time passes: virtual time is moved, real time is waited for.
pub(crate) type Pass<'a> = &'a dyn Fn(Duration);

/// All steps, each with ids of its own. `lease` is how long the store's claims last.
pub(crate) fn suite(store: &impl TaskStore, lease: Duration, pass: Pass<'_>) {
    let suite = Suite { store, lease, pass };
    suite.a_task_is_claimed_when_it_is_due_soon_and_once();
    suite.another_task_of_an_id_replaces_the_pending_one();
    suite.many_tasks_are_kept_by_one_call();
    suite.what_is_cancelled_is_not_claimed();
    suite.what_is_moved_is_claimed_at_its_new_time();
    suite.a_task_that_is_near_replaces_one_that_is_far();
    suite.a_lease_ends_and_the_next_fence_is_higher();
    suite.an_extended_lease_does_not_end();
    suite.a_run_that_is_never_answered_counts_if_its_start_was_noted();
    suite.what_is_released_is_claimed_at_once();
    suite.a_failure_is_tried_again_and_counted();
    suite.a_dead_letter_is_kept_requeued_and_removed();
    suite.a_periodic_task_goes_on_in_its_rhythm();
    suite.missed_runs_are_made_up_one_after_another_as_the_task_says();
    suite.a_periodic_task_goes_on_after_its_run_is_dead();
    suite.what_another_version_has_written_becomes_a_letter_that_has_all_of_it();
    #[cfg(feature = "cron")]
    suite.a_cron_task_runs_at_its_times_and_leaves_out_the_missed();
    suite.a_task_is_looked_at_wherever_it_is();
    suite.what_is_in_the_way_of_a_task_that_waits_is_found_in_its_order();
    suite.a_rhythm_that_is_ensured_goes_on_until_it_changes();
    suite.a_claim_that_is_cancelled_is_refused();
    suite.a_claim_that_is_moved_is_refused_and_runs_once_more();
    suite.every_end_of_a_claim_is_refused_once_its_id_is_scheduled_anew();
    suite.a_periodic_task_is_replaced_while_it_is_claimed();
    suite.what_is_due_at_the_end_of_time_is_kept();
    suite.higher_priorities_are_claimed_first();
    suite.only_queues_that_are_asked_for_are_claimed_from();
    suite.a_task_keeps_its_queue_until_another_replaces_it();
    suite.priorities_come_before_queues();
    suite.a_paused_queue_gives_no_claims_and_what_runs_goes_on();
    suite.a_limited_queue_gives_so_many_slots_in_each_period();
    suite.a_claim_that_goes_back_frees_its_slot();
    suite.an_id_is_unique_for_a_while();
    suite.of_many_in_a_call_those_are_kept_that_are_unique();
    suite.of_many_calls_of_many_each_unique_task_is_kept_by_one();
    suite.of_many_that_schedule_a_unique_task_one_does();
    suite.a_look_says_where_a_task_is_and_what_it_has_left();
    suite.progress_goes_with_its_attempt();
    suite.a_result_is_kept_for_a_time();
    suite.what_is_put_off_keeps_its_attempt_and_whom_it_waits_for();
    suite.lists_and_counts_say_what_is_there();
    suite.a_page_of_a_list_ends_after_some_bytes();
    suite.any_name_of_a_queue_is_kept_or_refused();
    suite.any_id_and_payload_comes_back();
    suite.an_id_that_cannot_be_kept_is_refused_by_every_call();
    suite.what_is_too_much_is_refused_by_every_store();
    suite.a_circle_of_waits_in_a_call_is_refused();
    suite.a_claim_that_was_not_given_out_is_refused();
    suite.of_two_equal_claims_in_a_call_the_first_counts();
    suite.of_a_cancel_and_the_end_of_a_run_one_is_accepted();
    suite.a_periodic_task_is_cancelled_whenever_its_run_ends();
    suite.of_a_move_and_the_end_of_a_run_one_is_accepted();
    suite.of_two_that_cancel_a_task_one_does();
    suite.a_letter_stays_while_a_task_has_its_id();
    suite.no_task_is_due_after_the_year_9999();
}

/// More than go in one batch.
const MANY: u64 = 220;

struct Suite<'a, S> {
    store: &'a S,
    lease: Duration,
    pass: Pass<'a>,
}

impl<S: TaskStore> Suite<'_, S> {
    fn schedule(&self, task: Task) -> Timestamp {
        wait(self.store.schedule(task)).expect("scheduled")
    }

    fn ask(&self, most: usize) -> Vec<Claim> {
        let ask = Ask::new("suite", MS(100), self.lease, most);
        wait(self.store.claim(ask)).expect("claimed")
    }

    /// Claims until there is one, for a few seconds: an engine may take its time.
    fn claim(&self, id: &str) -> Arc<Claim> {
        for _ in 0..200 {
            if let Some(claim) = self.ask(1).into_iter().next() {
                assert_eq!(claim.id, id);
                return Arc::new(claim);
            }
            (self.pass)(MS(25));
        }
        panic!("nobody claims {id}");
    }

    /// As [`ask`](Self::ask), of queues only.
    fn ask_of(&self, queues: &[&str]) -> Vec<Claim> {
        let ask = Ask::new("suite", MS(100), self.lease, 100);
        wait(self.store.claim(ask.queues(queues.iter().copied()))).expect("claimed")
    }

    /// Claims from queues until there is one.
    fn claim_of(&self, queues: &[&str]) -> Arc<Claim> {
        for _ in 0..200 {
            let mut claims = self.ask_of(queues).into_iter();
            if let Some(claim) = claims.next() {
                assert_eq!(claims.next(), None);
                return Arc::new(claim);
            }
            (self.pass)(MS(25));
        }
        panic!("nobody claims from {queues:?}");
    }

    fn claims_nothing(&self) {
        let claims = self.ask(100);
        assert_eq!(claims, [], "there is nothing to claim");
    }

    fn is_done(&self, claim: &Arc<Claim>) -> bool {
        let done = wait(self.store.done(std::slice::from_ref(claim))).expect("answered");
        done[0].is_accepted()
    }

    fn fails(&self, claim: &Claim, failure: Failure) -> bool {
        wait(self.store.fail(claim, failure))
            .expect("answered")
            .is_accepted()
    }

    fn extends(&self, claim: &Arc<Claim>) -> bool {
        let extended = wait(self.store.extend(std::slice::from_ref(claim), self.lease));
        extended.expect("answered")[0].is_accepted()
    }

    fn a_task_is_claimed_when_it_is_due_soon_and_once(&self) {
        self.claims_nothing();
        let before = wait(self.store.now()).expect("the time");
        let due = self.schedule(Task::new("once", "payload").after(MS(600)));
        assert!(due >= before.plus(MS(600)));
        self.claims_nothing();
        (self.pass)(MS(520));
        let claim = self.claim("once");
        assert_eq!((claim.due, claim.attempt), (due, 1));
        assert_eq!(claim.payload, b"payload");
        self.claims_nothing();
        assert!(self.is_done(&claim));
        assert!(!self.is_done(&claim), "it has ended");
        (self.pass)(self.lease + MS(300));
        self.claims_nothing();
    }

    fn another_task_of_an_id_replaces_the_pending_one(&self) {
        self.schedule(Task::new("twice", "1").after(MS(500)));
        let due = self.schedule(Task::new("twice", "2").after(MS(900)));
        (self.pass)(MS(600));
        self.claims_nothing();
        let claim = self.claim("twice");
        assert_eq!((claim.due, &*claim.payload), (due, &b"2"[..]));
        assert!(self.is_done(&claim));
        self.claims_nothing();
    }

    fn many_tasks_are_kept_by_one_call(&self) {
        // Of one id there is a claim, of another one a pending task.
        self.schedule(Task::new("many-0", "old"));
        self.claim("many-0");
        self.schedule(Task::new("many-1", "old").after(MS(400)));
        let many = |n: u64| Task::new(format!("many-{n}"), "payload").after(MS(3000 + n));
        let mut tasks: Vec<_> = (0..MANY).map(many).collect();
        tasks.push(Task::new("many-2", "last").after(MS(3300)));
        tasks.push(Task::new("at once", ""));
        let dues = self.schedule_many(&tasks);
        assert_eq!(dues[1].since(dues[0]), MS(1));
        assert_eq!(dues[2], dues[dues.len() - 2], "it is the last that counts");
        let first = self.claim("at once");
        assert!(self.is_done(&first));
        (self.pass)(MS(3400));
        let mut claims = Vec::new();
        for _ in 0..400 {
            // Each is ended before its lease is over.
            let some: Vec<_> = self.ask(50).into_iter().map(Arc::new).collect();
            let done = wait(self.store.done(&some)).expect("answered");
            assert!(done.iter().all(|verdict| verdict.is_accepted()));
            claims.extend(some);
            if claims.len() as u64 >= MANY {
                break;
            }
            (self.pass)(MS(5));
        }
        assert_eq!(claims.len() as u64, MANY);
        let of = |id: &str| claims.iter().find(|claim| claim.id == id);
        let last = of("many-2").map(|claim| (&*claim.payload, claim.due));
        assert_eq!(last, Some((&b"last"[..], dues[dues.len() - 2])));
        assert_eq!(
            of("many-1").map(|claim| &*claim.payload),
            Some(&b"payload"[..])
        );
        self.claims_nothing();
        let refused = wait(self.store.schedule_many(vec![Task::new("", "")]));
        assert!(matches!(refused, Err(StoreError::Refused(_))));
    }

    /// A busy machine may be slow, and this call may be made again.
    fn schedule_many(&self, tasks: &[Task]) -> Vec<Timestamp> {
        let mut tries = (0..10).map(|_| wait(self.store.schedule_many(tasks.to_vec())));
        let dues = tries.find_map(Result::ok).expect("scheduled");
        dues.into_iter().map(|due| due.expect("kept")).collect()
    }

    fn what_is_cancelled_is_not_claimed(&self) {
        self.schedule(Task::new("cancelled", "").after(MS(400)));
        self.schedule(Task::new("cancelled at once", ""));
        assert_eq!(wait(self.store.cancel("nobody")), Ok(false));
        for id in ["cancelled", "cancelled at once"] {
            assert_eq!(wait(self.store.cancel(id)), Ok(true));
            assert_eq!(wait(self.store.cancel(id)), Ok(false));
        }
        (self.pass)(MS(600));
        self.claims_nothing();
        // The id is free.
        self.schedule(Task::new("cancelled", ""));
        let again = self.claim("cancelled");
        assert!(self.is_done(&again));
    }

    fn what_is_moved_is_claimed_at_its_new_time(&self) {
        let at = wait(self.store.now()).expect("the time").plus(MS(700));
        assert_eq!(wait(self.store.reschedule("moved", Due::At(at))), Ok(false));
        for first in [MS(300), MS(60_000)] {
            self.schedule(Task::new("moved", "payload").after(first));
            let at = wait(self.store.now()).expect("the time").plus(MS(700));
            assert_eq!(wait(self.store.reschedule("moved", Due::At(at))), Ok(true));
            (self.pass)(MS(500));
            self.claims_nothing();
            let claim = self.claim("moved");
            assert_eq!((claim.due, &*claim.payload), (at, &b"payload"[..]));
            assert!(self.is_done(&claim));
        }
    }

    fn a_task_that_is_near_replaces_one_that_is_far(&self) {
        self.schedule(Task::new("near", "far").after(MS(700)));
        self.schedule(Task::new("near", "near"));
        let claim = self.claim("near");
        assert_eq!(claim.payload, b"near");
        assert!(self.is_done(&claim));
        (self.pass)(MS(900));
        self.claims_nothing();
    }

    fn a_lease_ends_and_the_next_fence_is_higher(&self) {
        self.schedule(Task::new("left", ""));
        let first = self.claim("left");
        (self.pass)(self.lease + MS(50));
        let second = self.claim("left");
        assert!(second.fence > first.fence);
        assert_eq!((second.attempt, second.due), (1, first.due));
        // The first is a zombie.
        assert!(!self.is_done(&first));
        assert!(!self.fails(&first, Failure::dead("late")));
        assert!(!self.extends(&first));
        assert!(self.extends(&second));
        assert!(self.is_done(&second));
        assert!(!self.is_done(&first));
        self.schedule(Task::new("left", ""));
        let third = self.claim("left");
        assert!(third.fence > second.fence);
        assert!(!self.is_done(&second));
        assert!(self.is_done(&third));
    }

    fn an_extended_lease_does_not_end(&self) {
        self.schedule(Task::new("slow", ""));
        let claim = self.claim("slow");
        for _ in 0..4 {
            (self.pass)(self.lease / 2);
            assert!(self.extends(&claim));
            self.claims_nothing();
        }
        assert!(self.is_done(&claim));
    }

    fn what_is_released_is_claimed_at_once(&self) {
        self.schedule(Task::new("back", "payload"));
        let first = self.claim("back");
        let released = wait(self.store.release(&[Arc::clone(&first)])).expect("answered");
        assert!(released[0].is_accepted());
        for end in ["done", "retry", "dead", "extend", "release"] {
            assert!(!self.takes(end, &first), "{end}");
        }
        let second = self.claim("back");
        assert!(second.fence > first.fence);
        assert_eq!((second.attempt, &*second.payload), (1, &b"payload"[..]));
        assert!(!self.is_done(&first));
        assert!(self.is_done(&second));
    }

    fn a_failure_is_tried_again_and_counted(&self) {
        self.schedule(Task::new("fails", "payload"));
        let first = self.claim("fails");
        let again = wait(self.store.now()).expect("the time").plus(MS(500));
        assert!(self.fails(&first, Failure::retry(Due::At(again), "busy")));
        assert!(!self.is_done(&first));
        self.claims_nothing();
        let second = self.claim("fails");
        assert_eq!(
            (second.attempt, second.due, second.began),
            (2, again, first.due)
        );
        assert_eq!(second.payload, b"payload");
        assert!(self.fails(&second, Failure::retry(Due::After(Duration::ZERO), "busy")));
        let third = self.claim("fails");
        assert_eq!(third.attempt, 3);
        assert!(self.is_done(&third));
    }

    fn a_dead_letter_is_kept_requeued_and_removed(&self) {
        self.schedule(Task::new("dies", "payload"));
        let claim = self.claim("dies");
        assert!(self.fails(&claim, Failure::dead("no such mailbox")));
        self.claims_nothing();
        let letters = wait(self.store.dead_letters(10)).expect("letters");
        assert_eq!(letters.len(), 1);
        let letter = &letters[0];
        assert_eq!((&*letter.id, letter.attempts), ("dies", 1));
        assert_eq!(
            (&*letter.error, &*letter.payload),
            ("no such mailbox", &b"payload"[..])
        );
        assert!(letter.died >= claim.due);
        assert_eq!(
            wait(self.store.requeue("dies", Due::After(MS(0)))),
            Ok(true)
        );
        assert_eq!(
            wait(self.store.requeue("dies", Due::After(MS(0)))),
            Ok(false)
        );
        let again = self.claim("dies");
        assert_eq!((again.attempt, &*again.payload), (1, &b"payload"[..]));
        assert!(self.fails(&again, Failure::dead("again")));
        assert_eq!(wait(self.store.remove_dead("dies")), Ok(true));
        assert_eq!(wait(self.store.remove_dead("dies")), Ok(false));
        assert_eq!(
            wait(self.store.dead_letters(10)).map(|all| all.len()),
            Ok(0)
        );
    }

    fn a_claim_that_is_cancelled_is_refused(&self) {
        self.schedule(Task::new("recalled", ""));
        let claim = self.claim("recalled");
        assert_eq!(wait(self.store.cancel("recalled")), Ok(true));
        assert!(!self.extends(&claim));
        assert!(!self.is_done(&claim));
        (self.pass)(self.lease + MS(300));
        self.claims_nothing();
    }

    fn a_claim_that_is_moved_is_refused_and_runs_once_more(&self) {
        self.schedule(Task::new("later", "payload"));
        let claim = self.claim("later");
        assert_eq!(
            wait(self.store.reschedule("later", Due::After(MS(300)))),
            Ok(true)
        );
        assert!(!self.extends(&claim));
        assert!(!self.is_done(&claim));
        let moved = self.claim("later");
        assert!(moved.fence > claim.fence);
        assert_eq!(moved.payload, b"payload");
        assert!(self.is_done(&moved));
        (self.pass)(self.lease + MS(300));
        self.claims_nothing();
    }

    /// True if the store takes an end of a claim, or another call under its fence.
    fn takes(&self, end: &str, claim: &Arc<Claim>) -> bool {
        match end {
            "done" => self.is_done(claim),
            "retry" => self.fails(claim, Failure::retry(Due::After(MS(0)), "busy")),
            "dead" => self.fails(claim, Failure::dead("gone")),
            "extend" => self.extends(claim),
            _ => {
                let released = wait(self.store.release(std::slice::from_ref(claim)));
                released.expect("answered")[0].is_accepted()
            }
        }
    }

    fn every_end_of_a_claim_is_refused_once_its_id_is_scheduled_anew(&self) {
        for end in ["done", "retry", "dead", "extend", "release"] {
            // The other task is claimed as well; it is pending; it is far away.
            for (wait, claimed) in [(0, true), (250, false), (600, false)] {
                self.schedule(Task::new("anew", "old"));
                let old = self.claim("anew");
                self.schedule(Task::new("anew", "new").after(MS(wait)));
                let mut new = claimed.then(|| self.claim("anew"));
                assert!(!self.takes(end, &old), "{end} {wait}");
                let new = new.take().unwrap_or_else(|| self.claim("anew"));
                assert_eq!((new.attempt, &*new.payload), (1, &b"new"[..]));
                assert!(new.fence > old.fence);
                assert!(!self.takes(end, &old), "{end} {wait}");
                assert!(self.is_done(&new), "{end} {wait}");
            }
        }
        assert_eq!(wait(self.store.dead_letters(10)), Ok(vec![]));
        (self.pass)(self.lease + MS(300));
        self.claims_nothing();
    }

    fn a_periodic_task_is_replaced_while_it_is_claimed(&self) {
        for end in ["done", "retry", "dead"] {
            self.schedule(Task::new("replaced", "old").every(MS(200)));
            let old = self.claim("replaced");
            self.schedule(Task::new("replaced", "new").after(MS(50)));
            assert!(!self.takes(end, &old), "{end}");
            let new = self.claim("replaced");
            assert_eq!(
                (&new.terms, &*new.payload),
                (&Terms::default(), &b"new"[..])
            );
            assert!(self.is_done(&new));
        }
        (self.pass)(MS(500));
        self.claims_nothing();
    }

    fn what_is_due_at_the_end_of_time_is_kept(&self) {
        let ends = [
            Due::After(Duration::MAX),
            Due::At(Timestamp(u64::MAX)),
            Due::After(Duration::from_secs(9000 * 366 * 86_400)),
        ];
        for due in ends {
            let mut task = Task::new("never", "");
            task.due = due;
            self.schedule(task);
            assert_eq!(wait(self.store.reschedule("never", due)), Ok(true));
            assert_eq!(wait(self.store.cancel("never")), Ok(true));
            self.schedule(Task::new("never", ""));
            let claim = self.claim("never");
            assert!(self.fails(&claim, Failure::retry(due, "busy")));
            (self.pass)(MS(500));
            self.claims_nothing();
            assert_eq!(wait(self.store.cancel("never")), Ok(true));
        }
        let task = Task::new("never", "").every(Duration::MAX);
        self.schedule(task);
        let claim = self.claim("never");
        assert!(self.is_done(&claim));
        assert_eq!(wait(self.store.cancel("never")), Ok(true));
        self.claims_nothing();
    }

    fn higher_priorities_are_claimed_first(&self) {
        for priority in [Priority::Low, Priority::High, Priority::Normal] {
            let id = format!("{priority:?}");
            self.schedule(Task::new(id, "").priority(priority));
        }
        // Engines that hand over need a moment for all of them.
        (self.pass)(MS(300));
        for priority in Priority::ALL {
            let claim = self.claim(&format!("{priority:?}"));
            assert_eq!(claim.priority, priority);
            assert!(self.is_done(&claim));
        }
    }

    fn any_id_and_payload_comes_back(&self) {
        let bytes: Vec<u8> = (0..=255).collect();
        for id in [
            "a.b",
            "*",
            ">",
            "ä 漢\n%41",
            "$JS.API",
            "'; --",
            &"x".repeat(200),
        ] {
            self.schedule(Task::new(id, bytes.clone()).after(MS(10)));
            let claim = self.claim(id);
            assert_eq!(claim.payload, bytes);
            assert!(self.is_done(&claim));
        }
        self.claims_nothing();
    }
}
