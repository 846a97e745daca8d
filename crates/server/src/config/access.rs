//! Access: decides from the default user and protected mode whether a client is served.

use super::address::Address;
use super::settings::Settings;

/// A client's access to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClientAccess {
    Free,
    /// The client must say who it is first.
    WithPassword,
    /// The client is refused: protected mode is on, no password is set, and it is on another
    /// machine.
    Denied,
}

impl Settings {
    /// Returns the access of a client at this address.
    pub(super) fn access(&self, peer: &Address) -> ClientAccess {
        let default = self.users.default_user();
        if !default.needs_no_password {
            ClientAccess::WithPassword
        } else if self.protected_mode && !peer.is_local() {
            ClientAccess::Denied
        } else if default.is_open() {
            ClientAccess::Free
        } else {
            ClientAccess::WithPassword
        }
    }
}

/// The reply to a client that may not come in, without its first byte and its end. Clients know the
/// first word, and people the first sentence.
pub(crate) const DENIED: &str = "DENIED Redis is running in protected mode because protected mode is enabled and no \
     password is set for the default user. In this mode connections are only accepted from the loopback interface. To \
     connect from other machines, do one of the following on the machine that the server runs on: 1) Set a password, \
     with 'CONFIG SET requirepass <password>' or when the server starts with '--requirepass <password>'. 2) If nobody \
     whom you do not trust can reach this port, switch protected mode off, with 'CONFIG SET protected-mode no' or when \
     the server starts with '--protected-mode no'.";
