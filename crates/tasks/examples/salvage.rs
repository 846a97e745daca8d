//! Salvages a damaged file of tasks. It gets another name, and a new one with the tasks that are
//! whole takes its place.
//!
//! `cargo run -p tidewheel-tasks --example salvage -- tasks.redb`

use tidewheel_tasks::FileStore;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args_os().nth(1).ok_or("usage: salvage FILE")?;
    let Some(salvaged) = FileStore::open_salvaging(&path)?.1 else {
        println!("nothing is damaged");
        return Ok(());
    };
    println!("{} tasks are whole", salvaged.whole);
    println!(
        "{} tasks are damaged and run no more",
        salvaged.damaged.len()
    );
    for id in &salvaged.damaged {
        println!("  {id:?}");
    }
    match salvaged.lost {
        Some(lost) => println!("{lost} tasks were not found"),
        None => println!("how many tasks were not found is not known"),
    }
    println!("the damaged file is {}", salvaged.aside.display());
    Ok(())
}
