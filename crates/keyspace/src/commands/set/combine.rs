//! Computes the members of a union, an intersection or a difference of sets.

use std::cmp::Reverse;
use std::collections::HashSet;

use tidewheel_collections::SetRef;

/// Looks after which it is worth hashing a packed set's members.
const LOOKS: u32 = 16;

/// Members between two looks at the limit.
const STEP: usize = 32;

/// An operation on several sets.
#[derive(Debug, Clone, Copy)]
pub(super) enum SetOperation {
    Inter,
    Union,
    Diff,
}

impl SetOperation {
    /// Visits each member of the result once. `None` is a set without members.
    pub(super) fn apply<'a>(self, sets: Vec<Option<SetRef<'a>>>, visit: impl FnMut(&'a [u8])) {
        match self {
            Self::Inter => common(sets, usize::MAX, visit),
            Self::Union => union(sets.into_iter().flatten().collect(), visit),
            Self::Diff => {
                let mut sets = sets.into_iter();
                if let Some(first) = sets.next().flatten() {
                    difference(first, sets.flatten().collect(), visit);
                }
            }
        }
    }
}

/// Visits the members that all sets have, up to a limit. Looks at the members of the smallest set,
/// and for each of them into the others.
pub(super) fn common<'a>(
    sets: Vec<Option<SetRef<'a>>>,
    limit: usize,
    mut visit: impl FnMut(&'a [u8]),
) {
    let Some(mut sets) = sets.into_iter().collect::<Option<Vec<_>>>() else {
        return;
    };
    sets.sort_by_key(|set| set.len());
    let mut sets = sets.into_iter();
    let Some(smallest) = sets.next() else { return };
    let mut others: Vec<_> = sets.map(Lookups::new).collect();
    let (mut n, mut cursor) = (0, 0);
    loop {
        cursor = smallest.scan(cursor, STEP, |entry| {
            if n < limit && others.iter_mut().all(|other| other.contains(entry.key)) {
                n += 1;
                visit(entry.key);
            }
        });
        if cursor == 0 || n == limit {
            return;
        }
    }
}

/// Visits the members of all sets. Remembers those that the largest set lacks.
fn union<'a>(mut sets: Vec<SetRef<'a>>, mut visit: impl FnMut(&'a [u8])) {
    sets.sort_by_key(|set| Reverse(set.len()));
    let mut sets = sets.into_iter();
    let Some(largest) = sets.next() else { return };
    largest.for_each(|entry| visit(entry.key));
    let (mut largest, mut seen) = (Lookups::new(largest), HashSet::new());
    for set in sets {
        set.for_each(|entry| {
            if !largest.contains(entry.key) && seen.insert(entry.key) {
                visit(entry.key);
            }
        });
    }
}

/// Visits the members of the first set that no other has.
fn difference<'a>(first: SetRef<'a>, others: Vec<SetRef<'a>>, visit: impl FnMut(&'a [u8])) {
    let all = others.iter().fold(0, |sum: usize, set| sum + set.len());
    // A member that another set has is found in half of them, on average.
    let looks = first.len().saturating_mul(others.len()) / 2;
    if looks <= all {
        difference_by_looks(first, others, visit);
    } else {
        difference_by_marks(first, others, visit);
    }
}

/// Looks into the others for each member of the first: the largest one is the most likely to have
/// it.
fn difference_by_looks<'a>(
    first: SetRef<'a>,
    mut others: Vec<SetRef<'a>>,
    mut visit: impl FnMut(&'a [u8]),
) {
    others.sort_by_key(|set| Reverse(set.len()));
    let mut others: Vec<_> = others.into_iter().map(Lookups::new).collect();
    first.for_each(|entry| {
        if !others.iter_mut().any(|other| other.contains(entry.key)) {
            visit(entry.key);
        }
    });
}

/// Looks into the first for each member of the others, and remembers what it finds.
fn difference_by_marks<'a>(
    first: SetRef<'a>,
    others: Vec<SetRef<'a>>,
    mut visit: impl FnMut(&'a [u8]),
) {
    let (mut lookups, mut marked) = (Lookups::new(first), HashSet::new());
    for other in others {
        other.for_each(|entry| {
            if lookups.contains(entry.key) {
                marked.insert(entry.key);
            }
        });
    }
    first.for_each(|entry| {
        if !marked.contains(entry.key) {
            visit(entry.key);
        }
    });
}

/// A set in which many members are looked for. A look into a packed set takes time in proportion to
/// its length: after a few, its members are hashed.
struct Lookups<'a> {
    set: SetRef<'a>,
    looks: u32,
    hashed: Option<HashSet<&'a [u8]>>,
}

impl<'a> Lookups<'a> {
    fn new(set: SetRef<'a>) -> Self {
        let (looks, hashed) = (0, None);
        Self { set, looks, hashed }
    }

    fn contains(&mut self, member: &[u8]) -> bool {
        if let Some(hashed) = &self.hashed {
            return hashed.contains(member);
        }
        if matches!(self.set, SetRef::Packed(_)) {
            self.looks += 1;
            if self.looks == LOOKS {
                let mut hashed = HashSet::with_capacity(self.set.len());
                self.set.for_each(|entry| {
                    hashed.insert(entry.key);
                });
                self.hashed = Some(hashed);
            }
        }
        self.set.contains(member)
    }
}
