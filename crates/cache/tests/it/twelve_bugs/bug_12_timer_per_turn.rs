//! Bug 12: a loop that starts a new timer on every turn, and leaves it behind when something else
//! wakes it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Poll};
use std::time::Duration;

use tidewheel::{Cache, Clock, Driver};

use super::stage::{MINUTE, StageClock, Valid, tidewheel};
use crate::manual_poll::{Alarm, poll};

const TURNS: u32 = 1000;

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

/// Tidewheel's driver as a task on a runtime of one, which polls it when it was woken.
struct Task {
    cache: Cache<u32, u32>,
    drive: Option<Pin<Box<dyn Future<Output = ()>>>>,
    alarm: Arc<Alarm>,
    seen: Option<usize>,
    alive: Arc<AtomicUsize>,
}

impl Task {
    fn start(clock: &StageClock) -> Self {
        let cache: Cache<u32, u32> = tidewheel(clock).driver(Driver::Task).valid();
        let alive = Arc::<AtomicUsize>::default();
        let counted = Arc::clone(&alive);
        let mut own = Self {
            drive: Some(Box::pin(cache.drive(move |_| Sleep::new(&counted)))),
            cache,
            alarm: Alarm::new(),
            seen: None,
            alive,
        };
        own.cache.insert(u32::MAX, 0);
        own.poll_while_woken();
        own
    }

    fn is_woken(&self) -> bool {
        self.seen != Some(self.alarm.woken.load(SeqCst))
    }

    fn poll_while_woken(&mut self) {
        while self.is_woken() {
            self.seen = Some(self.alarm.woken.load(SeqCst));
            let Some(drive) = &mut self.drive else { return };
            if poll(drive.as_mut(), &self.alarm).is_ready() {
                self.drive = None;
            }
        }
    }

    /// Something other than its timer wakes it.
    fn wake(&mut self, turn: u32) {
        self.cache.insert(turn, turn);
        self.cache.freeze();
        self.cache.resume();
        assert!(self.is_woken(), "turn {turn}");
        self.poll_while_woken();
    }

    fn timers(&self) -> usize {
        self.alive.load(SeqCst)
    }
}

#[test]
fn bug_12_a_new_timer_on_every_turn() {
    let clock = StageClock::new();
    // The faulty loop: nobody can take back the timer of the turn before.
    let timers: Vec<Duration> = (0..=TURNS).map(|_| clock.now() + MINUTE).collect();
    let pending = timers.iter().filter(|end| **end > clock.now());
    assert_eq!(pending.count(), TURNS as usize + 1);

    let mut ours = Task::start(&clock);
    for turn in 0..TURNS {
        ours.wake(turn);
        assert_eq!(ours.timers(), 1);
    }
    ours.cache.close();
    ours.poll_while_woken();
    assert!(ours.drive.is_none(), "the driver ends with its cache");
    assert_eq!(ours.timers(), 0);
    assert_eq!(Arc::strong_count(&ours.alarm), 1, "a waker is left");
}

/// A driver that is dropped, as a cancelled task is, takes its timer and its waker with it.
#[test]
fn a_cancelled_driver_leaves_no_timer_and_no_waker_behind() {
    let clock = StageClock::new();
    let mut task = Task::start(&clock);
    task.wake(1);
    assert_eq!(task.timers(), 1);
    task.drive = None;
    assert_eq!((task.timers(), Arc::strong_count(&task.alarm)), (0, 1));
    // Nobody drives; nothing breaks.
    task.cache.insert(2, 2);
    clock.advance(MINUTE);
    assert_eq!(task.cache.get(&2), None);
    task.cache.advance(task.cache.now(), u32::MAX);
    assert_eq!(task.cache.len(), 0);
    task.cache.validate();
}
