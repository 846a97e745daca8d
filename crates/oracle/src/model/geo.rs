//! Places on sorted sets.

use tidewheel_resp::Reply;

use super::expect::leaves;
use super::{Answered, Expect, Model};
use crate::draw::Draw;

/// Of the public server: the Earth's radius in metres, and the last latitude of its map.
const RADIUS_M: f64 = 6_372_797.560856;
const LATITUDE_MAX: f64 = 85.05112878;

/// The scores that are places.
const PLACES: std::ops::Range<f64> = 0.0..(1_u64 << 52) as f64;

/// Relative to the true distance: what cells and rounding may add to it.
const NEAR: f64 = 0.001;

impl Draw<'_> {
    pub(crate) fn geo(&mut self) -> String {
        let (k, a, b) = (self.key("z"), self.member(), self.member());
        let (lon, lat) = (self.near(120), self.near(80));
        match self.below(6) {
            0..3 => format!(
                "GEOADD {k} {lon} {lat} {a} {} {} {b}",
                self.near(120),
                self.near(80)
            ),
            3 => format!("GEODIST {k} {a} {b}"),
            4 => format!("GEOPOS {k} {a} {b}"),
            _ => {
                let m = 1 + i64::from(self.below(250)) * 40_000;
                format!("GEOSEARCH {k} FROMLONLAT {lon} {lat} BYRADIUS {m} m ASC")
            }
        }
    }
}

impl Model {
    pub(super) fn geo(&mut self, w: &[&str], answer: &Reply) -> Answered {
        let number = |at: usize| w[at].parse::<f64>().unwrap();
        let told = match w[0] {
            "GEOADD" => {
                let of = |place: &[&str]| {
                    let (lon, lat) = (place[0].parse().unwrap(), place[1].parse().unwrap());
                    (place[2].into(), cell(lon, lat) as f64)
                };
                self.add_scored(w[1], &[], w[2..].chunks(3).map(of).collect())
            }
            "GEODIST" => self.zset_view(w[1], |zset| {
                let place = |at: usize| zset.get(w[at].as_bytes()).map(|one| middle(one.value));
                match (place(2), place(3)) {
                    (Some(a), Some(b)) => Expect::About(distance(a, b)),
                    _ => Expect::Reply(Reply::Null),
                }
            }),
            "GEOPOS" => self.zset_view(w[1], |zset| {
                let mut found = leaves(answer).into_iter();
                let mut next = || match found.next() {
                    Some(Reply::Bulk(text)) => String::from_utf8_lossy(&text).parse::<f64>().ok(),
                    _ => None,
                };
                for member in &w[2..] {
                    let told = next().map(|lon| (lon, next().expect("a latitude")));
                    match zset.get(member.as_bytes()).map(|one| middle(one.value)) {
                        None => assert_eq!(told, None),
                        Some((lon, lat)) => {
                            let (told_lon, told_lat) = told.expect("a place");
                            assert!((told_lon - lon).abs() < 1e-9 && (told_lat - lat).abs() < 1e-9);
                        }
                    }
                }
                Expect::AsAnswered
            }),
            "GEOSEARCH" => self.zset_view(w[1], |zset| {
                let (centre, radius) = ((number(3), number(4)), number(6));
                let found = leaves(answer);
                let far = |name: &[u8]| distance(centre, middle(zset[name].value));
                let mut last = 0.0;
                for one in &found {
                    let Reply::Bulk(name) = one else {
                        panic!("no member: {one:?}")
                    };
                    let m = far(name);
                    assert!(
                        m <= radius * (1.0 + NEAR) && m >= last * (1.0 - NEAR),
                        "{m} m of {radius}"
                    );
                    last = m;
                }
                let places = zset.iter().filter(|(_, one)| PLACES.contains(&one.value));
                let within = |name: &&Vec<u8>| far(name) < radius * (1.0 - NEAR);
                for name in places.map(|(name, _)| name).filter(within) {
                    assert!(
                        found.contains(&Reply::Bulk(name.clone())),
                        "{name:?} is within"
                    );
                }
                Expect::AsAnswered
            }),
            _ => return None,
        };
        Some(told)
    }
}

/// The number of the cell of a place: the bits of both coordinates in turn.
fn cell(lon: f64, lat: f64) -> u64 {
    let scaled =
        |value: f64, most: f64| ((value + most) / (2.0 * most) * f64::from(1 << 26)) as u64;
    let (x, y) = (scaled(lon, 180.0), scaled(lat, LATITUDE_MAX));
    (0..26).fold(0, |cell, bit| {
        cell | (y >> bit & 1) << (2 * bit) | (x >> bit & 1) << (2 * bit + 1)
    })
}

/// The middle of a cell. A score may be any number: what lies past the map counts as its edge.
fn middle(score: f64) -> (f64, f64) {
    let cell = score as u64;
    let bits =
        |odd: u32| (0..32).fold(0_u64, |sum, bit| sum | (cell >> (2 * bit + odd) & 1) << bit);
    let of = |n: u64, most: f64| ((n as f64 + 0.5) / f64::from(1 << 26) * 2.0 - 1.0) * most;
    (
        of(bits(1), 180.0).clamp(-180.0, 180.0),
        of(bits(0), LATITUDE_MAX).clamp(-LATITUDE_MAX, LATITUDE_MAX),
    )
}

/// Metres along a great circle.
fn distance(a: (f64, f64), b: (f64, f64)) -> f64 {
    let ((lon, lat), (lon2, lat2)) = (a, b);
    let half = |from: f64, to: f64| ((to - from).to_radians() / 2.0).sin().powi(2);
    let h = half(lat, lat2) + lat.to_radians().cos() * lat2.to_radians().cos() * half(lon, lon2);
    2.0 * RADIUS_M * h.sqrt().min(1.0).asin()
}
