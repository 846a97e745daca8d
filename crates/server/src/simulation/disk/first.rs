//! A log that begins with a snapshot.

use std::sync::Arc;

use tidewheel_log::simulated::Disk;

use super::super::rig::{Rig, bulk};
use super::life::Life;
use crate::config::Settings;
use crate::time::clock::Clock;

fn rig(folder: &std::path::Path) -> Rig {
    let settings = Settings {
        append_only: true,
        folder: folder.to_string_lossy().into_owned(),
        ..Settings::default()
    };
    Rig::without_records(1, settings, Clock::on(&Arc::default()), 1)
}

#[test]
fn libraries_of_a_snapshot_without_keys_are_in_the_log() {
    let folder = std::env::temp_dir().join(format!("tidewheel-first-{}", std::process::id()));
    let code = "#!lua name=lib\nredis.register_function('f', function() return 7 end)";
    let mut early = rig(&folder);
    let peer = early.connect(0);
    early.ask(&peer, &bulk(&[b"FUNCTION", b"LOAD", code.as_bytes()]));
    assert_eq!(early.ask(&peer, b"SAVE\r\n"), b"+OK\r\n");

    let disk = Disk::new(1);
    for key in ["a", "b"] {
        let mut life = Life::begin(rig(&folder), &disk).expect("it is loaded");
        let peer = life.rig.connect(0);
        assert_eq!(life.rig.ask(&peer, b"FCALL f 0\r\n"), b":7\r\n", "{key}");
        life.rig.ask(&peer, &bulk(&[b"SET", key.as_bytes(), b"v"]));
        life.write();
        disk.kill();
    }
    std::fs::remove_dir_all(&folder).expect("it is there");
}
