//! The limit of open files, and a log that nobody reads.

use std::process::Stdio;

use rustix::process::Signal;

use crate::common::{
    Client, Folder, Reply, Server, error, eventually, limited, ok, program, simple, text,
};

fn is_served(client: &mut Client) -> bool {
    client.call(&["PING"]) == simple("PONG")
}

#[test]
fn with_few_open_files_the_start_fails_clearly_or_as_many_are_served_as_it_says() {
    let mut served = Vec::new();
    for files in [4, 8, 12, 16, 20, 24, 32, 64] {
        let limit = format!("-n {files}");
        let ended = limited(&limit, &["--check-config"]).output();
        if !ended.is_ok_and(|output| output.status.success()) {
            // The program cannot even be loaded.
            assert!(files < 8, "{files}");
            continue;
        }
        let mut probe = limited(&limit, &[]);
        let probe = probe.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut probe = probe.stderr(Stdio::piped()).spawn().expect("a shell");
        let mut first = String::new();
        let stdout = probe.stdout.as_mut().expect("piped");
        std::io::BufRead::read_line(&mut std::io::BufReader::new(stdout), &mut first)
            .expect("a line, or the end");
        drop(probe.kill());
        let output = probe.wait_with_output().expect("it has ended");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if first.is_empty() {
            assert_eq!(output.status.code(), Some(1), "{files}: {said}");
            let clear = said.contains("open files") && said.contains("ulimit -n");
            assert!(clear && said.lines().count() == 1, "{files}: {said}");
            continue;
        }
        assert!(
            said.contains("maxclients") && said.contains("ulimit -n"),
            "{files}: {said}"
        );
        serve_as_many_as_it_says(&Server::run(limited(&limit, &[]).stderr(Stdio::null())));
        served.push(files);
    }
    assert!(served.contains(&64) && !served.contains(&16), "{served:?}");
}

/// As many clients as there may be; the first is apart, and the others are one fewer.
fn all_clients(server: &Server) -> (Client, Vec<Client>) {
    let mut boss = server.client();
    let most = boss.info("clients", "maxclients");
    let most: usize = most.parse().expect("a number");
    let mut clients: Vec<Client> = (1..most).map(|_| server.client()).collect();
    assert!(clients.iter_mut().all(is_served), "{most} clients");
    (boss, clients)
}

fn serve_as_many_as_it_says(server: &Server) {
    let (mut boss, mut clients) = all_clients(server);
    let most = clients.len() + 1;
    for _ in 0..3 {
        let refused = error("ERR max number of clients reached");
        assert_eq!(server.client().read(), refused, "more than {most}");
    }
    assert_ne!(boss.info("memory", "used_memory_rss"), "0");
    assert!(is_served(&mut boss));
    if clients.pop().is_some() {
        eventually("a place is free again", || {
            let mut client = server.client();
            client.send(b"PING\r\n");
            (client.try_read() == Some(simple("PONG"))).then_some(())
        });
    }
    let more = (most + 1).to_string();
    let reply = text(&boss.call(&["CONFIG", "SET", "maxclients", &more]));
    assert!(reply.contains(&format!("try with {most}")), "{reply}");
    assert_eq!(boss.call(&["CONFIG", "SET", "maxclients", "1"]), ok());
}

/// The files of the log and of snapshots were not among those that the server keeps for itself.
/// With as many clients as it let in, a new base of the log failed, and changes were refused.
#[test]
fn with_as_many_clients_as_there_may_be_all_data_is_still_written() {
    let folder = Folder::new("few-files");
    let flags = ["--dir", folder.text(), "--appendonly", "yes"];
    let server = Server::run(limited("-n 40", &flags).stderr(Stdio::null()));
    let (mut boss, _clients) = all_clients(&server);
    assert_eq!(boss.call(&["SET", "tea", "hot"]), ok());
    assert_eq!(boss.call(&["SAVE"]), ok());
    for command in ["BGREWRITEAOF", "BGSAVE"] {
        let reply = boss.call(&[command]);
        assert!(matches!(reply, Reply::Simple(_)), "{command}: {reply:?}");
        let under_way = ["aof_rewrite_in_progress", "rdb_bgsave_in_progress"];
        eventually("it is written", || {
            let is_over = |field: &&str| boss.info("persistence", field) == "0";
            under_way.iter().all(is_over).then_some(())
        });
    }
    for status in [
        "rdb_last_bgsave_status",
        "aof_last_bgrewrite_status",
        "aof_last_write_status",
    ] {
        assert_eq!(boss.info("persistence", status), "ok", "{status}");
    }
    assert_eq!(boss.call(&["SET", "tea", "cold"]), ok());
}

/// The log's failure was itself reported to standard error, which panicked. Then the server did not
/// obey SIGTERM any more.
#[test]
fn a_server_whose_log_nobody_reads_serves_and_stops_as_ever() {
    let mut server = Server::run(program(&["--loglevel", "debug"]).stderr(Stdio::piped()));
    server.close_log();
    let mut client = server.client();
    for _ in 0..3 {
        let mut foreign = server.client();
        foreign.send(b"POST / HTTP/1.1\r\n");
        assert_eq!(foreign.try_read(), None);
        assert!(is_served(&mut client));
    }
    server.signal(Signal::TERM);
    assert_eq!(server.wait().code(), Some(0));
}

/// Each event loop waited for ever in its next line of the log, and the thread that waits for
/// signals too.
#[test]
fn a_server_whose_log_is_a_full_pipe_serves_and_says_later_what_was_lost() {
    let mut server = Server::run(program(&["--loglevel", "debug"]).stderr(Stdio::piped()));
    let mut client = server.client();
    let foreign = |server: &Server| {
        let mut foreign = server.client();
        foreign.send(b"POST / HTTP/1.1\r\n");
        assert_eq!(foreign.try_read(), None);
    };
    // A pipe takes 64 KiB.
    (0..600).for_each(|_| foreign(&server));
    assert!(is_served(&mut client));
    server.read_log();
    eventually("the log is read again", || {
        foreign(&server);
        let lost = server.logged_so_far("lines of the log were lost");
        (!lost.is_empty()).then_some(())
    });
    server.signal(Signal::TERM);
    assert_eq!(server.wait().code(), Some(0));
}
