//! Entries that are nothing but deadlines: strategies work on them in virtual time.

use tidewheel_timer::{Timer, Timers};

use super::{Entries, NEVER};

/// Deadline and registration of each entry, in a vector each.
#[derive(Debug)]
pub(crate) struct Deadlines {
    deadlines_ms: Vec<u64>,
    registrations: Vec<u32>,
}

impl Deadlines {
    /// Room for places `0..bound`, all of them without a deadline.
    pub(crate) fn new(bound: usize) -> Self {
        Self {
            deadlines_ms: vec![NEVER; bound],
            registrations: vec![0; bound],
        }
    }
}

impl Timers for Deadlines {
    fn timer(&self, id: u32) -> Option<Timer> {
        let deadline = self.deadlines_ms[id as usize];
        (deadline != NEVER).then(|| Timer {
            deadline,
            registration: self.registrations[id as usize],
        })
    }

    fn set_registration(&mut self, id: u32, registration: u32) {
        self.registrations[id as usize] = registration;
    }
}

impl Entries for Deadlines {
    fn bound(&self) -> u32 {
        self.deadlines_ms.len() as u32
    }

    fn set(&mut self, id: u32, deadline_ms: u64) {
        self.deadlines_ms[id as usize] = deadline_ms;
    }
}
