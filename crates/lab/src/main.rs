//! `tidewheel-lab`: workloads and figures, Tidewheel's and its peers', by the same tool.

#![forbid(unsafe_code)]

mod caches;
mod cli;
mod clock;
mod heap;
mod hit_ratios;
mod latency;
mod locks;
mod machine;
mod names;
mod outcome;
mod page;
mod proc;
mod progress;
mod report;
mod rng;
mod runner;
mod schedule;
mod servers;
mod stats;
mod studies;
mod table;
mod tasks;
mod timers;
mod zipf;

fn main() -> std::process::ExitCode {
    match cli::run() {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tidewheel-lab: {error:#}");
            std::process::ExitCode::FAILURE
        }
    }
}
