//! One thread's shell around a loop: its poller, its timer and its listeners.

mod accept;
mod sockets;
mod yielding;

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use mio::event::Event;
use mio::{Events, Poll, Token};

use crate::loops::loop_core::{LoopCore, Readiness, Shell};
use crate::net::listener::{Accepted, Listener};
use crate::net::stream::Stream;
use crate::state::loop_state::LoopState;
use crate::state::server::Server;
use crate::time::sleep_timer::SleepTimer;

use accept::Doors;
use sockets::Registered;
use yielding::YieldPolicy;

/// The token of each loop's waker.
pub(crate) const WAKER: Token = Token(usize::MAX);
const TIMER: Token = Token(usize::MAX - 1);
/// The token of the first listener. Listeners count down from it, and connections count up from
/// zero.
const LISTENERS: usize = usize::MAX - 2;

/// How often a loop looks whether it may come in again.
const SHUT_OUT: Duration = Duration::from_millis(1);

/// Events taken from the poller at a time.
const EVENTS: usize = 1024;

/// One event loop.
#[derive(Debug)]
pub(crate) struct EventLoop {
    core: LoopCore<Registered>,
    poll: Poll,
    timer: SleepTimer,
    yielding: YieldPolicy,
    doors: Doors,
}

impl EventLoop {
    pub(crate) fn new(
        server: Arc<Server>,
        index: usize,
        poll: Poll,
        mut listeners: Vec<Listener>,
    ) -> io::Result<Self> {
        let timer = SleepTimer::new(poll.registry(), TIMER)?;
        for (i, listener) in listeners.iter_mut().enumerate() {
            listener.register(poll.registry(), Token(LISTENERS - i))?;
        }
        let sockets = Registered::new(poll.registry().try_clone()?);
        Ok(Self {
            core: LoopCore::new(server, index, sockets),
            poll,
            timer,
            yielding: YieldPolicy::default(),
            doors: Doors {
                listeners,
                accepting: false,
                retry: None,
            },
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
        self.doors.accepting |= self.doors.retry.is_some_and(|tick| tick <= now);
        for event in events.iter() {
            if let Some((slot, readiness)) = self.doors.meaning(event) {
                self.core.note(slot, readiness);
            }
        }
        self.core.take_inbox();
        while let Some(accepted) = self.core.next_arrival() {
            self.core.adopt(accepted);
        }
        if self.doors.accepting {
            let mut own = Vec::new();
            self.doors.accept(&mut self.core.state, &mut own);
            for accepted in own {
                self.core.adopt(accepted);
            }
        }
        let idle = events.is_empty();
        let (poll, doors) = (&mut self.poll, &mut self.doors);
        self.core.work(
            idle,
            &mut Looking {
                poll,
                events,
                doors,
            },
        );
        Ok(())
    }

    /// Decides how long to sleep: zero while there is work, otherwise until the alarm, which is
    /// set.
    fn prepare_sleep(&mut self) -> io::Result<Option<Duration>> {
        if self.core.is_shut_out() {
            return Ok(Some(SHUT_OUT));
        }
        if self.doors.accepting {
            return Ok(Some(Duration::ZERO));
        }
        let Some(until) = self.core.prepare_sleep(self.doors.retry) else {
            if self.core.only_expires() {
                self.yielding.yield_now(&self.core.server().clock);
            }
            return Ok(Some(Duration::ZERO));
        };
        let now = self.core.now();
        self.timer.set(&self.core.server().clock, now, until)
    }

    /// Sends what is left, for a short time, and closes the connections.
    fn drain(&mut self, events: &mut Events) {
        self.doors.listeners.clear();
        while let Some(wait_ms) = self.core.drain() {
            let timeout = Duration::from_millis(wait_ms);
            if self.poll.poll(events, Some(timeout)).is_err() {
                return;
            }
            for event in events.iter().filter(|event| event.is_writable()) {
                if let Some((slot, readiness)) = self.doors.meaning(event) {
                    self.core.note(slot, readiness);
                }
            }
        }
    }
}

impl Doors {
    /// Returns the connection whose socket has changed, if it is one's. Notes what waits at a
    /// listener.
    fn meaning(&mut self, event: &Event) -> Option<(u32, Readiness)> {
        let token = event.token();
        if token == WAKER || token == TIMER {
            return None;
        }
        if token.0 > LISTENERS - self.listeners.len() && token.0 <= LISTENERS {
            self.accepting = true;
            return None;
        }
        let slot = u32::try_from(token.0).ok()?;
        let readiness = Readiness {
            readable: event.is_readable(),
            writable: event.is_writable(),
            read_closed: event.is_read_closed(),
            broken: event.is_error() || (event.is_write_closed() && event.is_read_closed()),
        };
        Some((slot, readiness))
    }
}

/// What a loop looks at while a script of it runs for long.
struct Looking<'a> {
    poll: &'a mut Poll,
    events: &'a mut Events,
    doors: &'a mut Doors,
}

impl Shell<Stream> for Looking<'_> {
    fn look(&mut self, note: &mut dyn FnMut(u32, Readiness)) {
        if let Err(why) = self.poll.poll(self.events, Some(Duration::ZERO)) {
            // The next look may succeed, or the loop's next turn says why not.
            tracing::debug!(%why, "cannot look at the sockets beside a script");
            return;
        }
        for event in self.events.iter() {
            if let Some((slot, readiness)) = self.doors.meaning(event) {
                note(slot, readiness);
            }
        }
    }

    fn accept(&mut self, state: &mut LoopState, accepted: &mut Vec<Accepted>) {
        state.handle().take_connections(accepted);
        let now = state.time.tick;
        self.doors.accepting |= self.doors.retry.is_some_and(|tick| tick <= now);
        if self.doors.accepting {
            self.doors.accept(state, accepted);
        }
    }
}
