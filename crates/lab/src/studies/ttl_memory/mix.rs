//! Mixes of times to live, shaped by what production systems have published, and the requests made
//! of them.
//!
//! Twitter's are rows of `stat/2020Mar.md` in `twitter/cache-trace` (Yang, Yue, Rashmi: "A large
//! scale analysis of hundreds of in-memory cache clusters at Twitter", OSDI 2020): shares of times
//! to live, mean sizes, rate of requests, Zipf's exponent, share of writes, and the distinct keys
//! of a week, which are rate × week × compulsory misses. A mix has a row's rate and keys divided by
//! its `shrink`. What the table does not say is chosen here: sizes are exponential around the mean,
//! and `again` is set so that the share of misses comes near to the published one where a small or
//! vague exponent alone would hit nothing.
//!
//! Of `kvcache`, rate, exponent and repetition are chosen; `first` is the share of reads of keys
//! that nobody asks for again in cachebench's `hit_ratio/memcache_reg` of facebook/CacheLib, and
//! the pairs are all writes in the two samples of its `trace_replay/kvcache`.
//!
//! The numbers are in `mixes.json`.

use std::collections::VecDeque;
use std::sync::LazyLock;

use serde::Deserialize;

use super::course::Request;
use crate::hit_ratios::bounds::Object;
use crate::rng::{self, Rng, uniform};

const HOUR_S: f64 = 3_600.0;
const WEEK_S: f64 = 7.0 * 24.0 * HOUR_S;
/// "Recently" means among the requests of so long ago at most.
const RECENT_S: f64 = 5.0;
/// Objects of one mix at most, so that keys keep apart from other numbers.
const MAX_VALUE_BYTES: f64 = 1_000_000.0;

/// The stored objects: sizes in bytes, and times to live in seconds. A key has always the same.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Objects {
    /// Mean sizes, and times to live with their weights.
    Drawn {
        key_bytes: f64,
        value_bytes: f64,
        ttls: Vec<(u64, u64)>,
    },
    /// Recorded pairs of a time to live and a size, each as likely as another.
    Seen(Vec<(u64, u32)>),
}

/// Requests of one kind of clients.
#[derive(Debug, Deserialize)]
pub(super) struct Mix {
    pub(super) name: String,
    /// The source of the shape, and its description.
    pub(super) source: String,
    /// Production's requests a second.
    rate: f64,
    /// The factor by which there are fewer of them here.
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

/// All mixes.
pub(super) static MIXES: LazyLock<Vec<Mix>> = LazyLock::new(|| {
    serde_json::from_str(include_str!("mixes.json")).expect("the file has all fields of each mix")
});

impl Mix {
    /// The mix of that name.
    pub(super) fn named(name: &str) -> Option<&'static Self> {
        MIXES.iter().find(|mix| mix.name == name)
    }

    /// About how many requests there are in so many hours.
    pub(super) fn expected(&self, hours: f64, scale: f64) -> f64 {
        self.rate / self.shrink * scale * hours * HOUR_S
    }

    /// Requests of so many hours, `scale` times as many as usual from as many more keys.
    pub(super) fn requests(&self, hours: f64, scale: f64, seed: u64) -> Vec<Request> {
        let rate = self.rate / self.shrink * scale;
        let ranks = (rate * WEEK_S * self.first).max(1.0);
        let recent_len = ((rate * RECENT_S) as usize).max(1);
        let end_s = hours * HOUR_S;
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
            let at_ms = (at_s * 1_000.0) as u64;
            let object = self.object(key, at_ms);
            requests.push(Request {
                at_ms,
                key,
                writes: is_write,
                object,
            });
            recent.push_back(key);
            if recent.len() > recent_len {
                recent.pop_front();
            }
        }
    }

    /// The object under a key: the same whenever it is stored, but for the end.
    fn object(&self, key: u64, at_ms: u64) -> Object {
        let (size, kind) = (rng::mix(key ^ 1), rng::mix(key ^ 2));
        let (ttl_s, bytes) = match &self.objects {
            Objects::Seen(pairs) => pairs[(kind % pairs.len() as u64) as usize],
            Objects::Drawn {
                key_bytes,
                value_bytes,
                ttls,
            } => {
                let bytes = -(key_bytes + value_bytes) * (1.0 - uniform(size)).ln();
                (
                    weighed(kind, ttls),
                    bytes.clamp(1.0, MAX_VALUE_BYTES) as u32,
                )
            }
        };
        let deadline_ms = at_ms + ttl_s * 1_000;
        Object { bytes, deadline_ms }
    }
}

/// Chooses one of several by weight.
fn weighed(random: u64, choices: &[(u64, u64)]) -> u64 {
    let total: u64 = choices.iter().map(|(_, weight)| weight).sum();
    let at = random % total.max(1);
    let mut sum = 0;
    let choice = choices.iter().find(|(_, weight)| {
        sum += weight;
        at < sum
    });
    choice.map_or(0, |(choice, _)| *choice)
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
        for mix in MIXES.iter() {
            let requests = mix.requests(1.0, 0.5, 7);
            assert_eq!(requests, mix.requests(1.0, 0.5, 7), "{}", mix.name);
            let expected = mix.expected(1.0, 0.5);
            let off = requests.len() as f64 / expected - 1.0;
            assert!(off.abs() < 0.05, "{}: {off}", mix.name);
            assert!(requests.is_sorted_by_key(|request| request.at_ms));
            assert!(Mix::named(&mix.name).is_some_and(|named| named.source == mix.source));
        }
    }

    #[test]
    fn a_row_s_shares_of_ttls_and_mean_size_come_out() {
        let mix = Mix::named("seconds").expect("a mix");
        let objects = (0..50_000).map(|key| mix.object(rng::mix(key), 0));
        let objects: Vec<Object> = objects.collect();
        let short = objects.iter().filter(|it| it.deadline_ms == 20_000).count();
        assert!((0.90..0.92).contains(&(short as f64 / 50_000.0)), "{short}");
        let bytes: u64 = objects.iter().map(|it| u64::from(it.bytes)).sum();
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
