//! One thread runs at a time, and a seed says which: real threads whose interleaving can be
//! replayed.

use std::cell::RefCell;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// Longer than any turn. A thread that waits longer waits for one that is stuck.
const STUCK: Duration = Duration::from_secs(60);

/// Numbers that follow from a seed: splitmix64.
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// True once in `n` times.
    pub(crate) fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

#[derive(Debug)]
struct State {
    random: Random,
    /// Threads that have not left.
    waiting: Vec<usize>,
    running: Option<usize>,
}

impl State {
    fn choose(&mut self) {
        let count = self.waiting.len() as u64;
        self.running = (count > 0).then(|| self.waiting[self.random.below(count.max(1)) as usize]);
    }
}

/// The permission that the running thread holds.
#[derive(Debug)]
pub(crate) struct Baton {
    state: Mutex<State>,
    passed: Condvar,
}

thread_local! {
    /// This thread's part in a simulation.
    static PART: RefCell<Option<(Arc<Baton>, usize)>> = const { RefCell::new(None) };
}

impl Baton {
    pub(crate) fn new(threads: usize, seed: u64) -> Arc<Self> {
        let mut state = State {
            random: Random::new(seed),
            waiting: (0..threads).collect(),
            running: None,
        };
        state.choose();
        Arc::new(Self {
            state: Mutex::new(state),
            passed: Condvar::new(),
        })
    }

    /// Runs a thread's part, as often as it has the baton.
    pub(crate) fn play(self: &Arc<Self>, me: usize, part: impl FnOnce()) {
        PART.with_borrow_mut(|slot| *slot = Some((Arc::clone(self), me)));
        self.wait_for_turn(me);
        part();
        let mut state = self.state.lock().expect("unpoisoned");
        state.waiting.retain(|other| *other != me);
        state.choose();
        self.passed.notify_all();
        drop(state);
        PART.with_borrow_mut(|slot| *slot = None);
    }

    fn wait_for_turn(&self, me: usize) {
        let state = self.state.lock().expect("unpoisoned");
        let is_other = |state: &mut State| state.running != Some(me);
        let (_state, waited) = self
            .passed
            .wait_timeout_while(state, STUCK, is_other)
            .expect("unpoisoned");
        if waited.timed_out() {
            // A thread that holds the baton waits for one that does not: nobody can go on.
            eprintln!("a thread waits for a lock that another one holds across a yield");
            std::process::abort();
        }
    }
}

/// Lets another thread run, perhaps. Nothing must be locked.
pub(crate) fn yield_now() {
    let Some((baton, me)) = PART.with_borrow(Clone::clone) else {
        return;
    };
    let mut state = baton.state.lock().expect("unpoisoned");
    state.choose();
    if state.running == Some(me) {
        return;
    }
    drop(state);
    baton.passed.notify_all();
    baton.wait_for_turn(me);
}
