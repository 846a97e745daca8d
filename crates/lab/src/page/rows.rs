//! Pictures of rows: bars with their numbers, or marks of several subjects side by side.

use anyhow::Result;
use plotters::prelude::RGBColor;

use super::axis::Axis;
use super::canvas::{
    self, Anchor, Canvas, FAINT_GRID, FAINT_INK, GRID, INK, Pen, RULE, Stroke, WIDTH, Words,
};
use super::lines::heading;
use super::look::Look;
use crate::stats::Spread;

const TOP: f64 = 88.0;
const BELOW: f64 = 52.0;
const BAR_ROW: f64 = 27.0;
const NAME_SIZE: f64 = 12.5;
const MOST_LETTERS: usize = 40;
const PLAIN_BAR: RGBColor = RGBColor(160, 172, 186);
const PLAIN_WHISKER: RGBColor = RGBColor(84, 92, 102);

/// One bar: its number is written beside it, or why there is none.
#[derive(Clone, Debug)]
pub(super) struct Bar {
    pub(super) name: String,
    pub(super) look: Look,
    pub(super) spread: Option<Spread>,
    pub(super) said: String,
}

/// One row of marks, by the places of the subjects.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) name: String,
    pub(super) marks: Vec<Option<Spread>>,
}

pub(super) fn bars(words: &Words, axis: &Axis, bars: &[Bar]) -> Result<String> {
    let height = TOP + BAR_ROW * bars.len() as f64 + BELOW;
    let said = bars.iter().map(|bar| canvas::text_width(&bar.said, 12.5));
    let plot = Plot {
        axis,
        left: left_of(bars.iter().map(|bar| bar.name.as_str())),
        right: WIDTH - said.fold(0.0, f64::max) - 30.0,
        bottom: height - BELOW,
    };
    canvas::draw(height, words, |canvas| {
        heading(canvas, words, (plot.left + plot.right) / 2.0, height)?;
        plot.axes(canvas)?;
        for (at, bar) in bars.iter().enumerate() {
            plot.bar(canvas, bar, TOP + BAR_ROW * (at as f64 + 0.5))?;
        }
        Ok(())
    })
}

pub(super) fn marks(
    words: &Words,
    axis: &Axis,
    rows: &[Row],
    subjects: &[(&str, Look)],
) -> Result<String> {
    let row = 16.0_f64.max(9.0 + 3.2 * subjects.len() as f64).max(24.0);
    let names = 18.0 * subjects.len() as f64;
    let height = TOP + (row * rows.len() as f64).max(names) + BELOW;
    let shown = |name: &str| canvas::shorten(name, MOST_LETTERS);
    let widths = subjects
        .iter()
        .map(|(name, _)| canvas::text_width(&shown(name), NAME_SIZE));
    let plot = Plot {
        axis,
        left: left_of(rows.iter().map(|row| row.name.as_str())),
        right: WIDTH - widths.fold(40.0, f64::max) - 52.0,
        bottom: height - BELOW,
    };
    canvas::draw(height, words, |canvas| {
        heading(canvas, words, (plot.left + plot.right) / 2.0, height)?;
        plot.axes(canvas)?;
        let pitch = (plot.bottom - TOP) / rows.len().max(1) as f64;
        for (at, row) in rows.iter().enumerate() {
            let top = TOP + pitch * at as f64;
            plot.row(canvas, row, (top, pitch), subjects)?;
        }
        for (at, (name, look)) in subjects.iter().enumerate() {
            let (x, y) = (plot.right + 26.0, TOP + 9.0 + 18.0 * at as f64);
            look.mark(canvas, (x, y))?;
            let mut pen = Pen::new(NAME_SIZE, INK, Anchor::Start);
            pen.bold = look.ours;
            canvas.words(&shown(name), (x + 13.0, y), pen)?;
        }
        Ok(())
    })
}

fn left_of<'a>(names: impl Iterator<Item = &'a str>) -> f64 {
    let width = |name: &str| canvas::text_width(&canvas::shorten(name, MOST_LETTERS), NAME_SIZE);
    names.map(width).fold(40.0, f64::max) + 30.0
}

struct Plot<'a> {
    axis: &'a Axis,
    left: f64,
    right: f64,
    bottom: f64,
}

impl Plot<'_> {
    fn across(&self, value: f64) -> f64 {
        self.left + (self.right - self.left) * self.axis.place(value)
    }

    fn axes(&self, canvas: &Canvas<'_>) -> Result<()> {
        let mut clear = f64::NEG_INFINITY;
        for tick in &self.axis.ticks {
            let at = self.across(tick.value);
            let colour = if tick.text.is_empty() {
                FAINT_GRID
            } else {
                GRID
            };
            canvas.line(&[(at, TOP), (at, self.bottom)], Stroke::solid(colour, 1.0))?;
            // Where names and numbers leave little room, every other tick must be enough.
            let half = canvas::text_width(&tick.text, 12.0) / 2.0 + 4.0;
            if !tick.text.is_empty() && at - half > clear {
                let pen = Pen::new(12.0, INK, Anchor::Middle);
                canvas.words(&tick.text, (at, self.bottom + 15.0), pen)?;
                clear = at + half;
            }
        }
        let corner = [(self.left, TOP), (self.left, self.bottom)];
        canvas.line(&corner, Stroke::solid(RULE, 1.0))
    }

    fn name(&self, canvas: &Canvas<'_>, name: &str, at: f64, bold: bool) -> Result<()> {
        let mut pen = Pen::new(NAME_SIZE, INK, Anchor::End);
        pen.bold = bold;
        let name = canvas::shorten(name, MOST_LETTERS);
        canvas.words(&name, (self.left - 9.0, at), pen)
    }

    fn bar(&self, canvas: &Canvas<'_>, bar: &Bar, at: f64) -> Result<()> {
        self.name(canvas, &bar.name, at, bar.look.ours)?;
        let Some(spread) = bar.spread else {
            let pen = Pen::new(12.5, FAINT_INK, Anchor::Start);
            return canvas.words(&bar.said, (self.left + 8.0, at), pen);
        };
        let end = self.across(spread.median);
        let mut reach = end;
        if self.axis.log {
            // The length of a bar would say nothing on a logarithmic axis.
            let thread = Stroke::solid(GRID, 1.5);
            canvas.line(&[(self.left, at), (end, at)], thread)?;
            bar.look.mark(canvas, (end, at))?;
            reach += 7.0;
        } else {
            let (zero, half) = (self.across(0.0), BAR_ROW * 0.31);
            let corners = [
                (zero, at - half),
                (end, at - half),
                (end, at + half),
                (zero, at + half),
            ];
            let colour = match bar.look.ours {
                true => bar.look.stroke.colour,
                false => PLAIN_BAR,
            };
            canvas.shape(&corners, colour)?;
            reach = reach.max(zero);
        }
        let most = self.across(spread.max);
        self.whisker(canvas, spread, at, PLAIN_WHISKER)?;
        let pen = Pen::new(12.5, INK, Anchor::Start);
        canvas.words(&bar.said, (reach.max(most) + 8.0, at), pen)
    }

    fn row(
        &self,
        canvas: &Canvas<'_>,
        row: &Row,
        (top, pitch): (f64, f64),
        subjects: &[(&str, Look)],
    ) -> Result<()> {
        let middle = top + pitch / 2.0;
        self.name(canvas, &row.name, middle, false)?;
        let edge = [(self.left, top + pitch), (self.right, top + pitch)];
        canvas.line(&edge, Stroke::solid(GRID, 1.0))?;
        // Marks of equal values would hide each other on one height.
        let count = subjects.len().max(1) as f64;
        let between = (pitch - 9.0) / count;
        for ours in [false, true] {
            for (at, ((_, look), mark)) in subjects.iter().zip(&row.marks).enumerate() {
                let (true, Some(spread)) = (look.ours == ours, mark) else {
                    continue;
                };
                let height = middle + (at as f64 - (count - 1.0) / 2.0) * between;
                self.whisker(canvas, *spread, height, look.stroke.colour)?;
                let place = (self.across(spread.median), height);
                look.mark(canvas, place)?;
            }
        }
        Ok(())
    }

    fn whisker(
        &self,
        canvas: &Canvas<'_>,
        spread: Spread,
        at: f64,
        colour: RGBColor,
    ) -> Result<()> {
        let (least, most) = (self.across(spread.min), self.across(spread.max));
        if most - least <= 1.0 {
            return Ok(());
        }
        let pen = Stroke::solid(colour, 1.2);
        canvas.line(&[(least, at), (most, at)], pen)?;
        for end in [least, most] {
            canvas.line(&[(end, at - 3.5), (end, at + 3.5)], pen)?;
        }
        Ok(())
    }
}
