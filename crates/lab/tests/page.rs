//! The page that `report` draws: opened in a browser, its words and axes, and what it refuses.
#![expect(
    clippy::disallowed_methods,
    reason = "a browser that hangs is given up after a while"
)]

use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

const LAB: &str = env!("CARGO_BIN_EXE_tidewheel-lab");

const TALL: u32 = 4_000;
const WIDE: u32 = 1_280;
const PATIENCE: Duration = Duration::from_secs(120);

/// Names that a careless page would run or swallow.
const SUBJECTS: [&str; 4] = [
    "tidewheel",
    "<script>console.log('ran')</script>",
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

/// A line as the laboratory writes it; figures are `(key, label, value)`.
fn line(
    [workload, cell, subject]: [&str; 3],
    run: u64,
    params: Value,
    figures: &[(&str, &str, Option<f64>)],
    curves: Value,
) -> Value {
    let values: serde_json::Map<String, Value> = figures
        .iter()
        .map(|(key, _, value)| ((*key).to_owned(), json!(value)))
        .collect();
    let labels: serde_json::Map<String, Value> = figures
        .iter()
        .map(|(key, label, _)| ((*key).to_owned(), json!(label)))
        .collect();
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
        "figures": values,
        "labels": labels,
        "never": ["late_ms"],
        "curves": curves,
        "notes": if run == 2 { json!(["a note with <b>tags</b>"]) } else { json!([]) },
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
                let cost = if at == 1 { entries * 3e-3 } else { 90.0 * slow };
                let figures = [
                    ("second_few_us", "a second µs", Some(cost + run as f64)),
                    (
                        "second_idle_us",
                        "idle µs",
                        Some(if at == 1 { cost } else { 0.0 }),
                    ),
                    ("insert_ns", "insert ns", (at != 2).then_some(80.0 * slow)),
                    (
                        "others_cpu_percent",
                        "noise: others' CPU, % of a core",
                        Some(run as f64 * 9.0),
                    ),
                ];
                let late = if at == 3 {
                    json!([[0.5, 1.0]])
                } else {
                    json!([[0.0, 0.5], [slow * 1e3, 1.0]])
                };
                let curves = json!({
                    "lateness": { "label": "lateness", "x": "late, ms", "y": "share", "points": late },
                });
                let names = ["seeds ticks", cell.as_str(), subject];
                lines.push(line(
                    names,
                    run,
                    json!({ "entries": entries }),
                    &figures,
                    curves,
                ));
            }
            let reads = [
                ("read_p50_us", "read p50 µs", Some(0.4 * slow)),
                ("read_p99_us", "read p99 µs", Some(3.0 * slow)),
                ("read_max_us", "read max µs", Some(4e6 * slow)),
                ("control_read_p50_us", "control p50 µs", Some(0.3)),
                ("control_read_max_us", "control max µs", Some(0.0)),
                ("dropped_99_ms", "99 % dropped", Some(1e9)),
            ];
            let names = ["caches mass-expiry", "one reader", subject];
            lines.push(line(names, run, json!({ "readers": 1 }), &reads, json!({})));
        }
    }
    let odd = [
        ("late_ms", "late ms", None),
        ("zero", "nothing at all", Some(0.0)),
        ("below", "below zero", Some(-3.5)),
    ];
    let curve = json!({ "c": { "label": "one point", "x": "time, s", "y": "things", "points": [[1.0, 2.0]] } });
    let names = ["nobody knows <this>", "", SUBJECTS[1]];
    lines.push(line(names, 1, json!({ "x": null }), &odd, curve));
    lines
}

fn write(path: &Path, lines: &[Value]) {
    let text: Vec<String> = lines.iter().map(Value::to_string).collect();
    fs::write(path, text.join("\n") + "\n").expect("writes");
}

fn report(args: &[&Path]) -> Output {
    let mut command = Command::new(LAB);
    command.arg("report").args(args);
    command.output().expect("the laboratory starts")
}

/// The page of [`lines`] and the folder of its pictures.
fn page(folder: &Folder) -> (PathBuf, PathBuf) {
    let (file, html) = (folder.path("results.json"), folder.path("page.html"));
    let pictures = folder.path("pictures");
    write(&file, &lines());
    let output = report(&[
        &file,
        Path::new("--out"),
        &html,
        Path::new("--pictures"),
        &pictures,
    ]);
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words}");
    (html, pictures)
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

/// Opens a page and takes a picture of it; returns what the browser logged.
fn open(html: &Path, shot: &Path, folder: &Folder) -> String {
    let log = folder.path("chromium.log");
    let errors = File::create(&log).expect("a file for the log");
    let mut child = Command::new("chromium")
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
        ])
        .args([
            "--disable-background-networking",
            "--disable-component-update",
        ])
        .args([
            "--disable-sync",
            "--hide-scrollbars",
            "--enable-logging=stderr",
        ])
        .arg(format!(
            "--user-data-dir={}",
            folder.path("profile").display()
        ))
        .arg(format!("--screenshot={}", shot.display()))
        .arg(format!("--window-size={WIDE},{TALL}"))
        .arg(format!("file://{}", html.display()))
        .stdout(Stdio::null())
        .stderr(errors)
        .spawn()
        .expect("chromium starts");
    let give_up = Instant::now() + PATIENCE;
    let status = loop {
        if let Some(status) = child.try_wait().expect("chromium can be waited for") {
            break status;
        }
        if Instant::now() > give_up {
            child.kill().expect("chromium can be ended");
            panic!("chromium did not finish");
        }
        // Not a busy loop: the browser needs the processor.
        std::thread::sleep(Duration::from_millis(10));
    };
    let log = fs::read_to_string(&log).expect("a log");
    assert!(status.success(), "{log}");
    log
}

/// Pixels of a picture, three bytes each.
fn pixels(shot: &Path) -> (u32, u32, Vec<[u8; 3]>) {
    let file = BufReader::new(File::open(shot).expect("a screenshot"));
    let mut reader = png::Decoder::new(file).read_info().expect("a PNG");
    let mut bytes = vec![0; reader.output_buffer_size().expect("a size")];
    let info = reader.next_frame(&mut bytes).expect("a picture");
    let step = info.color_type.samples();
    assert!(step >= 3, "in colour");
    let bytes = &bytes[..info.buffer_size()];
    let pixels = bytes.chunks_exact(step).map(|p| [p[0], p[1], p[2]]);
    (info.width, info.height, pixels.collect())
}

#[test]
fn a_browser_shows_the_page_and_has_nothing_to_say() {
    if !chromium_is_there() {
        return;
    }
    let folder = Folder::new("browser");
    let (html, _) = page(&folder);
    let shot = folder.path("shot.png");
    let log = open(&html, &shot, &folder);
    let said: Vec<&str> = log
        .lines()
        .filter(|line| line.contains("CONSOLE"))
        .collect();
    assert_eq!(said, Vec::<&str>::new());

    let (width, height, pixels) = pixels(&shot);
    assert_eq!((width, height), (WIDE, TALL));
    let mut colours = pixels.clone();
    colours.sort_unstable();
    colours.dedup();
    assert!(colours.len() > 100, "{} colours", colours.len());
    let fifth = (WIDE * TALL / 5) as usize;
    for (at, part) in pixels.chunks(fifth).enumerate() {
        let ink = part.iter().filter(|colour| **colour != [255; 3]).count();
        assert!(ink * 200 > part.len(), "{ink} pixels of ink in part {at}");
    }
    // The thick line of the first subject is in its strong colour, which is in no other place.
    let strong = pixels
        .iter()
        .filter(|[r, g, b]| *r > 190 && *g < 90 && *b < 60);
    assert!(strong.count() > 500);
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
    let log = open(&html, &folder.path("shot.png"), &folder);
    assert!(log.contains("CONSOLE"), "{log}");
}

#[test]
fn every_subject_is_named_and_none_of_it_is_markup() {
    let folder = Folder::new("words");
    let (html, _) = page(&folder);
    let html = fs::read_to_string(html).expect("a page");
    for subject in SUBJECTS {
        assert!(html.contains(&escaped(subject)), "{subject}");
    }
    let lower = html.to_lowercase();
    for markup in [
        "<script", "<img", "<b>", "<this>", "http://", "https://", "@import", "url(",
    ] {
        // The name of the SVG language is an address that nobody asks for.
        let lower = lower.replace("http://www.w3.org/2000/svg", "");
        assert!(!lower.contains(markup), "{markup}");
    }
    for words in [
        "never",
        "The machine was busy: during 8 of 12 runs",
        "a note with &lt;b&gt;tags",
        "Not in this picture, for want of a value",
        "Zero and less have no place on a logarithmic axis",
    ] {
        assert!(html.contains(words), "{words}");
    }
}

#[test]
fn every_picture_says_what_its_axes_are() {
    let folder = Folder::new("axes");
    let (html, pictures) = page(&folder);
    let html = fs::read_to_string(html).expect("a page");
    let files: Vec<PathBuf> = fs::read_dir(&pictures)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    assert_eq!(html.matches("<svg ").count(), files.len());
    assert!(files.contains(&pictures.join("cost-by-n.svg")), "{files:?}");
    assert!(files.len() >= 9, "{files:?}");
    for file in files {
        let svg = fs::read_to_string(&file).expect("a picture");
        let name = file.display();
        assert!(
            svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"),
            "{name}"
        );
        assert!(html.contains(svg.trim()), "{name} is on the page");
        let texts: Vec<&str> = svg
            .split("</text>")
            .filter_map(|part| Some(part.rsplit_once('>')?.1.trim()))
            .collect();
        let described = between(&svg, "<desc>", "</desc>");
        for axis in [
            between(described, "Across: ", ". Upwards: "),
            described
                .rsplit_once(". Upwards: ")
                .expect("an axis")
                .1
                .trim_end_matches('.'),
        ] {
            assert!(axis.chars().any(char::is_alphabetic), "{name}: {axis:?}");
            assert!(texts.contains(&axis), "{name}: {axis:?} is written");
        }
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{name}");
    }
}

#[test]
fn files_that_hold_no_results_are_refused() {
    let folder = Folder::new("bad");
    let html = folder.path("page.html");
    let good = lines()[0].to_string();
    for (text, complaints) in [
        (None, vec!["cannot read"]),
        (Some(String::new()), vec!["holds no results"]),
        (Some("\n\n".to_owned()), vec!["holds no results"]),
        (
            Some(format!("{good}\n\n{{}}\n")),
            vec!["line 3", "no line of a result", "no `workload`"],
        ),
        (
            Some(format!("{good}\n{{\"work")),
            vec!["line 2", "no JSON", "ends in the middle"],
        ),
    ] {
        let file = folder.path("results.json");
        if let Some(text) = &text {
            fs::write(&file, text).expect("writes");
        }
        let output = report(&[&file, Path::new("--out"), &html]);
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{text:?}");
        assert!(words.contains("results.json"), "{words}");
        for complaint in complaints {
            assert!(words.contains(complaint), "{complaint}: {words}");
        }
        assert!(!html.exists(), "nothing was written for {text:?}");
    }
    let output = report(&[]);
    assert!(!output.status.success());
}

#[test]
fn a_report_refuses_a_file_for_lines_that_it_would_not_write() {
    let folder = Folder::new("json");
    let (file, html) = (folder.path("results.json"), folder.path("page.html"));
    let kept = folder.path("kept.json");
    fs::write(&file, lines()[0].to_string()).expect("writes");
    let output = report(&[&file, Path::new("--json"), &kept, Path::new("--out"), &html]);
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(words.contains("--json"), "{words}");
    assert!(!kept.exists() && !html.exists());
}

fn between<'a>(text: &'a str, from: &str, to: &str) -> &'a str {
    let start = text.find(from).expect(from) + from.len();
    let length = text[start..].find(to).expect(to);
    &text[start..start + length]
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', "&#39;")
}
