//! How members of a packed collection leave when their deadlines are reached.
//!
//! One pass over the column says how many are due, and when the next one will be. Mostly one is due: it is found and cut
//! out, and nothing is collected.

use tidewheel_store::Progress;

use super::{DEADLINE_MAX, Member, NONE, Packed, PackedRef, Place};

/// What the column says of a moment.
#[derive(Debug, Clone, Copy)]
struct Outlook {
    /// How many are due.
    due: usize,
    /// How many members come before the first that is due.
    first: usize,
    /// The earliest deadline that is not reached, or [`NONE`].
    next: u64,
}

/// A member whose deadline is reached.
#[derive(Debug, Clone, Copy)]
struct Due {
    deadline: u64,
    place: Place,
}

impl Packed {
    /// Removes the members whose deadline is at or before `now`: at most `budget` of them, the earliest first, and
    /// shows each to `sink`. O(bytes), and a sort of the due.
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
        let gone: Vec<Place> = due.iter().map(|due| due.place).collect();
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
    /// Whether the deadlines of all members are at or before `now`. O(members).
    #[must_use]
    pub fn is_over(self, now: u64) -> bool {
        let now = now.min(DEADLINE_MAX);
        self.is_empty() || self.is_timed() && self.deadlines().all(|deadline| deadline <= now)
    }

    fn outlook(self, now: u64) -> Outlook {
        let (mut due, mut first, mut next) = (0, usize::MAX, NONE);
        for (index, deadline) in self.deadlines().enumerate() {
            if deadline <= now {
                first = first.min(index);
                due += 1;
            } else {
                next = next.min(deadline);
            }
        }
        Outlook { due, first, next }
    }

    /// The members that are due, by what the column says: their offsets are not known yet.
    fn due(self, now: u64, count: usize) -> Vec<Due> {
        let mut due = Vec::with_capacity(count);
        for (index, deadline) in self.deadlines().enumerate() {
            if deadline <= now {
                let place = Place { at: 0, index };
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
