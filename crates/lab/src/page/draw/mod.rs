//! The pictures of one experiment, made of its figures.

use anyhow::Result;

use super::axis::{Axis, Scale, Unit};
use super::canvas::Words;
use super::data::{Cell, Experiment, distinct};
use super::lines::Line;
use super::look::{Look, looks};
use super::pictures::{self, Kind, Picture};
use super::words;
use crate::stats::Spread;

mod beside;
mod over;
mod percentiles;

/// How many figures are drawn of an experiment that no picture is known for.
const MOST_UNKNOWN: usize = 4;
/// With more cells than this, a figure of each subject is one picture with a row for each cell.
const MOST_BARS: usize = 2;

/// A finished picture.
#[derive(Debug)]
pub(super) struct Drawn {
    /// Name of its file without the ending.
    pub(super) name: String,
    pub(super) title: String,
    /// The cell that it shows, if it shows one only.
    pub(super) cell: String,
    pub(super) svg: String,
    pub(super) caption: String,
    /// What is not in the picture, or not where it belongs.
    pub(super) notes: Vec<String>,
}

/// A picture before it has a name: the SVG and its notes.
type Made = Option<(String, Vec<String>)>;

/// All pictures of an experiment that its figures suffice for.
pub(super) fn pictures(experiment: &Experiment<'_>) -> Result<Vec<Drawn>> {
    let drawing = Drawing {
        experiment,
        looks: looks(&experiment.subjects),
    };
    let mut drawn = Vec::new();
    for picture in pictures::all().filter(|picture| picture.workload == experiment.name) {
        drawn.extend(drawing.draw(picture)?);
    }
    if drawn.is_empty() {
        drawn = drawing.unknown_figures()?;
    }
    drawn.extend(drawing.unknown_curves()?);
    Ok(drawn)
}

struct Drawing<'a> {
    experiment: &'a Experiment<'a>,
    looks: Vec<(&'a str, Look)>,
}

impl Drawing<'_> {
    fn draw(&self, picture: &Picture) -> Result<Vec<Drawn>> {
        let mut all = Vec::new();
        let name = |cell: &str, made: Made| {
            made.map(|(svg, notes)| Drawn {
                name: words::file_name(picture.name, cell),
                title: picture.title.to_owned(),
                cell: cell.to_owned(),
                svg,
                caption: picture.caption.to_owned(),
                notes,
            })
        };
        let cells = &self.experiment.cells;
        let by_cell = |key: &str, label: &str, log: bool| {
            let axis = (label, from_zero(log, Unit::of_key(key)));
            self.cells(picture.title, key, axis)
        };
        match picture.kind {
            Kind::Sweep { .. } => all.extend(name("", self.sweep(picture)?)),
            Kind::Cells { key, label, log } => all.extend(name("", by_cell(key, label, log)?)),
            Kind::Bars { key, label, log } if cells.len() > MOST_BARS => {
                all.extend(name("", by_cell(key, label, log)?));
            }
            _ => {
                for cell in cells {
                    all.extend(name(cell.name, self.of_cell(picture, cell)?));
                }
            }
        }
        Ok(all)
    }

    /// A picture of which there is one for each cell.
    fn of_cell(&self, picture: &Picture, cell: &Cell<'_>) -> Result<Made> {
        let title = picture.title;
        match picture.kind {
            Kind::Sweep { .. } | Kind::Cells { .. } => Ok(None),
            Kind::Curve { key, log } => self.curve(title, cell, key, log),
            Kind::Percentiles {
                points,
                control,
                label,
            } => self.percentiles(title, cell, [points, control], label),
            Kind::Bars { key, label, log } => {
                let axis = (label, from_zero(log, Unit::of_key(key)));
                self.bars(title, cell, key, axis)
            }
            Kind::Figures { prefix, label, log } => {
                let unit = Unit::of_key(prefix.trim_end_matches('_'));
                self.figures(title, cell, prefix, (label, from_zero(log, unit)))
            }
            Kind::Keys {
                prefix,
                suffix,
                axes,
                log,
            } => self.keys(title, cell, [prefix, suffix], axes, log),
        }
    }

    /// Bars of the first few figures of the first cell.
    fn unknown_figures(&self) -> Result<Vec<Drawn>> {
        let Some(cell) = self.experiment.cells.first() else {
            return Ok(Vec::new());
        };
        let has_value = |key: &str| cell.runs.iter().any(|run| run.figures.value(key).is_some());
        let figures = cell.figures().into_iter();
        let wanted = figures.filter(|figure| figure.key != words::NOISE && has_value(&figure.key));
        let mut all = Vec::new();
        for figure in wanted.take(MOST_UNKNOWN) {
            // A label of a figure has its unit in it already.
            let axis = (figure.label.as_str(), from_zero(false, Unit::None));
            let made = self.bars(&figure.label, cell, &figure.key, axis)?;
            all.extend(self.unknown(&figure.key, &figure.label, cell, made));
        }
        Ok(all)
    }

    /// Curves that no picture is known for.
    fn unknown_curves(&self) -> Result<Vec<Drawn>> {
        let known = |key: &str| {
            pictures::all()
                .filter(|picture| picture.workload == self.experiment.name)
                .any(|picture| matches!(picture.kind, Kind::Curve { key: own, .. } if own == key))
        };
        let curves = self.experiment.runs().flat_map(|run| &run.curves);
        let names = distinct(curves.map(|curve| (curve.key.as_str(), curve.label.as_str())));
        let mut all = Vec::new();
        for (key, label) in names.into_iter().filter(|(key, _)| !known(key)) {
            for cell in &self.experiment.cells {
                let made = self.curve(label, cell, key, [false, false])?;
                all.extend(self.unknown(key, label, cell, made));
            }
        }
        Ok(all)
    }

    fn unknown(&self, key: &str, title: &str, cell: &Cell<'_>, made: Made) -> Option<Drawn> {
        let (svg, notes) = made?;
        let name = format!("{} {key}", self.experiment.name);
        Some(Drawn {
            name: words::file_name(&name, cell.name),
            title: title.to_owned(),
            cell: cell.name.to_owned(),
            svg,
            caption: String::new(),
            notes,
        })
    }

    /// The subjects that a cell has, with their looks.
    fn subjects_of(&self, cell: &Cell<'_>) -> impl Iterator<Item = (&str, Look)> {
        let subjects = cell.subjects();
        let looks = self.looks.iter().copied();
        looks.filter(move |(subject, _)| subjects.contains(subject))
    }
}

fn words(title: &str, subtitle: String, x: &Axis, y: &Axis) -> Words {
    Words {
        title: title.to_owned(),
        subtitle,
        x: x.label.clone(),
        y: y.label.clone(),
    }
}

fn from_zero(log: bool, unit: Unit) -> Scale {
    Scale {
        log,
        from_zero: true,
        unit,
    }
}

fn spreads(lines: &[Line]) -> impl Iterator<Item = Spread> + '_ {
    let points = |line: &'_ Line| line.points.iter().map(|point| point.y).collect::<Vec<_>>();
    lines.iter().flat_map(points)
}

/// The lines that have points, and a note on whose have none.
fn present(lines: Vec<Line>) -> (Vec<Line>, Option<String>) {
    let (present, absent): (Vec<Line>, Vec<Line>) =
        lines.into_iter().partition(|line| !line.points.is_empty());
    let missing = words::missing(absent.iter().map(|line| line.name.as_str()));
    (present, missing)
}
