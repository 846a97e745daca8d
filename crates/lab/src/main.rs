//! `tidewheel-lab`: workloads and figures, Tidewheel's and its peers', by the same tool.

mod caches;
mod child;
mod cli;
mod client;
mod clock;
mod compare;
mod driver;
mod getter;
mod heap;
mod keys;
mod latency;
mod launch;
mod loader;
mod machine;
mod outcome;
mod page;
mod proc;
mod progress;
mod report;
mod resp;
mod rng;
mod seeds;
mod server;
mod simulate;
mod stats;
mod strategies;
mod table;
mod tasks;
mod timers;
mod versions;
mod workload;

fn main() -> std::process::ExitCode {
    match cli::run() {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tidewheel-lab: {error:#}");
            std::process::ExitCode::FAILURE
        }
    }
}
