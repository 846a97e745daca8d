//! Sets.

pub(crate) mod basic;
pub(crate) mod random;

use crate::error::CommandError;

type Outcome = Result<(), CommandError>;
