//! An axis: what part of the numbers it shows, where its ticks are and what they say.

/// What a number counts, as far as an axis must know.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Unit {
    /// Time; how many seconds one is.
    Time(f64),
    /// Written behind each number.
    Sign(&'static str),
    /// The label says it.
    None,
}

impl Unit {
    /// By the name of a figure, which has its unit in it. A rate is no time.
    pub(super) fn of_key(key: &str) -> Self {
        let mut unit = Self::None;
        let mut words = key.split('_').peekable();
        while let Some(word) = words.next() {
            if word == "per" {
                // What follows divides.
                words.next();
                continue;
            }
            unit = match word {
                "ns" => Self::Time(1e-9),
                "us" => Self::Time(1e-6),
                "ms" => Self::Time(1e-3),
                "s" => Self::Time(1.0),
                "percent" => Self::Sign(" %"),
                "mb" => Self::Sign(" MB"),
                "bytes" => Self::Sign(" B"),
                _ => unit,
            };
        }
        unit
    }
}

/// How an axis is divided.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    pub(super) log: bool,
    /// A linear axis begins at zero.
    pub(super) from_zero: bool,
    pub(super) unit: Unit,
}

/// A line across the plot, with words unless it is a minor one.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tick {
    pub(super) value: f64,
    pub(super) text: String,
}

/// One axis of a picture.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    pub(super) label: String,
    pub(super) ticks: Vec<Tick>,
    pub(super) log: bool,
    low: f64,
    high: f64,
}

impl Axis {
    /// An axis that shows all of `values`; one without positive values is never logarithmic.
    pub(super) fn new(label: &str, scale: Scale, values: impl Iterator<Item = f64>) -> Self {
        // What cannot be divided or multiplied any more has no place on an axis.
        let drawable = |value: &f64| *value == 0.0 || (1e-300..1e300).contains(&value.abs());
        let values: Vec<f64> = values.filter(drawable).collect();
        let positive = || values.iter().copied().filter(|&value| value > 0.0);
        let log = scale.log && positive().next().is_some();
        let (min, max) = if log {
            ends(positive())
        } else {
            ends(values.iter().copied())
        };
        if log {
            let (mut low, high) = (step_down(min * 0.9), step_up(max * 1.1));
            let mut ticks = log_ticks(low, high, scale.unit);
            if values.iter().any(|&value| value <= 0.0) {
                // Zero is infinitely far away: it gets a place of its own below the least decade.
                low /= (high / low).powf(0.08);
                let zero = Tick {
                    value: 0.0,
                    text: "0".to_owned(),
                };
                ticks.insert(0, zero);
            }
            return Self {
                label: format!("{label} (logarithmic)"),
                ticks,
                log,
                low,
                high,
            };
        }
        let (min, max) = match scale.from_zero {
            true => (min.min(0.0), max.max(0.0)),
            false => (min, max),
        };
        let (min, max) = match max > min {
            true => (min, max),
            false if min == 0.0 => (0.0, 1.0),
            false => (min - min.abs() / 2.0, max + max.abs() / 2.0),
        };
        let step = step_up((max - min) / 7.0);
        let (first, last) = ((min / step).floor(), (max / step - 1e-9).ceil());
        let count = (last - first).max(1.0) as usize;
        let largest = (first * step).abs().max((last * step).abs());
        let tick = |at: usize| {
            let value = (first + at as f64) * step;
            Tick {
                value,
                text: linear_text(value, step, largest, scale.unit),
            }
        };
        Self {
            label: label.to_owned(),
            ticks: (0..=count).map(tick).collect(),
            log,
            low: first * step,
            high: (first + count as f64) * step,
        }
    }

    /// An axis of names at 0, 1, 2, …
    pub(super) fn of_names(label: &str, names: &[String]) -> Self {
        let tick = |(at, name): (usize, &String)| Tick {
            value: at as f64,
            text: name.clone(),
        };
        Self {
            label: label.to_owned(),
            ticks: names.iter().enumerate().map(tick).collect(),
            log: false,
            low: -0.35,
            high: names.len().max(1) as f64 - 0.65,
        }
    }

    /// Where a value lies, from 0 at the one end to 1 at the other; outside it is the end.
    pub(super) fn place(&self, value: f64) -> f64 {
        if !self.log {
            return ((value - self.low) / (self.high - self.low)).clamp(0.0, 1.0);
        }
        if value <= 0.0 {
            return 0.0;
        }
        ((value / self.low).ln() / (self.high / self.low).ln()).clamp(0.0, 1.0)
    }

    /// Whether a value has no place on this axis.
    pub(super) fn lacks(&self, value: f64) -> bool {
        self.log && value <= 0.0
    }
}

fn ends(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values
        .map(|value| (value, value))
        .reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
        .unwrap_or((0.0, 1.0))
}

/// The greatest of 1, 2, 5 × 10ⁿ that is not above `value`.
fn step_down(value: f64) -> f64 {
    let decade = 10_f64.powf(value.log10().floor());
    let factor = [5.0, 2.0]
        .into_iter()
        .find(|factor| decade * factor <= value);
    decade * factor.unwrap_or(1.0)
}

/// The least of 1, 2, 5 × 10ⁿ that is not below `value`.
fn step_up(value: f64) -> f64 {
    let decade = 10_f64.powf(value.log10().floor());
    let fits = |factor: &f64| decade * factor >= value * (1.0 - 1e-9);
    decade * [1.0, 2.0, 5.0].into_iter().find(fits).unwrap_or(10.0)
}

fn log_ticks(low: f64, high: f64, unit: Unit) -> Vec<Tick> {
    let decades = (high / low).log10();
    let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    let every = ((last - first) / 10).max(0) + 1;
    let mut ticks = Vec::new();
    for exponent in first..=last {
        for factor in 1..=9 {
            let value = f64::from(factor) * 10_f64.powi(exponent);
            if value < low * (1.0 - 1e-9) || value > high * (1.0 + 1e-9) {
                continue;
            }
            let said = match factor {
                1 => exponent.rem_euclid(every) == 0,
                2 | 5 => decades < 3.0,
                _ => false,
            };
            let text = match unit {
                _ if !said => String::new(),
                Unit::Time(seconds) => time(value * seconds),
                Unit::Sign(sign) => format!("{}{sign}", trimmed(value)),
                Unit::None => plain(value),
            };
            ticks.push(Tick { value, text });
        }
    }
    ticks
}

fn linear_text(value: f64, step: f64, largest: f64, unit: Unit) -> String {
    match unit {
        Unit::Time(_) if value == 0.0 => "0".to_owned(),
        Unit::Time(seconds) => {
            // The unit of the steps, so that ticks are whole, unless the last would be a long number.
            let small = unit_of_time(step * seconds);
            let long = largest * seconds / small.1 > 5_000.0;
            let (name, size) = if long {
                unit_of_time(largest * seconds)
            } else {
                small
            };
            format!("{} {name}", trimmed(value * seconds / size))
        }
        Unit::Sign(sign) => format!("{}{sign}", trimmed(value)),
        Unit::None => plain(value),
    }
}

/// A time in the unit that suits it.
pub(super) fn time(seconds: f64) -> String {
    let (name, size) = unit_of_time(seconds);
    format!("{} {name}", trimmed(seconds / size))
}

pub(super) fn unit_of_time(seconds: f64) -> (&'static str, f64) {
    let size = seconds.abs() * (1.0 + 1e-9);
    match size {
        _ if size >= 1.0 => ("s", 1.0),
        _ if size >= 1e-3 => ("ms", 1e-3),
        _ if size >= 1e-6 => ("µs", 1e-6),
        _ => ("ns", 1e-9),
    }
}

/// A round number: thousands as K, M and G, no needless zeros.
fn plain(value: f64) -> String {
    let size = value.abs() * (1.0 + 1e-9);
    let (scaled, suffix) = match size {
        _ if size >= 1e9 => (value / 1e9, "G"),
        _ if size >= 1e6 => (value / 1e6, "M"),
        _ if size >= 1e3 => (value / 1e3, "K"),
        _ => (value, ""),
    };
    if size > 0.0 && size < 1e-4 {
        return format!("{value:.0e}");
    }
    format!("{}{suffix}", trimmed(scaled))
}

fn trimmed(value: f64) -> String {
    let text = format!("{value:.6}");
    match text.trim_end_matches('0').trim_end_matches('.') {
        "-0" => "0".to_owned(),
        text => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(axis: &Axis) -> Vec<&str> {
        let texts = axis.ticks.iter().map(|tick| tick.text.as_str());
        texts.filter(|text| !text.is_empty()).collect()
    }

    fn scale(log: bool, unit: Unit) -> Scale {
        Scale {
            log,
            from_zero: true,
            unit,
        }
    }

    #[test]
    fn decades_say_their_unit() {
        let values = [0.0, 0.8, 20_000.0];
        let axis = Axis::new("cost", scale(true, Unit::Time(1e-6)), values.into_iter());
        assert_eq!(
            texts(&axis),
            ["0", "1 µs", "10 µs", "100 µs", "1 ms", "10 ms"]
        );
        assert!(axis.lacks(0.0) && !axis.lacks(0.8));
        assert_eq!(axis.place(0.0), 0.0);
        assert!(axis.place(0.8) > 0.0 && axis.place(20_000.0) < 1.0);
        let entries = Axis::new("n", scale(true, Unit::None), [1e3, 1e7].into_iter());
        assert_eq!(texts(&entries), ["1K", "10K", "100K", "1M", "10M"]);
        let narrow = Axis::new("n", scale(true, Unit::None), [3.0, 40.0].into_iter());
        assert_eq!(texts(&narrow), ["2", "5", "10", "20", "50"]);
    }

    #[test]
    fn linear_ticks_are_round_and_hold_all_values() {
        let axis = Axis::new(
            "t",
            scale(false, Unit::Time(1e-3)),
            [3.0, 1_400.0].into_iter(),
        );
        assert_eq!(texts(&axis).first(), Some(&"0"));
        assert!(texts(&axis).contains(&"1000 ms"), "{:?}", texts(&axis));
        assert!(axis.place(1_400.0) <= 1.0 && axis.place(0.0) == 0.0);
        for odd in [&[][..], &[0.0], &[7.0], &[-3.0, 3.0], &[f64::NAN]] {
            let axis = Axis::new("v", scale(false, Unit::None), odd.iter().copied());
            assert!(axis.ticks.len() > 1, "{odd:?}");
            let place = axis.place(odd.first().copied().unwrap_or(0.0));
            assert!(place.is_nan() || (0.0..=1.0).contains(&place), "{odd:?}");
        }
        let none = Axis::new("v", scale(true, Unit::None), [0.0, -1.0].into_iter());
        assert!(!none.log, "nothing to take a logarithm of");
    }

    #[test]
    fn the_unit_of_a_figure_is_in_its_name() {
        for (key, unit) in [
            ("second_few_us", Unit::Time(1e-6)),
            ("get_max_ms_in_window", Unit::Time(1e-3)),
            ("expiry_cpu_ns_per_entry", Unit::Time(1e-9)),
            ("sets_per_s", Unit::None),
            ("bytes_per_timer", Unit::Sign(" B")),
            ("hit_percent", Unit::Sign(" %")),
            ("held_mean_mb", Unit::Sign(" MB")),
            ("loads", Unit::None),
        ] {
            assert_eq!(Unit::of_key(key), unit, "{key}");
        }
    }
}
