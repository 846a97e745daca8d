//! A store of sessions: each ends 30 minutes after its last request, and 12 hours after the log-in
//! at the latest.
//!
//! A request renews a session, whether it reads or changes it; nothing moves the 12 hours. A user's
//! sessions end together by a tag, and the listener gets one event for each session that ends. The
//! clock is moved by hand, so every promise is asserted to the millisecond, and a working day takes
//! no time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tidewheel::{Cache, Clock, Driver, Lifetime, ManualClock, Removal, RemovalCause, Ttl};

const TICK: Duration = Duration::from_millis(1);
const MINUTE: Duration = Duration::from_secs(60);
const IDLE: Duration = Duration::from_secs(30 * 60);
const LIMIT: Duration = Duration::from_secs(12 * 3600);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Session {
    user: &'static str,
    cart: Vec<&'static str>,
}

/// The end of a session, as an audit log keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct End {
    at: Duration,
    cause: RemovalCause,
}

/// One list for each session: it should have one element, once the session is over.
type Ends = Arc<Mutex<HashMap<u64, Vec<End>>>>;

/// The sessions of a service.
struct Sessions {
    cache: Cache<u64, Session>,
    clock: ManualClock,
    ends: Ends,
}

impl Sessions {
    fn new() -> Result<Self, tidewheel::BuildError> {
        let clock = ManualClock::new();
        let ends = Ends::default();
        let (log, time) = (Arc::clone(&ends), clock.clone());
        let cache = Cache::builder()
            .name("sessions")
            .max_capacity(100_000)
            .time_to_idle(IDLE)
            .time_to_live(LIMIT)
            .eviction_listener(move |removal: Removal<u64, Session>| {
                // A changed session is a new value in place of the old one: no end.
                if removal.cause != RemovalCause::Replaced {
                    let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
                    log.entry(removal.key).or_default().push(End {
                        at: time.now(),
                        cause: removal.cause,
                    });
                }
            })
            .clock(clock.clone())
            // In a service, leave the clock and the driver out: a thread ends sessions on time.
            .driver(Driver::Manual)
            .build()?;
        Ok(Self { cache, clock, ends })
    }

    /// Begins a session. A real one's name would be random.
    fn log_in(&self, id: u64, user: &'static str) {
        let session = Session {
            user,
            cart: Vec::new(),
        };
        // The configured times, and a tag by which all sessions of a user end at once.
        let lifetime = Lifetime::configured().tag(format!("user:{user}"));
        let is_new = self.cache.insert_if_absent_with(id, session, lifetime);
        assert!(is_new, "two sessions must not share a name");
    }

    /// A request that reads: renews the session, and tells whose it is.
    fn user_of(&self, id: u64) -> Option<&'static str> {
        self.cache.view(&id, |session| session.user)
    }

    /// A request that changes: renews the session too, and leaves the 12 hours as they are. The
    /// closure runs once, and no other change of this session comes between.
    fn buy(&self, id: u64, thing: &'static str) -> Option<usize> {
        let changed = self.cache.update(&id, |session| {
            let mut session = session.clone();
            session.cart.push(thing);
            session
        })?;
        Some(changed.cart.len())
    }

    fn log_out(&self, id: u64) -> bool {
        self.cache.remove(&id).is_some()
    }

    fn log_out_everywhere(&self, user: &str) -> u64 {
        let tag = format!("user:{user}");
        let count = self.cache.count_tag(&tag);
        self.cache.invalidate_tag(&tag);
        count
    }

    /// Returns the time that a session has left if nobody uses it.
    fn left(&self, id: u64) -> Ttl {
        self.cache.ttl(&id)
    }

    /// Time passes; what a thread would do then is done here.
    fn wait(&self, time: Duration) {
        self.clock.advance(time);
        self.cache.run_due();
    }

    /// The events of a session so far.
    fn ends(&self, id: u64) -> Vec<End> {
        let ends = self.ends.lock().unwrap_or_else(PoisonError::into_inner);
        ends.get(&id).cloned().unwrap_or_default()
    }
}

#[test]
fn sessions_end_at_their_millisecond() -> Result<(), tidewheel::BuildError> {
    let sessions = Sessions::new()?;
    let (ada, bob, eve) = (1, 2, 3);

    // Idle: 30 minutes to the millisecond, counted from the last request of either kind.
    sessions.log_in(ada, "ada");
    assert_eq!(sessions.left(ada), Ttl::Left(IDLE));
    sessions.wait(29 * MINUTE);
    assert_eq!(
        sessions.left(ada),
        Ttl::Left(MINUTE),
        "asking renews nothing"
    );
    assert_eq!(sessions.user_of(ada), Some("ada"));
    assert_eq!(sessions.left(ada), Ttl::Left(IDLE), "a read renews");
    sessions.wait(29 * MINUTE);
    assert_eq!(sessions.buy(ada, "tea"), Some(1));
    assert_eq!(sessions.left(ada), Ttl::Left(IDLE), "a change renews");
    sessions.wait(IDLE - TICK);
    assert!(sessions.cache.contains_key(&ada), "a millisecond before");
    sessions.wait(TICK);
    assert_eq!(sessions.user_of(ada), None, "30 minutes without a request");
    let at = 58 * MINUTE + IDLE;
    let cause = RemovalCause::Expired;
    assert_eq!(sessions.ends(ada), [End { at, cause }]);
    println!("ada: idle for 30 minutes, ended at {:?} by {cause:?}", at);

    // The limit: 12 hours after the log-in, however busy the session is.
    sessions.log_in(bob, "bob");
    let begun = sessions.clock.now();
    for request in 1..=72 {
        let before = sessions.clock.now() - begun;
        assert_eq!(sessions.user_of(bob), Some("bob"));
        assert_eq!(sessions.buy(bob, "cake"), Some(request));
        let expected = IDLE.min(LIMIT - before);
        assert_eq!(
            sessions.left(bob),
            Ttl::Left(expected),
            "whichever is over first"
        );
        sessions.wait(10 * MINUTE);
    }
    assert_eq!(sessions.user_of(bob), None);
    let at = begun + LIMIT;
    assert_eq!(sessions.ends(bob), [End { at, cause }]);
    println!(
        "bob: 144 requests in 12 hours, ended at {:?} by {cause:?}",
        at
    );

    // One log-out, and all of a user's sessions at once.
    sessions.log_in(eve, "eve");
    sessions.log_in(bob + 100, "bob");
    for device in 10..13 {
        sessions.log_in(device, "ada");
        sessions.wait(MINUTE);
    }
    // A changed session still has its tag.
    assert_eq!(sessions.buy(11, "scone"), Some(1));
    assert!(sessions.log_out(bob + 100));
    assert!(!sessions.log_out(bob + 100), "it is over");
    let at = sessions.clock.now();
    assert_eq!(sessions.log_out_everywhere("ada"), 3);
    for device in 10..13 {
        assert_eq!(sessions.user_of(device), None, "invisible at once");
    }
    assert_eq!(
        sessions.user_of(eve),
        Some("eve"),
        "nobody else is concerned"
    );
    // A thread would hand the events over by itself.
    sessions.wait(Duration::ZERO);
    for device in 10..13 {
        let cause = RemovalCause::Invalidated;
        assert_eq!(sessions.ends(device), [End { at, cause }]);
    }
    let cause = RemovalCause::Removed;
    assert_eq!(sessions.ends(bob + 100), [End { at, cause }]);
    sessions.log_in(13, "ada");
    assert_eq!(
        sessions.user_of(13),
        Some("ada"),
        "a later log-in is a new one"
    );
    println!("ada's three devices ended together; eve, and ada's next log-in, did not");

    // The service stops: what is left ends with it, and every session that there was has had one
    // event.
    let begun = [ada, bob, eve, bob + 100, 10, 11, 12, 13];
    sessions.cache.close();
    for id in begun {
        let ends = sessions.ends(id);
        assert_eq!(ends.len(), 1, "session {id}: {ends:?}");
    }
    assert_eq!(sessions.ends(13)[0].cause, RemovalCause::Closed);
    println!("{} sessions, one event for each", begun.len());
    Ok(())
}
