//! Instructions per operation, counted by Callgrind: `.ci/instructions` runs and compares them.
//!
//! Each benchmark runs [`OPERATIONS`](input::OPERATIONS) operations on a structure with as many
//! entries that its setup has made; only its body is counted. Nothing in it depends on clocks,
//! entropy or threads.

#![allow(
    missing_docs,
    unreachable_pub,
    unused_qualifications,
    reason = "what the benchmarks' macros expand to"
)]

mod cache;
mod input;
mod keyspace;
mod resp;
mod scheduler;
mod timer;

use gungraun::{Callgrind, LibraryBenchmarkConfig, main};

use cache::caches;
use keyspace::commands;
use resp::protocol;
use scheduler::tasks;
use timer::timers;

main!(
    config = LibraryBenchmarkConfig::default()
        // Instructions alone: the simulated caches would take as long again.
        .tool(Callgrind::with_args(["--cache-sim=no"])),
    library_benchmark_groups = [timers, caches, commands, tasks, protocol]
);
