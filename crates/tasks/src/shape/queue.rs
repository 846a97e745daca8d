//! The names of queues.

use crate::shape::error::StoreError;

/// Bytes that a queue's name may have: engines write some of them as three.
const NAME_MAX: usize = 64;

/// Checks that stores take a queue's name. The empty one is the default queue's.
pub(crate) fn check_queue(queue: &str) -> Result<(), StoreError> {
    if queue.len() > NAME_MAX || queue.contains(char::is_control) {
        return Err(StoreError::refused(
            "a queue's name has 64 bytes at most, and no control characters",
        ));
    }
    Ok(())
}
