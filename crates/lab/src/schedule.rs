//! The deadlines of many entries: the number that are due by a time.

/// Deadlines on the monotonic clock.
#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    pub(crate) first_ns: u64,
    pub(crate) last_ns: u64,
    base_ns: u64,
    /// The deadlines after the base, ascending.
    deadlines_ms: Vec<u32>,
}

impl Schedule {
    /// Deadlines in milliseconds after the base, in any order.
    pub(crate) fn new(base_ns: u64, mut deadlines_ms: Vec<u32>) -> Self {
        deadlines_ms.sort_unstable();
        let at = |ms: Option<&u32>| base_ns + u64::from(*ms.unwrap_or(&0)) * 1_000_000;
        Self {
            first_ns: at(deadlines_ms.first()),
            last_ns: at(deadlines_ms.last()),
            base_ns,
            deadlines_ms,
        }
    }

    /// The number of deadlines that have come at that time.
    pub(crate) fn due_at(&self, at_ns: u64) -> u64 {
        let Some(since_ns) = at_ns.checked_sub(self.base_ns) else {
            return 0;
        };
        let has_come = |&ms: &u32| u64::from(ms) <= since_ns / 1_000_000;
        self.deadlines_ms.partition_point(has_come) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_counts_what_is_due_from_the_very_deadline_on() {
        let ms = 1_000_000;
        let schedule = Schedule::new(100 * ms, vec![3, 0, 9, 3]);
        assert_eq!((schedule.first_ns, schedule.last_ns), (100 * ms, 109 * ms));
        let times = [0, 100 * ms - 1, 100 * ms, 103 * ms - 1, 103 * ms, 900 * ms];
        assert_eq!(times.map(|at| schedule.due_at(at)), [0, 0, 1, 1, 3, 4]);
    }
}
