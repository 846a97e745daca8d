//! Why something failed: what the caller sees, and what Lua's functions raise.

use std::error::Error;
use std::fmt;

use mlua::Lua;

/// Why a script does not compile, or an engine does not start. It prints as the error line of a
/// reply, without `-`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptError {
    line: String,
}

impl ScriptError {
    /// An error whose reply is that line, without the `-` in front.
    pub fn new(line: impl Into<String>) -> Self {
        Self { line: line.into() }
    }

    /// The error line, without `-`: `ERR Error compiling script …`.
    pub fn line(&self) -> &str {
        &self.line
    }
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line)
    }
}

impl Error for ScriptError {}

/// What a function of ours raises. It passes through Lua as userdata, and becomes what a script may
/// see where it is caught.
#[derive(Clone, Debug)]
pub(crate) enum Raise {
    /// A text that says where.
    Text(Vec<u8>),
    /// A table with the field `err`.
    Reply(Vec<u8>),
    /// The run is over. Nothing catches this.
    Killed,
}

impl fmt::Display for Raise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) | Self::Reply(text) => f.write_str(&String::from_utf8_lossy(text)),
            Self::Killed => f.write_str("the script was ended"),
        }
    }
}

impl Error for Raise {}

impl Raise {
    /// What of ours is within an error.
    pub(crate) fn within(error: &mlua::Error) -> Option<&Self> {
        match error {
            mlua::Error::CallbackError { cause, .. } => Self::within(cause),
            mlua::Error::ExternalError(error) => error.downcast_ref(),
            _ => None,
        }
    }
}

impl From<Raise> for mlua::Error {
    fn from(raise: Raise) -> Self {
        Self::external(raise)
    }
}

/// An error with the place of the script that called the running function.
pub(crate) fn raise(lua: &Lua, text: impl AsRef<[u8]>) -> mlua::Error {
    let mut whole = place(lua, 1).map_or_else(Vec::new, |place| place.prefix().into_bytes());
    whole.extend_from_slice(text.as_ref());
    Raise::Text(whole).into()
}

/// The error of an argument, `place` from 1.
pub(crate) fn bad_argument(lua: &Lua, place: usize, name: &str, why: &str) -> mlua::Error {
    raise(lua, format!("bad argument #{place} to '{name}' ({why})"))
}

/// An error as `redis.call` raises it.
pub(crate) fn raise_reply(text: impl Into<Vec<u8>>) -> mlua::Error {
    Raise::Reply(text.into()).into()
}

/// A line of a script.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// As Lua names it: `@user_script`.
    pub(crate) source: String,
    /// As messages name it: `user_script`.
    pub(crate) short: String,
    /// From 1.
    pub(crate) line: Option<usize>,
}

impl Place {
    pub(crate) fn prefix(&self) -> String {
        match self.line {
            Some(line) => format!("{}:{line}: ", self.short),
            None => String::new(),
        }
    }
}

/// What the prelude's functions are called in messages.
pub(crate) const PRELUDE: &str = "prelude";

/// Frames above the running one that are looked at: those of the prelude are few.
const FRAMES_MAX: usize = 8;

/// The innermost frame that is Lua's, and not the prelude's, from `level` up.
pub(crate) fn place(lua: &Lua, level: usize) -> Option<Place> {
    (level..level + FRAMES_MAX)
        .map_while(|level| {
            lua.inspect_stack(level, |frame| {
                let source = frame.source();
                let is_prelude = source.short_src.as_deref() == Some(PRELUDE);
                let is_lua = !matches!(source.what, "C" | "tail") && !is_prelude;
                is_lua.then(|| Place {
                    source: source.source.unwrap_or_default().into_owned(),
                    short: source.short_src.unwrap_or_default().into_owned(),
                    line: frame.current_line(),
                })
            })
        })
        .flatten()
        .next()
}
