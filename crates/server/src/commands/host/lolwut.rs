//! LOLWUT: a picture, and the version. The picture is a wheel that the tide turns a little further
//! each second.

use tidewheel_keyspace::CommandError;
use tidewheel_resp::{Args, parse_i64};

use super::HandlerResult;
use super::session::REDIS_VERSION;
use crate::commands::turn::{CommandStep, Turn};

/// Lines above and below the axle, and columns to its left and right.
const RADIUS: (i32, i32) = (6, 13);

/// Spokes of the wheel.
const SPOKES: f64 = 8.0;

impl Turn<'_> {
    /// Draws the picture. VERSION asks for that of another version, but there is only one.
    pub(super) fn lolwut(&mut self, args: Args<'_>) -> HandlerResult {
        let asks = args
            .get(1)
            .is_some_and(|word| word.eq_ignore_ascii_case(b"version"));
        if asks
            && args
                .get(2)
                .is_some_and(|version| parse_i64(version).is_none())
        {
            return Err(CommandError::NOT_AN_INTEGER);
        }
        let second = self.state.time.tick / 1_000;
        let text = format!(
            "{}\nTidewheel ver. {}, as Redis ver. {REDIS_VERSION}\n",
            picture(second),
            env!("CARGO_PKG_VERSION"),
        );
        self.out.verbatim("txt", text.as_bytes());
        Ok(CommandStep::Done)
    }
}

fn picture(second: u64) -> String {
    let mut text = String::new();
    for y in -RADIUS.0..=RADIUS.0 {
        let line: String = (-RADIUS.1..=RADIUS.1).map(|x| mark(x, y, second)).collect();
        text.push_str(line.trim_end());
        text.push('\n');
    }
    for wave in 0..2 {
        let at = (second + wave * 2) as usize % 4;
        text.push_str(&"~-._".repeat(8)[at..at + 27]);
        text.push('\n');
    }
    text
}

/// Returns the character at a point, counted from the axle.
fn mark(x: i32, y: i32, second: u64) -> char {
    let (across, down) = (
        f64::from(x) / f64::from(RADIUS.1),
        f64::from(y) / f64::from(RADIUS.0),
    );
    let distance = across.hypot(down);
    let turned = (second % 60) as f64 / 60.0 * std::f64::consts::TAU;
    let angle = down.atan2(across) + turned;
    let spoke = (angle / std::f64::consts::TAU * SPOKES).rem_euclid(1.0);
    match distance {
        ..0.12 => 'O',
        0.82..1.0 => '#',
        0.12..0.82 if !(0.12..0.88).contains(&spoke) => '+',
        _ => ' ',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wheel_turns() {
        let wheel = picture(1 << 30);
        assert_eq!(wheel.lines().count(), 15);
        assert!(wheel.contains('O') && wheel.is_ascii());
        assert_ne!(wheel, picture((1 << 30) + 1));
        assert!(wheel.lines().all(|line| line.len() <= 27));
    }
}
