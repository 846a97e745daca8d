//! Log lines to standard error.

use std::io::Write as _;

use tracing::level_filters::LevelFilter;

use crate::config::LogLevel;

/// Starts logging at `level`.
pub(crate) fn start(level: LogLevel) {
    let filter = match level {
        LogLevel::Debug => LevelFilter::TRACE,
        LogLevel::Verbose => LevelFilter::DEBUG,
        LogLevel::Notice => LevelFilter::INFO,
        LogLevel::Warning => LevelFilter::WARN,
        LogLevel::Nothing => LevelFilter::OFF,
    };
    let started = tracing_subscriber::fmt()
        .with_max_level(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
        .with_target(false)
        // What cannot be logged would be told to standard error, too: that panics if nobody reads
        // it.
        .log_internal_errors(false)
        .try_init();
    if let Err(why) = started {
        drop(writeln!(std::io::stderr(), "tidewheel: no log: {why}"));
    }
}
