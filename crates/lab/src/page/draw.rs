//! The pictures of one experiment, made of its figures.

use anyhow::Result;

use super::axis::{Axis, Scale, Unit};
use super::canvas::Words;
use super::catalogue;
use super::data::{Cell, Experiment, distinct, spread};
use super::lines::{self, Line, Point, Style};
use super::look::{Look, looks};
use super::pictures::{Kind, PICTURES, Percentile, Picture};
use super::rows::{self, Bar, Row};
use super::words;
use crate::report::Report;
use crate::stats::Spread;

/// How many figures are drawn of an experiment that no picture is known for.
const MOST_UNKNOWN: usize = 4;

/// A finished picture.
#[derive(Debug)]
pub(super) struct Drawn {
    /// Name of its file without the ending.
    pub(super) name: String,
    pub(super) svg: String,
    pub(super) caption: String,
    /// What is not in the picture, or not where it belongs.
    pub(super) notes: Vec<String>,
}

/// All pictures of an experiment that its figures suffice for.
pub(super) fn pictures(experiment: &Experiment<'_>) -> Result<Vec<Drawn>> {
    let drawing = Drawing {
        experiment,
        looks: looks(&experiment.subjects),
    };
    let mut drawn = Vec::new();
    for picture in PICTURES {
        if picture.workload == experiment.name {
            drawn.extend(drawing.draw(picture)?);
        }
    }
    if drawn.is_empty() {
        drawn = drawing.unknown()?;
    }
    drawn.extend(drawing.other_curves()?);
    Ok(drawn)
}

struct Drawing<'a> {
    experiment: &'a Experiment<'a>,
    looks: Vec<(&'a str, Look)>,
}

impl Drawing<'_> {
    fn draw(&self, picture: &Picture) -> Result<Vec<Drawn>> {
        let kind = picture.kind;
        match kind {
            Kind::Sweep { .. } => return Ok(self.sweep(picture)?.into_iter().collect()),
            Kind::Cells { key, label, log } => {
                let row = |cell: &Cell<'_>| (cell.name.to_owned(), self.marks(cell, key));
                let rows: Vec<_> = self.experiment.cells.iter().map(row).collect();
                let runs = self.experiment.runs();
                let subtitle = words::of_runs("", runs);
                let scale = scale(log, Unit::of_key(key));
                let drawn = self.rows(picture, &rows, subtitle, (label, scale), "cell")?;
                return Ok(drawn.into_iter().collect());
            }
            _ => {}
        }
        let mut all = Vec::new();
        for cell in &self.experiment.cells {
            let drawn = match kind {
                Kind::Curve { key, log } => {
                    let made = self.curve(picture.title, cell, key, log)?;
                    made.map(|(svg, notes)| drawn(picture, cell.name, svg, notes))
                }
                Kind::Percentiles {
                    points,
                    control,
                    y_label,
                } => self.percentiles(picture, cell, [points, control], y_label)?,
                Kind::Bars { key, label, log } => {
                    let scale = scale(log, Unit::of_key(key));
                    self.bars(picture, cell, key, (label, scale))?
                }
                Kind::Figures { prefix, label, log } => {
                    self.figures(picture, cell, prefix, label, log)?
                }
                Kind::Keys { .. } => self.keys(picture, cell)?,
                Kind::Sweep { .. } | Kind::Cells { .. } => None,
            };
            all.extend(drawn);
        }
        Ok(all)
    }

    /// Bars of the first few figures of the first cell.
    fn unknown(&self) -> Result<Vec<Drawn>> {
        let Some(cell) = self.experiment.cells.first() else {
            return Ok(Vec::new());
        };
        let has_value = |key: &str| cell.runs.iter().any(|run| run.figures.value(key).is_some());
        let figures = cell.figures().into_iter();
        let wanted = figures.filter(|figure| figure.key != words::NOISE && has_value(&figure.key));
        let mut all = Vec::new();
        for figure in wanted.take(MOST_UNKNOWN) {
            let axis = (figure.label.as_str(), scale(false, Unit::None));
            let made = self.bar_picture(&figure.label, cell, &figure.key, axis)?;
            all.extend(made.map(|(svg, notes)| Drawn {
                name: words::file_name(
                    &format!("{} {}", self.experiment.name, figure.key),
                    cell.name,
                ),
                svg,
                caption: String::new(),
                notes,
            }));
        }
        Ok(all)
    }

    /// Curves that no picture is known for.
    fn other_curves(&self) -> Result<Vec<Drawn>> {
        let known = |key: &str| {
            let own = PICTURES
                .iter()
                .filter(|p| p.workload == self.experiment.name);
            own.into_iter()
                .any(|p| matches!(p.kind, Kind::Curve { key: own, .. } if own == key))
        };
        let curves = self.experiment.runs().flat_map(|run| &run.curves);
        let names = distinct(curves.map(|curve| (curve.key.as_str(), curve.label.as_str())));
        let mut all = Vec::new();
        for (key, label) in names.into_iter().filter(|(key, _)| !known(key)) {
            for cell in &self.experiment.cells {
                let made = self.curve(label, cell, key, [false, false])?;
                all.extend(made.map(|(svg, notes)| Drawn {
                    name: words::file_name(&format!("{} {key}", self.experiment.name), cell.name),
                    svg,
                    caption: String::new(),
                    notes,
                }));
            }
        }
        Ok(all)
    }

    fn sweep(&self, picture: &Picture) -> Result<Option<Drawn>> {
        let Kind::Sweep {
            param,
            x_label,
            key,
            y_label,
            log,
        } = picture.kind
        else {
            return Ok(None);
        };
        let x_of = |run: &&Report| run.params.get(param).and_then(serde_json::Value::as_f64);
        let line = |(subject, look): &(&str, Look)| {
            let own = || self.experiment.runs().filter(|run| run.subject == *subject);
            let mut places = distinct(own().filter_map(|run| x_of(&run)));
            places.sort_by(f64::total_cmp);
            let point = |x: f64| {
                let y = spread(own().filter(|run| x_of(run) == Some(x)), key)?;
                Some(Point { x, y })
            };
            Line {
                name: (*subject).to_owned(),
                look: *look,
                points: places.into_iter().filter_map(point).collect(),
                second: false,
            }
        };
        let lines: Vec<Line> = self.looks.iter().map(line).collect();
        let x = scale(log[0], Unit::None);
        let y = scale(log[1], Unit::of_key(key));
        let subtitle = words::of_runs("", self.experiment.runs());
        let made = self.lines(picture.title, subtitle, lines, [(x_label, x), (y_label, y)])?;
        Ok(made.map(|(svg, notes)| drawn(picture, "", svg, notes)))
    }

    fn keys(&self, picture: &Picture, cell: &Cell<'_>) -> Result<Option<Drawn>> {
        let Kind::Keys {
            prefix,
            suffix,
            x_label,
            y_label,
            log,
        } = picture.kind
        else {
            return Ok(None);
        };
        let mut places: Vec<(f64, &str)> = Vec::new();
        for figure in cell.figures() {
            let middle = figure.key.strip_prefix(prefix);
            let number = middle.and_then(|rest| rest.strip_suffix(suffix)?.parse().ok());
            places.extend(number.map(|number| (number, figure.key.as_str())));
        }
        places.sort_by(|a, b| a.0.total_cmp(&b.0));
        let lines = self.of_subjects(cell, |subject| {
            let point = |&(x, key): &(f64, &str)| {
                let y = cell.spread(subject, key)?;
                Some(Point { x, y })
            };
            places.iter().filter_map(point).collect()
        });
        let axes = [
            (x_label, scale(log[0], Unit::None)),
            (y_label, scale(log[1], Unit::None)),
        ];
        let subtitle = words::of_runs(cell.name, cell.runs.iter().copied());
        let made = self.lines(picture.title, subtitle, lines, axes)?;
        Ok(made.map(|(svg, notes)| drawn(picture, cell.name, svg, notes)))
    }

    fn curve(
        &self,
        title: &str,
        cell: &Cell<'_>,
        key: &str,
        log: [bool; 2],
    ) -> Result<Option<(String, Vec<String>)>> {
        let curves = |subject: &str| cell.curve(subject, key);
        let Some(axes) = self.looks.iter().find_map(|(s, _)| Some(&curves(s)?.axes)) else {
            return Ok(None);
        };
        let lines = self.of_subjects(cell, |subject| {
            let points = curves(subject).map_or(&[][..], |curve| &curve.points);
            let point = |&[x, y]: &[f64; 2]| Point { x, y: exactly(y) };
            points.iter().map(point).collect()
        });
        let [x, y] = [0, 1].map(|at| {
            Axis::new(&axes[at], scale(log[at], Unit::None), {
                let values = lines.iter().flat_map(|line| &line.points);
                values.map(move |point| if at == 0 { point.x } else { point.y.median })
            })
        });
        let subtitle = match cell.name {
            "" => "of several runs the one in the middle".to_owned(),
            name => format!("{name} · of several runs the one in the middle"),
        };
        let words = words(title, subtitle, &x, &y);
        let (lines, missing) = self.present(lines);
        let mut notes = missing;
        notes.extend(words::off_the_axis(&lines, &x, &y));
        let svg = lines::draw(&words, [&x, &y], &lines, Style::Dense)?;
        Ok(Some((svg, notes)))
    }

    fn percentiles(
        &self,
        picture: &Picture,
        cell: &Cell<'_>,
        [points, control]: [&[Percentile]; 2],
        y_label: &str,
    ) -> Result<Option<Drawn>> {
        let has_value =
            |(_, key): &&Percentile| cell.runs.iter().any(|r| r.figures.value(key).is_some());
        let names = |all: &[Percentile]| {
            all.iter()
                .filter(has_value)
                .map(|(name, _)| *name)
                .collect::<Vec<_>>()
        };
        let shown = distinct(names(points).into_iter().chain(names(control)));
        let seconds = |subject: &str, key: &str| {
            let Unit::Time(second) = Unit::of_key(key) else {
                return None;
            };
            let Spread { median, min, max } = cell.spread(subject, key)?;
            let [median, min, max] = [median, min, max].map(|value| value * second);
            Some(Spread { median, min, max })
        };
        let line_of = |subject: &str, all: &[Percentile]| -> Vec<Point> {
            let point = |(at, name): (usize, &&str)| {
                let (_, key) = all.iter().find(|(own, _)| own == name)?;
                let y = seconds(subject, key)?;
                Some(Point { x: at as f64, y })
            };
            shown.iter().enumerate().filter_map(point).collect()
        };
        let mut lines = self.of_subjects(cell, |subject| line_of(subject, points));
        let controls: Vec<Line> = lines
            .iter()
            .map(|line| Line {
                points: line_of(&line.name, control),
                look: line.look.second(),
                second: true,
                ..line.clone()
            })
            .filter(|line| !line.points.is_empty())
            .collect();
        let has_control = !controls.is_empty();
        lines.splice(0..0, controls);
        if lines.iter().all(|line| line.points.is_empty()) {
            return Ok(None);
        }
        let names: Vec<String> = shown.iter().map(|name| (*name).to_owned()).collect();
        let x = Axis::of_names("percentile of all", &names);
        let values = spreads(&lines).flat_map(|y| [y.min, y.max]);
        let y = Axis::new(y_label, scale(true, Unit::Time(1.0)), values);
        let mut subtitle = words::of_runs(cell.name, cell.runs.iter().copied());
        if has_control {
            subtitle.push_str(" · dotted: the control, while nothing expires");
        }
        let (lines, missing) = self.present(lines);
        let mut notes = missing;
        notes.extend(words::off_the_axis(&lines, &x, &y));
        let words = words(picture.title, subtitle, &x, &y);
        let svg = lines::draw(&words, [&x, &y], &lines, Style::Measured)?;
        Ok(Some(drawn(picture, cell.name, svg, notes)))
    }

    fn bars(
        &self,
        picture: &Picture,
        cell: &Cell<'_>,
        key: &str,
        axis: (&str, Scale),
    ) -> Result<Option<Drawn>> {
        let made = self.bar_picture(picture.title, cell, key, axis)?;
        Ok(made.map(|(svg, notes)| drawn(picture, cell.name, svg, notes)))
    }

    fn bar_picture(
        &self,
        title: &str,
        cell: &Cell<'_>,
        key: &str,
        (label, scale): (&str, Scale),
    ) -> Result<Option<(String, Vec<String>)>> {
        let subjects = cell.subjects();
        let bar = |(subject, look): &(&str, Look)| {
            let spread = cell.spread(subject, key);
            let said = match &spread {
                Some(spread) => words::said(spread, scale.unit),
                None => match cell.absent(subject, key) {
                    crate::report::Absent::Never => "never".to_owned(),
                    crate::report::Absent::Nothing => "no value".to_owned(),
                },
            };
            Bar {
                name: (*subject).to_owned(),
                look: *look,
                spread,
                said,
            }
        };
        let looks = self.looks.iter();
        let bars: Vec<Bar> = looks
            .filter(|(subject, _)| subjects.contains(subject))
            .map(bar)
            .collect();
        let values = || bars.iter().filter_map(|bar| bar.spread);
        if values().next().is_none() {
            return Ok(None);
        }
        let x = Axis::new(label, scale, values().flat_map(|y| [y.min, y.max]));
        let noun = catalogue::entry(self.experiment.name).noun;
        let words = Words {
            title: title.to_owned(),
            subtitle: words::of_runs(cell.name, cell.runs.iter().copied()),
            x: x.label.clone(),
            y: noun.to_owned(),
        };
        let off = values().filter(|spread| x.lacks(spread.median)).count();
        let notes = words::off(off).into_iter().collect();
        Ok(Some((rows::bars(&words, &x, &bars)?, notes)))
    }

    fn figures(
        &self,
        picture: &Picture,
        cell: &Cell<'_>,
        prefix: &str,
        label: &str,
        log: bool,
    ) -> Result<Option<Drawn>> {
        let own = |figure: &&crate::report::Figure| figure.key.starts_with(prefix);
        let row = |figure: &crate::report::Figure| {
            let name = figure
                .label
                .rsplit_once(", ")
                .map_or(figure.label.as_str(), |(_, last)| last);
            (name.to_owned(), self.marks(cell, &figure.key))
        };
        let rows: Vec<_> = cell.figures().into_iter().filter(own).map(row).collect();
        let subtitle = words::of_runs(cell.name, cell.runs.iter().copied());
        let axis = (
            label,
            scale(log, Unit::of_key(prefix.trim_end_matches('_'))),
        );
        let mut made = self.rows(picture, &rows, subtitle, axis, "load")?;
        if let Some(made) = &mut made {
            made.name = words::file_name(picture.name, cell.name);
        }
        Ok(made)
    }

    fn rows(
        &self,
        picture: &Picture,
        rows: &[(String, Vec<Option<Spread>>)],
        subtitle: String,
        (label, scale): (&str, Scale),
        noun: &str,
    ) -> Result<Option<Drawn>> {
        let rows: Vec<Row> = rows
            .iter()
            .filter(|(_, marks)| marks.iter().any(Option::is_some))
            .map(|(name, marks)| Row {
                name: name.clone(),
                marks: marks.clone(),
            })
            .collect();
        if rows.is_empty() {
            return Ok(None);
        }
        let all = || rows.iter().flat_map(|row| row.marks.iter().flatten());
        let x = Axis::new(label, scale, all().flat_map(|y| [y.min, y.max]));
        let words = Words {
            title: picture.title.to_owned(),
            subtitle,
            x: x.label.clone(),
            y: noun.to_owned(),
        };
        let off = all().filter(|spread| x.lacks(spread.median)).count();
        let mut notes: Vec<String> = words::off(off).into_iter().collect();
        let has_mark = |at: usize| rows.iter().any(|row| row.marks[at].is_some());
        let absent = self
            .looks
            .iter()
            .enumerate()
            .filter(|(at, _)| !has_mark(*at));
        notes.extend(words::missing(absent.map(|(_, (subject, _))| *subject)));
        let svg = rows::marks(&words, &x, &rows, &self.looks)?;
        Ok(Some(drawn(picture, "", svg, notes)))
    }

    /// One figure of every subject.
    fn marks(&self, cell: &Cell<'_>, key: &str) -> Vec<Option<Spread>> {
        let looks = self.looks.iter();
        looks
            .map(|(subject, _)| cell.spread(subject, key))
            .collect()
    }

    /// A line for each subject of a cell.
    fn of_subjects(&self, cell: &Cell<'_>, points: impl Fn(&str) -> Vec<Point>) -> Vec<Line> {
        let subjects = cell.subjects();
        self.looks
            .iter()
            .filter(|(subject, _)| subjects.contains(subject))
            .map(|(subject, look)| Line {
                name: (*subject).to_owned(),
                look: *look,
                points: points(subject),
                second: false,
            })
            .collect()
    }

    /// A picture of few points, unless there are none.
    fn lines(
        &self,
        title: &str,
        subtitle: String,
        lines: Vec<Line>,
        [x, y]: [(&str, Scale); 2],
    ) -> Result<Option<(String, Vec<String>)>> {
        let (lines, missing) = self.present(lines);
        if lines.is_empty() {
            return Ok(None);
        }
        let places = lines
            .iter()
            .flat_map(|line| &line.points)
            .map(|point| point.x);
        let x = Axis::new(x.0, x.1, places);
        let values = spreads(&lines).flat_map(|y| [y.min, y.max]);
        let y = Axis::new(y.0, y.1, values);
        let mut notes = missing;
        notes.extend(words::off_the_axis(&lines, &x, &y));
        let words = words(title, subtitle, &x, &y);
        let svg = lines::draw(&words, [&x, &y], &lines, Style::Measured)?;
        Ok(Some((svg, notes)))
    }

    /// The lines that have points, and whose have none.
    fn present(&self, lines: Vec<Line>) -> (Vec<Line>, Vec<String>) {
        let (present, absent): (Vec<Line>, Vec<Line>) =
            lines.into_iter().partition(|line| !line.points.is_empty());
        let missing = words::missing(absent.iter().map(|line| line.name.as_str()));
        (present, missing.into_iter().collect())
    }
}

fn drawn(picture: &Picture, cell: &str, svg: String, notes: Vec<String>) -> Drawn {
    Drawn {
        name: words::file_name(picture.name, cell),
        svg,
        caption: picture.caption.to_owned(),
        notes,
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

fn scale(log: bool, unit: Unit) -> Scale {
    Scale {
        log,
        from_zero: true,
        unit,
    }
}

fn exactly(value: f64) -> Spread {
    Spread {
        median: value,
        min: value,
        max: value,
    }
}

fn spreads(lines: &[Line]) -> impl Iterator<Item = Spread> + '_ {
    lines
        .iter()
        .flat_map(|line| line.points.iter().map(|point| point.y))
}
