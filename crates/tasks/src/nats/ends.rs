//! The end of a run is a record, with the next run if there is one; then the message is
//! acknowledged.

use std::sync::Arc;

use futures_util::{StreamExt, stream};

use super::Inner;
use super::claims::AT_ONCE;
use super::dead::letter_of;
use super::generation::generation;
use super::looks::result_of;
use super::order::Order;
use super::receipt::{fenced, reply_of};
use super::record::{Says, Step};
use super::wire::{Kept, Letter};
use crate::shape::claim::{Claim, Verdict};
use crate::shape::error::StoreError;
use crate::shape::timestamp::Timestamp;
use crate::store::Failure;

impl Inner {
    pub(super) async fn done(&self, claims: Vec<Arc<Claim>>) -> Result<Vec<Verdict>, StoreError> {
        let now = self.about_now().await?;
        let done = claims.into_iter();
        let done = done.map(|claim| async move { self.done_one(&claim, now).await });
        one_by_one(stream::iter(done).buffered(AT_ONCE).collect().await)
    }

    async fn done_one(&self, claim: &Claim, now: Timestamp) -> Result<Verdict, StoreError> {
        let result = result_of(&self.subjects, claim, now);
        self.end(claim, now, result, next_of(claim, now)).await
    }

    pub(super) async fn fail(
        &self,
        claim: &Claim,
        failure: Failure,
    ) -> Result<Verdict, StoreError> {
        let now = self.about_now().await?;
        let (letter, next) = match failure.retry {
            Some(due) => {
                let mut order = Order::of_claim(claim);
                (order.due, order.attempt) = (due.at(now), failure.next_attempt(claim.attempt));
                (None, Some(order))
            }
            None => {
                let letter = letter_of(&self.subjects, claim, &failure, now);
                (Some(letter), next_of(claim, now))
            }
        };
        let verdict = self.end(claim, now, letter, next).await?;
        if !failure.counts && verdict.is_accepted() {
            self.free_slot(claim).await;
        }
        Ok(verdict)
    }

    /// Has messages delivered again, if their claims are the latest. Each gets a record: otherwise
    /// a claim that was given back would be the latest until the next one.
    pub(super) async fn release(
        &self,
        claims: Vec<Arc<Claim>>,
    ) -> Result<Vec<Verdict>, StoreError> {
        let released = claims.iter().map(Arc::clone);
        let released = released.map(|claim| async move { self.release_one(claim).await });
        let verdicts = one_by_one(stream::iter(released).buffered(AT_ONCE).collect().await)?;
        for (claim, _) in
            (claims.iter().zip(&verdicts)).filter(|(_, verdict)| verdict.is_accepted())
        {
            self.free_slot(claim).await;
        }
        Ok(verdicts)
    }

    async fn release_one(&self, claim: Arc<Claim>) -> Result<Verdict, StoreError> {
        let Some(fenced) = fenced(&claim) else {
            return Ok(Verdict::Refused);
        };
        let of = (&*claim.id, fenced.generation);
        let record = |after, _: Option<&Kept>| vec![self.record(of, Says::Back, after)];
        let step = self.put_record(fenced, record).await?;
        let accepted = matches!(step, Step::Kept(_));
        if accepted {
            self.give_back(std::slice::from_ref(&claim)).await?;
        }
        Ok(accepted.into())
    }

    /// Ends a run: with a result or a dead letter, and with the next run.
    async fn end(
        &self,
        claim: &Claim,
        now: Timestamp,
        letter: Option<Letter>,
        next: Option<Order>,
    ) -> Result<Verdict, StoreError> {
        let Some(fenced) = fenced(claim) else {
            return Ok(Verdict::Refused);
        };
        let of = (&*claim.id, generation(now, fenced.generation));
        let next = next.map(|order| {
            let from = order.due.minus(self.lookahead).max(now);
            order.schedule(&self.subjects, of, from)
        });
        let letters = |after, blank: Option<&Kept>| {
            let mut letters = vec![self.record(of, Says::Over, after)];
            letters.extend(letter.clone());
            let next = next.clone();
            letters.extend(next.map_or_else(Vec::new, |next| self.instead_of(blank, of.0, next)));
            letters
        };
        let step = self.put_record(fenced, letters).await?;
        let accepted = matches!(step, Step::Kept(_));
        if accepted {
            self.acknowledge(reply_of(claim)).await;
        }
        Ok(accepted.into())
    }
}

/// The verdicts of ends that were told one by one. If an error is not that of all, the others'
/// verdicts stand.
fn one_by_one(told: Vec<Result<Verdict, StoreError>>) -> Result<Vec<Verdict>, StoreError> {
    if told.iter().all(Result::is_err) {
        return told.into_iter().collect();
    }
    let verdicts = told.into_iter();
    Ok(verdicts
        .map(|verdict| verdict.unwrap_or(Verdict::Busy))
        .collect())
}

/// A periodic task's next run; none of one that is damaged, or cannot be read.
fn next_of(claim: &Claim, now: Timestamp) -> Option<Order> {
    let next = claim.next_run(now)?;
    Some(Order::of_claim(claim).anew(next))
}
