//! Questions besides the products are studied here, each with a document of its own.

use anyhow::Result;
use clap::Subcommand;

use crate::outcome::Outcome;

pub(crate) mod expiry;
mod ttl_memory;

/// One study.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum Study {
    /// The cost of finding what has expired, and the stalls that it causes: nine strategies.
    Expiry(expiry::Args),
    /// Memory held under times to live, and hit ratios where it is short, in virtual time.
    TtlMemory(ttl_memory::Args),
}

/// `None` in a process that measures for another.
pub(crate) fn run(study: &Study) -> Result<Option<Outcome>> {
    match study {
        Study::Expiry(args) => expiry::run(args),
        Study::TtlMemory(args) => ttl_memory::run(args).map(Some),
    }
}
