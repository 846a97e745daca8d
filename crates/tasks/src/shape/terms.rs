//! What a task says beside its time, its payload and its priority; and how stores write that.
//!
//! The text has a line for each, `name=value`. A store keeps it beside the task, and none if there
//! is nothing to say. A period has a place of its own in each store, and a line only in a dead
//! letter. What a newer program has written, and this one cannot read, is kept as it is.

use std::time::Duration;

use tidewheel_scheduler::CatchUp;

use crate::shape::rhythm::Rhythm;
use crate::shape::timestamp::Timestamp;
use crate::shape::waits::Waits;

/// What a task says beside its time, its payload and its priority.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Terms {
    /// When it runs again, if it does.
    pub rhythm: Option<Rhythm>,
    /// What is done about runs of a period that were missed.
    pub catch_up: CatchUp,
    /// Its queue; empty for the default queue.
    pub queue: String,
    /// For how long its id is unique after it was scheduled, in whole milliseconds.
    pub unique_for: Option<Duration>,
    /// For how long the result of a run is kept, in whole milliseconds.
    pub keep_result: Option<Duration>,
    /// The tasks that it waits for.
    pub waits: Option<Waits>,
    /// The text that this program cannot read.
    unread: Option<Unread>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Unread {
    text: String,
    why: String,
}

impl Terms {
    /// Terms as a store has kept them, in a text that may be another version's: for tests.
    #[doc(hidden)]
    #[must_use]
    pub fn of_text(text: &str) -> Self {
        Self::read(None, Some(text))
    }

    /// Reads what a store has kept: a period, and a text.
    pub(crate) fn read(every: Option<Duration>, text: Option<&str>) -> Self {
        let mut terms = Self {
            rhythm: every.map(Rhythm::Every),
            ..Self::default()
        };
        let text = text.unwrap_or_default();
        let unread = text.lines().filter_map(|line| terms.read_line(line).err());
        let whys: Vec<_> = unread.collect();
        if !whys.is_empty() {
            let (text, why) = (text.to_owned(), whys.join(", "));
            terms.unread = Some(Unread { text, why });
        }
        terms
    }

    fn read_line(&mut self, line: &str) -> Result<(), String> {
        let (name, value) = line.split_once('=').unwrap_or((line, ""));
        match name {
            "queue" => {
                value.clone_into(&mut self.queue);
                Ok(())
            }
            "waits" | "needs" => {
                self.waits = Some(Waits::read(value, name == "needs"));
                Ok(())
            }
            "catch-up" => {
                self.catch_up = match value.split_once(' ') {
                    None if value == "delay" => CatchUp::Delay,
                    Some(("burst", most)) => {
                        CatchUp::Burst(most.parse().map_err(|_| format!("{line:?}"))?)
                    }
                    _ => return Err(format!("{line:?}")),
                };
                Ok(())
            }
            "every" | "unique" | "keep" => {
                let ms = value.parse().map_err(|_| format!("{line:?}"))?;
                let time = Duration::from_millis(ms);
                match name {
                    "every" => self.rhythm = Some(Rhythm::Every(time)),
                    "unique" => self.unique_for = Some(time),
                    _ => self.keep_result = Some(time),
                }
                Ok(())
            }
            #[cfg(feature = "cron")]
            "cron" => {
                let (zone, expression) = value.split_once(' ').unwrap_or((value, ""));
                let cron = crate::shape::cron::Cron::new(expression, zone);
                self.rhythm = Some(Rhythm::Cron(cron.map_err(|error| error.to_string())?));
                Ok(())
            }
            #[cfg(not(feature = "cron"))]
            "cron" => Err("the feature `cron` is not built in".to_owned()),
            _ => Err(format!("{line:?}")),
        }
    }

    /// The period, which stores keep beside the text.
    pub(crate) fn every(&self) -> Option<Duration> {
        match self.rhythm {
            Some(Rhythm::Every(period)) => Some(period),
            _ => None,
        }
    }

    /// The text, without a period; empty if there is nothing to say.
    #[cfg_attr(
        not(any(feature = "file", feature = "postgres", feature = "nats")),
        allow(dead_code)
    )]
    pub(crate) fn text(&self) -> String {
        if let Some(unread) = &self.unread {
            return unread.text.clone();
        }
        let queue = (!self.queue.is_empty()).then(|| format!("queue={}", self.queue));
        let rhythm = match &self.rhythm {
            #[cfg(feature = "cron")]
            Some(Rhythm::Cron(cron)) => Some(format!("cron={} {}", cron.zone(), cron.expression())),
            _ => None,
        };
        let catch_up = match self.catch_up {
            CatchUp::Burst(most) => Some(format!("catch-up=burst {most}")),
            CatchUp::Delay => Some("catch-up=delay".to_owned()),
            _ => None,
        };
        let ms =
            |name, time: Option<Duration>| time.map(|time| format!("{name}={}", time.as_millis()));
        let (unique, keep) = (ms("unique", self.unique_for), ms("keep", self.keep_result));
        let waits = self.waits.as_ref().map(Waits::line);
        let lines = [queue, unique, keep, waits, rhythm, catch_up];
        lines.into_iter().flatten().collect::<Vec<_>>().join("\n")
    }

    /// The next run after one that was due at `began`, if it is `now`. What cannot be read has
    /// none.
    pub(crate) fn next(&self, began: Timestamp, now: Timestamp) -> Option<Timestamp> {
        let rhythm = self.rhythm.as_ref().filter(|_| self.unread.is_none());
        rhythm?.next(began, now, self.catch_up)
    }

    /// True if a task with the others runs when this one does.
    pub(crate) fn is_as_often(&self, other: &Self) -> bool {
        (&self.rhythm, self.catch_up) == (&other.rhythm, other.catch_up)
    }

    /// What is wrong, if this program cannot read them.
    pub(crate) fn trouble(&self) -> Option<String> {
        let why = &self.unread.as_ref()?.why;
        Some(format!(
            "written by another version, and not readable: {why}"
        ))
    }

    /// The terms of a dead letter. A periodic task goes on by itself, so its letter runs once. One
    /// that cannot be read does not go on: its letter has all that was written.
    pub(crate) fn of_letter(&self) -> Self {
        let mut terms = self.clone();
        let every = terms.every();
        (terms.rhythm, terms.catch_up) = (None, CatchUp::Skip);
        if let (Some(unread), Some(period)) = (&mut terms.unread, every) {
            let ms = period.as_millis();
            unread.text = format!("every={ms}\n{}", unread.text);
        }
        terms
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_read_is_kept_as_it_is() {
        let period = Some(Duration::from_millis(400));
        let newer = "moon=full\ncolour=blue";
        let terms = Terms::read(period, Some(newer));
        assert_eq!((terms.every(), &*terms.text()), (period, newer));
        let trouble = terms.trouble().expect("trouble");
        assert!(trouble.contains("moon=full"), "{trouble}");
        let letter = terms.of_letter();
        let again = Terms::read(None, Some(&letter.text()));
        assert_eq!(again.every(), period);
        assert_eq!(again.text(), "every=400\nmoon=full\ncolour=blue");
        assert!(again.trouble().is_some());
        for wrong in ["every=x", "cron=UTC", "cron=Nowhere/Town * * * * *", "="] {
            assert!(
                Terms::read(None, Some(wrong)).trouble().is_some(),
                "{wrong}"
            );
        }
    }

    #[test]
    fn a_period_is_not_in_the_text_and_ends_with_a_letter() {
        let terms = Terms::read(Some(Duration::from_secs(1)), None);
        assert_eq!((&*terms.text(), terms.trouble()), ("", None));
        assert_eq!(terms.of_letter(), Terms::default());
    }

    #[test]
    fn what_is_done_about_missed_runs_is_a_line_and_ends_with_a_letter() {
        for text in ["catch-up=burst 7", "catch-up=delay"] {
            let terms = Terms::read(Some(Duration::from_secs(1)), Some(text));
            assert_eq!((&*terms.text(), terms.trouble()), (text, None));
            assert_eq!(terms.of_letter(), Terms::default());
        }
        for wrong in [
            "catch-up=",
            "catch-up=burst",
            "catch-up=burst x",
            "catch-up=skip 7",
        ] {
            let terms = Terms::read(None, Some(wrong));
            assert!(terms.trouble().is_some(), "{wrong}");
        }
    }

    #[test]
    fn a_queue_is_a_line_and_stays_with_a_letter() {
        let terms = Terms::read(Some(Duration::from_secs(1)), Some("queue=a = b"));
        assert_eq!((&*terms.queue, &*terms.text()), ("a = b", "queue=a = b"));
        assert_eq!(
            (&*terms.of_letter().queue, terms.trouble()),
            ("a = b", None)
        );
    }

    #[cfg(feature = "cron")]
    #[test]
    fn an_expression_comes_back_from_its_text() {
        let text = "queue=mails\nunique=7\nkeep=9\ncron=Europe/Berlin 0 9 * * MON-FRI";
        let terms = Terms::read(None, Some(text));
        assert_eq!((&*terms.text(), terms.trouble()), (text, None));
        assert!(
            matches!(&terms.rhythm, Some(Rhythm::Cron(cron)) if cron.zone() == "Europe/Berlin")
        );
    }
}
