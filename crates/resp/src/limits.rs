//! Limits on the memory that a client may make the parser hold.

/// Caps on one command. They are checked when a length is announced, before its body arrives.
///
/// Start from [`Limits::DEFAULT`] and override: `Limits { bulk: 1 << 20, ..Limits::DEFAULT }`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most arguments in one command, its name included.
    pub args: usize,
    /// The longest argument, in bytes (`proto-max-bulk-len`).
    pub bulk: usize,
    /// The longest inline command or length line, in bytes without its line end.
    pub inline: usize,
    /// True if exceeding `args` or `bulk` is reported as the fault of a client that has not
    /// authenticated yet.
    pub unauthenticated: bool,
}

impl Limits {
    /// For clients that may run commands.
    pub const DEFAULT: Self = Self {
        args: 1 << 20,
        bulk: 512 << 20,
        inline: 64 << 10,
        unauthenticated: false,
    };

    /// For clients that must authenticate first: enough for AUTH and HELLO, not for an attack on
    /// memory.
    pub const UNAUTHENTICATED: Self = Self {
        args: 10,
        bulk: 16 << 10,
        inline: 16 << 10,
        unauthenticated: true,
    };
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}
