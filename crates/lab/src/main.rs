//! `tidewheel-lab`: workloads and figures, Tidewheel's and its peers', by the same tool.
//!
//! It measures; it decides nothing. Every command is an experiment, and every measurement is one
//! `Report`. A report names the experiment, the *cell* (which of its tables), the subject and its
//! version, the run, the machine and the parameters. It has curves and figures; a figure's name
//! ends with its unit. A report is one line of JSON, and the command `report` draws any files of
//! such lines as one page.
//!
//! # The folders and files
//!
//! - `servers/`: servers of the Redis protocol, in turn, each in a fresh process.
//! - `caches/`: in-process caches behind `Subject`; other people's with the feature `peers`.
//! - `tasks/`, `timers/`: the scheduler and the timer structures on a virtual clock.
//! - `hit_ratios/`, `studies/ttl_memory/`: traces and TTL mixes in virtual time: hit ratios, memory
//!   held.
//! - `studies/expiry/`: nine ways to find what is due, behind one trait; the tables of Ankur
//!   Anand's article [Killing
//!   O(n)](https://medium.com/@ankur_anand/killing-o-n-how-timing-wheels-expire-10-million-keys-effortlessly-in-golang-9a6b8709fd91),
//!   as it ran them and while entries expire.
//! - `page.rs`: reports as one HTML page, which draws itself in the browser.
//! - `runner.rs`, `schedule.rs`: rounds of subjects, a process each; when a load acts.
//! - `report.rs`, `outcome.rs`, `table.rs`: one measurement; all that a command found; text tables.
//! - `clock.rs`, `proc.rs`, `heap.rs`, `machine.rs`: what is measured with: the clocks, processor
//!   time, bytes, whose machine.
//!
//! # A figure's way
//!
//! 1. `cli.rs` hands a command its arguments. The command plans its measurements in rounds, so that
//!    a machine that slows down slows all subjects.
//! 2. Each measurement runs in a child process, which answers with its line; servers are processes
//!    of their own anyway. Only `caches throughput`, `hit-ratios` and `study ttl-memory` run in the
//!    laboratory's own process.
//! 3. The lines are printed, tables are made of them, and the page of `report` draws them. Only a
//!    table or a picture takes medians; a file keeps every run.
//!
//! # Invariants
//!
//! - **A comparison is within one run.** One command on one machine measures all subjects of a
//!   table. A page that mixes machines says so above the table.
//! - **A strategy is told the time.** Structures run on a virtual clock, so that a scan of ten
//!   million and a wheel of ten million see the same minute. Only the experiments with readers run
//!   in real time.
//! - **Noise is a figure.** Every measurement that takes a second or more also says how much
//!   processor time other processes took meanwhile.

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
