//! A fleet of processes on real engines: nodes are killed in turn, workers are killed and stopped.
//! Each run is written down, and held against what was promised.
//!
//! The long forms print what they measure: `cargo test --release -p tidewheel-tasks --all-features
//! --test it fleet -- --ignored --nocapture --test-threads 1`.

mod child;
mod log;
mod report;
mod terms;
mod trouble;

use std::path::Path;
use std::time::Duration;

use tidewheel_engines::{Folder, Nats, Postgres};
use tidewheel_tasks::{PostgresStore, StoreError, Task, TaskStore, Timestamp};
use tidewheel_time::wall_nanos;
use tokio::runtime::Runtime;

use self::child::Child;
use self::report::Report;

/// The number of tasks, and the time over which they are due.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    tasks: u64,
    over: Duration,
    /// Before the first: all are scheduled meanwhile.
    ahead: Duration,
}

const SHORT: Load = Load {
    tasks: 1500,
    over: Duration::from_secs(12),
    // On NATS all are claimed at once: a worker hears of what is cancelled when it extends its
    // leases.
    ahead: Duration::from_secs(13),
};

const LONG: Load = Load {
    tasks: 20_000,
    over: Duration::from_secs(60),
    ahead: Duration::from_secs(30),
};

/// One in so many tasks is cancelled before anybody can have claimed it.
const CANCELLED: u64 = 20;

#[test]
fn a_fleet_on_nats_through_an_election() {
    let Some(nats) = Nats::cluster() else {
        return;
    };
    on_nats(nats, SHORT);
}

#[test]
#[ignore = "long: 20,000 tasks, each node killed in turn, two workers too"]
fn a_fleet_on_nats_through_three_elections() {
    let Some(nats) = Nats::cluster() else {
        return;
    };
    on_nats(nats, LONG);
}

#[test]
fn a_fleet_on_postgres_through_a_restart() {
    let Some(postgres) = Postgres::start() else {
        return;
    };
    on_postgres(postgres, SHORT);
}

#[test]
#[ignore = "long: 20,000 tasks, two restarts, a worker stopped past its lease"]
fn a_fleet_on_postgres_through_restarts() {
    let Some(postgres) = Postgres::start() else {
        return;
    };
    on_postgres(postgres, LONG);
}

fn on_nats(mut nats: Nats, load: Load) {
    let (runtime, folder) = (runtime(), Folder::new("fleet"));
    let servers = nats.urls().join(",");
    let store = runtime.block_on(child::nats(&servers, 3));
    let mut fleet = children("nats", &servers, folder.path());
    let mut report = schedule(&runtime, &[store], load);
    if load.tasks == SHORT.tasks {
        trouble::one_node(&mut nats, &mut fleet, &mut report);
    } else {
        trouble::each_node(&mut nats, &mut fleet, &mut report);
    }
    let end = load.over + child::LONGEST;
    finish("NATS", report, fleet, folder.path(), end);
}

fn on_postgres(mut postgres: Postgres, load: Load) {
    let (runtime, folder) = (runtime(), Folder::new("fleet"));
    let url = postgres.url();
    // A commit waits for the disk. Those of several connections wait together.
    let connect = |_| {
        runtime
            .block_on(PostgresStore::connect(&url, "fleet"))
            .expect("a connection")
    };
    let stores: Vec<_> = (0..16).map(connect).collect();
    let mut fleet = children("postgres", &url, folder.path());
    let mut report = schedule(&runtime, &stores, load);
    trouble::restarts(&mut postgres, &mut fleet, load, &mut report);
    let end = load.over + child::LEASE;
    finish("Postgres", report, fleet, folder.path(), end);
}

fn runtime() -> Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime")
}

fn children(engine: &str, url: &str, folder: &Path) -> Vec<Child> {
    let workers = (0..4).map(|n| Child::start(engine, url, folder, n));
    workers.collect()
}

/// Schedules all tasks, many at a time, and cancels some.
fn schedule<S: TaskStore + Clone>(runtime: &Runtime, stores: &[S], load: Load) -> Report {
    let begin = now();
    let first = begin.plus(load.ahead);
    let gap = load.over.as_micros() as u64 / load.tasks;
    runtime.block_on(async {
        for some in (0..load.tasks).collect::<Vec<_>>().chunks(64) {
            let calls = some.iter().map(|n| {
                let (store, n) = (stores[*n as usize % stores.len()].clone(), *n);
                tokio::spawn(async move {
                    let id = format!("{n}");
                    let task = Task::new(&*id, "payload").at(Timestamp(first.0 + n * gap));
                    persist(|| store.schedule(task.clone())).await;
                    if n % CANCELLED == 0 {
                        persist(|| store.cancel(&id)).await;
                    }
                })
            });
            for call in calls.collect::<Vec<_>>() {
                call.await.expect("no panic");
            }
        }
    });
    let took = now().since(begin);
    println!("{} tasks scheduled in {took:?}", load.tasks);
    Report {
        first,
        gap,
        cancelled: CANCELLED,
        tasks: load.tasks,
        silences: Vec::new(),
    }
}

/// Calls until the engine answers: a busy machine may be slow, and all these calls may be made
/// again.
async fn persist<T, F: Future<Output = Result<T, StoreError>>>(call: impl Fn() -> F) -> T {
    for _ in 0..100 {
        if let Ok(value) = call().await {
            return value;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the engine does not answer");
}

/// Waits until all are over, and looks at what was written down.
fn finish(engine: &str, report: Report, mut fleet: Vec<Child>, folder: &Path, after: Duration) {
    let end = report.first.plus(after + Duration::from_secs(2));
    std::thread::sleep(end.since(now()));
    let held = fleet.iter_mut().map(Child::stop).collect::<Vec<_>>();
    held.iter().for_each(|stats| println!("{stats}"));
    report.check(engine, &log::read(folder));
}

/// All processes of these tests share this machine's wall clock with the engines.
fn now() -> Timestamp {
    Timestamp(u64::try_from(wall_nanos() / 1000).expect("after 1970"))
}
