//! Subjects beside each other: a bar for each, or a mark for each in rows.

use anyhow::Result;

use super::super::axis::{Axis, Scale};
use super::super::canvas::Words;
use super::super::catalogue;
use super::super::data::{Cell, distinct};
use super::super::look::Look;
use super::super::rows::{self, Bar, Row};
use super::super::words::{of_runs, off, said};
use super::{Drawing, Made};
use crate::report::{Absent, Figure};
use crate::stats::Spread;

impl Drawing<'_> {
    pub(super) fn bars(
        &self,
        title: &str,
        cell: &Cell<'_>,
        key: &str,
        (label, scale): (&str, Scale),
    ) -> Result<Made> {
        let bar = |(subject, look): (&str, Look)| {
            let spread = cell.spread(subject, key);
            let said = match (&spread, cell.absent(subject, key)) {
                (Some(spread), _) => said(spread, scale.unit),
                (None, Absent::Never) => "never".to_owned(),
                (None, Absent::Nothing) => "no value".to_owned(),
            };
            Bar {
                name: subject.to_owned(),
                look,
                spread,
                said,
            }
        };
        let bars: Vec<Bar> = self.subjects_of(cell).map(bar).collect();
        let values = || bars.iter().filter_map(|bar| bar.spread);
        if values().next().is_none() {
            return Ok(None);
        }
        let x = Axis::new(label, scale, values().flat_map(|y| [y.min, y.max]));
        let words = Words {
            title: title.to_owned(),
            subtitle: of_runs(cell.name, cell.runs.iter().copied()),
            x: x.label.clone(),
            y: catalogue::entry(self.experiment.name).noun.to_owned(),
        };
        let notes = off(values().filter(|spread| x.lacks(spread.median)).count());
        let svg = rows::bars(&words, &x, &bars)?;
        Ok(Some((svg, notes.into_iter().collect())))
    }

    pub(super) fn cells(&self, title: &str, key: &str, axis: (&str, Scale)) -> Result<Made> {
        let row = |cell: &Cell<'_>| self.row(cell, cell.name, key);
        let rows = self.experiment.cells.iter().map(row).collect();
        let subtitle = of_runs("", self.experiment.runs());
        self.rows(title, subtitle, rows, axis, "setting")
    }

    pub(super) fn figures(
        &self,
        title: &str,
        cell: &Cell<'_>,
        prefix: &str,
        axis: (&str, Scale),
    ) -> Result<Made> {
        let figures = cell.figures().into_iter();
        let row = |figure: &Figure| {
            // What comes before the comma is the title of the picture.
            let name = figure.label.rsplit_once(", ").map_or("", |(_, name)| name);
            let name = if name.is_empty() { &figure.label } else { name };
            self.row(cell, name, &figure.key)
        };
        let own = figures.filter(|figure| figure.key.starts_with(prefix));
        let rows = own.map(row).collect();
        let subtitle = of_runs(cell.name, cell.runs.iter().copied());
        self.rows(title, subtitle, rows, axis, "load")
    }

    /// A row, and who was measured without a value for it.
    fn row(&self, cell: &Cell<'_>, name: &str, key: &str) -> (Row, Vec<String>) {
        let mark = |(subject, _): &(&str, Look)| cell.spread(subject, key);
        let row = Row {
            name: name.to_owned(),
            marks: self.looks.iter().map(mark).collect(),
        };
        let without = cell.subjects().into_iter();
        let without = without.filter(|subject| cell.spread(subject, key).is_none());
        let said = |subject| match cell.absent(subject, key) {
            Absent::Never => format!("{subject} (never)"),
            Absent::Nothing => subject.to_owned(),
        };
        (row, without.map(said).collect())
    }

    fn rows(
        &self,
        title: &str,
        subtitle: String,
        mut rows: Vec<(Row, Vec<String>)>,
        (label, scale): (&str, Scale),
        noun: &str,
    ) -> Result<Made> {
        rows.retain(|(row, _)| row.marks.iter().any(Option::is_some));
        if rows.is_empty() {
            return Ok(None);
        }
        let count = rows.len();
        let (rows, without): (Vec<Row>, Vec<Vec<String>>) = rows.into_iter().unzip();
        let mut notes = Vec::new();
        for subject in distinct(without.iter().flatten()) {
            let own = rows.iter().zip(&without);
            let own = own.filter(|(_, without)| without.contains(subject));
            let names: Vec<&str> = own.map(|(row, _)| row.name.as_str()).collect();
            notes.push(match names.len() == count {
                true => format!("No value: {subject}."),
                false => format!("No value: {subject} at {}.", names.join("; ")),
            });
        }
        let all = || -> Vec<Spread> {
            let marks = rows.iter().flat_map(|row| &row.marks);
            marks.flatten().copied().collect()
        };
        let x = Axis::new(label, scale, all().into_iter().flat_map(|y| [y.min, y.max]));
        let words = Words {
            title: title.to_owned(),
            subtitle,
            x: x.label.clone(),
            y: noun.to_owned(),
        };
        notes.extend(off(all()
            .iter()
            .filter(|spread| x.lacks(spread.median))
            .count()));
        let svg = rows::marks(&words, &x, &rows, &self.looks)?;
        Ok(Some((svg, notes)))
    }
}
