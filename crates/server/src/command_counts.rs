//! How often each command was called, for INFO commandstats.
//!
//! Runs of one command, which pipelines mostly are, cost a comparison each; a counter is touched when
//! the command changes and at the end of a turn.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tidewheel_keyspace::Command;

type Counter = (&'static Command, Arc<AtomicU64>);

/// One loop's counters, as others see them.
#[derive(Debug, Default)]
pub(crate) struct SharedCounts(Mutex<Vec<Counter>>);

/// One loop's counters, as the loop itself uses them.
#[derive(Debug, Default)]
pub(crate) struct CommandCounts {
    row: Option<&'static Command>,
    run: u64,
    counters: Vec<Counter>,
}

impl CommandCounts {
    #[inline]
    pub(crate) fn add(&mut self, row: &'static Command, shared: &SharedCounts) {
        if self.row.is_some_and(|last| std::ptr::eq(last, row)) {
            self.run += 1;
        } else {
            self.end_run(shared);
            self.row = Some(row);
            self.run = 1;
        }
    }

    /// Brings the counters up to date.
    #[inline(never)]
    pub(crate) fn end_run(&mut self, shared: &SharedCounts) {
        let Some(row) = self.row.take() else { return };
        let at = match self
            .counters
            .iter()
            .position(|(known, _)| std::ptr::eq(*known, row))
        {
            Some(at) => at,
            None => {
                let counter = (row, Arc::new(AtomicU64::new(0)));
                shared.0.lock().push(counter.clone());
                self.counters.push(counter);
                self.counters.len() - 1
            }
        };
        self.counters[at].1.fetch_add(self.run, Ordering::Relaxed);
        // The commands in use gather at the front.
        if at > 0 {
            self.counters.swap(at, at - 1);
        }
    }
}

impl SharedCounts {
    /// Calls `visit` with each command and its number of calls.
    pub(crate) fn each(&self, mut visit: impl FnMut(&'static Command, u64)) {
        for (row, counter) in self.0.lock().iter() {
            visit(row, counter.load(Ordering::Relaxed));
        }
    }

    pub(crate) fn reset(&self) {
        for (_, counter) in self.0.lock().iter() {
            counter.store(0, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn runs_of_commands_are_counted_once_each() {
        let row = |name: &[u8]| tidewheel_keyspace::lookup(name).expect("a command");
        let (get, set) = (row(b"get"), row(b"set"));
        let shared = SharedCounts::default();
        let mut counts = CommandCounts::default();
        for row in [get, get, set, get, set, set] {
            counts.add(row, &shared);
        }
        counts.end_run(&shared);
        counts.end_run(&shared);
        let mut seen = HashMap::new();
        shared.each(|row, calls| {
            seen.insert(row.name, calls);
        });
        assert_eq!(seen, HashMap::from([("get", 3), ("set", 3)]));
        shared.reset();
        shared.each(|_, calls| assert_eq!(calls, 0));
    }
}
