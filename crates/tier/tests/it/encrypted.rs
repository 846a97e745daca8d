//! TLS. The trusted certificates are in the environment of a process of its own.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use tidewheel_engines::{Engine, Folder, Server, eventually, free_port, require};
use tidewheel_tier::{OpenError, Valkey};

use crate::support::{Texts, cache, on_server, tier, wait_watched, warm};

const PORTS: &str = "TIDEWHEEL_TIER_TLS_PORTS";
const EXPECTED: &str = "TIDEWHEEL_TIER_TLS_EXPECTED";

/// A key, and a certificate for `localhost` that it has signed itself.
fn certificate(openssl: &Path, folder: &Folder) {
    let arguments = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost \
         -addext subjectAltName=DNS:localhost -addext basicConstraints=critical,CA:FALSE -keyout key.pem -out certificate.pem";
    let made = Command::new(openssl)
        .args(arguments.split_ascii_whitespace())
        .current_dir(folder.path())
        .output()
        .expect("it starts");
    assert!(made.status.success(), "{made:?}");
}

#[test]
fn the_values_and_word_of_their_changes_are_encrypted() {
    let (Some(engine), Some(openssl)) = (Engine::redis(), require("openssl", &[])) else {
        return;
    };
    let folder = Folder::new("tls");
    certificate(&openssl, &folder);
    let file = |name: &str| folder.path().join(name).display().to_string();
    let port = free_port();
    let arguments = [
        "--tls-port",
        &port.to_string(),
        "--tls-cert-file",
        &file("certificate.pem"),
        "--tls-key-file",
        &file("key.pem"),
        "--tls-ca-cert-file",
        &file("certificate.pem"),
        "--tls-auth-clients",
        "no",
    ];
    let server = Server::start(&engine, &arguments);
    let part = |trusted: &str, expected: &str| {
        let ended = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "encrypted::part", "--nocapture"])
            .env(PORTS, format!("{} {port}", server.port))
            .env(EXPECTED, expected)
            .env("SSL_CERT_FILE", file(trusted))
            .output()
            .expect("it starts");
        assert!(ended.status.success(), "{expected}: {ended:?}");
    };
    part("certificate.pem", "trusted");
    certificate(&openssl, &folder);
    part("certificate.pem", "a stranger");
}

/// It was no error before the first command.
#[test]
fn without_certificates_to_trust_there_is_no_engine() {
    let Some(openssl) = require("openssl", &[]) else {
        return;
    };
    let (folder, trusted) = (Folder::new("tls"), Folder::new("tls"));
    certificate(&openssl, &trusted);
    let file = |name: &str| folder.path().join(name);
    std::fs::write(file("empty"), "").expect("written");
    std::fs::write(file("garbage"), "no certificate").expect("written");
    let dirs = [Path::new(""), trusted.path()];
    let untrusted = [
        ("missing", dirs[0]),
        ("empty", dirs[0]),
        ("garbage", dirs[0]),
    ];
    for (name, others) in untrusted.into_iter().chain([("missing", dirs[1])]) {
        let ended = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "encrypted::part", "--nocapture"])
            .env(PORTS, "1 1")
            .env(EXPECTED, "no engine")
            .env("SSL_CERT_FILE", file(name))
            .env("SSL_CERT_DIR", others)
            .output()
            .expect("it starts");
        assert!(ended.status.success(), "{name} {others:?}: {ended:?}");
    }
}

/// Not a test: a process of those above.
#[test]
fn part() {
    let Ok(ports) = std::env::var(PORTS) else {
        return;
    };
    let (plain, encrypted) = ports.split_once(' ').expect("two ports");
    let engine = Valkey::open(&format!("rediss://localhost:{encrypted}"));
    match std::env::var(EXPECTED).expect("what is expected").as_str() {
        "trusted" => hears(&cache(tier(engine.expect("an engine"))), plain),
        "no engine" => assert!(matches!(engine, Err(OpenError::Tls(_))), "{engine:?}"),
        _ => is_refused(&cache(tier(engine.expect("an engine")))),
    }
}

fn hears(reader: &Texts, plain: &str) {
    wait_watched(reader);
    assert_eq!(reader.get_or_load("tea".into(), || "7".into()), "7");
    warm(reader, "tea", "7");
    let writer = on_server(plain.parse().expect("a port"));
    writer.invalidate(&"tea".into()).expect("taken");
    eventually("the message of the change", || {
        reader.get_local("tea").is_none().then_some(())
    });
}

fn is_refused(reader: &Texts) {
    assert_eq!(reader.get_or_load("tea".into(), || "8".into()), "8");
    std::thread::sleep(Duration::from_secs(1));
    assert!(!reader.is_watched());
    assert_eq!(reader.tier_stats().looks, 0, "a stranger has answered");
}
