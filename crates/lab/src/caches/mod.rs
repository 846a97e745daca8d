//! In-process caches, ours and peers': mass expiry, bytes per entry, throughput, stampedes.

use anyhow::Result;
use clap::Subcommand;

use crate::heap;
use crate::outcome::Outcome;
use crate::progress::Progress;

mod article_wheel;
mod jitter;
pub(crate) mod kind;
mod mass_expiry;
mod memory;
mod mortal;
pub(crate) mod naive_scan;
mod ours;
#[cfg(feature = "peers")]
mod peers;
mod runner;
mod slab;
mod stampede;
mod strategy_cache;
pub(crate) mod subject;
mod throughput;
mod ticker;
mod zipf;

const COUNTED_NOTE: &str = "allocations are counted, two atomic additions each; build with the \
    feature plain-alloc for throughput and latencies";

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

/// `None` in a process that measures for another.
pub(crate) fn run(caches: &Caches, progress: &mut Progress) -> Result<Option<Outcome>> {
    let outcome = match caches {
        Caches::MassExpiry(args) => {
            runner::run(&mass_expiry::MassExpiry::new(args)?, &args.common, progress)
        }
        Caches::Memory(args) => runner::run(&memory::Memory::new(args)?, &args.common, progress),
        Caches::Throughput(args) => throughput::run(args, progress).map(Some),
        Caches::Stampede(args) => stampede::run(args, progress),
    };
    Ok(outcome?.map(|mut outcome| {
        if heap::COUNTED {
            outcome.notes.push(COUNTED_NOTE.to_owned());
        }
        outcome
    }))
}
