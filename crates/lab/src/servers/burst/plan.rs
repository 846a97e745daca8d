//! What a burst is asked to be: options and the sizes of its two presets.

use clap::ValueEnum;
use serde::Serialize;

/// Loading is planned for at least this many keys a second; a slower server needs `--lead-s`.
const SLOWEST_LOAD_PER_S: f64 = 150_000.0;
/// Seconds between loading and reading, beside the time to read.
const REST_S: f64 = 1.5;

/// Where the keys that stay lie among those that go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
pub(crate) enum Survivors {
    /// Loaded before them, so that they share no memory page with the dying.
    First,
    /// Loaded among them in random order, the hard case for giving memory back.
    Interleaved,
}

/// Options of `mass-expiry`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct MassExpiry {
    /// Keys that fall due (quick: 20000).
    #[arg(long, default_value_t = 1_000_000)]
    #[arg(default_value_if("quick", "true", "20000"))]
    keys: u64,
    /// Keys that stay, without a TTL (quick: 2000).
    #[arg(long, default_value_t = 100_000)]
    #[arg(default_value_if("quick", "true", "2000"))]
    live: u64,
    /// Give up this many seconds after the last deadline (quick: 3).
    #[arg(long, default_value_t = 60.0)]
    #[arg(default_value_if("quick", "true", "3"))]
    watch_s: f64,
    #[command(flatten)]
    how: How,
}

/// Options of `sparse`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Sparse {
    /// Keys that fall due (quick: 20000).
    #[arg(long, default_value_t = 50_000)]
    #[arg(default_value_if("quick", "true", "20000"))]
    keys: u64,
    /// Keys that stay, with TTLs of 1–2 h (quick: 40000).
    #[arg(long, default_value_t = 1_000_000)]
    #[arg(default_value_if("quick", "true", "40000"))]
    live: u64,
    /// Give up this many seconds after the last deadline (quick: 3).
    #[arg(long, default_value_t = 30.0)]
    #[arg(default_value_if("quick", "true", "3"))]
    watch_s: f64,
    #[command(flatten)]
    how: How,
}

/// Options of both.
#[derive(Clone, Debug, clap::Args, Serialize)]
#[group(skip)]
pub(super) struct How {
    /// The deadlines lie uniformly in this many milliseconds (quick: 300).
    #[arg(long, default_value_t = 1_000)]
    #[arg(default_value_if("quick", "true", "300"))]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) window_ms: u64,
    /// Where the keys that stay lie among the dying.
    #[arg(long, value_enum, default_value = "first")]
    pub(super) survivors: Survivors,
    /// Seconds of reading before the first deadline (quick: 0.7).
    #[arg(long, default_value_t = 5.0)]
    #[arg(default_value_if("quick", "true", "0.7"))]
    pub(super) before_s: f64,
    /// Seconds of reading after everything is reclaimed (quick: 0.5).
    #[arg(long, default_value_t = 3.0)]
    #[arg(default_value_if("quick", "true", "0.5"))]
    pub(super) after_s: f64,
    /// Seconds from the start of loading to the first deadline (default: by the number of keys).
    #[arg(long)]
    lead_s: Option<f64>,
    /// Ask for the number of keys this often.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) poll_ms: u64,
    /// Do not read meanwhile.
    #[arg(long)]
    pub(super) no_gets: bool,
    /// Seed of deadlines and order.
    #[arg(long, default_value_t = 1)]
    pub(super) seed: u64,
    /// A small run of a few seconds.
    #[arg(long)]
    quick: bool,
}

/// What will be done.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Plan {
    #[serde(rename = "keys")]
    pub(super) dying: u64,
    pub(super) live: u64,
    pub(super) watch_s: f64,
    /// Whether the dying are most of what is stored: then their memory must come back before the
    /// experiment ends, and their share of the processor time stands out from the reads'. Else the keys
    /// that stay have times to live.
    pub(super) mass: bool,
    #[serde(flatten)]
    pub(super) how: How,
}

impl MassExpiry {
    pub(crate) fn plan(&self) -> Plan {
        Plan {
            dying: self.keys,
            live: self.live,
            watch_s: self.watch_s,
            mass: true,
            how: self.how.clone(),
        }
    }
}

impl Sparse {
    pub(crate) fn plan(&self) -> Plan {
        Plan {
            dying: self.keys,
            live: self.live,
            watch_s: self.watch_s,
            mass: false,
            how: self.how.clone(),
        }
    }
}

impl Plan {
    /// Seconds from the start of loading to the first deadline.
    pub(super) fn lead_s(&self) -> f64 {
        let loaded = match self.how.survivors {
            Survivors::First => self.dying,
            Survivors::Interleaved => self.dying + self.live,
        };
        let usual = self.how.before_s + REST_S + loaded as f64 / SLOWEST_LOAD_PER_S;
        self.how.lead_s.unwrap_or(usual)
    }
}
