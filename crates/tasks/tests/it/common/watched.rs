//! A store whose claims a test sees, and may change, before the worker gets them.

use std::sync::Arc;
use std::time::Duration;

use tidewheel_tasks::{
    Ask, Claim, DeadLetter, Due, Failure, Pending, StoreError, Task, TaskStore, Timestamp, Verdict,
    Wake,
};

/// A failure that the store never takes.
pub(crate) const NEVER: &str = "never";

/// A store, and what is called with each claim.
pub(crate) struct Watched<S, F>(pub(crate) S, pub(crate) F);

impl<S, F> TaskStore for Watched<S, F>
where
    S: TaskStore,
    F: Fn(&mut Claim) + Send + Sync + 'static,
{
    fn interruptions(&self) -> u64 {
        self.0.interruptions()
    }

    async fn schedule(&self, task: Task) -> Result<Timestamp, StoreError> {
        self.0.schedule(task).await
    }

    async fn ensure(&self, task: Task) -> Result<bool, StoreError> {
        self.0.ensure(task).await
    }

    async fn look(&self, id: &str) -> Result<Option<Pending>, StoreError> {
        self.0.look(id).await
    }

    async fn cancel(&self, id: &str) -> Result<bool, StoreError> {
        self.0.cancel(id).await
    }

    async fn reschedule(&self, id: &str, due: Due) -> Result<bool, StoreError> {
        self.0.reschedule(id, due).await
    }

    async fn claim(&self, ask: Ask) -> Result<Vec<Claim>, StoreError> {
        let mut claims = self.0.claim(ask).await?;
        claims.iter_mut().for_each(&self.1);
        Ok(claims)
    }

    async fn extend(&self, claims: &[Arc<Claim>], by: Duration) -> Verdicts {
        self.0.extend(claims, by).await
    }

    async fn done(&self, claims: &[Arc<Claim>]) -> Verdicts {
        self.0.done(claims).await
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
