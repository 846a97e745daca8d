//! The gate: gives one thread the whole keyspace for a moment. It costs every other thread two
//! stores a batch.
//!
//! # How it works
//!
//! 1. Each thread that uses the keyspace has a [`Seat`]: a cache line of its own, which says
//!    whether the thread is inside. An event loop enters before a batch of commands and leaves
//!    before it sleeps.
//! 2. A thread that needs the whole keyspace calls [`Seat::exclusive`]. It leaves its own seat,
//!    waits for its turn, raises [`RAISED`] and waits until every seat is empty. Then it is alone.
//!    Lowering the bit lets the others in.
//! 3. A thread that is inside looks at the bit between two commands, and between two holds of
//!    expiry. While it is raised the thread steps aside: it leaves, waits until the bit is lowered,
//!    and enters again.
//!
//! # Why nobody is inside beside an exclusive user
//!
//! A thread that enters stores "inside" and *then* reads the bit. A thread that raises stores the
//! bit and *then* reads the seats. All four accesses are sequentially consistent, so at least one
//! of the two sees the other's store.
//!
//! # Who has it for long
//!
//! A thread that is inside may say that it [stays](Seat::stay): then nobody gets the whole keyspace
//! until it is done. One that has the whole keyspace may say that it is [shut](Seat::shut): then
//! those who can do without go on outside ([`Seat::try_enter`]), and the others wait.
//!
//! # Why nobody starves
//!
//! Exclusive users are served in the order in which they asked. The next one raises the bit only
//! after all threads that stepped aside for the one before are inside again. A thread that is
//! inside again runs one command before it looks at the bit. So no command waits for two exclusive
//! users. An exclusive user waits for those before it, and for commands that have begun.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::order::{HeldLock, Rank};

/// The bit of [`Gate::bits`] that asks everybody to step aside. The others are the shell's.
pub const RAISED: u8 = 1 << 7;

/// The bit of [`Gate::bits`] that the shell sets during a pause. Nothing expires and nothing is
/// evicted meanwhile; only a command that writes removes a dead key that it finds. Those who wait
/// for keys are not served.
pub const PAUSED: u8 = 1 << 6;

/// The gate of one keyspace.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Gate {
    /// Read by everybody before every command, so on a line that is hardly ever written.
    bits: AtomicU8,
    /// Somebody has the whole keyspace for long.
    shut: AtomicBool,
    turns: GateTurns,
}

#[derive(Debug, Default)]
#[repr(align(128))]
struct GateTurns {
    state: Mutex<GateState>,
    /// Something in `state` changed, or a seat was left while the bit was raised.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct GateState {
    seats: Vec<Arc<InsideFlag>>,
    raised: bool,
    /// Threads that stepped aside and have not entered again.
    aside: usize,
    /// The next exclusive user's number, and the number whose turn it is.
    next: u64,
    serving: u64,
    /// Later numbers whose users do not wait any more.
    gone: BTreeSet<u64>,
}

/// Set while a seat's owner is inside. It takes two cache lines, so neighbours never share one.
#[derive(Debug, Default)]
#[repr(align(128))]
struct InsideFlag {
    inside: AtomicBool,
    /// Its owner will be inside for long. Nobody waits for that.
    stays: AtomicBool,
}

impl Gate {
    /// Bits that are looked at before every command: [`RAISED`], and the shell's own.
    #[inline(always)]
    #[must_use]
    pub fn bits(&self) -> u8 {
        self.bits.load(Ordering::Relaxed)
    }

    /// Sets bits of the shell.
    pub fn set(&self, bits: u8) {
        debug_assert_eq!(bits & RAISED, 0, "that bit is the gate's");
        self.bits.fetch_or(bits, Ordering::SeqCst);
    }

    /// Clears bits of the shell.
    pub fn clear(&self, bits: u8) {
        debug_assert_eq!(bits & RAISED, 0, "that bit is the gate's");
        self.bits.fetch_and(!bits, Ordering::SeqCst);
    }

    /// A seat for one more thread. It is empty at first.
    #[must_use]
    pub(crate) fn seat(self: &Arc<Self>) -> Seat {
        let line = Arc::new(InsideFlag::default());
        self.turns.state.lock().seats.push(Arc::clone(&line));
        Seat {
            gate: Arc::clone(self),
            line,
            inside: false,
            stays: false,
            delay_ns: 0,
            whole: None,
        }
    }

    fn is_shut(&self) -> bool {
        self.shut.load(Ordering::SeqCst)
    }

    fn raised(&self) -> bool {
        self.bits.load(Ordering::SeqCst) & RAISED != 0
    }
}

impl GateTurns {
    /// Waits while `reason` holds.
    fn wait_while(
        &self,
        state: &mut MutexGuard<'_, GateState>,
        reason: impl Fn(&GateState) -> bool,
    ) {
        while reason(state) {
            self.changed.wait(state);
        }
    }
}

/// One thread's place at the gate: without one, nothing of the keyspace can be used. Dropping it
/// leaves.
///
/// A thread that is inside on one seat must not ask for exclusive use on another: it would wait for
/// itself.
#[derive(Debug)]
pub struct Seat {
    gate: Arc<Gate>,
    line: Arc<InsideFlag>,
    /// The value of `line`, without the cost of an atomic read.
    inside: bool,
    /// Its owner stays inside, whoever waits.
    stays: bool,
    /// Time that commands needed to make room.
    delay_ns: u64,
    /// Its owner has the whole keyspace, until [`give_back`](Self::give_back).
    whole: Option<WholeKeyspace>,
}

/// The whole keyspace in one thread's hands.
#[derive(Debug)]
struct WholeKeyspace {
    was_inside: bool,
    #[allow(dead_code, reason = "the record of the lock")]
    order: HeldLock,
}

impl Seat {
    /// The gate's [`bits`](Gate::bits).
    #[inline(always)]
    #[must_use]
    pub fn bits(&self) -> u8 {
        self.gate.bits()
    }

    /// True if its owner is inside.
    #[inline(always)]
    #[must_use]
    pub fn is_inside(&self) -> bool {
        self.inside
    }

    /// The nanoseconds for which commands on this seat have made room since the last call. Such a
    /// command takes longer than its size tells, so the clock should be read again.
    #[inline]
    #[must_use]
    pub fn take_delay_ns(&mut self) -> u64 {
        match self.delay_ns {
            0 => 0,
            _ => std::mem::take(&mut self.delay_ns),
        }
    }

    /// A command has made room, which took so long.
    pub(crate) fn delay(&mut self, ns: u64) {
        self.delay_ns = self.delay_ns.saturating_add(ns.max(1));
    }

    /// Goes inside for a batch of commands; waits while somebody uses the keyspace exclusively.
    /// Does nothing if it is inside already. Nothing may be locked.
    #[inline]
    pub fn enter(&mut self) {
        if self.inside {
            return;
        }
        drop(HeldLock::new(Rank::Gate));
        self.line.inside.swap(true, Ordering::SeqCst);
        if self.gate.raised() {
            self.step_aside();
        }
        self.inside = true;
    }

    /// As [`enter`](Self::enter), unless the keyspace is shut. Returns whether it is
    /// inside.
    #[inline]
    #[must_use]
    pub fn try_enter(&mut self) -> bool {
        if self.inside {
            return true;
        }
        drop(HeldLock::new(Rank::Gate));
        self.line.inside.swap(true, Ordering::SeqCst);
        self.inside = !self.gate.raised() || self.step_aside_unless(|gate| gate.is_shut());
        self.inside
    }

    /// True if another has the whole keyspace for long.
    #[must_use]
    pub fn is_shut_out(&self) -> bool {
        !self.inside && self.gate.is_shut()
    }

    /// Leaves after a batch of commands. Nothing may be locked.
    #[inline]
    pub fn leave(&mut self) {
        if !self.inside || self.whole.is_some() || self.stays {
            return;
        }
        self.inside = false;
        self.line.inside.swap(false, Ordering::SeqCst);
        if self.gate.raised() {
            self.tell();
        }
    }

    /// Lets an exclusive user that waits go first. Call it between two pieces of work, and do one
    /// piece of work before the next call. Nothing may be locked.
    #[inline]
    pub fn give_way(&mut self) {
        if self.bits() & RAISED != 0 && self.inside && self.whole.is_none() && !self.stays {
            self.step_aside();
        }
    }

    /// As [`give_way`](Self::give_way). If the keyspace is shut meanwhile, the seat
    /// stays outside. Returns whether it is inside.
    #[inline]
    #[must_use]
    pub fn try_give_way(&mut self) -> bool {
        if self.bits() & RAISED != 0 && self.inside && self.whole.is_none() && !self.stays {
            self.inside = self.step_aside_unless(|gate| gate.is_shut());
        }
        self.inside
    }

    /// Says that it will have the whole keyspace for long. Until it gives it back, others go on
    /// outside if they can.
    pub(crate) fn shut(&mut self) {
        if self.whole.is_some() {
            let turns = &self.gate.turns;
            let state = turns.state.lock();
            self.gate.shut.store(true, Ordering::SeqCst);
            drop(state);
            turns.changed.notify_all();
        }
    }

    /// Stays inside for long, with locks that it keeps: until [`moves`](Self::moves) it neither
    /// leaves nor gives way, and who wants the whole keyspace does not get it.
    pub(crate) fn stay(&mut self) {
        if self.whole.is_some() {
            return;
        }
        self.stays = true;
        self.line.stays.store(true, Ordering::SeqCst);
        if self.gate.raised() {
            self.tell();
        }
    }

    /// Ends what `stay` has begun.
    pub fn moves(&mut self) {
        if std::mem::take(&mut self.stays) {
            self.line.stays.store(false, Ordering::SeqCst);
        }
    }

    /// True between [`stay`](Self::stay) and [`moves`](Self::moves).
    pub(crate) fn stays(&self) -> bool {
        self.stays
    }

    /// Goes inside; the guard leaves if the seat was empty.
    #[inline]
    pub(crate) fn visit(&mut self) -> Visit<'_> {
        let leaves = !self.inside;
        self.enter();
        Visit { seat: self, leaves }
    }

    /// Waits until every other thread is outside, and keeps them there until the guard is dropped.
    /// Nothing may be locked. A seat that has the whole keyspace already just keeps it.
    #[must_use]
    pub fn exclusive(&mut self) -> Exclusive<'_> {
        let ends = self.whole.is_none();
        while !self.take_whole() {
            std::thread::yield_now();
        }
        Exclusive { seat: self, ends }
    }

    /// As [`exclusive`](Self::exclusive), unless another stays inside for long.
    pub(crate) fn try_exclusive(&mut self) -> Option<Exclusive<'_>> {
        let ends = self.whole.is_none();
        let taken = self.take_whole();
        taken.then_some(Exclusive { seat: self, ends })
    }

    /// As [`exclusive`](Self::exclusive), until [`give_back`](Self::give_back): for several
    /// commands in a row. Meanwhile the seat counts as inside. False if another stays inside for
    /// long: then nothing has changed.
    #[must_use]
    pub(crate) fn take_whole(&mut self) -> bool {
        if self.whole.is_some() {
            return true;
        }
        let order = HeldLock::new(Rank::Gate);
        let was_inside = self.inside;
        self.leave();
        let gate = Arc::clone(&self.gate);
        let turns = &gate.turns;
        let mut state = turns.state.lock();
        let number = state.next;
        state.next += 1;
        turns.wait_while(&mut state, |state| {
            let waits = state.raised || state.aside > 0 || state.serving != number;
            waits && !gate.is_shut()
        });
        if gate.is_shut() {
            state.gone.insert(number);
            drop(state);
            drop(order);
            self.inside = was_inside && self.try_enter();
            return false;
        }
        state.raised = true;
        self.gate.bits.fetch_or(RAISED, Ordering::SeqCst);
        turns.wait_while(&mut state, |state| {
            state.somebody_inside() && !state.somebody_stays()
        });
        if state.somebody_stays() {
            self.lower(state, was_inside);
            return false;
        }
        drop(state);
        self.inside = true;
        self.whole = Some(WholeKeyspace { was_inside, order });
        true
    }

    /// True if the seat has the whole keyspace.
    pub(crate) fn has_whole(&self) -> bool {
        self.whole.is_some()
    }

    /// Lets the others go on, if the seat has the whole keyspace. It is then inside again if it was
    /// before.
    pub fn give_back(&mut self) {
        let Some(whole) = self.whole.take() else {
            return;
        };
        let gate = Arc::clone(&self.gate);
        self.lower(gate.turns.state.lock(), whole.was_inside);
    }

    /// Lowers the bit that it has raised, and is inside again if it was.
    fn lower(&mut self, mut state: MutexGuard<'_, GateState>, was_inside: bool) {
        state.raised = false;
        self.gate.shut.store(false, Ordering::SeqCst);
        state.serving += 1;
        while state.gone.contains(&state.serving) {
            let gone = state.serving;
            state.gone.remove(&gone);
            state.serving += 1;
        }
        // Under the lock: the next exclusive user sees it.
        self.line.inside.store(was_inside, Ordering::SeqCst);
        self.inside = was_inside;
        self.gate.bits.fetch_and(!RAISED, Ordering::SeqCst);
        self.gate.turns.changed.notify_all();
    }

    /// Leaves while the bit is raised, and goes inside again.
    #[cold]
    fn step_aside(&self) {
        let is_inside = self.step_aside_unless(|_| false);
        debug_assert!(is_inside, "it waits for as long as it takes");
    }

    /// As [`step_aside`](Self::step_aside), but stays outside if `gives_up`. Returns whether it is
    /// inside.
    #[cold]
    fn step_aside_unless(&self, gives_up: impl Fn(&Gate) -> bool) -> bool {
        drop(HeldLock::new(Rank::Gate));
        let turns = &self.gate.turns;
        let mut state = turns.state.lock();
        if !state.raised {
            return true;
        }
        state.aside += 1;
        self.line.inside.store(false, Ordering::SeqCst);
        turns.changed.notify_all();
        turns.wait_while(&mut state, |state| state.raised && !gives_up(&self.gate));
        // Under the lock: nobody can raise the bit before it is seen.
        let is_inside = !state.raised;
        self.line.inside.store(is_inside, Ordering::SeqCst);
        state.aside -= 1;
        turns.changed.notify_all();
        is_inside
    }

    /// Wakes the exclusive user, which looks at the seats again.
    #[cold]
    fn tell(&self) {
        let turns = &self.gate.turns;
        // The exclusive user checks the seats under this lock: it has seen the change, or it waits
        // and is woken.
        drop(turns.state.lock());
        turns.changed.notify_all();
    }
}

impl GateState {
    fn somebody_inside(&self) -> bool {
        let mut seats = self.seats.iter();
        seats.any(|seat| seat.inside.load(Ordering::SeqCst))
    }

    fn somebody_stays(&self) -> bool {
        let mut seats = self.seats.iter();
        seats.any(|seat| seat.stays.load(Ordering::SeqCst))
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.give_back();
        self.moves();
        self.leave();
        let mut state = self.gate.turns.state.lock();
        state.seats.retain(|line| !Arc::ptr_eq(line, &self.line));
    }
}

/// A seat that is inside, and leaves at the end if it was empty before.
#[derive(Debug)]
pub(crate) struct Visit<'a> {
    pub(crate) seat: &'a mut Seat,
    leaves: bool,
}

impl Drop for Visit<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.leaves {
            self.seat.leave();
        }
    }
}

/// Proof that no other thread is inside. Dropping it, even by a panic, lets the others go on. The
/// seat is then inside again if it was before.
#[derive(Debug)]
pub struct Exclusive<'a> {
    seat: &'a mut Seat,
    /// True if the exclusive use began with this guard.
    ends: bool,
}

impl Drop for Exclusive<'_> {
    fn drop(&mut self) {
        if self.ends {
            self.seat.give_back();
        }
    }
}

#[cfg(test)]
mod tests;
