//! Futures that tests poll by hand, and wakers that count.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;

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
