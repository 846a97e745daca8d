//! How well `maxmemory` chooses: the share of the evicted keys that are among the equally many
//! which should go first.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering::Relaxed;

use tidewheel_engines::{Client, Engine, Server};
use tidewheel_keyspace::{Options, Policy};
use tidewheel_resp::Reply;

use crate::common::{Rig, limit_to_what_is_used};
use tidewheel_oracle::Dice;

/// A keyspace of many shards that evicts by a policy and tells of it.
fn rig(policy: Policy, shards: usize) -> Rig {
    let rig = Rig::with(Options {
        shards,
        databases: 2,
        seed: 7,
    });
    rig.keyspace.rules().set_policy(policy);
    rig.notify("Ee");
    rig
}

/// The keys that were evicted since the last call, in their order.
fn evicted(rig: &Rig) -> Vec<String> {
    let events = rig.events().into_iter();
    let names = events.filter_map(|event| Some(event.strip_prefix("0:evicted:")?.to_owned()));
    names.collect()
}

/// Writes keys without a deadline until so many others are gone.
fn displace(rig: &mut Rig, wanted: usize) -> Vec<String> {
    let mut gone = Vec::new();
    for i in 0.. {
        assert_eq!(rig.run(&format!("SET more:{i} {}", "v".repeat(100))), "OK");
        gone.extend(evicted(rig));
        if gone.len() >= wanted {
            return gone;
        }
    }
    unreachable!("the numbers do not end")
}

/// The share of those that are gone which are among the equally many of the lowest rank.
fn share(ranks: &BTreeMap<String, u64>, gone: &[String]) -> f64 {
    let mut all: Vec<u64> = ranks.values().copied().collect();
    all.sort_unstable();
    let last = all[gone.len() - 1];
    let right = gone.iter().filter(|key| ranks[*key] <= last).count();
    right as f64 / gone.len() as f64
}

/// Of 64 shards each evicted its own, and 45 to 68 % were among the nearest.
#[test]
fn volatile_ttl_evicts_the_nearest_deadlines_of_all_shards() {
    const KEYS: u64 = 6_000;
    let hour = 3_600_000;
    for (shards, from, to) in [
        (64, 60_000, hour),
        (64, 200 * hour, 210 * hour),
        (64, hour, 9_000 * hour),
        (1, 60_000, hour),
        (16, 1_000 * 24 * hour, 1_001 * 24 * hour),
    ] {
        for samples in [1, 64] {
            let mut rig = rig(Policy::VolatileTtl, shards);
            rig.keyspace
                .rules()
                .maxmemory_samples
                .store(samples, Relaxed);
            let mut dice = Dice::new(from + u64::from(samples));
            let mut deadlines = BTreeMap::new();
            for i in 0..KEYS {
                let ms = from + dice.below(to - from);
                // Half of them were to live shorter before, and some longer.
                let first = match i % 4 {
                    0 => 1 + dice.below(ms),
                    1 => ms + dice.below(hour),
                    _ => ms,
                };
                rig.run(&format!("SET k{i} {} PX {first}", "v".repeat(100)));
                rig.run(&format!("PEXPIRE k{i} {ms}"));
                deadlines.insert(format!("k{i}"), ms);
            }
            limit_to_what_is_used(&rig);
            let gone = displace(&mut rig, KEYS as usize / 4);
            let share = share(&deadlines, &gone);
            assert!(
                share >= 0.99,
                "{shards} shards, {samples} samples: {share:.3}"
            );
        }
    }
}

/// New keys come while others are evicted: nobody goes while many nearer ones stay.
#[test]
fn volatile_ttl_keeps_up_with_new_keys() {
    const KEYS: u64 = 6_000;
    let mut rig = rig(Policy::VolatileTtl, 64);
    let mut dice = Dice::new(3);
    let mut alive: BTreeSet<(u64, String)> = BTreeSet::new();
    let (mut at, mut gone, mut wrong) = (BTreeMap::new(), 0, 0);
    for i in 0..3 * KEYS {
        if i == KEYS {
            limit_to_what_is_used(&rig);
        }
        let (key, ms) = (format!("k{i}"), 60_000 + dice.below(10_000_000));
        rig.run(&format!("SET {key} {} PX {ms}", "v".repeat(100)));
        alive.insert((ms, key.clone()));
        at.insert(key, ms);
        for key in evicted(&rig) {
            let place = (at[&key], key);
            let nearer = alive.range(..&place).count();
            gone += 1;
            // The one that just came is not known at once.
            wrong += u64::from(nearer > KEYS as usize / 100);
            alive.remove(&place);
        }
    }
    assert!(gone > KEYS, "{gone}");
    assert!(wrong * 100 <= gone, "{wrong} of {gone}");
}

/// Who evicts: this keyspace, or a server.
enum Subject {
    Ours(Box<Rig>),
    Server(Box<Server>, Client),
}

impl Subject {
    fn ours(policy: Policy, samples: u32) -> Self {
        let rig = rig(policy, 64);
        let rules = rig.keyspace.rules();
        rules.maxmemory_samples.store(samples, Relaxed);
        rules.lfu_decay_time.store(0, Relaxed);
        Self::Ours(Box::new(rig))
    }

    fn server(engine: &Engine, policy: Policy, samples: u32) -> Self {
        let samples = samples.to_string();
        let settings = [
            "--maxmemory-policy",
            policy.name(),
            "--maxmemory-samples",
            &samples,
            "--lfu-decay-time",
            "0",
        ];
        let server = Server::start(engine, &settings);
        let client = server.client();
        Self::Server(Box::new(server), client)
    }

    fn call(&mut self, words: &[&[u8]]) -> Reply {
        match self {
            Self::Ours(rig) => rig.words(words),
            Self::Server(_, client) => client.call(words).expect("a reply"),
        }
    }

    fn limit_to_what_is_used(&mut self) {
        match self {
            Self::Ours(rig) => {
                limit_to_what_is_used(rig);
            }
            Self::Server(server, _) => {
                let used = server.info("used_memory").expect("a number");
                self.call(&[b"CONFIG", b"SET", b"maxmemory", used.as_bytes()]);
            }
        }
    }

    fn evicted(&mut self) -> u64 {
        match self {
            Self::Ours(rig) => rig.keyspace.stats(rig.time).evicted,
            Self::Server(server, _) => {
                let evicted = server.info("evicted_keys").expect("a field");
                evicted.parse().expect("a number")
            }
        }
    }

    /// The share of right victims among a quarter of the keys.
    fn share(mut self, policy: Policy, keys: u64, seed: u64) -> f64 {
        let mut dice = Dice::new(seed);
        let value = [b'v'; 100];
        self.call(&[b"SET", b"source", &value]);
        let Reply::Bulk(payload) = self.call(&[b"DUMP", b"source"]) else {
            panic!("no payload");
        };
        self.call(&[b"DEL", b"source"]);
        let mut ranks = BTreeMap::new();
        for i in 0..keys {
            let name = format!("k{i}");
            let (option, number, rank) = match policy {
                Policy::VolatileTtl => {
                    let ms = 1_000_000 + dice.below(1_000_000_000);
                    ("", ms, ms)
                }
                Policy::VolatileLfu | Policy::AllKeysLfu => {
                    let frequency = 6 + dice.below(250);
                    ("FREQ", frequency, frequency)
                }
                _ => {
                    let idle = 100 + dice.below(1_000_000);
                    ("IDLETIME", idle, u64::MAX - idle)
                }
            };
            let number = number.to_string();
            let ms = if option.is_empty() {
                &*number
            } else {
                "10000000000"
            };
            let mut words = vec![b"RESTORE", name.as_bytes(), ms.as_bytes(), &payload[..]];
            if !option.is_empty() {
                words.extend([option.as_bytes(), number.as_bytes()]);
            }
            assert_eq!(self.call(&words), Reply::Simple("OK".into()));
            ranks.insert(name, rank);
        }
        self.limit_to_what_is_used();
        for i in 0.. {
            // Without a deadline, and unlike the others used just now.
            self.call(&[b"SET", format!("more:{i}").as_bytes(), &value]);
            if i % 16 == 0 && self.evicted() >= keys / 4 {
                break;
            }
        }
        let names = ranks.keys().cloned();
        let gone: Vec<String> = names
            .filter(|name| self.call(&[b"EXISTS", name.as_bytes()]) == Reply::Integer(0))
            .collect();
        share(&ranks, &gone)
    }
}

/// Prints the shares of right victims beside those of Redis 8.2 and Valkey 9.1: a quarter of the
/// keys goes.
#[test]
#[ignore = "a measurement, to be run by name"]
#[expect(clippy::print_stdout, reason = "what it is for")]
fn the_shares_of_right_victims_beside_others() {
    const KEYS: u64 = 20_000;
    let engines = [Engine::redis_8(), Engine::valkey()];
    println!("policy         samples  ours   others");
    for policy in [
        Policy::VolatileTtl,
        Policy::VolatileLru,
        Policy::AllKeysLru,
        Policy::VolatileLfu,
    ] {
        for samples in [1, 5, 10, 64] {
            let ours = Subject::ours(policy, samples).share(policy, KEYS, 1);
            let name = policy.name();
            print!("{name:14} {samples:7}  {ours:.3}");
            for engine in engines.iter().flatten() {
                let share = Subject::server(engine, policy, samples).share(policy, KEYS, 1);
                print!("  {} {share:.3}", engine.name());
            }
            println!();
        }
    }
}

/// Prints what it costs to displace a key, with few keys and with many.
#[test]
#[ignore = "a measurement, to be run by name in release"]
#[expect(clippy::print_stdout, reason = "what it is for")]
#[expect(clippy::disallowed_methods, reason = "a measurement reads the clock")]
fn what_an_eviction_costs() {
    for policy in [
        Policy::VolatileTtl,
        Policy::VolatileLru,
        Policy::VolatileRandom,
    ] {
        for keys in [20_000, 200_000, 2_000_000_u64] {
            let mut rig = rig(policy, 64);
            rig.notify("");
            let mut dice = Dice::new(1);
            let value = "v".repeat(100);
            for i in 0..keys {
                let ms = 1_000_000 + dice.below(1_000_000_000);
                let (key, ms) = (format!("k{i}"), ms.to_string());
                rig.words(&[
                    b"SET",
                    key.as_bytes(),
                    value.as_bytes(),
                    b"PX",
                    ms.as_bytes(),
                ]);
            }
            limit_to_what_is_used(&rig);
            let mut times: Vec<u64> = (0..keys / 8)
                .map(|i| {
                    let key = format!("more:{i}");
                    let began = std::time::Instant::now();
                    rig.words(&[b"SET", key.as_bytes(), value.as_bytes()]);
                    began.elapsed().as_nanos() as u64
                })
                .collect();
            let first = times[0];
            times.sort_unstable();
            let victims = rig.keyspace.stats(rig.time).evicted;
            let (all, last) = (times.iter().sum::<u64>(), times[times.len() - 1]);
            println!(
                "{:15} {keys:8} keys: {} ns for a victim and its SET; a SET takes {} us at most, the first one {}",
                policy.name(),
                all / victims,
                last / 1_000,
                first / 1_000
            );
        }
    }
}
