//! A price that processes share, on the Valkey or Redis at an address. Start it twice: one of the
//! two asks the origin, and when one changes the price, the other one sees it at once.
//!
//! `cargo run -p tidewheel-tier --features valkey --example shared_tier -- redis://127.0.0.1:6379`

use std::process::id;
use std::thread::sleep;
use std::time::Duration;

use tidewheel::Cache;
use tidewheel_tier::{Raw, Tier, Tiered, TieredCache, Valkey};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::args().nth(1);
    let engine = Valkey::open(url.as_deref().unwrap_or("redis://127.0.0.1:6379"))?;
    let prices: TieredCache<String, String> = Cache::builder()
        .max_capacity(100_000)
        .no_default_ttl()
        .tiered(Tier::new("shop", engine, Raw).time_to_live(Duration::from_secs(60)))?;
    for second in 1..=6 {
        let price = prices.get_or_load("tea".to_owned(), || {
            println!("process {} asks the origin", id());
            sleep(Duration::from_millis(300));
            format!("7, as process {} heard", id())
        });
        println!("{second} s: tea costs {price}");
        if second == 4 {
            prices.insert("tea".to_owned(), format!("8, says process {}", id()))?;
        }
        sleep(Duration::from_secs(1));
    }
    let stats = prices.tier_stats();
    println!("{stats:?}");
    Ok(())
}
