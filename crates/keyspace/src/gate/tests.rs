//! Tests of the gate with real threads.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier};

use super::{Gate, RAISED, Seat};

/// Counts who is inside, and knows when somebody should not be.
struct Room {
    workers: AtomicUsize,
    exclusive: AtomicUsize,
    /// Exclusive sections that have ended.
    sections: AtomicU64,
    stop: AtomicBool,
    /// Nobody is done before everybody has begun.
    begin: Barrier,
}

impl Room {
    fn work(&self) {
        self.workers.fetch_add(1, SeqCst);
        for _ in 0..20 {
            assert_eq!(
                self.exclusive.load(SeqCst),
                0,
                "a command beside exclusive work"
            );
            std::hint::spin_loop();
        }
        self.workers.fetch_sub(1, SeqCst);
    }

    fn exclusive_work(&self) {
        assert_eq!(
            self.exclusive.fetch_add(1, SeqCst),
            0,
            "two exclusive users"
        );
        for _ in 0..20 {
            assert_eq!(
                self.workers.load(SeqCst),
                0,
                "exclusive work beside a command"
            );
            std::hint::spin_loop();
        }
        self.exclusive.fetch_sub(1, SeqCst);
        self.sections.fetch_add(1, SeqCst);
    }

    /// A loop that never sleeps, and so never leaves by itself.
    fn busy_loop(&self, seat: &mut Seat) -> u64 {
        let mut commands = 0;
        seat.enter();
        self.begin.wait();
        while commands == 0 || !self.stop.load(SeqCst) {
            let before = self.sections.load(SeqCst);
            seat.give_way();
            let waited_for = self.sections.load(SeqCst) - before;
            assert!(waited_for <= 1, "starved by {waited_for} exclusive users");
            self.work();
            commands += 1;
        }
        commands
    }

    /// A loop that sleeps after each batch of one command.
    fn sleepy_loop(&self, seat: &mut Seat) -> u64 {
        let mut commands = 0;
        self.begin.wait();
        while !self.stop.load(SeqCst) {
            seat.enter();
            self.work();
            seat.leave();
            commands += 1;
        }
        commands
    }
}

#[test]
fn exclusive_users_overlap_neither_each_other_nor_a_batch_and_nobody_starves() {
    const USERS: u64 = 3;
    const ROUNDS: u64 = 60;
    let gate = Arc::new(Gate::default());
    let room = Room {
        workers: AtomicUsize::new(0),
        exclusive: AtomicUsize::new(0),
        sections: AtomicU64::new(0),
        stop: AtomicBool::new(false),
        begin: Barrier::new(7),
    };
    let users_left = AtomicU64::new(USERS);
    std::thread::scope(|scope| {
        let busy = [0, 1].map(|_| scope.spawn(|| room.busy_loop(&mut gate.seat())));
        let sleepy = [0, 1].map(|_| scope.spawn(|| room.sleepy_loop(&mut gate.seat())));
        for user in 0..USERS {
            let (gate, room, users_left) = (&gate, &room, &users_left);
            scope.spawn(move || {
                let mut seat = gate.seat();
                room.begin.wait();
                for _ in 0..ROUNDS {
                    // One of them is a loop that is inside when it asks.
                    if user == 0 {
                        seat.enter();
                    }
                    let alone = seat.exclusive();
                    room.exclusive_work();
                    drop(alone);
                    assert_eq!(seat.inside, user == 0);
                    if user == 0 {
                        seat.give_way();
                        room.work();
                        seat.leave();
                    }
                }
                if users_left.fetch_sub(1, SeqCst) == 1 {
                    room.stop.store(true, SeqCst);
                }
            });
        }
        for commands in busy.map(|thread| thread.join().expect("no overlap")) {
            // It had to step aside for each of them, and it ran a command before the next.
            assert!(commands >= USERS * ROUNDS, "starved: {commands}");
        }
        for commands in sleepy.map(|thread| thread.join().expect("no overlap")) {
            assert!(commands > 0, "starved");
        }
    });
    assert_eq!(room.sections.load(SeqCst), USERS * ROUNDS);
    assert_eq!(gate.bits(), 0);
    assert!(gate.turns.state.lock().seats.is_empty());
}

#[test]
fn a_panic_in_exclusive_work_lets_the_others_go_on() {
    let gate = Arc::new(Gate::default());
    let mut seat = gate.seat();
    seat.enter();
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _alone = seat.exclusive();
        panic!("user code");
    }));
    assert!(panicked.is_err());
    assert!(seat.inside && gate.bits() & RAISED == 0);
    drop(seat);
    let mut other = gate.seat();
    other.enter();
    drop(other.exclusive());
}

#[test]
fn a_seat_that_is_dropped_inside_keeps_nobody_waiting() {
    let gate = Arc::new(Gate::default());
    let mut seat = gate.seat();
    seat.enter();
    std::thread::scope(|scope| {
        scope.spawn(|| drop(gate.seat().exclusive()));
        while gate.bits() & RAISED == 0 {
            std::thread::yield_now();
        }
        drop(seat);
    });
}

#[test]
fn the_shells_bits_and_the_gates_do_not_disturb_each_other() {
    let gate = Arc::new(Gate::default());
    gate.set(1 | 8);
    let mut seat = gate.seat();
    let alone = seat.exclusive();
    assert_eq!(gate.bits(), RAISED | 1 | 8);
    gate.clear(1);
    drop(alone);
    assert_eq!(gate.bits(), 8);
}

#[test]
fn nobody_gets_the_whole_keyspace_while_one_stays_inside() {
    let gate = Arc::new(Gate::default());
    let (mut stays, mut asks) = (gate.seat(), gate.seat());
    stays.enter();
    // The one who stays says so before, or while, the other waits for it.
    for before in [true, false] {
        std::thread::scope(|scope| {
            if before {
                stays.stay();
            }
            let asked = scope.spawn(|| asks.take_whole());
            while !before && gate.bits() & RAISED == 0 {
                std::thread::yield_now();
            }
            stays.stay();
            assert!(!asked.join().unwrap());
        });
        assert_eq!(gate.bits() & RAISED, 0);
        // It neither leaves nor gives way.
        stays.leave();
        assert!(stays.is_inside());
        stays.moves();
    }
    stays.leave();
    assert!(asks.take_whole());
    asks.give_back();
}

#[test]
fn others_go_on_outside_while_the_keyspace_is_shut() {
    let gate = Arc::new(Gate::default());
    let (mut shuts, mut comes, mut asks) = (gate.seat(), gate.seat(), gate.seat());
    let (mut steps, mut waits) = (gate.seat(), gate.seat());
    steps.enter();
    std::thread::scope(|scope| {
        let stepped = scope.spawn(|| {
            while gate.bits() & RAISED == 0 {
                std::thread::yield_now();
            }
            steps.try_give_way()
        });
        assert!(shuts.take_whole());
        let asked = scope.spawn(|| asks.take_whole());
        let came = scope.spawn(|| comes.try_enter());
        let waited = scope.spawn(|| waits.enter());
        shuts.shut();
        assert!(!stepped.join().unwrap());
        assert!(!asked.join().unwrap());
        assert!(!came.join().unwrap());
        assert!(!waited.is_finished(), "it can do nothing outside");
        shuts.give_back();
        waited.join().unwrap();
    });
    waits.leave();
    assert!(!steps.is_shut_out() && steps.try_enter());
    steps.leave();
    // The one who has not waited is in nobody's way.
    assert!(comes.take_whole());
    comes.give_back();
    assert!(asks.take_whole());
    asks.give_back();
}
