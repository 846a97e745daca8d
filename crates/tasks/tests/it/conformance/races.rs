//! Of two calls that meet, one comes first in every store: what the first says is true for the
//! second.

use std::sync::Arc;
use std::time::Duration;

use tidewheel_tasks::{Claim, Due, State, Task, TaskStore, wait};

use super::Suite;
use crate::common::MS;

const FAR: Duration = Duration::from_secs(3600);

impl<S: TaskStore> Suite<'_, S> {
    /// Schedules a task that is due, and claims it. One at a time: nobody asks while a race is on,
    /// so a lease that ends gives nobody else the claim.
    fn claim_now(&self, task: Task) -> Arc<Claim> {
        let id = task.id.clone();
        self.schedule(task);
        for _ in 0..2000 {
            if let Some(claim) = self.ask(1).pop() {
                assert_eq!(claim.id, id);
                return Arc::new(claim);
            }
            (self.pass)(MS(2));
        }
        panic!("nobody claims {id}");
    }

    /// Ends runs, each while another thread changes its task. `judge` is told the id, whether the
    /// change had a task to change, and whether the end was accepted.
    fn race_with_ends(
        &self,
        (name, races): (&str, u64),
        terms: impl Fn(Task) -> Task,
        change: impl Fn(&S, &str) -> bool,
        judge: impl Fn(&str, bool, bool),
    ) {
        let store = self.store;
        for n in 0..races {
            let claim = self.claim_now(terms(Task::new(format!("{name}-{n}"), "")));
            let (changed, ended) = std::thread::scope(|scope| {
                let claim = &claim;
                let end = scope.spawn(move || {
                    // The change is some calls long on some engines: this meets each of them.
                    for _ in 0..n % 6 {
                        wait(store.now()).expect("the time");
                    }
                    let done = wait(store.done(std::slice::from_ref(claim)));
                    done.expect("answered")[0].is_accepted()
                });
                let changed = change(store, &claim.id);
                (changed, end.join().expect("no panic"))
            });
            judge(&claim.id, changed, ended);
        }
    }

    fn is_gone(&self, id: &str) {
        let look = wait(self.store.look(id)).expect("looked");
        assert_eq!(look, None, "{id}");
    }

    /// On NATS both were accepted, of more than half the tasks.
    pub(super) fn of_a_cancel_and_the_end_of_a_run_one_is_accepted(&self) {
        let cancel = |store: &S, id: &str| wait(store.cancel(id)).expect("answered");
        self.race_with_ends(
            ("ends", 150),
            |task| task,
            cancel,
            |id, cancelled, ended| {
                assert_ne!(cancelled, ended, "{id}");
                self.is_gone(id);
            },
        );
    }

    /// On NATS it was not found between two of its runs, and went on.
    pub(super) fn a_periodic_task_is_cancelled_whenever_its_run_ends(&self) {
        let cancel = |store: &S, id: &str| wait(store.cancel(id)).expect("answered");
        let periodic = |task: Task| task.every(FAR).after(MS(0));
        self.race_with_ends(("rhythm", 50), periodic, cancel, |id, cancelled, _| {
            assert!(cancelled, "{id}");
            self.is_gone(id);
        });
    }

    pub(super) fn of_a_move_and_the_end_of_a_run_one_is_accepted(&self) {
        let put_off = |store: &S, id: &str| {
            let moved = wait(store.reschedule(id, Due::After(FAR)));
            moved.expect("answered")
        };
        self.race_with_ends(
            ("moves", 50),
            |task| task,
            put_off,
            |id, moved, ended| {
                assert_ne!(moved, ended, "{id}");
                let look = wait(self.store.look(id)).expect("looked");
                let state = look.map(|look| look.state);
                assert_eq!(state, moved.then_some(State::Pending), "{id}");
                assert_eq!(wait(self.store.cancel(id)), Ok(moved), "{id}");
            },
        );
    }

    pub(super) fn of_two_that_cancel_a_task_one_does(&self) {
        let store = self.store;
        let task = |n| Task::new(format!("twice-{n}"), "").after(FAR);
        let tasks: Vec<_> = (0..50).map(task).collect();
        let ids: Vec<_> = tasks.iter().map(|task| task.id.clone()).collect();
        wait(store.schedule_many(tasks)).expect("scheduled");
        for id in &ids {
            let cancelled = std::thread::scope(|scope| {
                let cancel = || wait(store.cancel(id)).expect("answered");
                let other = scope.spawn(cancel);
                [cancel(), other.join().expect("no panic")]
            });
            assert_ne!(cancelled[0], cancelled[1], "{id}");
            self.is_gone(id);
        }
    }
}
