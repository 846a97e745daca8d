//! Any store against a naive model: random calls of a few ids, each answer compared.
//!
//! A task is *near*, due at once, or *far*, due in an hour. Leases do not end meanwhile. So what
//! the store has to answer follows from the calls before alone, however fast the engine is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tidewheel_tasks::{
    Ask, Claim, Due, Failure, Fence, Priority, Rate, Rhythm, State, Task, TaskStore, Verdict, wait,
};

use crate::common::{MS, Random};
use crate::conformance::Pass;

const IDS: u64 = 5;
const STEPS: u64 = 80;
const LEASE: Duration = Duration::from_secs(60);
/// The queues of tasks; one of them is never asked for alone.
const QUEUES: [&str; 3] = ["", "mails", "reports"];
const HOUR: Duration = Duration::from_secs(3600);

/// A task as the model has it.
#[derive(Debug, Default)]
struct Known {
    near: bool,
    periodic: bool,
    queue: &'static str,
    payload: Vec<u8>,
    attempt: u32,
    claim: Option<Arc<Claim>>,
}

#[derive(Debug, Default)]
struct Model {
    tasks: BTreeMap<String, Known>,
    /// Attempts, payload and queue.
    letters: BTreeMap<String, (u32, Vec<u8>, String)>,
    /// Claims that are over.
    over: Vec<Arc<Claim>>,
    fences: BTreeMap<String, Fence>,
    paused: BTreeSet<&'static str>,
}

impl Model {
    /// The task's claim, if it has one, is over.
    fn recall(&mut self, id: &str) {
        let claim = self.tasks.get_mut(id).and_then(|known| known.claim.take());
        self.over.extend(claim);
    }

    fn put(&mut self, id: &str, known: Known) {
        self.recall(id);
        self.tasks.insert(id.to_owned(), known);
    }

    /// Its run has ended, for good or until the next period.
    fn ended(&mut self, id: &str) {
        self.recall(id);
        let known = self.tasks.get_mut(id).expect("a claimed task");
        if known.periodic {
            (known.near, known.attempt) = (false, 1);
        } else {
            self.tasks.remove(id);
        }
    }

    /// The tasks that are to be claimed.
    fn claimable(&self, ask: &Ask) -> usize {
        let tasks = self.tasks.values();
        let is_open = |queue| ask.admits(queue) && !self.paused.contains(queue);
        let claimable = tasks.filter(|known| known.near && known.claim.is_none());
        let claimable = claimable.filter(|known| is_open(known.queue));
        claimable.count()
    }

    /// Takes a claim in, if it is right.
    fn claimed(&mut self, claim: Claim) {
        let known = self.tasks.get_mut(&claim.id).expect("a task");
        assert!(known.near && known.claim.is_none(), "{claim:?} {known:?}");
        let before = self.fences.insert(claim.id.clone(), claim.fence);
        assert!(
            before.is_none_or(|before| before < claim.fence),
            "{claim:?}"
        );
        assert_eq!(
            (claim.attempt, &claim.payload),
            (known.attempt, &known.payload)
        );
        assert_eq!(claim.terms.rhythm.is_some(), known.periodic);
        assert_eq!(claim.terms.queue, known.queue);
        known.claim = Some(Arc::new(claim));
    }
}

struct Run<'a, S> {
    store: &'a S,
    pass: Pass<'a>,
    model: Model,
    random: Random,
    seed: u64,
}

/// Calls of a store, by these seeds. It begins and ends empty.
pub(crate) fn models(store: &impl TaskStore, seeds: std::ops::Range<u64>, pass: Pass<'_>) {
    for seed in seeds {
        println!("seed {seed}");
        let mut run = Run {
            store,
            pass,
            model: Model::default(),
            random: Random(seed),
            seed,
        };
        (0..STEPS).for_each(|_| run.step());
        run.end();
    }
}

impl<S: TaskStore> Run<'_, S> {
    fn id(&mut self) -> String {
        format!("{}-{}", self.seed, self.random.below(IDS))
    }

    /// A time, and whether it is near.
    fn due(&mut self) -> (Due, bool) {
        let near = self.random.one_in(2);
        (Due::After(if near { Duration::ZERO } else { HOUR }), near)
    }

    fn step(&mut self) {
        match self.random.below(18) {
            0..3 => self.schedule(),
            3 => self.schedule_many(),
            4 => self.cancel(),
            5 => self.reschedule(),
            6..9 => self.claim_some(),
            9..13 => self.end_one(),
            13 => self.end_what_is_over(),
            14 => self.requeue(),
            15 => self.pause_or_resume(),
            16 => self.limit(),
            _ => self.remove(),
        }
        (self.pass)(MS(1));
    }

    fn task(&mut self) -> (Task, Known) {
        let (id, (due, near)) = (self.id(), self.due());
        let payload = self.random.below(1000).to_le_bytes().to_vec();
        let mut task = Task::new(id, payload.clone());
        task.due = due;
        let periodic = self.random.one_in(4);
        task.terms.rhythm = periodic.then_some(Rhythm::Every(HOUR));
        let queue = QUEUES[self.random.below(3) as usize];
        task.terms.queue = queue.to_owned();
        task.priority = Priority::ALL[self.random.below(3) as usize];
        let (attempt, claim) = (1, None);
        let known = Known {
            near,
            periodic,
            queue,
            payload,
            attempt,
            claim,
        };
        (task, known)
    }

    fn schedule(&mut self) {
        let (task, known) = self.task();
        let id = task.id.clone();
        wait(self.store.schedule(task)).expect("scheduled");
        self.model.put(&id, known);
    }

    fn schedule_many(&mut self) {
        let (tasks, known): (Vec<_>, Vec<_>) = (0..3).map(|_| self.task()).unzip();
        let dues = wait(self.store.schedule_many(tasks.clone()));
        assert_eq!(dues.expect("scheduled").len(), 3);
        for (task, known) in tasks.iter().zip(known) {
            self.model.put(&task.id, known);
        }
    }

    fn cancel(&mut self) {
        let id = self.id();
        let cancelled = wait(self.store.cancel(&id));
        assert_eq!(cancelled, Ok(self.model.tasks.contains_key(&id)));
        self.model.recall(&id);
        self.model.tasks.remove(&id);
    }

    fn reschedule(&mut self) {
        let (id, (due, near)) = (self.id(), self.due());
        let moved = wait(self.store.reschedule(&id, due));
        assert_eq!(moved, Ok(self.model.tasks.contains_key(&id)));
        self.model.recall(&id);
        if let Some(known) = self.model.tasks.get_mut(&id) {
            (known.near, known.attempt) = (near, 1);
        }
    }

    /// Claims all that there is, in all queues or some.
    fn claim_some(&mut self) {
        let queues: &[&str] = match self.random.below(4) {
            0 => &QUEUES[..1],
            1 => &QUEUES[..2],
            2 => &["mails", "nobody's"],
            _ => &[],
        };
        self.claim(queues);
    }

    fn claim(&mut self, queues: &[&str]) {
        for _ in 0..1000 {
            let ask = Ask::new("model", MS(100), LEASE, 10).queues(queues.iter().copied());
            let claims = wait(self.store.claim(ask.clone())).expect("claims");
            assert!(claims.iter().all(|claim| ask.admits(&claim.terms.queue)));
            let last = self.model.claimable(&ask) == 0;
            assert!(!last || claims.is_empty(), "{claims:?}");
            for claim in claims {
                self.model.claimed(claim);
            }
            if last {
                return;
            }
            (self.pass)(MS(10));
        }
        panic!("nobody claims what is near: {:?}", self.model);
    }

    fn end_one(&mut self) {
        let claims = self
            .model
            .tasks
            .values()
            .filter_map(|known| known.claim.clone());
        let claims: Vec<_> = claims.collect();
        let Some(at) = claims.len().checked_sub(1) else {
            return;
        };
        let claim = &claims[self.random.below(at as u64 + 1) as usize];
        let (id, (due, near)) = (&claim.id, self.due());
        let kind = self.random.below(6);
        assert_eq!(
            self.call(kind, claim, due),
            Verdict::Accepted,
            "{kind} {claim:?}"
        );
        match kind {
            0 | 1 => self.model.ended(id),
            2 => self.failed(id, near),
            3 => self.died(claim),
            4 => self.model.recall(id),
            _ => {}
        }
    }

    fn failed(&mut self, id: &str, near: bool) {
        self.model.recall(id);
        let known = self.model.tasks.get_mut(id).expect("a task");
        (known.near, known.attempt) = (near, known.attempt + 1);
    }

    fn died(&mut self, claim: &Claim) {
        let queue = claim.terms.queue.clone();
        let letter = (claim.attempt, claim.payload.clone(), queue);
        self.model.letters.insert(claim.id.clone(), letter);
        self.model.ended(&claim.id);
    }

    /// A call under a claim.
    fn call(&self, kind: u64, claim: &Arc<Claim>, due: Due) -> Verdict {
        let claims = std::slice::from_ref(claim);
        let verdict = |verdicts: Result<Vec<_>, _>| verdicts.map(|all| all[0]);
        let said = match kind {
            0 | 1 => verdict(wait(self.store.done(claims))),
            2 => wait(self.store.fail(claim, Failure::retry(due, "busy"))),
            3 => wait(self.store.fail(claim, Failure::dead("gone"))),
            4 => verdict(wait(self.store.release(claims))),
            _ => verdict(wait(self.store.extend(claims, LEASE))),
        };
        said.expect("answered")
    }

    fn end_what_is_over(&mut self) {
        let Some(at) = self.model.over.len().checked_sub(1) else {
            return;
        };
        let claim = &self.model.over[self.random.below(at as u64 + 1) as usize];
        for kind in 1..6 {
            let said = self.call(kind, claim, Due::After(MS(0)));
            assert_eq!(said, Verdict::Refused, "{kind} {claim:?}");
        }
    }

    fn requeue(&mut self) {
        let (id, (due, near)) = (self.id(), self.due());
        let has_letter = self.model.letters.contains_key(&id);
        let expected = has_letter && !self.model.tasks.contains_key(&id);
        assert_eq!(wait(self.store.requeue(&id, due)), Ok(expected));
        if let (true, Some((_, payload, queue))) = (expected, self.model.letters.get(&id)) {
            let queue = QUEUES.into_iter().find(|known| known == queue);
            let known = Known {
                near,
                queue: queue.expect("a queue"),
                payload: payload.clone(),
                attempt: 1,
                ..Known::default()
            };
            self.model.put(&id, known);
            self.model.letters.remove(&id);
        }
    }

    fn pause_or_resume(&mut self) {
        let queue = QUEUES[self.random.below(3) as usize];
        let changed = if self.model.paused.insert(queue) {
            wait(self.store.pause(queue))
        } else {
            self.model.paused.remove(queue);
            wait(self.store.resume(queue))
        };
        assert_eq!(changed, Ok(()));
        let paused = wait(self.store.paused()).expect("answered");
        assert_eq!(paused, Vec::from_iter(self.model.paused.clone()));
    }

    /// A limit that is never reached: claims go the way of those that are limited.
    fn limit(&mut self) {
        let queue = QUEUES[self.random.below(3) as usize];
        let rate = self.random.one_in(2).then(|| Rate::new(1_000_000, LEASE));
        assert_eq!(wait(self.store.limit(queue, rate)), Ok(()));
    }

    /// All ids of a state.
    fn listed(&self, state: State) -> Vec<String> {
        let listed = wait(self.store.list(state, None, None, 100)).expect("listed");
        listed.into_iter().map(|look| look.id).collect()
    }

    fn remove(&mut self) {
        let id = self.id();
        // What fires meanwhile is in one of them, or in both.
        let (pending, claimed) = (self.listed(State::Pending), self.listed(State::Claimed));
        let ids: BTreeSet<_> = pending.into_iter().chain(claimed).collect();
        assert_eq!(ids, self.model.tasks.keys().cloned().collect());
        let removed = wait(self.store.remove_dead(&id));
        assert_eq!(removed, Ok(self.model.letters.remove(&id).is_some()));
        let letters = wait(self.store.dead_letters(100)).expect("letters");
        let letters = letters.into_iter();
        let letters = letters.map(|letter| {
            let kept = (letter.attempts, letter.payload, letter.terms.queue);
            (letter.id, kept)
        });
        assert_eq!(letters.collect::<BTreeMap<_, _>>(), self.model.letters);
    }

    /// Everything goes, and no more is there than the model has.
    fn end(&mut self) {
        for queue in std::mem::take(&mut self.model.paused) {
            assert_eq!(wait(self.store.resume(queue)), Ok(()));
        }
        for queue in QUEUES {
            assert_eq!(wait(self.store.limit(queue, None)), Ok(()));
        }
        self.claim(&[]);
        for n in 0..IDS {
            let id = format!("{}-{n}", self.seed);
            let known = self.model.tasks.contains_key(&id);
            assert_eq!(wait(self.store.cancel(&id)), Ok(known));
            let dead = self.model.letters.contains_key(&id);
            assert_eq!(wait(self.store.remove_dead(&id)), Ok(dead));
        }
        let ask = Ask::new("model", MS(100), LEASE, 10);
        assert_eq!(wait(self.store.claim(ask)), Ok(vec![]));
        assert_eq!(wait(self.store.dead_letters(1)), Ok(vec![]));
    }
}
