//! Salvages a damaged journal, whoever wrote its keys and values. The damaged file gets another
//! name, and a new one with the jobs that are whole takes its place.
//!
//! `cargo run -p tidewheel-scheduler --features redb --example salvage -- jobs.redb`

use tidewheel_scheduler::RedbJournal;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args_os().nth(1).ok_or("usage: salvage FILE")?;
    let Some(salvaged) = RedbJournal::open_salvaging(&path)?.1 else {
        println!("nothing is damaged");
        return Ok(());
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
    Ok(())
}
