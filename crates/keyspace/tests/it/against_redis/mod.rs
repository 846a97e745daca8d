//! Commands over strings, and what reads and writes collections whole, beside a stock redis-server:
//! equal replies, equal values.

mod bitmaps;
mod drawn;
mod dumps;
mod hyperloglogs;
mod refusals;
mod scripts;
mod sorting;

use tidewheel_oracle::Dice;

/// A number near those at which things change.
fn edge(dice: &mut Dice, most: i64) -> String {
    let number = match dice.below(8) {
        0 => dice.number() as i64,
        1 => -1 - dice.below(most as u64 + 1) as i64,
        2 => most - 1 + dice.below(3) as i64,
        3 => dice.below(4) as i64 - 2,
        _ => dice.below(most as u64 + 1) as i64,
    };
    number.to_string()
}
