//! Who is connected, and who leaves when there is no place for one more.

use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::rights::Rights;
use crate::users::Users;

/// How far a connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Its request has not come.
    Asks,
    /// Its reply is made, or sent.
    Hears,
    /// It has a stream of events. There are few, so it may stay.
    Stays,
    /// It was told to leave.
    Leaves,
}

/// A connection.
#[derive(Debug)]
pub(super) struct Guest {
    stage: Mutex<Stage>,
    leave: Notify,
    /// The rights that its user must keep.
    rights: Mutex<Option<Rights>>,
}

impl Guest {
    /// Notes how far it is.
    pub(super) fn reach(&self, stage: Stage) {
        *self.stage.lock() = stage;
    }

    /// Notes what its user must go on to be allowed.
    pub(super) fn needs(&self, rights: Rights) {
        *self.rights.lock() = Some(rights);
    }

    /// True if these users let it hear its reply to the end.
    pub(super) fn may_hear(&self, users: &Users) -> bool {
        let rights = self.rights.lock();
        rights.as_ref().is_none_or(|rights| rights.are_held(users))
    }

    /// Waits until it is to leave.
    pub(super) async fn told_to_leave(&self) {
        self.leave.notified().await;
    }
}

/// All connections, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Guests(Vec<Weak<Guest>>);

impl Guests {
    /// Lets a connection in.
    pub(super) fn welcome(&mut self) -> Arc<Guest> {
        let guest = Arc::new(Guest {
            stage: Mutex::new(Stage::Asks),
            leave: Notify::new(),
            rights: Mutex::new(None),
        });
        self.0.retain(|guest| guest.strong_count() > 0);
        self.0.push(Arc::downgrade(&guest));
        guest
    }

    /// Has one leave: who has asked for nothing for the longest time, otherwise who is the slowest
    /// to hear.
    pub(super) fn make_room(&self) {
        let oldest = |stage| {
            let mut guests = self.0.iter().filter_map(Weak::upgrade);
            guests.find(|guest| *guest.stage.lock() == stage)
        };
        if let Some(guest) = oldest(Stage::Asks).or_else(|| oldest(Stage::Hears)) {
            guest.reach(Stage::Leaves);
            guest.leave.notify_one();
        }
    }
}
