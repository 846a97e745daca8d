//! Error replies.

use std::borrow::Cow;

use tidewheel_resp::Writer;

/// An error reply: its full text, error code first, without the leading `-`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandError(Cow<'static, str>);

impl CommandError {
    /// Options that do not fit together, or an unknown one.
    pub const SYNTAX: Self = Self::fixed("ERR syntax error");
    /// Not a signed 64-bit integer.
    pub const NOT_AN_INTEGER: Self = Self::fixed("ERR value is not an integer or out of range");
    /// Not a finite number.
    pub const NOT_A_FLOAT: Self = Self::fixed("ERR value is not a valid float");
    /// An operation against a key of another type.
    pub const WRONG_TYPE: Self =
        Self::fixed("WRONGTYPE Operation against a key holding the wrong kind of value");
    /// The key must exist and does not.
    pub const NO_SUCH_KEY: Self = Self::fixed("ERR no such key");
    /// More than `maxmemory` is used and nothing may be evicted.
    pub const OUT_OF_MEMORY: Self =
        Self::fixed("OOM command not allowed when used memory > 'maxmemory'.");
    /// No such database.
    pub const DB_OUT_OF_RANGE: Self = Self::fixed("ERR DB index is out of range");
    /// DEBUG is not for this client.
    pub const DEBUG_REFUSED: Self = Self::fixed(
        "ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", you can run it from a \
         local connection, otherwise you need to set this option in the configuration file, and then restart the \
         server.",
    );
    /// Shards that the command needs are locked for long: it runs again later. No client sees this.
    pub(crate) const BLOCKED: Self = Self::fixed("ERR the keys are in use");
    /// The row is one that the server runs.
    pub const NOT_HERE: Self = Self::fixed("ERR this command is not available here");

    /// A text that is known when compiling.
    #[must_use]
    pub const fn fixed(text: &'static str) -> Self {
        Self(Cow::Borrowed(text))
    }

    /// A text that quotes the call.
    #[must_use]
    pub fn quoting(text: String) -> Self {
        Self(Cow::Owned(text))
    }

    /// `wrong number of arguments for '…' command`.
    #[must_use]
    pub fn wrong_arity(name: &str) -> Self {
        Self::quoting(format!(
            "ERR wrong number of arguments for '{name}' command"
        ))
    }

    /// The full text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Writes it as an error reply.
    pub fn write(&self, out: &mut Writer) {
        out.error(&self.0);
    }
}

impl std::fmt::Display for CommandError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for CommandError {}
