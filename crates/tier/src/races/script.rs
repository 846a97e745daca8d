//! A script is the events of one seed, and the checks of them.

use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tidewheel::{Cache, Driver, ManualClock, Ttl};

use super::dice::Dice;
use super::stage::{Shared, Stage};
use super::world::{StreamMessage, World, owners, server};
use crate::codec::Raw;
use crate::core::envelope::Envelope;
use crate::core::faults::{Fault, set_skew};
use crate::{Given, Held, Life, Tier, Tiered, TieredCache};

const PROCESSES: usize = 3;
const KEYS: u64 = 3;
const TASKS: usize = 5;
const STEPS: usize = 160;

const BOUND: Duration = Duration::from_millis(400);
const DEGRADED: Duration = Duration::from_millis(300);
const LEASE: Duration = Duration::from_millis(100);
const LAG: Duration = Duration::from_secs(10);

/// The further events of a seed, besides loads and writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scenario {
    Changes,
    /// One key that is written again and again, with other times to live.
    Rewrites,
    Breaks,
    Moves,
    Failovers,
    /// Another server takes over, with everything; data connections stay where they were.
    Handovers,
    /// A replica that lacks the last writes takes over, while the owner before goes on taking more
    /// for a while.
    Promotions,
}

/// Beyond the engine: what a loader finds, by key; and when each version was replaced, for good.
#[derive(Debug)]
struct Truth {
    versions: [u64; KEYS as usize],
    replaced: std::collections::HashMap<u64, u64>,
    last: u64,
    /// Keys that somebody writes: programs write one after the other.
    written: [bool; KEYS as usize],
}

impl Default for Truth {
    fn default() -> Self {
        Self {
            // No two keys ever have the same.
            versions: std::array::from_fn(|key| 4 * key as u64),
            replaced: std::collections::HashMap::new(),
            last: 4 * KEYS,
            written: [false; KEYS as usize],
        }
    }
}

impl Truth {
    /// The right to write keys, if nobody has it.
    fn lock(&mut self, keys: &[u64]) -> bool {
        let free = keys.iter().all(|key| !self.written[*key as usize]);
        if free {
            keys.iter()
                .for_each(|key| self.written[*key as usize] = true);
        }
        free
    }

    fn unlock(&mut self, keys: &[u64]) {
        keys.iter()
            .for_each(|key| self.written[*key as usize] = false);
    }

    /// Stores another version. One in four is an absence.
    fn change(&mut self, key: u64) {
        self.last += 1;
        self.versions[key as usize] = self.last;
    }
}

/// A version that stands for "there is none".
fn is_absence(version: u64) -> bool {
    version % 4 == 3
}

struct Script {
    shared: Shared,
    clock: ManualClock,
    caches: Vec<TieredCache<u64, u64>>,
    truth: Rc<RefCell<Truth>>,
    tasks: Vec<Option<Pin<Box<dyn Future<Output = ()>>>>>,
    dice: Dice,
    scenario: Scenario,
    failed: Rc<RefCell<Option<String>>>,
}

/// The state of a task.
struct Job {
    cache: TieredCache<u64, u64>,
    truth: Rc<RefCell<Truth>>,
    shared: Shared,
}

/// Runs one seed; an error says what was wrong.
pub(super) fn run(scenario: Scenario, fault: Option<Fault>, seed: u64) -> Result<(), String> {
    set_skew(Duration::from_secs(3600));
    let mut script = Script::new(scenario, fault, seed);
    for _ in 0..STEPS {
        script.step();
        script.check_hits();
    }
    script.settle();
    script.check_quiet();
    let failed = script.failed.take();
    failed.map_or(Ok(()), Err)
}

impl Script {
    fn new(scenario: Scenario, fault: Option<Fault>, seed: u64) -> Self {
        let clock = ManualClock::new();
        clock.advance(Duration::from_millis(1));
        let shared = Shared::new(World::new(PROCESSES));
        if matches!(scenario, Scenario::Handovers | Scenario::Promotions) {
            shared.with(World::join_data);
        }
        // The other scenarios know losses that nobody repeats, or none.
        let lag = match scenario {
            Scenario::Promotions => LAG,
            _ => Duration::ZERO,
        };
        let cache = |process| {
            let stage = Stage {
                shared: shared.clone(),
                process,
                fault,
            };
            Cache::builder()
                .unbounded()
                .no_default_ttl()
                .shards(1)
                .clock(clock.clone())
                .driver(Driver::Manual)
                .tiered(
                    Tier::new("race", stage, Raw)
                        .clock(clock.clone())
                        .staleness(BOUND)
                        .degraded_life(DEGRADED)
                        .lease(LEASE)
                        .failover_lag(lag)
                        .negative_ttl(Duration::from_millis(300))
                        .jitter(0.0),
                )
                .expect("valid")
        };
        let caches = (0..PROCESSES).map(cache).collect();
        Self {
            shared: shared.clone(),
            clock,
            caches,
            truth: Rc::default(),
            tasks: (0..TASKS).map(|_| None).collect(),
            dice: Dice(seed),
            scenario,
            failed: Rc::default(),
        }
    }

    fn step(&mut self) {
        match self.dice.below(20) {
            0..6 => self.poll_or_begin(),
            6..9 => self.arrive(),
            9..12 => self.answer(),
            12..15 => self.hear(),
            15 => self.beat(),
            16 => self.advance(),
            17 if self.dice.one_in(6) => self.shared.with(World::flush),
            18 if self.dice.one_in(3) => self.replicate(),
            19 if self.scenario == Scenario::Promotions || self.dice.one_in(2) => self.trouble(),
            _ => {}
        }
    }

    fn replicate(&mut self) {
        self.shared
            .with(|world| world.replica = world.model.clone());
    }

    fn advance(&mut self) {
        let ms = self.dice.below(30) as u64;
        self.clock.advance(Duration::from_millis(ms));
        self.shared.with(|world| world.now_ms += ms);
    }

    fn beat(&mut self) {
        let process = self.dice.below(PROCESSES);
        self.shared.with(|world| world.beat(process));
    }

    /// A task goes on, or another one begins.
    fn poll_or_begin(&mut self) {
        let place = self.dice.below(TASKS);
        if self.tasks[place].is_none() {
            self.tasks[place] = Some(self.begin());
        }
        self.poll(place);
    }

    fn poll(&mut self, place: usize) -> bool {
        let Some(task) = &mut self.tasks[place] else {
            return false;
        };
        let mut context = Context::from_waker(Waker::noop());
        if task.as_mut().poll(&mut context).is_ready() {
            self.tasks[place] = None;
        }
        true
    }

    /// A request reaches the engine, in any order; or its connection breaks, before or after it was
    /// run.
    fn arrive(&mut self) {
        let count = self.shared.with(|world| world.requests.len());
        if count == 0 {
            return;
        }
        let nth = self.dice.below(count);
        let breaks = self.scenario == Scenario::Breaks && self.dice.one_in(12);
        self.shared.with(|world| {
            let request = world.requests.swap_remove(nth);
            let reply = request(world, breaks);
            world.replies.push(reply);
        });
    }

    /// An answer reaches its process.
    fn answer(&mut self) {
        let count = self.shared.with(|world| world.replies.len());
        if count > 0 {
            let nth = self.dice.below(count);
            let reply = self.shared.with(|world| world.replies.swap_remove(nth));
            reply();
        }
    }

    /// A message reaches a process.
    fn hear(&mut self) {
        let (process, nth) = (self.dice.below(PROCESSES), self.dice.below(2));
        self.deliver_word(process, nth);
    }

    fn deliver_word(&mut self, process: usize, nth: usize) -> bool {
        let delivery = self.shared.with(|world| world.deliver_word(process, nth));
        let Some((stream, source, message)) = delivery else {
            return false;
        };
        match message {
            StreamMessage::Changed(keys) => stream.changed(keys.iter().map(Vec::as_slice)),
            StreamMessage::Flushed => stream.flushed(source),
            StreamMessage::Heard(sent, epoch) => {
                let known = self.shared.with(|world| world.wires[process].epoch);
                if epoch == known {
                    stream.heard(source, sent);
                } else {
                    // The answer names another owner: what is to be watched has changed.
                    let owner = self.shared.with(|world| world.named);
                    stream.owned(owners(owner));
                    self.connect(process);
                }
            }
        }
        true
    }

    fn connect(&mut self, process: usize) {
        if let Some((stream, source)) = self.shared.with(|world| world.connect(process)) {
            stream.owned(owners(source));
            if self.scenario == Scenario::Promotions {
                self.shared.with(|world| world.join_data_of(process));
            }
            stream.connected(source, server(source));
        }
    }

    fn trouble(&mut self) {
        let process = self.dice.below(PROCESSES);
        match self.scenario {
            Scenario::Changes | Scenario::Rewrites => {}
            Scenario::Breaks if self.dice.one_in(2) => {
                self.shared.with(|world| world.break_wire(process));
            }
            Scenario::Breaks => self.recover(process),
            Scenario::Moves if self.dice.one_in(4) => self.shared.with(|world| {
                world.owner += 1;
                world.name();
            }),
            Scenario::Failovers if self.dice.one_in(6) => self.shared.with(|world| {
                world.model = world.replica.clone();
                world.owner += 1;
                world.name();
                (0..PROCESSES).for_each(|process| world.break_wire(process));
            }),
            Scenario::Handovers if self.dice.one_in(4) => self.shared.with(World::hand_over),
            Scenario::Handovers if self.dice.one_in(4) => {
                self.shared.with(|world| world.join_data_of(process));
            }
            Scenario::Promotions if self.dice.one_in(2) => self.promotion_goes_on(),
            Scenario::Moves | Scenario::Failovers | Scenario::Handovers | Scenario::Promotions => {
                self.recover(process);
            }
        }
    }

    /// A promotion has three steps: there are two primaries, processes are told, the one before is
    /// none any more.
    fn promotion_goes_on(&mut self) {
        self.shared.with(|world| {
            if world.named != world.owner {
                world.name();
            } else if world.still.is_some() {
                world.demote();
            } else {
                world.promote();
            }
        });
    }

    fn recover(&mut self, process: usize) {
        let broken = self.shared.with(|world| world.notice(process));
        for (stream, source) in broken {
            stream.lost(source);
        }
        self.connect(process);
    }

    fn begin(&mut self) -> Pin<Box<dyn Future<Output = ()>>> {
        let cache = self.caches[self.dice.below(PROCESSES)].clone();
        let truth = Rc::clone(&self.truth);
        let mut key = self.dice.below(KEYS as usize) as u64;
        let mut what = self.dice.below(12);
        if self.scenario == Scenario::Rewrites {
            (key, what) = (0, [0, 0, 9][what % 3]);
        }
        let job = Job {
            cache: cache.clone(),
            truth: Rc::clone(&truth),
            shared: self.shared.clone(),
        };
        let ttl = Duration::from_millis([20, 60, 400][self.dice.below(3)]);
        match what {
            0..7 => self.load(cache, truth, key, ttl),
            7..9 => Box::pin(write(job, key, None)),
            9 => Box::pin(write(job, key, Some(ttl))),
            10 => Box::pin(write_tag(job)),
            _ => Box::pin(async move {
                cache.get_async(&key).await;
            }),
        }
    }

    fn load(
        &mut self,
        cache: TieredCache<u64, u64>,
        truth: Rc<RefCell<Truth>>,
        key: u64,
        ttl: Duration,
    ) -> Pin<Box<dyn Future<Output = ()>>> {
        let slow = self.dice.below(4);
        Box::pin(async move {
            let load = async {
                let version = truth.borrow().versions[key as usize];
                for _ in 0..slow {
                    pause().await;
                }
                let given = (!is_absence(version)).then(|| Given::new(version, life(key, ttl)));
                Ok::<_, ()>(given)
            };
            // Nobody fails here.
            let _ = cache.get_or_load_with_async(key, load).await;
        })
    }

    /// Everything that is on its way arrives, everything goes on, everybody connects and is heard
    /// from.
    fn settle(&mut self) {
        while self.shared.with(|world| world.still.is_some()) {
            self.promotion_goes_on();
        }
        for process in 0..PROCESSES {
            self.recover(process);
        }
        if self.scenario == Scenario::Handovers {
            self.shared.with(World::join_data);
        }
        for round in 0..400 {
            let mut busy = false;
            for place in 0..self.tasks.len() {
                busy |= self.poll(place);
            }
            for process in 0..PROCESSES {
                busy |= self.settle_pending(process);
            }
            busy |= self.shared.with(|world| !world.requests.is_empty());
            self.deliver_all();
            for process in 0..PROCESSES {
                while self.deliver_word(process, 0) {
                    busy = true;
                }
                self.connect(process);
            }
            if !busy {
                break;
            }
            if round > 20 {
                self.advance();
            }
        }
        for _ in 0..3 {
            for process in 0..PROCESSES {
                self.shared.with(|world| world.beat(process));
                while self.deliver_word(process, 0) {}
                self.connect(process);
            }
        }
    }

    /// Settles as a backend does it several times a second.
    fn settle_pending(&mut self, process: usize) -> bool {
        let cache = &self.caches[process];
        if self.scenario != Scenario::Promotions || cache.invalidations_waiting() == 0 {
            return false;
        }
        let stream = Arc::clone(&cache.inner.stream);
        self.tasks
            .push(Some(Box::pin(async move { stream.settle().await })));
        true
    }

    fn deliver_all(&mut self) {
        while let Some(request) = self.shared.with(|world| world.requests.pop()) {
            let reply = self.shared.with(|world| request(world, false));
            reply();
        }
        while let Some(reply) = self.shared.with(|world| world.replies.pop()) {
            reply();
        }
    }

    /// While all is on its way: no hit is older than the bounds, nor past the engine's end.
    fn check_hits(&mut self) {
        let now = self.shared.with(|world| world.now_ms);
        let limit = (BOUND + DEGRADED).as_millis() as u64;
        for (process, cache) in self.caches.iter().enumerate() {
            for key in 0..KEYS {
                let Some(version) = cache.get_local(&key) else {
                    continue;
                };
                let end = self.shared.with(|world| world.ends.get(&version).copied());
                // What was loaded without the engine is not in it.
                let left = match cache.first_tier().ttl(&key) {
                    Ttl::Left(left) => left.as_millis() as u64,
                    _ => 0,
                };
                if end.is_some_and(|end| now + left > end) && self.is_never_alone() {
                    self.fail(format!(
                        "{process} has {key} from {now} for {left}, past {end:?}"
                    ));
                }
                let replaced = self.truth.borrow().replaced.get(&version).copied();
                if self.scenario != Scenario::Failovers
                    && replaced.is_some_and(|at| now > at + limit)
                {
                    self.fail(format!(
                        "{process} has {key} at {now}, replaced at {replaced:?}"
                    ));
                }
            }
        }
    }

    /// When all is quiet, each process's entries are true, or are what the engine says.
    fn check_quiet(&mut self) {
        if self.tasks.iter().any(Option::is_some) {
            self.fail("a task hangs".into());
        }
        for (process, cache) in self.caches.iter().enumerate() {
            for key in 0..KEYS {
                let held = cache.first_tier().peek(&key);
                let stream = &cache.inner.stream;
                // What was loaded without the engine may be as old as it lives: nobody tells of
                // that.
                let unwatched = stream.degraded_watch();
                let is_told = |held: &Held<u64>| {
                    held.is_believed(stream.clock()) && !Arc::ptr_eq(&held.watch, &unwatched)
                };
                let Some(held) = held.filter(is_told) else {
                    continue;
                };
                let true_version = self.truth.borrow().versions[key as usize];
                let is_true = match held.value {
                    Some(version) => version == true_version,
                    None => is_absence(true_version),
                };
                if !is_true && !self.engine_says(key, held.value) {
                    let value = held.value;
                    self.fail(format!(
                        "{process} holds {value:?} of {key}, not {true_version}"
                    ));
                }
            }
        }
        self.check_engine();
    }

    /// Nor does the engine hold an old value, unless a failover has brought it back.
    fn check_engine(&mut self) {
        if self.scenario == Scenario::Failovers {
            return;
        }
        for key in 0..KEYS {
            let version = self.truth.borrow().versions[key as usize];
            let held = crate::handle::block::block_on(async { self.engine_value(key) });
            if let Some(value) = held.flatten().filter(|value| *value != version) {
                self.fail(format!("the engine holds {value} of {key}, not {version}"));
            }
        }
    }

    /// The answer for a process that knows nothing.
    fn engine_value(&self, key: u64) -> Option<Option<u64>> {
        let names = self.caches[0].inner.stream.names().clone();
        let wire = names.wire(key.to_string().as_bytes());
        self.shared.with(|world| {
            let look = crate::Look {
                key: wire,
                lease: None,
                invalid: None,
            };
            let now = world.now_ms;
            let (bytes, _) = world.model.look(now, &look).0.value?;
            let envelope = Envelope::open(&bytes)?;
            let mut tags = envelope.tags.clone();
            tags.push(("", envelope.space));
            for (tag, version) in tags {
                let answer = world.model.tag(now, names.tag(tag), 0, 1).0;
                if answer.version != version {
                    return None;
                }
            }
            let value = envelope.payload.try_into().ok().map(u64::from_be_bytes);
            Some(value.filter(|_| !envelope.is_absent))
        })
    }

    /// True if every value that a process has is one that the engine had.
    fn is_never_alone(&self) -> bool {
        matches!(self.scenario, Scenario::Changes | Scenario::Rewrites)
    }

    fn engine_says(&self, key: u64, value: Option<u64>) -> bool {
        self.scenario == Scenario::Failovers && self.engine_value(key) == Some(value)
    }

    fn fail(&self, what: String) {
        self.failed.borrow_mut().get_or_insert(what);
    }
}

/// A step of a slow loader.
async fn pause() {
    let mut waited = false;
    poll_fn(|_| {
        if std::mem::replace(&mut waited, true) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
}

async fn lock(truth: &RefCell<Truth>, keys: &[u64]) {
    while !truth.borrow_mut().lock(keys) {
        pause().await;
    }
}

/// Writes as a program does: the origin first, then the cache, by an invalidation or with the new
/// value.
async fn write(job: Job, key: u64, ttl: Option<Duration>) {
    let Job {
        cache,
        truth,
        shared,
    } = job;
    lock(&truth, &[key]).await;
    let old = truth.borrow().versions[key as usize];
    truth.borrow_mut().change(key);
    let new = truth.borrow().versions[key as usize];
    let ttl = ttl.filter(|_| !is_absence(new));
    loop {
        let done = match ttl {
            Some(ttl) => cache.insert_with_async(key, new, life(key, ttl)).await,
            None => cache.invalidate_async(&key).await,
        };
        if done.is_ok() {
            break;
        }
        pause().await;
    }
    let now = shared.with(|world| world.now_ms);
    truth.borrow_mut().replaced.entry(old).or_insert(now);
    truth.borrow_mut().unlock(&[key]);
}

async fn write_tag(job: Job) {
    let Job {
        cache,
        truth,
        shared,
    } = job;
    let tagged = [1, 2];
    lock(&truth, &tagged).await;
    let old = truth.borrow().versions;
    // An absence has no tags.
    let present = tagged.iter().filter(|key| !is_absence(old[**key as usize]));
    present.for_each(|key| truth.borrow_mut().change(*key));
    while cache.invalidate_tag_async("odd").await.is_err() {
        pause().await;
    }
    let now = shared.with(|world| world.now_ms);
    for key in tagged {
        let version = old[key as usize];
        if version != truth.borrow().versions[key as usize] {
            truth.borrow_mut().replaced.entry(version).or_insert(now);
        }
    }
    truth.borrow_mut().unlock(&tagged);
}

/// The life of a key's value.
fn life(key: u64, ttl: Duration) -> Life {
    let life = Life::ttl(ttl);
    if key == 0 { life } else { life.tag("odd") }
}
