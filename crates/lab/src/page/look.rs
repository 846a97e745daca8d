//! How each subject looks in every picture of an experiment: a colour, a dash and a mark of its own.

use anyhow::Result;
use plotters::prelude::RGBColor;

use super::canvas::{Canvas, Dash, Stroke, WHITE};

/// Names under which the production parts of this project take part, in lower case.
const OURS: [&str; 3] = ["hierarchical-wheel", "hierarchicalwheel", "tasks"];

const WHOLE: &str = "tidewheel";

const STRONG: [RGBColor; 3] = [
    RGBColor(208, 52, 20),
    RGBColor(150, 24, 60),
    RGBColor(232, 120, 16),
];

/// Muted, and apart from each other in lightness as much as in hue.
const MUTED: [RGBColor; 12] = [
    RGBColor(62, 102, 158),
    RGBColor(190, 146, 52),
    RGBColor(62, 150, 132),
    RGBColor(142, 98, 166),
    RGBColor(104, 108, 114),
    RGBColor(126, 176, 214),
    RGBColor(128, 92, 66),
    RGBColor(56, 60, 120),
    RGBColor(190, 124, 164),
    RGBColor(84, 122, 66),
    RGBColor(40, 92, 96),
    RGBColor(138, 132, 48),
];

const DASHES: [Dash; 4] = [Dash::Unbroken, Dash::Long, Dash::Short, Dash::Mixed];

/// The shape of a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Disc,
    Square,
    Triangle,
    Diamond,
    Wedge,
    Cross,
    Plus,
    Ring,
    Frame,
    OpenTriangle,
    OpenDiamond,
    OpenWedge,
}

const SHAPES: [Shape; 12] = [
    Shape::Square,
    Shape::Triangle,
    Shape::Diamond,
    Shape::Wedge,
    Shape::Cross,
    Shape::Ring,
    Shape::Plus,
    Shape::Frame,
    Shape::OpenTriangle,
    Shape::OpenDiamond,
    Shape::OpenWedge,
    Shape::Disc,
];

/// The look of one subject.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    pub(super) ours: bool,
    pub(super) stroke: Stroke,
    shape: Shape,
}

/// The subjects of an experiment with their looks, in the order in which they first occur.
pub(super) fn looks<'a>(subjects: &[&'a str]) -> Vec<(&'a str, Look)> {
    // The whole cache or server has the first of the strong colours, its parts have the others.
    let mut strong: Vec<&str> = subjects
        .iter()
        .copied()
        .filter(|name| is_ours(name))
        .collect();
    strong.sort_by_key(|name| !name.to_lowercase().starts_with(WHOLE));
    let mut muted = 0;
    let look = |subject: &&'a str| {
        let rank = strong.iter().position(|name| name == subject);
        let ours = rank.is_some();
        let look = if let Some(rank) = rank {
            Look {
                ours,
                stroke: Stroke {
                    colour: STRONG[rank % STRONG.len()],
                    width: 3.0,
                    dash: DASHES[rank % DASHES.len()],
                },
                shape: Shape::Disc,
            }
        } else {
            muted += 1;
            let at = muted - 1;
            Look {
                ours,
                stroke: Stroke {
                    colour: MUTED[at % MUTED.len()],
                    width: 1.6,
                    dash: DASHES[at % DASHES.len()],
                },
                shape: SHAPES[at % SHAPES.len()],
            }
        };
        (*subject, look)
    };
    subjects.iter().map(look).collect()
}

fn is_ours(subject: &str) -> bool {
    let name = subject.to_lowercase();
    name.starts_with(WHOLE) || OURS.contains(&name.as_str())
}

impl Look {
    /// The same for the second line of a subject, which must not outshine the first.
    pub(super) fn second(self) -> Self {
        let mut look = self;
        look.stroke.width = 1.2;
        look.stroke.dash = Dash::Fine;
        look
    }

    pub(super) fn mark(&self, canvas: &Canvas<'_>, at: (f64, f64)) -> Result<()> {
        let colour = self.stroke.colour;
        let size = if self.ours { 4.8 } else { 4.0 };
        let pen = Stroke::solid(colour, 1.6);
        let corners = |around: &[(f64, f64)]| -> Vec<(f64, f64)> {
            around
                .iter()
                .map(|(x, y)| (at.0 + x * size, at.1 + y * size))
                .collect()
        };
        let strokes = |lines: &[&[(f64, f64)]]| -> Result<()> {
            lines
                .iter()
                .try_for_each(|line| canvas.line(&corners(line), pen))
        };
        let closed = |around: &[(f64, f64)], filled: bool| -> Result<()> {
            let around = corners(around);
            canvas.shape(&around, if filled { colour } else { WHITE })?;
            let mut edge = around.clone();
            edge.extend(around.first());
            canvas.line(&edge, pen)
        };
        match self.shape {
            Shape::Disc => canvas.disc(at, size * 0.9, colour, pen),
            Shape::Ring => canvas.disc(at, size * 0.9, WHITE, pen),
            Shape::Square => closed(&SQUARE, true),
            Shape::Frame => closed(&SQUARE, false),
            Shape::Triangle => closed(&TRIANGLE, true),
            Shape::OpenTriangle => closed(&TRIANGLE, false),
            Shape::Wedge => closed(&WEDGE, true),
            Shape::OpenWedge => closed(&WEDGE, false),
            Shape::Diamond => closed(&DIAMOND, true),
            Shape::OpenDiamond => closed(&DIAMOND, false),
            Shape::Cross => strokes(&[&[(-0.9, -0.9), (0.9, 0.9)], &[(-0.9, 0.9), (0.9, -0.9)]]),
            Shape::Plus => strokes(&[&[(-1.1, 0.0), (1.1, 0.0)], &[(0.0, -1.1), (0.0, 1.1)]]),
        }
    }
}

const SQUARE: [(f64, f64); 4] = [(-0.8, -0.8), (0.8, -0.8), (0.8, 0.8), (-0.8, 0.8)];
const TRIANGLE: [(f64, f64); 3] = [(-1.0, 0.8), (0.0, -1.0), (1.0, 0.8)];
const WEDGE: [(f64, f64); 3] = [(-1.0, -0.8), (0.0, 1.0), (1.0, -0.8)];
const DIAMOND: [(f64, f64); 4] = [(0.0, -1.15), (1.15, 0.0), (0.0, 1.15), (-1.15, 0.0)];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dozen_subjects_differ_in_colour_and_in_shape() {
        let names: Vec<String> = (0..11).map(|at| format!("peer {at}")).collect();
        let mut subjects: Vec<&str> = names.iter().map(String::as_str).collect();
        subjects.push("tidewheel");
        let looks = looks(&subjects);
        for (at, (name, look)) in looks.iter().enumerate() {
            assert_eq!(look.ours, *name == "tidewheel");
            for (other, twin) in &looks[at + 1..] {
                assert_ne!(look.stroke.colour, twin.stroke.colour, "{name} {other}");
                assert_ne!(look.shape, twin.shape, "{name} {other}");
            }
        }
        assert!(is_ours("Tidewheel (64 MB)") && is_ours("HierarchicalWheel") && !is_ours("heap-2"));
    }
}
