//! How many failed handshakes the log tells of: whoever connects must not fill a disk.

/// The most lines of a second.
const LINES_MAX: u32 = 10;

/// Failures of the present second.
#[derive(Debug, Default)]
pub(super) struct FailureLines {
    /// The tick at which it began.
    since: u64,
    said: u32,
    left_out: u64,
}

impl FailureLines {
    /// Notes a failure. Returns how many were left out before it, if it is to have a line.
    pub(super) fn next(&mut self, now: u64) -> Option<u64> {
        if now.saturating_sub(self.since) >= 1_000 {
            self.since = now;
            self.said = 0;
        }
        if self.said == LINES_MAX {
            self.left_out += 1;
            return None;
        }
        self.said += 1;
        Some(std::mem::take(&mut self.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_has_ten_lines_and_the_next_says_how_many_are_missing() {
        let mut lines = FailureLines::default();
        let said =
            |lines: &mut FailureLines, now| (0..1_000).filter_map(|_| lines.next(now)).collect();
        let first: Vec<u64> = said(&mut lines, 5_000);
        assert_eq!(first, [0; 10]);
        assert_eq!(lines.next(5_999), None);
        let second: Vec<u64> = said(&mut lines, 6_000);
        assert_eq!(second, [991, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    }
}
