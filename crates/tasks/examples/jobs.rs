//! Jobs in a file, by keys and values of your own types. Kill it while it runs, start it again, and
//! what it has accepted is done.
//!
//! `cargo run -p tidewheel-tasks --example jobs`

use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

use tidewheel_tasks::{FileStore, Jobs, Outcome, Retry, TaskStore, Worker, wait};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::temp_dir().join("tidewheel-example-jobs.redb");
    let jobs = Jobs::<_, u64, String>::new(Arc::new(FileStore::open(&path)?));
    println!("{} jobs were in the file", jobs.store().len());
    let retry = Retry::default().attempts(3).base(Duration::from_millis(50));
    let worker = Worker::builder(Arc::clone(jobs.store())).retry(retry);
    let worker = worker.start(jobs.handler(|_, job| {
        println!("attempt {} to send {}", job.attempt(), job.value);
        match (job.key, job.attempt()) {
            (2, 1) => Outcome::failed("the server does not answer"),
            (3, _) => Outcome::dead("no such address"),
            _ => Outcome::Done,
        }
    }))?;
    // Each call returns when the job is on disk.
    let (now, soon) = (Duration::ZERO, Duration::from_millis(100));
    wait(jobs.set(&1, &"a mail to ada".to_owned(), now))?;
    wait(jobs.set(&2, &"a mail to bob".to_owned(), soon))?;
    wait(jobs.set(&3, &"a mail to nobody".to_owned(), now))?;
    sleep(Duration::from_secs(1));
    for letter in wait(jobs.store().dead_letters(100))? {
        println!("dead: {}, {}", letter.id, letter.error);
        wait(jobs.store().remove_dead(&letter.id))?;
    }
    assert_eq!(worker.stop(Duration::from_secs(1)).left, 0);
    Ok(())
}
