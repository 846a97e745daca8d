//! Tasks that looks have shown to have ended.
//!
//! What waited for a task when it had ended waits for it no longer, whatever has its id since. So a
//! thousand parents of the same ten children cost ten looks when the last child has ended, and not
//! ten thousand; and a parent of many children asks once about each.

use std::collections::HashMap;

use crate::shape::waits::Waits;

/// With more, all are forgotten: what is not known is asked again.
const MOST: usize = 10_000;

/// The ids of tasks that have ended, each with the number of the latest claim that the worker had
/// before it asked: that claim and those before it waited then.
#[derive(Debug, Default)]
pub(super) struct SeenEnds(HashMap<String, u64>);

impl SeenEnds {
    /// Those of `waits` that are not known to have ended for the claim of this number. All of them
    /// if a dead one counts: it has ended, too.
    pub(super) fn left_of(&self, waits: &Waits, key: u64) -> Waits {
        let mut left = waits.clone();
        if !left.needs_all {
            left.ids
                .retain(|id| self.0.get(id).is_none_or(|latest| *latest < key));
        }
        left
    }

    /// Notes that these have ended, which was asked when the claim `latest` was there.
    pub(super) fn note(&mut self, ended: &[String], latest: u64) {
        if self.0.len() + ended.len() > MOST {
            self.0.clear();
        }
        self.0.extend(ended.iter().map(|id| (id.clone(), latest)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_counts_for_the_claims_that_were_there() {
        let mut seen = SeenEnds::default();
        let waits = Waits::new(["a", "b"], false);
        seen.note(&["a".to_owned()], 7);
        assert_eq!(seen.left_of(&waits, 7).ids, ["b"]);
        assert_eq!(seen.left_of(&waits, 8), waits);
        let needs = Waits::new(["a", "b"], true);
        assert_eq!(seen.left_of(&needs, 7), needs);
    }

    #[test]
    fn ends_beyond_the_limit_are_forgotten() {
        let mut seen = SeenEnds::default();
        let ids: Vec<_> = (0..=MOST).map(|n| n.to_string()).collect();
        for ids in ids.chunks(100) {
            seen.note(ids, 1);
            assert!(seen.0.len() <= MOST);
        }
        assert!(
            seen.left_of(&Waits::new([&*ids[MOST]], false), 1)
                .ids
                .is_empty()
        );
    }
}
