//! Mixes of times to live, shaped by what production systems have published, and the requests made of them.
//!
//! Twitter's are rows of `stat/2020Mar.md` in `twitter/cache-trace` (Yang, Yue, Rashmi: "A large scale analysis
//! of hundreds of in-memory cache clusters at Twitter", OSDI 2020): shares of times to live, mean sizes, rate
//! of requests, Zipf's exponent, share of writes, and the distinct keys of a week, which are rate × week ×
//! compulsory misses. A mix has a row's rate and keys divided by its `shrink`. What the table does not say is
//! chosen here: sizes are exponential around the mean, and `again` is set so that the share of misses comes
//! near to the published one where a small or vague exponent alone would hit nothing.

use std::collections::VecDeque;

use super::request::{Request, Value, Verb};
use crate::rng::{self, Rng, uniform};

const HOUR_S: u64 = 3_600;
const DAY_S: u64 = 24 * HOUR_S;
const WEEK_S: f64 = 7.0 * 24.0 * 3_600.0;
/// "Recently" means among the requests of so long ago at most.
const RECENT_S: f64 = 5.0;
/// Objects of one mix at most, so that keys keep apart from other numbers.
const MAX_VALUE_BYTES: f64 = 1_000_000.0;

/// What is stored: sizes and times to live.
#[derive(Clone, Copy, Debug)]
enum Objects {
    /// Mean bytes, and times to live in seconds with their weights; a key has always the same.
    Drawn(f64, &'static [(u64, u64)]),
    /// Recorded pairs of a time to live in seconds and a size in bytes, each as likely as another.
    Seen(&'static [(u64, u32)]),
}

/// Requests of one kind of clients.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mix {
    pub(super) name: &'static str,
    /// Where the shape is from, and what it is.
    pub(super) source: &'static str,
    /// Production's requests a second.
    rate: f64,
    /// How much fewer of them there are here.
    pub(super) shrink: f64,
    /// Production's share of requests to a key for the first time in a week.
    first: f64,
    /// Zipf's exponent.
    alpha: f64,
    /// Share of requests that write, whatever is there. Reads that miss write as well.
    writes: f64,
    /// Share of reads that ask for what was asked for, or written, a moment ago.
    again: f64,
    objects: Objects,
    /// Production's percentage of reads that miss, where it is published: to compare, not used.
    pub(super) published_miss_percent: Option<f64>,
}

/// All of them.
pub(super) const MIXES: [Mix; 7] = [
    Mix {
        name: "seconds",
        source: "Twitter's cluster 37: most objects live for 20 s, a few for 2 h; large values",
        rate: 4_150.0,
        shrink: 100.0,
        first: 0.2635,
        alpha: 0.4251,
        writes: 0.0,
        again: 0.45,
        objects: Objects::Drawn(
            72.0 + 20_134.0,
            &[(20, 91), (300, 6), (600, 1), (2 * HOUR_S, 2)],
        ),
        published_miss_percent: Some(59.38),
    },
    Mix {
        name: "minutes",
        source: "Twitter's cluster 12: everything lives for 5 min, is written once and hardly read",
        rate: 4_360.0,
        shrink: 100.0,
        first: 0.7945,
        alpha: 0.3048,
        writes: 0.8,
        again: 0.99,
        objects: Objects::Drawn(44.0 + 1_030.0, &[(300, 98), (299, 2)]),
        published_miss_percent: Some(0.58),
    },
    Mix {
        name: "hours",
        source: "Twitter's cluster 29: 1 h and 2 h, read far more often than written",
        rate: 10_730.0,
        shrink: 200.0,
        first: 0.0445,
        alpha: 1.2323,
        writes: 0.0,
        again: 0.0,
        objects: Objects::Drawn(36.0 + 799.0, &[(HOUR_S, 67), (2 * HOUR_S, 33)]),
        published_miss_percent: Some(22.42),
    },
    Mix {
        name: "wide",
        source: "Twitter's cluster 4: from 1 min to 1 day",
        rate: 5_260.0,
        shrink: 100.0,
        first: 0.0377,
        alpha: 1.1004,
        writes: 0.0,
        again: 0.0,
        objects: Objects::Drawn(
            67.0 + 2_439.0,
            &[
                (60, 39),
                (300, 24),
                (HOUR_S, 13),
                (600, 12),
                (4 * HOUR_S, 9),
                (DAY_S, 3),
            ],
        ),
        published_miss_percent: Some(39.41),
    },
    Mix {
        name: "days",
        source: "Twitter's cluster 52: 12 h, 1 day and 14 days; hardly anything expires in a run",
        rate: 24_250.0,
        shrink: 500.0,
        first: 0.0307,
        alpha: 1.2117,
        writes: 0.0,
        again: 0.0,
        objects: Objects::Drawn(
            20.0 + 273.0,
            &[(DAY_S, 65), (14 * DAY_S, 27), (12 * HOUR_S, 7)],
        ),
        published_miss_percent: Some(1.89),
    },
    Mix {
        name: "rewritten",
        source: "Twitter's cluster 40: 8 h, half of all requests write, mostly what is there already",
        rate: 6_260.0,
        shrink: 100.0,
        first: 0.0848,
        alpha: 0.8551,
        writes: 0.5,
        again: 0.0,
        objects: Objects::Drawn(44.0 + 155.0, &[(8 * HOUR_S, 95), (DAY_S, 5)]),
        published_miss_percent: Some(18.43),
    },
    // Rate, exponent and repetition are chosen; `first` is the share of reads of keys that nobody asks for
    // again in cachebench's `hit_ratio/memcache_reg` of facebook/CacheLib. Pairs: all writes in the two
    // samples of its `trace_replay/kvcache`.
    Mix {
        name: "kvcache",
        source: "CacheLib's samples of a key-value cache: 2 min to 6 h, mostly 2 h to 4 h; small values",
        rate: 5_000.0,
        shrink: 100.0,
        first: 0.1347,
        alpha: 0.9,
        writes: 0.0,
        again: 0.3,
        objects: Objects::Seen(&[
            (120, 105),
            (900, 2_996),
            (1_320, 1_402),
            (1_320, 1_599),
            (3_600, 144),
            (7_200, 132),
            (7_200, 79),
            (7_200, 79),
            (7_200, 80),
            (10_800, 133),
            (10_800, 141),
            (10_800, 142),
            (13_740, 6_262),
            (14_400, 53),
            (14_400, 63),
            (14_400, 66),
            (14_400, 67),
            (14_400, 71),
            (14_400, 78),
            (14_400, 80),
            (14_400, 83),
            (21_600, 144),
            (21_600, 148),
        ]),
        published_miss_percent: None,
    },
];

impl Mix {
    /// The mix of that name.
    pub(super) fn named(name: &str) -> Option<&'static Self> {
        MIXES.iter().find(|mix| mix.name == name)
    }

    /// About how many requests there are in so many hours.
    pub(super) fn expected(&self, hours: f64, scale: f64) -> f64 {
        self.rate / self.shrink * scale * hours * HOUR_S as f64
    }

    /// Requests of so many hours, `scale` times as many as usual from as many more keys.
    pub(super) fn requests(&self, hours: f64, scale: f64, seed: u64) -> Vec<Request> {
        let rate = self.rate / self.shrink * scale;
        let ranks = (rate * WEEK_S * self.first).max(1.0);
        let recent_len = ((rate * RECENT_S) as usize).max(1);
        let end_s = hours * HOUR_S as f64;
        let mut rng = Rng::new(rng::mix(seed) ^ rng::mix(self.name.len() as u64));
        let mut recent: VecDeque<u64> = VecDeque::new();
        let mut requests = Vec::new();
        let mut at_s = 0.0;
        loop {
            // Arrivals are a Poisson process.
            at_s -= (1.0 - uniform(rng.next_u64())).ln() / rate;
            if at_s >= end_s {
                return requests;
            }
            let is_write = uniform(rng.next_u64()) < self.writes;
            let is_again = !is_write && uniform(rng.next_u64()) < self.again;
            let place = rng.below(recent.len() as u64) as usize;
            let key = match recent.get(place) {
                Some(&key) if is_again => key,
                _ => rng::mix(seed ^ rank(uniform(rng.next_u64()), ranks, self.alpha)),
            };
            let value = self.value(key);
            let verb = match is_write {
                true => Verb::Set(value),
                false => Verb::Get(Some(value)),
            };
            requests.push(Request {
                at_ms: (at_s * 1_000.0) as u64,
                key,
                verb,
            });
            recent.push_back(key);
            if recent.len() > recent_len {
                recent.pop_front();
            }
        }
    }

    /// What lies under a key: the same whenever it is stored.
    fn value(&self, key: u64) -> Value {
        let (size, kind) = (rng::mix(key ^ 1), rng::mix(key ^ 2));
        let (bytes, ttl_s) = match self.objects {
            Objects::Drawn(mean, ttls) => {
                let bytes = -mean * (1.0 - uniform(size)).ln();
                (
                    bytes.clamp(1.0, MAX_VALUE_BYTES) as u32,
                    weighed(kind, ttls),
                )
            }
            Objects::Seen(pairs) => {
                let (ttl_s, bytes) = pairs[(kind % pairs.len() as u64) as usize];
                (bytes, ttl_s)
            }
        };
        Value {
            bytes,
            ttl_ms: ttl_s * 1_000,
        }
    }
}

/// One of several by weight.
fn weighed(random: u64, choices: &[(u64, u64)]) -> u64 {
    let total: u64 = choices.iter().map(|(_, weight)| weight).sum();
    let mut left = random % total.max(1);
    for (choice, weight) in choices {
        match left.checked_sub(*weight) {
            Some(rest) => left = rest,
            None => return *choice,
        }
    }
    choices.last().map_or(0, |(choice, _)| *choice)
}

/// A rank from 1 to `ranks` by Zipf's law: the inverse of its continuous form.
fn rank(uniform: f64, ranks: f64, alpha: f64) -> u64 {
    let power = 1.0 - alpha;
    let rank = if power.abs() < 1e-9 {
        (ranks + 1.0).powf(uniform)
    } else {
        (1.0 + uniform * ((ranks + 1.0).powf(power) - 1.0)).powf(power.recip())
    };
    (rank as u64).clamp(1, ranks as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mix_has_its_rate_and_its_times_to_live_and_can_be_repeated() {
        for mix in MIXES {
            let requests = mix.requests(1.0, 0.5, 7);
            assert_eq!(requests, mix.requests(1.0, 0.5, 7), "{}", mix.name);
            let expected = mix.expected(1.0, 0.5);
            let off = requests.len() as f64 / expected - 1.0;
            assert!(off.abs() < 0.05, "{}: {off}", mix.name);
            assert!(requests.is_sorted_by_key(|request| request.at_ms));
            assert!(Mix::named(mix.name).is_some_and(|named| named.source == mix.source));
        }
    }

    #[test]
    fn a_row_s_shares_of_ttls_and_mean_size_come_out() {
        let mix = Mix::named("seconds").expect("a mix");
        let values: Vec<Value> = (0..50_000).map(|key| mix.value(rng::mix(key))).collect();
        let short = values.iter().filter(|value| value.ttl_ms == 20_000).count();
        assert!((0.90..0.92).contains(&(short as f64 / 50_000.0)), "{short}");
        let bytes: u64 = values.iter().map(|value| u64::from(value.bytes)).sum();
        let off = bytes as f64 / 50_000.0 / 20_206.0 - 1.0;
        assert!(off.abs() < 0.03, "{off}");
    }

    #[test]
    fn ranks_fall_off_by_the_exponent() {
        let mut rng = Rng::new(3);
        for alpha in [0.4251, 1.0, 1.2323] {
            let mut seen = [0_u32; 3];
            for _ in 0..400_000 {
                match rank(uniform(rng.next_u64()), 1_000.0, alpha) {
                    10..20 => seen[0] += 1,
                    100..200 => seen[1] += 1,
                    rank => {
                        assert!((1..=1_000).contains(&rank));
                        seen[2] += 1;
                    }
                }
            }
            // Ten times the rank, ten times as many ranks: 10^(1 - alpha) as many requests.
            let ratio = f64::from(seen[1]) / f64::from(seen[0]);
            let expected = 10_f64.powf(1.0 - alpha);
            assert!((ratio / expected - 1.0).abs() < 0.1, "{alpha}: {ratio}");
        }
    }
}
