//! LATENCY GRAPH: one column for each second, drawn with letters.

use std::fmt::Write as _;

use crate::counters::latency::LatencySeries;

/// The most columns. The newest samples are shown.
const COLUMNS: usize = 80;

/// Lines that a column has.
const LINES: u64 = 4;

/// The characters for a line of a column, from empty to full.
const LEVELS: [char; 4] = [' ', '_', 'o', '#'];

/// Draws an event's samples. Below each column stands how long ago it was.
pub(super) fn graph(name: &str, series: &LatencySeries, now_s: i64) -> String {
    let skipped = series.samples.len().saturating_sub(COLUMNS);
    let samples: Vec<_> = series.samples.iter().skip(skipped).collect();
    let high = samples.iter().map(|sample| sample.ms).max().unwrap_or(0);
    let low = samples.iter().map(|sample| sample.ms).min().unwrap_or(0);
    let worst = series.worst_ms;
    let mut text = format!("{name} - high {high} ms, low {low} ms (all time high {worst} ms)\n");
    text.extend(["-"; COLUMNS]);
    text.push('\n');
    for line in (0..LINES).rev() {
        text.extend(
            samples
                .iter()
                .map(|sample| mark(sample.ms, low, high, line)),
        );
        text.push('\n');
    }
    let ages: Vec<Vec<char>> = samples
        .iter()
        .map(|sample| age(now_s.saturating_sub(sample.at_s)).chars().collect())
        .collect();
    for line in 0..ages.iter().map(Vec::len).max().unwrap_or(0) {
        text.push('\n');
        text.extend(ages.iter().map(|age| age.get(line).unwrap_or(&' ')));
    }
    text.push('\n');
    text
}

/// Returns the character for a line of a column. The least time fills the lowest line a little, so
/// that every column is seen.
fn mark(ms: u64, low: u64, high: u64, line: u64) -> char {
    let steps = LINES * (LEVELS.len() as u64 - 1);
    let above = u128::from(ms - low) * u128::from(steps - 1);
    let filled = 1 + (above / u128::from((high - low).max(1))) as u64;
    let here = filled.saturating_sub(line * (LEVELS.len() as u64 - 1));
    LEVELS[(here as usize).min(LEVELS.len() - 1)]
}

fn age(seconds: i64) -> String {
    let mut text = String::new();
    let written = match seconds {
        ..60 => write!(text, "{seconds}s"),
        60..3_600 => write!(text, "{}m", seconds / 60),
        3_600..86_400 => write!(text, "{}h", seconds / 3_600),
        _ => write!(text, "{}d", seconds / 86_400),
    };
    debug_assert!(written.is_ok(), "a String takes everything");
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::latency::LatencySample;

    #[test]
    fn every_second_has_a_column_with_its_age() {
        let sample = |at_s, ms| LatencySample { at_s, ms };
        let series = LatencySeries {
            samples: [sample(10, 1), sample(900, 7), sample(999, 12)].into(),
            worst_ms: 20,
        };
        let text = graph("command", &series, 1_000);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[0],
            "command - high 12 ms, low 1 ms (all time high 20 ms)"
        );
        assert_eq!(lines[2..6], ["  #", " _#", " ##", "_##"]);
        assert_eq!(lines[6..], ["", "111", "6ms", "m  "]);
    }

    #[test]
    fn equal_times_and_many_of_them_can_be_drawn() {
        let samples = (0..200).map(|at_s| LatencySample { at_s, ms: u64::MAX });
        let series = LatencySeries {
            samples: samples.collect(),
            worst_ms: u64::MAX,
        };
        let text = graph("command", &series, i64::MAX);
        assert!(
            text.lines()
                .all(|line| line.chars().count() <= 80 || line.starts_with('c'))
        );
    }
}
