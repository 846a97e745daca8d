//! Answers that are left to chance: members of a collection.

use tidewheel_resp::Reply;

use super::expect::leaves;
use super::{Bytes, Expect};

/// The members that an answer names, which must be there, with what belongs to them. `width` leaves
/// belong to one.
pub(super) fn named(
    answer: &Reply,
    width: usize,
    is_there: impl Fn(&[u8], &[Reply]) -> bool,
) -> Vec<Bytes> {
    let leaves = leaves(answer);
    let mut names = Vec::new();
    for group in leaves.chunks(width) {
        let Reply::Bulk(name) = &group[0] else {
            panic!("no member: {answer:?}");
        };
        assert!(is_there(name, &group[1..]), "no such member: {group:?}");
        names.push(name.clone());
    }
    names
}

/// Checks an answer to HRANDFIELD and its kin, for a collection of `len` members.
pub(super) fn check(
    answer: &Reply,
    count: Option<i64>,
    width: usize,
    len: usize,
    is_there: impl Fn(&[u8], &[Reply]) -> bool,
) -> Expect {
    if *answer == Reply::Null {
        assert!(count.is_none() && len == 0, "nobody of {len}");
        return Expect::AsAnswered;
    }
    let mut names = named(answer, width, is_there);
    let wanted = match count {
        None => 1,
        Some(count) if count < 0 && len > 0 => count.unsigned_abs() as usize,
        Some(count) => len.min(count.max(0) as usize),
    };
    assert_eq!(names.len(), wanted, "{count:?} of {len}");
    if count.is_some_and(|count| count > 0) {
        names.sort();
        names.dedup();
        assert_eq!(names.len(), wanted, "each once");
    }
    Expect::AsAnswered
}
