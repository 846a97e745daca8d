//! Stub.
use crate::command::CommandError;
use crate::context::Context;
pub(crate) fn encoding(_: &mut Context<'_, '_>) -> Result<(), CommandError> {
    Err(CommandError::NOT_HERE)
}
pub(crate) fn freq(_: &mut Context<'_, '_>) -> Result<(), CommandError> {
    Err(CommandError::NOT_HERE)
}
pub(crate) fn object_help(_: &mut Context<'_, '_>) -> Result<(), CommandError> {
    Err(CommandError::NOT_HERE)
}
pub(crate) fn idletime(_: &mut Context<'_, '_>) -> Result<(), CommandError> {
    Err(CommandError::NOT_HERE)
}
pub(crate) fn refcount(_: &mut Context<'_, '_>) -> Result<(), CommandError> {
    Err(CommandError::NOT_HERE)
}
pub(crate) fn memory_help(_: &mut Context<'_, '_>) -> Result<(), CommandError> {
    Err(CommandError::NOT_HERE)
}
pub(crate) fn memory_usage(_: &mut Context<'_, '_>) -> Result<(), CommandError> {
    Err(CommandError::NOT_HERE)
}
