//! Processor time of short stretches: wall time, less what the thread waited for a processor.
//!
//! The kernel's own count of processor time moves in ticks of milliseconds, while its count of waiting
//! is exact whenever the thread runs again. A stretch in which the thread was put aside would else be
//! the figure.

use std::fs;

use crate::clock;

/// What is told without looking whether the thread was put aside: nobody takes the processor for less.
const SHORT_NS: u64 = 10_000;

/// A stretch that has begun.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopwatch {
    waited_ns: u64,
    from_ns: u64,
}

impl Stopwatch {
    pub(crate) fn start() -> Self {
        let waited_ns = waited_ns();
        Self {
            waited_ns,
            from_ns: clock::mono_ns(),
        }
    }

    /// Nanoseconds since it was started.
    pub(crate) fn stop(mut self) -> u64 {
        let wall_ns = clock::mono_ns() - self.from_ns;
        self.less_waiting(wall_ns, waited_ns())
    }

    /// Starts the next of many short stretches. Cheap: what was waited since the last long one is not looked
    /// at, and is taken off the next long one.
    pub(crate) fn restart(&mut self) {
        self.from_ns = clock::mono_ns();
    }

    /// Nanoseconds of one of many short stretches.
    pub(crate) fn lap(&mut self) -> u64 {
        let wall_ns = clock::mono_ns() - self.from_ns;
        if wall_ns < SHORT_NS {
            return wall_ns;
        }
        self.less_waiting(wall_ns, waited_ns())
    }

    fn less_waiting(&mut self, wall_ns: u64, waited_ns: u64) -> u64 {
        let before_ns = std::mem::replace(&mut self.waited_ns, waited_ns);
        wall_ns.saturating_sub(waited_ns.saturating_sub(before_ns))
    }
}

/// How long this thread has waited for a processor while it could have run; 0 where nobody tells.
fn waited_ns() -> u64 {
    fs::read_to_string("/proc/thread-self/schedstat")
        .ok()
        .and_then(|text| waited_of(&text))
        .unwrap_or(0)
}

/// Time on a processor, time spent waiting for one, turns.
fn waited_of(schedstat: &str) -> Option<u64> {
    schedstat.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_taken_off_once() {
        let mut watch = Stopwatch {
            waited_ns: 5_000,
            from_ns: 0,
        };
        assert_eq!(watch.less_waiting(90_000, 35_000), 60_000);
        assert_eq!(watch.less_waiting(90_000, 35_000), 90_000);
        // The counters are read one after the other.
        assert_eq!(watch.less_waiting(10, 36_000), 0);
    }

    #[test]
    fn the_kernel_tells_of_waiting_second() {
        assert_eq!(waited_of("121878512 90108293 30\n"), Some(90_108_293));
        assert_eq!(waited_of(""), None);
    }
}
