//! The settings in force, which CONFIG SET exchanges.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::sync::watch;

use super::access::ClientAccess;
use super::address::Address;
use super::config_file::ConfigFile;
use super::settings::Settings;
use crate::users::User;

/// The settings in force. Loops keep a copy, and compare one number before each batch of commands.
/// So a command that is sent after a change was answered runs with the change.
#[derive(Debug)]
pub(crate) struct Live {
    current: Mutex<Arc<Settings>>,
    version: AtomicU64,
    /// Wakes those who wait for a change.
    changed: watch::Sender<()>,
    /// The file that the server was started with.
    pub(crate) file: Option<ConfigFile>,
}

impl Live {
    pub(crate) fn new(settings: Settings, file: Option<ConfigFile>) -> Self {
        Self {
            current: Mutex::new(Arc::new(settings)),
            version: AtomicU64::new(1),
            changed: watch::Sender::new(()),
            file,
        }
    }

    /// Changes whenever the settings do.
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Tells of each change from now on.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    pub(crate) fn current(&self) -> Arc<Settings> {
        Arc::clone(&self.current.lock())
    }

    /// Returns true if the default user needs no password, by the settings in force.
    pub(crate) fn needs_no_password(&self) -> bool {
        self.current.lock().users.default_user().needs_no_password
    }

    /// Returns the access of a client at this address, by the settings in force.
    pub(crate) fn access(&self, peer: &Address) -> ClientAccess {
        self.current.lock().access(peer)
    }

    /// Returns the user of this name if the password is the right one, by the settings in force. A
    /// long password takes a while to compare: nothing is locked meanwhile.
    pub(crate) fn admitted(&self, name: &[u8], password: &[u8]) -> Option<Arc<User>> {
        self.current().users.admitted(name, password)
    }

    /// Returns the user that a client is who has not said its name, by the settings in force.
    pub(crate) fn default_user(&self) -> Arc<User> {
        self.current.lock().users.default_user()
    }

    /// Changes the settings, if `change` succeeds as a whole. Then `applied` sees them, before any
    /// other change.
    pub(crate) fn change<E>(
        &self,
        change: impl FnOnce(&mut Settings) -> Result<(), E>,
        applied: impl FnOnce(&Settings),
    ) -> Result<(), E> {
        let mut current = self.current.lock();
        let mut next = Settings::clone(&current);
        change(&mut next)?;
        next.derive();
        applied(&next);
        *current = Arc::new(next);
        self.version.fetch_add(1, Ordering::Release);
        drop(current);
        self.changed.send_replace(());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::key;

    #[test]
    fn a_percentage_follows_what_it_is_of() {
        let live = Live::new(Settings::default(), None);
        let set = |name: &str, value: &str| {
            let key = key(name).expect("a key");
            live.change(|settings| (key.set)(settings, value), |_| {})
        };
        set("maxmemory-clients", "10%").expect("a percentage");
        assert_eq!(live.current().max_memory_clients, 0, "of no limit");
        set("maxmemory", "1000").expect("bytes");
        assert_eq!(live.current().max_memory_clients, 100);
        set("maxmemory-clients", "7").expect("bytes");
        set("maxmemory", "5000").expect("bytes");
        assert_eq!(live.current().max_memory_clients, 7);
    }
}
