//! The plan of a burst: options and the sizes of its two presets.

use clap::ValueEnum;
use serde::Serialize;

use crate::runner::Basics;
use crate::servers::loader::load_s;

/// The position of the keys that stay among those that go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
pub(crate) enum Survivors {
    /// Loaded before them, so that they share no memory page with the dying.
    First,
    /// Loaded among them in random order, the hard case for giving memory back.
    Interleaved,
}

/// Options of `mass-expiry` and `sparse`.
#[derive(Clone, Debug, clap::Args, Serialize)]
pub(crate) struct Args {
    /// Keys that fall due (default 1000000, sparse 50000, quick 20000).
    #[arg(long)]
    #[serde(skip)]
    keys: Option<u64>,
    /// Keys that stay (default 100000 without a TTL; sparse 1000000 with TTLs of 1–2 h).
    #[arg(long)]
    #[serde(skip)]
    live: Option<u64>,
    /// Position of the keys that stay among the dying.
    #[arg(long, value_enum, default_value = "first")]
    pub(super) survivors: Survivors,
    /// Seconds from the start of loading to the first deadline (default: by the number of keys).
    #[arg(long)]
    lead_s: Option<f64>,
    /// Do not read meanwhile.
    #[arg(long)]
    pub(super) no_gets: bool,
    #[command(flatten)]
    #[serde(flatten)]
    pub(super) basics: Basics,
}

/// The numbers of a burst.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Plan {
    #[serde(rename = "keys")]
    pub(super) dying: u64,
    pub(super) live: u64,
    /// Give up this many seconds after the last deadline.
    pub(super) watch_s: f64,
    /// The deadlines lie uniformly in this many milliseconds.
    pub(super) window_ms: u64,
    /// Seconds of reading before the first deadline, and after everything is reclaimed.
    pub(super) before_s: f64,
    pub(super) after_s: f64,
    /// Seconds in which a freshly loaded server comes to rest before its memory is read.
    pub(super) rest_s: f64,
    /// True if the dying are most of what is stored. Then their memory must come back before the
    /// experiment ends, and their share of the processor time stands out from the reads'. Else the
    /// keys that stay have times to live.
    pub(super) mass: bool,
    #[serde(flatten)]
    pub(super) args: Args,
}

impl Args {
    pub(crate) fn plan(&self, mass: bool) -> Plan {
        let quick = self.basics.quick;
        let (dying, live, watch_s) = match (mass, quick) {
            (true, false) => (1_000_000, 100_000, 60.0),
            (true, true) => (20_000, 2_000, 1.0),
            (false, false) => (50_000, 1_000_000, 30.0),
            (false, true) => (20_000, 40_000, 1.0),
        };
        let (window_ms, before_s, after_s, rest_s) = match quick {
            true => (300, 0.5, 0.5, 0.2),
            false => (1_000, 5.0, 3.0, 0.5),
        };
        Plan {
            dying: self.keys.unwrap_or(dying),
            live: self.live.unwrap_or(live),
            watch_s,
            window_ms,
            before_s,
            after_s,
            rest_s,
            mass,
            args: self.clone(),
        }
    }
}

impl Plan {
    /// Seconds from the start of loading to the first deadline.
    pub(super) fn lead_s(&self) -> f64 {
        let loaded = match self.args.survivors {
            Survivors::First => self.dying,
            Survivors::Interleaved => self.dying + self.live,
        };
        // It rests twice, and something may take longer.
        let usual = self.before_s + 3.0 * self.rest_s + load_s(loaded);
        self.args.lead_s.unwrap_or(usual)
    }
}
