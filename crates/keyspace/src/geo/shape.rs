//! Circles and boxes on the earth: the cells that they cover, and the positions within them.

use std::ops::Range;

use super::cell::STEPS;
use super::{Cell, EARTH_RADIUS, Point, degrees, radians};

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
        let steps = self.steps();
        let cell = Cell::around(self.middle, steps);
        if steps > 1 && !bounds.are_covered_around(cell) {
            return Cell::around(self.middle, steps - 1);
        }
        cell
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
        let east = degrees(half_width / EARTH_RADIUS / radians(edge).cos());
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
