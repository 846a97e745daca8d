//! The thread of the caches that are written here for comparison: called back once a second, or
//! when asked.

use std::io;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::clock;

const EVERY_NS: u64 = 1_000_000_000;
/// The longest sleep; then it looks at the clock and sleeps again.
const SLEEP_NS: u64 = 3_600 * EVERY_NS;

/// Calls back until it is dropped.
#[derive(Debug)]
pub(crate) struct Ticker {
    /// The thread ends when there is no sender any more.
    messages: Option<Sender<TickerMessage>>,
    thread: Option<JoinHandle<()>>,
}

/// A message to the thread.
#[derive(Clone, Copy, Debug)]
enum TickerMessage {
    CallBy(u64),
    Rest(bool),
}

impl Ticker {
    /// Calls back once a second. A call that takes longer than that swallows the ticks meanwhile
    /// but one, as Go's ticker does.
    pub(crate) fn start(mut tick: impl FnMut() + Send + 'static) -> io::Result<Self> {
        let first_ns = clock::mono_ns() + EVERY_NS;
        Self::spawn(first_ns, EVERY_NS, move |at_ns| {
            tick();
            clock::mono_ns().max(at_ns + EVERY_NS)
        })
    }

    /// Calls back when [`call_by`](Self::call_by) says, and when the last call said that the next
    /// is due.
    pub(crate) fn on_demand(mut tick: impl FnMut() -> u64 + Send + 'static) -> io::Result<Self> {
        Self::spawn(u64::MAX, 1, move |_| tick())
    }

    fn spawn(
        first_ns: u64,
        step_ns: u64,
        tick: impl FnMut(u64) -> u64 + Send + 'static,
    ) -> io::Result<Self> {
        let (messages, inbox) = mpsc::channel();
        let thread = thread::Builder::new().name("sweeper".to_owned());
        let thread = thread.spawn(move || run(&inbox, first_ns, step_ns, tick))?;
        Ok(Self {
            messages: Some(messages),
            thread: Some(thread),
        })
    }

    /// The next call comes at `at_ns`, unless it comes earlier.
    pub(crate) fn call_by(&self, at_ns: u64) {
        self.tell(TickerMessage::CallBy(at_ns));
    }

    /// Ticks pass unheard while it rests.
    pub(crate) fn rest(&self, resting: bool) {
        self.tell(TickerMessage::Rest(resting));
    }

    fn tell(&self, message: TickerMessage) {
        if let Some(messages) = &self.messages {
            // Nobody hears it after a sweep that panicked, which has told so on standard error.
            messages.send(message).ok();
        }
    }
}

/// Calls at `at_ns` and whenever a call said; all messages are read before a call.
fn run(
    inbox: &Receiver<TickerMessage>,
    mut at_ns: u64,
    step_ns: u64,
    mut tick: impl FnMut(u64) -> u64,
) {
    let mut resting = false;
    loop {
        let now_ns = clock::mono_ns();
        let left_ns = match resting {
            true => SLEEP_NS,
            false => at_ns.saturating_sub(now_ns).min(SLEEP_NS),
        };
        match inbox.recv_timeout(Duration::from_nanos(left_ns)) {
            Ok(TickerMessage::CallBy(by_ns)) => at_ns = at_ns.min(by_ns),
            Ok(TickerMessage::Rest(rests)) => {
                if resting && at_ns < now_ns {
                    at_ns += ((now_ns - at_ns) / step_ns + 1) * step_ns;
                }
                resting = rests;
            }
            Err(RecvTimeoutError::Timeout) if resting || clock::mono_ns() < at_ns => {}
            Err(RecvTimeoutError::Timeout) => at_ns = tick(at_ns),
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.messages = None;
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}
