//! Salvages a damaged journal: `cargo run --example salvage --features redb -- jobs.redb`.
//!
//! The file is looked through, whoever wrote its keys and values. If it is damaged, it gets another
//! name, a new one with the jobs that are whole takes its place, and the others are named.

use std::process::ExitCode;

use tidewheel_scheduler::RedbJournal;

fn main() -> ExitCode {
    let Some(path) = std::env::args_os().nth(1) else {
        eprintln!("usage: salvage FILE");
        return ExitCode::FAILURE;
    };
    let salvaged = match RedbJournal::open_salvaging(&path) {
        Ok((_, salvaged)) => salvaged,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    let Some(salvaged) = salvaged else {
        println!("nothing is damaged");
        return ExitCode::SUCCESS;
    };
    println!("{} jobs are whole", salvaged.whole);
    println!(
        "{} jobs are damaged and run no more",
        salvaged.damaged.len()
    );
    for job in &salvaged.damaged {
        println!(
            "  id {}, key {:?}",
            job.id,
            String::from_utf8_lossy(&job.key)
        );
    }
    match salvaged.lost {
        Some(lost) => println!("{lost} jobs were not found"),
        None => println!("how many jobs were not found is not known"),
    }
    println!("the damaged file is {}", salvaged.aside.display());
    ExitCode::SUCCESS
}
