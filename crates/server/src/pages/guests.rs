//! Who is connected, and who leaves when there is no place for one more.

use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::Notify;

/// How far a connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Its request has not come.
    Asks,
    /// Its reply is made, or sent.
    Hears,
    /// It hears a stream of events. There are few, so it may stay.
    Stays,
    /// It was told to leave.
    Leaves,
}

/// A connection.
#[derive(Debug)]
pub(super) struct Guest {
    stage: Mutex<Stage>,
    leave: Notify,
}

impl Guest {
    /// Notes how far it is.
    pub(super) fn reach(&self, stage: Stage) {
        *self.stage.lock() = stage;
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
