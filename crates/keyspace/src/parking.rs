//! Parks clients that need shards which a long command has, and lets them, and other long commands,
//! go on in their [order](crate::claims).

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use crate::claims::{Act, Blocked, Claim, Granted, Later, Parked, ShardSet, State, Who};
use crate::keyspace::Keyspace;
use crate::order::RankedGuard;
use crate::shard::Hold;
use crate::time::Now;
use crate::waiters::{Served, Ticket, Waiter};

/// Permission to use the keyspace alone: no long command begins until it is dropped.
#[derive(Debug)]
#[must_use]
pub struct NoLongCommands<'a>(&'a Keyspace);

impl Drop for NoLongCommands<'_> {
    fn drop(&mut self) {
        let mut state = self.0.claims.0.lock();
        state.exclusive -= 1;
        self.0.grant(state);
    }
}

impl Keyspace {
    /// Keeps long commands from beginning, for a thread that will use the keyspace alone. Nothing
    /// may be locked.
    ///
    /// # Errors
    ///
    /// If one runs: alone would mean to wait for it, and everybody with it.
    pub fn without_long_commands(&self) -> Result<NoLongCommands<'_>, Blocked> {
        let mut state = self.claims.0.lock();
        if state.is_taken(&ShardSet::ALL) {
            return Err(Blocked::on(ShardSet::ALL));
        }
        state.exclusive += 1;
        Ok(NoLongCommands(self))
    }

    /// Parks a client until nobody has the shards for long that its command needs. Then
    /// [`Hooks::go_on`](crate::Hooks::go_on) is called once. `None` if it may try again at once:
    /// but others should have their turn before.
    #[must_use]
    pub fn park(&self, waiter: Waiter, blocked: &Blocked) -> Option<Parked> {
        let mut state = self.claims.0.lock();
        let need = &blocked.0;
        if !state.is_taken(&need.shards) {
            return None;
        }
        let number = self.next_ticket.fetch_add(1, Relaxed);
        let who = Who::Parked {
            waiter,
            may_be_long: need.may_be_long,
        };
        state.add(number, need.shards, who);
        Some(Parked(number))
    }

    /// A client that was parked has run its command, or is gone.
    pub fn unpark(&self, parked: Parked) {
        let mut state = self.claims.0.lock();
        // Its command may be long: then the claim is that command's.
        let is_parked = |claim: &Claim| matches!(claim.who, Who::Parked { .. });
        if state.claims.get(&parked.0).is_some_and(is_parked) {
            state.remove(parked.0);
        }
        self.grant(state);
    }

    /// The place of a command that turns out to be long: that of its client, if it was parked
    /// before.
    pub(crate) fn place_of_long(&self, waiter: Waiter) -> u64 {
        let parked = self.claims.0.lock().parked(waiter);
        parked.unwrap_or_else(|| self.next_ticket.fetch_add(1, Relaxed))
    }

    /// Has a long command run on a thread of its own. Nothing is locked.
    pub(crate) fn claim(&self, shards: ShardSet, ticket: &Arc<Ticket>) {
        let mut state = self.claims.0.lock();
        state.remove(ticket.number);
        state.add(ticket.number, shards, Who::Long(Arc::clone(ticket)));
        self.grant(state);
    }

    /// A long command has ended: what had to wait for it is done, and other claims are granted.
    /// Nothing is locked.
    pub(crate) fn end_claim(&self, ticket: &Ticket, now: Now) {
        let mut state = self.claims.0.lock();
        let Some(claim) = state.remove(ticket.number) else {
            return;
        };
        for shard in self.known(claim.shards) {
            self.shards[shard].set_busy(false);
        }
        let later = std::mem::take(&mut state.later);
        let (due, kept) = later
            .into_iter()
            .partition(|(shard, _)| claim.shards.has(*shard));
        state.later = kept;
        let granted = self.granted(&mut state);
        drop(state);
        for (shard, later) in due {
            match later {
                Later::Act(act) => {
                    if let Some(hold) = self.act_on(shard, act) {
                        self.serve_and_unlock(now, vec![(shard, hold)]);
                    }
                }
                Later::Retry(ticket) => self.hooks.served(Served::Retry(ticket)),
            }
        }
        self.tell_granted(granted);
    }

    /// Those of the shards that there are.
    fn known(&self, shards: ShardSet) -> impl Iterator<Item = usize> {
        let all = self.shards();
        shards.iter().take_while(move |shard| *shard < all)
    }

    /// Grants what need not wait any more.
    fn grant(&self, mut state: RankedGuard<'_, State>) {
        let granted = self.granted(&mut state);
        drop(state);
        self.tell_granted(granted);
    }

    fn granted(&self, state: &mut State) -> Granted {
        let granted = state.grant(self.is_paused());
        for shard in self.known(granted.busy) {
            self.shards[shard].set_busy(true);
        }
        granted
    }

    fn tell_granted(&self, granted: Granted) {
        for ticket in granted.long {
            self.hooks.run_long(ticket);
        }
        for waiter in granted.parked {
            self.hooks.go_on(waiter);
        }
    }

    /// Acts on a shard, and returns it: or acts when nobody has it for long any more.
    pub(crate) fn act_on(&self, shard: usize, act: Act) -> Option<Hold<'_>> {
        loop {
            if let Some(mut hold) = self.shards[shard].lock_briefly() {
                act(&mut hold);
                return Some(hold);
            }
            let mut state = self.claims.0.lock();
            if self.shards[shard].is_busy() {
                state.later.push((shard, Later::Act(act)));
                return None;
            }
            drop(state);
            // A transaction has it: its thread may need this processor.
            std::thread::yield_now();
        }
    }

    /// Has a ticket's own loop try again when nobody has these shards for long any more.
    pub(crate) fn retry_later(&self, blocked: &Blocked, ticket: &Arc<Ticket>) {
        let mut state = self.claims.0.lock();
        let mut shards = self.known(blocked.0.shards);
        if let Some(shard) = shards.find(|shard| self.shards[*shard].is_busy()) {
            let later = Later::Retry(Arc::clone(ticket));
            return state.later.push((shard, later));
        }
        drop(state);
        self.hooks.served(Served::Retry(Arc::clone(ticket)));
    }
}
