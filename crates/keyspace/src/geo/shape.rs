//! Circles and boxes on the earth: the cells that they cover, and the positions within them.

use std::ops::Range;

use super::cell::STEPS;
use super::{Cell, EARTH_RADIUS, LATITUDE_MAX, Point, degrees, radians};

/// Half of the equator, as the projection has it, in metres.
const PROJECTION_MAX: f64 = 20_037_726.37;

/// The form of an area; metres.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Shape {
    Circle { radius: f64 },
    Box { width: f64, height: f64 },
}

/// An area around a position.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Area {
    pub(crate) middle: Point,
    pub(crate) shape: Shape,
}

/// The degrees that an area lies within.
struct Bounds {
    longitudes: Range<f64>,
    latitudes: Range<f64>,
}

impl Area {
    /// The distance of a position from the middle, in metres, if it lies within.
    pub(crate) fn distance_within(&self, point: Point) -> Option<f64> {
        match self.shape {
            Shape::Circle { radius } => {
                let distance = self.middle.distance(point);
                (distance <= radius).then_some(distance)
            }
            Shape::Box { width, height } => {
                // The latitudes are cheaper to compare.
                if point.distance_of_latitudes(self.middle) > height / 2.0 {
                    return None;
                }
                let beside = Point {
                    latitude: point.latitude,
                    ..self.middle
                };
                let is_beside = point.distance(beside) <= width / 2.0;
                is_beside.then(|| self.middle.distance(point))
            }
        }
    }

    /// The ranges of scores that cover the area: those of the cell around its middle and of the
    /// cells beside it. No cell is named twice, and no cell that lies outside.
    pub(crate) fn scores(&self) -> impl Iterator<Item = Range<f64>> {
        let bounds = self.bounds();
        let middle = self.cell(&bounds);
        let beside = [
            (0, 0),
            (0, 1),
            (0, -1),
            (1, 0),
            (-1, 0),
            (1, 1),
            (-1, 1),
            (1, -1),
            (-1, -1),
        ];
        let mut last: Option<Cell> = None;
        beside
            .into_iter()
            .filter(move |(east, north)| bounds.reach(middle, *east, *north))
            .map(move |(east, north)| middle.moved(east, north))
            // Around a large area, cells in two directions may be the same.
            .filter(move |cell| last.replace(*cell) != Some(*cell))
            .map(Cell::scores)
    }

    /// The cell around the middle, of a size at which it and those beside it cover the area.
    fn cell(&self, bounds: &Bounds) -> Cell {
        let mut steps = self.steps();
        let around = |steps| Cell::around(self.middle, steps);
        // Public servers look once. Where that is enough, the order of what is found is theirs.
        if steps > 1 && !bounds.are_covered_around(around(steps)) {
            steps -= 1;
        }
        while steps > 1 && !bounds.are_covered_by_three(around(steps)) {
            steps -= 1;
        }
        around(steps)
    }

    /// An estimate of the number of halvings.
    fn steps(&self) -> u32 {
        let mut metres = match self.shape {
            Shape::Circle { radius } => radius,
            Shape::Box { width, height } => (width / 2.0).hypot(height / 2.0),
        };
        if metres == 0.0 {
            return STEPS;
        }
        let mut steps = 1;
        while metres < PROJECTION_MAX {
            metres *= 2.0;
            steps += 1;
        }
        // Columns become narrow towards the poles.
        steps -= 2;
        let latitude = self.middle.latitude.abs();
        steps -= i32::from(latitude > 66.0) + i32::from(latitude > 80.0);
        steps.clamp(1, STEPS as i32) as u32
    }

    fn bounds(&self) -> Bounds {
        let (half_width, half_height) = match self.shape {
            Shape::Circle { radius } => (radius, radius),
            Shape::Box { width, height } => (width / 2.0, height / 2.0),
        };
        let Point {
            longitude,
            latitude,
        } = self.middle;
        let north = degrees(half_height / EARTH_RADIUS);
        // The edge that is nearer to the pole spans more degrees.
        let edge = if latitude < 0.0 {
            latitude - north
        } else {
            latitude + north
        };
        // Around a pole lie all longitudes.
        let east = match edge.abs() < 90.0 {
            true => degrees(half_width / EARTH_RADIUS / radians(edge).cos()).min(180.0),
            false => 180.0,
        };
        Bounds {
            longitudes: longitude - east..longitude + east,
            latitudes: latitude - north..latitude + north,
        }
    }
}

impl Bounds {
    /// True if the cells around one reach as far as the bounds.
    fn are_covered_around(&self, cell: Cell) -> bool {
        cell.moved(0, 1).latitudes().end >= self.latitudes.end
            && cell.moved(0, -1).latitudes().start <= self.latitudes.start
            && cell.moved(1, 0).longitudes().end >= self.longitudes.end
            && cell.moved(-1, 0).longitudes().start <= self.longitudes.start
    }

    /// True if three cells in each direction, the middle one of which is this, reach as far as the
    /// bounds. They may lie on both sides of the map's edge.
    fn are_covered_by_three(&self, cell: Cell) -> bool {
        let covers = |cells: Range<f64>, bounds: &Range<f64>, max: f64| {
            let size = cells.end - cells.start;
            (cells.start - size).max(-max) <= bounds.start.max(-max)
                && (cells.end + size).min(max) >= bounds.end.min(max)
        };
        covers(cell.longitudes(), &self.longitudes, f64::INFINITY)
            && covers(cell.latitudes(), &self.latitudes, LATITUDE_MAX)
    }

    /// True if the bounds reach from a cell into its neighbour. Cells of a half or a quarter of the
    /// earth always count.
    fn reach(&self, cell: Cell, east: i32, north: i32) -> bool {
        if !cell.is_small() {
            return true;
        }
        let (columns, rows) = (cell.longitudes(), cell.latitudes());
        !(north < 0 && rows.start < self.latitudes.start
            || north > 0 && rows.end > self.latitudes.end
            || east < 0 && columns.start < self.longitudes.start
            || east > 0 && columns.end > self.longitudes.end)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn point() -> impl Strategy<Value = Point> {
        let place = (-180.0..180.0, -LATITUDE_MAX..LATITUDE_MAX);
        place.prop_filter_map("on the grid", |(lon, lat)| Point::new(lon, lat))
    }

    fn shape() -> impl Strategy<Value = Shape> {
        let metres = || (0.0..7.5_f64).prop_map(|power| 10_f64.powf(power));
        prop_oneof![
            metres().prop_map(|radius| Shape::Circle { radius }),
            (metres(), metres()).prop_map(|(width, height)| Shape::Box { width, height }),
        ]
    }

    fn is_covered(area: &Area, point: Point) -> bool {
        let score = Cell::of(point).score();
        area.scores().any(|scores| scores.contains(&score))
    }

    /// Redis 7.0 and Valkey 9.1 do not find it either.
    #[test]
    fn an_area_around_a_pole_has_what_lies_on_its_other_side() {
        let middle = Point::new(8.0, -80.0).expect("on the grid");
        let shape = Shape::Circle {
            radius: 1_160_001.0,
        };
        let area = Area { middle, shape };
        let point = Point::new(-2.0, -74.0).expect("on the grid");
        assert!(area.distance_within(point).is_some());
        assert!(is_covered(&area, point));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_000))]

        #[test]
        fn what_lies_within_an_area_lies_in_its_cells(
            middle in point(),
            shape in shape(),
            points in proptest::collection::vec(point(), 64),
            near in proptest::collection::vec((-1.0..1.0, -1.0..1.0), 64),
        ) {
            let area = Area { middle, shape };
            let extent = match shape {
                Shape::Circle { radius } => radius,
                Shape::Box { width, height } => width.hypot(height),
            };
            let degrees = degrees(extent / EARTH_RADIUS).min(180.0);
            let near = near.into_iter().filter_map(|(east, north): (f64, f64)| {
                let longitude: f64 = middle.longitude + east * degrees * 3.0;
                let longitude = (longitude + 540.0).rem_euclid(360.0) - 180.0;
                Point::new(longitude, middle.latitude + north * degrees)
            });
            for point in points.into_iter().chain(near) {
                if area.distance_within(point).is_some() {
                    prop_assert!(is_covered(&area, point), "{:?}", point);
                }
            }
        }
    }
}
