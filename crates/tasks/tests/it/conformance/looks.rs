//! Every store can be looked into, and keeps the rhythm that it has.

use tidewheel_tasks::{Due, Failure, Priority, Rhythm, StoreError, Task, TaskStore, wait};

use super::Suite;
use crate::common::MS;

impl<S: TaskStore> Suite<'_, S> {
    pub(super) fn a_task_is_looked_at_wherever_it_is(&self) {
        let look = |id| wait(self.store.look(id)).expect("answered");
        assert_eq!(look("seen"), None);
        let task = Task::new("seen", "payload").priority(Priority::High);
        let due = self.schedule(task.every(MS(60_000)).after(MS(5000)));
        let far = look("seen").expect("pending");
        assert_eq!((&*far.id, far.due, far.attempt), ("seen", due, 1));
        assert_eq!(
            (&*far.payload, far.priority),
            (&b"payload"[..], Priority::High)
        );
        assert_eq!(far.terms.rhythm, Some(Rhythm::Every(MS(60_000))));
        assert_eq!(
            wait(self.store.reschedule("seen", Due::After(MS(0)))),
            Ok(true)
        );
        let claim = self.claim("seen");
        let claimed = look("seen").expect("claimed");
        assert_eq!((claimed.due, claimed.attempt), (claim.due, 1));
        assert!(self.fails(&claim, Failure::retry(Due::After(MS(2000)), "busy")));
        let retry = look("seen").expect("it is tried again");
        assert_eq!(retry.attempt, 2);
        assert!(retry.due > claim.due);
        assert_eq!(wait(self.store.cancel("seen")), Ok(true));
        assert_eq!(look("seen"), None);
        let refused = wait(self.store.look(""));
        assert!(
            matches!(refused, Err(StoreError::Refused(_))),
            "{refused:?}"
        );
    }

    pub(super) fn a_rhythm_that_is_ensured_goes_on_until_it_changes(&self) {
        let task = |period| Task::new("kept", "new").every(MS(period)).after(MS(3000));
        let ensure = |period| wait(self.store.ensure(task(period)));
        let due = || {
            wait(self.store.look("kept"))
                .expect("answered")
                .map(|task| task.due)
        };
        let first = self.schedule(Task::new("kept", "old").every(MS(60_000)).after(MS(4000)));
        assert_eq!((ensure(60_000), due()), (Ok(false), Some(first)));
        let kept = wait(self.store.look("kept")).expect("answered");
        assert_eq!(kept.map(|task| task.payload), Some(b"old".to_vec()));
        assert_eq!(ensure(30_000), Ok(true));
        let kept = wait(self.store.look("kept")).expect("answered");
        assert_eq!(kept.map(|task| task.payload), Some(b"new".to_vec()));
        // What is claimed has its rhythm, too.
        assert_eq!(
            wait(self.store.reschedule("kept", Due::After(MS(0)))),
            Ok(true)
        );
        let claim = self.claim("kept");
        assert_eq!(ensure(30_000), Ok(false));
        assert!(self.is_done(&claim));
        assert_eq!(ensure(30_000), Ok(false));
        assert_eq!(wait(self.store.cancel("kept")), Ok(true));
        assert_eq!(ensure(30_000), Ok(true));
        assert_eq!(wait(self.store.cancel("kept")), Ok(true));
        self.claims_nothing();
        let refused = wait(self.store.ensure(Task::new("kept", "").every(MS(0))));
        assert!(
            matches!(refused, Err(StoreError::Refused(_))),
            "{refused:?}"
        );
    }
}
