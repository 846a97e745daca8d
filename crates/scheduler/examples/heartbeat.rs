//! Connections that are closed when their heartbeats stop: a task for each, which every heartbeat
//! moves later. A move takes constant time and no memory, also among millions.
//!
//! `cargo run -p tidewheel-scheduler --example heartbeat`

use std::thread::sleep;
use std::time::Duration;

use tidewheel_scheduler::Scheduler;

const SILENCE: Duration = Duration::from_millis(300);

fn main() -> Result<(), tidewheel_scheduler::Error> {
    let scheduler = Scheduler::<u32, &str>::builder().start(|_, run| {
        println!("{} is silent: closed, {:?} late", run.value, run.late);
    })?;
    for (connection, name) in ["ada", "bob", "eve"].into_iter().enumerate() {
        scheduler.set(connection as u32, name, SILENCE)?;
    }
    for beat in 1..=5 {
        sleep(SILENCE / 3);
        assert!(scheduler.move_to(&0, SILENCE));
        println!("heartbeat {beat} of ada, {} connections", scheduler.len());
        if beat == 2 {
            scheduler.remove(&1); // bob says good-bye, and is closed by no task
        }
    }
    let stopped = scheduler.stop(Duration::from_secs(1));
    println!("still open at the end: {:?}", stopped.pending);
    Ok(())
}
