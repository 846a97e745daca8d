//! A claim's receipt has the subject of its acknowledgement, the record that it comes after, its
//! generation, its fence and its id.

use super::record::Fenced;
use super::text::encoded;
use crate::shape::claim::Claim;
use crate::shape::timestamp::Timestamp;

/// A delivery, as the subject of its acknowledgement describes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Delivery {
    /// The message's sequence in the stream.
    pub(super) sequence: u64,
    /// The number of this delivery, from 1.
    pub(super) count: u64,
    /// The time at which the message was kept.
    pub(super) kept: Timestamp,
}

impl Delivery {
    /// `$JS.ACK.STREAM.CONSUMER.COUNT.SEQUENCE.…TIME.PENDING`, perhaps with a domain and an account
    /// before the stream, and a random token at the end.
    pub(super) fn of(reply: &str) -> Option<Self> {
        let tokens: Vec<&str> = reply.split('.').collect();
        let at = count_at(&tokens);
        let number = |at: usize| tokens.get(at)?.parse::<u64>().ok();
        Some(Self {
            count: number(at)?,
            sequence: number(at + 1)?,
            kept: Timestamp(number(at + 3)? / 1000),
        })
    }
}

/// The place of the count among the tokens.
fn count_at(tokens: &[&str]) -> usize {
    if tokens.len() >= 11 { 6 } else { 4 }
}

/// The consumer that has delivered a claim.
pub(super) fn consumer_of(claim: &Claim) -> &str {
    let tokens: Vec<&str> = reply_of(claim).split('.').collect();
    tokens
        .get(count_at(&tokens) - 1)
        .copied()
        .unwrap_or_default()
}

/// The receipt of a claim, with its reply so far: where its message is acknowledged, the record
/// that it comes after, 0 for none, and what it is for: its generation, its fence and its id.
pub(super) fn receipt(claim: &Claim, record: u64, generation: u64) -> String {
    let (reply, fence, id) = (&claim.receipt, claim.fence.0, encoded(&claim.id));
    format!("{reply} {record} {generation} {fence} {id}")
}

/// The subject on which a claim's message is acknowledged.
pub(super) fn reply_of(claim: &Claim) -> &str {
    let split = claim.receipt.split_once(' ');
    split.map_or(&claim.receipt, |(reply, _)| reply)
}

/// A claim's fence, to compare with records. `None` if the store did not give out the claim, or not
/// in this form.
pub(super) fn fenced(claim: &Claim) -> Option<Fenced<'_>> {
    let mut words = claim.receipt.split(' ').skip(1);
    let known = words.next()?.parse().ok()?;
    let generation = words.next()?.parse().ok()?;
    let fence = words.next()?.parse().ok()?;
    let is_its = claim.fence.0 == fence && words.next()? == encoded(&claim.id);
    let id = &claim.id;
    is_its.then_some(Fenced {
        id,
        generation,
        fence,
        known,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::claim::Fence;
    use std::time::Duration;

    #[test]
    fn the_subjects_of_old_and_new_servers_are_read() {
        let delivery = Delivery {
            sequence: 30,
            count: 2,
            kept: Timestamp(1_795_366_924_521_087),
        };
        let old = "$JS.ACK.TW_q.p1.2.30.7.1795366924521087990.0";
        let new = "$JS.ACK.hub.ACC.TW_q.p1.2.30.7.1795366924521087990.0.abc";
        assert_eq!([Delivery::of(old), Delivery::of(new)], [Some(delivery); 2]);
        assert_eq!(Delivery::of("_INBOX.x"), None);
    }

    #[test]
    fn a_receipt_has_the_subject_and_the_record() {
        let mut claim = Claim::new("a", Timestamp(0), Fence(9), Duration::ZERO);
        assert!(fenced(&claim).is_none());
        claim.receipt = "$JS.ACK.x".to_owned();
        claim.receipt = receipt(&claim, 7, 8);
        assert_eq!(reply_of(&claim), "$JS.ACK.x");
        assert_eq!(consumer_of(&claim), "");
        let known = fenced(&claim).map(|own| (own.fence, own.generation, own.known));
        assert_eq!(known, Some((9, 8, 7)));
        for forged in [("a", 8), ("a", 10), ("b", 9)] {
            (claim.id, claim.fence) = (forged.0.to_owned(), Fence(forged.1));
            assert!(fenced(&claim).is_none(), "{forged:?}");
        }
    }
}
