//! Durable jobs in virtual time: attempts, dead letters, acknowledgements, periods.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use tidewheel_scheduler::{
    Ack, CatchUp, Clock, Durable, DurableHandle, Error, ManualClock, MemoryJournal, Outcome, Place,
    Repeat, Retry, Scheduler, Serial, Status,
};

use crate::common::memory;
use crate::common::{HOUR, MS};

const SECOND: Duration = Duration::from_secs(1);

type Journal = MemoryJournal<u32, &'static str>;
type Jobs = Durable<u32, &'static str, Journal>;
type Handle = DurableHandle<u32, &'static str, Journal>;

/// The runs that were seen: key, value, attempt.
type Runs = Arc<Mutex<Vec<(u32, &'static str, u32)>>>;

/// A scheduler whose runs end as `end` says.
struct Bench {
    clock: ManualClock,
    journal: Journal,
    runs: Runs,
    jobs: Option<Jobs>,
}

fn retry() -> Retry {
    let retry = Retry::default().jitter(0.0).attempts(3);
    retry.base(SECOND).factor(2.0).cap(10 * SECOND)
}

impl Bench {
    fn new(end: impl Fn(&Handle, u32) -> Outcome + Send + Sync + 'static) -> Self {
        let mut bench = Self {
            clock: ManualClock::new(),
            journal: MemoryJournal::new(),
            runs: Runs::default(),
            jobs: None,
        };
        bench.start(end);
        bench
    }

    /// Starts, or starts again after a crash.
    fn start(&mut self, end: impl Fn(&Handle, u32) -> Outcome + Send + Sync + 'static) {
        self.jobs = None;
        let runs = Arc::clone(&self.runs);
        let builder = Scheduler::builder().durable(self.journal.clone());
        let jobs = builder.retry(retry()).dead_letters(2).manual(
            &self.clock,
            move |jobs: &Handle, run| {
                let seen = (run.key, run.value, run.attempt);
                runs.lock().expect("unpoisoned").push(seen);
                end(jobs, run.attempt)
            },
        );
        self.jobs = Some(jobs.expect("valid"));
    }

    fn jobs(&self) -> &Jobs {
        self.jobs.as_ref().expect("started")
    }

    fn pass(&self, time: Duration) {
        self.clock.advance(time);
        self.jobs().run_due();
    }

    fn take_runs(&self) -> Vec<(u32, &'static str, u32)> {
        std::mem::take(&mut self.runs.lock().expect("unpoisoned"))
    }

    fn attempts(&self) -> Vec<u32> {
        let runs = self.take_runs().into_iter();
        runs.map(|(_, _, attempt)| attempt).collect()
    }
}

#[test]
fn a_job_that_fails_is_tried_again_with_back_off_and_is_a_dead_letter_after_its_last_attempt() {
    let mut bench = Bench::new(|_, attempt| Outcome::failed(format_args!("no. {attempt}")));
    bench.jobs().set(7, "mail", MS).expect("kept");
    bench.pass(MS);
    assert_eq!(bench.attempts(), [1]);
    assert_eq!(bench.jobs().get(&7), Some(SECOND));
    let waiting = bench.jobs().iter().next().expect("pending");
    assert_eq!(
        (waiting.attempt, waiting.error.as_deref()),
        (2, Some("no. 1"))
    );
    // The number of the attempt survives a crash.
    bench.start(|_, attempt| Outcome::failed(format_args!("no. {attempt}")));
    bench.pass(SECOND - MS);
    assert!(bench.attempts().is_empty(), "early");
    bench.pass(MS);
    assert_eq!(bench.attempts(), [2]);
    bench.pass(2 * SECOND);
    assert_eq!(bench.attempts(), [3]);
    bench.pass(HOUR);
    assert!(bench.attempts().is_empty(), "it is dead");
    bench.start(|_, _| Outcome::Done);
    let stats = bench.jobs().stats();
    assert_eq!((bench.jobs().len(), stats.dead), (0, 1));
    let letters = bench.jobs().dead_letters();
    let letter = &letters[0];
    assert_eq!((letter.key, letter.value, letter.attempts), (7, "mail", 3));
    assert_eq!(letter.error, "no. 3");
    let died = SystemTime::UNIX_EPOCH + 3 * SECOND + MS;
    assert_eq!(letter.died, died);
    // It has all its attempts before it again.
    assert!(bench.jobs().requeue(letter.id, SECOND).expect("kept"));
    assert!(!bench.jobs().requeue(letter.id, SECOND).expect("gone"));
    bench.start(|_, _| Outcome::Done);
    bench.pass(SECOND);
    assert_eq!(bench.attempts(), [1]);
    bench.start(|_, _| Outcome::Done);
    assert_eq!((bench.jobs().len(), bench.jobs().stats().dead), (0, 0));
}

#[test]
fn a_handler_says_when_it_runs_again_or_that_it_never_will() {
    let bench = Bench::new(|_, attempt| match attempt {
        1 => Outcome::retry_after(HOUR, "busy"),
        _ => Outcome::dead("no such address"),
    });
    bench.jobs().set(1, "mail", MS).expect("kept");
    bench.pass(MS);
    assert_eq!(bench.jobs().get(&1), Some(HOUR));
    bench.pass(HOUR);
    let letters = bench.jobs().dead_letters();
    assert_eq!(
        (letters[0].attempts, letters[0].error.as_str()),
        (2, "no such address")
    );
    assert_eq!(
        bench.jobs().remove_dead(letters[0].id).expect("kept"),
        Some("mail")
    );
    assert_eq!(bench.jobs().remove_dead(letters[0].id).expect("gone"), None);
    assert_eq!(bench.jobs().stats().dead, 0);
    assert_eq!(bench.jobs().stats().failed, 2);
}

#[test]
fn a_job_whose_handler_panics_is_tried_again_and_not_lost() {
    let bench = Bench::new(|_, attempt| {
        if attempt == 1 {
            std::panic::resume_unwind(Box::new("planned"));
        }
        Outcome::Done
    });
    bench.jobs().set(1, "mail", MS).expect("kept");
    bench.pass(MS);
    let stats = bench.jobs().stats();
    assert_eq!((stats.panicked, stats.failed, stats.retried), (1, 1, 1));
    let waiting = bench.jobs().iter().next().expect("pending");
    assert_eq!(waiting.error.as_deref(), Some("panicked: planned"));
    bench.pass(SECOND);
    assert_eq!(bench.attempts(), [1, 2]);
    assert!(bench.jobs().is_empty());
}

#[test]
fn a_job_that_waits_for_its_next_attempt_can_be_moved_replaced_and_removed() {
    let bench = Bench::new(|_, _| Outcome::failed("always"));
    for key in 1..=3 {
        bench.jobs().set(key, "old", MS).expect("kept");
    }
    bench.pass(MS);
    let jobs = bench.jobs();
    assert_eq!(jobs.peek(&1, |value| *value), Some("old"));
    assert_eq!(jobs.remove(&1).expect("kept"), Some("old"));
    assert_eq!(jobs.set(2, "new", HOUR).expect("kept"), Some("old"));
    assert!(jobs.move_to(&3, MS).expect("kept"));
    bench.take_runs();
    bench.pass(MS);
    assert_eq!(bench.take_runs(), [(3, "old", 2)]);
    bench.pass(HOUR);
    assert!(
        bench.take_runs().contains(&(2, "new", 1)),
        "a new job begins at 1"
    );
}

#[test]
fn a_failed_job_whose_key_has_a_newer_one_waits_unkeyed() {
    let end = |jobs: &Handle, attempt| {
        if attempt == 1 && jobs.get(&1).is_none() {
            jobs.set(1, "second", HOUR).expect("kept");
            return Outcome::failed("the first");
        }
        Outcome::Done
    };
    let mut bench = Bench::new(end);
    bench.jobs().set(1, "first", MS).expect("kept");
    bench.pass(MS);
    for _ in 0..2 {
        let jobs = bench.jobs();
        assert_eq!(
            (jobs.len(), jobs.peek(&1, |value| *value)),
            (2, Some("second"))
        );
        let unkeyed: Vec<_> = jobs.iter().filter(|job| job.is_unkeyed).collect();
        assert_eq!((unkeyed.len(), unkeyed[0].value), (1, "first"));
        bench.start(end);
    }
    bench.take_runs();
    bench.pass(SECOND);
    assert_eq!(bench.take_runs(), [(1, "first", 2)]);
    bench.pass(HOUR);
    assert_eq!(bench.take_runs(), [(1, "second", 1)]);
}

#[test]
fn when_there_are_too_many_dead_letters_the_next_job_is_tried_again_until_there_is_room() {
    let bench = Bench::new(|_, _| Outcome::dead("never"));
    for key in 1..=3 {
        bench.jobs().set(key, "mail", key * MS).expect("kept");
    }
    bench.pass(3 * MS);
    assert_eq!((bench.jobs().stats().dead, bench.jobs().len()), (2, 1));
    let waiting = bench.jobs().iter().next().expect("pending");
    assert_eq!(
        (waiting.left, waiting.error.as_deref()),
        (10 * SECOND, Some("never"))
    );
    let first = bench.jobs().dead_letters()[0].id;
    bench.jobs().remove_dead(first).expect("kept");
    bench.pass(10 * SECOND);
    assert_eq!((bench.jobs().stats().dead, bench.jobs().len()), (2, 0));
}

#[test]
fn a_run_goes_on_until_it_is_acknowledged_and_fails_when_the_ack_is_dropped() {
    let held: Arc<Mutex<Vec<Ack>>> = Arc::default();
    let holds = Arc::clone(&held);
    let (clock, journal) = (ManualClock::new(), MemoryJournal::new());
    let builder = Scheduler::<u32, ()>::builder().durable(journal.clone());
    let jobs = builder.retry(retry()).manual(&clock, move |_, run| {
        holds.lock().expect("unpoisoned").push(run.ack());
        // What the handler returns does not matter any more.
        Err::<(), _>("ignored")
    });
    let jobs = jobs.expect("valid");
    jobs.set(1, (), MS).expect("kept");
    clock.advance(MS);
    assert_eq!(jobs.run_due(), 1);
    assert_eq!(
        (jobs.len(), jobs.stats().deferred, jobs.stats().failed),
        (0, 1, 0)
    );
    let ack = held.lock().expect("unpoisoned").pop();
    drop(ack);
    assert_eq!(
        (jobs.len(), jobs.stats().deferred, jobs.stats().failed),
        (1, 0, 1)
    );
    let waiting = jobs.iter().next().expect("pending");
    assert_eq!(
        waiting.error.as_deref(),
        Some("the acknowledgement was dropped")
    );
    clock.advance(SECOND);
    jobs.run_due();
    let ack = held.lock().expect("unpoisoned").pop().expect("held");
    // While it is held, a crash brings the job back.
    let restarted = Durable::manual(Scheduler::builder(), &clock, journal.clone(), |_, _| {});
    assert_eq!(restarted.expect("valid").len(), 1);
    ack.done();
    assert_eq!((jobs.len(), jobs.stats().deferred), (0, 0));
    let restarted = Durable::manual(Scheduler::builder(), &clock, journal, |_, _| {});
    assert!(restarted.expect("valid").is_empty());
}

#[test]
fn an_ack_that_outlives_its_scheduler_still_ends_its_job() {
    let held: Arc<Mutex<Vec<Ack>>> = Arc::default();
    let holds = Arc::clone(&held);
    let (clock, journal) = (ManualClock::new(), MemoryJournal::new());
    let jobs = Durable::manual(
        Scheduler::<u32, ()>::builder(),
        &clock,
        journal.clone(),
        move |_, run| {
            holds.lock().expect("unpoisoned").push(run.ack());
        },
    );
    let jobs = jobs.expect("valid");
    for key in 1..=2 {
        jobs.set(key, (), Duration::ZERO).expect("kept");
    }
    clock.advance(MS);
    jobs.run_due();
    assert_eq!(jobs.stop(Duration::ZERO).running, 2);
    drop(jobs);
    let mut acks = std::mem::take(&mut *held.lock().expect("unpoisoned"));
    acks.pop().expect("held").done();
    acks.pop().expect("held").settle(Outcome::failed("later"));
    let jobs = Durable::manual(Scheduler::builder(), &clock, journal, |_, _| {});
    let left: Vec<u32> = jobs.expect("valid").iter().map(|job| job.attempt).collect();
    assert_eq!(
        left,
        [2],
        "one is over, one is tried again by the next start"
    );
}

#[test]
fn a_second_acknowledgement_of_one_run_panics_and_the_run_has_failed() {
    let bench = ManualClock::new();
    let jobs = Durable::manual(
        Scheduler::builder(),
        &bench,
        MemoryJournal::new(),
        |_, run| {
            let _first = run.ack();
            let _second = run.ack();
        },
    );
    let jobs = jobs.expect("valid");
    jobs.set(1, (), Duration::ZERO).expect("kept");
    bench.advance(MS);
    jobs.run_due();
    assert_eq!(
        (jobs.stats().panicked, jobs.len(), jobs.stats().deferred),
        (1, 1, 0)
    );
}

#[test]
fn no_more_runs_begin_than_may_be_unfinished() {
    let held: Arc<Mutex<Vec<Ack>>> = Arc::default();
    let holds = Arc::clone(&held);
    let clock = ManualClock::new();
    let builder = Scheduler::<Serial, ()>::builder().workers(1);
    let builder = builder.durable(MemoryJournal::new()).in_flight(3);
    let jobs = builder.manual(&clock, move |_, run| {
        holds.lock().expect("unpoisoned").push(run.ack());
    });
    let jobs = jobs.expect("valid");
    for _ in 0..10 {
        jobs.add((), Duration::ZERO).expect("kept");
    }
    clock.advance(MS);
    assert_eq!((jobs.run_due(), jobs.len()), (3, 7));
    held.lock().expect("unpoisoned").pop().expect("held").done();
    assert_eq!((jobs.run_due(), jobs.len()), (1, 6));
    assert_eq!(jobs.stop(Duration::ZERO).running, 3);
}

#[test]
fn a_periodic_job_goes_on_in_its_rhythm_after_a_restart() {
    let mut bench = Bench::new(|_, _| Outcome::Done);
    let periodic = bench
        .jobs()
        .set_periodic(1, "report", 5 * SECOND, 10 * SECOND, CatchUp::Skip);
    assert_eq!(periodic.expect("kept"), None);
    bench.pass(15 * SECOND);
    bench.pass(10 * SECOND);
    assert_eq!(bench.take_runs().len(), 2);
    bench.start(|_, _| Outcome::Done);
    assert_eq!(bench.jobs().get(&1), Some(10 * SECOND));
    // 45 s are slept over: four runs are due, one is made up.
    bench.jobs = None;
    bench.clock.advance(45 * SECOND);
    bench.start(|_, _| Outcome::Done);
    bench.pass(Duration::ZERO);
    assert_eq!(bench.take_runs(), [(1, "report", 1)]);
    assert_eq!(
        bench.jobs().get(&1),
        Some(5 * SECOND),
        "the rhythm has changed"
    );
    let waiting = bench.jobs().iter().next().expect("pending");
    assert_eq!(waiting.period, Some(10 * SECOND));
    assert!(bench.jobs().move_to(&1, SECOND).expect("kept"));
    bench.start(|_, _| Outcome::Done);
    assert_eq!(bench.jobs().get(&1), Some(SECOND));
    bench.pass(SECOND);
    assert_eq!(
        (bench.take_runs().len(), bench.jobs().get(&1)),
        (1, Some(10 * SECOND))
    );
    assert_eq!(bench.jobs().remove(&1).expect("kept"), Some("report"));
    bench.start(|_, _| Outcome::Done);
    assert!(bench.jobs().is_empty());
}

#[test]
fn restarts_do_not_shift_the_rhythm_of_a_periodic_job_by_a_nanosecond() {
    const ODD: Duration = Duration::from_nanos(300_007);
    for catch_up in [CatchUp::Skip, CatchUp::Burst(3)] {
        let clock = ManualClock::new();
        let mut journal = memory::MemoryJournal::<u32, ()>::empty();
        for life in 0..50 {
            let jobs = Durable::manual(Scheduler::builder(), &clock, journal.clone(), |_, _| {});
            let jobs = jobs.expect("valid");
            if life == 0 {
                clock.advance(ODD);
                jobs.set_periodic(1, (), 50 * MS, 50 * MS, catch_up)
                    .expect("kept");
            }
            for _ in 0..3 {
                clock.advance(40 * MS + ODD);
                jobs.run_due();
            }
            let due = journal.live()[0].status.due;
            let since = due.duration_since(SystemTime::UNIX_EPOCH + ODD);
            let phase = since.expect("later").as_nanos() % 50_000_000;
            assert_eq!(phase, 0, "{catch_up:?}, life {life}");
            journal = journal.reopened();
        }
    }
}

#[test]
fn a_wall_clock_that_was_set_moves_the_rhythm_of_the_journal_with_it() {
    let clock = ManualClock::new();
    let journal = memory::MemoryJournal::<u32, ()>::empty();
    let jobs = Durable::manual(Scheduler::builder(), &clock, journal.clone(), |_, _| {});
    let jobs = jobs.expect("valid");
    jobs.set_periodic(1, (), SECOND, SECOND, CatchUp::Skip)
        .expect("kept");
    clock.set_wall(HOUR);
    clock.advance(SECOND);
    jobs.run_due();
    let due = journal.live()[0].status.due;
    assert_eq!(due, SystemTime::UNIX_EPOCH + HOUR + 2 * SECOND);
}

#[test]
fn a_periodic_job_that_is_ensured_at_each_start_keeps_its_rhythm_until_its_period_changes() {
    let mut bench = Bench::new(|_, _| Outcome::Done);
    let ensure = |bench: &Bench, value, period, catch_up| {
        let set = bench
            .jobs()
            .ensure_periodic(1, value, 5 * SECOND, period, catch_up);
        set.expect("kept")
    };
    assert!(ensure(&bench, "report", 10 * SECOND, CatchUp::Skip));
    for _ in 0..3 {
        bench.pass(6 * SECOND);
        bench.start(|_, _| Outcome::Done);
        let left = bench.jobs().get(&1);
        assert!(!ensure(&bench, "other", 10 * SECOND, CatchUp::Skip));
        assert_eq!(bench.jobs().get(&1), left);
        assert_eq!(bench.jobs().peek(&1, |value| *value), Some("report"));
    }
    // Periods are compared as they are kept: in milliseconds, rounded up.
    let shorter = 10 * SECOND - Duration::from_micros(1);
    assert!(!ensure(&bench, "other", shorter, CatchUp::Skip));
    assert!(ensure(&bench, "burst", 10 * SECOND, CatchUp::Burst(2)));
    assert!(ensure(&bench, "hourly", HOUR, CatchUp::Burst(2)));
    assert_eq!(bench.jobs().get(&1), Some(5 * SECOND));
    bench.jobs().set(1, "once", HOUR).expect("kept");
    assert!(ensure(&bench, "report", HOUR, CatchUp::Skip));
    bench.start(|_, _| Outcome::Done);
    let jobs: Vec<_> = bench.jobs().iter().collect();
    assert_eq!((jobs.len(), jobs[0].value), (1, "report"));
    bench.jobs().stop(Duration::ZERO);
    let refused = bench
        .jobs()
        .ensure_periodic(2, "late", SECOND, SECOND, CatchUp::Skip);
    assert!(matches!(refused, Err(Error::Stopped)));
}

#[test]
fn each_run_of_a_periodic_job_is_retried_by_itself() {
    let mut bench = Bench::new(|_, attempt| match attempt {
        1 => Outcome::failed("the first time"),
        _ => Outcome::Done,
    });
    let jobs = bench.jobs();
    jobs.set_periodic(1, "report", SECOND, HOUR, CatchUp::Skip)
        .expect("kept");
    bench.pass(SECOND);
    assert_eq!((bench.attempts(), bench.jobs().len()), (vec![1], 2));
    // The run that failed does not hang on what becomes of the rhythm.
    assert_eq!(bench.jobs().remove(&1).expect("kept"), Some("report"));
    bench.start(|_, attempt| match attempt {
        1 => Outcome::failed("the first time"),
        _ => Outcome::Done,
    });
    bench.pass(SECOND);
    assert_eq!((bench.attempts(), bench.jobs().len()), (vec![2], 0));
}

#[test]
fn a_crash_during_a_run_of_a_periodic_job_brings_that_run_back_and_not_the_next_one() {
    let notes = memory::MemoryJournal::empty();
    let clock = ManualClock::new();
    let crashed: Arc<Mutex<Option<memory::MemoryJournal<u32, ()>>>> = Arc::default();
    let (its_crash, its_notes) = (Arc::clone(&crashed), notes.clone());
    let jobs = Durable::manual(Scheduler::builder(), &clock, notes, move |_, _| {
        its_crash
            .lock()
            .expect("unpoisoned")
            .get_or_insert_with(|| its_notes.reopened());
    });
    let jobs = jobs.expect("valid");
    jobs.set_periodic(1, (), SECOND, HOUR, CatchUp::Skip)
        .expect("kept");
    clock.advance(SECOND);
    jobs.run_due();
    let left = crashed.lock().expect("unpoisoned").take().expect("it ran");
    let places: Vec<_> = left
        .live()
        .into_iter()
        .map(|job| (job.status.place, job.status.repeat.is_some()))
        .collect();
    assert_eq!(places, [(Place::Keyed, true), (Place::Unkeyed, false)]);
    let again =
        Durable::manual(Scheduler::builder(), &clock, left.clone(), |_, _| {}).expect("valid");
    assert_eq!((again.run_due(), again.get(&1)), (1, Some(HOUR)));
    assert_eq!(left.live().len(), 1);
}

/// Starts on what is on disk when a handler begins, as if each run killed the process; returns what
/// the attempts were.
fn killed_by_each_run(mut notes: memory::MemoryJournal<u32, ()>, clock: &ManualClock) -> Vec<u32> {
    let mut attempts = Vec::new();
    for _ in 0..20 {
        let crashed = Arc::new(Mutex::new(None));
        let (its_crash, its_notes) = (Arc::clone(&crashed), notes.clone());
        let builder = Scheduler::builder().durable(notes.clone()).retry(retry());
        let jobs = builder.manual(clock, move |_, run| {
            let mut crashed = its_crash.lock().expect("unpoisoned");
            crashed.get_or_insert_with(|| (run.attempt, its_notes.on_disk()));
        });
        let jobs = jobs.expect("valid");
        clock.advance(SECOND);
        jobs.run_due();
        let Some((attempt, left)) = crashed.lock().expect("unpoisoned").take() else {
            let letters = jobs.dead_letters();
            assert_eq!((letters.len(), letters[0].attempts), (1, 3));
            assert_eq!(letters[0].error, "the process ended during the run");
            return attempts;
        };
        attempts.push(attempt);
        notes = left;
    }
    panic!("it runs for ever: {attempts:?}");
}

#[test]
fn a_job_that_kills_the_process_each_time_becomes_a_dead_letter() {
    let clock = ManualClock::new();
    let due = SystemTime::UNIX_EPOCH + SECOND;
    let notes = memory::MemoryJournal::of(1, (), Status::at(due));
    assert_eq!(killed_by_each_run(notes, &clock), [1, 1, 2, 3]);
}

#[test]
fn a_run_of_a_periodic_job_that_kills_the_process_each_time_becomes_a_dead_letter() {
    let clock = ManualClock::new();
    let due = SystemTime::UNIX_EPOCH + SECOND;
    let mut status = Status::at(due);
    status.repeat = Some(Repeat::every(HOUR, CatchUp::Skip));
    let notes = memory::MemoryJournal::of(1, (), status);
    assert_eq!(killed_by_each_run(notes, &clock), [1, 1, 2, 3]);
}

#[test]
fn a_job_that_was_due_at_the_start_and_ends_leaves_nothing() {
    let due = SystemTime::UNIX_EPOCH;
    let clock = ManualClock::new();
    for end in [Outcome::Done, Outcome::failed("busy"), Outcome::dead("no")] {
        let notes = memory::MemoryJournal::of(1, (), Status::at(due));
        let expected = end.clone();
        let builder = Scheduler::builder().durable(notes.clone()).retry(retry());
        let jobs = builder.manual(&clock, move |_, _| end.clone());
        jobs.expect("valid").run_due();
        let left: Vec<_> = notes
            .live()
            .into_iter()
            .map(|job| (job.status.attempt, job.status.place, job.status.error))
            .collect();
        match expected {
            Outcome::Done => assert_eq!(left, []),
            Outcome::Dead { error } => assert_eq!(left, [(1, Place::Dead, Some(error))]),
            _ => assert_eq!(left, [(2, Place::Keyed, Some("busy".to_owned()))]),
        }
    }
}

#[test]
fn missed_runs_of_a_periodic_job_are_made_up_as_its_catch_up_says() {
    let due = SystemTime::UNIX_EPOCH + SECOND;
    let mut status = Status::at(due);
    status.repeat = Some(Repeat::every(SECOND, CatchUp::Burst(2)));
    let journal = memory::MemoryJournal::of(1, "report", status);
    let clock = ManualClock::new();
    clock.advance(6 * SECOND + 500 * MS);
    let runs: Arc<Mutex<Vec<u64>>> = Arc::default();
    let seen = Arc::clone(&runs);
    let jobs = Durable::manual(
        Scheduler::builder(),
        &clock,
        journal.clone(),
        move |_, run| {
            seen.lock().expect("unpoisoned").push(run.missed);
        },
    );
    let jobs = jobs.expect("valid");
    jobs.run_due();
    let mut runs = std::mem::take(&mut *runs.lock().expect("unpoisoned"));
    runs.sort_unstable();
    assert_eq!(runs, [0, 0, 3]);
    assert_eq!(jobs.get(&1), Some(500 * MS));
}

#[test]
fn a_drain_ends_all_jobs_and_none_that_it_sets() {
    let mut bench = Bench::new(|_, _| Outcome::failed("always"));
    for key in 0..3000 {
        bench.jobs().set(key, "mail", HOUR).expect("kept");
    }
    bench.jobs().set(5000, "other", MS).expect("kept");
    bench.pass(MS);
    let jobs = bench.jobs();
    let mut drained = Vec::new();
    let count = jobs.drain(|key, _| {
        drained.push(key);
        jobs.set(key + 10_000, "new", HOUR).expect("kept");
    });
    assert_eq!((count.expect("kept"), jobs.len()), (3001, 3001));
    drained.sort_unstable();
    assert!(drained.into_iter().eq((0..3000).chain([5000])));
    bench.start(|_, _| Outcome::Done);
    assert!(bench.jobs().iter().all(|job| job.value == "new"));
    assert_eq!(bench.jobs().len(), 3001);
}

#[test]
fn a_drain_whose_callback_panics_loses_no_other_job() {
    let bench = Bench::new(|_, _| Outcome::Done);
    for key in 0..2000 {
        bench.jobs().set(key, "mail", HOUR).expect("kept");
    }
    let mut drained = 0;
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        bench.jobs().drain(|_, _| {
            drained += 1;
            assert!(drained % 500 > 0, "planned");
        })
    }));
    assert!(panicked.is_err());
    assert_eq!(drained + bench.jobs().len(), 2000);
    let plain = Scheduler::<u32, ()>::builder().manual(&bench.clock, |_, _| {});
    let plain = plain.expect("valid");
    for key in 0..10 {
        plain.set(key, (), HOUR).expect("runs");
    }
    let mut drained = 0;
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        plain.drain(|_, ()| {
            drained += 1;
            assert!(drained != 5, "planned");
        })
    }));
    assert!(panicked.is_err());
    assert_eq!(drained, 10);
}

#[test]
fn a_job_is_moved_or_set_set_at_a_time_or_set_with_many_others() {
    let bench = Bench::new(|_, _| Outcome::Done);
    bench.clock.set_wall(HOUR);
    let jobs = bench.jobs();
    assert!(!jobs.move_or_set(1, HOUR, || "new").expect("kept"));
    assert!(
        jobs.move_or_set(1, 2 * HOUR, || "not asked for")
            .expect("kept")
    );
    jobs.set_at(2, "late", SystemTime::UNIX_EPOCH + 3 * HOUR)
        .expect("kept");
    assert_eq!(
        (jobs.get(&1), jobs.get(&2)),
        (Some(2 * HOUR), Some(2 * HOUR))
    );
    let many = (0..100).map(|key| (key, "many", HOUR));
    assert_eq!(jobs.set_many(many).expect("kept"), 2);
    assert_eq!((jobs.len(), jobs.get(&1)), (100, Some(HOUR)));
    jobs.stop(Duration::ZERO);
    let refused = jobs.set_many([(1, "late", MS)]);
    assert!(matches!(refused, Err(Error::Stopped)));
}

#[test]
fn a_letter_that_is_requeued_after_a_stop_stays_a_letter() {
    let bench = Bench::new(|_, _| Outcome::dead("never"));
    bench.jobs().set(1, "mail", Duration::ZERO).expect("kept");
    bench.pass(MS);
    let letters = bench.jobs().dead_letters();
    bench.jobs().stop(Duration::ZERO);
    let refused = bench.jobs().requeue(letters[0].id, MS);
    assert!(matches!(refused, Err(Error::Stopped)));
    assert_eq!(bench.jobs().dead_letters(), letters);
    assert_eq!(bench.clock.now(), MS);
}
