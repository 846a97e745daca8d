//! Every store says of an id where its task is, how far it has come, and what it has left; and it
//! keeps the rhythm that it has.

use std::sync::Arc;

use tidewheel_tasks::{
    Claim, Due, Failure, Look, Priority, Rhythm, State, StoreError, Task, TaskStore, Verdict, wait,
};

use super::Suite;
use crate::common::MS;

impl<S: TaskStore> Suite<'_, S> {
    fn look(&self, id: &str) -> Option<Look> {
        wait(self.store.look(id)).expect("answered")
    }

    fn progresses(&self, claim: &Claim, progress: &[u8]) -> bool {
        let told = wait(self.store.progress(claim, progress.to_vec()));
        told.expect("answered").is_accepted()
    }

    pub(super) fn a_look_says_where_a_task_is_and_what_it_has_left(&self) {
        assert_eq!(self.look("looked"), None);
        let due = self.schedule(Task::new("looked", "").queue("mails").after(MS(400)));
        let look = self.look("looked").expect("a task");
        assert_eq!(
            (look.state, look.due, &*look.terms.queue),
            (State::Pending, due, "mails")
        );
        assert_eq!(
            (look.attempt, look.progress, look.result, look.error),
            (1, None, None, None)
        );
        let claim = self.claim("looked");
        assert_eq!(
            self.look("looked").map(|look| look.state),
            Some(State::Claimed)
        );
        assert!(self.fails(&claim, Failure::retry(Due::After(MS(400)), "busy")));
        let look = self.look("looked").expect("a task");
        assert_eq!((look.state, look.attempt), (State::Pending, 2));
        let claim = self.claim("looked");
        assert!(self.fails(&claim, Failure::dead("gone")));
        let look = self.look("looked").expect("a letter");
        assert_eq!(
            (look.state, look.attempt, &*look.terms.queue),
            (State::Dead, 2, "mails")
        );
        assert_eq!(look.error.as_deref(), Some("gone"));
        assert!(look.due >= due);
        self.schedule(Task::new("looked", "").after(MS(60_000)));
        assert_eq!(
            self.look("looked").map(|look| look.state),
            Some(State::Pending)
        );
        assert_eq!(wait(self.store.cancel("looked")), Ok(true));
        assert_eq!(wait(self.store.remove_dead("looked")), Ok(true));
        assert_eq!(self.look("looked"), None);
        for id in ["", "a\0b"] {
            let refused = wait(self.store.look(id));
            assert!(
                matches!(refused, Err(StoreError::Refused(_))),
                "{refused:?}"
            );
        }
        self.claims_nothing();
    }

    pub(super) fn progress_goes_with_its_attempt(&self) {
        self.schedule(Task::new("goes", ""));
        let first = self.claim("goes");
        let progress = || self.look("goes").and_then(|look| look.progress);
        assert_eq!(progress(), None);
        for said in [&b"1"[..], b"", b"\0\xff"] {
            assert!(self.progresses(&first, said));
            assert_eq!(progress().as_deref(), Some(said));
        }
        let long = wait(self.store.progress(&first, vec![0; 100_001]));
        assert!(matches!(long, Err(StoreError::Refused(_))), "{long:?}");
        assert!(self.extends(&first));
        assert!(progress().is_some());
        // The next attempt begins anew, and the first is told nothing any more.
        assert!(self.fails(&first, Failure::retry(Due::After(MS(0)), "busy")));
        assert_eq!(progress(), None);
        let second = self.claim("goes");
        assert!(!self.progresses(&first, b"late"));
        assert_eq!(progress(), None);
        assert!(self.progresses(&second, b"2"));
        self.schedule(Task::new("goes", "new").after(MS(60_000)));
        assert!(!self.progresses(&second, b"late"));
        assert_eq!(progress(), None);
        assert_eq!(wait(self.store.cancel("goes")), Ok(true));
        assert!(!self.progresses(&second, b"late"));
        self.claims_nothing();
    }

    fn is_done_with(&self, claim: &Arc<Claim>, result: Option<&[u8]>) -> Verdict {
        let mut claim = Claim::clone(claim);
        claim.result = result.map(<[u8]>::to_vec);
        wait(self.store.done(&[Arc::new(claim)])).expect("answered")[0]
    }

    pub(super) fn a_result_is_kept_for_a_time(&self) {
        // No task says that it is kept.
        self.schedule(Task::new("result", ""));
        let claim = self.claim("result");
        assert!(self.is_done_with(&claim, Some(b"0")).is_accepted());
        assert_eq!(self.look("result"), None);
        let task = |queue: &str| Task::new("result", "").keep_result(MS(1200)).queue(queue);
        for (queue, result) in [("mails", Some(&b"\0\xff"[..])), ("", Some(b"")), ("", None)] {
            self.schedule(task(queue));
            let claim = self.claim("result");
            assert_eq!(claim.terms.keep_result, Some(MS(1200)));
            assert!(self.is_done_with(&claim, result).is_accepted());
            let look = self.look("result").expect("a result");
            assert_eq!((look.state, &*look.terms.queue), (State::Done, queue));
            assert_eq!(look.result.as_deref(), Some(result.unwrap_or_default()));
            assert!(look.due >= claim.due);
            assert!(!self.is_done_with(&claim, Some(b"late")).is_accepted());
            assert_ne!(
                self.look("result").and_then(|look| look.result),
                Some(b"late".to_vec())
            );
        }
        // A task of its id comes first, and the last result is beside it.
        self.schedule(task("").every(MS(60_000)));
        let claim = self.claim("result");
        assert!(self.is_done_with(&claim, Some(b"3")).is_accepted());
        let look = self.look("result").expect("a task");
        assert_eq!(
            (look.state, look.result.as_deref()),
            (State::Pending, Some(&b"3"[..]))
        );
        assert_eq!(wait(self.store.cancel("result")), Ok(true));
        assert_eq!(
            self.look("result").map(|look| look.state),
            Some(State::Done)
        );
        (self.pass)(MS(1300));
        assert_eq!(self.look("result"), None);
        // A run that failed leaves none.
        self.schedule(task(""));
        let claim = self.claim("result");
        assert!(self.fails(&claim, Failure::dead("gone")));
        let look = self.look("result").expect("a letter");
        assert_eq!((look.state, look.result), (State::Dead, None));
        assert_eq!(wait(self.store.remove_dead("result")), Ok(true));
        self.claims_nothing();
    }

    /// The first that is in the way of a task that waits for these, or needs them.
    fn ahead(&self, ids: &[String]) -> [Option<(String, State)>; 2] {
        let those = || ids.iter().cloned();
        let tasks = [
            Task::new("", "").waits_for(those()),
            Task::new("", "").needs(those()),
        ];
        tasks.map(|task| {
            let waits = task.terms.waits.expect("it waits");
            let look = wait(self.store.look_ahead(&waits)).expect("answered");
            look.map(|look| (look.id, look.state))
        })
    }

    pub(super) fn what_is_in_the_way_of_a_task_that_waits_is_found_in_its_order(&self) {
        self.schedule(Task::new("dies", ""));
        let dead = self.claim("dies");
        assert!(self.fails(&dead, Failure::dead("gone")));
        self.schedule(Task::new("claimed", ""));
        let claim = self.claim("claimed");
        self.schedule(Task::new("pending", "").after(MS(60_000)));
        let found = |id: &str, state| Some((id.to_owned(), state));
        let (pending, claimed) = (
            found("pending", State::Pending),
            found("claimed", State::Claimed),
        );
        let dead = found("dies", State::Dead);
        for ended in [0, 1, 30] {
            let ahead = |ids: &[&str]| {
                let ended = (0..ended).map(|n| format!("ended-{n}"));
                let ids = ended.chain(ids.iter().map(|id| (*id).to_owned()));
                self.ahead(&ids.collect::<Vec<_>>())
            };
            assert_eq!(ahead(&[]), [None, None]);
            assert_eq!(ahead(&["dies"]), [None, dead.clone()]);
            assert_eq!(
                ahead(&["claimed", "dies"]),
                [claimed.clone(), claimed.clone()]
            );
            let all = ["dies", "ended", "pending", "claimed"];
            assert_eq!(ahead(&all), [pending.clone(), dead.clone()]);
        }
        let waits = Task::new("", "").waits_for(["a\0b"]).terms.waits;
        let refused = wait(self.store.look_ahead(&waits.expect("it waits")));
        assert!(
            matches!(refused, Err(StoreError::Refused(_))),
            "{refused:?}"
        );
        assert!(self.is_done(&claim));
        assert_eq!(wait(self.store.cancel("pending")), Ok(true));
        assert_eq!(wait(self.store.remove_dead("dies")), Ok(true));
        self.claims_nothing();
    }

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
