//! The cache as its users see it: one binary, so that the cache's generics are compiled once.
//!
//! The tests run side by side in one process. A test that measures the process's memory, or sets
//! what the process has once, is a binary of its own beside this folder.

mod accounts;
#[cfg(not(target_family = "wasm"))]
mod async_listener;
mod bulk;
mod capacity;
mod clocks;
mod conveniences;
mod delivery;
mod delivery_reentrancy;
mod drives;
#[cfg(all(feature = "system", not(target_family = "wasm")))]
mod endings;
mod huge_pages;
mod inference;
mod interleavings;
mod iter;
mod load_at_ten_times;
mod load_by_ref;
mod loading;
mod loads;
mod manual_poll;
mod many;
mod matrix;
mod model;
mod numbers;
mod outages;
mod outcomes;
mod panic_injection;
#[cfg(all(feature = "system", not(target_family = "wasm")))]
mod programs;
#[cfg(feature = "bytemuck")]
mod read_by_copy;
#[cfg(all(feature = "system", not(target_family = "wasm")))]
mod refreshes;
mod refused;
mod revalidation;
#[cfg(all(feature = "system", not(target_family = "wasm")))]
mod runtimes;
#[cfg(all(feature = "system", not(target_family = "wasm")))]
mod shared_driver;
#[cfg(feature = "serde")]
mod snapshot;
mod support;
mod tags;
mod turns;
mod twelve_bugs;
mod user_code;
#[cfg(all(feature = "system", not(target_family = "wasm")))]
mod worker_threads;
