//! Positions on the earth: their scores in a sorted set, and areas around them.
//!
//! A position is a cell of a grid. Longitude and latitude are numbers of 26 bits each, whose bits
//! stand in turn: so cells that are near each other mostly have scores near each other. It is the
//! encoding of the public protocol's servers.

mod cell;
mod shape;

pub(crate) use self::cell::Cell;
pub(crate) use self::shape::{Area, Shape};

pub(crate) const LONGITUDE_MAX: f64 = 180.0;
/// As in the Mercator projection, on which the grid is laid.
pub(crate) const LATITUDE_MAX: f64 = 85.051_128_78;

/// Metres. The mean of the earth's radii, as the public protocol's servers have it.
const EARTH_RADIUS: f64 = 6_372_797.560_856;

/// A position, in degrees.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Point {
    pub(crate) longitude: f64,
    pub(crate) latitude: f64,
}

impl Point {
    /// `None` if it does not lie on the grid.
    pub(crate) fn new(longitude: f64, latitude: f64) -> Option<Self> {
        let on_grid = (-LONGITUDE_MAX..=LONGITUDE_MAX).contains(&longitude)
            && (-LATITUDE_MAX..=LATITUDE_MAX).contains(&latitude);
        on_grid.then_some(Self {
            longitude,
            latitude,
        })
    }

    /// Metres along a great circle, by the haversine formula.
    pub(crate) fn distance(self, other: Self) -> f64 {
        let half_sine = |a: f64, b: f64| ((radians(b) - radians(a)) / 2.0).sin();
        let v = half_sine(self.longitude, other.longitude);
        if v == 0.0 {
            return self.distance_of_latitudes(other);
        }
        let u = half_sine(self.latitude, other.latitude);
        let cosines = radians(self.latitude).cos() * radians(other.latitude).cos();
        let a = u * u + cosines * v * v;
        2.0 * EARTH_RADIUS * a.sqrt().asin()
    }

    /// Metres along a meridian.
    fn distance_of_latitudes(self, other: Self) -> f64 {
        EARTH_RADIUS * (radians(other.latitude) - radians(self.latitude)).abs()
    }
}

fn radians(degrees: f64) -> f64 {
    degrees * (std::f64::consts::PI / 180.0)
}

fn degrees(radians: f64) -> f64 {
    radians / (std::f64::consts::PI / 180.0)
}
