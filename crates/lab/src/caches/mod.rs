//! In-process caches, ours and peers': mass expiry, bytes per entry, throughput, stampedes.

use anyhow::Result;
use clap::{Subcommand, ValueEnum};

use self::kind::CacheKind;
use crate::outcome::Outcome;

mod jitter;
pub(crate) mod kind;
mod mass_expiry;
mod memory;
mod mortal;
mod ours;
#[cfg(feature = "peers")]
mod peers;
mod stampede;
pub(crate) mod subject;
mod throughput;

/// One experiment with caches.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum Caches {
    /// Many entries due within one second beside live ones that are being read.
    MassExpiry(mass_expiry::Args),
    /// Bytes per entry beyond key and value.
    Memory(memory::Args),
    /// Operations a second by threads: reads, a mix, inserts into a full cache, one hot key.
    Throughput(throughput::Args),
    /// A thousand callers of one cold key; keys warmed together, with jitter.
    Stampede(stampede::Args),
}

/// The caches that take part.
#[derive(Clone, Debug, clap::Args)]
#[group(skip)]
struct Subjects {
    /// Caches (default all that can take part, without those that differ in their strategy alone).
    #[arg(long, value_enum, value_delimiter = ',', value_name = "CACHE,…")]
    subjects: Option<Vec<CacheKind>>,
}

impl Subjects {
    fn kinds(&self) -> Vec<CacheKind> {
        let all = CacheKind::value_variants().iter().copied();
        let usual = all.filter(|kind| kind.is_built() && !kind.is_strategy());
        self.subjects.clone().unwrap_or_else(|| usual.collect())
    }
}

/// `None` in a process that measures for another.
pub(crate) fn run(caches: &Caches) -> Result<Option<Outcome>> {
    let mut outcome = match caches {
        Caches::MassExpiry(args) => mass_expiry::run(args)?,
        Caches::Memory(args) => memory::run(args)?,
        Caches::Throughput(args) => Some(throughput::run(args)?),
        Caches::Stampede(args) => stampede::run(args)?,
    };
    if let Some(outcome) = &mut outcome {
        outcome.note_counting();
    }
    Ok(outcome)
}
