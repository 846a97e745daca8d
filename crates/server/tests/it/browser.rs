//! A browser without a window, asked over its DevTools protocol.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::common::{Folder, PATIENCE};

/// A page in a browser. The browser ends with it.
pub(crate) struct Browser {
    program: Child,
    socket: BufReader<TcpStream>,
    calls: u64,
    /// What the page has written to the console, errors and refusals included.
    pub(crate) console: Vec<String>,
    _folder: Folder,
}

impl Drop for Browser {
    fn drop(&mut self) {
        // It may have ended already.
        drop(self.program.kill());
        drop(self.program.wait());
    }
}

impl Browser {
    /// Opens the page at this port.
    pub(crate) fn open(http: u16) -> Self {
        let folder = Folder::new(&format!("browser-{http}"));
        let mut program = Command::new("chromium")
            .args("--headless=new --no-sandbox --disable-gpu --remote-debugging-port=0".split(' '))
            .arg(format!("--user-data-dir={}", folder.text()))
            .arg("about:blank")
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("chromium starts");
        let said = BufReader::new(program.stderr.take().expect("a pipe"));
        let mut lines = said.lines().map(|line| line.expect("text"));
        let line = lines.find(|line| line.contains("ws://")).expect("its port");
        let mut port = line.split(['/', ':']).filter_map(|part| part.parse().ok());
        let port: u16 = port.next_back().expect("a port");
        // It goes on speaking, and must not wait for a reader.
        std::thread::spawn(move || lines.for_each(drop));
        let page = page_of(port);
        let mut browser = Self {
            program,
            socket: upgraded(port, &page),
            calls: 0,
            console: Vec::new(),
            _folder: folder,
        };
        for domain in ["Runtime", "Log", "Page"] {
            browser.call(&format!("{domain}.enable"), &json!({}));
        }
        let url = format!("http://127.0.0.1:{http}/");
        browser.call("Page.navigate", &json!({ "url": url }));
        browser
    }

    /// The value of an expression in the page.
    pub(crate) fn value(&mut self, expression: &str) -> Value {
        let asked =
            json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let reply = self.call("Runtime.evaluate", &asked);
        reply["result"]["result"]["value"].clone()
    }

    /// Calls a method of the protocol.
    fn call(&mut self, method: &str, params: &Value) -> Value {
        self.calls += 1;
        let call = json!({ "id": self.calls, "method": method, "params": params }).to_string();
        // A text of more than 125 bytes, masked with zeros.
        let length = u16::try_from(call.len()).expect("a short call");
        let mut frame = vec![0x81, 0x80 | 126];
        frame.extend(length.to_be_bytes());
        frame.extend([0; 4]);
        frame.extend(call.as_bytes());
        self.socket.get_mut().write_all(&frame).expect("it reads");
        loop {
            let message = self.message();
            if message["id"] == self.calls {
                return message;
            }
            let event = message["method"].as_str().unwrap_or_default();
            let told = [
                "Runtime.consoleAPICalled",
                "Runtime.exceptionThrown",
                "Log.entryAdded",
            ];
            if told.contains(&event) {
                self.console.push(message["params"].to_string());
            }
        }
    }

    fn message(&mut self) -> Value {
        let mut head = [0; 2];
        self.socket.read_exact(&mut head).expect("a frame");
        let length = match head[1] {
            126 => self.bytes(2),
            127 => self.bytes(8),
            short => vec![short],
        };
        let length = length
            .iter()
            .fold(0, |sum, byte| sum << 8 | usize::from(*byte));
        serde_json::from_slice(&self.bytes(length)).expect("a message")
    }

    fn bytes(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.socket
            .read_exact(&mut bytes)
            .expect("the rest of a frame");
        bytes
    }
}

/// The path by which the browser's page is spoken to.
fn page_of(port: u16) -> String {
    let request =
        format!("GET /json HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n");
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut reply = String::new();
    // It does not close.
    let mut buffer = [0; 4096];
    let targets: Value = loop {
        let read = stream.read(&mut buffer).expect("it answers");
        write!(reply, "{}", String::from_utf8_lossy(&buffer[..read])).expect("a String");
        let body = reply.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        if let Ok(targets) = serde_json::from_str(body) {
            break targets;
        }
        assert!(read > 0, "{reply}");
    };
    let mut pages = targets.as_array().expect("a list").iter();
    let page = pages.rfind(|of| of["type"] == "page").expect("a page");
    let url = page["webSocketDebuggerUrl"].as_str().expect("an address");
    url[url.find("/devtools").expect("a path")..].to_owned()
}

/// Opens a WebSocket.
fn upgraded(port: u16, path: &str) -> BufReader<TcpStream> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut socket = BufReader::new(stream);
    let mut line = String::new();
    socket.read_line(&mut line).expect("a line");
    assert!(line.contains(" 101 "), "{line}");
    while line.trim() != "" {
        line.clear();
        socket.read_line(&mut line).expect("a line");
    }
    socket
}
