//! Any store against a naive model: random calls of a few ids, each answer compared.
//!
//! A task is *near*, due at once, or *far*, due in an hour. Leases do not end meanwhile. So what
//! the store has to answer follows from the calls before alone, however fast the engine is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tidewheel_tasks::{
    Ask, Claim, Due, Failure, Fence, Look, Priority, Rate, Rhythm, State, StoreError, Task,
    TaskStore, Terms, Verdict, wait,
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
    /// Whether its results are kept.
    keeps: bool,
    /// The tasks that it waits for.
    waits: Vec<String>,
    payload: Vec<u8>,
    attempt: u32,
    progress: Option<Vec<u8>>,
    claim: Option<Arc<Claim>>,
}

impl Known {
    fn is_as(&self, terms: &Terms) -> bool {
        let waits = terms.waits.as_ref().map(|waits| &*waits.ids);
        terms.rhythm.is_some() == self.periodic
            && terms.queue == self.queue
            && terms.keep_result.is_some() == self.keeps
            && waits.unwrap_or_default() == self.waits
    }
}

/// A dead letter as the model has it.
#[derive(Debug)]
struct Letter {
    attempts: u32,
    payload: Vec<u8>,
    queue: &'static str,
    keeps: bool,
    waits: Vec<String>,
    died: u64,
}

#[derive(Debug, Default)]
struct Model {
    tasks: BTreeMap<String, Known>,
    letters: BTreeMap<String, Letter>,
    /// Results, and the steps in which they came.
    results: BTreeMap<String, (Vec<u8>, u64)>,
    /// The ids that are unique until the end.
    unique: BTreeSet<String>,
    step: u64,
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

    /// The task is tried again, and its progress has gone with the attempt before.
    fn again(&mut self, id: &str, near: bool, attempt: impl FnOnce(u32) -> u32) {
        self.recall(id);
        if let Some(known) = self.tasks.get_mut(id) {
            (known.near, known.progress) = (near, None);
            known.attempt = attempt(known.attempt);
        }
    }

    fn put(&mut self, id: &str, known: Known) {
        self.recall(id);
        self.tasks.insert(id.to_owned(), known);
    }

    /// Its run has ended, for good or until the next period.
    fn ended(&mut self, id: &str) {
        self.again(id, false, |_| 1);
        if !self.tasks[id].periodic {
            self.tasks.remove(id);
        }
    }

    fn done(&mut self, claim: &Claim) {
        if self.tasks[&claim.id].keeps {
            let result = (result_of(claim), self.step);
            self.results.insert(claim.id.clone(), result);
        }
        self.ended(&claim.id);
    }

    /// Compares what the store says of an id.
    fn compare(&self, id: &str, look: Option<Look>) {
        let result = self.results.get(id);
        let letter = self.letters.get(id);
        let letter = letter.filter(|letter| result.is_none_or(|(_, step)| *step < letter.died));
        let Some(look) = look else {
            let nothing = (self.tasks.get(id), result, letter);
            assert!(matches!(nothing, (None, None, None)), "{id}: {nothing:?}");
            return;
        };
        assert_eq!(look.result.as_ref(), result.map(|(bytes, _)| bytes));
        let (seen, dead) = ((look.attempt, &look.payload), look.state == State::Dead);
        match (self.tasks.get(id), letter) {
            (Some(known), _) => {
                assert!(
                    look.is_ahead() && known.is_as(&look.terms),
                    "{look:?} {known:?}"
                );
                assert_eq!(seen, (known.attempt, &known.payload), "{look:?} {known:?}");
                assert_eq!(look.progress, known.progress, "{look:?} {known:?}");
            }
            (None, Some(letter)) => {
                assert_eq!(seen, (letter.attempts, &letter.payload));
                assert!(dead && look.error.as_deref() == Some("gone"), "{look:?}");
            }
            (None, None) => assert_eq!((look.state, seen), (State::Done, (0, &Vec::new()))),
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
        assert!(known.is_as(&claim.terms), "{claim:?} {known:?}");
        assert_eq!(claim.lost, 0, "{claim:?}");
        known.claim = Some(Arc::new(claim));
    }
}

/// The result of a claim's run.
fn result_of(claim: &Claim) -> Vec<u8> {
    claim.fence.0.to_le_bytes().to_vec()
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
        self.model.step += 1;
        match self.random.below(22) {
            0..3 => self.schedule(),
            18 => self.schedule_unique(),
            19 => self.batch(),
            20 | 21 => self.turn(),
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
        let id = self.id();
        let look = wait(self.store.look(&id)).expect("answered");
        self.model.compare(&id, look);
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
        let keeps = self.random.one_in(3);
        task.terms.keep_result = keeps.then_some(HOUR);
        let known = Known {
            near,
            periodic,
            queue,
            keeps,
            payload,
            attempt: 1,
            ..Known::default()
        };
        (task, known)
    }

    fn schedule(&mut self) {
        let (task, known) = self.task();
        let id = task.id.clone();
        wait(self.store.schedule(task)).expect("scheduled");
        self.model.put(&id, known);
    }

    /// Three tasks; one call in three, of tasks of which some are to be unique.
    fn schedule_many(&mut self) {
        let (mut tasks, known): (Vec<_>, Vec<_>) = (0..3).map(|_| self.task()).unzip();
        let unique: BTreeSet<_> = match self.random.one_in(3) {
            true => (0..2).map(|_| self.id()).collect(),
            false => BTreeSet::new(),
        };
        for task in &mut tasks {
            task.terms.unique_for = unique.contains(&task.id).then_some(HOUR);
        }
        let dues = wait(self.store.schedule_many(tasks.clone())).expect("scheduled");
        assert_eq!(dues.len(), 3);
        for ((task, known), due) in tasks.iter().zip(known).zip(dues) {
            let is_free = !unique.contains(&task.id) || self.model.unique.insert(task.id.clone());
            assert_eq!(due.is_some(), is_free, "{task:?}");
            if is_free {
                self.model.put(&task.id, known);
            }
        }
    }

    fn schedule_unique(&mut self) {
        let (task, known) = self.task();
        let id = task.id.clone();
        let kept = wait(self.store.schedule(task.unique_for(HOUR)));
        if self.model.unique.insert(id.clone()) {
            assert!(kept.is_ok(), "{kept:?}");
            self.model.put(&id, known);
        } else {
            assert_eq!(kept, Err(StoreError::Duplicate));
        }
    }

    /// A parent and two children.
    fn batch(&mut self) {
        let (mut tasks, mut known): (Vec<_>, Vec<_>) = (0..3).map(|_| self.task()).unzip();
        let first = self.random.below(IDS);
        for (n, task) in (first..).zip(&mut tasks) {
            task.id = format!("{}-{}", self.seed, n % IDS);
        }
        // None of them is periodic: such a task neither ends nor waits.
        for (task, known) in tasks.iter_mut().zip(&mut known) {
            (task.terms.rhythm, known.periodic) = (None, false);
        }
        let ids: Vec<_> = tasks.iter().map(|task| task.id.clone()).collect();
        known[0].waits = ids[1..].to_vec();
        let parent = tasks.remove(0);
        let dues = wait(self.store.batch(parent, tasks)).expect("scheduled");
        assert_eq!(dues.len(), 3);
        for (id, known) in ids.iter().zip(known) {
            self.model.put(id, known);
        }
    }

    /// A parent that is claimed does as a worker has it do: it is put off as long as a child is
    /// ahead.
    fn turn(&mut self) {
        let parents = self.model.tasks.values();
        let mut parents = parents.filter(|known| !known.waits.is_empty());
        let Some(claim) = parents.find_map(|known| known.claim.clone()) else {
            return;
        };
        let mut waits = false;
        for id in &claim.terms.waits.as_ref().expect("a parent").ids {
            let look = wait(self.store.look(id)).expect("answered");
            waits |= look.as_ref().is_some_and(Look::is_ahead);
            self.model.compare(id, look);
        }
        if !waits {
            assert_eq!(self.call(0, &claim, Due::After(MS(0))), Verdict::Accepted);
            self.model.done(&claim);
            return;
        }
        let (due, near) = self.due();
        let put_off = wait(self.store.fail(&claim, Failure::put_off(due)));
        assert_eq!(put_off, Ok(Verdict::Accepted));
        self.model.again(&claim.id, near, |attempt| attempt);
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
        self.model.again(&id, near, |_| 1);
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
        let kind = self.random.below(7);
        assert_eq!(
            self.call(kind, claim, due),
            Verdict::Accepted,
            "{kind} {claim:?}"
        );
        match kind {
            0 | 1 => self.model.done(claim),
            2 => self.model.again(id, near, |attempt| attempt + 1),
            3 => self.died(claim),
            4 => self.model.recall(id),
            5 => {
                let known = self.model.tasks.get_mut(id).expect("a task");
                known.progress = Some(result_of(claim));
            }
            _ => {}
        }
    }

    fn died(&mut self, claim: &Claim) {
        let known = &self.model.tasks[&claim.id];
        let letter = Letter {
            attempts: known.attempt,
            payload: known.payload.clone(),
            queue: known.queue,
            keeps: known.keeps,
            waits: known.waits.clone(),
            died: self.model.step,
        };
        self.model.letters.insert(claim.id.clone(), letter);
        self.model.ended(&claim.id);
    }

    /// A call under a claim.
    fn call(&self, kind: u64, claim: &Arc<Claim>, due: Due) -> Verdict {
        let mut ended = Claim::clone(claim);
        ended.result = Some(result_of(claim));
        let claims = &[Arc::new(ended)];
        let verdict = |verdicts: Result<Vec<_>, _>| verdicts.map(|all| all[0]);
        let said = match kind {
            0 | 1 => verdict(wait(self.store.done(claims))),
            2 => wait(self.store.fail(claim, Failure::retry(due, "busy"))),
            3 => wait(self.store.fail(claim, Failure::dead("gone"))),
            4 => verdict(wait(self.store.release(claims))),
            5 => wait(self.store.progress(claim, result_of(claim))),
            _ => verdict(wait(self.store.extend(claims, LEASE))),
        };
        said.expect("answered")
    }

    fn end_what_is_over(&mut self) {
        let Some(at) = self.model.over.len().checked_sub(1) else {
            return;
        };
        let claim = &self.model.over[self.random.below(at as u64 + 1) as usize];
        for kind in 1..7 {
            let said = self.call(kind, claim, Due::After(MS(0)));
            assert_eq!(said, Verdict::Refused, "{kind} {claim:?}");
        }
    }

    fn requeue(&mut self) {
        let (id, (due, near)) = (self.id(), self.due());
        let has_letter = self.model.letters.contains_key(&id);
        let expected = has_letter && !self.model.tasks.contains_key(&id);
        assert_eq!(wait(self.store.requeue(&id, due)), Ok(expected));
        if !expected {
            return;
        }
        if let Some(letter) = self.model.letters.remove(&id) {
            let known = Known {
                near,
                queue: letter.queue,
                keeps: letter.keeps,
                waits: letter.waits,
                payload: letter.payload,
                attempt: 1,
                ..Known::default()
            };
            self.model.put(&id, known);
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

    /// All ids of a state. Results of other seeds are still there.
    fn listed(&self, state: State) -> BTreeSet<String> {
        let listed = wait(self.store.list(state, None, None, 10_000)).expect("listed");
        let (listed, own) = (listed.into_iter(), format!("{}-", self.seed));
        let ids = listed.map(|look| look.id);
        ids.filter(|id| id.starts_with(&own)).collect()
    }

    fn remove(&mut self) {
        let id = self.id();
        // What fires meanwhile is in one of them, or in both.
        let (pending, claimed) = (self.listed(State::Pending), self.listed(State::Claimed));
        let ids: BTreeSet<_> = pending.into_iter().chain(claimed).collect();
        assert_eq!(ids, self.model.tasks.keys().cloned().collect());
        let results = self.model.results.keys().cloned();
        assert_eq!(self.listed(State::Done), results.collect());
        let removed = wait(self.store.remove_dead(&id));
        assert_eq!(removed, Ok(self.model.letters.remove(&id).is_some()));
        let letters = wait(self.store.dead_letters(100)).expect("letters");
        let letters = letters.into_iter();
        let letters = letters.map(|letter| {
            let kept = (letter.attempts, letter.payload, letter.terms.queue);
            (letter.id, kept)
        });
        let known = self.model.letters.iter().map(|(id, letter)| {
            let kept = (
                letter.attempts,
                letter.payload.clone(),
                letter.queue.to_owned(),
            );
            (id.clone(), kept)
        });
        assert_eq!(letters.collect::<BTreeMap<_, _>>(), known.collect());
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
