//! Workers whose clocks are wrong, and one that is stopped past its lease.

use std::path::Path;
use std::time::Duration;

use tidewheel_engines::{Folder, Nats, Postgres, eventually, found};
use tidewheel_tasks::{PostgresStore, Task, TaskStore, wait};
use tokio::runtime::Runtime;

use super::child::{Child, FAKETIME, Terms, nats as nats_store};
use super::{Load, log, runtime, schedule};

const HOUR: i64 = 3600;

/// Few tasks: what matters is who runs them, and when.
const FEW: Load = Load {
    tasks: 120,
    over: Duration::from_secs(3),
    ahead: Duration::from_secs(3),
};

/// True if wall clocks can be made wrong here.
fn has_faketime() -> bool {
    let has = Path::new(FAKETIME).exists();
    if !has {
        assert!(found("faketime", &[]).is_none(), "its library is elsewhere");
        println!("!!! SKIPPED: faketime is not installed");
    }
    has
}

#[test]
fn workers_whose_clocks_are_an_hour_wrong_do_what_others_do() {
    if !has_faketime() {
        return;
    }
    let Some(postgres) = Postgres::start() else {
        return;
    };
    let (runtime, url) = (runtime(), postgres.url());
    let store = runtime.block_on(PostgresStore::connect(&url, "fleet"));
    let store = store.expect("a connection");
    do_the_same("postgres", &url, &runtime, &store);
    assert_eq!(wait(store.count()), Ok(0));
}

#[test]
fn workers_on_nats_whose_clocks_are_an_hour_wrong_do_what_others_do() {
    if !has_faketime() {
        return;
    }
    let Some(nats) = Nats::cluster() else {
        return;
    };
    let (runtime, urls) = (runtime(), nats.urls().join(","));
    let store = runtime.block_on(nats_store(&urls, 3));
    do_the_same("nats", &urls, &runtime, &store);
}

/// Two workers with right clocks run some tasks; so do two whose clocks are wrong.
fn do_the_same<S: TaskStore + Clone>(engine: &str, url: &str, runtime: &Runtime, store: &S) {
    for skews in [[0, 0], [HOUR, -HOUR]] {
        // On a busy machine one may start when the other one has claimed all: then once more.
        let both = (0..5).any(|_| both_run(engine, url, runtime, store, skews));
        assert!(both, "one never runs anything");
    }
}

/// Two workers run some tasks. Tells whether each ran some.
fn both_run<S: TaskStore + Clone>(
    engine: &str,
    url: &str,
    runtime: &Runtime,
    store: &S,
    skews: [i64; 2],
) -> bool {
    let folder = Folder::new("fleet");
    let start = |(number, skew)| {
        let terms = Terms {
            skew,
            ..Terms::USUAL
        };
        Child::start_on(terms, engine, url, folder.path(), number)
    };
    let mut fleet: Vec<_> = (0..).zip(skews).map(start).collect();
    let report = schedule(runtime, std::slice::from_ref(store), FEW);
    eventually("all tasks have run", || {
        let lives = log::read(folder.path());
        let ran = lives.values().filter(|life| !life.runs.is_empty());
        (ran.count() == 114).then_some(())
    });
    let stats: Vec<_> = fleet.iter_mut().map(Child::stop).collect();
    let lives = log::read(folder.path());
    report.check(engine, &lives);
    let once = lives.values().filter(|life| life.runs.len() == 1);
    assert_eq!(once.count(), 114);
    if stats.iter().any(|stats| stats.contains(" ran: 0,")) {
        return false;
    }
    for (stats, skew) in stats.iter().zip(skews) {
        let skewed = skew != 0;
        assert!(stats.contains(&format!("skewed: {skewed}")), "{stats}");
    }
    true
}

#[test]
fn a_worker_that_was_stopped_past_its_lease_is_refused_its_end() {
    let Some(postgres) = Postgres::start() else {
        return;
    };
    let (runtime, url, folder) = (runtime(), postgres.url(), Folder::new("fleet"));
    let store = runtime.block_on(PostgresStore::connect(&url, "fleet"));
    let store = store.expect("a connection");
    let terms = Terms {
        lease: Duration::from_millis(1000),
        work: Duration::from_millis(500),
        ..Terms::USUAL
    };
    let start = |number| Child::start_on(terms, "postgres", &url, folder.path(), number);
    let runs = |count: usize| {
        eventually("it runs", || {
            let lives = log::read(folder.path());
            let runs = lives.get(&0).map_or(0, |life| life.runs.len());
            (runs == count).then_some(())
        });
    };
    let mut first = start(0);
    wait(store.schedule(Task::new("0", ""))).expect("scheduled");
    runs(1);
    first.signal("-STOP");
    let mut second = start(1);
    runs(2);
    eventually("the second has ended it", || {
        (wait(store.count()) == Ok(0)).then_some(())
    });
    first.signal("-CONT");
    let (first, second) = (first.stop(), second.stop());
    assert!(first.contains(" ran: 1, done: 0,"), "{first}");
    assert!(first.contains(" refused: 1,"), "{first}");
    assert!(second.contains(" ran: 1, done: 1,"), "{second}");
    let lives = log::read(folder.path());
    let fences: Vec<_> = lives[&0].runs.iter().map(|run| run.fence).collect();
    assert!(fences[0] < fences[1], "{fences:?}");
}
