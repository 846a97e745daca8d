//! Geospatial indexes: sorted sets whose scores are positions on the earth.

pub(crate) mod place;
mod query;
pub(crate) mod search;
mod units;

use tidewheel_resp::{Protocol, Writer};

use crate::error::CommandError;
use crate::geo::Point;

type Outcome = Result<(), CommandError>;

/// Decimals of a position.
const DECIMALS: usize = 17;

/// Writes a position.
fn put_point(out: &mut Writer, point: Point) {
    out.array(2);
    put_degrees(out, point.longitude);
    put_degrees(out, point.latitude);
}

fn put_degrees(out: &mut Writer, degrees: f64) {
    let text = format!("{degrees:.DECIMALS$}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    let text = if text == "-0" { "0" } else { text };
    match out.protocol() {
        Protocol::Resp2 => out.bulk(text.as_bytes()),
        Protocol::Resp3 => out.raw(format!(",{text}\r\n").as_bytes()),
    }
}

/// Writes a distance: a string in both versions of the protocol.
fn put_distance(out: &mut Writer, distance: f64) {
    out.bulk(format!("{distance:.4}").as_bytes());
}
