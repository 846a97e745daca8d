//! Measures the claims per second, and the memory, when very many tasks are pending. It prints and
//! asserts nothing.
//!
//! `cargo test --release -p tidewheel-tasks --all-features --test it million -- --ignored
//! --nocapture --test-threads 1`

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tidewheel_engines::{Folder, Nats, Postgres, Process, since};
use tidewheel_tasks::{
    Ask, Claim, FileStore, MemoryStore, NatsStore, PostgresStore, Task, TaskStore, wait,
};
use tidewheel_time::monotonic_nanos;
use tokio::runtime::Runtime;

const MILLION: u64 = 1_000_000;
const NEAR: u64 = 20_000;
/// Tasks in one call, and calls at a time.
const CALL: usize = 1000;
const CALLS: usize = 4;
/// The time limit of scheduling.
const PATIENCE: Duration = Duration::from_secs(200);
const HOUR: Duration = Duration::from_secs(3600);

fn runtime() -> Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime")
}

/// Resident memory of a process, in bytes.
fn resident(id: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).expect("a process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.expect("a number") * 1024
}

/// Bytes of all files below a folder.
fn on_disk(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let sizes = entries.map(|entry| match entry.metadata() {
        Ok(data) if data.is_dir() => on_disk(&entry.path()),
        Ok(data) => data.len(),
        Err(_) => 0,
    });
    sizes.sum()
}

fn rate(name: &str, what: &str, count: u64, begin: u64) {
    let took = since(begin);
    println!(
        "{name}: {count} {what} in {took:.1?}, {:.0} a second",
        count as f64 / took.as_secs_f64()
    );
}

fn far(n: u64) -> Task {
    Task::new(format!("task-{n}"), vec![b'x'; 100]).after(HOUR)
}

/// Claims what is near, and ends it, a thousand at a time.
fn claim_and_end(name: &str, store: &impl TaskStore, near: u64) {
    let begin = monotonic_nanos();
    let mut claims: Vec<Arc<Claim>> = Vec::new();
    while (claims.len() as u64) < near && since(begin) < Duration::from_secs(60) {
        let ask = Ask::new("million", Duration::from_secs(60), HOUR, 1000);
        claims.extend(
            wait(store.claim(ask))
                .expect("claims")
                .into_iter()
                .map(Arc::new),
        );
    }
    rate(name, "claims", claims.len() as u64, begin);
    let begin = monotonic_nanos();
    for batch in claims.chunks(1000) {
        let done = wait(store.done(batch)).expect("answered");
        assert!(done.iter().all(|verdict| verdict.is_accepted()));
    }
    rate(name, "ends", claims.len() as u64, begin);
}

/// As a program would on an engine that does not answer in time: the call may be made again.
async fn persist(store: &impl TaskStore, tasks: Vec<Task>) {
    for _ in 0..20 {
        if store.schedule_many(tasks.clone()).await.is_ok() {
            return;
        }
        println!("a call failed, and is made again");
    }
    panic!("the engine does not answer");
}

/// Schedules tasks a thousand a call, several calls at a time, for so long at most. Returns how
/// many.
fn schedule<S: TaskStore + Clone>(
    runtime: &Runtime,
    store: &S,
    tasks: std::ops::Range<u64>,
    wait: Duration,
) -> u64 {
    let begin = monotonic_nanos();
    let mut count = 0;
    runtime.block_on(async {
        for some in tasks.collect::<Vec<_>>().chunks(CALLS * CALL) {
            let calls = some.chunks(CALL).map(|some| {
                let tasks: Vec<_> = some.iter().map(|n| far(*n).after(wait)).collect();
                let store = store.clone();
                tokio::spawn(async move { persist(&store, tasks).await })
            });
            for call in calls.collect::<Vec<_>>() {
                call.await.expect("no panic");
            }
            count += some.len() as u64;
            if since(begin) > PATIENCE {
                break;
            }
        }
    });
    count
}

#[test]
#[ignore = "measures"]
fn a_million_in_memory() {
    let store = MemoryStore::new();
    let (before, begin) = (resident(std::process::id()), monotonic_nanos());
    for n in 0..MILLION / 1000 {
        let tasks = (n * 1000..(n + 1) * 1000).map(far).collect();
        wait(store.schedule_many(tasks)).expect("scheduled");
    }
    rate("memory", "scheduled", MILLION, begin);
    let bytes = resident(std::process::id()) - before;
    println!(
        "memory: {} bytes a task, of which 100 are the payload",
        bytes / MILLION
    );
    for n in MILLION..MILLION + NEAR {
        wait(store.schedule(far(n).after(Duration::ZERO))).expect("scheduled");
    }
    claim_and_end("memory", &store, NEAR);
}

#[test]
#[ignore = "measures"]
fn many_in_a_file() {
    let folder = Folder::new("million");
    let store = FileStore::open(folder.path().join("tasks")).expect("a file");
    let (before, begin) = (resident(std::process::id()), monotonic_nanos());
    let mut count = 0;
    while count < MILLION && since(begin) < PATIENCE {
        let tasks = (count..count + CALL as u64).map(far).collect();
        wait(store.schedule_many(tasks)).expect("scheduled");
        count += CALL as u64;
    }
    rate("file", "scheduled", count, begin);
    let bytes = resident(std::process::id()).saturating_sub(before);
    println!(
        "file: {} bytes of memory a task, {} on disk",
        bytes / count,
        on_disk(folder.path()) / count
    );
    for n in 0..NEAR / 1000 {
        let first = MILLION + n * 1000;
        let near = |n| far(n).after(Duration::ZERO);
        let tasks = (first..first + 1000).map(near).collect();
        wait(store.schedule_many(tasks)).expect("scheduled");
    }
    claim_and_end("file", &store, NEAR);
}

#[test]
#[ignore = "measures"]
fn a_million_in_postgres() {
    let Some(server) = Postgres::start() else {
        return;
    };
    let (runtime, url) = (runtime(), server.url());
    let store = runtime
        .block_on(PostgresStore::connect(&url, "million"))
        .expect("a connection");
    let insert = |count: u64, name: &str, wait_us: u64| {
        let text = format!(
            "INSERT INTO tidewheel_tasks (queue, id, due, began, payload, priority, checksum)
             SELECT 'million', '{name}-' || n, tidewheel_now() + {wait_us} + n, 0,
                 decode(repeat('78', 100), 'hex'), 1, 0
             FROM generate_series(1, {count}) AS n; ANALYZE tidewheel_tasks"
        );
        runtime.block_on(async {
            let connected = tokio_postgres::connect(&url, tokio_postgres::NoTls).await;
            let (client, connection) = connected.expect("a connection");
            tokio::spawn(connection);
            client.batch_execute(&text).await.expect("inserted");
            let size = "SELECT pg_total_relation_size('tidewheel_tasks')";
            let row = client.query_one(size, &[]).await.expect("a size");
            row.get::<_, i64>(0)
        })
    };
    let size = insert(MILLION, "task", 3_600_000_000);
    println!(
        "Postgres: {} bytes on disk a task, of which 100 are the payload",
        size / MILLION as i64
    );
    schedule(
        &runtime,
        &store,
        3 * MILLION..3 * MILLION + NEAR,
        Duration::ZERO,
    );
    claim_and_end("Postgres", &store, NEAR);
    let begin = monotonic_nanos();
    let tasks = 2 * MILLION..2 * MILLION + 100_000;
    let count = schedule(&runtime, &store, tasks, HOUR);
    rate("Postgres", "scheduled by one connection", count, begin);
}

#[test]
#[ignore = "measures"]
fn a_million_in_nats() {
    if let Some(nats) = Nats::single() {
        million_in_nats("NATS", &nats, 1);
    }
}

#[test]
#[ignore = "measures"]
fn a_million_on_three_nodes_of_nats() {
    if let Some(nats) = Nats::cluster() {
        million_in_nats("NATS, three nodes", &nats, 3);
    }
}

fn million_in_nats(name: &str, nats: &Nats, replicas: usize) {
    let runtime = runtime();
    let builder = NatsStore::builder("million").replicas(replicas);
    let store = runtime.block_on(builder.connect(nats.urls()));
    let store = store.expect("a connection");
    let all = |of: &dyn Fn(&Process) -> u64| nats.nodes.iter().map(of).sum::<u64>();
    let memory = || all(&|node| resident(node.id()));
    let (before, begin) = (memory(), monotonic_nanos());
    let count = schedule(&runtime, &store, 0..MILLION, HOUR);
    rate(name, "scheduled", count, begin);
    let (bytes, disk) = (memory() - before, all(&|node| on_disk(node.folder())));
    println!(
        "{name}: {} bytes of memory a task, {} on disk, all nodes together",
        bytes / count,
        disk / count
    );
    let begin = monotonic_nanos();
    let tasks = 2 * MILLION..2 * MILLION + NEAR;
    let near = schedule(&runtime, &store, tasks, Duration::from_secs(5));
    rate(name, "scheduled near", near, begin);
    claim_and_end(name, &store, near);
}
