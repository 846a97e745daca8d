//! The limit of open files, and a log that nobody reads.

use std::process::{Command, Stdio};

use rustix::process::Signal;

use crate::common::{Client, Server, error, eventually, ok, program, simple, text};

/// The program under a limit of open files.
fn limited(files: usize, flags: &[&str]) -> Command {
    let program = program(flags);
    let mut command = Command::new("sh");
    command
        .args(["-c", &format!("ulimit -n {files} && exec \"$0\" \"$@\"")])
        .arg(program.get_program())
        .args(program.get_args());
    command
}

fn is_served(client: &mut Client) -> bool {
    client.call(&["PING"]) == simple("PONG")
}

#[test]
fn with_few_open_files_the_start_fails_clearly_or_as_many_are_served_as_it_says() {
    let mut served = Vec::new();
    for files in [4, 8, 12, 16, 20, 24, 32, 64] {
        let ended = limited(files, &["--check-config"]).output();
        if !ended.is_ok_and(|output| output.status.success()) {
            // The program cannot even be loaded.
            assert!(files < 8, "{files}");
            continue;
        }
        let mut probe = limited(files, &[]);
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
        serve_as_many_as_it_says(&Server::run(limited(files, &[]).stderr(Stdio::null())));
        served.push(files);
    }
    assert!(served.contains(&64) && !served.contains(&16), "{served:?}");
}

fn serve_as_many_as_it_says(server: &Server) {
    let mut boss = server.client();
    let most: usize = boss
        .info("clients", "maxclients")
        .parse()
        .expect("a number");
    let mut clients: Vec<Client> = (1..most).map(|_| server.client()).collect();
    assert!(clients.iter_mut().all(is_served), "{most} clients");
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
