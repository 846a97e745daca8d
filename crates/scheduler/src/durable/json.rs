//! `Json` writes payloads as JSON, by serde.

use std::ops::{Deref, DerefMut};

use serde::{Serialize, de::DeserializeOwned};

use super::nulls;
use super::stored::Stored;
use crate::ground::error::JournalError;

/// A key or value that serde writes to the journal, as JSON: names of fields are kept, so that a
/// later version of the program can read what an earlier one wrote (`#[serde(default)]` for fields
/// that are new).
///
/// ```
/// use serde::{Deserialize, Serialize};
/// use tidewheel_scheduler::{Json, Stored};
///
/// #[derive(Clone, Serialize, Deserialize)]
/// struct Mail {
///     to: String,
///     #[serde(default)]
///     urgent: bool,
/// }
///
/// let old = br#"{"to":"ada@example.org"}"#;
/// let mail = Json::<Mail>::read(old).expect("readable");
/// assert_eq!((mail.to.as_str(), mail.urgent), ("ada@example.org", false));
/// ```
///
/// A value that does not come back from JSON (a map with keys that are no strings, a number that is
/// none) is refused by the call that sets it, with [`Error::Refused`](crate::Error::Refused);
/// nothing is changed then. So is a `Some` that JSON writes as `null`, as it does `Some(f64::NAN)`,
/// `Some(())` and `Some(None)`: it would come back as `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Json<T>(pub T);

impl<T: Serialize + DeserializeOwned> Stored for Json<T> {
    fn write(&self, bytes: &mut Vec<u8>) {
        let start = bytes.len();
        if serde_json::to_writer(&mut *bytes, &self.0).is_err() {
            bytes.truncate(start);
        }
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok().map(Self)
    }

    fn check(&self) -> Result<(), JournalError> {
        let bytes = serde_json::to_vec(&self.0).map_err(JournalError::new)?;
        let lost =
            |error| JournalError::new(format_args!("it does not come back from JSON: {error}"));
        nulls::check(&self.0).map_err(lost)?;
        let back: Result<T, _> = serde_json::from_slice(&bytes);
        back.map(drop).map_err(lost)
    }
}

impl<T> From<T> for Json<T> {
    fn from(value: T) -> Self {
        Self(value)
    }
}

impl<T> Deref for Json<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for Json<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}
