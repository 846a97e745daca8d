//! Sessions: each ends when nobody has used it for a while, and after its limit at the latest.
//!
//! `cargo run -p tidewheel --example sessions`

use std::thread::sleep;
use std::time::Duration;

use tidewheel::{Cache, Lifetime, Removal};

fn main() -> Result<(), tidewheel::BuildError> {
    // In a service: 30 minutes, and 12 hours.
    let (idle, limit) = (Duration::from_millis(300), Duration::from_secs(1));
    let sessions = Cache::<u64, String>::builder()
        .max_capacity(100_000)
        .time_to_idle(idle)
        .time_to_live(limit)
        .eviction_listener(|gone: Removal<u64, String>| {
            println!(
                "session {} of {} ends: {:?}",
                gone.key, gone.value, gone.cause
            );
        })
        .build()?;
    let user = |name: &str| Lifetime::default().tag(format!("user:{name}"));
    sessions.insert_with(1, "ada".into(), user("ada"));
    sessions.insert_with(2, "bob".into(), user("bob"));
    sessions.insert_with(3, "bob".into(), user("bob"));

    sessions.invalidate_tag("user:bob"); // bob logs out everywhere
    for request in 1.. {
        let Some(name) = sessions.get(&1) else { break };
        println!("request {request} of {name}, {:?}", sessions.ttl(&1));
        sleep(Duration::from_millis(200)); // each request renews the session, up to its limit
    }
    sessions.insert_with(4, "eve".into(), user("eve"));
    sleep(idle * 2); // nobody asks, and the session ends on time all the same
    sessions.close();
    Ok(())
}
