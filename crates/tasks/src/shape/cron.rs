//! Times of a cron expression in a time zone.

use std::fmt;
use std::sync::Arc;

use croner::parser::{CronParser, Seconds, Year};
use jiff::tz::TimeZone;

use crate::shape::error::StoreError;
use crate::shape::timestamp::{LATEST, Timestamp};

/// Bytes that an expression and a zone's name may have.
const EXPRESSION_MAX: usize = 200;
const ZONE_MAX: usize = 100;

/// Names in the system's folder of zones that stand for what the machine was set to.
const MACHINES_OWN: [&str; 4] = ["localtime", "posixrules", "Factory", "Etc/Unknown"];

/// The beginning of the year 2024: an expression that has no time after it never has one.
const SOME_DAY: Timestamp = Timestamp(1_704_067_200_000_000);

/// A search that fails is begun anew so much later, and so often: its limits are those of a zone's
/// strangest days, such as one that was left out.
const A_DAY: std::time::Duration = std::time::Duration::from_secs(86_400);
const TRIES: usize = 3;

/// A cron expression, and the time zone whose clocks it is about.
///
/// It has five fields (minute, hour, day of month, month, day of week) or six, with seconds first:
/// numbers, names, lists, ranges and steps, and `L`, `W` and `#` as
/// [croner](https://docs.rs/croner) takes them. `@daily` and the like are short for some. If both
/// days are given, either of them counts, as in Vixie cron.
///
/// Where clocks are set forward or back, it does what Vixie cron does:
///
/// | | one second, minute and hour, such as `30 2 * * *` | any other, such as `*/10 * * * *` |
/// |---|---|---|
/// | the time is left out in spring | it runs at the first moment after the gap | it goes on after the gap |
/// | the time comes twice in autumn | it runs the first time | it runs both times |
#[derive(Clone)]
pub struct Cron {
    expression: String,
    zone: String,
    parsed: Arc<(croner::Cron, TimeZone)>,
}

impl Cron {
    /// An expression in a zone of the [IANA](https://www.iana.org/time-zones), such as
    /// `Europe/Berlin` or `UTC`. The system's zones are used; a system that has none uses those
    /// that were built in.
    ///
    /// # Errors
    ///
    /// [`StoreError::Refused`], if the expression is wrong or has no time ever, or there is no such
    /// zone.
    pub fn new(expression: &str, zone: &str) -> Result<Self, StoreError> {
        let words: Vec<_> = expression.split_whitespace().collect();
        let expression = match &words[..] {
            ["@midnight"] => "@daily".to_owned(),
            _ => words.join(" "),
        };
        let wrong = |why: &dyn fmt::Display| {
            StoreError::refused(format_args!("{expression:?} is no cron expression: {why}"))
        };
        if expression.len() > EXPRESSION_MAX {
            return Err(wrong(&"it has 200 bytes at most"));
        }
        if words.iter().any(|field| has_empty_item(field)) {
            return Err(wrong(&"a list has an item without a value"));
        }
        if MACHINES_OWN
            .iter()
            .any(|own| own.eq_ignore_ascii_case(zone))
        {
            return Err(StoreError::refused(format_args!(
                "{zone:?} is another time zone on each machine"
            )));
        }
        let parser = CronParser::builder();
        let parser = parser.seconds(Seconds::Optional).year(Year::Disallowed);
        let parsed = parser.build().parse(&expression);
        let parsed = parsed.map_err(|error| wrong(&error))?;
        if zone.len() > ZONE_MAX || zone.contains(char::is_whitespace) {
            return Err(StoreError::refused("a time zone is a name of the IANA's"));
        }
        let found = TimeZone::get(zone);
        let found = found
            .map_err(|_| StoreError::refused(format_args!("there is no time zone {zone:?}")))?;
        let cron = Self {
            zone: zone.to_owned(),
            parsed: Arc::new((parsed, found)),
            expression,
        };
        match cron.after(SOME_DAY) {
            Some(_) => Ok(cron),
            None => Err(StoreError::refused(format_args!(
                "{:?} has no time ever",
                cron.expression
            ))),
        }
    }

    /// The expression, with one space from field to field.
    #[must_use]
    pub fn expression(&self) -> &str {
        &self.expression
    }

    /// The name of the zone.
    #[must_use]
    pub fn zone(&self) -> &str {
        &self.zone
    }

    /// Its first time after a point in time. `None` if there is none until the end of the year
    /// 9999.
    #[must_use]
    pub fn after(&self, at: Timestamp) -> Option<Timestamp> {
        let (cron, zone) = &*self.parsed;
        let mut from = at;
        for _ in 0..TRIES {
            let start = jiff::Timestamp::from_second((from.0 / 1_000_000).cast_signed()).ok()?;
            if let Ok(found) = cron.find_next_occurrence(&start.to_zoned(zone.clone()), false) {
                let seconds = u64::try_from(found.timestamp().as_second()).ok()?;
                let found = Timestamp(seconds.checked_mul(1_000_000)?);
                return (found > at && found <= LATEST).then_some(found);
            }
            from = from.plus(A_DAY);
        }
        None
    }
}

/// Returns whether a list lacks a value somewhere. croner takes it, and looks for its times for
/// ever if it has no value at all.
fn has_empty_item(field: &str) -> bool {
    field.split(',').any(str::is_empty)
}

/// Two are equal if their texts are.
impl PartialEq for Cron {
    fn eq(&self, other: &Self) -> bool {
        (&self.expression, &self.zone) == (&other.expression, &other.zone)
    }
}

impl Eq for Cron {}

impl fmt::Debug for Cron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Cron")
            .field(&self.expression)
            .field(&self.zone)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seconds of a time such as `2025-03-30T01:30:00Z`.
    fn at(text: &str) -> Timestamp {
        let at: jiff::Timestamp = text.parse().expect("a time");
        Timestamp(at.as_second() as u64 * 1_000_000)
    }

    /// The times of an expression from `from` on, in UTC, are these.
    fn is(expression: &str, zone: &str, from: &str, times: &[&str]) {
        let cron = Cron::new(expression, zone).expect("an expression");
        let mut now = at(from);
        for time in times {
            let next = cron.after(now).expect("a time");
            assert_eq!(
                next,
                at(time),
                "{expression} {zone} after {now}, not {time}"
            );
            now = next;
        }
    }

    #[test]
    fn a_fixed_time_that_is_left_out_in_spring_runs_right_after_the_gap() {
        // 01:00 UTC: 02:00 becomes 03:00.
        let days = [
            "2025-03-29T01:30:00Z",
            "2025-03-30T01:00:00Z",
            "2025-03-31T00:30:00Z",
        ];
        is("30 2 * * *", "Europe/Berlin", "2025-03-29T00:00:00Z", &days);
        // The hour after the gap is as usual.
        let days = [
            "2025-03-29T02:30:00Z",
            "2025-03-30T01:30:00Z",
            "2025-03-31T01:30:00Z",
        ];
        is("30 3 * * *", "Europe/Berlin", "2025-03-29T00:00:00Z", &days);
        // At midnight, in the north of America.
        let days = [
            "2025-03-08T05:00:00Z",
            "2025-03-09T05:00:00Z",
            "2025-03-10T04:00:00Z",
        ];
        is("0 0 * * *", "America/Havana", "2025-03-08T00:00:00Z", &days);
    }

    #[test]
    fn an_interval_goes_on_after_the_gap_in_spring() {
        let times = [
            "2025-03-30T00:30:00Z",
            "2025-03-30T01:00:00Z",
            "2025-03-30T01:30:00Z",
        ];
        is(
            "*/30 * * * *",
            "Europe/Berlin",
            "2025-03-30T00:00:00Z",
            &times,
        );
        // Each second hour: 02:00 is left out.
        let times = [
            "2025-03-29T23:00:00Z",
            "2025-03-30T02:00:00Z",
            "2025-03-30T04:00:00Z",
        ];
        is(
            "0 */2 * * *",
            "Europe/Berlin",
            "2025-03-29T22:00:00Z",
            &times,
        );
    }

    #[test]
    fn a_fixed_time_that_comes_twice_in_autumn_runs_the_first_time() {
        // 01:00 UTC: 03:00 becomes 02:00.
        let days = [
            "2025-10-25T00:30:00Z",
            "2025-10-26T00:30:00Z",
            "2025-10-27T01:30:00Z",
        ];
        is("30 2 * * *", "Europe/Berlin", "2025-10-25T00:00:00Z", &days);
        // Asked between the two, it does not run again.
        is(
            "30 2 * * *",
            "Europe/Berlin",
            "2025-10-26T00:45:00Z",
            &["2025-10-27T01:30:00Z"],
        );
        is(
            "30 2 * * *",
            "Europe/Berlin",
            "2025-10-26T01:15:00Z",
            &["2025-10-27T01:30:00Z"],
        );
    }

    #[test]
    fn an_interval_runs_in_both_hours_of_autumn() {
        let times = [
            "2025-10-26T00:30:00Z",
            "2025-10-26T01:00:00Z",
            "2025-10-26T01:30:00Z",
            "2025-10-26T02:00:00Z",
        ];
        is(
            "*/30 * * * *",
            "Europe/Berlin",
            "2025-10-26T00:00:00Z",
            &times,
        );
    }

    #[test]
    fn zones_may_differ_by_half_an_hour_and_less() {
        is(
            "0 9 * * *",
            "Asia/Kolkata",
            "2025-01-01T00:00:00Z",
            &["2025-01-01T03:30:00Z"],
        );
        is(
            "0 9 * * *",
            "Asia/Kathmandu",
            "2025-01-01T00:00:00Z",
            &["2025-01-01T03:15:00Z"],
        );
        // Lord Howe sets clocks by half an hour: 02:00 becomes 02:30.
        let days = [
            "2025-10-03T15:45:00Z",
            "2025-10-04T15:30:00Z",
            "2025-10-05T15:15:00Z",
        ];
        is(
            "15 2 * * *",
            "Australia/Lord_Howe",
            "2025-10-03T00:00:00Z",
            &days,
        );
    }

    #[test]
    fn months_end_and_leap_years_have_a_29th_of_february() {
        let ends = [
            "2025-01-31T00:00:00Z",
            "2025-03-31T00:00:00Z",
            "2025-05-31T00:00:00Z",
        ];
        is("0 0 31 * *", "UTC", "2025-01-01T00:00:00Z", &ends);
        let ends = [
            "2024-01-31T00:00:00Z",
            "2024-02-29T00:00:00Z",
            "2024-03-31T00:00:00Z",
        ];
        is("0 0 L * *", "UTC", "2024-01-01T00:00:00Z", &ends);
        let leaps = ["2028-02-29T12:00:00Z", "2032-02-29T12:00:00Z"];
        is("0 12 29 2 *", "UTC", "2025-01-01T00:00:00Z", &leaps);
        // 2100 is none.
        is(
            "0 12 29 2 *",
            "UTC",
            "2096-03-01T00:00:00Z",
            &["2104-02-29T12:00:00Z"],
        );
        // Either of the days, as in Vixie cron.
        let either = [
            "2025-08-13T00:00:00Z",
            "2025-08-15T00:00:00Z",
            "2025-08-22T00:00:00Z",
        ];
        is("0 0 13 * FRI", "UTC", "2025-08-09T00:00:00Z", &either);
        let days = ["2025-08-08T07:00:00Z", "2025-08-11T07:00:00Z"];
        is(
            "0 9 * * MON-FRI",
            "Europe/Berlin",
            "2025-08-08T06:59:59Z",
            &days,
        );
    }

    #[test]
    fn a_day_that_a_zone_left_out_does_not_end_the_rhythm() {
        // Samoa had no 30 December 2011.
        let cron = Cron::new("0 12 * * *", "Pacific/Apia").expect("an expression");
        let next = cron.after(at("2011-12-29T23:00:00Z")).expect("a time");
        assert!(next < at("2012-01-02T12:00:00Z"), "{next}");
    }

    #[test]
    fn what_is_wrong_is_said_when_it_is_made() {
        for expression in [
            "",
            "* * * *",
            "60 * * * *",
            "0 0 31 2 *",
            "x",
            "* * * * * * *",
            "0 9 * * MON-FRY",
            ", * * * *",
            "* , * * *",
            ",, * * * *",
            ", * * * * *",
            "1,,2 * * * *",
            "* * * * ,",
            &"1,".repeat(200),
        ] {
            let refused = Cron::new(expression, "UTC");
            assert!(
                matches!(refused, Err(StoreError::Refused(_))),
                "{expression}"
            );
        }
        for zone in [
            "",
            "Europe/Berlim",
            "../etc/passwd",
            "localtime",
            "a b",
            &"x".repeat(101),
        ] {
            assert!(Cron::new("* * * * *", zone).is_err(), "{zone}");
        }
        let error = Cron::new("0 9 * * *", "Europe/Berlim").expect_err("no zone");
        assert!(error.to_string().contains("Europe/Berlim"), "{error}");
    }

    #[test]
    fn seconds_and_short_names_are_taken() {
        is(
            "*/20 * * * * *",
            "UTC",
            "2025-01-01T00:00:05Z",
            &["2025-01-01T00:00:20Z"],
        );
        is(
            "@daily",
            "UTC",
            "2025-01-01T00:00:05Z",
            &["2025-01-02T00:00:00Z"],
        );
        let midnight = Cron::new("@midnight", "UTC").expect("an expression");
        assert_eq!(midnight.expression(), "@daily");
        let spaced = Cron::new("  0   9 * *\tMON ", "UTC").expect("an expression");
        assert_eq!(spaced.expression(), "0 9 * * MON");
        // Fractions of a second before its time.
        let before = Timestamp(at("2025-01-06T09:00:00Z").0 - 1);
        assert_eq!(spaced.after(before), Some(at("2025-01-06T09:00:00Z")));
        assert_eq!(spaced.after(LATEST), None);
    }
}
