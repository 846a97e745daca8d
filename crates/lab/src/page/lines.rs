//! Pictures of lines: a line per subject over two axes, its name beside its end.

use anyhow::Result;

use super::axis::{Axis, Tick};
use super::canvas::{
    self, Anchor, Canvas, Dash, FAINT_GRID, FAINT_INK, GRID, INK, Pen, RULE, Stroke, WIDTH, Words,
};
use super::look::Look;
use crate::stats::Spread;

const HEIGHT: f64 = 470.0;
const TOP: f64 = 92.0;
const BOTTOM: f64 = 414.0;
const LEFT: f64 = 78.0;
/// Room between the plot and the names, in which leaders run.
const GAP: f64 = 16.0;
const SAMPLE: f64 = 26.0;
const NAME_SIZE: f64 = 12.5;
const MOST_LETTERS: usize = 34;

/// One line of a picture.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) name: String,
    pub(super) look: Look,
    pub(super) points: Vec<Point>,
    /// It belongs to the line before it, whose name serves both.
    pub(super) second: bool,
}

/// One point of a line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Point {
    pub(super) x: f64,
    pub(super) y: Spread,
}

/// What differs between pictures of lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    /// Few points, each with a mark and its range; ends are joined to their names.
    Measured,
    /// Many points; marks only to tell lines apart.
    Dense,
}

pub(super) fn draw(
    words: &Words,
    [x, y]: [&Axis; 2],
    lines: &[Line],
    style: Style,
) -> Result<String> {
    canvas::draw(HEIGHT, words, |canvas| {
        let plot = Plot::new(x, y, lines, style);
        heading(canvas, words, (LEFT + plot.right) / 2.0, HEIGHT)?;
        plot.axes(canvas)?;
        // The thick lines below, so that thin ones on the same points are seen; their marks above.
        for ours in [true, false] {
            for line in lines.iter().filter(|line| line.look.ours == ours) {
                plot.path(canvas, line)?;
            }
        }
        for ours in [false, true] {
            for (at, line) in lines.iter().enumerate() {
                if line.look.ours == ours && !line.second {
                    plot.marks(canvas, line, at)?;
                }
            }
        }
        plot.names(canvas, lines)
    })
}

/// Title and subtitle of any picture, and the labels of its axes: the upward one above its axis, the other
/// around `middle`.
pub(super) fn heading(canvas: &Canvas<'_>, words: &Words, middle: f64, height: f64) -> Result<()> {
    let mut title = Pen::new(16.0, INK, Anchor::Start);
    title.bold = true;
    let quiet = Pen::new(12.5, FAINT_INK, Anchor::Start);
    canvas.words(&words.title, (2.0, 22.0), title)?;
    canvas.words(&canvas::shorten(&words.subtitle, 134), (2.0, 44.0), quiet)?;
    canvas.words(&words.y, (2.0, 73.0), quiet)?;
    let centred = Pen {
        anchor: Anchor::Middle,
        ..quiet
    };
    canvas.words(&words.x, (middle, height - 16.0), centred)
}

struct Plot<'a> {
    x: &'a Axis,
    y: &'a Axis,
    right: f64,
    style: Style,
}

impl<'a> Plot<'a> {
    fn new(x: &'a Axis, y: &'a Axis, lines: &[Line], style: Style) -> Self {
        let named = lines.iter().filter(|line| !line.second);
        let widths = named.map(|line| canvas::text_width(&shown_name(&line.name), NAME_SIZE));
        let widest = widths.fold(40.0, f64::max);
        Self {
            x,
            y,
            right: WIDTH - widest - SAMPLE - GAP - 20.0,
            style,
        }
    }

    fn across(&self, value: f64) -> f64 {
        LEFT + (self.right - LEFT) * self.x.place(value)
    }

    fn up(&self, value: f64) -> f64 {
        BOTTOM - (BOTTOM - TOP) * self.y.place(value)
    }

    fn axes(&self, canvas: &Canvas<'_>) -> Result<()> {
        let grid = |tick: &Tick| match tick.text.is_empty() {
            true => Stroke::solid(FAINT_GRID, 0.75),
            false => Stroke::solid(GRID, 1.0),
        };
        for tick in &self.y.ticks {
            let at = self.up(tick.value);
            canvas.line(&[(LEFT, at), (self.right, at)], grid(tick))?;
            let pen = Pen::new(12.0, INK, Anchor::End);
            canvas.words(&tick.text, (LEFT - 9.0, at), pen)?;
        }
        for tick in &self.x.ticks {
            let at = self.across(tick.value);
            canvas.line(&[(at, TOP), (at, BOTTOM)], grid(tick))?;
            if !tick.text.is_empty() {
                canvas.line(
                    &[(at, BOTTOM), (at, BOTTOM + 4.0)],
                    Stroke::solid(RULE, 1.0),
                )?;
                let pen = Pen::new(12.0, INK, Anchor::Middle);
                canvas.words(&tick.text, (at, BOTTOM + 17.0), pen)?;
            }
        }
        let corner = [(LEFT, TOP), (LEFT, BOTTOM), (self.right, BOTTOM)];
        canvas.line(&corner, Stroke::solid(RULE, 1.0))
    }

    fn places(&self, line: &Line) -> Vec<(f64, f64)> {
        let place = |point: &Point| (self.across(point.x), self.up(point.y.median));
        let path: Vec<(f64, f64)> = line.points.iter().map(place).collect();
        match self.style {
            Style::Measured => path,
            Style::Dense => thinned(&path),
        }
    }

    fn path(&self, canvas: &Canvas<'_>, line: &Line) -> Result<()> {
        let path = self.places(line);
        match path.len() {
            0 | 1 => Ok(()),
            _ => canvas.line(&path, line.look.stroke),
        }
    }

    /// `at` is its place among the lines, by which marks of dense lines are staggered.
    fn marks(&self, canvas: &Canvas<'_>, line: &Line, at: usize) -> Result<()> {
        let look = &line.look;
        let path = self.places(line);
        if self.style == Style::Dense {
            let stagger = (self.right - LEFT) / 5.0 * (at % 7) as f64 / 7.0;
            for mark in spaced(&path, LEFT + stagger, (self.right - LEFT) / 5.0) {
                look.mark(canvas, mark)?;
            }
            return Ok(());
        }
        for (point, (across, up)) in line.points.iter().zip(path) {
            let (least, most) = (self.up(point.y.min), self.up(point.y.max));
            if least - most > 1.0 {
                let whisker = Stroke::solid(look.stroke.colour, 1.2);
                canvas.line(&[(across, least), (across, most)], whisker)?;
                for end in [least, most] {
                    canvas.line(&[(across - 3.5, end), (across + 3.5, end)], whisker)?;
                }
            }
            look.mark(canvas, (across, up))?;
        }
        Ok(())
    }

    /// The names, as near to the ends of their lines as they can be without touching.
    fn names(&self, canvas: &Canvas<'_>, lines: &[Line]) -> Result<()> {
        let mut entries: Vec<(&Line, (f64, f64))> = lines
            .iter()
            .filter(|line| !line.second)
            .filter_map(|line| {
                let end = line.points.last()?;
                Some((line, (self.across(end.x), self.up(end.y.median))))
            })
            .collect();
        entries.sort_by(|a, b| a.1.1.total_cmp(&b.1.1));
        let wanted: Vec<f64> = entries.iter().map(|(_, end)| end.1).collect();
        let left = self.right + GAP;
        for ((line, end), at) in entries.into_iter().zip(apart(&wanted)) {
            let colour = line.look.stroke.colour;
            if self.style == Style::Measured {
                let leader = Stroke {
                    colour,
                    width: 0.7,
                    dash: Dash::Dotted,
                };
                canvas.line(&[(end.0 + 5.0, end.1), (left - 1.0, at)], leader)?;
            }
            canvas.line(&[(left, at), (left + SAMPLE, at)], line.look.stroke)?;
            line.look.mark(canvas, (left + SAMPLE / 2.0, at))?;
            let mut pen = Pen::new(NAME_SIZE, INK, Anchor::Start);
            pen.bold = line.look.ours;
            canvas.words(&shown_name(&line.name), (left + SAMPLE + 6.0, at), pen)?;
        }
        Ok(())
    }
}

fn shown_name(name: &str) -> String {
    canvas::shorten(name, MOST_LETTERS)
}

/// Heights near the wanted ones (ascending) that keep a line of text apart, within the picture.
fn apart(wanted: &[f64]) -> Vec<f64> {
    let room = BOTTOM - TOP + 20.0;
    let step = (room / wanted.len().max(1) as f64).min(18.0);
    let mut placed: Vec<f64> = Vec::new();
    for &at in wanted {
        let least = placed.last().map_or(TOP - 10.0, |last| last + step);
        placed.push(at.max(least));
    }
    let mut most = BOTTOM + 10.0;
    for at in placed.iter_mut().rev() {
        *at = at.min(most);
        most = *at - step;
    }
    placed
}

/// At most a few points for each pixel across: the first, the extremes and the last.
fn thinned(path: &[(f64, f64)]) -> Vec<(f64, f64)> {
    path.chunk_by(|a, b| a.0.floor() == b.0.floor())
        .flat_map(|column| {
            if column.len() <= 4 {
                return column.to_vec();
            }
            let by_height = |a: &&(f64, f64), b: &&(f64, f64)| a.1.total_cmp(&b.1);
            let extremes = [
                column.iter().min_by(by_height),
                column.iter().max_by(by_height),
            ];
            let ends = [column.first(), column.last()];
            [ends[0], extremes[0], extremes[1], ends[1]]
                .into_iter()
                .flatten()
                .copied()
                .collect()
        })
        .collect()
}

/// Points on the path at every `step` across, from `start` on; one at least.
fn spaced(path: &[(f64, f64)], start: f64, step: f64) -> Vec<(f64, f64)> {
    let mut marks = Vec::new();
    let mut next = start;
    for pair in path.windows(2) {
        let ((from, a), (to, b)) = (pair[0], pair[1]);
        while next <= to {
            if next >= from {
                let part = if to > from {
                    (next - from) / (to - from)
                } else {
                    0.0
                };
                marks.push((next, a + (b - a) * part));
            }
            next += step;
        }
    }
    if marks.is_empty() {
        marks.extend(path.last());
    }
    marks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_apart_and_stay_in_the_picture() {
        for wanted in [
            vec![BOTTOM; 12],
            vec![TOP; 30],
            vec![100.0, 101.0, 300.0],
            vec![],
        ] {
            let placed = apart(&wanted);
            assert_eq!(placed.len(), wanted.len());
            assert!(
                placed.windows(2).all(|pair| pair[1] - pair[0] > 11.0),
                "{placed:?}"
            );
            assert!(
                placed
                    .iter()
                    .all(|at| (TOP - 11.0..=BOTTOM + 11.0).contains(at))
            );
        }
        assert_eq!(apart(&[150.0, 300.0]), [150.0, 300.0]);
    }

    #[test]
    fn a_long_curve_keeps_its_extremes() {
        let path: Vec<(f64, f64)> = (0..10_000)
            .map(|at| (f64::from(at) / 100.0, if at == 5_050 { 99.0 } else { 1.0 }))
            .collect();
        let thin = thinned(&path);
        assert!(thin.len() <= 404 && thin.iter().any(|point| point.1 == 99.0));
        assert_eq!((thin.first(), thin.last()), (path.first(), path.last()));
    }

    #[test]
    fn every_line_gets_a_mark() {
        assert_eq!(spaced(&[(5.0, 1.0)], 0.0, 10.0), [(5.0, 1.0)]);
        let marks = spaced(&[(0.0, 0.0), (10.0, 10.0)], 2.0, 4.0);
        assert_eq!(marks, [(2.0, 2.0), (6.0, 6.0), (10.0, 10.0)]);
    }
}
