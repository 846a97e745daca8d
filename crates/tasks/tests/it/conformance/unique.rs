//! Every store refuses a task whose id is to be unique, and is not.

use std::thread;

use tidewheel_tasks::{Due, StoreError, Task, TaskStore, wait};

use super::Suite;
use crate::common::MS;

impl<S: TaskStore> Suite<'_, S> {
    pub(super) fn an_id_is_unique_for_a_while(&self) {
        let unique = |payload: &str| Task::new("unique", payload).unique_for(MS(1500));
        let schedule = |task| wait(self.store.schedule(task));
        schedule(unique("first")).expect("scheduled");
        assert_eq!(
            schedule(unique("again")),
            Err(StoreError::Duplicate),
            "pending"
        );
        let claim = self.claim("unique");
        assert_eq!(claim.payload, b"first");
        assert_eq!(claim.terms.unique_for, Some(MS(1500)));
        assert_eq!(
            schedule(unique("again")),
            Err(StoreError::Duplicate),
            "claimed"
        );
        assert!(self.extends(&claim), "nothing was changed");
        assert!(self.is_done(&claim));
        assert_eq!(
            schedule(unique("again")),
            Err(StoreError::Duplicate),
            "ended"
        );
        let far = unique("again").after(MS(60_000));
        assert_eq!(schedule(far), Err(StoreError::Duplicate), "far");
        // Others are not asked about it.
        self.schedule(Task::new("unique", "other").after(MS(60_000)));
        assert_eq!(
            wait(self.store.reschedule("unique", Due::After(MS(50_000)))),
            Ok(true)
        );
        assert_eq!(wait(self.store.cancel("unique")), Ok(true));
        assert_eq!(
            schedule(unique("again")),
            Err(StoreError::Duplicate),
            "cancelled"
        );
        let refused = wait(self.store.schedule_many(vec![unique("many")]));
        assert!(
            matches!(refused, Err(StoreError::Refused(_))),
            "{refused:?}"
        );
        (self.pass)(MS(1600));
        schedule(unique("later")).expect("its time is over");
        assert_eq!(
            schedule(unique("again")),
            Err(StoreError::Duplicate),
            "again"
        );
        let claim = self.claim("unique");
        assert_eq!(claim.payload, b"later");
        assert!(self.is_done(&claim));
        (self.pass)(MS(1600));
        self.schedule(unique("far").after(MS(60_000)));
        assert_eq!(wait(self.store.cancel("unique")), Ok(true));
        (self.pass)(MS(1600));
        self.claims_nothing();
    }

    pub(super) fn of_many_that_schedule_a_unique_task_one_does(&self) {
        let unique = || Task::new("once of many", "").unique_for(MS(1000));
        let answers: Vec<_> = thread::scope(|scope| {
            let calls = (0..8).map(|_| scope.spawn(|| wait(self.store.schedule(unique()))));
            let calls: Vec<_> = calls.collect();
            calls
                .into_iter()
                .map(|call| call.join().expect("no panic"))
                .collect()
        });
        let kept = answers.iter().filter(|answer| answer.is_ok()).count();
        let refused = answers
            .iter()
            .filter(|answer| **answer == Err(StoreError::Duplicate));
        assert_eq!((kept, refused.count()), (1, 7), "{answers:?}");
        assert_eq!(wait(self.store.cancel("once of many")), Ok(true));
        (self.pass)(MS(1100));
        // What is over is forgotten meanwhile.
        self.claims_nothing();
    }
}
