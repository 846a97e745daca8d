//! H1 on the wire: a shim between cache and engine delays, splits and joins the engine's bytes.
//!
//! Each connection has delays of its own, so replies and invalidation messages overtake each other.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use tidewheel_engines::{Engine, Server, within};
use tidewheel_tier::Valkey;

use crate::support::{Texts, cache, on_server, tier, url, wait_watched};

const KEYS: usize = 32;

fn rounds() -> usize {
    let long = std::env::var_os("TIDEWHEEL_LONG").is_some();
    if long { 3_000 } else { 60 }
}

struct Dice(u64);

impl Dice {
    fn below(&mut self, count: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % count
    }
}

/// A port that leads to the server, in detours.
fn shim(server: u16) -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        for (seed, client) in listener.incoming().flatten().enumerate() {
            if let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, server)) {
                lead(client, server, seed as u64);
            }
        }
    });
    port
}

fn lead(client: TcpStream, server: TcpStream, seed: u64) {
    let (mut from_client, mut to_server) = (
        client.try_clone().expect("a second handle"),
        server.try_clone().expect("a second handle"),
    );
    std::thread::spawn(move || {
        let ended = std::io::copy(&mut from_client, &mut to_server);
        let _ = (ended, to_server.shutdown(Shutdown::Both));
    });
    std::thread::spawn(move || {
        let ended = delay(server, &client, Dice(seed));
        let _ = (ended, client.shutdown(Shutdown::Both));
    });
}

/// Waits, takes what has come meanwhile, and sends it on in pieces.
fn delay(mut server: TcpStream, mut client: &TcpStream, mut dice: Dice) -> std::io::Result<()> {
    client.set_nodelay(true)?;
    let mut bytes = vec![0; 65_536];
    loop {
        // Waits for the first byte, so that a delay joins what comes after it.
        server.peek(&mut bytes[..1])?;
        if dice.below(3) > 0 {
            std::thread::sleep(Duration::from_micros(dice.below(3_000)));
        }
        let count = server.read(&mut bytes)?;
        if count == 0 {
            return Ok(());
        }
        let cut = if dice.below(4) == 0 {
            dice.below(count as u64) as usize
        } else {
            0
        };
        client.write_all(&bytes[..cut])?;
        client.write_all(&bytes[cut..count])?;
    }
}

/// The origin's value.
struct Origin(Vec<AtomicU64>);

impl Origin {
    fn new() -> Self {
        Self((0..KEYS).map(|_| AtomicU64::new(0)).collect())
    }

    fn version(&self, key: usize) -> String {
        self.0[key].load(SeqCst).to_string()
    }
}

#[test]
fn no_old_value_stays_whatever_overtakes_what() {
    let Some(engine) = Engine::valkey() else {
        return;
    };
    let server = Server::start(&engine, &[]);
    let port = shim(server.port);
    let readers: Vec<_> = (0..2)
        .map(|_| cache(tier(Valkey::open(&url(port)).expect("an address"))))
        .collect();
    readers.iter().for_each(wait_watched);
    let (writer, origin) = (on_server(server.port), Origin::new());
    for round in 0..rounds() {
        std::thread::scope(|scope| {
            for reader in &readers {
                scope.spawn(|| read_all(reader, &origin));
            }
            scope.spawn(|| write_all(&writer, &origin, round));
        });
        for reader in &readers {
            assert_true(reader, &origin);
        }
    }
}

fn read_all(reader: &Texts, origin: &Origin) {
    for pass in 0..2 * KEYS {
        let key = pass % KEYS;
        reader.get_or_load(key.to_string(), || origin.version(key));
    }
}

fn write_all(writer: &Texts, origin: &Origin, round: usize) {
    for key in (0..KEYS).filter(|key| !(key + round).is_multiple_of(3)) {
        origin.0[key].fetch_add(1, SeqCst);
        writer.invalidate(&key.to_string()).expect("taken");
    }
}

/// Once all messages have arrived, the first tier is true. The shim delays it by 6 ms at most,
/// and a machine that is busy by more.
fn assert_true(reader: &Texts, origin: &Origin) {
    let is_true = |key: usize| {
        let held = reader.get_local(&key.to_string());
        held.is_none_or(|held| held == origin.version(key))
    };
    let limit = Duration::from_secs(2);
    within(limit, "a first tier without old values", || {
        (0..KEYS).all(is_true).then_some(())
    });
}

/// The same race, lost: the client-side cache of the crate `redis` stores what an invalidation
/// message has overtaken.
#[cfg(feature = "negative-control")]
#[test]
fn the_cache_of_the_crate_redis_1_8_keeps_old_values() {
    use redis::AsyncCommands;
    use redis::caching::CacheConfig;

    let Some(engine) = Engine::valkey() else {
        return;
    };
    let server = Server::start(&engine, &[]);
    let address = format!("redis://127.0.0.1:{}/?protocol=resp3", shim(server.port));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let old = runtime.block_on(async {
        let client = redis::Client::open(address).expect("an address");
        let config = redis::AsyncConnectionConfig::new().set_cache_config(CacheConfig::new());
        let connect = client.get_multiplexed_async_connection_with_config(&config);
        let reader = connect.await.expect("a connection");
        let writer = redis::Client::open(url(server.port)).expect("an address");
        let mut writer = writer
            .get_multiplexed_async_connection()
            .await
            .expect("a connection");
        for round in 0..2_000 {
            // What the round before has left goes, so that the reader asks the server.
            let _: u64 = writer.incr("k", 1).await.expect("a reply");
            tokio::time::sleep(Duration::from_millis(10)).await;
            let mut asking = reader.clone();
            let ask = tokio::spawn(async move { asking.get::<_, Option<u64>>("k").await });
            tokio::time::sleep(Duration::from_micros(300)).await;
            let version: u64 = writer.incr("k", 1).await.expect("a reply");
            let _: Option<u64> = ask.await.expect("it ends").expect("a reply");
            tokio::time::sleep(Duration::from_millis(10)).await;
            let held: Option<u64> = reader.clone().get("k").await.expect("a reply");
            if held != Some(version) {
                println!("an old value in round {round}");
                return true;
            }
        }
        false
    });
    assert!(
        old,
        "it has become right: this control shows nothing any more"
    );
}
