//! Parks clients whose shards a long command or a transaction has. Resumes parked clients and long
//! commands in the [order](crate::claims) of their claims.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use crate::claims::{
    Blocked, Claim, ClaimState, Claimant, Deferred, GrantedClaims, Parked, ShardAction, ShardSet,
};
use crate::gate::{Exclusive, Seat};
use crate::keyspace::Keyspace;
use crate::order::RankedGuard;
use crate::shard::Hold;
use crate::time::Now;
use crate::waiters::{Served, Ticket, Waiter};

/// Permission to use the keyspace alone: no long command begins until it is dropped.
#[derive(Debug)]
#[must_use]
pub struct NoLongCommands<'a>(&'a Keyspace);

impl NoLongCommands<'_> {
    /// Takes the whole keyspace for the guard's life.
    ///
    /// # Errors
    ///
    /// If a script runs for long.
    pub fn alone<'s>(&self, seat: &'s mut Seat) -> Result<Exclusive<'s>, Blocked> {
        let alone = seat.try_exclusive();
        alone.ok_or_else(|| Blocked::on(ShardSet::ALL))
    }
}

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

    /// Waits until the commands have ended that other threads run now: those that begin afterwards
    /// see what was published before. Nothing may be locked.
    ///
    /// If a long command or a script runs, it does not wait: everybody else would stand still for
    /// as long.
    pub fn wait_for_commands(&self, seat: &mut Seat) {
        if let Ok(alone) = self.without_long_commands() {
            drop(alone.alone(seat));
        }
    }

    /// Parks a client until no other has the shards that its command needs. Then
    /// [`Hooks::go_on`](crate::Hooks::go_on) is called once. `None` if it may try again at once:
    /// but others should have their turn before.
    ///
    /// A client that was parked before for the same command, and has gone on in vain, keeps its
    /// `place`.
    #[must_use]
    pub fn park(
        &self,
        waiter: Waiter,
        blocked: &Blocked,
        place: &mut Option<Parked>,
    ) -> Option<Parked> {
        let mut state = self.claims.0.lock();
        let need = &blocked.0;
        if !self.is_held(&mut state, need.shards) {
            return None;
        }
        let place = place.take().map(|place| place.0);
        place.map(|number| state.remove(number));
        let number = place.unwrap_or_else(|| self.next_ticket.fetch_add(1, Relaxed));
        let claimant = Claimant::Parked {
            waiter,
            may_be_long: need.may_be_long,
        };
        state.add(number, need.shards, claimant);
        Some(Parked(number))
    }

    /// True if a long command or a transaction has one of these shards. Then its end will be
    /// announced.
    fn is_held(&self, state: &mut ClaimState, shards: ShardSet) -> bool {
        let mut held = state.is_taken(&shards);
        for shard in self.known(shards) {
            let shard_state = &self.shards[shard];
            if !shard_state.is_busy() && shard_state.await_transaction() {
                state.add_transaction(shard);
                shard_state.set_busy(true);
                held = true;
            }
        }
        held
    }

    /// A script has had these shards for a while: nobody waits for them any more.
    pub(crate) fn keep_for_script(&self, shards: ShardSet) {
        let mut state = self.claims.0.lock();
        self.is_held(&mut state, shards);
    }

    /// A script has had these shards for so long that who needs them is refused. Those who are
    /// parked for them try again, and are.
    pub(crate) fn refuse_for_script(&self, shards: ShardSet) {
        self.long_scripts.fetch_add(1, SeqCst);
        for shard in self.known(shards) {
            self.shards[shard].set_scripted(true);
        }
        let parked = self.claims.0.lock().wake_parked(&shards);
        parked
            .into_iter()
            .for_each(|waiter| self.hooks.go_on(waiter));
    }

    /// Returns whether a script has had one of the shards for so long that its client is refused.
    #[must_use]
    pub fn is_busy_with_script(&self, blocked: &Blocked) -> bool {
        if blocked.0.shards == ShardSet::ALL {
            return self.long_scripts.load(SeqCst) > 0;
        }
        let mut shards = self.known(blocked.0.shards);
        shards.any(|shard| self.shards[shard].is_scripted())
    }

    /// Ends the claims of parked clients that have run their commands, or are gone. Costs a look at
    /// each claim, if one waits: so many are handed over at once.
    pub fn unpark(&self, parked: impl IntoIterator<Item = Parked>) {
        let mut state = self.claims.0.lock();
        for Parked(number) in parked {
            // Its command may be long: then the claim is that command's.
            let is_parked = |claim: &Claim| matches!(claim.claimant, Claimant::Parked { .. });
            if state.claims.get(&number).is_some_and(is_parked) {
                state.remove(number);
            }
        }
        self.grant(state);
    }

    /// Transactions have ended that had these shards, and somebody waits for each of them. Nothing
    /// is locked.
    pub(crate) fn end_transactions(&self, shards: ShardSet, now: Now) {
        let mut state = self.claims.0.lock();
        for shard in self.known(shards) {
            state.remove(shard as u64);
        }
        self.end_claims(state, shards, now);
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
        state.add(ticket.number, shards, Claimant::Long(Arc::clone(ticket)));
        self.grant(state);
    }

    /// A long command has ended: what had to wait for it is done, and other claims are granted.
    /// Nothing is locked.
    pub(crate) fn end_claim(&self, ticket: &Ticket, now: Now) {
        let mut state = self.claims.0.lock();
        let Some(claim) = state.remove(ticket.number) else {
            return;
        };
        self.end_claims(state, claim.shards, now);
    }

    /// Claims on these shards have ended: what had to wait for them is done.
    fn end_claims(&self, mut state: RankedGuard<'_, ClaimState>, shards: ShardSet, now: Now) {
        for shard in self.known(shards) {
            self.shards[shard].set_busy(false);
        }
        let deferred = std::mem::take(&mut state.deferred);
        let (due, kept) = deferred
            .into_iter()
            .partition(|(shard, _)| shards.has(*shard));
        state.deferred = kept;
        let granted = self.granted(&mut state);
        drop(state);
        for (shard, deferred) in due {
            match deferred {
                Deferred::Action(act) => {
                    if let Some(hold) = self.act_on(shard, act) {
                        self.serve_and_unlock(now, vec![(shard, hold)]);
                    }
                }
                Deferred::Retry(ticket) => self.hooks.served(Served::Retry(ticket)),
            }
        }
        self.tell_granted(granted);
    }

    /// The numbers of `shards` that exist.
    fn known(&self, shards: ShardSet) -> impl Iterator<Item = usize> {
        let all = self.shards();
        shards.iter().take_while(move |shard| *shard < all)
    }

    /// Grants claims that need not wait any longer, and tells their owners.
    fn grant(&self, mut state: RankedGuard<'_, ClaimState>) {
        let granted = self.granted(&mut state);
        drop(state);
        self.tell_granted(granted);
    }

    fn granted(&self, state: &mut ClaimState) -> GrantedClaims {
        let granted = state.grant(self.is_paused());
        for shard in self.known(granted.busy) {
            self.shards[shard].set_busy(true);
        }
        granted
    }

    fn tell_granted(&self, granted: GrantedClaims) {
        for ticket in granted.long {
            self.hooks.run_long(ticket);
        }
        for waiter in granted.parked {
            self.hooks.go_on(waiter);
        }
    }

    /// Acts on a shard, and returns it locked. If another has it for long, the action waits for
    /// that one's end.
    pub(crate) fn act_on(&self, shard: usize, act: ShardAction) -> Option<Hold<'_>> {
        loop {
            if let Some(mut hold) = self.shards[shard].lock_briefly() {
                act(&mut hold);
                return Some(hold);
            }
            let mut state = self.claims.0.lock();
            if self.is_held(&mut state, ShardSet::of([shard].into_iter())) {
                state.deferred.push((shard, Deferred::Action(act)));
                return None;
            }
            drop(state);
            // It is about to be unlocked: its thread may need this processor.
            std::thread::yield_now();
        }
    }

    /// Lets a ticket's own loop try again, as soon as no other has these shards for long.
    pub(crate) fn retry_later(&self, blocked: &Blocked, ticket: &Arc<Ticket>) {
        let mut state = self.claims.0.lock();
        self.is_held(&mut state, blocked.0.shards);
        let mut shards = self.known(blocked.0.shards);
        if let Some(shard) = shards.find(|shard| self.shards[*shard].is_busy()) {
            let deferred = Deferred::Retry(Arc::clone(ticket));
            return state.deferred.push((shard, deferred));
        }
        drop(state);
        self.hooks.served(Served::Retry(Arc::clone(ticket)));
    }
}
