//! Sessions that end 30 minutes after the last request, and 8 hours after the log-in at the latest.
//!
//! Idle time slides with every read; the time to live is the limit that it may not pass. The clock is moved
//! by hand, so that a working day takes no time.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidewheel::{Cache, Driver, Lifetime, ManualClock, RemovalCause, Ttl};

const MINUTE: Duration = Duration::from_secs(60);
const IDLE: Duration = Duration::from_secs(30 * 60);
const LIMIT: Duration = Duration::from_secs(8 * 3600);

#[derive(Debug, Clone)]
struct Session {
    user: &'static str,
}

/// The sessions of a service.
struct Sessions {
    cache: Cache<u64, Session>,
    clock: ManualClock,
    last: AtomicU64,
    ended: Arc<Mutex<Vec<(&'static str, RemovalCause)>>>,
}

impl Sessions {
    fn new() -> Result<Self, tidewheel::BuildError> {
        let clock = ManualClock::new();
        let ended = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&ended);
        let cache = Cache::builder()
            .max_capacity(100_000)
            .time_to_idle(IDLE)
            .time_to_live(LIMIT)
            .eviction_listener(move |removal: tidewheel::Removal<u64, Session>| {
                if let Ok(mut log) = log.lock() {
                    log.push((removal.value.user, removal.cause));
                }
            })
            .clock(clock.clone())
            // In a service, leave the clock and the driver out: a thread ends sessions on time.
            .driver(Driver::Manual)
            .build()?;
        Ok(Self {
            cache,
            clock,
            last: AtomicU64::new(0),
            ended,
        })
    }

    /// Begins a session. A real one's name would be random.
    fn log_in(&self, user: &'static str) -> u64 {
        let id = self.last.fetch_add(1, Relaxed) + 1;
        // The tag ends all sessions of a user at once.
        let lifetime = Lifetime::configured().tag(format!("user:{user}"));
        self.cache.insert_with(id, Session { user }, lifetime);
        self.tell(&format!("{user} logs in"), id);
        id
    }

    /// A request; tells whether its session is still there.
    fn request(&self, id: u64) -> bool {
        let there = self.cache.get(&id).is_some();
        self.tell("a request", id);
        there
    }

    fn wait(&self, time: Duration) {
        self.clock.advance(time);
        while self.cache.advance(self.cache.now(), 1000).backlog {}
    }

    fn tell(&self, what: &str, id: u64) {
        let minutes = self.cache.now().as_secs() / 60;
        let left = match self.cache.ttl(&id) {
            Ttl::Left(left) => format!("{} minutes left", left.as_secs() / 60),
            Ttl::Missing => String::from("no such session"),
            Ttl::Forever => String::from("endless"),
        };
        println!("{:02}:{:02}  {what}: {left}", minutes / 60, minutes % 60);
    }
}

fn main() -> Result<(), tidewheel::BuildError> {
    let sessions = Sessions::new()?;

    println!("A session slides with every request, and ends when there are none:");
    let ada = sessions.log_in("ada");
    for _ in 0..5 {
        sessions.wait(25 * MINUTE);
        assert!(sessions.request(ada), "each request is within 30 minutes");
    }
    sessions.wait(30 * MINUTE);
    assert!(!sessions.request(ada), "30 minutes without a request");

    println!("The limit holds however busy the session is:");
    let bob = sessions.log_in("bob");
    let begun = sessions.cache.now();
    while sessions.cache.get(&bob).is_some() {
        sessions.wait(10 * MINUTE);
    }
    sessions.tell("the last request", bob);
    assert_eq!(sessions.cache.now() - begun, LIMIT);

    println!("A new password ends all sessions of a user at once:");
    let (phone, laptop) = (sessions.log_in("eve"), sessions.log_in("eve"));
    let other = sessions.log_in("ada");
    assert!(sessions.cache.invalidate_tag("user:eve"));
    assert!(!sessions.request(phone) && !sessions.request(laptop));
    assert!(sessions.request(other));

    sessions.wait(MINUTE);
    let ended = sessions
        .ended
        .lock()
        .map_or_else(|_| Vec::new(), |log| log.clone());
    println!("The listener was told: {ended:?}");
    let expected = [
        ("ada", RemovalCause::Expired),
        ("bob", RemovalCause::Expired),
        ("eve", RemovalCause::Invalidated),
        ("eve", RemovalCause::Invalidated),
    ];
    assert_eq!(ended, expected);
    Ok(())
}
