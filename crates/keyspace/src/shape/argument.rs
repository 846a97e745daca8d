//! A command's syntax, as data.

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
