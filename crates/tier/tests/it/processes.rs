//! Several processes. Each is this very program, started again with its part in the environment.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tidewheel_engines::{Client, Cluster, Engine, Server, eventually, found, since, within};
use tidewheel_resp::Reply;
use tidewheel_tier::{Given, Life, Valkey};
use tidewheel_time::monotonic_nanos;

use crate::support::{MS, Texts, cache, tier, wait_watched};

const ROLE: &str = "TIDEWHEEL_TIER_ROLE";
const ENGINE: &str = "TIDEWHEEL_TIER_ENGINE";
const ORIGIN: &str = "TIDEWHEEL_TIER_ORIGIN";

/// The greatest age of a hit in these tests: bound and degraded life of `support::tier`, and the
/// tests' own delays.
const LIMIT: Duration = Duration::from_millis(400 + 300 + 100);

/// Ends with its owner.
struct Worker(Child);

impl Drop for Worker {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(role: &str, engine: &str, origin: u16, skew: Option<&str>) -> Worker {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command
        .args(["--exact", "processes::part", "--nocapture"])
        .env(ROLE, role)
        .env(ENGINE, engine)
        .env(ORIGIN, origin.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    if let Some(skew) = skew {
        let library = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1";
        command.env("LD_PRELOAD", library).env("FAKETIME", skew);
        // Waits and measured times are real ones.
        command.env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    }
    Worker(command.spawn().expect("it starts"))
}

/// Not a test: what another process of a test does.
#[test]
fn part() {
    let Ok(role) = std::env::var(ROLE) else {
        return;
    };
    let said = |name| std::env::var(name).expect("said by the starter");
    let origin: u16 = said(ORIGIN).parse().expect("a port");
    let cache = open(&said(ENGINE));
    match role.as_str() {
        "stampede" => stampede(&cache, origin),
        "skewed" => skewed(&cache, origin),
        "chaos" => chaos(&cache, origin),
        other => panic!("no part is called {other}"),
    }
}

fn open(engine: &str) -> Texts {
    let ports: Vec<_> = engine.split(',').collect();
    let urls: Vec<_> = ports
        .iter()
        .map(|port| format!("redis://127.0.0.1:{port}"))
        .collect();
    let urls: Vec<_> = urls.iter().map(String::as_str).collect();
    let engine = match &urls[..] {
        [one] => Valkey::open(one),
        nodes => Valkey::cluster(nodes),
    };
    let cache = cache(tier(engine.expect("addresses")).time_to_live(Duration::from_secs(5)));
    wait_watched(&cache);
    cache
}

fn client(port: u16) -> Client {
    Client::connect(port).expect("the origin")
}

/// 64 callers of one cold key, when the origin says so. A loader that is told to hang does.
fn stampede(cache: &Texts, origin: u16) {
    client(origin).text(&["INCR", "ready"]);
    eventually("the start", || {
        (client(origin).call(&["EXISTS", "start"]).ok()? == Reply::Integer(1)).then_some(())
    });
    std::thread::scope(|scope| {
        for _ in 0..64 {
            scope.spawn(|| {
                let value = cache.get_or_load("cold".into(), || load(origin));
                assert_eq!(value, "warm");
                client(origin).text(&["INCR", "answers"]);
            });
        }
    });
    std::thread::sleep(Duration::from_secs(30));
}

fn load(origin: u16) -> String {
    let mut client = client(origin);
    let id = std::process::id().to_string();
    // Before it is known for a leader, and killed: only one is to hang.
    let hangs = client.call(&["DEL", "hang"]).expect("a reply") == Reply::Integer(1);
    client.text(&["RPUSH", "loads", &id]);
    std::thread::sleep(if hangs {
        Duration::from_secs(60)
    } else {
        100 * MS
    });
    "warm".into()
}

fn number(port: u16, key: &str) -> u64 {
    match client(port).call(&["GET", key]).expect("a reply") {
        Reply::Bulk(text) => std::str::from_utf8(&text)
            .expect("text")
            .parse()
            .expect("a number"),
        _ => 0,
    }
}

fn begin_stampede(server: &Server, origin: &Server) -> Vec<Worker> {
    let engine = server.port.to_string();
    let workers: Vec<_> = (0..4)
        .map(|_| start("stampede", &engine, origin.port, None))
        .collect();
    eventually("four processes", || {
        (number(origin.port, "ready") == 4).then_some(())
    });
    client(origin.port).text(&["SET", "start", "1"]);
    workers
}

#[test]
fn four_processes_with_64_callers_each_load_a_cold_key_once() {
    let Some(engine) = Engine::valkey() else {
        return;
    };
    let (server, origin) = (Server::start(&engine, &[]), Server::start(&engine, &[]));
    let _workers = begin_stampede(&server, &origin);
    eventually("all answers", || {
        (number(origin.port, "answers") == 256).then_some(())
    });
    assert_eq!(origin.client().text(&["LLEN", "loads"]), "1");
}

#[test]
fn a_leader_that_is_killed_has_exactly_one_successor() {
    let Some(engine) = Engine::valkey() else {
        return;
    };
    let (server, origin) = (Server::start(&engine, &[]), Server::start(&engine, &[]));
    origin.client().text(&["SET", "hang", "1"]);
    let mut workers = begin_stampede(&server, &origin);
    let leader = eventually("a leader", || {
        match origin.client().call(&["LINDEX", "loads", "0"]).ok()? {
            Reply::Bulk(id) => String::from_utf8(id).ok()?.parse::<u32>().ok(),
            _ => None,
        }
    });
    let killed = monotonic_nanos();
    let place = workers.iter().position(|worker| worker.0.id() == leader);
    drop(workers.remove(place.expect("one of the workers")));
    eventually("the others' answers", || {
        (number(origin.port, "answers") == 192).then_some(())
    });
    // The lease is two seconds long.
    assert!(
        since(killed) < Duration::from_secs(4),
        "{:?}",
        since(killed)
    );
    assert_eq!(origin.client().text(&["LLEN", "loads"]), "2");
}

/// Writes what it sees: whether what one process stores, another has, and for how long.
fn skewed(cache: &Texts, origin: u16) {
    let mut client = client(origin);
    client.text(&["INCR", "ready"]);
    eventually("the start", || {
        (client.call(&["EXISTS", "start"]).ok()? == Reply::Integer(1)).then_some(())
    });
    let value = cache.get_or_load_with("tea".into(), || {
        client.text(&["INCR", "loads"]);
        let life = Life::ttl(Duration::from_secs(2));
        Ok::<_, ()>(Some(Given::new("7".to_owned(), life)))
    });
    assert_eq!(value, Ok(Some("7".to_owned())));
    let begin = monotonic_nanos();
    within(Duration::from_secs(4), "its end", || {
        cache.get(&"tea".into()).is_none().then_some(())
    });
    let lived = since(begin).as_millis().to_string();
    client.text(&["RPUSH", "lived", &lived]);
}

/// H6.
#[test]
fn clocks_that_are_an_hour_apart_change_nothing() {
    let Some(engine) = Engine::valkey() else {
        return;
    };
    let library = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1";
    if !std::path::Path::new(library).exists() {
        assert!(
            found("faketime", &[]).is_none(),
            "another place of its library"
        );
        println!("!!! SKIPPED: faketime is not installed");
        return;
    }
    let (server, origin) = (Server::start(&engine, &[]), Server::start(&engine, &[]));
    let engine = server.port.to_string();
    let skews = [None, Some("+1h"), Some("-1h")];
    let _workers = skews.map(|skew| start("skewed", &engine, origin.port, skew));
    eventually("three processes", || {
        (number(origin.port, "ready") == 3).then_some(())
    });
    client(origin.port).text(&["SET", "start", "1"]);
    eventually("three lives", || {
        (origin.client().text(&["LLEN", "lived"]) == "3").then_some(())
    });
    let said = origin.client().call(&["LRANGE", "lived", "0", "-1"]);
    let Ok(Reply::Array(lives)) = said else {
        panic!("{said:?}");
    };
    for life in lives {
        let Reply::Bulk(text) = life else { continue };
        let ms: u64 = String::from_utf8(text)
            .expect("text")
            .parse()
            .expect("a number");
        // Two seconds, less a twentieth of jitter, and less what the others were late.
        assert!((1500..=2100).contains(&ms), "{ms}");
    }
    assert_eq!(number(origin.port, "loads"), 1);
}

const KEYS: u64 = 40;

/// Reads, writes, invalidations and tags at random, each read held against the log of versions,
/// until the origin says that it is enough.
fn chaos(cache: &Texts, origin: u16) {
    let mut log = client(origin);
    let mut state = u64::from(std::process::id());
    let mut next = |count: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) % count
    };
    log.text(&["INCR", "ready"]);
    while log.call(&["EXISTS", "stop"]).expect("a reply") == Reply::Integer(0) {
        let key = next(KEYS);
        match next(40) {
            0 => change(cache, &mut log, &[key], |cache| {
                cache.invalidate(&key.to_string()).is_ok()
            }),
            1 if next(8) == 0 => {
                let tagged: Vec<_> = (0..KEYS).filter(|key| key % 4 == 0).collect();
                change(cache, &mut log, &tagged, |cache| {
                    cache.invalidate_tag("fours").is_ok()
                });
            }
            _ => read(cache, &mut log, origin, key),
        }
    }
    // All is quiet: the origin is changed no more, and every entry is true.
    std::thread::sleep(Duration::from_secs(6));
    for key in 0..KEYS {
        let truth = number(origin, &format!("version:{key}"));
        let held = cache.get(&key.to_string());
        if held.as_ref().is_some_and(|held| *held != truth.to_string()) {
            log.text(&[
                "RPUSH",
                "failures",
                &format!("quiet: {key} is {held:?}, not {truth}"),
            ]);
        }
    }
    log.text(&["INCR", "done"]);
}

/// Changes keys at the origin, then in the cache, and logs when that was done.
fn change(cache: &Texts, log: &mut Client, keys: &[u64], invalidate: impl Fn(&Texts) -> bool) {
    let versions: Vec<_> = keys
        .iter()
        .map(|key| log.text(&["INCR", &format!("version:{key}")]))
        .collect();
    while !invalidate(cache) {
        std::thread::sleep(20 * MS);
    }
    let now = monotonic_nanos();
    for (key, version) in keys.iter().zip(versions) {
        log.text(&["RPUSH", &format!("log:{key}"), &format!("{version} {now}")]);
    }
    log.text(&["INCR", "changes"]);
}

fn read(cache: &Texts, log: &mut Client, origin: u16, key: u64) {
    let begin = monotonic_nanos();
    let value = cache.get_or_load_with(key.to_string(), || {
        let version = number(origin, &format!("version:{key}"));
        let life = Life::configured();
        let life = if key.is_multiple_of(4) {
            life.tag("fours")
        } else {
            life
        };
        Ok::<_, ()>(Some(Given::new(version.to_string(), life)))
    });
    let version: u64 = value
        .ok()
        .flatten()
        .expect("a value")
        .parse()
        .expect("a version");
    log.text(&["INCR", "reads"]);
    let said = log.call(&["LRANGE", &format!("log:{key}"), "-8", "-1"]);
    let Ok(Reply::Array(lines)) = said else {
        return;
    };
    for line in lines {
        let Reply::Bulk(line) = line else { continue };
        let line = String::from_utf8(line).expect("text");
        let (newer, at) = line.split_once(' ').expect("two numbers");
        let (newer, at): (u64, u64) = (newer.parse().expect("one"), at.parse().expect("two"));
        let is_old = newer > version && at + (LIMIT.as_nanos() as u64) < begin;
        if is_old {
            let late = (begin - at) / 1_000_000;
            log.text(&["RPUSH", "stale", &format!("{key} {late}")]);
            return;
        }
    }
}

fn length() -> Duration {
    let long = std::env::var_os("TIDEWHEEL_LONG").is_some();
    Duration::from_secs(if long { 300 } else { 15 })
}

/// A primary is killed, one falls silent for three seconds, a slot moves, everything is flushed.
///
/// A failover may lose what the killed primary had acknowledged: for that long alone a value may be
/// older than the bound, and no longer than its time to live.
#[test]
fn four_processes_on_a_cluster_that_is_troubled_read_nothing_older_than_the_bound() {
    let Some(engine) = Engine::valkey() else {
        return;
    };
    let mut cluster = Cluster::start(&engine);
    let origin = Server::start(&engine, &[]);
    let ports: Vec<_> = cluster.ports().iter().map(u16::to_string).collect();
    let workers: Vec<_> = (0..4)
        .map(|_| start("chaos", &ports.join(","), origin.port, None))
        .collect();
    eventually("four processes", || {
        (number(origin.port, "ready") == 4).then_some(())
    });
    let begin = monotonic_nanos();
    let at = |share: u32| {
        let until = length() * share / 10;
        std::thread::sleep(until.saturating_sub(since(begin)));
    };
    at(1);
    cluster.move_slot(slot_of(&cluster, 3), 1);
    at(2);
    cluster.nodes[2].process.pause();
    std::thread::sleep(Duration::from_secs(3));
    cluster.nodes[2].process.resume();
    at(5);
    for node in &cluster.nodes {
        // Replicas refuse.
        let _ = Client::connect(node.port).map(|mut client| client.call(&["FLUSHALL"]));
    }
    at(6);
    let before_kill = stale(&origin);
    cluster.nodes[0].process.kill();
    at(10);
    origin.client().text(&["SET", "stop", "1"]);
    within(Duration::from_secs(60), "four ends", || {
        (number(origin.port, "done") == 4).then_some(())
    });
    drop(workers);
    let said = origin.client().call(&["LRANGE", "failures", "0", "-1"]);
    let all = stale(&origin);
    println!(
        "reads {}, changes {}, stale {} before the kill of a primary, {} in all: {:?}",
        number(origin.port, "reads"),
        number(origin.port, "changes"),
        before_kill.len(),
        all.len(),
        all.iter().take(20).collect::<Vec<_>>(),
    );
    assert_eq!(said.expect("a reply"), Reply::Array(Vec::new()));
    assert_eq!(before_kill, Vec::<String>::new());
    // Its time to live, and the bound.
    let late = |line: &String| {
        line.split(' ')
            .nth(1)
            .is_some_and(|ms| ms.parse().unwrap_or(0) > 5800)
    };
    assert!(!all.iter().any(late), "{all:?}");
}

fn slot_of(cluster: &Cluster, key: u64) -> u16 {
    let wire = format!("test:v:{{={key}}}");
    let said = cluster.nodes[0]
        .client()
        .text(&["CLUSTER", "KEYSLOT", &wire]);
    said.parse().expect("a slot")
}

fn stale(origin: &Server) -> Vec<String> {
    match origin.client().call(&["LRANGE", "stale", "0", "-1"]) {
        Ok(Reply::Array(lines)) => lines
            .into_iter()
            .filter_map(|line| match line {
                Reply::Bulk(line) => String::from_utf8(line).ok(),
                _ => None,
            })
            .collect(),
        _ => Vec::new(),
    }
}
