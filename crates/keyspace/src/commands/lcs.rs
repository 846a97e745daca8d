//! Stub.
use crate::command::CommandError;
use crate::context::Context;
pub(crate) fn lcs(_: &mut Context<'_, '_>) -> Result<(), CommandError> {
    Err(CommandError::NOT_HERE)
}
