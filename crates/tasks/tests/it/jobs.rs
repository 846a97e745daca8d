//! Tasks with keys and values of a program's own types.

use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use tidewheel_tasks::{
    CatchUp, Due, Jobs, ManualWorker, MemoryStore, Outcome, Retry, Rhythm, Task, TaskStore,
    Timestamp, Worker, wait,
};

use crate::common::{EPOCH, MS, engine};

const HOUR: Duration = Duration::from_secs(3600);

type Mails = Jobs<Arc<MemoryStore>, u64, String>;

fn text(text: &str) -> String {
    text.to_owned()
}

#[test]
fn a_handler_gets_keys_and_values_and_may_set_others() {
    let (clock, store) = engine();
    let jobs = Mails::new(Arc::clone(&store));
    let (told, runs) = mpsc::channel();
    let handler = jobs.handler(move |jobs, job| {
        let _ = told.send((job.key, job.value.clone(), job.attempt()));
        if job.key == 7 {
            wait(jobs.set(&8, &text("a reminder"), MS(100))).expect("set");
        }
    });
    let worker = Worker::builder(store).manual(&clock, handler);
    let worker: ManualWorker<_> = worker.expect("a worker");
    wait(jobs.set(&7, &text("an invoice"), MS(50))).expect("set");
    for _ in 0..10 {
        worker.turn();
        clock.advance(MS(50));
    }
    let ran: Vec<_> = runs.try_iter().collect();
    let expected = [(7, text("an invoice"), 1), (8, text("a reminder"), 1)];
    assert_eq!(ran, expected);
}

#[test]
fn what_is_not_of_these_types_is_a_dead_letter_that_says_so() {
    let (clock, store) = engine();
    let jobs = Mails::new(Arc::clone(&store));
    let handler = jobs.handler(|_, job| -> Outcome { panic!("{job:?}") });
    let worker = Worker::builder(Arc::clone(&store)).manual(&clock, handler);
    let worker = worker.expect("a worker");
    wait(store.schedule(Task::new("report", "text"))).expect("kept");
    wait(store.schedule(Task::new("9", vec![0xff]))).expect("kept");
    assert!(wait(jobs.look(&9)).is_err());
    worker.turn();
    let letters = wait(store.dead_letters(9)).expect("letters");
    let errors: Vec<_> = letters.iter().map(|letter| &*letter.error).collect();
    assert_eq!(
        errors,
        [
            "its payload was not written as a value of this type",
            "its id was not written as a key of this type"
        ]
    );
    assert!(
        letters
            .iter()
            .all(|letter| jobs.read_letter(letter).is_none())
    );
}

#[test]
fn a_job_is_moved_or_set_looked_at_removed_and_requeued() {
    let (clock, store) = engine();
    let jobs = Mails::new(Arc::clone(&store));
    let due = |wait| Timestamp::from(std::time::UNIX_EPOCH + EPOCH).plus(wait);
    assert_eq!(wait(jobs.move_or_set(&1, HOUR, || text("one"))), Ok(false));
    assert_eq!(wait(jobs.move_or_set(&1, 2 * HOUR, || panic!())), Ok(true));
    let found = wait(jobs.look(&1)).expect("answered").expect("pending");
    assert_eq!(
        (&*found.value, found.due, found.attempt),
        ("one", due(2 * HOUR), 1)
    );
    assert_eq!(wait(jobs.move_to(&2, HOUR)), Ok(false));
    assert_eq!(wait(jobs.look(&2)), Ok(None));
    assert_eq!(
        (wait(jobs.remove(&1)), wait(jobs.remove(&1))),
        (Ok(true), Ok(false))
    );

    let dies = |_: &Mails, _| Outcome::dead("no address");
    let worker = Worker::builder(Arc::clone(&store)).manual(&clock, jobs.handler(dies));
    let worker = worker.expect("a worker");
    wait(jobs.set(&3, &text("three"), Duration::ZERO)).expect("set");
    worker.turn();
    let letter = wait(store.dead_letters(9)).expect("letters").remove(0);
    assert_eq!(jobs.read_letter(&letter), Some((3, text("three"))));
    assert_eq!(wait(jobs.requeue(&3, HOUR)), Ok(true));
    assert_eq!(
        wait(jobs.look(&3)).expect("answered").map(|job| job.due),
        Some(due(HOUR))
    );
    assert_eq!(wait(jobs.remove_dead(&3)), Ok(false));
}

#[test]
fn many_jobs_are_set_in_calls_of_ten_thousand() {
    let (_, store) = engine();
    let jobs = Jobs::<_, u32, u32>::new(Arc::clone(&store));
    let many = (0..25_000).map(|key| (key, key + 1, HOUR));
    assert_eq!(wait(jobs.set_many(many)), Ok(25_000));
    assert_eq!(store.len(), 25_000);
    let last = wait(jobs.look(&24_999)).expect("answered");
    assert_eq!(last.map(|job| job.value), Some(25_000));
}

#[test]
fn a_job_that_is_tried_again_is_the_same_to_its_receiver() {
    let (clock, store) = engine();
    let jobs = Mails::new(Arc::clone(&store));
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sees = Arc::clone(&seen);
    let handler = jobs.handler(move |_, job| {
        let mut seen = sees.lock().expect("no panic");
        seen.push((job.key, job.began(), job.attempt()));
        Err::<(), _>("down")
    });
    let worker = Worker::builder(Arc::clone(&store));
    let worker = worker.retry(Retry::default().attempts(3).base(MS(100)));
    let worker = worker.manual(&clock, handler).expect("a worker");
    let due = wait(jobs.set_periodic(&7, &text("report"), MS(10), MS(10_000), CatchUp::Skip))
        .expect("set");
    for _ in 0..30 {
        worker.turn();
        clock.advance(MS(20));
    }
    let seen = seen.lock().expect("no panic");
    assert_eq!(*seen, [(7, due, 1), (7, due, 2), (7, due, 3)]);
}

/// Every store keeps the rhythm that it has, in the same step.
#[test]
fn a_periodic_job_that_is_ensured_at_each_start_keeps_its_rhythm_until_its_period_changes() {
    let (clock, store) = engine();
    let jobs = Mails::new(Arc::clone(&store));
    let ensure =
        |period| wait(jobs.ensure_periodic(&1, &text("report"), MS(500), period, CatchUp::Skip));
    let due = || wait(jobs.look(&1)).expect("answered").map(|job| job.due);
    assert_eq!(ensure(HOUR), Ok(true));
    let first = due();
    clock.advance(MS(300));
    assert_eq!((ensure(HOUR), due()), (Ok(false), first));
    assert_eq!(ensure(HOUR / 2), Ok(true));
    assert!(due() > first);
    let kept = wait(store.look("1")).expect("answered").expect("pending");
    assert_eq!(kept.terms.rhythm, Some(Rhythm::Every(HOUR / 2)));
    // What runs once is replaced too.
    wait(jobs.set(&1, &text("once"), Due::After(HOUR))).expect("set");
    assert_eq!(ensure(HOUR / 2), Ok(true));
}

#[test]
fn jobs_have_async_handlers() {
    let store = Arc::new(MemoryStore::new());
    let jobs = Mails::new(Arc::clone(&store));
    let (told, runs) = mpsc::channel();
    let worker = Worker::builder(store);
    let handler = jobs.async_handler(move |jobs, job| {
        let told = told.clone();
        async move {
            if job.key == 1 {
                jobs.set(&2, &text("second"), Duration::ZERO).await?;
            }
            let _ = told.send(job.value.clone());
            Ok::<(), tidewheel_tasks::StoreError>(())
        }
    });
    let worker = worker.start_async(|run| drop(std::thread::spawn(|| wait(run))), handler);
    let worker = worker.expect("a worker");
    wait(jobs.set(&1, &text("first"), Duration::ZERO)).expect("set");
    let mut ran: Vec<_> = runs.iter().take(2).collect();
    ran.sort();
    assert_eq!(ran, ["first", "second"]);
    assert_eq!(worker.stop(Duration::from_secs(5)).left, 0);
}

#[cfg(feature = "serde")]
mod json {
    use serde::{Deserialize, Serialize};
    use tidewheel_tasks::{Codec, Json, StoreError};

    use super::*;

    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    struct Mail {
        to: Vec<String>,
        weight: f64,
    }

    fn mail(weight: f64) -> Json<Mail> {
        let to = vec![text("ada")];
        Json(Mail { to, weight })
    }

    #[test]
    fn what_serde_writes_comes_back_and_what_it_cannot_write_is_refused_before_anything_changes() {
        let (_, store) = engine();
        let jobs = Jobs::<_, Json<(String, u8)>, Json<Mail>>::new(Arc::clone(&store));
        let key = Json((text("a\0"), 7));
        wait(jobs.set(&key, &mail(0.5), HOUR)).expect("set");
        let refused = wait(jobs.set(&key, &mail(f64::NAN), HOUR));
        let Err(StoreError::Refused(why)) = refused else {
            panic!("{refused:?}");
        };
        assert!(why.starts_with("its value is at fault"), "{why}");
        let other = Json((text("b"), 8));
        let many = [
            (other.clone(), mail(1.5), HOUR),
            (key.clone(), mail(f64::NAN), HOUR),
        ];
        assert!(wait(jobs.set_many(many)).is_err());
        assert_eq!(store.len(), 1);
        let found = wait(jobs.look(&key)).expect("answered").expect("pending");
        assert_eq!(found.value, mail(0.5));
        assert!(Json(Some(f64::NAN)).to_bytes().is_err(), "it is None then");
        let long = Json(("x".repeat(300), 0));
        assert!(matches!(
            wait(jobs.set(&long, &mail(0.5), HOUR)),
            Err(StoreError::Refused(_))
        ));
    }
}
