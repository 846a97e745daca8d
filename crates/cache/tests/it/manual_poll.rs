//! Futures that tests poll by hand, and wakers that count.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

/// A waker that counts, and can end a thread's wait.
#[derive(Debug)]
pub(crate) struct Alarm {
    pub(crate) woken: AtomicUsize,
    thread: thread::Thread,
}

impl Alarm {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            woken: AtomicUsize::new(0),
            thread: thread::current(),
        })
    }
}

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.woken.fetch_add(1, SeqCst);
        self.thread.unpark();
    }
}

/// Runs a future on this thread.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let alarm = Alarm::new();
    let waker = Waker::from(Arc::clone(&alarm));
    let mut context = Context::from_waker(&waker);
    loop {
        let seen = alarm.woken.load(SeqCst);
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        while alarm.woken.load(SeqCst) == seen {
            thread::park();
        }
    }
}

/// Polls a future once.
pub(crate) fn poll<F: Future + ?Sized>(future: Pin<&mut F>, alarm: &Arc<Alarm>) -> Poll<F::Output> {
    let waker = Waker::from(Arc::clone(alarm));
    future.poll(&mut Context::from_waker(&waker))
}

/// Polls a driver as an executor would that is told to, again and again.
pub(crate) fn turn<F: Future>(drive: &mut Pin<Box<F>>) {
    for _ in 0..16 {
        let mut context = Context::from_waker(Waker::noop());
        assert!(drive.as_mut().poll(&mut context).is_pending());
    }
}

/// A future that is ready once a flag is set; whoever sets it polls again by hand.
pub(crate) async fn flagged(flag: &AtomicBool) {
    poll_fn(|_| {
        if flag.load(SeqCst) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
}

/// A door at which futures wait while it is shut. Like any future, each knows its last waker only.
#[derive(Debug, Default)]
pub(crate) struct Door {
    next: AtomicUsize,
    /// True if it is open, and those who wait.
    state: Mutex<(bool, Vec<(usize, Waker)>)>,
}

impl Door {
    pub(crate) fn set(&self, is_open: bool) {
        let mut door = self.state.lock().expect("whole");
        door.0 = is_open;
        if is_open {
            let wakers = std::mem::take(&mut door.1);
            drop(door);
            wakers.into_iter().for_each(|(_, waker)| waker.wake());
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.state.lock().expect("whole").0
    }

    /// Drops the wakers of somebody who is gone.
    pub(crate) fn forget(&self, own: &Waker) {
        let wakers = &mut self.state.lock().expect("whole").1;
        wakers.retain(|(_, waker)| !waker.will_wake(own));
    }

    pub(crate) async fn pass(&self) {
        let id = self.next.fetch_add(1, SeqCst);
        poll_fn(|context| {
            let mut door = self.state.lock().expect("whole");
            door.1.retain(|(of, _)| *of != id);
            if door.0 {
                return Poll::Ready(());
            }
            door.1.push((id, context.waker().clone()));
            Poll::Pending
        })
        .await;
    }
}

/// A timer of no runtime: a thread for each sleep.
#[cfg(all(feature = "system", not(target_family = "wasm")))]
pub(crate) fn sleep(duration: Duration) -> Sleep {
    Sleep {
        duration: Some(duration),
        state: Arc::default(),
    }
}

#[cfg(all(feature = "system", not(target_family = "wasm")))]
pub(crate) struct Sleep {
    duration: Option<Duration>,
    state: Arc<Mutex<(bool, Option<Waker>)>>,
}

#[cfg(all(feature = "system", not(target_family = "wasm")))]
impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if let Some(duration) = self.duration.take() {
            let state = Arc::clone(&self.state);
            thread::spawn(move || {
                thread::sleep(duration);
                let mut state = state.lock().expect("whole");
                state.0 = true;
                if let Some(waker) = state.1.take() {
                    waker.wake();
                }
            });
        }
        let mut state = self.state.lock().expect("whole");
        if state.0 {
            return Poll::Ready(());
        }
        state.1 = Some(context.waker().clone());
        Poll::Pending
    }
}
