//! Hashes.

pub(crate) mod lifetime;
pub(crate) mod number;
pub(crate) mod random;
pub(crate) mod read;
pub(crate) mod write;

use crate::error::CommandError;

type Outcome = Result<(), CommandError>;
