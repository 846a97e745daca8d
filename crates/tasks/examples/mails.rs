//! A job system on three workers, each a process of its own: mails are ordered, a worker is killed,
//! and nothing is lost.
//!
//! `cargo run -p tidewheel-tasks --features postgres,nats --example mails` starts Postgres in a
//! temporary folder, three workers, and orders 300 mails for the next 14 seconds, each within the
//! transaction of its order. Meanwhile it kills a worker (`kill -9`). Afterwards it counts: every
//! mail was sent, none before its time, and one that was sent twice was so under a higher fence, by
//! which a receiver can tell. With `-- nats` it does the same on three nodes of NATS, and kills a
//! node too.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::thread::sleep;
use std::time::Duration;

use tidewheel_engines::{Folder, Nats, Postgres};
use tidewheel_tasks::{NatsStore, PostgresStore, Run, Task, TaskStore, Worker};
use tidewheel_time::wall_nanos;
use tokio::runtime::Runtime;

type Failure = Box<dyn Error + Send + Sync>;

const MAILS: u64 = 300;
const WORKERS: usize = 3;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["work", engine, url, ledger] => work(engine, url, Path::new(ledger)),
        [] | ["postgres"] => on_postgres(),
        ["nats"] => on_nats(),
        _ => Err("say postgres, nats, or nothing".into()),
    }
}

/// A tokio runtime, which the engines' clients run on.
fn runtime() -> Result<Runtime, Failure> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    Ok(builder.worker_threads(1).enable_all().build()?)
}

// ---- one worker

fn work(engine: &str, url: &str, ledger: &Path) -> Result<(), Failure> {
    let runtime = runtime()?;
    match engine {
        "postgres" => send_all(
            runtime.block_on(PostgresStore::connect(url, "mails"))?,
            ledger,
        ),
        _ => send_all(runtime.block_on(nats(url))?, ledger),
    }
}

/// Sends mails until standard input ends.
fn send_all(store: impl TaskStore, ledger: &Path) -> Result<(), Failure> {
    let ledger = Mutex::new(OpenOptions::new().create(true).append(true).open(ledger)?);
    let worker = Worker::builder(store)
        .threads(4)
        .lease(Duration::from_secs(3));
    let worker = worker.start(move |run| send(&ledger, run))?;
    std::io::stdin().read_line(&mut String::new())?;
    let stopped = worker.stop(Duration::from_secs(5));
    println!("a worker goes: {} claims given back", stopped.released);
    Ok(())
}

/// What a receiver of mails would remember. The first attempt of some mails fails.
fn send(ledger: &Mutex<File>, run: &Run) -> Result<(), Failure> {
    let now_us = wall_nanos() / 1000;
    if run.attempt() == 1 && run.id().ends_with('7') {
        return Err("the mail server does not answer".into());
    }
    let line = format!("{} {} {} {now_us}\n", run.id(), run.fence().0, run.due().0);
    ledger
        .lock()
        .map_err(|_| "a panic")?
        .write_all(line.as_bytes())?;
    Ok(())
}

async fn nats(urls: &str) -> Result<NatsStore, Failure> {
    let urls: Vec<String> = urls.split(',').map(str::to_owned).collect();
    Ok(NatsStore::builder("mails")
        .replicas(3)
        .connect(urls)
        .await?)
}

// ---- the engine, the orders, and what befalls them

fn on_postgres() -> Result<(), Failure> {
    let Some(server) = Postgres::start() else {
        return Ok(());
    };
    let (runtime, url, folder) = (runtime()?, server.url(), Folder::new("mails"));
    let mut workers = workers("postgres", &url, &folder)?;
    let orders = runtime.block_on(order(&url))?;
    println!("{orders} mails are ordered");
    kill_one(&mut workers)?;
    finish(workers, &folder, Duration::from_secs(16))
}

/// Each mail comes with its order, or not at all.
async fn order(url: &str) -> Result<u64, Failure> {
    let store = PostgresStore::connect(url, "mails").await?;
    let (mut client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await?;
    tokio::spawn(connection);
    client
        .batch_execute("CREATE TABLE orders (id bigint)")
        .await?;
    for n in 0..MAILS {
        let transaction = client.transaction().await?;
        let row = i64::try_from(n)?;
        transaction
            .execute("INSERT INTO orders VALUES ($1)", &[&row])
            .await?;
        store.schedule_in(&transaction, mail(n)).await?;
        transaction.commit().await?;
        // This customer changed their mind: the order goes, and its mail too.
        let transaction = client.transaction().await?;
        store
            .schedule_in(&transaction, Task::new(format!("{}", MAILS + n), ""))
            .await?;
        transaction.rollback().await?;
    }
    Ok(MAILS)
}

fn mail(n: u64) -> Task {
    Task::new(format!("{n}"), "dear customer").after(Duration::from_millis(3000 + n * 40))
}

fn on_nats() -> Result<(), Failure> {
    let Some(mut nodes) = Nats::cluster() else {
        return Ok(());
    };
    let (runtime, urls, folder) = (runtime()?, nodes.urls().join(","), Folder::new("mails"));
    let store = runtime.block_on(nats(&urls))?;
    let mut workers = workers("nats", &urls, &folder)?;
    runtime.block_on(async {
        for n in 0..MAILS {
            store.schedule(mail(n)).await?;
        }
        Ok::<_, Failure>(())
    })?;
    println!("{MAILS} mails are ordered");
    kill_one(&mut workers)?;
    nodes.nodes[0].kill();
    println!("a node is killed");
    sleep(Duration::from_secs(2));
    nodes.nodes[0].restart();
    finish(workers, &folder, Duration::from_secs(30))
}

fn workers(engine: &str, url: &str, folder: &Folder) -> Result<Vec<Child>, Failure> {
    let start = |n: usize| -> Result<Child, Failure> {
        let mut command = Command::new(std::env::current_exe()?);
        command
            .args(["work", engine, url])
            .arg(folder.path().join(format!("{n}")));
        Ok(command.stdin(Stdio::piped()).spawn()?)
    };
    (0..WORKERS).map(start).collect()
}

fn kill_one(workers: &mut Vec<Child>) -> Result<(), Failure> {
    sleep(Duration::from_secs(4));
    let mut unlucky = workers.remove(0);
    // Both, whatever the first says: it may have ended by itself.
    let _ = unlucky.kill();
    unlucky.wait()?;
    println!("a worker is killed");
    Ok(())
}

/// Waits, lets the workers go, and counts.
fn finish(mut workers: Vec<Child>, folder: &Folder, wait: Duration) -> Result<(), Failure> {
    sleep(wait);
    for worker in &mut workers {
        // The end of its standard input ends it.
        drop(worker.stdin.take());
        worker.wait()?;
    }
    let mut sent: BTreeMap<u64, Vec<[u64; 3]>> = BTreeMap::new();
    for n in 0..WORKERS {
        let text = std::fs::read_to_string(folder.path().join(format!("{n}"))).unwrap_or_default();
        for line in text.lines() {
            let numbers: Result<Vec<u64>, _> = line.split(' ').map(str::parse).collect();
            let Ok([mail, fence, due, at]) = <[u64; 4]>::try_from(numbers?) else {
                return Err("a line that is none".into());
            };
            sent.entry(mail).or_default().push([at, fence, due]);
        }
    }
    count(sent);
    Ok(())
}

fn count(mut sent: BTreeMap<u64, Vec<[u64; 3]>>) {
    let (mut late, mut again) = (Vec::new(), 0);
    for runs in sent.values_mut() {
        runs.sort_unstable();
        assert!(runs.iter().all(|[at, _, due]| at >= due), "early: {runs:?}");
        assert!(
            runs.windows(2).all(|two| two[0][1] < two[1][1]),
            "fences: {runs:?}"
        );
        again += runs.len() - 1;
        late.push(runs[0][0] - runs[0][2]);
    }
    let expected: Vec<u64> = (0..MAILS).collect();
    assert_eq!(
        sent.keys().copied().collect::<Vec<_>>(),
        expected,
        "every mail, and no other"
    );
    late.sort_unstable();
    let (p50, on_time) = (
        late[late.len() / 2],
        late.partition_point(|us| *us < 10_000),
    );
    println!(
        "{MAILS} mails sent, {again} of them twice, none early; half within {p50} us of their time,"
    );
    println!(
        "{on_time} within 10 ms; the others were with the worker that was killed, until its leases ended"
    );
}
