//! Ends the subscriptions of closed clients in portions, so that nobody waits for clients that had
//! very many.
//!
//! No client's memory limit counts these subscriptions any more. So a turn ends at least as many as
//! began in the turn before. Clients may come, subscribe and leave as fast as they like: the
//! subscriptions that are left do not pile up.

use crate::loop_handle::inbox::Target;
use crate::pubsub::hub::Hub;
use crate::pubsub::subscriptions::Subscriptions;

/// Subscriptions that end in a turn.
pub(crate) const PER_TURN: usize = 512;

/// Clients that are gone, with the subscriptions that must still end.
#[derive(Debug, Default)]
pub(super) struct EndingSubscriptions {
    those: Vec<(Target, Box<Subscriptions>)>,
    /// The number of subscriptions that may still end in this turn.
    budget: usize,
}

impl EndingSubscriptions {
    pub(super) fn add(&mut self, target: Target, subscriptions: Box<Subscriptions>) {
        self.those.push((target, subscriptions));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.those.is_empty()
    }

    /// Sets the budget of the next turn. `begun` subscriptions began in this one.
    pub(super) fn next_turn(&mut self, begun: usize) {
        self.budget = begun.max(PER_TURN);
    }

    /// Ends what may end in this turn, the client that left last first. Messages that are published
    /// to the others meanwhile find nobody.
    pub(super) fn end_some(&mut self, hub: &Hub, owner: usize) {
        while self.budget > 0
            && let Some((target, subscriptions)) = self.those.last_mut()
        {
            match subscriptions.pop() {
                Some((kind, name)) => {
                    self.budget -= 1;
                    hub.unsubscribe(kind, &name, owner, *target);
                }
                None => drop(self.those.pop()),
            }
        }
    }
}
