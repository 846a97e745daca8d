//! Stub.
use crate::command::CommandError;
use crate::context::Context;
pub(crate) fn expire(_: &mut Context<'_, '_>) -> Result<(), CommandError> {
    Err(CommandError::NOT_HERE)
}
pub(crate) fn expireat(_: &mut Context<'_, '_>) -> Result<(), CommandError> {
    Err(CommandError::NOT_HERE)
}
pub(crate) fn expiretime(_: &mut Context<'_, '_>) -> Result<(), CommandError> {
    Err(CommandError::NOT_HERE)
}
pub(crate) fn persist(_: &mut Context<'_, '_>) -> Result<(), CommandError> {
    Err(CommandError::NOT_HERE)
}
pub(crate) fn pexpire(_: &mut Context<'_, '_>) -> Result<(), CommandError> {
    Err(CommandError::NOT_HERE)
}
pub(crate) fn pexpireat(_: &mut Context<'_, '_>) -> Result<(), CommandError> {
    Err(CommandError::NOT_HERE)
}
pub(crate) fn pexpiretime(_: &mut Context<'_, '_>) -> Result<(), CommandError> {
    Err(CommandError::NOT_HERE)
}
pub(crate) fn pttl(_: &mut Context<'_, '_>) -> Result<(), CommandError> {
    Err(CommandError::NOT_HERE)
}
pub(crate) fn ttl(_: &mut Context<'_, '_>) -> Result<(), CommandError> {
    Err(CommandError::NOT_HERE)
}
