//! Rate limits by address: each address has a limit of requests for each window of time.
//!
//! A map with expiration is enough for this, if it expires on time. The first request of an address
//! opens a window. The window's counter lives exactly as long as the window, and later requests
//! only count. Nothing scans the map for old addresses, and an address that stops asking costs
//! nothing once its window is over.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use tidewheel::{Cache, Driver, ManualClock, Ttl};

const LIMIT: u32 = 100;
const WINDOW: Duration = Duration::from_secs(1);

/// The decision about a request.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Pass {
        remaining: u32,
    },
    /// As the header `Retry-After` says it.
    RetryAfter(Duration),
}

struct RateLimit {
    windows: Cache<IpAddr, u32>,
}

impl RateLimit {
    fn new(clock: Option<ManualClock>) -> Result<Self, tidewheel::BuildError> {
        let builder = Cache::builder()
            // A flood of addresses evicts, it does not exhaust memory.
            .max_capacity(1_000_000)
            .time_to_live(WINDOW);
        let windows = match clock {
            Some(clock) => builder.clock(clock).driver(Driver::Manual).build()?,
            None => builder.build()?,
        };
        Ok(Self { windows })
    }

    fn ask(&self, address: IpAddr) -> Verdict {
        // One step, atomic for the address. An update keeps what is left of the window.
        let count = self
            .windows
            .entry(address)
            .and_update(|count| count.saturating_add(1))
            .or_insert(1);
        match LIMIT.checked_sub(count) {
            Some(remaining) => Verdict::Pass { remaining },
            None => Verdict::RetryAfter(match self.windows.ttl(&address) {
                Ttl::Left(left) => left,
                Ttl::Missing | Ttl::Forever => Duration::ZERO,
            }),
        }
    }
}

#[test]
fn each_window_lets_its_limit_through() -> Result<(), tidewheel::BuildError> {
    let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let clock = ManualClock::new();
    let limit = RateLimit::new(Some(clock.clone()))?;
    for remaining in (0..LIMIT).rev() {
        assert_eq!(limit.ask(address), Verdict::Pass { remaining });
    }
    clock.advance(Duration::from_millis(400));
    let refused = limit.ask(address);
    println!("request {}: {refused:?}", LIMIT + 1);
    let left = Duration::from_millis(600);
    assert_eq!(refused, Verdict::RetryAfter(left));
    clock.advance(left - Duration::from_millis(1));
    assert!(matches!(limit.ask(address), Verdict::RetryAfter(_)));
    clock.advance(Duration::from_millis(1));
    let passed = limit.ask(address);
    println!("when the window is over, to the millisecond: {passed:?}");
    let remaining = LIMIT - 1;
    assert_eq!(passed, Verdict::Pass { remaining });

    // Eight threads, one address, the system's clock: each window lets exactly its limit through.
    let limit = RateLimit::new(None)?;
    let passed = AtomicU32::new(0);
    let begun = limit.windows.now();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..50 {
                    if matches!(limit.ask(address), Verdict::Pass { .. }) {
                        passed.fetch_add(1, Relaxed);
                    }
                }
            });
        }
    });
    let passed = passed.into_inner();
    println!("of 400 requests at once {passed} passed");
    // One window, unless the machine stalls for longer than that.
    let took = limit.windows.now() - begun;
    let windows = 1 + (took.as_millis() / WINDOW.as_millis()) as u32;
    assert!((LIMIT..=LIMIT * windows).contains(&passed), "{took:?}");

    // Addresses that do not come back are gone when their windows are, though nobody asks.
    for number in 0..10_000u32 {
        limit.ask(IpAddr::V4(Ipv4Addr::from(number)));
    }
    let most = limit.windows.len();
    let mut waited = Duration::ZERO;
    while !limit.windows.is_empty() && waited < Duration::from_secs(10) {
        std::thread::sleep(Duration::from_millis(50));
        waited += Duration::from_millis(50);
    }
    println!(
        "{most} addresses, {} left after {waited:?}",
        limit.windows.len()
    );
    assert!(limit.windows.is_empty());
    Ok(())
}
