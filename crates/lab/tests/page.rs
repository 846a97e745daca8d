//! The page that `report` draws: opened in a browser, its words, its pictures, and what it refuses.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};

const LAB: &str = env!("CARGO_BIN_EXE_tidewheel-lab");

/// Names that a careless page would run or swallow.
const SUBJECTS: [&str; 4] = [
    "tidewheel",
    "</script><script>console.log('ran')</script>",
    "<img src=x onerror=console.log('ran')>",
    "a \"quoted\" & 'named' peer",
];

/// A folder of this test's own, which goes with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("tidewheel-page-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).expect("a folder");
        Self(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            eprintln!("could not remove {}: {error}", self.0.display());
        }
    }
}

/// A line as the laboratory writes it.
fn line(names: [&str; 3], run: u64, params: Value, figures: Value, curves: Value) -> Value {
    let [workload, cell, subject] = names;
    json!({
        "tool": "tidewheel-lab 0.0.0",
        "workload": workload,
        "cell": cell,
        "subject": subject,
        "version": "1.2",
        "run": run,
        "command": null,
        "finished_unix_ms": 1,
        "machine": { "cpu": "a processor", "cores": 2, "memory_mib": null },
        "server": null,
        "params": params,
        "labels": figures.as_object().expect("figures").keys().map(|key| (key.clone(), json!(key))).collect::<serde_json::Map<_, _>>(),
        "figures": figures,
        "never": ["late_ms"],
        "curves": curves,
        "notes": ["a note with <b>tags</b>"],
    })
}

/// Several experiments, subjects, cells and runs, with nothing, zero, one point and huge numbers among them.
fn lines() -> Vec<Value> {
    let mut lines = Vec::new();
    for (at, subject) in (0_u32..).zip(SUBJECTS) {
        let slow = f64::from(at + 1);
        for run in 1..=3 {
            for entries in [1_000.0, 100_000.0, 10_000_000.0] {
                let cell = format!("{entries} entries");
                let figures = json!({
                    "second_few_us": 90.0 * slow + run as f64,
                    "second_idle_us": if at == 1 { 3.0 } else { 0.0 },
                    "insert_ns": (at != 2).then_some(80.0 * slow),
                    "others_cpu_percent": run as f64 * 9.0,
                });
                let points = json!([[0.5, 0.5], [slow * 1e3, 1.0]]);
                let curves = json!({
                    "lateness": { "label": "lateness", "x": "late, ms", "y": "share", "points": points },
                });
                let names = ["expiry ticks", cell.as_str(), subject];
                lines.push(line(
                    names,
                    run,
                    json!({ "entries": entries }),
                    figures,
                    curves,
                ));
            }
            let reads = json!({
                "read_p50_us": 0.4 * slow,
                "read_max_us": 4e6 * slow,
                "control_read_p50_us": 0.3,
                "control_read_max_us": 0.0,
                "dropped_99_ms": 1e9,
            });
            let names = ["caches mass-expiry", "one reader", subject];
            lines.push(line(names, run, json!({ "readers": 1 }), reads, json!({})));
        }
    }
    let odd = json!({ "late_ms": null, "zero": 0.0, "below": -3.5 });
    let curve =
        json!({ "c": { "label": "one", "x": "time, s", "y": "things", "points": [[1.0, 2.0]] } });
    let names = ["nobody knows <this>", "", SUBJECTS[1]];
    lines.push(line(names, 1, json!({ "x": null }), odd, curve));
    lines
}

fn report(args: &[&Path]) -> Output {
    let mut command = Command::new(LAB);
    command.arg("report").args(args);
    command.output().expect("the laboratory starts")
}

/// Whether a browser is there; says so when not, and fails when it has to be.
fn chromium_is_there() -> bool {
    let found = Command::new("chromium").arg("--version").output().is_ok();
    if !found {
        let required = std::env::var("TIDEWHEEL_REQUIRE_TOOLS").is_ok_and(|value| value == "1");
        assert!(!required, "chromium is required and not installed");
        println!("skipped: chromium is not installed");
    }
    found
}

/// Opens a page; returns what was drawn and what the browser logged.
fn open(html: &Path, folder: &Folder) -> (String, String) {
    let output = Command::new("chromium")
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
        ])
        .args(["--enable-logging=stderr", "--dump-dom"])
        .arg(format!(
            "--user-data-dir={}",
            folder.path("profile").display()
        ))
        .arg(format!("file://{}", html.display()))
        .output()
        .expect("chromium starts");
    let log = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{log}");
    (String::from_utf8_lossy(&output.stdout).into_owned(), log)
}

#[test]
fn a_browser_shows_the_page_and_has_nothing_to_say() {
    if !chromium_is_there() {
        return;
    }
    let folder = Folder::new("browser");
    let (file, html, pictures) = (
        folder.path("a.json"),
        folder.path("a.html"),
        folder.path("p"),
    );
    let text: Vec<String> = lines().iter().map(Value::to_string).collect();
    fs::write(&file, text.join("\n")).expect("writes");
    let output = report(&[
        &file,
        "--out".as_ref(),
        &html,
        "--pictures".as_ref(),
        &pictures,
    ]);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );

    let (drawn, log) = open(&html, &folder);
    let said: Vec<&str> = log
        .lines()
        .filter(|line| line.contains("CONSOLE"))
        .collect();
    assert_eq!(said, Vec::<&str>::new());
    let (_, drawn) = drawn.split_once("<main").expect("a page");
    for subject in SUBJECTS {
        let escaped = subject
            .replace('&', "&amp;")
            .replace('<', "&lt;")
            .replace('>', "&gt;");
        assert!(drawn.contains(&escaped), "{subject}");
    }
    for words in [
        "never",
        "The machine was busy: during 8 of 12",
        "a note with &lt;b&gt;tags",
        "Zero has no place on a logarithmic axis",
    ] {
        assert!(drawn.contains(words), "{words}");
    }
    let pictures: Vec<PathBuf> = fs::read_dir(&pictures)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    assert!(pictures.len() >= 9, "{pictures:?}");
    assert!(
        pictures.iter().any(|path| path.ends_with("cost-by-n.svg")),
        "{pictures:?}"
    );
    for path in pictures {
        let svg = fs::read_to_string(&path).expect("a picture");
        assert!(svg.starts_with("<svg xmlns=") && svg.trim_end().ends_with("</svg>"));
        assert!(
            svg.contains("<path") && !svg.contains("NaN"),
            "{}",
            path.display()
        );
    }
}

#[test]
fn a_browser_that_sees_an_error_says_so() {
    if !chromium_is_there() {
        return;
    }
    // What the other test relies on: a page that fails logs a line with this word.
    let folder = Folder::new("error");
    let html = folder.path("bad.html");
    fs::write(
        &html,
        "<!doctype html><p>x</p><script>nothing.there()</script>",
    )
    .expect("writes");
    let (_, log) = open(&html, &folder);
    assert!(log.contains("CONSOLE"), "{log}");
}

#[test]
fn files_that_hold_no_results_are_refused() {
    let folder = Folder::new("bad");
    let html = folder.path("page.html");
    let good = lines()[0].to_string();
    for (text, complaints) in [
        (None, vec!["cannot read"]),
        (Some("\n\n".to_owned()), vec!["holds no results"]),
        (
            Some(format!("{good}\n\n{{}}\n")),
            vec!["line 3", "no line of a result"],
        ),
        (Some(format!("{good}\n{{\"work")), vec!["line 2", "no JSON"]),
    ] {
        let file = folder.path("results.json");
        if let Some(text) = &text {
            fs::write(&file, text).expect("writes");
        }
        let output = report(&[&file, Path::new("--out"), &html]);
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{text:?}");
        for complaint in complaints {
            assert!(words.contains(complaint), "{complaint}: {words}");
        }
        assert!(!html.exists(), "nothing was written for {text:?}");
    }
    let kept = folder.path("kept.json");
    fs::write(folder.path("results.json"), &good).expect("writes");
    let output = report(&[&folder.path("results.json"), Path::new("--json"), &kept]);
    assert!(!output.status.success(), "a report writes no lines");
    assert!(!kept.exists());
}
