//! Parses positions and lengths.

use tidewheel_resp::{Args, parse_f64};

use crate::error::CommandError;
use crate::geo::{Point, Shape};

const NO_UNIT: CommandError =
    CommandError::fixed("ERR unsupported unit provided. please use M, KM, FT, MI");
const NO_RADIUS: CommandError = CommandError::fixed("ERR need numeric radius");
const NEGATIVE_RADIUS: CommandError = CommandError::fixed("ERR radius cannot be negative");
const NO_WIDTH: CommandError = CommandError::fixed("ERR need numeric width");
const NO_HEIGHT: CommandError = CommandError::fixed("ERR need numeric height");
const NEGATIVE_SIDE: CommandError = CommandError::fixed("ERR height or width cannot be negative");

/// Metres of a unit.
pub(super) fn unit(text: &[u8]) -> Result<f64, CommandError> {
    match text.to_ascii_lowercase().as_slice() {
        b"m" => Ok(1.0),
        b"km" => Ok(1_000.0),
        b"ft" => Ok(0.3048),
        b"mi" => Ok(1_609.34),
        _ => Err(NO_UNIT),
    }
}

/// A position: its longitude stands at `at`, and its latitude behind.
pub(super) fn point(args: Args<'_>, at: usize) -> Result<Point, CommandError> {
    let number = |at| {
        let number = args.get(at).and_then(parse_f64);
        number.ok_or(CommandError::NOT_A_FLOAT)
    };
    let (longitude, latitude) = (number(at)?, number(at + 1)?);
    Point::new(longitude, latitude).ok_or_else(|| {
        CommandError::quoting(format!(
            "ERR invalid longitude,latitude pair {longitude:.6},{latitude:.6}"
        ))
    })
}

fn length(args: Args<'_>, at: usize, no_number: CommandError) -> Result<f64, CommandError> {
    args.get(at).and_then(parse_f64).ok_or(no_number)
}

/// A circle: its radius stands at `at`, and the unit behind. Returns the metres of the unit too.
pub(super) fn circle(args: Args<'_>, at: usize) -> Result<(Shape, f64), CommandError> {
    let radius = length(args, at, NO_RADIUS)?;
    if radius < 0.0 {
        return Err(NEGATIVE_RADIUS);
    }
    let metres = unit(args.get(at + 1).unwrap_or_default())?;
    let radius = radius * metres;
    Ok((Shape::Circle { radius }, metres))
}

/// A box: its width stands at `at`, its height and the unit behind. Returns the metres of the unit
/// too.
pub(super) fn rectangle(args: Args<'_>, at: usize) -> Result<(Shape, f64), CommandError> {
    let (width, height) = (
        length(args, at, NO_WIDTH)?,
        length(args, at + 1, NO_HEIGHT)?,
    );
    if width < 0.0 || height < 0.0 {
        return Err(NEGATIVE_SIDE);
    }
    let metres = unit(args.get(at + 2).unwrap_or_default())?;
    let (width, height) = (width * metres, height * metres);
    Ok((Shape::Box { width, height }, metres))
}
