//! What a burst is asked to be: options, presets, defaults.

use clap::ValueEnum;
use serde_json::{Value, json};

use crate::servers::sized;

/// Loading is planned for at least this many keys a second; a slower server needs `--lead-s`.
const SLOWEST_LOAD_PER_S: u64 = 150_000;
/// Seconds between loading and reading, beside the time to read.
const REST_S: f64 = 1.5;

/// Where the keys that stay lie among those that go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Survivors {
    /// Loaded before them, so that they share no memory page with the dying.
    First,
    /// Loaded among them in random order, the hard case for giving memory back.
    Interleaved,
}

/// Options; where none is given, the preset and `--quick` decide.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// Keys that fall due (default for mass-expiry: 1000000, sparse: 50000).
    #[arg(long)]
    pub(super) keys: Option<u64>,
    /// Keys that stay (default for mass-expiry: 100000 without TTL, sparse: 1000000 with TTLs of 1–2 h).
    #[arg(long)]
    pub(super) live: Option<u64>,
    /// The deadlines lie uniformly in this many milliseconds (default 1000).
    #[arg(long)]
    pub(super) window_ms: Option<u64>,
    /// Where the keys that stay lie among the dying.
    #[arg(long, value_enum, default_value = "first")]
    pub(super) survivors: Survivors,
    /// Seconds of reading before the first deadline (default 5).
    #[arg(long)]
    pub(super) before_s: Option<f64>,
    /// Seconds of reading after everything is reclaimed (default 3).
    #[arg(long)]
    pub(super) after_s: Option<f64>,
    /// Give up this many seconds after the last deadline (default for mass-expiry: 60, sparse: 30).
    #[arg(long)]
    pub(super) watch_s: Option<f64>,
    /// Seconds from the start of loading to the first deadline (default: by the number of keys).
    #[arg(long)]
    pub(super) lead_s: Option<f64>,
    /// Ask for the number of keys this often.
    #[arg(long, default_value_t = 10)]
    pub(super) poll_ms: u64,
    /// Do not read meanwhile.
    #[arg(long)]
    pub(super) no_gets: bool,
    /// Seed of deadlines and order.
    #[arg(long, default_value_t = 1)]
    pub(super) seed: u64,
    /// A small run of a few seconds.
    #[arg(long)]
    pub(super) quick: bool,
}

/// What will be done, every default filled in.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(super) dying: u64,
    pub(super) live: u64,
    pub(super) live_ttl: bool,
    pub(super) window_ms: u64,
    pub(super) survivors: Survivors,
    pub(super) before_s: f64,
    pub(super) after_s: f64,
    pub(super) watch_s: f64,
    pub(super) lead_s: f64,
    pub(super) poll_ms: u64,
    pub(super) gets: bool,
    pub(super) seed: u64,
    /// Whether the dying are most of what is stored: then their memory must come back before the
    /// experiment ends, and their share of the processor time stands out from the reads'.
    pub(super) mass: bool,
}

impl Args {
    /// For `mass-expiry`, or for `sparse`.
    pub(crate) fn plan(&self, mass: bool) -> Plan {
        let quick = self.quick;
        let dying = sized(
            self.keys,
            quick,
            if mass { 1_000_000 } else { 50_000 },
            20_000,
        );
        let live = sized(
            self.live,
            quick,
            if mass { 100_000 } else { 1_000_000 },
            if mass { 2_000 } else { 40_000 },
        );
        let before_s = sized(self.before_s, quick, 5.0, 0.7);
        let in_lead = match self.survivors {
            Survivors::First => dying,
            Survivors::Interleaved => dying + live,
        };
        let lead_s = self
            .lead_s
            .unwrap_or_else(|| before_s + REST_S + in_lead as f64 / SLOWEST_LOAD_PER_S as f64);
        Plan {
            dying,
            live,
            live_ttl: !mass,
            window_ms: sized(self.window_ms, quick, 1_000, 300).max(1),
            survivors: self.survivors,
            before_s,
            after_s: sized(self.after_s, quick, 3.0, 0.5),
            watch_s: sized(self.watch_s, quick, if mass { 60.0 } else { 30.0 }, 3.0),
            lead_s,
            poll_ms: self.poll_ms.max(1),
            gets: !self.no_gets && live > 0,
            seed: self.seed,
            mass,
        }
    }
}

impl Plan {
    pub(super) fn params(&self) -> Value {
        json!({
            "keys": self.dying,
            "live": self.live,
            "live_ttl_s": self.live_ttl.then_some([3_600, 7_200]),
            "window_ms": self.window_ms,
            "survivors": format!("{:?}", self.survivors).to_lowercase(),
            "before_s": self.before_s,
            "after_s": self.after_s,
            "watch_s": self.watch_s,
            "lead_s": self.lead_s,
            "poll_ms": self.poll_ms,
            "gets": self.gets,
            "seed": self.seed,
        })
    }
}
