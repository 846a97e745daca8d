//! What may be wrong with the folder of a log, or with the disk that it is on.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use rustix::process::Signal;

use crate::common::{
    Client, Folder, PATIENCE, Reply, Server, bulk, command, eventually, now, ok, program, skip,
};

fn flags(folder: &str) -> Vec<&str> {
    let log = ["--appendonly", "yes", "--appendfsync", "always"];
    [&["--dir", folder][..], &log].concat()
}

fn start(folder: &str) -> Server {
    Server::start_logged(&flags(folder))
}

fn kill(mut server: Server) {
    server.signal(Signal::KILL);
    server.wait();
}

/// Starts a server that is to refuse, and returns what it says.
fn refused(folder: &str) -> String {
    let output = program(&flags(folder)).stdin(Stdio::null()).output();
    let Output { status, stderr, .. } = output.expect("the program runs");
    let said = String::from_utf8_lossy(&stderr).into_owned();
    assert_eq!(status.code(), Some(1), "{said}");
    said
}

fn assert_says(said: &str, parts: &[&str]) {
    for part in parts {
        assert!(said.contains(part), "{part:?} is not in: {said}");
    }
}

/// Has a hundred keys logged, each in a frame of its own, and kills the server.
fn hundred_keys(name: &str) -> Folder {
    let folder = Folder::new(name);
    let server = start(folder.text());
    let mut client = server.client();
    for i in 0..100 {
        assert_eq!(client.call(&["SET", &format!("k{i}"), "v"]), ok());
    }
    kill(server);
    folder
}

/// The files of the log with this in their name, in order.
fn files(folder: &Folder, name: &str) -> Vec<PathBuf> {
    let all = fs::read_dir(folder.0.join("log")).expect("a folder");
    let all = all.map(|file| file.expect("a file").path());
    let mut all: Vec<_> = (all.filter(|path| path.to_string_lossy().contains(name))).collect();
    all.sort();
    all
}

/// Where these bytes stand in a file.
fn place_of(path: &PathBuf, bytes: &[u8]) -> u64 {
    let all = fs::read(path).expect("a file");
    let at = all.windows(bytes.len()).position(|window| window == bytes);
    at.expect("they are there") as u64
}

/// No later frame said that it was on disk, so it passed for a torn end.
#[test]
fn a_flipped_bit_in_what_waitaof_has_confirmed_last_is_refused() {
    for policy in ["everysec", "no", "always"] {
        let folder = Folder::new("folder-confirmed");
        let mut flags = flags(folder.text());
        *flags.last_mut().expect("a policy") = policy;
        let server = Server::start_logged(&flags);
        let mut client = server.client();
        assert_eq!(client.call(&["SET", "tea", "confirmed"]), ok());
        let confirmed = client.call(&["WAITAOF", "1", "0", "0"]);
        let both = Reply::Array(vec![Reply::Integer(1), Reply::Integer(0)]);
        assert_eq!(confirmed, both, "{policy}");
        if policy == "always" {
            // Who has not waited is told by the next frame, or by an empty one a moment later.
            client.call(&["SET", "tee", "more"]);
        }
        kill(server);
        let last = files(&folder, "segment").pop().expect("a segment");
        let at = place_of(&last, b"confirmed");
        let file = OpenOptions::new().write(true).open(&last).expect("a file");
        file.write_all_at(b"X", at).expect("a file");
        let said = refused(folder.text());
        assert_says(&said, &[folder.text(), "segment-1 is damaged at byte"]);
    }
}

#[test]
fn a_second_server_on_a_folder_is_refused_and_the_first_goes_on() {
    let folder = Folder::new("folder-twice");
    let server = start(folder.text());
    let mut client = server.client();
    assert_eq!(client.call(&["SET", "tea", "hot"]), ok());
    let said = refused(folder.text());
    assert_says(&said, &[folder.text(), "in use by another server"]);
    assert!(!said.contains("repair"), "nothing is damaged: {said}");
    assert_eq!(client.call(&["APPEND", "tea", "ter"]), Reply::Integer(6));
    kill(server);
    let server = start(folder.text());
    assert_eq!(server.client().call(&["GET", "tea"]), bulk("hotter"));
}

#[test]
fn a_log_whose_last_frame_is_cut_is_loaded_up_to_there() {
    let folder = hundred_keys("folder-cut");
    let last = files(&folder, "segment").pop().expect("a segment");
    let file = OpenOptions::new().write(true).open(&last);
    let file = file.expect("a file");
    let len = place_of(&last, b"k99");
    file.set_len(len).expect("a file");
    let server = start(folder.text());
    let line = server.logged("loaded the log").remove(0);
    assert_says(&line, &["keys=99", "torn="]);
    let mut client = server.client();
    assert_eq!(client.call(&["EXISTS", "k98", "k99"]), Reply::Integer(1));
    client.call(&["SET", "k99", "w"]);
    kill(server);
    let server = start(folder.text());
    assert!(!server.logged("loaded the log")[0].contains("torn="));
    assert_eq!(server.client().call(&["GET", "k99"]), bulk("w"));
}

#[test]
fn a_flipped_bit_in_the_middle_is_refused_and_the_files_stay_as_they_are() {
    let folder = hundred_keys("folder-flipped");
    let last = files(&folder, "segment").pop().expect("a segment");
    let bytes = fs::read(&last).expect("a file");
    let middle = (4096 + bytes.len()) / 2;
    let file = OpenOptions::new().write(true).open(&last).expect("a file");
    file.write_all_at(&[bytes[middle] ^ 4], middle as u64)
        .expect("a file");
    let said = refused(folder.text());
    let name = last
        .file_name()
        .expect("a name")
        .to_string_lossy()
        .into_owned();
    assert_says(
        &said,
        &[folder.text(), &name, "is damaged at byte ", "repair"],
    );
    let at = said.split("at byte ").nth(1).expect("a place");
    let at: usize = (at.split(':').next().expect("a place"))
        .parse()
        .expect("a number");
    assert!((middle - 200..=middle).contains(&at), "{at}, not {middle}");
    assert_eq!(fs::read(&last).expect("a file").len(), bytes.len());
    file.write_all_at(&bytes[middle..=middle], middle as u64)
        .expect("a file");
    let server = start(folder.text());
    assert_eq!(server.client().call(&["DBSIZE"]), Reply::Integer(100));
}

#[test]
fn the_log_of_another_server_is_refused() {
    let folder = Folder::new("folder-stock");
    let log = folder.0.join("log");
    fs::create_dir_all(&log).expect("a folder");
    for name in [
        "appendonly.aof.manifest",
        "appendonly.aof.1.base.rdb",
        "appendonly.aof.1.incr.aof",
    ] {
        let path = log.join(name);
        fs::write(&path, b"something").expect("a file");
        let said = refused(folder.text());
        assert_says(&said, &[folder.text(), "log of another server", name]);
        fs::remove_file(&path).expect("it is still there");
    }
    // Where those servers have them.
    let other = folder.0.join("appendonlydir");
    fs::create_dir_all(&other).expect("a folder");
    for path in [
        folder.0.join("appendonly.aof"),
        other.join("appendonly.aof.1.incr.aof"),
    ] {
        fs::write(&path, b"something").expect("a file");
        let name = path.file_name().expect("a name").to_string_lossy();
        assert_says(&refused(folder.text()), &["log of another server", &name]);
        fs::remove_file(&path).expect("it is still there");
    }
    drop(start(folder.text()));
    // With a log of our own there, it is somebody's copy.
    fs::write(folder.0.join("appendonly.aof"), b"something").expect("a file");
    drop(start(folder.text()));
}

#[test]
fn a_log_that_lacks_a_file_is_refused_until_it_is_back() {
    let folder = hundred_keys("folder-lacks");
    let server = start(folder.text());
    let mut client = server.client();
    assert!(matches!(client.call(&["BGREWRITEAOF"]), Reply::Simple(_)));
    eventually("a base is written", || {
        (client.info("persistence", "aof_rewrites") == "1").then_some(())
    });
    client.call(&["SET", "k100", "v"]);
    kill(server);
    // One more segment.
    kill(start(folder.text()));
    for path in (files(&folder, "").iter()).filter(|path| !path.ends_with("lock")) {
        let name = path.file_name().expect("a name").to_string_lossy();
        let aside = folder.0.join("aside");
        fs::rename(path, &aside).expect("a file");
        assert_says(&refused(folder.text()), &[folder.text(), &name]);
        fs::rename(&aside, path).expect("a file");
    }
    let newest = files(&folder, "segment").pop().expect("a segment");
    let bytes = fs::read(&newest).expect("a file");
    fs::write(&newest, b"").expect("a file");
    let name = newest.file_name().expect("a name").to_string_lossy();
    assert_says(&refused(folder.text()), &[folder.text(), &name]);
    fs::write(&newest, bytes).expect("a file");
    let server = start(folder.text());
    assert_eq!(server.client().call(&["DBSIZE"]), Reply::Integer(101));
}

/// A file system of its own.
struct Mount(Folder);

impl Mount {
    /// `None` where nothing may be mounted.
    fn new(name: &str, size: &str) -> Option<Self> {
        let folder = Folder::new(name);
        fs::create_dir_all(&folder.0).expect("a folder");
        let size = format!("size={size}");
        match mount(&["-t", "tmpfs", "-o", &size, "tidewheel", folder.text()]) {
            true => Some(Self(folder)),
            false => {
                skip("no file system can be mounted");
                None
            }
        }
    }

    fn set_read_only(&self, is: bool) {
        let how = if is { "remount,ro" } else { "remount,rw" };
        assert!(mount(&["-o", how, self.0.text()]), "{how}");
    }
}

fn mount(arguments: &[&str]) -> bool {
    Command::new("mount")
        .args(arguments)
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

impl Drop for Mount {
    fn drop(&mut self) {
        // Lazily: a server may just be about to end.
        let _ = Command::new("umount").arg("-l").arg(&self.0.0).status();
    }
}

#[test]
fn a_log_that_cannot_be_written_is_refused() {
    let Some(mount) = Mount::new("folder-read-only", "4m") else {
        return;
    };
    let folder = mount.0.text();
    let server = start(folder);
    assert_eq!(server.client().call(&["SET", "tea", "hot"]), ok());
    kill(server);
    mount.set_read_only(true);
    let said = refused(folder);
    assert_says(&said, &[folder]);
    let times = said.matches("Read-only file system").count();
    assert_eq!(times, 1, "{said}");
    assert!(!said.contains("repair"), "nothing is damaged: {said}");
    mount.set_read_only(false);
    let server = start(folder);
    assert_eq!(server.client().call(&["GET", "tea"]), bulk("hot"));
}

#[test]
fn while_the_disk_is_full_changes_are_refused_and_reads_go_on() {
    let Some(mut disk) = FullDisk::new("everysec") else {
        return;
    };
    for round in 0..3 {
        disk.write(round);
        disk.fill();
        let refusal = eventually("changes are refused", || {
            let key = format!("full:{round}");
            match disk.server.client().call(&["SET", &key, "v"]) {
                Reply::Error(why) => Some(why),
                // The log has not noticed yet: it keeps that until there is room.
                _ => {
                    disk.acknowledged.push(key);
                    None
                }
            }
        });
        assert!(refusal.starts_with("MISCONF"), "{refusal}");
        let mut reader = disk.server.client();
        for key in &disk.acknowledged {
            assert_eq!(reader.call(&["EXISTS", key]), Reply::Integer(1), "{key}");
        }
        // It lacks what was acknowledged last.
        for command in [&["SHUTDOWN"][..], &["SHUTDOWN", "SAVE"]] {
            let refusal = reader.call(command);
            assert!(
                matches!(&refusal, Reply::Error(why) if why.contains("the log")),
                "{refusal:?}"
            );
        }
        if round == 1 {
            assert_waitaof_waits(&disk.server);
            assert_refused_as_elsewhere(&disk.server);
        }
        if round == 2 {
            disk.server.signal(Signal::TERM);
            disk.server.logged("the server goes on");
        }
        disk.remove_ballast();
        disk.expect_room(round);
    }
    disk.check();
}

/// What the public servers refuse then is refused, and the rest is not.
fn assert_refused_as_elsewhere(server: &Server) {
    let mut client = server.client();
    let writes = "return redis.call('SET', 'k', 'v')";
    for (words, is_refused) in [
        (&["PUBLISH", "channel", "word"][..], false),
        (&["SPUBLISH", "channel", "word"], false),
        (&["PFCOUNT", "nothing"], false),
        (&["EVAL", "return redis.call('GET', 'k')", "0"], false),
        (&["EVAL", "#!lua flags=no-writes\nreturn 1", "0"], false),
        (&["EVAL", "#!lua\nreturn 1", "0"], true),
        (&["EVAL", writes, "0"], true),
        (&["BLPOP", "nothing", "0.1"], true),
        (&["EXPIRE", "nothing", "10"], true),
        (&["PING"], true),
        (&["MULTI"], false),
        (&["PUBLISH", "channel", "word"], false),
        (&["EVAL", "return 1", "0"], false),
        (&["EXEC"], false),
        (&["MULTI"], false),
        (&["SET", "k", "v"], true),
        (&["DISCARD"], false),
    ] {
        let reply = client.call(words);
        let why = match &reply {
            Reply::Error(why) => why.starts_with("MISCONF"),
            _ => false,
        };
        assert_eq!(why, is_refused, "{words:?}: {reply:?}");
    }
}

/// WAITAOF waits for its time, and who waits holds up nobody.
fn assert_waitaof_waits(server: &Server) {
    let mut client = server.client();
    let none = Reply::Array(vec![Reply::Integer(0), Reply::Integer(0)]);
    let began = now();
    assert_eq!(client.call(&["WAITAOF", "1", "0", "200"]), none);
    assert!(began.elapsed() >= Duration::from_millis(199));
    assert_eq!(client.call(&["WAITAOF", "0", "0", "0"]), none);
    // Who leaves while it waits is gone at once.
    server.client().send(b"WAITAOF 1 0 0\r\n");
    eventually("it is gone", || {
        let list = client.call(&["CLIENT", "LIST"]);
        matches!(list, Reply::Bulk(list) if !String::from_utf8_lossy(&list).contains("waitaof"))
            .then_some(())
    });
    // The replies of others that are asked for meanwhile are in their order.
    client.send(b"WAITAOF 1 0 100\r\nECHO after\r\n");
    assert_eq!(client.read(), none);
    assert_eq!(client.read(), bulk("after"));
}

/// Whoever would see a change that is not on disk waits, and that is everybody.
#[test]
fn with_always_changes_wait_while_the_disk_is_full_and_reads_go_on() {
    let Some(mut disk) = FullDisk::new("always") else {
        return;
    };
    for round in 0..3 {
        disk.write(round);
        disk.fill();
        let mut waiting = Vec::new();
        for i in 0..4 {
            let key = format!("full:{round}:{i}");
            let mut client = disk.server.client();
            let reply = ask(&mut client, &["SET", &key, &"v".repeat(5_000)]);
            match reply {
                None => waiting.push((client, key)),
                // It came after the log had noticed.
                Some(Reply::Error(why)) => assert!(why.starts_with("MISCONF"), "{why}"),
                Some(other) => panic!("{other:?}: it could be lost"),
            }
        }
        disk.server.logged("the log cannot be written");
        // Who has changed nothing is answered.
        let mut reader = disk.server.client();
        assert!(matches!(reader.call(&["GET", "no such key"]), Reply::Null));
        assert!(
            matches!(reader.call(&["SET", "k", "v"]), Reply::Error(why) if why.starts_with("MISCONF"))
        );
        if round == 2 {
            // They were changed while the policy was another one.
            let change = ["CONFIG", "SET", "appendfsync", "everysec"];
            assert_eq!(reader.call(&change), ok());
            for (client, key) in &mut waiting {
                assert!(client.is_silent(), "{key} is not on disk");
            }
        }
        disk.remove_ballast();
        // Nothing else happens meanwhile that could have a loop look at them.
        for (mut client, key) in waiting {
            assert_eq!(client.read(), ok());
            disk.acknowledged.push(key);
        }
        disk.expect_room(round);
    }
    disk.check();
}

/// A server whose disk is full at times.
struct FullDisk {
    server: Server,
    mount: Mount,
    acknowledged: Vec<String>,
}

impl FullDisk {
    fn new(policy: &str) -> Option<Self> {
        let mount = Mount::new(&format!("folder-full-{policy}"), "4m")?;
        let mut flags = flags(mount.0.text());
        *flags.last_mut().expect("a policy") = policy;
        Some(Self {
            server: Server::start_logged(&flags),
            mount,
            acknowledged: Vec::new(),
        })
    }

    fn ballast(&self) -> PathBuf {
        self.mount.0.0.join("ballast")
    }

    fn write(&mut self, round: u64) {
        let mut client = self.server.client();
        for i in 0..20 {
            let key = format!("before:{round}:{i}");
            assert_eq!(client.call(&["SET", &key, &"v".repeat(1_000)]), ok());
            self.acknowledged.push(key);
        }
    }

    fn fill(&self) {
        let mut file = fs::File::create(self.ballast()).expect("a file");
        while file.write_all(&[0; 4096]).is_ok() {}
    }

    fn remove_ballast(&self) {
        fs::remove_file(self.ballast()).expect("a file");
    }

    /// Changes are accepted again, and reach the disk.
    fn expect_room(&mut self, round: u64) {
        let key = format!("after:{round}");
        let mut client = self.server.client();
        eventually("changes are accepted again", || {
            let reply = client.call(&["SET", &key, "v"]);
            (!matches!(reply, Reply::Error(_))).then_some(())
        });
        let synced = Reply::Array(vec![Reply::Integer(1), Reply::Integer(0)]);
        assert_eq!(client.call(&["WAITAOF", "1", "0", "0"]), synced);
        self.acknowledged.push(key);
    }

    /// Kills the server, and looks whether all is there.
    fn check(self) {
        kill(self.server);
        let server = start(self.mount.0.text());
        let mut client = server.client();
        for key in &self.acknowledged {
            assert_eq!(client.call(&["EXISTS", key]), Reply::Integer(1), "{key}");
        }
    }
}

/// Sends a command, and waits for a moment.
fn ask(client: &mut Client, words: &[&str]) -> Option<Reply> {
    client.send(&command(words));
    let stream = &client.stream;
    let moment = Duration::from_millis(200);
    stream.set_read_timeout(Some(moment)).expect("a socket");
    let is_there = stream.peek(&mut [0]).is_ok();
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
    is_there.then(|| client.read())
}
