//! Notes of the starts of doubtful claims: a run that began, and was never answered, counts.

use std::sync::Arc;

use super::Inner;
use super::order::number;
use super::receipt::fenced;
use super::record::GENERATION;
use super::wire::Letter;
use crate::shape::claim::{Claim, Verdict};
use crate::shape::error::StoreError;

const LOST: &str = "Tw-Lost";

/// A note is kept for so long.
const KEPT_FOR: &str = "86400s";

impl Inner {
    pub(super) async fn note_start(&self, claim: &Arc<Claim>) -> Result<Verdict, StoreError> {
        let Some(own) = fenced(claim) else {
            return Ok(Verdict::Refused);
        };
        let record = self.last_record(&claim.id).await?;
        if record.is_some_and(|record| record.sequence > own.fence) {
            return Ok(Verdict::Refused);
        }
        let note = Letter::new(self.subjects.start(&claim.id))
            .header(GENERATION, own.generation)
            .header(LOST, claim.lost)
            .header("Nats-TTL", KEPT_FOR);
        self.kept(self.wire.put(note).await?)?;
        Ok(Verdict::Accepted)
    }

    /// The number of runs of a task that have begun and were not answered.
    pub(super) async fn lost(&self, (id, generation): (&str, u64)) -> Result<u32, StoreError> {
        let note = self.wire.last(&self.subjects.start(id)).await?;
        let headers = note.map(|note| note.headers).unwrap_or_default();
        let is_its = number(&headers, GENERATION) == Some(generation);
        let before = number(&headers, LOST).filter(|_| is_its);
        Ok(before.map_or(0, |before| u32::try_from(before + 1).unwrap_or(u32::MAX)))
    }
}
