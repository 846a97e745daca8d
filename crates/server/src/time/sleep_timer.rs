//! Ends a sleep well within a millisecond of its deadline.
//!
//! On Linux a timerfd is set to the absolute instant at which a tick begins. Poll's own time-out
//! would be less exact: it is rounded up to whole milliseconds, and delayed by the thread's timer
//! slack. Other systems use poll's time-out.

#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) use linux::SleepTimer;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) use portable::SleepTimer;

#[cfg(any(target_os = "linux", target_os = "android"))]
mod linux {
    use std::io;
    use std::os::fd::{AsRawFd, OwnedFd};
    use std::time::Duration;

    use mio::unix::SourceFd;
    use mio::{Interest, Registry, Token};
    use rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
        timerfd_settime,
    };

    use tidewheel_time::NEVER;

    use crate::time::clock::Clock;

    /// One thread's timer.
    #[derive(Debug)]
    pub(crate) struct SleepTimer {
        fd: OwnedFd,
        /// The tick to which it is set; [`NEVER`] if it is not.
        armed: u64,
    }

    impl SleepTimer {
        pub(crate) fn new(registry: &Registry, token: Token) -> io::Result<Self> {
            let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
            let fd = timerfd_create(TimerfdClockId::Monotonic, flags)?;
            // Edge-triggered: every expiration is a new edge, so the descriptor is never read.
            registry.register(&mut SourceFd(&fd.as_raw_fd()), token, Interest::READABLE)?;
            Ok(Self { fd, armed: NEVER })
        }

        /// Sets the timer, so that a poll wakes when `tick` begins ([`NEVER`]: never). Returns the
        /// time-out that the poll needs as well.
        ///
        /// A timer that is set for earlier is left alone: it wakes the loop once in vain, which is
        /// cheaper than a system call for every deadline that moves later.
        pub(crate) fn set(
            &mut self,
            clock: &Clock,
            now: u64,
            tick: u64,
        ) -> io::Result<Option<Duration>> {
            if self.armed <= now {
                self.armed = NEVER;
            }
            if tick < self.armed {
                let at_ns = clock.tick_to_monotonic_ns(tick);
                // Nobody waits longer than the kernel's signed seconds can say.
                let tv_sec = i64::try_from(at_ns / 1_000_000_000).unwrap_or(i64::MAX);
                let tv_nsec = (at_ns % 1_000_000_000) as i64;
                let once = Itimerspec {
                    it_interval: Timespec {
                        tv_sec: 0,
                        tv_nsec: 0,
                    },
                    it_value: Timespec { tv_sec, tv_nsec },
                };
                timerfd_settime(&self.fd, TimerfdTimerFlags::ABSTIME, &once)?;
                self.armed = tick;
            }
            Ok(None)
        }
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod portable {
    use std::io;
    use std::time::Duration;

    use mio::{Registry, Token};

    use tidewheel_time::NEVER;

    use crate::time::clock::Clock;

    /// One thread's timer.
    #[derive(Debug)]
    pub(crate) struct SleepTimer;

    impl SleepTimer {
        pub(crate) fn new(_: &Registry, _: Token) -> io::Result<Self> {
            Ok(Self)
        }

        /// Returns the time-out after which `tick` has begun.
        pub(crate) fn set(
            &mut self,
            clock: &Clock,
            _now: u64,
            tick: u64,
        ) -> io::Result<Option<Duration>> {
            let ns = clock
                .tick_to_monotonic_ns(tick)
                .saturating_sub(clock.monotonic_ns());
            Ok((tick != NEVER).then(|| Duration::from_nanos(ns)))
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_poll_wakes_when_the_tick_begins_and_never_before() {
        let clock = crate::time::clock::Clock::start();
        let mut poll = mio::Poll::new().unwrap();
        let mut timer = SleepTimer::new(poll.registry(), mio::Token(7)).unwrap();
        let mut events = mio::Events::with_capacity(4);
        for ahead in [1, 3, 2, 1] {
            let now = clock.now().tick;
            let timeout = timer.set(&clock, now, now + ahead).unwrap();
            poll.poll(&mut events, timeout).unwrap();
            assert!(clock.now().tick >= now + ahead);
            assert!(events.iter().all(|event| event.token() == mio::Token(7)));
        }
    }
}
