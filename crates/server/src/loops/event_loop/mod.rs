//! One thread's shell around a loop: its poller, its timer and its listeners.

mod accept;
mod sockets;
mod yielding;

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use mio::event::Event;
use mio::net::TcpListener;
use mio::{Events, Interest, Poll, Token};

use crate::loops::loop_core::{LoopCore, Readiness};
use crate::state::server::Server;
use crate::time::sleep_timer::SleepTimer;

use sockets::Registered;
use yielding::YieldPolicy;

/// The token of each loop's waker.
pub(crate) const WAKER: Token = Token(usize::MAX);
const TIMER: Token = Token(usize::MAX - 1);
/// The token of the first listener. Listeners count down from it, and connections count up from
/// zero.
const LISTENERS: usize = usize::MAX - 2;

/// Events taken from the poller at a time.
const EVENTS: usize = 1024;

/// One event loop.
#[derive(Debug)]
pub(crate) struct EventLoop {
    core: LoopCore<Registered>,
    poll: Poll,
    timer: SleepTimer,
    yielding: YieldPolicy,
    listeners: Vec<TcpListener>,
    /// Connections may wait at the listeners.
    accepting: bool,
    /// The tick at which accepting is tried again.
    accept_retry: Option<u64>,
}

impl EventLoop {
    pub(crate) fn new(
        server: Arc<Server>,
        index: usize,
        poll: Poll,
        mut listeners: Vec<TcpListener>,
    ) -> io::Result<Self> {
        let timer = SleepTimer::new(poll.registry(), TIMER)?;
        for (i, listener) in listeners.iter_mut().enumerate() {
            poll.registry()
                .register(listener, Token(LISTENERS - i), Interest::READABLE)?;
        }
        let sockets = Registered::new(poll.registry().try_clone()?);
        Ok(Self {
            core: LoopCore::new(server, index, sockets),
            poll,
            timer,
            yielding: YieldPolicy::default(),
            listeners,
            accepting: false,
            accept_retry: None,
        })
    }

    /// Runs until the server stops.
    pub(crate) fn run(mut self) {
        let mut events = Events::with_capacity(EVENTS);
        while !self.core.server().stopping.load(Ordering::Acquire) {
            if let Err(why) = self.turn(&mut events) {
                tracing::error!(%why, "an event loop cannot go on");
                return;
            }
        }
        self.drain(&mut events);
    }

    fn turn(&mut self, events: &mut Events) -> io::Result<()> {
        let timeout = self.prepare_sleep()?;
        match self.poll.poll(events, timeout) {
            Err(why) if why.kind() != io::ErrorKind::Interrupted => return Err(why),
            _ => {}
        }
        self.core.wake();
        let now = self.core.now();
        self.accepting |= self.accept_retry.is_some_and(|tick| tick <= now);
        for event in events.iter() {
            self.note(event);
        }
        self.core.take_inbox();
        while let Some(accepted) = self.core.next_arrival() {
            self.core.adopt(accepted);
        }
        if self.accepting {
            self.accept();
        }
        self.core.work(events.is_empty());
        Ok(())
    }

    /// Decides how long to sleep: zero while there is work, otherwise until the alarm, which is
    /// set.
    fn prepare_sleep(&mut self) -> io::Result<Option<Duration>> {
        if self.accepting {
            return Ok(Some(Duration::ZERO));
        }
        let Some(until) = self.core.prepare_sleep(self.accept_retry) else {
            if self.core.only_expires() {
                self.yielding.yield_now(&self.core.server().clock);
            }
            return Ok(Some(Duration::ZERO));
        };
        let now = self.core.now();
        self.timer.set(&self.core.server().clock, now, until)
    }

    fn note(&mut self, event: &Event) {
        let token = event.token();
        if token == WAKER || token == TIMER {
            return;
        }
        if token.0 > LISTENERS - self.listeners.len() && token.0 <= LISTENERS {
            self.accepting = true;
            return;
        }
        let Ok(slot) = u32::try_from(token.0) else {
            return;
        };
        let readiness = Readiness {
            readable: event.is_readable(),
            writable: event.is_writable(),
            read_closed: event.is_read_closed(),
            broken: event.is_error() || (event.is_write_closed() && event.is_read_closed()),
        };
        self.core.note(slot, readiness);
    }

    /// Sends what is left, for a short time, and closes the connections.
    fn drain(&mut self, events: &mut Events) {
        self.listeners.clear();
        while let Some(wait_ms) = self.core.drain() {
            let timeout = Duration::from_millis(wait_ms);
            if self.poll.poll(events, Some(timeout)).is_err() {
                return;
            }
            for event in events.iter().filter(|event| event.is_writable()) {
                self.note(event);
            }
        }
    }
}
