//! What is known of a server.

use std::collections::VecDeque;
use std::time::Duration;

use super::questions::{Costly, News};
use super::reading::{Answer, Commands, Forecast, Info, Prefix, Slow};

/// For how long readings are kept, to say what a minute has brought.
const KEPT_US: f64 = 60e6;

/// The most readings that are kept.
const KEPT_MAX: usize = 600;

/// All answers so far. What was not answered yet is `None`.
#[derive(Debug, Default)]
pub(super) struct Board {
    pub(super) numbers: Option<Answer<Info>>,
    /// Readings of the minute before, the oldest first.
    past: VecDeque<Info>,
    pub(super) forecast: Option<Answer<Forecast>>,
    pub(super) prefixes: Option<Answer<Vec<Prefix>>>,
    pub(super) prefixes_every: Duration,
    pub(super) forecast_every: Duration,
    pub(super) slow: Option<Answer<Vec<Slow>>>,
    pub(super) commands: Option<Answer<Commands>>,
    /// The reading before that.
    pub(super) commands_before: Option<Commands>,
    /// When the server has answered last.
    pub(super) answered: Option<Duration>,
    /// Why it does not answer now.
    pub(super) trouble: Option<String>,
}

impl Board {
    /// Takes what came.
    pub(super) fn take(&mut self, news: News, now: Duration) {
        match news {
            News::Lost(why) | News::Denied(why) => {
                self.trouble = Some(why);
                return;
            }
            News::Numbers(answer) => {
                if let Some(Ok(before)) = self.numbers.replace(answer) {
                    self.keep(before);
                }
            }
            News::Forecast(answer) => self.forecast = Some(answer),
            News::Prefixes(answer) => self.prefixes = Some(answer),
            News::Every(Costly::Forecast, time) => self.forecast_every = time,
            News::Every(Costly::Prefixes, time) => self.prefixes_every = time,
            News::Slow(answer) => self.slow = Some(answer),
            News::Commands(answer) => {
                if let Some(Ok(before)) = self.commands.replace(answer) {
                    self.commands_before = Some(before);
                }
            }
        }
        self.answered = Some(now);
        self.trouble = None;
    }

    /// Keeps a reading that is no longer the newest.
    fn keep(&mut self, before: Info) {
        self.past.push_back(before);
        let Some(Ok(newest)) = &self.numbers else {
            return;
        };
        // Another process: its counters begin anew.
        let lives_on = |of: &Info| newest.grown(of, "uptime_in_seconds").is_some();
        if !self.past.back().is_some_and(lives_on) {
            self.past.clear();
            self.commands_before = None;
        }
        let is_old = |of: &Info| {
            newest
                .grown(of, "server_time_usec")
                .is_none_or(|us| us > KEPT_US)
        };
        while self.past.len() > KEPT_MAX || self.past.front().is_some_and(is_old) {
            self.past.pop_front();
        }
    }

    /// The newest numbers, if there are any.
    pub(super) fn newest(&self) -> Option<&Info> {
        self.numbers.as_ref()?.as_ref().ok()
    }

    /// Those before them.
    pub(super) fn before(&self) -> Option<&Info> {
        self.past.back()
    }

    /// The oldest of the last minute.
    pub(super) fn minute_ago(&self) -> Option<&Info> {
        self.past.front()
    }
}
