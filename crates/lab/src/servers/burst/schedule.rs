//! When the keys of a burst fall due.

/// How many of the dying are due by when.
#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    pub(crate) first_ns: u64,
    pub(crate) last_ns: u64,
    base_ns: u64,
    /// Keys whose deadline is at most this many milliseconds after the base.
    due_by_ms: Vec<u64>,
}

impl Schedule {
    pub(super) fn new(base_ns: u64, offsets_ms: &[u32], window_ms: u64) -> Self {
        let mut due_by_ms = vec![0_u64; window_ms as usize];
        for &offset in offsets_ms {
            due_by_ms[offset as usize] += 1;
        }
        let at = |offset: Option<&u32>| base_ns + u64::from(*offset.unwrap_or(&0)) * 1_000_000;
        let (first_ns, last_ns) = (at(offsets_ms.iter().min()), at(offsets_ms.iter().max()));
        let mut sum = 0;
        for count in &mut due_by_ms {
            sum += *count;
            *count = sum;
        }
        Self {
            first_ns,
            last_ns,
            base_ns,
            due_by_ms,
        }
    }

    /// Keys whose deadline has come at that time.
    pub(crate) fn due_at(&self, at_ns: u64) -> u64 {
        let Some(since_ns) = at_ns.checked_sub(self.base_ns) else {
            return 0;
        };
        let ms = (since_ns / 1_000_000) as usize;
        self.due_by_ms
            .get(ms)
            .or(self.due_by_ms.last())
            .copied()
            .unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_counts_what_is_due_from_the_very_deadline_on() {
        let ms = 1_000_000;
        let schedule = Schedule::new(100 * ms, &[3, 0, 9, 3], 10);
        assert_eq!(schedule.first_ns, 100 * ms);
        assert_eq!(schedule.last_ns, 109 * ms);
        assert_eq!(schedule.due_at(0), 0);
        assert_eq!(schedule.due_at(100 * ms - 1), 0);
        assert_eq!(schedule.due_at(100 * ms), 1);
        assert_eq!(schedule.due_at(103 * ms - 1), 1);
        assert_eq!(schedule.due_at(103 * ms), 3);
        assert_eq!(schedule.due_at(900 * ms), 4);
    }
}
