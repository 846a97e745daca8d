//! Settings of the slow log, LATENCY and the distribution of commands' times.

/// The least threshold, in microseconds, at which the slow log is complete without timing every
/// call.
const FINE_US: i64 = 1_000;

/// The most percentiles: INFO computes each of them for every command.
const PERCENTILES_MAX: usize = 64;

/// Settings of the slow log, LATENCY and the distribution of commands' times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Diagnosis {
    /// The least microseconds of a call that is logged; negative = none is.
    pub(crate) slower_than_us: i64,
    /// Calls that the slow log keeps.
    pub(crate) slow_log_len: u64,
    /// The least milliseconds of an event that LATENCY notes; 0 = none.
    pub(crate) latency_ms: u64,
    /// INFO and LATENCY show the distribution of commands' times.
    pub(crate) tracking: bool,
    pub(crate) percentiles: Percentiles,
}

impl Default for Diagnosis {
    fn default() -> Self {
        Self {
            slower_than_us: 10_000,
            slow_log_len: 128,
            latency_ms: 0,
            tracking: true,
            percentiles: Percentiles::default(),
        }
    }
}

impl Diagnosis {
    /// Returns true if the slow log takes a call of this duration.
    #[inline]
    pub(crate) fn is_slow(&self, took_us: u64) -> bool {
        let threshold = u64::try_from(self.slower_than_us);
        threshold.is_ok_and(|threshold| took_us >= threshold) && self.slow_log_len > 0
    }

    /// Returns true if LATENCY notes an event of this duration.
    #[inline]
    pub(crate) fn is_noted(&self, took_us: u64) -> bool {
        self.latency_ms > 0 && took_us / 1_000 >= self.latency_ms
    }

    /// Returns true if the slow log or LATENCY is on.
    pub(crate) fn logs_calls(&self) -> bool {
        self.is_slow(u64::MAX) || self.latency_ms > 0
    }

    /// Returns true if every command must be timed, also those that are too small to take long.
    #[inline]
    pub(crate) fn times_every_call(&self) -> bool {
        (0..FINE_US).contains(&self.slower_than_us) && self.slow_log_len > 0
    }
}

/// Percentiles that INFO shows, each as it is written: `99.9`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Percentiles(Vec<String>);

impl Default for Percentiles {
    fn default() -> Self {
        Self(["50", "99", "99.9"].map(str::to_owned).to_vec())
    }
}

impl Percentiles {
    /// Reads numbers from 0 to 100, separated by blanks.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let number = |word: &str| match word.parse::<f64>() {
            Ok(number) if (0.0..=100.0).contains(&number) => Ok(number.to_string()),
            _ => Err(
                "latency-tracking-info-percentiles parameters should sit between [0.0,100.0]"
                    .to_owned(),
            ),
        };
        let words = text.split_ascii_whitespace();
        if words.clone().count() > PERCENTILES_MAX {
            return Err(format!("no more than {PERCENTILES_MAX} percentiles"));
        }
        words.map(number).collect::<Result<_, String>>().map(Self)
    }

    /// Returns the percentiles as CONFIG GET shows them.
    pub(crate) fn text(&self) -> String {
        self.0.join(" ")
    }

    /// Returns each percentile with its share of all values.
    pub(crate) fn each(&self) -> impl Iterator<Item = (&str, f64)> {
        let share = |text: &String| text.parse::<f64>().unwrap_or(100.0) / 100.0;
        self.0.iter().map(move |text| (text.as_str(), share(text)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_negative_threshold_and_an_empty_log_take_nothing() {
        let mut settings = Diagnosis::default();
        assert!(settings.is_slow(10_000) && !settings.is_slow(9_999) && settings.logs_calls());
        settings.slower_than_us = -1;
        assert!(
            !settings.is_slow(u64::MAX) && !settings.logs_calls() && !settings.times_every_call()
        );
        settings.slower_than_us = 0;
        assert!(settings.is_slow(0) && settings.times_every_call());
        settings.slow_log_len = 0;
        assert!(!settings.is_slow(0) && !settings.times_every_call());
        settings.latency_ms = 2;
        assert!(settings.is_noted(2_000) && !settings.is_noted(1_999) && settings.logs_calls());
    }

    #[test]
    fn percentiles_lie_between_0_and_100() {
        let read = |text| Percentiles::parse(text).map(|read| read.text());
        assert_eq!(
            read("50.0 99.9999 0 100"),
            Ok("50 99.9999 0 100".to_owned())
        );
        assert_eq!(read(""), Ok(String::new()));
        for wrong in ["101", "-1", "x", "NaN"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
