//! Latency over percentiles, beside a control.

use anyhow::Result;

use super::super::axis::{Axis, Unit};
use super::super::data::{Cell, distinct};
use super::super::lines::{self, Line, Point, Style};
use super::super::pictures::Percentile;
use super::super::words::{of_lines, of_runs};
use super::{Drawing, Made, from_zero, present, spreads, words};
use crate::stats::Spread;

impl Drawing<'_> {
    pub(super) fn percentiles(
        &self,
        title: &str,
        cell: &Cell<'_>,
        [points, control]: [&[Percentile]; 2],
        label: &str,
    ) -> Result<Made> {
        let measured = |key: &str| cell.runs.iter().any(|run| run.figures.value(key).is_some());
        let all = points.iter().chain(control);
        let names = distinct(all.filter(|(_, key)| measured(key)).map(|(name, _)| *name));
        let line = |subject: &str, all: &[Percentile]| -> Vec<Point> {
            let point = |(at, name): (usize, &&str)| {
                let (_, key) = all.iter().find(|(own, _)| own == name)?;
                let y = in_seconds(cell.spread(subject, key)?, key)?;
                Some(Point { x: at as f64, y })
            };
            names.iter().enumerate().filter_map(point).collect()
        };
        let (mut lines, missing) = present(self.lines_of(cell, |subject| line(subject, points)));
        if lines.is_empty() {
            return Ok(None);
        }
        let second = |first: &Line| Line {
            points: line(&first.name, control),
            look: first.look.second(),
            second: true,
            ..first.clone()
        };
        let mut controls: Vec<Line> = lines.iter().map(second).collect();
        controls.retain(|line| !line.points.is_empty());
        let mut subtitle = of_runs(cell.name, cell.runs.iter().copied());
        if !controls.is_empty() {
            subtitle.push_str(" · dotted: the control, while nothing expires");
        }
        lines.splice(0..0, controls);
        let names: Vec<String> = names.into_iter().map(str::to_owned).collect();
        let x = Axis::of_names("percentile", &names);
        let values = spreads(&lines).flat_map(|y| [y.min, y.max]);
        let y = Axis::new(label, from_zero(true, Unit::Time(1.0)), values);
        let words = words(title, subtitle, &x, &y);
        let svg = lines::draw(&words, [&x, &y], &lines, Style::Measured)?;
        let notes = of_lines(&lines, &x, &y);
        Ok(Some((svg, missing.into_iter().chain(notes).collect())))
    }
}

/// Figures of one picture may be in different units of time.
fn in_seconds(spread: Spread, key: &str) -> Option<Spread> {
    let Unit::Time(second) = Unit::of_key(key) else {
        return None;
    };
    Some(Spread {
        median: spread.median * second,
        min: spread.min * second,
        max: spread.max * second,
    })
}
