//! `ServerId` names the server that has answered.

use std::fmt;

/// A server's own name, which no other server has: the run id of Valkey and Redis, or a node's id
/// in a Cluster.
///
/// Data and watching connections learn it. An answer is kept only if the server that is watched has
/// given it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ServerId([u8; 40]);

impl ServerId {
    /// The first forty bytes of what the server says.
    #[must_use]
    pub fn of(name: &[u8]) -> Self {
        let mut id = [0; 40];
        let length = name.len().min(id.len());
        id[..length].copy_from_slice(&name[..length]);
        Self(id)
    }
}

impl fmt::Debug for ServerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", String::from_utf8_lossy(&self.0))
    }
}
