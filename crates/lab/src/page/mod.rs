//! Result files drawn as one page: pictures and tables of whatever the lines hold.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use self::data::distinct;
use self::read::Lines;
use crate::report::Report;

mod axis;
mod canvas;
mod catalogue;
mod data;
mod draw;
mod html;
mod lines;
mod look;
mod origin;
mod pictures;
mod read;
mod rows;
mod tables;
mod words;

/// Options of `report`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// Files of results, a line of JSON each, as the experiments write them.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The page to write: HTML that needs no other file.
    #[arg(long, value_name = "FILE", default_value = "report.html")]
    out: PathBuf,
    /// Write each picture into this folder as well, an SVG file each.
    #[arg(long, value_name = "DIR")]
    pictures: Option<PathBuf>,
}

/// What stands above the experiments.
#[derive(Clone, Debug, Default)]
pub(crate) struct Intro {
    pub(crate) title: String,
    pub(crate) paragraphs: Vec<String>,
    pub(crate) tables: Vec<Table>,
}

/// A table above the experiments; its first row and its first column are heads.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    pub(crate) title: String,
    /// What a reader must know of it; may be empty.
    pub(crate) note: String,
    pub(crate) grid: Vec<Vec<String>>,
}

/// Draws the files and says where the page is.
pub(crate) fn run(args: &Args) -> Result<()> {
    let files = read::files(&args.files)?;
    let intro = intro(&files);
    let reports: Vec<Report> = files.into_iter().flat_map(|file| file.reports).collect();
    write(&reports, &intro, &args.out)?;
    println!("{}", args.out.display());
    match &args.pictures {
        Some(folder) => write_pictures(&reports, folder),
        None => Ok(()),
    }
}

/// Writes a page of `reports`, below what the caller has to say of them.
pub(crate) fn write(reports: &[Report], intro: &Intro, path: &Path) -> Result<()> {
    let html = html::page(&data::experiments(reports), intro)?;
    fs::write(path, html).with_context(|| format!("cannot write {}", path.display()))
}

/// Writes each picture as a file whose name depends on the experiment and the cell alone.
fn write_pictures(reports: &[Report], folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let mut taken: Vec<String> = Vec::new();
    for experiment in data::experiments(reports) {
        for picture in draw::pictures(&experiment)? {
            // Two cells may differ only in what a file's name cannot hold.
            let mut name = picture.name.clone();
            let mut copies = 2..;
            while taken.contains(&name) {
                name = format!("{}-{}", picture.name, copies.next().unwrap_or(0));
            }
            let path = folder.join(format!("{name}.svg"));
            fs::write(&path, picture.svg)
                .with_context(|| format!("cannot write {}", path.display()))?;
            println!("{}", path.display());
            taken.push(name);
        }
    }
    Ok(())
}

/// Which files the page is made of, and from which machines they come.
fn intro(files: &[Lines]) -> Intro {
    let reports = || files.iter().flat_map(|file| &file.reports);
    let head = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let mut of_files: Vec<Vec<String>> =
        vec![head(&["file", "lines", "experiments", "written by"])];
    for file in files {
        let names = distinct(file.reports.iter().map(|report| report.workload.as_str()));
        of_files.push(vec![
            file.file.clone(),
            file.reports.len().to_string(),
            names.join(", "),
            file.tools.join(", "),
        ]);
    }
    let mut of_machines: Vec<Vec<String>> = vec![head(&["machine", "lines"])];
    let machines = origin::machines(reports());
    of_machines.extend(
        machines
            .into_iter()
            .map(|(name, lines)| vec![name, lines.to_string()]),
    );
    let table = |title: &str, grid| Table {
        title: title.to_owned(),
        note: String::new(),
        grid,
    };
    Intro {
        title: "Tidewheel: what the laboratory found".to_owned(),
        paragraphs: vec![
            "Every line of the files below is on this page: first the pictures of an experiment, then all of \
             its figures. Where a subject was measured several times, a figure is the median, with the least and \
             the greatest below it; pictures show the same range as whiskers."
                .to_owned(),
        ],
        tables: vec![table("Files", of_files), table("Machines", of_machines)],
    }
}
