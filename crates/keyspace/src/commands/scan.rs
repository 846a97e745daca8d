//! Stub.
use crate::command::CommandError;
use crate::context::Context;
pub(crate) fn keys(_: &mut Context<'_, '_>) -> Result<(), CommandError> {
    Err(CommandError::NOT_HERE)
}
pub(crate) fn randomkey(_: &mut Context<'_, '_>) -> Result<(), CommandError> {
    Err(CommandError::NOT_HERE)
}
pub(crate) fn scan(_: &mut Context<'_, '_>) -> Result<(), CommandError> {
    Err(CommandError::NOT_HERE)
}
