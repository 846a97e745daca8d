//! The bar that shows on a terminal what an experiment is doing.

use std::borrow::Cow;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Drawing more often would take processor time from what is measured.
const DRAWS_PER_SECOND: u8 = 5;

/// One bar, reused for every phase of an experiment. Off a terminal it draws nothing.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
    title: String,
}

impl Progress {
    pub(crate) fn new() -> Self {
        let target = ProgressDrawTarget::stderr_with_hz(DRAWS_PER_SECOND);
        let bar = ProgressBar::with_draw_target(Some(1), target);
        let style = ProgressStyle::with_template("{msg:44} {bar:30} {percent:>3} % {elapsed}")
            .unwrap_or_else(|_| ProgressStyle::default_bar());
        bar.set_style(style);
        Self {
            bar,
            title: String::new(),
        }
    }

    /// What stands before every phase, such as the server's name.
    pub(crate) fn set_title(&mut self, title: impl Into<String>) {
        self.title = title.into();
    }

    /// Begins a phase of `length` steps.
    pub(crate) fn phase(&self, name: impl Into<Cow<'static, str>>, length: u64) {
        let name = name.into();
        let message = if self.title.is_empty() {
            name
        } else {
            format!("{}: {name}", self.title).into()
        };
        self.bar.set_length(length.max(1));
        self.bar.set_position(0);
        self.bar.set_message(message);
    }

    pub(crate) fn set(&self, position: u64) {
        self.bar.set_position(position);
    }

    /// Step `number` of `count`, with about `left_s` seconds to go; a line where there is no terminal.
    pub(crate) fn step(&self, name: &str, number: usize, count: usize, left_s: f64) {
        let left = match left_s {
            s if s < 90.0 => format!("{s:.0} s"),
            s => format!("{:.0} min", s / 60.0),
        };
        let message = format!("{name} · about {left} left");
        if self.bar.is_hidden() {
            eprintln!("[{}/{count}] {message}", number + 1);
            return;
        }
        self.bar.set_length(count as u64);
        self.bar.set_position(number as u64);
        self.bar.set_message(message);
    }

    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}
