//! Measures the tier's costs: a hit next to the plain cache's, a miss, a fill, and the time until
//! all of four caches have the message of a change.
//!
//! `cargo bench -p tidewheel-tier --features valkey --bench costs`

use std::hint::black_box;
use std::time::Duration;

use tidewheel::Cache;
use tidewheel_engines::{Engine, Server, eventually, since};
use tidewheel_tier::{Codec, Embedded, Raw, Tier, Tiered, TieredCache, Valkey};
use tidewheel_time::monotonic_nanos;

const KEYS: u64 = 10_000;

fn main() {
    // `cargo test` runs it with this argument: it would measure nothing then.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    hits("numbers", |key| key);
    hits("strings of 64 bytes", |key| format!("{key:064}"));
    if let Some(engine) = Engine::valkey() {
        let server = Server::start(&engine, &[]);
        misses(&server);
        messages(&server);
        pushes(&server);
    }
}

/// Nanoseconds of one look, the best of some rounds: both in turn, so that the machine treats them
/// alike.
fn hits<V>(what: &str, value: impl Fn(u64) -> V)
where
    V: Clone + Send + Sync + 'static,
    Raw: Codec<V>,
{
    let hour = Duration::from_secs(3600);
    let plain = Cache::builder()
        .max_capacity(2 * KEYS)
        .time_to_live(hour)
        .build()
        .expect("valid");
    let tiered: TieredCache<u64, V> = Cache::builder()
        .max_capacity(2 * KEYS)
        .no_default_ttl()
        .tiered(Tier::new("costs", Embedded::new(), Raw).time_to_live(hour))
        .expect("valid");
    for key in 0..KEYS {
        plain.insert(key, value(key));
        let taken = tiered.insert(key, value(key));
        taken.expect("taken");
        tiered.get(&key);
    }
    let (mut of_plain, mut of_tiered) = (f64::MAX, f64::MAX);
    for _ in 0..30 {
        of_plain = of_plain.min(per_look(|key| plain.get(&key)));
        of_tiered = of_tiered.min(per_look(|key| tiered.get(&key)));
    }
    let more = (of_tiered / of_plain - 1.0) * 100.0;
    println!("a hit, {what}: plain {of_plain:.1} ns, tiered {of_tiered:.1} ns ({more:+.1} %)");
}

fn per_look<V>(look: impl Fn(u64) -> Option<V>) -> f64 {
    let rounds = 20;
    let begin = monotonic_nanos();
    for _ in 0..rounds {
        for key in 0..KEYS {
            black_box(look(black_box(key.wrapping_mul(7919) % KEYS)));
        }
    }
    since(begin).as_nanos() as f64 / (rounds * KEYS) as f64
}

fn open(server: &Server) -> TieredCache<u64, u64> {
    let url = format!("redis://127.0.0.1:{}", server.port);
    let tier = Tier::new("costs", Valkey::open(&url).expect("an address"), Raw);
    let cache = Cache::builder()
        .unbounded()
        .no_default_ttl()
        .tiered(tier)
        .expect("valid");
    eventually("a watched cache", || cache.is_watched().then_some(()));
    cache
}

fn quantiles(what: &str, mut nanos: Vec<u64>) {
    nanos.sort_unstable();
    let at = |share: f64| nanos[((nanos.len() - 1) as f64 * share) as usize] as f64 / 1000.0;
    let (median, p99, most) = (at(0.5), at(0.99), at(1.0));
    println!("{what}: p50 {median:.0} us, p99 {p99:.0} us, max {most:.0} us");
}

fn timed(count: u64, mut run: impl FnMut(u64)) -> Vec<u64> {
    let one = |index| {
        let begin = monotonic_nanos();
        run(index);
        since(begin).as_nanos() as u64
    };
    (0..count).map(one).collect()
}

fn misses(server: &Server) {
    let (writer, reader) = (open(server), open(server));
    let mut client = server.client();
    let pings = timed(5_000, |_| drop(client.call(&["PING"])));
    quantiles("a PING on a socket of one's own", pings);
    let fills = timed(5_000, |key| {
        black_box(writer.get_or_load(key, || key));
    });
    quantiles("a load with lease and fill (two round trips)", fills);
    let misses = timed(5_000, |key| {
        black_box(reader.get(&key));
    });
    quantiles("a miss that the engine answers (one round trip)", misses);
}

/// From the call of `invalidate` until the last of four caches has forgotten.
fn messages(server: &Server) {
    let caches: Vec<_> = (0..4).map(|_| open(server)).collect();
    let change = |key| {
        caches[0].insert(key, key).expect("taken");
        for cache in &caches {
            eventually("a value in the first tier", || {
                cache.get(&key);
                std::thread::sleep(Duration::from_millis(1));
                cache.get_local(&key)
            });
        }
        let begin = monotonic_nanos();
        caches[0].invalidate(&key).expect("taken");
        while caches.iter().any(|cache| cache.get_local(&key).is_some()) {
            std::hint::spin_loop();
        }
        since(begin).as_nanos() as u64
    };
    quantiles(
        "the message of a change at all of four",
        (0..1_000).map(change).collect(),
    );
}

/// Messages of many changes: how many a process takes in, and what they cost the engine for each
/// process.
fn pushes(server: &Server) {
    const CHANGES: u64 = 200_000;
    for processes in [0, 1, 4, 16] {
        let caches: Vec<_> = (0..processes).map(|_| open(server)).collect();
        let begin = monotonic_nanos();
        let mut client = server.client();
        let mut sent = 0;
        while sent < CHANGES {
            for _ in 0..100 {
                sent += 1;
                let key = format!("costs:v:{{={sent}}}");
                client
                    .send(&["SET", &key, "x", "PX", "60000"])
                    .expect("sent");
            }
            for _ in 0..100 {
                client.receive().expect("a reply");
            }
        }
        let written = since(begin).as_nanos() as f64 / CHANGES as f64;
        let all = |cache: &TieredCache<u64, u64>| cache.tier_stats().changes >= CHANGES;
        eventually("the messages of all changes", || {
            caches.iter().all(all).then_some(())
        });
        let heard = since(begin).as_nanos() as f64 / CHANGES as f64;
        println!(
            "{processes} processes watch: {written:.0} ns a change, {heard:.0} ns until all have the message"
        );
    }
}
