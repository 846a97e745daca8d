//! A lock, a limit and a queue on the server, without a script. Run it beside the server:
//! `cargo run -p tidewheel-tier --features valkey --example locks_limits_queues -- URL`.

use redis::{RedisResult, Value, cmd};

fn main() -> RedisResult<()> {
    let url = std::env::args().nth(1).expect("the server's URL");
    let mut client = redis::Client::open(url)?.get_connection()?;
    let mut call = |line: &str| -> RedisResult<Value> {
        let mut words = line.split(' ');
        let mut call = cmd(words.next().unwrap_or_default());
        call.arg(words.collect::<Vec<_>>()).query(&mut client)
    };

    // A lock. The token is a random value that nobody else has.
    let token = "8f2c6b1e";
    let taken = call(&format!("SET lock:report {token} NX PX 30000"))?;
    if taken == Value::Okay {
        println!("the report is made by one alone");
        call(&format!("SET lock:report {token} IFEQ {token} PX 30000"))?;
        call(&format!("DELIFEQ lock:report {token}"))?;
    }

    // A limit: two a minute, two at once. The first of the five integers is 0 for those who pass.
    for _ in 0..3 {
        println!("{:?}", call("CL.THROTTLE user:7 1 2 60")?);
    }

    // A queue with a worker that takes entries and says what is done.
    call("XGROUP CREATE mails senders 0 MKSTREAM").ok();
    call("XADD mails * to ada")?;
    println!(
        "{:?}",
        call("XREADGROUP GROUP senders one COUNT 1 STREAMS mails >")?
    );
    println!("{:?}", call("XAUTOCLAIM mails senders one 0 0")?);
    Ok(())
}
