//! Cells of the grid. A cell is a piece of the earth after so many halvings of the longitudes and
//! of the latitudes.

use std::ops::Range;

use super::{LATITUDE_MAX, LONGITUDE_MAX, Point};

/// Halvings of a position that is stored.
pub(super) const STEPS: u32 = 26;

/// Letters of a geohash.
const LETTERS: &[u8; 32] = b"0123456789bcdefghjkmnpqrstuvwxyz";
/// The last letter of eleven would need more bits than there are.
const TEXT_LEN: usize = 11;
/// A geohash covers all latitudes.
const TEXT_LATITUDE_MAX: f64 = 90.0;

/// A cell: the numbers of its column and its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cell {
    column: u32,
    row: u32,
    steps: u32,
}

/// The number of a part, where `-max..max` is cut into `2^steps` of them. `max` itself is in the
/// next one.
fn part(at: f64, max: f64, steps: u32) -> u32 {
    let share = (at + max) / (2.0 * max);
    (share * f64::from(1_u32 << steps)) as u32
}

/// The bits of a number, with zeros in between.
fn spread(number: u32) -> u64 {
    let mut bits = u64::from(number);
    for (shift, mask) in [
        (16, 0x0000_ffff_0000_ffff),
        (8, 0x00ff_00ff_00ff_00ff),
        (4, 0x0f0f_0f0f_0f0f_0f0f),
        (2, 0x3333_3333_3333_3333),
        (1, 0x5555_5555_5555_5555),
    ] {
        bits = (bits | bits << shift) & mask;
    }
    bits
}

/// Undoes [`spread`], whatever lies in between.
fn gather(bits: u64) -> u32 {
    let mut bits = bits & 0x5555_5555_5555_5555;
    for (shift, mask) in [
        (1, 0x3333_3333_3333_3333),
        (2, 0x0f0f_0f0f_0f0f_0f0f),
        (4, 0x00ff_00ff_00ff_00ff),
        (8, 0x0000_ffff_0000_ffff),
        (16, 0x0000_0000_ffff_ffff),
    ] {
        bits = (bits | bits >> shift) & mask;
    }
    bits as u32
}

impl Cell {
    /// The cell in which a position lies.
    pub(super) fn around(point: Point, steps: u32) -> Self {
        Self {
            column: part(point.longitude, LONGITUDE_MAX, steps),
            row: part(point.latitude, LATITUDE_MAX, steps),
            steps,
        }
    }

    /// The cell of a position that is stored.
    pub(crate) fn of(point: Point) -> Self {
        Self::around(point, STEPS)
    }

    /// The cell that a score stands for. Scores that stand for none are taken for some cell.
    pub(crate) fn of_score(score: f64) -> Self {
        let bits = score as u64;
        Self {
            column: gather(bits >> 1),
            row: gather(bits),
            steps: STEPS,
        }
    }

    fn bits(self) -> u64 {
        spread(self.row) | spread(self.column) << 1
    }

    /// The score of the position that is stored.
    pub(crate) fn score(self) -> f64 {
        self.bits() as f64
    }

    /// The scores of the positions within.
    pub(super) fn scores(self) -> Range<f64> {
        let shift = 2 * (STEPS - self.steps);
        (self.bits() << shift) as f64..((self.bits() + 1) << shift) as f64
    }

    /// The middle of the cell.
    pub(crate) fn middle(self) -> Point {
        let (columns, rows) = (self.longitudes(), self.latitudes());
        let middle = |range: Range<f64>, max: f64| {
            let middle = (range.start + range.end) / 2.0;
            middle.clamp(-max, max)
        };
        Point {
            longitude: middle(columns, LONGITUDE_MAX),
            latitude: middle(rows, LATITUDE_MAX),
        }
    }

    pub(super) fn longitudes(self) -> Range<f64> {
        self.extent(self.column, LONGITUDE_MAX)
    }

    pub(super) fn latitudes(self) -> Range<f64> {
        self.extent(self.row, LATITUDE_MAX)
    }

    fn extent(self, number: u32, max: f64) -> Range<f64> {
        let parts = f64::from(1_u32 << self.steps);
        let edge = |number: f64| -max + number / parts * (2.0 * max);
        edge(number.into())..edge(f64::from(number) + 1.0)
    }

    /// The cell so many columns to the east and rows to the north, around the earth's edges.
    pub(super) fn moved(self, east: i32, north: i32) -> Self {
        let mask = (1_u32 << self.steps) - 1;
        let turned = |number: u32, by: i32| match by {
            0 => number,
            by => number.wrapping_add_signed(by) & mask,
        };
        Self {
            column: turned(self.column, east),
            row: turned(self.row, north),
            ..self
        }
    }

    /// True if its neighbours in all directions are different cells.
    pub(super) fn is_small(self) -> bool {
        self.steps >= 2
    }

    /// The geohash of the cell's middle, as other programs write it.
    pub(crate) fn text(self) -> [u8; TEXT_LEN] {
        let Point {
            longitude,
            latitude,
        } = self.middle();
        let row = part(latitude, TEXT_LATITUDE_MAX, STEPS);
        let bits = spread(row) | spread(part(longitude, LONGITUDE_MAX, STEPS)) << 1;
        std::array::from_fn(|i| {
            let below = (2 * STEPS).checked_sub(5 * (i as u32 + 1));
            let letter = below.map_or(0, |below| bits >> below & 31);
            LETTERS[letter as usize]
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn positions_have_the_public_scores_and_texts() {
        let palermo = Point::new(13.361_389, 38.115_556).expect("on the grid");
        let cell = Cell::of(palermo);
        assert_eq!(cell.score(), 3_479_099_956_230_698.0);
        assert_eq!(&cell.text(), b"sqc8b49rny0");
        assert_eq!(Cell::of_score(cell.score()), cell);
    }

    #[test]
    fn any_score_is_some_cell() {
        for score in [f64::NEG_INFINITY, -1.0, f64::MAX, f64::INFINITY, 1e17] {
            let point = Cell::of_score(score).middle();
            assert!(Point::new(point.longitude, point.latitude).is_some());
        }
    }

    proptest! {
        #[test]
        fn a_cell_has_its_position(longitude in -180.0..180.0, latitude in -85.0..=85.0, steps in 1..=STEPS) {
            let point = Point::new(longitude, latitude).expect("on the grid");
            let cell = Cell::around(point, steps);
            prop_assert!(cell.longitudes().contains(&longitude));
            prop_assert!(cell.latitudes().contains(&latitude));
            prop_assert!(cell.scores().contains(&Cell::of(point).score()));
            prop_assert_eq!(cell.moved(1, -1).moved(-1, 1), cell);
        }

        #[test]
        fn bits_are_spread_and_gathered(number: u32) {
            prop_assert_eq!(gather(spread(number)), number);
            prop_assert_eq!(gather(spread(number) | spread(!number) << 1), number);
        }
    }
}
