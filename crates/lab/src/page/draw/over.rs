//! Lines over a parameter, over a number in the names of figures, and along curves.

use anyhow::Result;
use serde_json::Value;

use super::super::axis::{Axis, Scale, Unit};
use super::super::data::{Cell, distinct, spread};
use super::super::lines::{self, Line, Point, Style};
use super::super::pictures::{Kind, Only, Picture};
use super::super::words::{of_lines, of_runs};
use super::{Drawing, Made, from_zero, present, spreads, words};
use crate::report::Report;
use crate::stats::Spread;

impl Drawing<'_> {
    pub(super) fn sweep(&self, picture: &Picture) -> Result<Made> {
        let Kind::Sweep {
            only,
            param,
            key,
            axes,
            log,
        } = picture.kind
        else {
            return Ok(None);
        };
        let is = |run: &Report, param: &str, value: &str| {
            run.params.get(param).and_then(Value::as_str) == Some(value)
        };
        let wanted = |run: &&Report| match only {
            Only::All => true,
            Only::With(param, value) => is(run, param, value),
            Only::Without(param, value) => !is(run, param, value),
        };
        let runs = || self.experiment.runs().filter(wanted);
        let x_of = |run: &Report| run.params.get(param).and_then(Value::as_f64);
        let points = |subject: &str| -> Vec<Point> {
            let own = || runs().filter(|run| run.subject == subject);
            let mut places = distinct(own().filter_map(x_of));
            places.sort_by(f64::total_cmp);
            let point = |x: f64| {
                let y = spread(own().filter(|run| x_of(run) == Some(x)), key)?;
                Some(Point { x, y })
            };
            places.into_iter().filter_map(point).collect()
        };
        let line = |&(subject, look): &(&str, _)| Line {
            name: subject.to_owned(),
            look,
            points: points(subject),
            second: false,
        };
        let own = |(subject, _): &&(&str, _)| runs().any(|run| run.subject == *subject);
        let lines = self.looks.iter().filter(own).map(line).collect();
        let subtitle = of_runs("", runs());
        let scales = [
            from_zero(log[0], Unit::None),
            from_zero(log[1], Unit::of_key(key)),
        ];
        measured(picture.title, subtitle, lines, axes, scales)
    }

    pub(super) fn keys(
        &self,
        title: &str,
        cell: &Cell<'_>,
        [prefix, suffix]: [&str; 2],
        axes: [&str; 2],
        log: [bool; 2],
    ) -> Result<Made> {
        let mut places: Vec<(f64, &str)> = Vec::new();
        for figure in cell.figures() {
            let rest = figure.key.strip_prefix(prefix);
            let number = rest.and_then(|rest| rest.strip_suffix(suffix)?.parse().ok());
            places.extend(number.map(|number| (number, figure.key.as_str())));
        }
        places.sort_by(|a, b| a.0.total_cmp(&b.0));
        let lines = self.lines_of(cell, |subject| {
            let point = |&(x, key): &(f64, &str)| {
                let y = cell.spread(subject, key)?;
                Some(Point { x, y })
            };
            places.iter().filter_map(point).collect()
        });
        let subtitle = of_runs(cell.name, cell.runs.iter().copied());
        let scales = log.map(|log| from_zero(log, Unit::None));
        measured(title, subtitle, lines, axes, scales)
    }

    pub(super) fn curve(
        &self,
        title: &str,
        cell: &Cell<'_>,
        key: &str,
        log: [bool; 2],
    ) -> Result<Made> {
        let mut curves = self.looks.iter().filter_map(|(s, _)| cell.curve(s, key));
        let Some([x_label, y_label]) = curves.next().map(|curve| &curve.axes) else {
            return Ok(None);
        };
        let lines = self.lines_of(cell, |subject| {
            let points = cell
                .curve(subject, key)
                .map_or(&[][..], |curve| &curve.points);
            let point = |&[x, y]: &[f64; 2]| Point { x, y: exactly(y) };
            points.iter().map(point).collect()
        });
        let (lines, missing) = present(lines);
        let points = || lines.iter().flat_map(|line| &line.points);
        let across = Scale {
            log: log[0],
            from_zero: false,
            unit: Unit::None,
        };
        let x = Axis::new(x_label, across, points().map(|point| point.x));
        let upwards = from_zero(log[1], Unit::None);
        let y = Axis::new(y_label, upwards, points().map(|point| point.y.median));
        let said = "of several runs the one in the middle";
        let most = self
            .looks
            .iter()
            .map(|(subject, _)| cell.of(subject).count())
            .max();
        let subtitle = match (cell.name, most) {
            (name, Some(0 | 1) | None) => name.to_owned(),
            ("", _) => said.to_owned(),
            (name, _) => format!("{name} · {said}"),
        };
        let words = words(title, subtitle, &x, &y);
        let svg = lines::draw(&words, [&x, &y], &lines, Style::Dense)?;
        let notes = of_lines(&lines, &x, &y);
        Ok(Some((svg, missing.into_iter().chain(notes).collect())))
    }

    /// A line for each subject of a cell.
    pub(super) fn lines_of(
        &self,
        cell: &Cell<'_>,
        points: impl Fn(&str) -> Vec<Point>,
    ) -> Vec<Line> {
        let line = |(subject, look): (&str, _)| Line {
            name: subject.to_owned(),
            look,
            points: points(subject),
            second: false,
        };
        self.subjects_of(cell).map(line).collect()
    }
}

/// A picture of few points, unless there are none.
fn measured(
    title: &str,
    subtitle: String,
    lines: Vec<Line>,
    [across, upwards]: [&str; 2],
    scales: [Scale; 2],
) -> Result<Made> {
    let (lines, missing) = present(lines);
    if lines.is_empty() {
        return Ok(None);
    }
    let places = lines.iter().flat_map(|line| &line.points);
    let x = Axis::new(across, scales[0], places.map(|point| point.x));
    let values = spreads(&lines).flat_map(|y| [y.min, y.max]);
    let y = Axis::new(upwards, scales[1], values);
    let words = words(title, subtitle, &x, &y);
    let svg = lines::draw(&words, [&x, &y], &lines, Style::Measured)?;
    let notes = of_lines(&lines, &x, &y);
    Ok(Some((svg, missing.into_iter().chain(notes).collect())))
}

fn exactly(value: f64) -> Spread {
    Spread {
        median: value,
        min: value,
        max: value,
    }
}
