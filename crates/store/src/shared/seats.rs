//! A number for each living thread, so that it can have a cache line of its own in a table.

use std::cell::Cell;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Threads that have a number of their own; all others have the number [`SEATS`].
pub const SEATS: usize = 256;

/// In place of a number: the thread has not asked yet.
const UNKNOWN: usize = usize::MAX;

/// The numbers that living threads of this process have, and those that ended ones gave back.
static IN_USE: Mutex<InUse> = Mutex::new(InUse {
    given: 0,
    returned: Vec::new(),
});

struct InUse {
    given: usize,
    returned: Vec<usize>,
}

/// A thread's own number, given back when the thread ends.
struct OwnNumber(usize);

impl InUse {
    fn take(&mut self) -> usize {
        self.returned.pop().unwrap_or_else(|| {
            let seat = self.given.min(SEATS);
            self.given = (seat + 1).min(SEATS);
            seat
        })
    }

    fn give_back(&mut self, seat: usize) {
        if seat < SEATS {
            self.returned.push(seat);
        }
    }
}

impl Drop for OwnNumber {
    fn drop(&mut self) {
        SEAT.set(SEATS);
        lock().give_back(self.0);
    }
}

fn lock() -> MutexGuard<'static, InUse> {
    IN_USE.lock().unwrap_or_else(PoisonError::into_inner)
}

thread_local! {
    static OWN: OwnNumber = OwnNumber(lock().take());
    /// The number of `OWN`. It needs no drop, so a look at it takes one instruction.
    static SEAT: Cell<usize> = const { Cell::new(UNKNOWN) };
}

/// This thread's number, below [`SEATS`], which no other living thread has; or [`SEATS`] if all are
/// taken, or the thread is ending and has given its own back.
#[inline]
#[must_use]
pub fn seat() -> usize {
    let seat = SEAT.get();
    if seat <= SEATS { seat } else { find() }
}

/// As [`seat`], for whoever looks in passing: a thread that has not asked for its number yet gets
/// one that is above all.
#[inline(always)]
#[must_use]
pub fn known_seat() -> usize {
    SEAT.get()
}

#[cold]
fn find() -> usize {
    let seat = OWN.try_with(|own| own.0).unwrap_or(SEATS);
    SEAT.set(seat);
    seat
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn living_threads_have_different_numbers_while_there_are_any() {
        let mut seats = InUse {
            given: 0,
            returned: Vec::new(),
        };
        for seat in 0..SEATS {
            assert_eq!(seats.take(), seat);
        }
        assert_eq!((seats.take(), seats.take()), (SEATS, SEATS));
        seats.give_back(SEATS);
        seats.give_back(7);
        seats.give_back(9);
        assert_eq!((seats.take(), seats.take(), seats.take()), (9, 7, SEATS));
    }

    #[test]
    fn a_thread_keeps_its_number_and_gives_it_back() {
        let own = seat();
        assert_eq!(seat(), own);
        let other = std::thread::spawn(seat).join().unwrap();
        assert!(other != own || own == SEATS);
    }
}
