//! Bug 12: a loop that starts a new timer on every turn, and leaves it behind when something else
//! wakes it.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use tidewheel::{Cache, Clock, Driver};

use super::stage::{MINUTE, StageClock, tidewheel};

const TURNS: u32 = 1000;

/// The script's view of a loop.
trait SweepLoop {
    /// Something other than its timer wakes the loop.
    fn wake(&mut self, turn: u32);
    fn quit(&mut self);
    /// Timers that exist now.
    fn timers(&self) -> usize;
}

/// Each turn asks for a new timer that nobody can take back.
struct TimerPerTurn {
    clock: StageClock,
    pending: BTreeMap<Duration, usize>,
    running: bool,
}

impl TimerPerTurn {
    fn start(clock: &StageClock) -> Self {
        let mut own = Self {
            clock: clock.clone(),
            pending: BTreeMap::new(),
            running: true,
        };
        own.wait();
        own
    }

    fn wait(&mut self) {
        let at = self.clock.now() + MINUTE;
        *self.pending.entry(at).or_default() += 1;
    }
}

impl SweepLoop for TimerPerTurn {
    fn wake(&mut self, _turn: u32) {
        self.wait();
    }

    fn quit(&mut self) {
        self.running = false;
    }

    fn timers(&self) -> usize {
        let now = self.clock.now();
        self.pending.range(now..).map(|(_, count)| count).sum()
    }
}

/// A sleep that counts itself while it exists.
struct Sleep(Arc<AtomicUsize>);

impl Sleep {
    fn new(alive: &Arc<AtomicUsize>) -> Self {
        alive.fetch_add(1, SeqCst);
        Self(Arc::clone(alive))
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

/// A task that is polled when it was woken.
#[derive(Default)]
struct Flag(Mutex<bool>);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        *self.0.lock().expect("whole") = true;
    }
}

impl Flag {
    fn take(&self) -> bool {
        std::mem::take(&mut *self.0.lock().expect("whole"))
    }
}

/// Tidewheel's driver as a task on a runtime of one.
struct Task {
    cache: Cache<u32, u32>,
    drive: Option<Pin<Box<dyn Future<Output = ()>>>>,
    woken: Arc<Flag>,
    alive: Arc<AtomicUsize>,
}

impl Task {
    fn start(clock: &StageClock) -> Self {
        let cache: Cache<u32, u32> = tidewheel(clock)
            .driver(Driver::Task)
            .build()
            .expect("valid");
        let alive = Arc::<AtomicUsize>::default();
        let drive = cache.drive({
            let alive = Arc::clone(&alive);
            move |_| Sleep::new(&alive)
        });
        let mut own = Self {
            cache,
            drive: Some(Box::pin(drive)),
            woken: Arc::default(),
            alive,
        };
        own.cache.insert(u32::MAX, 0);
        *own.woken.0.lock().expect("whole") = true;
        own.poll_while_woken();
        own
    }

    fn poll_while_woken(&mut self) {
        let waker = Waker::from(Arc::clone(&self.woken));
        let mut context = Context::from_waker(&waker);
        while self.woken.take() {
            let Some(drive) = &mut self.drive else { return };
            if drive.as_mut().poll(&mut context).is_ready() {
                self.drive = None;
            }
        }
    }
}

impl SweepLoop for Task {
    fn wake(&mut self, turn: u32) {
        self.cache.insert(turn, turn);
        self.cache.freeze();
        self.cache.resume();
        let woken = *self.woken.0.lock().expect("whole");
        assert!(woken, "turn {turn}");
        self.poll_while_woken();
    }

    fn quit(&mut self) {
        self.cache.close();
        self.poll_while_woken();
        assert!(self.drive.is_none(), "the driver ends with its cache");
    }

    fn timers(&self) -> usize {
        self.alive.load(SeqCst)
    }
}

/// Wakes the loop a thousand times before its timer, and ends it. Returns how many timers there
/// were at most while it ran, and how many are left behind.
fn timers_during_and_after(own: &mut dyn SweepLoop) -> (usize, usize) {
    let mut most = own.timers();
    for turn in 0..TURNS {
        own.wake(turn);
        most = most.max(own.timers());
    }
    own.quit();
    (most, own.timers())
}

#[test]
fn bug_12_a_new_timer_on_every_turn() {
    let clock = StageClock::new();
    let all = TURNS as usize + 1;
    let faulty = timers_during_and_after(&mut TimerPerTurn::start(&clock));
    assert_eq!(faulty, (all, all));

    let clock = StageClock::new();
    let ours = timers_during_and_after(&mut Task::start(&clock));
    assert_eq!(ours, (1, 0));
}

/// A driver that is dropped, as a cancelled task is, takes its timer with it.
#[test]
fn a_cancelled_driver_leaves_no_timer_behind() {
    let clock = StageClock::new();
    let mut task = Task::start(&clock);
    task.wake(1);
    assert_eq!(task.timers(), 1);
    task.drive = None;
    assert_eq!(task.timers(), 0);
    // Nobody drives; nothing breaks.
    task.cache.insert(2, 2);
    clock.advance(MINUTE);
    assert_eq!(task.cache.get(&2), None);
    task.cache.advance(task.cache.now(), u32::MAX);
    assert_eq!(task.cache.len(), 0);
    task.cache.validate();
}

/// Neither the end of a driver nor its cancellation leaves a waker behind: it would hold the task.
#[test]
fn a_driver_that_is_over_leaves_no_waker_behind() {
    let clock = StageClock::new();
    for cancelled in [true, false] {
        let mut task = Task::start(&clock);
        task.wake(1);
        if cancelled {
            task.drive = None;
        } else {
            task.quit();
        }
        assert_eq!(Arc::strong_count(&task.woken), 1, "cancelled: {cancelled}");
    }
}
