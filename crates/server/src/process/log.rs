//! The log that people read: lines of text or JSON, to standard error or a file.
//!
//! A line is written as a whole, by whoever logs it. If that fails, as on a full disk, or nobody
//! reads standard error, the line is lost and the server goes on. Somebody may move the file away:
//! then it takes the lines until [`reopen`] makes a new one.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, IsTerminal as _, Write};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Registry, fmt, reload};

use super::standard_error;
use crate::config::{LogFormat, LogLevel, LogSettings, open_to_append};

/// The log of this process, once it has begun.
static LOG: OnceLock<Log> = OnceLock::new();

#[derive(Debug)]
struct Log {
    level: reload::Handle<LevelFilter, Registry>,
    place: Place,
}

/// Where lines go.
#[derive(Debug, Clone)]
enum Place {
    StandardError,
    File(Arc<LogFile>),
}

#[derive(Debug)]
struct LogFile {
    path: PathBuf,
    file: Mutex<File>,
}

/// Starts logging.
///
/// # Errors
///
/// If its file cannot be opened.
pub(crate) fn start(settings: &LogSettings) -> io::Result<()> {
    let place = match settings.file.as_str() {
        "" => Place::StandardError,
        path => Place::File(Arc::new(LogFile {
            path: path.into(),
            file: Mutex::new(open_to_append(path.as_ref())?),
        })),
    };
    let coloured = matches!(place, Place::StandardError) && io::stderr().is_terminal();
    let lines = fmt::layer()
        .with_writer(place.clone())
        .with_ansi(coloured)
        .with_target(false)
        // What cannot be logged would be told to standard error, too: that panics if nobody reads
        // it.
        .log_internal_errors(false);
    let lines = match settings.format {
        LogFormat::Text => lines.boxed(),
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
    };
    let (filter, level) = reload::Layer::new(filter(settings.level));
    let started = tracing_subscriber::registry().with(filter).with(lines);
    if let Err(why) = started.try_init() {
        drop(writeln!(io::stderr(), "tidewheel: no log: {why}"));
        return Ok(());
    }
    // Only the first log of a process begins.
    let _ = LOG.set(Log { level, place });
    Ok(())
}

/// Logs what is of this level from now on. Without a log it does nothing.
pub(crate) fn set_level(level: LogLevel) {
    if let Some(log) = LOG.get()
        && let Err(why) = log.level.modify(|filter_now| *filter_now = filter(level))
    {
        tracing::error!(%why, "the log keeps its level");
    }
}

/// Opens the log's file again, which somebody has moved away.
#[cfg(unix)]
pub(crate) fn reopen() {
    let Some(LogFile { path, file }) = LOG.get().and_then(Log::file) else {
        tracing::info!("there is no file of the log to open again (--logfile)");
        return;
    };
    match open_to_append(path) {
        Ok(new) => {
            *file.lock() = new;
            tracing::info!(path = %path.display(), "opened the log's file again");
        }
        Err(why) => {
            tracing::error!(path = %path.display(), %why, "the log stays in its old file");
        }
    }
}

/// True if lines go to a file.
pub(crate) fn is_in_a_file() -> bool {
    LOG.get().and_then(Log::file).is_some()
}

impl Log {
    fn file(&self) -> Option<&LogFile> {
        match &self.place {
            Place::StandardError => None,
            Place::File(file) => Some(file),
        }
    }
}

fn filter(level: LogLevel) -> LevelFilter {
    match level {
        LogLevel::Debug => LevelFilter::TRACE,
        LogLevel::Verbose => LevelFilter::DEBUG,
        LogLevel::Notice => LevelFilter::INFO,
        LogLevel::Warning => LevelFilter::WARN,
        LogLevel::Nothing => LevelFilter::OFF,
    }
}

/// The writer of each line.
impl MakeWriter<'_> for Place {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

impl Write for Place {
    /// Writes a line, as a whole.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let whole = in_one_line(line);
        match self {
            Self::StandardError => standard_error::write(&whole)?,
            Self::File(file) => file.file.lock().write_all(&whole)?,
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns a line without line breaks but for the last: what clients say is in some lines, and must
/// not look like others.
fn in_one_line(line: &[u8]) -> Cow<'_, [u8]> {
    let text = line.strip_suffix(b"\n").unwrap_or(line);
    let is_break = |letter: &u8| matches!(letter, b'\n' | b'\r');
    if !text.iter().any(is_break) {
        return Cow::Borrowed(line);
    }
    let mut whole = Vec::with_capacity(line.len() + 16);
    for letter in text {
        match letter {
            b'\n' => whole.extend_from_slice(b"\\n"),
            b'\r' => whole.extend_from_slice(b"\\r"),
            letter => whole.push(*letter),
        }
    }
    whole.push(b'\n');
    Cow::Owned(whole)
}
