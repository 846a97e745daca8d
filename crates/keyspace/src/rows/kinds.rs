//! Enumerations of the rows: the data that a command adds, and its chapter in the documentation.

/// The data that a command adds. `maxmemory` is checked with it before the command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Adds {
    /// Its arguments, at most.
    Arguments,
    /// Its second argument, at the end of the string (APPEND).
    Tail,
    /// As many bytes as the string grows when the third argument is written at the offset that the
    /// second one is (SETRANGE).
    Range,
    /// As many bytes as the string grows when it gets the bit that the second argument names
    /// (SETBIT).
    Bit,
    /// As many bytes as the string grows when it gets the fields that may be written (BITFIELD).
    Fields,
    /// As many bytes as the longest value has of the second key and those behind it (BITOP).
    Longest,
    /// Its arguments and the registers of a HyperLogLog (PFADD).
    Registers,
    /// The value in the payload that its third argument is (RESTORE).
    Payload,
    /// As much as all of its keys hold together, and its arguments: a collection that is made of
    /// others.
    Sources,
    /// A copy of the value of its first argument, and its arguments (COPY).
    Copy,
}

/// The chapter of the documentation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "each is the chapter of its name")]
pub enum Group {
    Bitmap,
    Connection,
    Expiry,
    Generic,
    Geo,
    Hash,
    List,
    Set,
    SortedSet,
    HyperLogLog,
    PubSub,
    Scripting,
    Server,
    Stream,
    String,
    Transactions,
}

impl Group {
    /// The name that COMMAND DOCS and `COMMAND LIST FILTERBY` use.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Bitmap => "bitmap",
            Self::Connection => "connection",
            Self::Expiry => "expiry",
            Self::Generic => "generic",
            Self::Geo => "geo",
            Self::Hash => "hash",
            Self::List => "list",
            Self::Set => "set",
            Self::SortedSet => "sorted-set",
            Self::HyperLogLog => "hyperloglog",
            Self::PubSub => "pubsub",
            Self::Scripting => "scripting",
            Self::Server => "server",
            Self::Stream => "stream",
            Self::String => "string",
            Self::Transactions => "transactions",
        }
    }
}
