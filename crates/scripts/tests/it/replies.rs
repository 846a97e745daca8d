//! The replies of many small scripts are those of Redis 8.2, byte by byte, in both protocols.
//!
//! `replies.txt` has them: a script behind `>` (a `¶` in it is a line end), the reply to a client
//! of RESP2 behind `2`, that to a client of RESP3 behind `3` if it is another one.

use tidewheel_resp::Protocol;
use tidewheel_scripts::{Engine, Limits};

use crate::host::{Fake, run};

#[test]
fn scripts_answer_as_on_redis() {
    let mut engine = Engine::new(Limits::default()).unwrap();
    let mut wrong = Vec::new();
    let cases = include_str!("replies.txt").split("\n> ").skip(1);
    let mut count = 0;
    for case in cases {
        let mut lines = case.lines();
        let script = lines.next().unwrap();
        let body = script.replace('¶', "\n");
        let resp2 = lines.next().unwrap().strip_prefix("2 ").unwrap();
        let resp3 = lines
            .next()
            .and_then(|line| line.strip_prefix("3 "))
            .unwrap_or(resp2);
        for (protocol, expected) in [(Protocol::Resp2, resp2), (Protocol::Resp3, resp3)] {
            let reply = run(&mut engine, &mut Fake::default(), body.as_bytes(), protocol);
            let reply = reply.escape_ascii().to_string();
            if reply != expected {
                wrong.push(format!(
                    "{script}\n  got      {reply}\n  expected {expected}"
                ));
            }
            count += 1;
        }
    }
    assert!(count > 400, "{count}");
    assert!(
        wrong.is_empty(),
        "{} of {count}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
