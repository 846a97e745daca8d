//! A run that failed is tried again, or becomes a dead letter.

use crate::shape::claim::Claim;
use crate::shape::outcome::Outcome;
use crate::shape::task::Due;
use crate::store::Failure;
use crate::worker::shared::Shared;

/// Bytes of an error that the engine keeps.
const ERROR_MAX: usize = 1000;

/// Decides whether a run that failed is tried again.
pub(super) fn failure<S>(shared: &Shared<S>, claim: &Claim, outcome: Outcome) -> Failure {
    let retry = &shared.settings.retry;
    let seed = claim.fence.0;
    match outcome {
        Outcome::Failed { error, after } if !retry.is_last(claim.attempt) => {
            let wait = after.unwrap_or_else(|| retry.delay(claim.attempt, seed));
            Failure::retry(Due::After(wait), bounded(error))
        }
        Outcome::Failed { error, .. } | Outcome::Dead { error } => Failure::dead(bounded(error)),
        _ => Failure::dead("an outcome that is not known"),
    }
}

/// The end of a claim that never runs: its attempt does not count.
pub(super) fn never<S>(shared: &Shared<S>, claim: &Claim, outcome: Outcome) -> Failure {
    let failure = failure(shared, claim, outcome);
    Failure {
        counts: false,
        ..failure
    }
}

pub(super) fn bounded(mut error: String) -> String {
    error.truncate(error.floor_char_boundary(ERROR_MAX));
    // Databases take no such character in a text.
    error.replace('\0', "")
}
