//! `Backend` is the interface of an engine, as the tier needs it.

use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use crate::core::invalidation_stream::InvalidationStream;
use crate::core::names::Wire;
use crate::core::server::ServerId;

/// The future answer of an engine.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, EngineError>> + Send + 'a>>;

/// An engine has not answered.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum EngineError {
    /// The engine cannot be reached, or the connection broke.
    Away(String),
    /// The answer took too long.
    TimedOut,
    /// The engine was not asked: it has failed several times, and is left alone for a moment.
    LeftAlone,
    /// The engine answered with an error, which asking again does not change.
    Refused(String),
    /// The value cannot be stored: the codec cannot write it, or it has too many tags, or one that
    /// is too long. What was there before is removed.
    Unstorable(String),
}

impl EngineError {
    /// True if the error is about the engine rather than the question.
    pub(crate) fn is_outage(&self) -> bool {
        !matches!(self, Self::Refused(_) | Self::Unstorable(_))
    }
}

impl fmt::Display for EngineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Away(why) => write!(f, "the engine is away: {why}"),
            Self::TimedOut => f.write_str("the engine took too long"),
            Self::LeftAlone => f.write_str("the engine is left alone after failures"),
            Self::Refused(why) => write!(f, "the engine refused: {why}"),
            Self::Unstorable(why) => write!(f, "the value cannot be stored: {why}"),
        }
    }
}

impl Error for EngineError {}

/// A question for a value.
#[derive(Debug, Clone)]
pub struct Look {
    /// The key.
    pub key: Wire,
    /// The lease to take if there is no fresh value, and for how many milliseconds; `None`: only
    /// look.
    pub lease: Option<(u128, u32)>,
    /// The id of an envelope that counts as none: its tags were invalidated.
    pub invalid: Option<u128>,
}

/// The answer to a look.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Looked {
    /// The envelope, and how many milliseconds the engine keeps it.
    pub value: Option<(Vec<u8>, u64)>,
    /// The outcome of the request for the lease.
    pub lease: Lease,
    /// The server that has answered.
    pub server: Option<ServerId>,
}

/// The outcome of a fill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Filled {
    /// True if the lease was still this one, so that the value was stored.
    pub is_stored: bool,
    /// The server that has answered.
    pub server: Option<ServerId>,
}

/// The outcome of a request for a lease.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Lease {
    /// The lease was not needed.
    #[default]
    Unasked,
    /// The asker has it.
    Won,
    /// Somebody else has it, for at most so many milliseconds.
    Held(u64),
}

/// An engine's answer about a tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TagAnswer {
    /// Its version.
    pub version: u64,
    /// The time since it was invalidated, in milliseconds; `None` if that is not known to have
    /// happened.
    pub invalidated_ms: Option<u64>,
    /// The server that has answered.
    pub server: Option<ServerId>,
}

/// An answer that says who has given it.
pub(crate) trait Signed {
    fn server(&self) -> Option<ServerId>;
}

impl Signed for Looked {
    fn server(&self) -> Option<ServerId> {
        self.server
    }
}

impl Signed for Filled {
    fn server(&self) -> Option<ServerId> {
        self.server
    }
}

impl Signed for TagAnswer {
    fn server(&self) -> Option<ServerId> {
        self.server
    }
}

impl Signed for Option<ServerId> {
    fn server(&self) -> Option<ServerId> {
        *self
    }
}

/// An engine: it keeps values, grants leases, and tells of changes.
///
/// Each method is one atomic step of the engine's. There are the crate's own implementations; this
/// is public so that there may be others.
///
/// Answers name the server that has given them. The answer of another server than the stream was
/// told of with [`InvalidationStream::connected`] is not kept in the first tier; where one server
/// has everything, it counts as no answer.
pub trait Backend: Send + Sync + fmt::Debug + 'static {
    /// Begins to watch, and goes on until [`detach`](Self::detach). Called once for each first
    /// tier.
    fn attach(&self, stream: Arc<InvalidationStream>);

    /// Ends to watch.
    fn detach(&self, stream: &Arc<InvalidationStream>);

    /// The value of a key and what it has left, of one version. If there is no fresh one, the
    /// lease, if nobody has it. Fresh is what has more left than its envelope's two lengths
    /// together.
    fn look(&self, look: Look) -> Answer<'_, Looked>;

    /// Stores an envelope for so many milliseconds and ends the lease, if that is still this one.
    fn fill(&self, key: Wire, lease: u128, envelope: Vec<u8>, ttl_ms: u64) -> Answer<'_, Filled>;

    /// Stores an envelope, and ends any lease. Tells who has.
    fn put(&self, key: Wire, envelope: Vec<u8>, ttl_ms: u64) -> Answer<'_, Option<ServerId>>;

    /// Removes a value, and ends any lease. Tells who has.
    fn remove(&self, key: Wire) -> Answer<'_, Option<ServerId>>;

    /// Ends a lease, if it is still this one. Nobody waits for it.
    fn release(&self, key: Wire, lease: u128);

    /// The version of a tag, by its key; if it has none, this one, which it keeps for so many
    /// milliseconds.
    fn tag(&self, tag: Vec<u8>, version: u64, ttl_ms: u64) -> Answer<'_, TagAnswer>;

    /// Gives a tag this version, for so many milliseconds. Tells who has.
    fn invalidate_tag(
        &self,
        tag: Vec<u8>,
        version: u64,
        ttl_ms: u64,
    ) -> Answer<'_, Option<ServerId>>;

    /// Waits, by the engine's own timers.
    fn pause(&self, time: Duration) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}
