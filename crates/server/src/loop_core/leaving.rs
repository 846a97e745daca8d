//! Subscriptions of clients that are gone: the hub forgets them in portions, so that nobody waits for a
//! client that had very many.

use crate::hub::Hub;
use crate::loop_handle::Target;
use crate::subscriptions::Subscriptions;

/// Subscriptions that are ended when their client goes, and then in each turn.
pub(crate) const PER_TURN: usize = 512;

/// Whose subscriptions are yet to end.
#[derive(Debug, Default)]
pub(super) struct Leaving(Vec<(Target, Box<Subscriptions>)>);

impl Leaving {
    pub(super) fn add(&mut self, target: Target, subscriptions: Box<Subscriptions>) {
        self.0.push((target, subscriptions));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Ends a portion, of whoever left last. Messages that are published to the others meanwhile find nobody.
    pub(super) fn end_some(&mut self, hub: &Hub, owner: usize) {
        for _ in 0..PER_TURN {
            let Some((target, subscriptions)) = self.0.last_mut() else {
                return;
            };
            match subscriptions.pop() {
                Some((kind, name)) => hub.unsubscribe(kind, &name, owner, *target),
                None => drop(self.0.pop()),
            }
        }
    }
}
