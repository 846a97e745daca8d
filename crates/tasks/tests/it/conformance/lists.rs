//! Every store lists and counts what it has, by queue and state.

use std::collections::BTreeMap;

use tidewheel_tasks::{Failure, State, Task, TaskStore, wait};

use super::Suite;
use crate::common::MS;

impl<S: TaskStore> Suite<'_, S> {
    /// All ids of a state, in pages of two.
    fn listed(&self, state: State, queue: Option<&str>) -> Vec<String> {
        let mut ids: Vec<String> = Vec::new();
        loop {
            let after = ids.last().map(|id| &**id);
            let page = wait(self.store.list(state, queue, after, 2)).expect("listed");
            if page.is_empty() {
                ids.sort();
                return ids;
            }
            assert!(page.len() <= 2 && page.iter().all(|look| look.state == state));
            ids.extend(page.into_iter().map(|look| look.id));
        }
    }

    /// A list of large payloads took as much memory as they all have together.
    pub(super) fn a_page_of_a_list_ends_after_some_bytes(&self) {
        let ids: Vec<_> = (0..9).map(|n| format!("large {n}")).collect();
        for id in &ids {
            let large = Task::new(id.clone(), vec![b'x'; 900_000]);
            self.schedule(large.after(MS(600_000)));
        }
        let mut found: Vec<String> = Vec::new();
        for count in [5, 4, 0] {
            let after = found.last().map(|id| &**id);
            let page = wait(self.store.list(State::Pending, None, after, 100)).expect("listed");
            assert_eq!(page.len(), count);
            assert!(page.iter().all(|look| look.payload.len() == 900_000));
            found.extend(page.into_iter().map(|look| look.id));
        }
        assert_eq!(found, ids);
        for id in &ids {
            assert_eq!(wait(self.store.cancel(id)), Ok(true));
        }
    }

    pub(super) fn lists_and_counts_say_what_is_there(&self) {
        assert_eq!(wait(self.store.counts()), Ok(BTreeMap::new()));
        for state in State::ALL {
            assert_eq!(self.listed(state, None), [""; 0]);
        }
        for n in 0..5 {
            let queue = if n < 3 { "mails" } else { "" };
            let far = Task::new(format!("far {n}"), "payload").queue(queue);
            self.schedule(far.after(MS(600_000)));
        }
        let ends = |id: &str| Task::new(id, "").keep_result(MS(60_000)).queue("mails");
        for id in ["claimed", "done", "dead"] {
            self.schedule(ends(id));
            let claim = self.claim(id);
            match id {
                "done" => assert!(self.is_done(&claim)),
                "dead" => assert!(self.fails(&claim, Failure::dead("gone"))),
                _ => {}
            }
        }
        assert_eq!(
            self.listed(State::Pending, None),
            ["far 0", "far 1", "far 2", "far 3", "far 4"]
        );
        assert_eq!(
            self.listed(State::Pending, Some("mails")),
            ["far 0", "far 1", "far 2"]
        );
        assert_eq!(self.listed(State::Pending, Some("nobody's")), [""; 0]);
        for (state, id) in [
            (State::Claimed, "claimed"),
            (State::Done, "done"),
            (State::Dead, "dead"),
        ] {
            assert_eq!(self.listed(state, None), [id]);
            assert_eq!(self.listed(state, Some("mails")), [id]);
            assert_eq!(self.listed(state, Some("")), [""; 0]);
            let page = wait(self.store.list(state, None, None, 9)).expect("listed");
            assert_eq!(
                Some(page[0].clone()),
                wait(self.store.look(id)).expect("answered")
            );
        }
        let counts = wait(self.store.counts()).expect("counted");
        let of = |queue| {
            counts
                .get(queue)
                .map(|counts| (counts.pending, counts.claimed, counts.done, counts.dead))
        };
        assert_eq!(
            (of("mails"), of("")),
            (Some((3, 1, 1, 1)), Some((2, 0, 0, 0)))
        );
        assert_eq!(counts.len(), 2);
        for n in 0..5 {
            assert_eq!(wait(self.store.cancel(&format!("far {n}"))), Ok(true));
        }
        assert_eq!(wait(self.store.cancel("claimed")), Ok(true));
        assert_eq!(wait(self.store.remove_dead("dead")), Ok(true));
        // The result of another run goes at once.
        self.schedule(Task::new("done", "").keep_result(MS(1)));
        let claim = self.claim("done");
        assert!(self.is_done(&claim));
        (self.pass)(MS(20));
        assert_eq!(wait(self.store.counts()), Ok(BTreeMap::new()));
        self.claims_nothing();
    }
}
