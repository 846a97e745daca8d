//! A store whose claims and ends a test sees. It may change claims before the worker gets them.

use std::sync::Arc;
use std::time::Duration;

use tidewheel_tasks::{
    Ask, Claim, DeadLetter, Due, Failure, Look, StoreError, Task, TaskStore, Timestamp, Verdict,
    Wake,
};

/// A failure that the store never takes.
pub(crate) const NEVER: &str = "never";

/// What sees the calls of a store.
pub(crate) trait Watch: Send + Sync + 'static {
    /// A claim, on its way to the worker.
    fn claimed(&self, claim: &mut Claim) {
        let _ = claim;
    }

    /// Somebody looks at an id.
    fn looks(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Leases are to be extended.
    fn extends(&self) {}

    /// The store has answered.
    fn done(&self, claims: &[Arc<Claim>], verdicts: &[Verdict]) {
        let _ = (claims, verdicts);
    }
}

impl<F: Fn(&mut Claim) + Send + Sync + 'static> Watch for F {
    fn claimed(&self, claim: &mut Claim) {
        self(claim);
    }
}

/// A store, and what sees its calls.
pub(crate) struct Watched<S, W>(pub(crate) S, pub(crate) W);

impl<S: TaskStore, W: Watch> TaskStore for Watched<S, W> {
    fn interruptions(&self) -> u64 {
        self.0.interruptions()
    }

    async fn schedule(&self, task: Task) -> Result<Timestamp, StoreError> {
        self.0.schedule(task).await
    }

    async fn ensure(&self, task: Task) -> Result<bool, StoreError> {
        self.0.ensure(task).await
    }

    async fn look(&self, id: &str) -> Result<Option<Look>, StoreError> {
        self.1.looks()?;
        self.0.look(id).await
    }

    async fn free_slot(&self, claim: &Claim) -> Result<(), StoreError> {
        self.0.free_slot(claim).await
    }

    async fn cancel(&self, id: &str) -> Result<bool, StoreError> {
        self.0.cancel(id).await
    }

    async fn reschedule(&self, id: &str, due: Due) -> Result<bool, StoreError> {
        self.0.reschedule(id, due).await
    }

    async fn claim(&self, ask: Ask) -> Result<Vec<Claim>, StoreError> {
        let mut claims = self.0.claim(ask).await?;
        claims.iter_mut().for_each(|claim| self.1.claimed(claim));
        Ok(claims)
    }

    async fn extend(&self, claims: &[Arc<Claim>], by: Duration) -> Verdicts {
        self.1.extends();
        self.0.extend(claims, by).await
    }

    async fn note_start(&self, claim: &Arc<Claim>) -> Result<Verdict, StoreError> {
        self.0.note_start(claim).await
    }

    async fn done(&self, claims: &[Arc<Claim>]) -> Verdicts {
        let verdicts = self.0.done(claims).await?;
        self.1.done(claims, &verdicts);
        Ok(verdicts)
    }

    async fn fail(&self, claim: &Claim, failure: Failure) -> Result<Verdict, StoreError> {
        if failure.error == NEVER {
            return Err(StoreError::engine(NEVER));
        }
        self.0.fail(claim, failure).await
    }

    async fn release(&self, claims: &[Arc<Claim>]) -> Verdicts {
        self.0.release(claims).await
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        self.0.now().await
    }

    async fn dead_letters(&self, most: usize) -> Result<Vec<DeadLetter>, StoreError> {
        self.0.dead_letters(most).await
    }

    async fn requeue(&self, id: &str, due: Due) -> Result<bool, StoreError> {
        self.0.requeue(id, due).await
    }

    async fn remove_dead(&self, id: &str) -> Result<bool, StoreError> {
        self.0.remove_dead(id).await
    }

    async fn leave(&self) -> Result<(), StoreError> {
        self.0.leave().await
    }

    fn on_arrival(&self, wake: Wake) {
        self.0.on_arrival(wake);
    }
}

type Verdicts = Result<Vec<Verdict>, StoreError>;
