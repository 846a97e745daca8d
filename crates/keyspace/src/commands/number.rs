//! Stub.
use crate::command::CommandError;
use crate::context::Context;
pub(crate) fn decr(_: &mut Context<'_, '_>) -> Result<(), CommandError> {
    Err(CommandError::NOT_HERE)
}
pub(crate) fn decrby(_: &mut Context<'_, '_>) -> Result<(), CommandError> {
    Err(CommandError::NOT_HERE)
}
pub(crate) fn incr(_: &mut Context<'_, '_>) -> Result<(), CommandError> {
    Err(CommandError::NOT_HERE)
}
pub(crate) fn incrby(_: &mut Context<'_, '_>) -> Result<(), CommandError> {
    Err(CommandError::NOT_HERE)
}
pub(crate) fn incrbyfloat(_: &mut Context<'_, '_>) -> Result<(), CommandError> {
    Err(CommandError::NOT_HERE)
}
