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
        let many = wait(self.store.schedule_many(vec![unique("many")]));
        assert_eq!(many, Ok(vec![None]), "many");
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

    /// Each is kept or a duplicate, by itself, and those beside it are kept.
    pub(super) fn of_many_in_a_call_those_are_kept_that_are_unique(&self) {
        let unique = |n: u64, payload: &str| {
            let task = Task::new(format!("one of many {n}"), payload).unique_for(MS(60_000));
            if n.is_multiple_of(2) {
                return task;
            }
            task.after(MS(60_000))
        };
        wait(self.store.schedule(unique(2, "alone"))).expect("scheduled");
        wait(self.store.schedule(unique(3, "alone"))).expect("scheduled");
        assert_eq!(wait(self.store.cancel("one of many 3")), Ok(true));
        // More than go in one batch of NATS; of two ids there are two.
        let mut tasks: Vec<_> = (0..220).map(|n| unique(n, "first")).collect();
        tasks.extend([unique(4, "second"), unique(5, "second")]);
        tasks.push(Task::new("beside", "").after(MS(60_000)));
        let dues = wait(self.store.schedule_many(tasks.clone())).expect("scheduled");
        let is_kept: Vec<_> = dues.iter().map(Option::is_some).collect();
        let refused = (0..is_kept.len()).filter(|n| !is_kept[*n]);
        assert_eq!(refused.collect::<Vec<_>>(), [2, 3, 220, 221]);
        for (n, payload) in [(2, Some("alone")), (3, None), (4, Some("first"))] {
            let look = wait(self.store.look(&format!("one of many {n}"))).expect("looked");
            let seen = look.map(|look| look.payload);
            assert_eq!(seen.as_deref(), payload.map(str::as_bytes), "{n}");
        }
        // All are duplicates but the one that is not to be unique.
        let again = wait(self.store.schedule_many(tasks)).expect("scheduled");
        assert_eq!(again.iter().flatten().count(), 1, "{again:?}");
        assert!(again.last().is_some_and(Option::is_some));
        // Also if it is unique for no time.
        let twice = Task::new("unique for no time", "").unique_for(MS(0));
        let twice = vec![twice.clone().after(MS(60_000)), twice];
        let kept = wait(self.store.schedule_many(twice)).expect("scheduled");
        assert!(kept[0].is_some() && kept[1].is_none(), "{kept:?}");
        assert_eq!(wait(self.store.cancel("unique for no time")), Ok(true));
        let mixture = vec![unique(7, ""), Task::new("one of many 7", "")];
        let refused = wait(self.store.schedule_many(mixture));
        assert!(
            matches!(refused, Err(StoreError::Refused(_))),
            "{refused:?}"
        );
        for n in (0..220).filter(|n| *n != 3) {
            let cancelled = wait(self.store.cancel(&format!("one of many {n}")));
            assert_eq!(cancelled, Ok(true), "{n}");
        }
        assert_eq!(wait(self.store.cancel("beside")), Ok(true));
        self.claims_nothing();
    }

    /// Eight calls of fifty ids, in several orders, keep each id once.
    pub(super) fn of_many_calls_of_many_each_unique_task_is_kept_by_one(&self) {
        const IDS: usize = 50;
        let unique = |n: usize| Task::new(format!("each once {n}"), "").unique_for(MS(60_000));
        let call = |first: usize| {
            let tasks = (0..IDS).map(|n| unique((n * 7 + first) % IDS));
            let dues = wait(self.store.schedule_many(tasks.collect()));
            dues.expect("scheduled").iter().flatten().count()
        };
        let kept: usize = thread::scope(|scope| {
            let calls = (0..8).map(|first| scope.spawn(move || call(first)));
            let calls: Vec<_> = calls.collect();
            calls
                .into_iter()
                .map(|call| call.join().expect("no panic"))
                .sum()
        });
        assert_eq!(kept, IDS);
        for n in 0..IDS {
            assert_eq!(wait(self.store.cancel(&format!("each once {n}"))), Ok(true));
        }
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
