//! Every store goes on with tasks that have a rhythm, and keeps what it cannot read.

use std::sync::Arc;

use tidewheel_tasks::{CatchUp, Claim, Due, Failure, Rhythm, Task, TaskStore, Terms, wait};

use super::Suite;
use crate::common::MS;

impl<S: TaskStore> Suite<'_, S> {
    pub(super) fn a_periodic_task_goes_on_in_its_rhythm(&self) {
        self.schedule(Task::new("tick", "payload").every(MS(400)));
        let first = self.claim("tick");
        assert!(self.is_done(&first));
        let second = self.claim("tick");
        assert_eq!(second.due, first.due.plus(MS(400)));
        assert_eq!(
            (second.terms.rhythm.clone(), &*second.payload),
            (Some(Rhythm::Every(MS(400))), &b"payload"[..])
        );
        assert!(!self.is_done(&first));
        // It is tried again, and keeps its rhythm.
        assert!(self.fails(&second, Failure::retry(Due::After(MS(10)), "busy")));
        let retry = self.claim("tick");
        assert_eq!((retry.attempt, retry.began), (2, second.due));
        assert!(self.is_done(&retry));
        let third = self.claim("tick");
        assert_eq!(third.attempt, 1);
        let since = third.due.since(first.due).as_micros();
        assert_eq!(since % 400_000, 0);
        assert_eq!(wait(self.store.cancel("tick")), Ok(true));
        assert!(!self.is_done(&third));
        (self.pass)(MS(600));
        self.claims_nothing();
    }

    /// A run that takes so many fifths of a second.
    fn runs_long(&self, id: &str, fifths: u64) -> Arc<Claim> {
        let claim = self.claim(id);
        for _ in 0..fifths {
            (self.pass)(MS(200));
            assert!(self.extends(&claim));
        }
        assert!(self.is_done(&claim));
        claim
    }

    pub(super) fn missed_runs_are_made_up_one_after_another_as_the_task_says(&self) {
        let task = Task::new("missed", "").every(MS(600));
        self.schedule(task.clone().catch_up(CatchUp::Burst(2)));
        let first = self.runs_long("missed", 10);
        // Of the three that were missed, the latest two; then those that come.
        let second = self.runs_long("missed", 0);
        let behind = second.due.since(first.due);
        assert_eq!(behind.as_micros() % 600_000, 0);
        assert!(behind > MS(600), "{behind:?}");
        let third = self.runs_long("missed", 0);
        assert_eq!(third.due, second.due.plus(MS(600)));
        assert_eq!(third.terms.catch_up, CatchUp::Burst(2));
        assert_eq!(wait(self.store.cancel("missed")), Ok(true));

        self.schedule(task.catch_up(CatchUp::Delay));
        let late = self.runs_long("missed", 4);
        let next = wait(self.store.look("missed")).expect("answered");
        let due = next.expect("pending").due;
        assert!(due >= late.due.plus(MS(1400)), "{due} {late:?}");
        assert_eq!(wait(self.store.cancel("missed")), Ok(true));
        self.claims_nothing();
    }

    pub(super) fn a_periodic_task_goes_on_after_its_run_is_dead(&self) {
        self.schedule(Task::new("tock", "").every(MS(300)));
        let first = self.claim("tock");
        assert!(self.fails(&first, Failure::dead("this time")));
        let second = self.claim("tock");
        assert_eq!((second.attempt, second.due), (1, first.due.plus(MS(300))));
        assert_eq!(wait(self.store.remove_dead("tock")), Ok(true));
        assert_eq!(wait(self.store.cancel("tock")), Ok(true));
        (self.pass)(MS(500));
        self.claims_nothing();
    }

    #[cfg(feature = "cron")]
    pub(super) fn a_cron_task_runs_at_its_times_and_leaves_out_the_missed(&self) {
        let second = 1_000_000;
        let task = |id: &str| Task::new(id, "payload").cron("* * * * * *", "Asia/Kolkata");
        let before = wait(self.store.now()).expect("the time");
        let due = self.schedule(task("cron").expect("a task"));
        assert_eq!(due.0, before.0.div_ceil(second) * second, "{before}");
        let first = self.claim("cron");
        assert_eq!(first.due, due);
        // A retry keeps the rhythm.
        assert!(self.fails(&first, Failure::retry(Due::After(MS(10)), "busy")));
        let retry = self.claim("cron");
        assert_eq!((retry.attempt, retry.began), (2, due));
        (self.pass)(MS(300));
        let now = wait(self.store.now()).expect("the time");
        assert!(self.is_done(&retry));
        let second_run = self.claim("cron");
        let next = second_run.due.0;
        assert!(
            next.is_multiple_of(second) && next > now.0,
            "{second_run:?} {now}"
        );
        assert_eq!(
            (second_run.attempt, &*second_run.payload),
            (1, &b"payload"[..])
        );
        assert_eq!(second_run.terms, task("cron").expect("a task").terms);
        // Runs are missed meanwhile.
        let missed = self.lease / 3 * 2;
        (self.pass)(missed);
        assert!(self.extends(&second_run));
        (self.pass)(missed);
        let now = wait(self.store.now()).expect("the time");
        assert!(self.fails(&second_run, Failure::dead("this time")));
        let third = self.claim("cron");
        assert!(
            third.due.0.is_multiple_of(second) && third.due > now,
            "{third:?} {now}"
        );
        assert_eq!(wait(self.store.remove_dead("cron")), Ok(true));
        assert!(self.is_done(&third));
        assert_eq!(wait(self.store.cancel("cron")), Ok(true));
        // Its first time is one of its times, however it is scheduled.
        let later = || task("later cron").expect("a task").after(MS(3_600_100));
        for due in [self.schedule(later()), self.schedule_many(&[later()])[0]] {
            assert!(due.0.is_multiple_of(second) && due > before.plus(MS(3_600_000)));
        }
        assert_eq!(wait(self.store.cancel("later cron")), Ok(true));
        self.claims_nothing();
    }

    pub(super) fn what_another_version_has_written_becomes_a_letter_that_has_all_of_it(&self) {
        let text = "moon=full, in the zone A/B";
        let mut task = Task::new("newer", "payload");
        task.terms = Terms::of_text(text);
        self.schedule(task);
        for _ in 0..2 {
            let letter = || {
                self.claims_nothing();
                (self.pass)(MS(25));
                wait(self.store.dead_letters(10)).expect("letters").pop()
            };
            let letter = (0..200).find_map(|_| letter()).expect("a letter");
            assert!(letter.error.contains("moon=full"), "{letter:?}");
            assert_eq!((&*letter.id, &*letter.payload), ("newer", &b"payload"[..]));
            assert_eq!(letter.terms, Terms::of_text(text));
            // A program that can read it would run it now.
            assert_eq!(
                wait(self.store.requeue("newer", Due::After(MS(0)))),
                Ok(true)
            );
        }
        assert_eq!(wait(self.store.cancel("newer")), Ok(true));
        self.claims_nothing();
    }
}
