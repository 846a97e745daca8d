//! What a row of the command table says.

use std::borrow::Cow;

use tidewheel_resp::{Args, Writer};

use crate::context::Context;

/// One command or subcommand: its shape, its documentation and who runs it.
///
/// COMMAND, its documentation, key extraction, arity checks and dispatch all follow from these rows.
#[derive(Debug)]
pub struct Command {
    /// Lower-case full name; a subcommand's is `parent|name`.
    pub name: &'static str,
    /// One sentence.
    pub summary: &'static str,
    /// The protocol version that introduced it.
    pub since: &'static str,
    /// The documentation's chapter.
    pub group: Group,
    /// Its cost, in words.
    pub complexity: &'static str,
    /// Number of arguments, name included; `-n` means at least `n`.
    pub arity: i32,
    /// What it does and where it may run.
    pub flags: Flags,
    /// Access-control categories beyond those that follow from the flags.
    pub categories: &'static [&'static str],
    /// Hints for clients that split requests over servers.
    pub tips: &'static [&'static str],
    /// Where the keys are among the arguments.
    pub keys: KeySpec,
    /// The argument that is stored as it is (the one after each key, if there are many keys); 0 if none.
    /// Large ones are copied before a lock is taken.
    pub(crate) stored_argument: u32,
    /// Syntax.
    pub arguments: &'static [Argument],
    /// What later versions added: (version, change).
    pub history: &'static [(&'static str, &'static str)],
    /// The command that took its place: (version, command).
    pub replaced_by: Option<(&'static str, &'static str)>,
    /// Its subcommands; a row that has some is never run itself.
    pub subcommands: &'static [Self],
    /// Who runs it.
    pub handler: Handler,
}

impl Command {
    /// The row that others are written as differences from.
    pub(crate) const BASE: Self = Self {
        name: "",
        summary: "",
        since: "1.0.0",
        group: Group::Generic,
        complexity: "O(1)",
        arity: 1,
        flags: Flags::NONE,
        categories: &[],
        tips: &[],
        keys: KeySpec::NONE,
        stored_argument: 0,
        arguments: &[],
        history: &[],
        replaced_by: None,
        subcommands: &[],
        handler: Handler::Container,
    };

    /// Whether a call with `n_args` arguments (name included) has an acceptable number of them.
    #[must_use]
    pub fn check_arity(&self, n_args: usize) -> bool {
        let least = self.arity.unsigned_abs() as usize;
        if self.arity >= 0 {
            n_args == least
        } else {
            n_args >= least
        }
    }

    /// The subcommand of that name (case-insensitive), without its parent's name.
    #[must_use]
    pub fn subcommand(&self, name: &[u8]) -> Option<&'static Self> {
        self.subcommands
            .iter()
            .find(|sub| sub.short_name().as_bytes().eq_ignore_ascii_case(name))
    }

    /// The name without the parent's.
    #[must_use]
    pub fn short_name(&self) -> &'static str {
        self.name
            .split_once('|')
            .map_or(self.name, |(_, short)| short)
    }
}

/// Who runs a command.
#[derive(Debug, Clone, Copy)]
pub enum Handler {
    /// The keyspace.
    Keys(HandlerFn),
    /// The server that owns connections and configuration.
    Host(Host),
    /// Nobody: the row only holds subcommands.
    Container,
}

/// A keyspace command's body. It runs with its keys' shards locked.
pub type HandlerFn = fn(&mut Context<'_, '_>) -> Result<(), CommandError>;

/// The commands that the server runs itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "each is the command of its name")]
pub enum Host {
    Auth,
    ClientGetName,
    ClientHelp,
    ClientId,
    ClientInfo,
    ClientKill,
    ClientList,
    ClientNoEvict,
    ClientNoTouch,
    ClientPause,
    ClientReply,
    ClientSetInfo,
    ClientSetName,
    ClientUnpause,
    ConfigGet,
    ConfigHelp,
    ConfigResetStat,
    ConfigSet,
    DebugHelp,
    DebugSetActiveExpire,
    DebugSleep,
    Echo,
    FunctionFlush,
    FunctionHelp,
    Hello,
    Info,
    Ping,
    PSubscribe,
    PUnsubscribe,
    Publish,
    PubSubChannels,
    PubSubHelp,
    PubSubNumPat,
    PubSubNumSub,
    Quit,
    Reset,
    Shutdown,
    Subscribe,
    Unsubscribe,
}

/// The chapter of the documentation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "each is the chapter of its name")]
pub enum Group {
    Connection,
    Expiry,
    Generic,
    PubSub,
    Scripting,
    Server,
    String,
}

impl Group {
    /// The name that COMMAND DOCS and `COMMAND LIST FILTERBY` use.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Connection => "connection",
            Self::Expiry => "expiry",
            Self::Generic => "generic",
            Self::PubSub => "pubsub",
            Self::Scripting => "scripting",
            Self::Server => "server",
            Self::String => "string",
        }
    }
}

/// What a command does and where it may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Flags(u32);

impl Flags {
    /// None.
    pub const NONE: Self = Self(0);
    /// Changes data.
    pub const WRITE: Self = Self(1);
    /// Reads data only.
    pub const READONLY: Self = Self(1 << 1);
    /// Refused while more than `maxmemory` is used.
    pub const DENYOOM: Self = Self(1 << 2);
    /// Administers the server.
    pub const ADMIN: Self = Self(1 << 3);
    /// Publish and subscribe.
    pub const PUBSUB: Self = Self(1 << 4);
    /// Not for scripts.
    pub const NOSCRIPT: Self = Self(1 << 5);
    /// Allowed while a data set is being loaded.
    pub const LOADING: Self = Self(1 << 6);
    /// Allowed on a replica with stale data.
    pub const STALE: Self = Self(1 << 7);
    /// Cost independent of the data's size.
    pub const FAST: Self = Self(1 << 8);
    /// Allowed before authentication.
    pub const NO_AUTH: Self = Self(1 << 9);
    /// Not for transactions.
    pub const NO_MULTI: Self = Self(1 << 10);
    /// Allowed while the server is busy with a script.
    pub const ALLOW_BUSY: Self = Self(1 << 11);
    /// Never shown to MONITOR.
    pub const SKIP_MONITOR: Self = Self(1 << 12);

    const NAMES: [(Self, &'static str); 13] = [
        (Self::WRITE, "write"),
        (Self::READONLY, "readonly"),
        (Self::DENYOOM, "denyoom"),
        (Self::ADMIN, "admin"),
        (Self::PUBSUB, "pubsub"),
        (Self::NOSCRIPT, "noscript"),
        (Self::LOADING, "loading"),
        (Self::STALE, "stale"),
        (Self::SKIP_MONITOR, "skip_monitor"),
        (Self::FAST, "fast"),
        (Self::NO_AUTH, "no_auth"),
        (Self::NO_MULTI, "no_multi"),
        (Self::ALLOW_BUSY, "allow_busy"),
    ];

    /// The flags of both.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether all of `other`'s flags are set.
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The names of those that are set, as COMMAND INFO prints them.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        Self::NAMES
            .into_iter()
            .filter(move |(flag, _)| self.has(*flag))
            .map(|(_, name)| name)
    }
}

/// Where the keys are: from argument `first` to `last` in steps of `step`; all zero without keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeySpec {
    /// The first key's position.
    pub first: u32,
    /// The last key's position; a negative one counts from the end (−1 is the last argument).
    pub last: i32,
    /// The distance between keys.
    pub step: u32,
    /// What is done to them: one for all keys, or one for each.
    pub uses: &'static [KeyUse],
}

impl KeySpec {
    /// No keys.
    pub const NONE: Self = Self {
        first: 0,
        last: 0,
        step: 0,
        uses: &[],
    };

    /// One key.
    pub(crate) const fn one(position: u32, uses: &'static [KeyUse]) -> Self {
        Self {
            first: position,
            last: position as i32,
            step: 1,
            uses,
        }
    }

    /// All arguments from the first to the end, in steps.
    pub(crate) const fn all(step: u32, uses: &'static [KeyUse]) -> Self {
        Self {
            first: 1,
            last: -1,
            step,
            uses,
        }
    }

    /// Two keys.
    pub(crate) const fn two(uses: &'static [KeyUse]) -> Self {
        Self {
            first: 1,
            last: 2,
            step: 1,
            uses,
        }
    }

    /// The positions of the keys in a call with `n_args` arguments.
    pub fn positions(&self, n_args: usize) -> impl Iterator<Item = usize> + use<> {
        let end = if self.step == 0 {
            0
        } else if self.last < 0 {
            (n_args + 1).saturating_sub(self.last.unsigned_abs() as usize)
        } else {
            (self.last as usize + 1).min(n_args)
        };
        (self.first as usize..end).step_by(self.step.max(1) as usize)
    }
}

/// What a command does with a key, in COMMAND INFO's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyUse {
    /// Flags: RO, RW, OW or RM, then access, update, insert or delete.
    pub flags: &'static [&'static str],
}

/// One element of a command's syntax.
#[derive(Debug, Clone, Copy)]
pub struct Argument {
    /// Its name.
    pub name: &'static str,
    /// What it is.
    pub kind: ArgumentKind,
    /// The literal word before it, or instead of it for a pure token.
    pub token: Option<&'static str>,
    /// Which key specification it belongs to.
    pub key_spec: Option<u32>,
    /// The version that introduced it, if later than the command.
    pub since: Option<&'static str>,
    /// Whether it may be left out.
    pub optional: bool,
    /// Whether it may be repeated.
    pub multiple: bool,
    /// Its alternatives (`OneOf`) or its parts (`Block`).
    pub parts: &'static [Self],
}

/// What an argument is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is the protocol's type of its name")]
pub enum ArgumentKind {
    Block,
    Double,
    Integer,
    Key,
    OneOf,
    Pattern,
    PureToken,
    String,
    UnixTime,
}

impl ArgumentKind {
    /// The name that COMMAND DOCS uses.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Block => "block",
            Self::Double => "double",
            Self::Integer => "integer",
            Self::Key => "key",
            Self::OneOf => "oneof",
            Self::Pattern => "pattern",
            Self::PureToken => "pure-token",
            Self::String => "string",
            Self::UnixTime => "unix-time",
        }
    }
}

impl Argument {
    const fn new(name: &'static str, kind: ArgumentKind) -> Self {
        Self {
            name,
            kind,
            token: None,
            key_spec: None,
            since: None,
            optional: false,
            multiple: false,
            parts: &[],
        }
    }

    /// A key of key specification 0.
    pub(crate) const fn key(name: &'static str) -> Self {
        Self::key_of(name, 0)
    }

    /// A key of that key specification.
    pub(crate) const fn key_of(name: &'static str, spec: u32) -> Self {
        Self {
            key_spec: Some(spec),
            ..Self::new(name, ArgumentKind::Key)
        }
    }

    /// Any bytes.
    pub(crate) const fn string(name: &'static str) -> Self {
        Self::new(name, ArgumentKind::String)
    }

    /// An integer.
    pub(crate) const fn integer(name: &'static str) -> Self {
        Self::new(name, ArgumentKind::Integer)
    }

    /// A floating-point number.
    pub(crate) const fn double(name: &'static str) -> Self {
        Self::new(name, ArgumentKind::Double)
    }

    /// A glob-style pattern.
    pub(crate) const fn pattern(name: &'static str) -> Self {
        Self::new(name, ArgumentKind::Pattern)
    }

    /// A point in time.
    pub(crate) const fn unix_time(name: &'static str) -> Self {
        Self::new(name, ArgumentKind::UnixTime)
    }

    /// A literal word.
    pub(crate) const fn word(name: &'static str, token: &'static str) -> Self {
        Self {
            token: Some(token),
            ..Self::new(name, ArgumentKind::PureToken)
        }
    }

    /// One of several.
    pub(crate) const fn one_of(name: &'static str, parts: &'static [Self]) -> Self {
        Self {
            parts,
            ..Self::new(name, ArgumentKind::OneOf)
        }
    }

    /// Several in a row.
    pub(crate) const fn block(name: &'static str, parts: &'static [Self]) -> Self {
        Self {
            parts,
            ..Self::new(name, ArgumentKind::Block)
        }
    }

    /// Preceded by a literal word.
    pub(crate) const fn after(self, token: &'static str) -> Self {
        Self {
            token: Some(token),
            ..self
        }
    }

    /// May be left out.
    pub(crate) const fn optional(self) -> Self {
        Self {
            optional: true,
            ..self
        }
    }

    /// May be repeated.
    pub(crate) const fn multiple(self) -> Self {
        Self {
            multiple: true,
            ..self
        }
    }

    /// Came later than its command.
    pub(crate) const fn since(self, version: &'static str) -> Self {
        Self {
            since: Some(version),
            ..self
        }
    }
}

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
    pub fn wrong_arity(row: &Command) -> Self {
        Self::quoting(format!(
            "ERR wrong number of arguments for '{}' command",
            row.name
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

/// The most bytes of a name or of all arguments that an error quotes.
const QUOTE_MAX: usize = 128;

/// Finds the row that a call means, subcommands included, and checks its number of arguments.
///
/// # Errors
/// The exact reply for an unknown command or subcommand, or a wrong number of arguments.
pub fn resolve(args: Args<'_>) -> Result<&'static Command, CommandError> {
    let Some(row) = args.get(0).and_then(crate::table::lookup) else {
        return Err(unknown_command(args));
    };
    let row = match (row.subcommands, args.get(1)) {
        ([], _) | (_, None) => row,
        (_, Some(name)) => row
            .subcommand(name)
            .ok_or_else(|| unknown_subcommand(row, name))?,
    };
    if row.check_arity(args.len()) {
        Ok(row)
    } else {
        Err(CommandError::wrong_arity(row))
    }
}

#[cold]
fn unknown_command(args: Args<'_>) -> CommandError {
    let name = args.get(0).unwrap_or_default();
    let mut quoted = String::new();
    for arg in args.iter().skip(1) {
        if quoted.len() >= QUOTE_MAX {
            break;
        }
        let room = QUOTE_MAX - quoted.len();
        let shown = String::from_utf8_lossy(&arg[..arg.len().min(room)]);
        quoted.push('\'');
        quoted.push_str(&shown);
        quoted.push_str("' ");
    }
    CommandError::quoting(format!(
        "ERR unknown command '{}', with args beginning with: {quoted}",
        String::from_utf8_lossy(&name[..name.len().min(QUOTE_MAX)]),
    ))
}

#[cold]
fn unknown_subcommand(row: &Command, name: &[u8]) -> CommandError {
    CommandError::quoting(format!(
        "ERR unknown subcommand '{}'. Try {} HELP.",
        String::from_utf8_lossy(&name[..name.len().min(QUOTE_MAX)]),
        row.name.to_ascii_uppercase(),
    ))
}
