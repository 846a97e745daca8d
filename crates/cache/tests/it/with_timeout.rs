//! Waits with a time-out, for tests with real threads and runtimes.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

pub(crate) const MS: Duration = Duration::from_millis(1);

/// The time-out for something that happens at once unless it never does.
const LONG: Duration = Duration::from_secs(30);

/// Returns what `from` receives; a panic if it receives nothing.
pub(crate) fn heard<T>(from: &Receiver<T>, what: &str) -> T {
    match from.recv_timeout(LONG) {
        Ok(heard) => heard,
        Err(_) => panic!("waited in vain until {what}"),
    }
}

pub(crate) fn until(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..10_000 {
        if holds() {
            return;
        }
        thread::sleep(2 * MS);
    }
    panic!("waited in vain until {what}");
}

/// Runs a test on a thread of its own; a panic if it does not end.
pub(crate) fn in_time(what: &str, test: impl FnOnce() + Send + 'static) {
    let (done, all_done) = channel();
    let tested = thread::spawn(move || {
        test();
        let _ = done.send(());
    });
    match all_done.recv_timeout(LONG) {
        Err(RecvTimeoutError::Timeout) => panic!("waited in vain until {what}"),
        _ => {
            if let Err(panic) = tested.join() {
                std::panic::resume_unwind(panic);
            }
        }
    }
}

/// Ends a thread's wait; user code that parks does not use it up.
#[derive(Default)]
struct Signal {
    given: Mutex<bool>,
    changed: Condvar,
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        *self.given.lock().expect("whole") = true;
        self.changed.notify_one();
    }
}

/// An executor of one future, on this thread.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let signal = Arc::new(Signal::default());
    let waker = Waker::from(Arc::clone(&signal));
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        let mut given = signal.given.lock().expect("whole");
        while !*given {
            given = signal.changed.wait(given).expect("whole");
        }
        *given = false;
    }
}

/// A timer of no runtime: a thread for each sleep.
pub(crate) fn sleep(duration: Duration) -> Sleep {
    Sleep {
        duration: Some(duration),
        state: Arc::default(),
    }
}

pub(crate) struct Sleep {
    duration: Option<Duration>,
    state: Arc<Mutex<(bool, Option<Waker>)>>,
}

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
