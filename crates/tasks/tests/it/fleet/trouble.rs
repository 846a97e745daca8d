//! Faults of a fleet: nodes and workers are killed, paused and stopped.

use std::time::Duration;

use tidewheel_engines::{Nats, Postgres};

use super::child::{Child, LEASE};
use super::report::{Report, Silence};
use super::{Load, now};

fn wait(time: Duration) {
    std::thread::sleep(time);
}

/// A node ends, and comes back after a while.
fn kill(nats: &mut Nats, node: usize, away: Duration) {
    println!("node {node} is killed at {}", now());
    nats.nodes[node].kill();
    wait(away);
    nats.nodes[node].restart();
    nats.wait_ready();
}

fn kill_worker(fleet: &mut [Child], number: usize, report: &mut Report) {
    println!("worker {number} is killed at {}", now());
    let log = fleet[number].log();
    fleet[number].kill();
    let from = now();
    report.silences.push(Silence { log, from });
    wait(Duration::from_millis(300));
    fleet[number].restart();
}

/// Some time after the first tasks are due.
fn begin(report: &Report, after: Duration) {
    wait(report.first.plus(after).since(now()));
}

pub(super) fn one_node(nats: &mut Nats, fleet: &mut [Child], report: &mut Report) {
    begin(report, Duration::from_secs(2));
    kill(nats, 0, Duration::from_secs(1));
    kill_worker(fleet, 3, report);
}

pub(super) fn each_node(nats: &mut Nats, fleet: &mut [Child], report: &mut Report) {
    begin(report, Duration::from_secs(5));
    for node in 0..3 {
        kill(nats, node, Duration::from_secs(3));
        wait(Duration::from_secs(4));
        if node < 2 {
            kill_worker(fleet, node * 2 + 1, report);
        }
    }
}

pub(super) fn restarts(
    postgres: &mut Postgres,
    fleet: &mut [Child],
    load: Load,
    report: &mut Report,
) {
    begin(report, Duration::from_secs(1));
    println!("Postgres is cut off at {}", now());
    postgres.restart_immediately();
    wait(load.over / 20);
    println!("worker 2 is stopped at {}", now());
    let log = fleet[2].log();
    fleet[2].signal("-STOP");
    let from = now();
    wait(LEASE + Duration::from_secs(2));
    fleet[2].signal("-CONT");
    report.silences.push(Silence { log, from });
    println!("worker 2 goes on at {}", now());
    kill_worker(fleet, 1, report);
    wait(load.over / 10);
    println!("Postgres is cut off at {}", now());
    postgres.restart_immediately();
}
