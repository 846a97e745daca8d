//! Hashes.

pub(crate) mod read;
pub(crate) mod write;

use crate::error::CommandError;

type Outcome = Result<(), CommandError>;
