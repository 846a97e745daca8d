//! Removes members of a packed collection when their deadlines are reached.
//!
//! One pass over the column says how many are due, and when the next one will be. Mostly one is
//! due: it is found and cut out, and nothing is collected.

use tidewheel_store::Progress;

use super::{
    DEADLINE, DEADLINE_MAX, Member, NONE, Packed, PackedPosition, PackedRef, raw_deadline,
};

/// Bytes of four deadlines, which are three words.
const FOUR: usize = 4 * DEADLINE;

/// The column's state at a moment.
#[derive(Debug, Clone, Copy)]
struct Outlook {
    /// The number of members that are due.
    due: usize,
    /// The number of members before the first that is due.
    first: usize,
    /// The earliest deadline that is not reached, or [`NONE`].
    next: u64,
}

impl Outlook {
    /// Takes in the deadlines of members, of which the first has this index.
    fn look_at(&mut self, index: usize, deadlines: impl Iterator<Item = u64>, now: u64) {
        for (index, deadline) in (index..).zip(deadlines) {
            if deadline <= now {
                self.first = self.first.min(index);
                self.due += 1;
            } else {
                self.next = self.next.min(deadline);
            }
        }
    }
}

/// The four deadlines that these bytes are.
#[inline(always)]
fn deadlines_of(four: &[u8]) -> [u64; 4] {
    let word = |at: usize| {
        four[at..]
            .first_chunk()
            .map_or(0, |word| u64::from_le_bytes(*word))
    };
    let (first, second, third) = (word(0), word(8), word(16));
    [
        first & NONE,
        (first >> 48 | second << 16) & NONE,
        (second >> 32 | third << 32) & NONE,
        third >> 16,
    ]
}

/// A member whose deadline is reached.
#[derive(Debug, Clone, Copy)]
struct Due {
    deadline: u64,
    place: PackedPosition,
}

impl Packed {
    /// Removes the members whose deadline is at or before `now`: at most `budget` of them, the
    /// earliest first, and shows each to `sink`. O(bytes), and a sort of the due.
    pub fn expire(&mut self, now: u64, budget: u32, mut sink: impl FnMut(Member<'_>)) -> Progress {
        let now = now.min(DEADLINE_MAX);
        let outlook = self.get().outlook(now);
        match self.get().nth(outlook.first) {
            Some(place) if outlook.due == 1 && budget > 0 => {
                sink(self.get().member(place));
                self.cut(&[place]);
                self.expired(1, outlook)
            }
            _ if outlook.due == 0 => self.expired(0, outlook),
            _ => self.expire_several(now, budget as usize, outlook, sink),
        }
    }

    fn expire_several(
        &mut self,
        now: u64,
        budget: usize,
        outlook: Outlook,
        mut sink: impl FnMut(Member<'_>),
    ) -> Progress {
        let mut due = self.get().due(now, outlook.due);
        if due.len() > budget {
            // Those that are equally late come in the order of the members.
            due.sort_unstable_by_key(|due| (due.deadline, due.place.index));
            due.truncate(budget);
            due.sort_unstable_by_key(|due| due.place.index);
        }
        self.get().locate(&mut due);
        let gone: Vec<PackedPosition> = due.iter().map(|due| due.place).collect();
        due.sort_by_key(|due| due.deadline);
        for due in &due {
            sink(self.get().member(due.place));
        }
        self.cut(&gone);
        self.expired(gone.len(), outlook)
    }

    /// Some have left. Drops the column if it says nothing any more.
    fn expired(&mut self, gone: usize, outlook: Outlook) -> Progress {
        let backlog = gone < outlook.due;
        if gone > 0 && !backlog && outlook.next == NONE {
            self.drop_column();
        }
        Progress {
            fired: gone as u32,
            moved: 0,
            backlog,
            next_deadline: match backlog {
                true => self.get().earliest(),
                false => Some(outlook.next).filter(|next| *next != NONE),
            },
        }
    }
}

impl PackedRef<'_> {
    /// Returns whether the deadlines of all members are at or before `now`. O(members).
    #[must_use]
    pub fn is_over(self, now: u64) -> bool {
        let now = now.min(DEADLINE_MAX);
        self.is_empty() || self.is_timed() && self.deadlines().all(|deadline| deadline <= now)
    }

    fn outlook(self, now: u64) -> Outlook {
        let mut outlook = Outlook {
            due: 0,
            first: usize::MAX,
            next: NONE,
        };
        let (mut fours, mut index) = (self.column().chunks_exact(FOUR), 0);
        for four in &mut fours {
            let four = deadlines_of(four);
            // Mostly none of them is due, and a test for each would cost more than their minimum.
            let earliest = four[0].min(four[1]).min(four[2].min(four[3]));
            if earliest > now {
                outlook.next = outlook.next.min(earliest);
            } else {
                outlook.look_at(index, four.into_iter(), now);
            }
            index += four.len();
        }
        let rest = fours.remainder().chunks_exact(DEADLINE);
        outlook.look_at(index, rest.map(raw_deadline), now);
        outlook
    }

    /// The members that are due, by what the column says: their offsets are not known yet.
    fn due(self, now: u64, count: usize) -> Vec<Due> {
        let mut due = Vec::with_capacity(count);
        for (index, deadline) in self.deadlines().enumerate() {
            if deadline <= now {
                let place = PackedPosition { at: 0, index };
                due.push(Due { deadline, place });
            }
        }
        due
    }

    /// Finds the offsets of members, which are in their order.
    fn locate(self, due: &mut [Due]) {
        let (_, mut at) = self.header();
        let mut index = 0;
        for due in due {
            while index < due.place.index {
                at = self.after(at);
                index += 1;
            }
            due.place.at = at;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All lengths of the column around its fours, and all that may be due.
    #[test]
    fn a_column_of_any_length_says_what_is_due_and_when_the_next_is() {
        for len in 0..14_u64 {
            let mut packed = Packed::of_singles();
            for i in 0..len {
                let place = packed.push(format!("member {i}").as_bytes(), b"");
                // Each length has other bytes in each word; every seventh member has none.
                let deadline = (i % 7 != 6).then_some((i * 5 % len + 1) * 0x0101_0101_0101);
                packed.set_deadline(place, deadline);
            }
            for now in (0..=len + 1).map(|step| step * 0x0101_0101_0101) {
                let outlook = packed.get().outlook(now);
                let deadlines: Vec<u64> = packed.get().deadlines().collect();
                let due = |deadline: &u64| *deadline <= now;
                assert_eq!(outlook.due, deadlines.iter().filter(|d| due(d)).count());
                let first = deadlines.iter().position(due);
                assert_eq!(outlook.first, first.unwrap_or(usize::MAX));
                let next = deadlines.iter().copied().filter(|d| !due(d)).min();
                assert_eq!(outlook.next, next.unwrap_or(NONE));
            }
        }
    }
}
