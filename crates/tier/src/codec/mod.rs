//! Codecs turn keys and values into bytes.

mod key;
mod pack;
mod raw;
#[cfg(any(feature = "postcard", feature = "json"))]
mod serde;

use std::error::Error;

#[cfg(feature = "json")]
pub use self::serde::Json;
#[cfg(feature = "postcard")]
pub use self::serde::Postcard;
pub use key::TierKey;
pub(crate) use pack::{pack, unpack};
pub use raw::Raw;

/// A value could not be written or read.
pub type CodecError = Box<dyn Error + Send + Sync>;

/// Writes values for the engine, and reads them back.
///
/// All programs that share a namespace must use the same one. What cannot be read counts as not
/// there, and is loaded again.
pub trait Codec<V>: Send + Sync + 'static {
    /// Appends a value.
    ///
    /// # Errors
    ///
    /// If the value cannot be written: then it is stored nowhere. A load's value is for those who
    /// wait, and `insert` returns an error.
    fn write(&self, value: &V, out: &mut Vec<u8>) -> Result<(), CodecError>;

    /// Reads a value from all of the bytes.
    ///
    /// # Errors
    ///
    /// If the bytes are none.
    fn read(&self, bytes: &[u8]) -> Result<V, CodecError>;
}
