//! The page that `report` draws: opened in a browser, its words, its pictures, and what it refuses.
//!
//! `page.jsonl` has several experiments, subjects, cells and runs, with nothing, zero, one point
//! and huge numbers among them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread;

use crate::{is_there, lab};

const LINES: &str = include_str!("page.jsonl");

/// Names that a careless page would run or swallow, as HTML shows them.
const SUBJECTS: [&str; 4] = [
    "tidewheel",
    "&lt;/script&gt;&lt;script&gt;console.log('ran')&lt;/script&gt;",
    "&lt;img src=x onerror=console.log('ran')&gt;",
    "a \"quoted\" &amp; 'named' peer",
];

fn report(args: &[&Path]) -> Output {
    let output = lab().arg("report").args(args).output();
    output.expect("the laboratory starts")
}

/// Opens a page; returns what was drawn and what the browser logged.
fn open(html: &Path, folder: &Path) -> (String, String) {
    let options = "--headless --no-sandbox --disable-gpu --enable-logging=stderr --dump-dom";
    let profile = folder.join("profile");
    let output = Command::new("chromium")
        .args(options.split(' '))
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("file://{}", html.display()))
        .output()
        .expect("chromium starts");
    let [drawn, log] = [output.stdout, output.stderr].map(String::from_utf8);
    let log = log.expect("text");
    assert!(output.status.success(), "{log}");
    (drawn.expect("text"), log)
}

#[test]
fn a_browser_shows_the_page_and_has_nothing_to_say() {
    if !is_there("chromium") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let [file, html, again, pictures] =
        ["a.json", "a.html", "b.html", "p"].map(|name| folder.path().join(name));
    fs::write(&file, LINES).expect("writes");
    let [out, into] = ["--out", "--pictures"].map(Path::new);
    let succeeds = |args: &[&Path]| {
        let output = report(args);
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{words}");
    };
    succeeds(&[&file, out, &html]);
    let (drawn, log) = thread::scope(|scope| {
        scope.spawn(|| succeeds(&[&file, out, &again, into, &pictures]));
        open(&html, folder.path())
    });
    assert!(!log.contains("CONSOLE"), "{log}");
    let (_, drawn) = drawn.split_once("<main").expect("a page");
    let told = [
        "never",
        "The machine was busy: during 4 of 8 runs",
        "a note with &lt;b&gt;tags",
        "Zero has no place on a logarithmic axis",
    ];
    for words in SUBJECTS.into_iter().chain(told) {
        assert!(drawn.contains(words), "{words}");
    }
    let drawn = fs::read_dir(&pictures).expect("a folder");
    let drawn: Vec<PathBuf> = drawn.map(|entry| entry.expect("an entry").path()).collect();
    let by_n = pictures.join("cost-by-n.svg");
    assert!(drawn.len() >= 9 && drawn.contains(&by_n), "{drawn:?}");
    for path in drawn {
        let svg = fs::read_to_string(&path).expect("a picture");
        assert!(svg.starts_with("<svg xmlns=") && svg.trim_end().ends_with("</svg>"));
        assert!(svg.contains("<path") && !svg.contains("NaN"), "{path:?}");
    }
}

#[test]
fn a_browser_that_sees_an_error_says_so() {
    if !is_there("chromium") {
        return;
    }
    // What the other test relies on: a page that fails logs a line with this word.
    let folder = tempfile::tempdir().expect("a folder");
    let html = folder.path().join("bad.html");
    let page = "<!doctype html><p>x</p><script>nothing.there()</script>";
    fs::write(&html, page).expect("writes");
    let (_, log) = open(&html, folder.path());
    assert!(log.contains("CONSOLE"), "{log}");
}

#[test]
fn files_that_hold_no_results_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let [file, html, kept] =
        ["results.json", "page.html", "kept.json"].map(|n| folder.path().join(n));
    let good = LINES.lines().next().expect("a line");
    let refused = |args: &[&Path]| {
        let output = report(args);
        assert!(!output.status.success() && !html.exists());
        String::from_utf8(output.stderr).expect("text")
    };
    assert!(refused(&[&file, "--out".as_ref(), &html]).contains("cannot read"));
    for (text, complaint) in [
        ("\n\n".to_owned(), "holds no results"),
        (format!("{good}\n\n{{}}\n"), "line 3 is no line of a result"),
        (format!("{good}\n{{\"work"), "line 2 is no JSON"),
    ] {
        fs::write(&file, text).expect("writes");
        let words = refused(&[&file, "--out".as_ref(), &html]);
        assert!(words.contains(complaint), "{words}");
    }
    fs::write(&file, good).expect("writes");
    // A report writes no lines.
    refused(&[&file, "--json".as_ref(), &kept, "--out".as_ref(), &html]);
    assert!(!kept.exists());
}
