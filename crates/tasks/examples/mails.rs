//! Tasks that an engine keeps, and a worker runs at their millisecond. Here the engine is a file,
//! for one machine. For many it is `PostgresStore::connect(url, "mails")` or a `NatsStore`, and
//! each machine starts such a worker.
//!
//! `cargo run -p tidewheel-tasks --example mails`

use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

use tidewheel_tasks::{FileStore, Priority, Task, TaskStore, Worker, wait};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::temp_dir().join("tidewheel-example-mails.redb");
    let store = Arc::new(FileStore::open(&path)?);
    // Strict: the engine is asked before each run, so what was cancelled does not run.
    let worker = Worker::builder(Arc::clone(&store))
        .strict(true)
        .start(|run| {
            if run.id() == "bob" && run.attempt() == 1 {
                return Err("the mail server does not answer");
            }
            let text = String::from_utf8_lossy(run.payload());
            println!("{}: {text}, {:?} late", run.id(), run.late());
            Ok(())
        })?;
    let half = Duration::from_millis(500);
    wait(store.schedule(Task::new("ada", "your order").after(half)))?;
    wait(store.schedule(Task::new("bob", "your order").priority(Priority::High)))?;
    wait(store.schedule(Task::new("report", "all orders").every(half)))?;
    wait(store.schedule(Task::new("eve", "a reminder").after(half)))?;
    wait(store.cancel("eve"))?;
    sleep(half * 5);
    wait(store.cancel("report"))?;
    println!("{:?}", worker.stop(half));
    Ok(())
}
