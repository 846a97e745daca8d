//! Who drives: removes what is due, sweeps what was invalidated, tidies memory, calls the listener,
//! refreshes.

mod background;
mod clear;
#[cfg(feature = "system")]
mod crew;
mod cycle;
#[cfg(feature = "system")]
mod desk;
pub(crate) mod driver;
#[cfg(feature = "system")]
mod events;
pub(crate) mod expiry;
#[cfg(feature = "metrics")]
mod metrics;
#[cfg(feature = "system")]
mod pool;
mod roster;
pub(crate) mod shared;
mod sleeper;
mod step;
mod swarm;
pub(crate) mod sweep;
#[cfg(feature = "system")]
mod timers;
pub(crate) mod turns;
mod works;
