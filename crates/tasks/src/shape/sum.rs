//! The checksum of a task, as an engine keeps it.

use twox_hash::XxHash3_64;

use crate::shape::claim::Claim;
use crate::shape::error::StoreError;
use crate::store::{Failure, TaskStore};

/// The error of a task that is not as it was scheduled, and so does not run.
const DAMAGED: &str = "it is not as it was scheduled: damaged, or written by somebody else";

/// The checksum of an id, a payload, numbers, and the text of terms.
pub(crate) fn sum(id: &str, payload: &[u8], numbers: &[u64], terms: &str) -> u64 {
    // The parts are told apart: each is the seed of the next.
    let mut sum = XxHash3_64::oneshot(id.as_bytes());
    for number in numbers {
        sum = XxHash3_64::oneshot_with_seed(sum, &number.to_le_bytes());
    }
    if !terms.is_empty() {
        sum = XxHash3_64::oneshot_with_seed(sum, terms.as_bytes());
    }
    XxHash3_64::oneshot_with_seed(sum, payload)
}

/// The checksum of a letter. One that is damaged has another sum, and stays damaged when it is
/// filed again.
pub(crate) fn letter_sum(claim: &Claim, terms: &str) -> u64 {
    sum(&claim.id, &claim.payload, &[], terms) ^ u64::from(claim.is_damaged)
}

/// The error of a letter that was kept, which says so if its checksum is wrong.
pub(crate) fn letter_error(error: String, is_whole: bool) -> String {
    const WHAT: &str = "it is damaged, or no letter of ours";
    match is_whole || error == DAMAGED {
        true => error,
        false if error.is_empty() => WHAT.to_owned(),
        false => format!("{WHAT}; its error was: {error}"),
    }
}

/// The answer to who files such a letter again.
pub(crate) fn letter_refused() -> StoreError {
    StoreError::refused("it is damaged: schedule it anew")
}

/// Makes dead letters of claims that are damaged, or that this program cannot read, and returns the
/// others. If that fails, they are claimed again later.
pub(crate) async fn set_aside(store: &impl TaskStore, claims: Vec<Claim>) -> Vec<Claim> {
    let mut whole = Vec::with_capacity(claims.len());
    for claim in claims {
        let damaged = claim.is_damaged.then(|| DAMAGED.to_owned());
        match damaged.or_else(|| claim.terms.trouble()) {
            Some(why) => drop(store.fail(&claim, Failure::never(why)).await),
            None => whole.push(claim),
        }
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_tells_all_parts_apart() {
        let one = sum("ab", b"c", &[1, 2], "");
        for other in [
            sum("a", b"bc", &[1, 2], ""),
            sum("ab", b"d", &[1, 2], ""),
            sum("ab", b"c", &[2, 1], ""),
            sum("ab", b"c", &[1], ""),
            sum("ab", b"c", &[1, 2], "c"),
        ] {
            assert_ne!(one, other);
        }
    }
}
