//! The settings of the log that people read: what is told, where and in which form.

/// What the keys about the log set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogSettings {
    pub(crate) level: LogLevel,
    /// The path of its file; empty: standard error.
    pub(crate) file: String,
    pub(crate) format: LogFormat,
}

impl Default for LogSettings {
    fn default() -> Self {
        Self {
            level: LogLevel::Notice,
            file: String::new(),
            format: LogFormat::Text,
        }
    }
}

/// Log levels, by the names that operators of Redis know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogLevel {
    Debug,
    Verbose,
    Notice,
    Warning,
    Nothing,
}

/// The form of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// An object for programs.
    Json,
}
