//! A caching resolver: hard and soft deadlines, negative answers, stale answers while the upstream
//! is down.
//!
//! The upstream is a table in this file, and time is moved by hand, so that the whole day of a
//! resolver passes in an instant and prints the same timeline every time. What it shows is what RFC
//! 2308 (negative answers) and RFC 8767 (stale answers) ask of a resolver:
//!
//! - every answer has a TTL of its own, given by the upstream;
//! - at 80 % of it the answer is fetched again in the background, and asked for by reads alone;
//! - that a name does not exist is remembered too;
//! - when the upstream fails, the last answer is served for up to an hour beyond its end.

use std::collections::HashMap;
use std::fmt;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tidewheel::{Cache, Clock, Driver, Lifetime, Loaded, ManualClock};

const SECOND: Duration = Duration::from_secs(1);

/// The fraction of its TTL for which an answer is fresh.
const FRESH: f64 = 0.8;

/// The time after its end for which an answer may stand in for one that cannot be had.
const STALE_LIMIT: Duration = Duration::from_secs(3600);

/// The time for which an absence, or the failure of the upstream, is remembered.
const NEGATIVE_TTL: Duration = Duration::from_secs(30);

/// A name's answer; `None`: there is no such name.
type Answer = Option<Ipv4Addr>;

/// The upstream is down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ServFail;

impl fmt::Display for ServFail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SERVFAIL")
    }
}

impl std::error::Error for ServFail {}

/// The authority: names with addresses and TTLs, whether it answers at all, and how often it was
/// asked.
#[derive(Debug, Default)]
struct Upstream(Mutex<Zone>);

#[derive(Debug, Default)]
struct Zone {
    names: HashMap<&'static str, (Ipv4Addr, Duration)>,
    down: bool,
    queries: u64,
}

impl Upstream {
    fn zone(&self) -> MutexGuard<'_, Zone> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn publish(&self, name: &'static str, last: u8, ttl: Duration) {
        let address = Ipv4Addr::new(192, 0, 2, last);
        self.zone().names.insert(name, (address, ttl));
    }

    /// One query. An absence is a value here, so that it can have a TTL like any answer.
    fn query(&self, name: &str) -> Result<Loaded<Answer>, ServFail> {
        let mut zone = self.zone();
        zone.queries += 1;
        if zone.down {
            return Err(ServFail);
        }
        Ok(match zone.names.get(name) {
            Some((address, ttl)) => Loaded::new(
                Some(*address),
                Lifetime::ttl(*ttl).fresh_for(ttl.mul_f64(FRESH)),
            ),
            None => Loaded::new(None, Lifetime::ttl(NEGATIVE_TTL)),
        })
    }
}

/// The resolver with what it runs on.
struct Resolver {
    clock: ManualClock,
    upstream: Arc<Upstream>,
    cache: Cache<String, Answer>,
}

impl Resolver {
    fn new() -> Result<Self, tidewheel::BuildError> {
        let clock = ManualClock::new();
        let upstream = Arc::new(Upstream::default());
        let refreshed = Arc::clone(&upstream);
        let cache = Cache::builder()
            .name("dns")
            .max_capacity(10_000)
            .no_default_ttl()
            .ttl_bounds(SECOND, Duration::from_secs(86_400))
            .negative_ttl(NEGATIVE_TTL)
            .stale_on_error(STALE_LIMIT)
            // Each answer says until when it is fresh.
            .refresh_after(1.0)
            .refresh_with(move |name: &String| refreshed.query(name))
            .clock(clock.clone())
            .driver(Driver::Manual)
            .build()?;
        Ok(Self {
            clock,
            upstream,
            cache,
        })
    }

    fn resolve(&self, name: &str) -> Result<Answer, Arc<ServFail>> {
        self.cache
            .fetch(name.to_owned())
            .load_with(|| self.upstream.query(name))
            .value
    }

    /// Resolves a name and prints a line of the timeline; returns what it was and how often the
    /// upstream was asked for it.
    fn show(&self, name: &str, remark: &str) -> (Result<Answer, ServFail>, u64) {
        let before = self.upstream.zone().queries;
        let answer = self.resolve(name).map_err(|error| *error);
        let queries = self.upstream.zone().queries - before;
        let shown = match answer {
            Ok(Some(address)) => address.to_string(),
            Ok(None) => String::from("NXDOMAIN"),
            Err(error) => error.to_string(),
        };
        let at = self.clock.now().as_secs();
        println!("{at:>6} s  {name:<16} {shown:<12} {queries} queries  {remark}");
        (answer, queries)
    }

    /// Time passes: the cache's driver and its refresher do what they would do in threads of their
    /// own.
    fn pass(&self, seconds: u32) {
        self.clock.advance(SECOND * seconds);
        self.run();
    }

    fn run(&self) {
        while self.cache.advance(self.cache.now(), 1000).backlog {}
        self.cache.run_refreshes(usize::MAX);
    }
}

fn address(last: u8) -> Result<Answer, ServFail> {
    Ok(Some(Ipv4Addr::new(192, 0, 2, last)))
}

#[test]
fn a_resolver_keeps_answers_as_their_times_to_live_say() -> Result<(), tidewheel::BuildError> {
    let dns = Resolver::new()?;
    dns.upstream.publish("tide.example", 1, SECOND * 300);
    dns.upstream.publish("moon.example", 7, SECOND * 60);

    println!("  time    name             answer       upstream");
    assert_eq!(dns.show("tide.example", "cold"), (address(1), 1));
    assert_eq!(dns.show("tide.example", "from the cache"), (address(1), 0));
    assert_eq!(
        dns.show("moon.example", "cold, a TTL of its own"),
        (address(7), 1)
    );

    dns.pass(60);
    dns.upstream.publish("moon.example", 8, SECOND * 60);
    let renewed = dns.show("moon.example", "its hard deadline is over");
    assert_eq!(renewed, (address(8), 1));

    dns.pass(180);
    dns.upstream.publish("tide.example", 2, SECOND * 300);
    let soft = dns.show(
        "tide.example",
        "past the soft deadline: the old answer at once",
    );
    assert_eq!(soft, (address(1), 0));
    dns.run();
    assert_eq!(
        dns.show("tide.example", "refreshed in the background"),
        (address(2), 0)
    );

    assert_eq!(dns.show("nobody.example", "no such name"), (Ok(None), 1));
    dns.pass(29);
    assert_eq!(dns.show("nobody.example", "remembered"), (Ok(None), 0));
    dns.pass(1);
    dns.upstream.publish("nobody.example", 9, SECOND * 60);
    assert_eq!(
        dns.show("nobody.example", "forgotten: it exists now"),
        (address(9), 1)
    );

    dns.upstream.zone().down = true;
    dns.pass(600);
    assert_eq!(
        dns.cache.get("tide.example"),
        None,
        "a plain look-up is strict"
    );
    let stale = dns.show(
        "tide.example",
        "upstream down: the last answer, past its end",
    );
    assert_eq!(stale, (address(2), 1));
    let again = dns.show("tide.example", "the failure is remembered too");
    assert_eq!(again, (address(2), 0));
    assert_eq!(dns.show("star.example", "never seen"), (Err(ServFail), 1));

    dns.pass(3600);
    assert_eq!(
        dns.show("tide.example", "the limit of staleness is over"),
        (Err(ServFail), 1)
    );
    dns.upstream.zone().down = false;
    dns.pass(30);
    assert_eq!(dns.show("tide.example", "upstream back"), (address(2), 1));

    let stats = dns.cache.stats();
    println!(
        "{} hits ({} stale), {} misses, {} loads, {} of them failed, {} expired",
        stats.hits,
        stats.stale_hits,
        stats.misses,
        stats.loads,
        stats.load_errors,
        stats.expirations,
    );
    dns.cache.close();
    Ok(())
}
