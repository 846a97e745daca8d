//! Reads the lists from which the page is made.

use tidewheel_keyspace::Command;

const PUBLIC: &str = include_str!("public.txt");
const SUITE: &str = include_str!("suite.txt");
const DIFFERENCES: &str = include_str!("differences.txt");

/// Public commands of one group.
#[derive(Debug)]
pub(super) struct Chapter {
    /// The group's name in COMMAND DOCS.
    pub(super) group: String,
    pub(super) title: String,
    /// Each with the version that it came with.
    pub(super) commands: Vec<(String, String)>,
}

/// A difference between some commands here and in the public servers.
#[derive(Debug)]
pub(super) struct Difference {
    pub(super) names: Vec<String>,
    /// `yes`, `partly` or `own`.
    pub(super) word: String,
    pub(super) text: String,
}

/// The results of one public test suite.
#[derive(Debug)]
pub(super) struct Suite {
    /// The server whose suite it is, and its version.
    pub(super) source: String,
    pub(super) units: Vec<Unit>,
}

/// The results of one unit of a suite.
#[derive(Debug)]
pub(super) struct Unit {
    pub(super) name: String,
    pub(super) passed: u32,
    pub(super) skipped: u32,
    /// Each test that failed, and why.
    pub(super) failed: Vec<(String, String)>,
}

/// All rows of the table of commands, subcommands too.
pub(super) fn table() -> impl Iterator<Item = &'static Command> {
    tidewheel_keyspace::all_rows().iter()
}

/// The public commands, chapter by chapter.
pub(super) fn public() -> Vec<Chapter> {
    let mut chapters: Vec<Chapter> = Vec::new();
    for line in lines(PUBLIC) {
        if let Some(rest) = line.strip_prefix('[') {
            let (group, title) = rest.split_once("] ").expect("a group and a title");
            chapters.push(Chapter {
                group: group.to_owned(),
                title: title.to_owned(),
                commands: Vec::new(),
            });
        } else {
            let (name, since) = line.split_once(' ').expect("a name and a version");
            let chapter = chapters.last_mut().expect("a chapter before its commands");
            chapter.commands.push((name.to_owned(), since.to_owned()));
        }
    }
    chapters
}

/// Returns the differences.
pub(super) fn differences() -> Vec<Difference> {
    let read = |line: &str| {
        let mut parts = line.splitn(3, ": ").map(str::to_owned);
        let mut part = || parts.next().expect("names, a word and a text");
        Difference {
            names: part().split(' ').map(str::to_owned).collect(),
            word: part(),
            text: part(),
        }
    };
    lines(DIFFERENCES).map(read).collect()
}

/// Returns the results of the public test suites, unit by unit.
pub(super) fn suites() -> Vec<Suite> {
    let mut suites: Vec<Suite> = Vec::new();
    for line in lines(SUITE) {
        if let Some(source) = line.strip_prefix("= ") {
            suites.push(Suite {
                source: source.to_owned(),
                units: Vec::new(),
            });
            continue;
        }
        let units = &mut suites.last_mut().expect("a source before its units").units;
        if let Some(test) = line.strip_prefix("  ") {
            let (name, why) = test.rsplit_once(" => ").expect("a test and a reason");
            let unit = units.last_mut().expect("a unit before its tests");
            unit.failed.push((name.to_owned(), why.to_owned()));
            continue;
        }
        let words: Vec<&str> = line.split(' ').collect();
        let number = |at: usize| words[at].parse().expect("a number of tests");
        units.push(Unit {
            name: words[0].to_owned(),
            passed: number(1),
            skipped: number(3),
            failed: Vec::new(),
        });
    }
    suites
}

fn lines(text: &str) -> impl Iterator<Item = &str> {
    let lines = text.lines();
    lines.filter(|line| !line.is_empty() && !line.starts_with('#'))
}
