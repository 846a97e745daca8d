//! Jobs in a file: they survive a crash, are tried again when they fail, and are dead letters in
//! the end. Kill it while it runs, start it again, and what it has accepted is done.
//!
//! `cargo run -p tidewheel-scheduler --features redb --example jobs`

use std::thread::sleep;
use std::time::Duration;

use tidewheel_scheduler::{Outcome, RedbJournal, Retry, Scheduler};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::temp_dir().join("tidewheel-example-jobs.redb");
    let jobs = Scheduler::<u64, String>::builder()
        .workers(2)
        .durable(RedbJournal::open(&path)?)
        .retry(Retry::default().attempts(3).base(Duration::from_millis(50)))
        .start(|_, run| {
            println!("attempt {} to send {}", run.attempt, run.value);
            match (run.key, run.attempt) {
                (2, 1) => Outcome::failed("the server does not answer"),
                (3, _) => Outcome::dead("no such address"),
                _ => Outcome::Done,
            }
        })?;
    println!("{} jobs were in the file", jobs.len());
    // Each call returns when the job is on disk.
    jobs.set(1, "a mail to ada".to_owned(), Duration::ZERO)?;
    jobs.set(2, "a mail to bob".to_owned(), Duration::from_millis(100))?;
    jobs.set(3, "a mail to nobody".to_owned(), Duration::ZERO)?;
    sleep(Duration::from_secs(1));
    for letter in jobs.dead_letters() {
        println!("dead: {}, {}", letter.value, letter.error);
        jobs.remove_dead(letter.id)?;
    }
    jobs.stop(Duration::from_secs(1)).journal?;
    Ok(())
}
