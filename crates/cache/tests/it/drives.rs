//! Futures that drive one cache or several, with listeners and refreshers that are futures or not,
//! against a model: polled when they are woken, dropped, and made anew in a random order.
//!
//! Everything runs on one thread. A future is polled only if it was woken, so a wake-up that is
//! lost leaves something undone; one that is woken again and again, though nothing happens, is
//! busy.

use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Poll, Waker};
use std::time::{Duration, SystemTime};

use tidewheel::{Cache, Clock, Driver, Lifetime, ManualClock, SharedDriver, Ttl};

use crate::loading::{MS, Valid};
use crate::manual_poll::{Alarm, Door, poll};
use crate::support::{Random, is_deep, mixed};

const KEYS: u64 = 6;
const SEEDS: u64 = 150;
const SEEDS_DEEP: u64 = 10_000;
const STEPS: u64 = 60;

/// Values that are loaded or refreshed are above this, and tell by which call.
const LOADED: u64 = 1_000_000;

/// The listener panics when it is told of a value with this rest, the refresher for such a call.
const PANICS: u64 = 13;

/// Refreshes of one cache that may run at a time.
const PARALLEL: usize = 2;

/// Polls of one future without anything else happening. More are busy.
const POLLS_MAX: usize = 40;

/// A runtime's timers, by the clock that is moved by hand.
#[derive(Clone, Default)]
struct Timers(Arc<Mutex<Vec<(Duration, Waker)>>>);

impl Timers {
    fn sleep(&self, clock: &Hands, duration: Duration) -> impl Future<Output = ()> + use<> {
        let (timers, clock) = (self.clone(), clock.clone());
        let end = clock.now().saturating_add(duration);
        std::future::poll_fn(move |context| {
            if clock.now() >= end {
                return Poll::Ready(());
            }
            timers.wakers().push((end, context.waker().clone()));
            Poll::Pending
        })
    }

    fn ring(&self, now: Duration) {
        let all = std::mem::take(&mut *self.wakers());
        let (due, later) = all.into_iter().partition(|(end, _)| *end <= now);
        *self.wakers() = later;
        let due: Vec<(Duration, Waker)> = due;
        due.into_iter().for_each(|(_, waker)| waker.wake());
    }

    fn wakers(&self) -> MutexGuard<'_, Vec<(Duration, Waker)>> {
        locked(&self.0)
    }
}

/// A clock that may tell nobody when it is moved, as clocks do that run by themselves.
#[derive(Debug, Clone)]
struct Hands {
    clock: ManualClock,
    tells: bool,
}

impl Clock for Hands {
    fn now(&self) -> Duration {
        self.clock.now()
    }

    fn wall(&self) -> SystemTime {
        self.clock.wall()
    }

    fn wake_when_moved(&self, sleeper: &Waker) {
        if self.tells {
            self.clock.wake_when_moved(sleeper);
        }
    }
}

/// The state that the user code of one cache shares with the test.
#[derive(Default)]
struct Shared {
    /// Keys and values of the events that were told.
    told: Mutex<Vec<(u64, u64)>>,
    /// The door at which an async listener waits.
    ear: Door,
    /// The door at which refreshes wait.
    origin: Door,
    running: AtomicUsize,
    is_telling: AtomicBool,
    /// Panics of the listener.
    panics: AtomicU64,
    calls: AtomicU64,
    /// The number of writes of each key, now and when a call began.
    writes: Mutex<BTreeMap<u64, u64>>,
    begun: Mutex<BTreeMap<u64, (u64, u64)>>,
}

/// A refresh while it runs.
struct Running(Arc<Shared>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, SeqCst);
    }
}

impl Shared {
    fn hears(&self, key: u64, value: u64) {
        locked(&self.told).push((key, value));
        if value % PANICS == 0 {
            self.panics.fetch_add(1, SeqCst);
            std::panic::resume_unwind(Box::new("meant"));
        }
    }

    fn begins(&self, key: u64) -> u64 {
        let call = LOADED + self.calls.fetch_add(1, SeqCst);
        let writes = *locked(&self.writes).entry(key).or_default();
        locked(&self.begun).insert(call, (key, writes));
        call
    }

    fn refresh(self: &Arc<Self>, key: u64) -> impl Future<Output = Refreshed> + Send + use<> {
        let (own, call) = (Arc::clone(self), self.begins(key));
        assert!(
            own.running.fetch_add(1, SeqCst) < PARALLEL,
            "more than may run"
        );
        let running = Running(Arc::clone(self));
        async move {
            let _running = running;
            own.origin.pass().await;
            match call % 5 {
                _ if call % PANICS == 0 => std::panic::resume_unwind(Box::new("meant")),
                0 => Err(String::from("down")),
                1 => Ok(None),
                _ => Ok(Some(call)),
            }
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("whole")
}

type Refreshed = Result<Option<u64>, String>;

/// A cache, and what should be in it.
struct One {
    cache: Option<Cache<u64, u64>>,
    shared: Arc<Shared>,
    is_async: bool,
    is_closed: bool,
    /// Value and end of each key.
    entries: BTreeMap<u64, (u64, Duration)>,
    tagged: Vec<u64>,
    /// True if what was invalidated may wait until time passes.
    is_unswept: bool,
    /// Values of each key that have left, and of which nobody was told yet.
    owed: BTreeMap<u64, VecDeque<u64>>,
    next: u64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Drives,
    Closes,
    /// The load of a key.
    Loads(u64),
}

struct Task {
    kind: Kind,
    /// The cache by its number; of all if it is the shared driver's.
    of: Option<usize>,
    future: Pin<Box<dyn Future<Output = ()>>>,
    alarm: Arc<Alarm>,
    seen: Option<usize>,
    /// Nobody polls it any more.
    is_stuck: bool,
}

struct World {
    clock: Hands,
    timers: Timers,
    driver: Option<SharedDriver>,
    caches: Vec<One>,
    tasks: Vec<Task>,
}

impl One {
    fn new(clock: &Hands, driver: impl Into<Driver>, random: &mut Random) -> Self {
        let shared = Arc::<Shared>::default();
        let is_async = random.below(2) == 0;
        let (hears, refreshes) = (Arc::clone(&shared), Arc::clone(&shared));
        let builder = Cache::builder()
            .unbounded()
            .shards(2)
            .time_to_live(100 * MS)
            .refresh_after(0.5)
            .refresh_parallelism(PARALLEL)
            .refresh_with_async(move |key| refreshes.refresh(key))
            .clock(clock.clone())
            .driver(driver);
        let builder = match is_async {
            false => builder.eviction_listener(move |event| hears.hears(event.key, event.value)),
            true => builder.eviction_listener_async(move |event| {
                let hears = Arc::clone(&hears);
                assert!(!hears.is_telling.swap(true, SeqCst), "one at a time");
                async move {
                    hears.ear.pass().await;
                    hears.is_telling.store(false, SeqCst);
                    hears.hears(event.key, event.value);
                }
            }),
        };
        shared.ear.set(true);
        shared.origin.set(true);
        Self {
            cache: Some(builder.valid()),
            shared,
            is_async,
            is_closed: false,
            entries: BTreeMap::new(),
            tagged: Vec::new(),
            is_unswept: false,
            owed: BTreeMap::new(),
            next: 0,
        }
    }

    fn is_open(&self) -> bool {
        self.cache.is_some() && !self.is_closed
    }

    fn calls(&self) -> u64 {
        self.shared.calls.load(SeqCst)
    }

    fn leaves(&mut self, key: u64) {
        if let Some((value, _)) = self.entries.remove(&key) {
            self.owed.entry(key).or_default().push_back(value);
        }
        self.tagged.retain(|tagged| *tagged != key);
    }

    fn all_leave(&mut self) {
        (0..KEYS).for_each(|key| self.leaves(key));
    }

    /// A call changes a key: a load or refresh that began before stores nothing.
    fn writes(&self, key: u64) {
        *locked(&self.shared.writes).entry(key).or_default() += 1;
    }

    fn write(&mut self, how: u64, key: u64) {
        let Some(cache) = self.cache.clone() else {
            return;
        };
        let now = cache.now();
        if matches!(how, 0..=2 | 5) {
            self.writes(key);
        }
        match how {
            0..=2 if self.is_closed => cache.insert(key, 0),
            0..=2 => {
                self.leaves(key);
                self.next += 1;
                let ttl = [100, 5, 20][how as usize] * MS;
                self.entries.insert(key, (self.next, now + ttl));
                match how {
                    0 => cache.insert(key, self.next),
                    1 => cache.insert_with_ttl(key, self.next, ttl),
                    _ => {
                        self.tagged.push(key);
                        cache.insert_with(key, self.next, Lifetime::ttl(ttl).tag("a"));
                    }
                }
            }
            3 | 4 => {
                let value = cache.get(&key);
                assert_eq!(
                    value,
                    self.entries.get(&key).map(|entry| entry.0),
                    "of {key}"
                );
            }
            5 => {
                let value = self.entries.get(&key).map(|entry| entry.0);
                assert_eq!(cache.remove(&key), value);
                self.leaves(key);
            }
            6 => {
                let tagged = !self.tagged.is_empty();
                self.is_unswept |= tagged;
                assert!(cache.invalidate_tag("a") || !tagged);
                for key in std::mem::take(&mut self.tagged) {
                    self.writes(key);
                    self.leaves(key);
                }
            }
            7 => {
                cache.invalidate_all();
                (0..KEYS).for_each(|key| self.writes(key));
                self.all_leave();
            }
            8 => cache.freeze(),
            9 => cache.resume(),
            _ => {
                cache.run_due();
                assert_eq!(
                    cache.len(),
                    self.entries.len(),
                    "what is due or invalidated"
                );
            }
        }
    }

    /// Closes it as a thread does that may wait; who tells an async listener is another question.
    fn close(&mut self) {
        if let Some(cache) = self.cache.clone() {
            self.closes();
            cache.close();
        }
    }

    fn closes(&mut self) {
        self.is_closed = true;
        (0..KEYS).for_each(|key| self.writes(key));
        self.all_leave();
    }

    /// Compares the entries: those whose time is over leave, and loads and refreshes are noted.
    fn look(&mut self) {
        let Some(cache) = self.cache.clone() else {
            return;
        };
        let (stats, shared) = (cache.stats(), &self.shared);
        let running = shared.running.load(SeqCst) as u64;
        assert_eq!(stats.refreshes_running, running);
        assert_eq!(stats.listener_panics, shared.panics.load(SeqCst));
        let now = cache.now();
        for key in 0..KEYS {
            if self.entries.get(&key).is_some_and(|(_, end)| *end <= now) {
                self.leaves(key);
            }
        }
        for key in 0..KEYS {
            let (value, known) = (
                cache.peek(&key),
                self.entries.get(&key).map(|entry| entry.0),
            );
            if value == known {
                continue;
            }
            let begun = locked(&self.shared.begun);
            let writes = locked(&self.shared.writes).get(&key).copied();
            let counts = |call: u64| begun.get(&call) == Some(&(key, writes.unwrap_or(0)));
            match value {
                Some(call) => assert!(counts(call), "{call} of {key} came too late"),
                None => {
                    let calls = begun.keys().filter(|call| *call % 5 == 1 && counts(**call));
                    assert!(calls.count() > 0, "{known:?} of {key} is gone");
                }
            }
            drop(begun);
            let was_tagged = self.tagged.contains(&key);
            self.leaves(key);
            if let Some(value) = value {
                let Ttl::Left(left) = cache.ttl(&key) else {
                    panic!("{value} of {key} has an end");
                };
                self.entries.insert(key, (value, now + left));
                if was_tagged {
                    self.tagged.push(key);
                }
            }
        }
    }

    /// Each event is told once, and those of a key in their order.
    fn hear(&mut self, all: bool) {
        for (key, value) in std::mem::take(&mut *locked(&self.shared.told)) {
            let owed = self.owed.get_mut(&key).and_then(VecDeque::pop_front);
            assert_eq!(owed, Some(value), "told of {key}");
        }
        assert!(
            !all || self.owed.values().all(VecDeque::is_empty),
            "not told: {:?}",
            self.owed
        );
    }
}

impl World {
    fn now(&self) -> Duration {
        self.clock.now()
    }

    fn spawn(&mut self, kind: Kind, of: Option<usize>, future: Pin<Box<dyn Future<Output = ()>>>) {
        let (alarm, is_stuck) = (Alarm::new(), false);
        self.tasks.push(Task {
            kind,
            of,
            future,
            alarm,
            seen: None,
            is_stuck,
        });
    }

    fn drive(&mut self, at: usize) {
        let (timers, clock) = (self.timers.clone(), self.clock.clone());
        let sleep = move |duration| timers.sleep(&clock, duration);
        match (&self.driver, &self.caches[at].cache) {
            (Some(driver), _) => {
                let drive = Box::pin(driver.drive(sleep));
                self.spawn(Kind::Drives, None, drive);
            }
            (None, Some(cache)) => {
                let drive = Box::pin(cache.drive(sleep));
                self.spawn(Kind::Drives, Some(at), drive);
            }
            (None, None) => {}
        }
    }

    fn close(&mut self, at: usize) {
        if let Some(cache) = self.caches[at].cache.clone() {
            let close = async move { cache.close_async().await };
            self.spawn(Kind::Closes, Some(at), Box::pin(close));
        }
    }

    fn load(&mut self, at: usize, key: u64) {
        let one = &self.caches[at];
        if let Some(cache) = one.cache.clone() {
            let shared = Arc::clone(&one.shared);
            let load = async move {
                cache
                    .get_or_load_async(key, async { shared.begins(key) })
                    .await;
            };
            self.spawn(Kind::Loads(key), Some(at), Box::pin(load));
        }
    }

    fn drives(&self, at: usize) -> impl Iterator<Item = &Task> {
        let drives = self.tasks.iter().filter(|task| task.kind == Kind::Drives);
        drives.filter(move |task| task.of.is_none_or(|of| of == at))
    }

    fn is_driven(&self, at: usize) -> bool {
        self.drives(at).count() > 0 && self.drives(at).all(|task| !task.is_stuck)
    }

    fn forget(&mut self, at: usize) {
        let Task { future, alarm, .. } = self.tasks.swap_remove(at);
        drop(future);
        let own = Waker::from(Arc::clone(&alarm));
        self.timers
            .wakers()
            .retain(|(_, waker)| !waker.will_wake(&own));
        self.caches
            .iter()
            .for_each(|one| one.shared.ear.forget(&own));
        drop(own);
        assert_eq!(Arc::strong_count(&alarm), 1, "a waker has leaked");
    }

    /// Polls whoever was woken, until nobody is.
    fn settle(&mut self) {
        let mut polls = 0;
        while let Some(at) = self
            .tasks
            .iter()
            .position(|task| !task.is_stuck && task.seen != Some(task.alarm.woken.load(SeqCst)))
        {
            polls += 1;
            assert!(polls < POLLS_MAX * self.tasks.len().max(4), "it is busy");
            let task = &mut self.tasks[at];
            task.seen = Some(task.alarm.woken.load(SeqCst));
            if let (Kind::Closes, Some(of)) = (task.kind, task.of) {
                self.caches[of].closes();
            }
            if poll(task.future.as_mut(), &task.alarm).is_ready() {
                self.forget(at);
            }
        }
        self.caches.iter_mut().for_each(One::look);
        for at in 0..self.caches.len() {
            let (is_driven, is_over) = (self.is_driven(at), self.drives(at).count() == 0);
            let one = &mut self.caches[at];
            let is_over = is_over && one.cache.is_none();
            let can_tell = !one.is_async || one.shared.ear.is_open();
            let is_driven = is_driven && !one.is_unswept;
            let is_told = is_over || one.is_closed;
            let closing = |task: &Task| task.kind == Kind::Closes && task.of == Some(at);
            let waits = self
                .tasks
                .iter()
                .any(|task| closing(task) && !task.is_stuck);
            assert!(!waits || !can_tell, "nobody wakes who closes cache {at}");
            one.hear(is_driven && can_tell || is_told && !one.is_async);
            if is_over {
                // Nobody is left who could wait for a listener.
                one.owed.clear();
            }
        }
    }

    /// Time passes, and what is driven has nothing left that is over.
    fn pass(&mut self, ticks: u64) {
        self.clock.clock.advance(Duration::from_millis(ticks));
        self.timers.ring(self.now());
        if ticks > 0 {
            self.caches
                .iter_mut()
                .for_each(|one| one.is_unswept = false);
        }
        self.settle();
        for at in 0..self.caches.len() {
            let one = &self.caches[at];
            if let Some(cache) = one.cache.as_ref().filter(|_| self.is_driven(at)) {
                assert_eq!(cache.len(), one.entries.len(), "entries of cache {at}");
                cache.validate();
            }
        }
    }

    fn step(&mut self, random: &mut Random) {
        let at = random.below(self.caches.len() as u64) as usize;
        let task = random.below(self.tasks.len().max(1) as u64) as usize;
        match random.below(20) {
            0 | 1 => self.drive(at),
            2 if task < self.tasks.len() => self.forget(task),
            3 if task < self.tasks.len() && random.below(4) == 0 => {
                self.tasks[task].is_stuck = true;
            }
            4 => self.caches[at].shared.ear.set(random.below(2) == 0),
            5 => self.caches[at].shared.origin.set(random.below(2) == 0),
            6 => self.load(at, random.below(KEYS)),
            7 if random.below(8) == 0 => self.close(at),
            7 if random.below(4) == 0 => self.caches[at].close(),
            8 if self.caches.len() < 4 && random.below(4) == 0 => self.join(random),
            8 if random.below(8) == 0 => self.let_go(at),
            9..14 => self.pass(random.below(30)),
            _ => {
                let (how, key) = (random.below(11), random.below(KEYS));
                self.caches[at].write(how, key);
            }
        }
        self.settle();
    }

    /// A cache comes while futures drive others, and perhaps goes before anybody has looked at it.
    fn join(&mut self, random: &mut Random) {
        let kind = self.driver.as_ref().map_or(Driver::Task, Driver::shared);
        self.caches.push(One::new(&self.clock, kind, random));
        let at = self.caches.len() - 1;
        (0..3).for_each(|key| self.caches[at].write(0, key));
        if random.below(2) == 0 {
            self.let_go(at);
        }
    }

    /// The handle goes, unless a future needs it.
    fn let_go(&mut self, at: usize) {
        let holds = |task: &Task| task.kind != Kind::Drives && task.of == Some(at);
        if !self.tasks.iter().any(holds) {
            self.caches[at].cache = None;
            self.caches[at].all_leave();
        }
    }

    /// Every door is open, nobody is stuck, and each cache has somebody who drives it.
    fn finish(&mut self) {
        self.caches.iter().for_each(|one| {
            one.shared.ear.set(true);
            one.shared.origin.set(true);
        });
        self.tasks.iter_mut().for_each(|task| task.is_stuck = false);
        (0..self.caches.len()).for_each(|at| self.drive(at));
        self.caches
            .iter()
            .filter_map(|one| one.cache.as_ref())
            .for_each(Cache::resume);
        self.pass(2);
        let waits = |task: &Task| task.kind != Kind::Drives;
        assert!(
            !self.tasks.iter().any(waits),
            "a load or a close is never over"
        );
        for one in &self.caches {
            assert_eq!(
                one.shared.running.load(SeqCst),
                0,
                "a refresh is never over"
            );
            if let Some(stats) = one.cache.as_ref().map(Cache::stats) {
                let over = stats.refreshes_done + stats.refreshes_failed;
                assert_eq!((stats.refreshes_begun, stats.refreshes_queued), (over, 0));
            }
        }
        self.refresh_all();
        // The end of all handles is that of the futures.
        (0..self.caches.len()).for_each(|at| self.let_go(at));
        self.driver = None;
        self.pass(2);
        let left: Vec<_> = self.tasks.iter().map(|task| (task.kind, task.of)).collect();
        assert_eq!(left, [], "never over");
        self.caches.iter_mut().for_each(|one| one.hear(true));
    }

    /// A stale entry that is read is refreshed once, and no more at a time than may be.
    fn refresh_all(&mut self) {
        for key in 0..KEYS {
            self.caches.iter_mut().for_each(|one| one.write(0, key));
        }
        self.pass(60);
        let calls: Vec<_> = self.caches.iter().map(One::calls).collect();
        self.caches
            .iter()
            .for_each(|one| one.shared.origin.set(false));
        for key in 0..KEYS {
            self.caches.iter_mut().for_each(|one| one.write(3, key));
        }
        self.pass(2);
        for one in self.caches.iter().filter(|one| one.is_open()) {
            assert_eq!(one.shared.running.load(SeqCst), PARALLEL);
        }
        self.caches
            .iter()
            .for_each(|one| one.shared.origin.set(true));
        self.pass(2);
        for (one, calls) in self.caches.iter().zip(calls) {
            let refreshed = if one.is_open() { KEYS } else { 0 };
            assert_eq!(one.calls() - calls, refreshed);
        }
    }
}

fn run(seed: u64) {
    let mut random = Random(mixed(seed));
    let clock = Hands {
        clock: ManualClock::new(),
        tells: random.below(4) == 0,
    };
    let driver = (random.below(2) == 0).then(SharedDriver::task);
    let mut world = World {
        clock,
        timers: Timers::default(),
        driver,
        caches: Vec::new(),
        tasks: Vec::new(),
    };
    world.join(&mut random);
    world.settle();
    for _ in 0..STEPS {
        world.step(&mut random);
    }
    world.finish();
}

#[test]
fn every_order_of_polls_drops_panics_and_writes_agrees_with_the_model() {
    let seeds = if is_deep() { SEEDS_DEEP } else { SEEDS };
    for seed in 0..seeds {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| run(seed))) {
            println!("seed {seed}");
            std::panic::resume_unwind(panic);
        }
    }
}
