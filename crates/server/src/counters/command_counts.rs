//! Counters by command: calls, durations and failures, for INFO.
//!
//! Pipelines mostly repeat one command. Such a run costs one comparison for each call; a counter is
//! touched when the command changes, and at the end of a turn. Commands without keys, and those
//! whose time does not follow from their size, are timed every time. The others take less time than
//! two readings of the clock: one in [`SAMPLE`] is timed, and sums and distributions are
//! extrapolated.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tidewheel_keyspace::{Command, Histogram};

use super::times::CallTimes;

/// One in so many commands with keys is timed.
const SAMPLE: u32 = 64;

/// Bytes of the first word of an error that is counted by itself.
const CODE_LEN_MAX: usize = 32;

/// The most error codes that are counted by themselves; others are counted together.
const CODES_MAX: usize = 128;

/// One command's counters in one loop.
#[derive(Debug, Default)]
struct Counter {
    calls: AtomicU64,
    timed_ns: AtomicU64,
    /// The calls that were timed.
    times_ns: Histogram,
    failed: AtomicU64,
    rejected: AtomicU64,
}

/// A reading of a command's counters.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reading {
    pub(crate) calls: u64,
    pub(crate) ns: u64,
    /// Calls that ran and were answered with an error.
    pub(crate) failed: u64,
    /// Calls that were answered with an error without having run.
    pub(crate) rejected: u64,
}

type CommandCounter = (&'static Command, Arc<Counter>);

/// One loop's counters, as other threads see them.
#[derive(Debug, Default)]
pub(crate) struct SharedCounts {
    commands: Mutex<Vec<CommandCounter>>,
    errors: Mutex<BTreeMap<String, u64>>,
}

/// One loop's counters, as the loop itself uses them.
#[derive(Debug, Default)]
pub(crate) struct CommandCounts {
    row: Option<&'static Command>,
    run: u64,
    until_sample: u32,
    /// Every call is timed.
    all: bool,
    counters: Vec<CommandCounter>,
}

impl CommandCounts {
    /// Counts a call; true if it should be timed. `shared` is asked only when the command changes.
    #[inline]
    pub(crate) fn add<'s>(
        &mut self,
        row: &'static Command,
        shared: impl FnOnce() -> &'s SharedCounts,
    ) -> bool {
        if self.row.is_some_and(|last| std::ptr::eq(last, row)) {
            self.run += 1;
        } else {
            self.end_run(shared());
            self.row = Some(row);
            self.run = 1;
        }
        if self.times_always(row) {
            return true;
        }
        if self.until_sample > 0 {
            self.until_sample -= 1;
            return false;
        }
        self.until_sample = SAMPLE - 1;
        true
    }

    /// Takes back the last call that was added: it counts later, see [`add_one`](Self::add_one).
    pub(crate) fn take_back(&mut self) {
        self.run = self.run.saturating_sub(1);
    }

    /// Counts a call that has ended long after it began.
    pub(crate) fn add_one(&mut self, row: &'static Command, shared: &SharedCounts) {
        self.counter(row, shared)
            .calls
            .fetch_add(1, Ordering::Relaxed);
    }

    /// Returns true if each call of this command is timed.
    #[inline]
    pub(crate) fn times_always(&self, row: &Command) -> bool {
        row.keys.first == 0 || row.slow || self.all
    }

    /// Times every call from now on, or not.
    #[inline]
    pub(crate) fn time_all(&mut self, all: bool) {
        self.all = all;
    }

    /// Adds the calls of the run that ends to the shared counter.
    #[inline(never)]
    pub(crate) fn end_run(&mut self, shared: &SharedCounts) {
        if let Some(row) = self.row.take() {
            let calls = std::mem::take(&mut self.run);
            self.counter(row, shared)
                .calls
                .fetch_add(calls, Ordering::Relaxed);
        }
    }

    /// Notes how long a call took.
    #[cold]
    pub(crate) fn took(&mut self, row: &'static Command, ns: u64, shared: &SharedCounts) {
        let counter = self.counter(row, shared);
        counter.times_ns.record(ns, 1);
        counter.timed_ns.fetch_add(ns, Ordering::Relaxed);
    }

    /// Notes an error reply, and whether the command had run.
    #[cold]
    pub(crate) fn failed(
        &mut self,
        row: Option<&'static Command>,
        ran: bool,
        reply: &[u8],
        shared: &SharedCounts,
    ) {
        if let Some(row) = row {
            self.failed_again(row, ran, shared);
        }
        let code = reply.get(1..).unwrap_or_default();
        let code = code
            .split(|byte| matches!(byte, b' ' | b'\r'))
            .next()
            .unwrap_or_default();
        // A script makes errors up, of any length.
        let code = if code.len() > CODE_LEN_MAX {
            b"ERR"
        } else {
            code
        };
        let mut errors = shared.errors.lock();
        let code = String::from_utf8_lossy(code).into_owned();
        if errors.len() < CODES_MAX || errors.contains_key(&code) {
            *errors.entry(code).or_default() += 1;
        } else {
            *errors.entry("OTHER".to_owned()).or_default() += 1;
        }
    }

    /// Notes that a command failed whose error was noted already, of a command that it has called.
    #[cold]
    pub(crate) fn failed_again(&mut self, row: &'static Command, ran: bool, shared: &SharedCounts) {
        let counter = self.counter(row, shared);
        let count = if ran {
            &counter.failed
        } else {
            &counter.rejected
        };
        count.fetch_add(1, Ordering::Relaxed);
    }

    fn counter(&mut self, row: &'static Command, shared: &SharedCounts) -> &Counter {
        let at = match self
            .counters
            .iter()
            .position(|(known, _)| std::ptr::eq(*known, row))
        {
            Some(0) => 0,
            Some(at) => {
                // The commands in use gather at the front.
                self.counters.swap(at, at - 1);
                at - 1
            }
            None => {
                let counted = (row, Arc::new(Counter::default()));
                shared.commands.lock().push(counted.clone());
                self.counters.push(counted);
                self.counters.len() - 1
            }
        };
        &self.counters[at].1
    }
}

impl SharedCounts {
    /// Adds each command's counters to the sums by name.
    pub(crate) fn add_commands(&self, sums: &mut BTreeMap<&'static str, Reading>) {
        for (row, counter) in self.commands.lock().iter() {
            let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
            let (calls, timed) = (read(&counter.calls), counter.times_ns.read().count());
            // What was timed stands for what was not.
            let ns = u128::from(read(&counter.timed_ns)) * u128::from(calls.max(timed));
            let ns = ns / u128::from(timed.max(1));
            let sum = sums.entry(row.name).or_default();
            sum.calls += calls;
            sum.ns = sum.ns.saturating_add(u64::try_from(ns).unwrap_or(u64::MAX));
            sum.failed += read(&counter.failed);
            sum.rejected += read(&counter.rejected);
        }
    }

    /// Adds how the times of each command's calls are distributed to the sums by name.
    pub(crate) fn add_times(&self, sums: &mut BTreeMap<&'static str, CallTimes>) {
        for (row, counter) in self.commands.lock().iter() {
            let sum = sums.entry(row.name).or_default();
            sum.calls += counter.calls.load(Ordering::Relaxed);
            sum.timed.push(counter.times_ns.read());
        }
    }

    /// Adds the number of error replies to the sums by code.
    pub(crate) fn add_errors(&self, sums: &mut BTreeMap<String, u64>) {
        for (code, count) in self.errors.lock().iter() {
            *sums.entry(code.clone()).or_default() += count;
        }
    }

    pub(crate) fn reset(&self) {
        for (_, counter) in self.commands.lock().iter() {
            let Counter {
                calls,
                timed_ns,
                times_ns,
                failed,
                rejected,
            } = &**counter;
            for count in [calls, timed_ns, failed, rejected] {
                count.store(0, Ordering::Relaxed);
            }
            times_ns.reset();
        }
        self.errors.lock().clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &[u8]) -> &'static Command {
        tidewheel_keyspace::lookup(name).expect("a command")
    }

    fn reading(shared: &SharedCounts, name: &str) -> Reading {
        let mut sums = BTreeMap::new();
        shared.add_commands(&mut sums);
        sums.get(name).copied().unwrap_or_default()
    }

    #[test]
    fn every_call_is_counted_once_also_in_runs_of_one_command() {
        let shared = SharedCounts::default();
        let mut counts = CommandCounts::default();
        for name in [b"get", b"get", b"set", b"get", b"set", b"set"] {
            counts.add(row(name), || &shared);
        }
        counts.end_run(&shared);
        counts.end_run(&shared);
        assert_eq!(reading(&shared, "get").calls, 3);
        assert_eq!(reading(&shared, "set").calls, 3);
        shared.reset();
        assert_eq!(reading(&shared, "set"), Reading::default());
    }

    #[test]
    fn of_quick_commands_a_sample_is_timed_and_of_slow_ones_every_call() {
        let shared = SharedCounts::default();
        let mut counts = CommandCounts::default();
        let mut timed = 0;
        for _ in 0..640 {
            if counts.add(row(b"get"), || &shared) {
                timed += 1;
                counts.took(row(b"get"), 100, &shared);
            }
            assert!(counts.add(row(b"keys"), || &shared));
        }
        counts.end_run(&shared);
        assert_eq!(timed, 10);
        assert_eq!(reading(&shared, "get").ns, 64_000);
    }

    /// A script made up a hundred of five megabytes, and INFO carried them all.
    #[test]
    fn a_code_that_is_longer_than_any_is_counted_as_an_error_like_others() {
        let shared = SharedCounts::default();
        let mut counts = CommandCounts::default();
        let long = [&b"-"[..], &[b'K'; CODE_LEN_MAX + 1], b" x\r\n"].concat();
        counts.failed(None, false, &long, &shared);
        let longest = [&b"-"[..], &[b'K'; CODE_LEN_MAX], b" x\r\n"].concat();
        counts.failed(None, false, &longest, &shared);
        let errors = shared.errors.lock();
        let names: Vec<_> = errors.keys().map(String::as_str).collect();
        assert_eq!(names, ["ERR", &"K".repeat(CODE_LEN_MAX)]);
    }

    #[test]
    fn errors_are_counted_by_command_and_by_code_within_bounds() {
        let shared = SharedCounts::default();
        let mut counts = CommandCounts::default();
        counts.failed(
            Some(row(b"get")),
            true,
            b"-WRONGTYPE Operation\r\n",
            &shared,
        );
        counts.failed(Some(row(b"get")), false, b"-ERR wrong number\r\n", &shared);
        counts.failed(None, false, b"-ERR unknown\r\n", &shared);
        assert_eq!(
            (
                reading(&shared, "get").failed,
                reading(&shared, "get").rejected
            ),
            (1, 1)
        );
        for i in 0..1000 {
            counts.failed(None, false, format!("-CODE{i} x\r\n").as_bytes(), &shared);
        }
        let mut sums = BTreeMap::new();
        shared.add_errors(&mut sums);
        assert_eq!((sums["ERR"], sums["WRONGTYPE"]), (2, 1));
        assert_eq!(sums.len(), CODES_MAX + 1);
        assert_eq!(sums.values().sum::<u64>(), 1003);
    }
}
