//! Geospatial indexes: sorted sets whose scores are positions on the earth.

mod decimal;
pub(crate) mod place;
mod query;
pub(crate) mod search;
mod units;

use tidewheel_resp::{Protocol, Writer};

use self::decimal::Decimal;
use crate::error::CommandError;
use crate::geo::Point;

type Outcome = Result<(), CommandError>;

/// Decimals of a position.
const DECIMALS: u32 = 17;

/// Decimals of a distance.
const DISTANCE_DECIMALS: u32 = 4;

/// Writes a position.
fn put_point(out: &mut Writer, point: Point) {
    out.array(2);
    put_degrees(out, point.longitude);
    put_degrees(out, point.latitude);
}

fn put_degrees(out: &mut Writer, degrees: f64) {
    let text = Decimal::new(degrees, DECIMALS).map(Decimal::trimmed);
    let text = match text.as_ref().map(Decimal::as_bytes) {
        // No position is no number, or that large.
        None | Some(b"-0") => b"0",
        Some(text) => text,
    };
    match out.protocol() {
        Protocol::Resp2 => out.bulk(text),
        Protocol::Resp3 => {
            out.raw(b",");
            out.raw(text);
            out.raw(b"\r\n");
        }
    }
}

/// Writes a distance: a string in both versions of the protocol.
fn put_distance(out: &mut Writer, distance: f64) {
    match Decimal::new(distance, DISTANCE_DECIMALS) {
        Some(text) => out.bulk(text.as_bytes()),
        // That of scores that are no positions may be no number.
        None => out.bulk(format!("{distance:.4}").as_bytes()),
    }
}
