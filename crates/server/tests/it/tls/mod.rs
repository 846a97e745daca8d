//! TLS, as clients see it.

mod certificates;
mod hostile;

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, SanType};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::common::{
    Client, Folder, PATIENCE, Reply, Server, command, eventually, have, now, ok, program, simple,
    text,
};
use crate::top;

/// Certificates in a folder of their own.
struct Files {
    folder: Folder,
    authority: CertifiedIssuer<'static, KeyPair>,
}

impl Files {
    fn new(name: &str) -> Self {
        let folder = Folder::new(&format!("tls-{name}"));
        fs::create_dir_all(&folder.0).expect("a folder");
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params
            .distinguished_name
            .push(DnType::CommonName, "an authority");
        let key = KeyPair::generate().expect("a key");
        let authority = CertifiedIssuer::self_signed(params, key).expect("an authority");
        let files = Self { folder, authority };
        fs::write(files.path("ca.crt"), files.authority.pem()).expect("a file");
        files.make("server");
        files.make("client");
        files
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.0.join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    /// Makes a new certificate and its key.
    fn make(&self, name: &str) {
        self.make_for(name, name);
    }

    /// Makes a certificate for somebody of that common name, with two URIs.
    fn make_for(&self, file: &str, name: &str) {
        self.make_with(file, name, |_| {});
    }

    /// The same; `change` sees what it will say.
    fn make_with(&self, file: &str, name: &str, change: impl FnOnce(&mut CertificateParams)) {
        let key = KeyPair::generate().expect("a key");
        let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
        let mut params = CertificateParams::new(names).expect("names");
        params.distinguished_name.push(DnType::CommonName, name);
        for uri in ["urn:first", "urn:second"] {
            let uri = SanType::URI(uri.try_into().expect("a URI"));
            params.subject_alt_names.push(uri);
        }
        change(&mut params);
        let made = params
            .signed_by(&key, &self.authority)
            .expect("a certificate");
        fs::write(self.path(&format!("{file}.crt")), made.pem()).expect("a file");
        fs::write(self.path(&format!("{file}.key")), key.serialize_pem()).expect("a file");
    }

    /// The flags of a server that speaks TLS at any free port, and nothing else.
    fn flags(&self) -> Vec<String> {
        let words = [
            "--port",
            "0",
            "--tls-port",
            "any",
            "--tls-auth-clients",
            "no",
        ];
        let mut flags: Vec<String> = words.map(str::to_owned).into();
        for (flag, file) in [
            ("--tls-cert-file", "server.crt"),
            ("--tls-key-file", "server.key"),
            ("--tls-ca-cert-file", "ca.crt"),
        ] {
            flags.extend([flag.to_owned(), self.text(file)]);
        }
        flags
    }

    fn server(&self, more: &[&str]) -> Server {
        let flags = self.flags();
        let mut all: Vec<&str> = flags.iter().map(String::as_str).collect();
        all.extend(more);
        Server::start_logged(&all)
    }

    fn client_config(
        &self,
        versions: &[&'static rustls::SupportedProtocolVersion],
        certificate: bool,
    ) -> Arc<ClientConfig> {
        let mut roots = RootCertStore::empty();
        roots
            .add(self.authority.der().clone())
            .expect("an authority");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)
            .expect("versions")
            .with_root_certificates(roots);
        Arc::new(match certificate {
            false => config.with_no_client_auth(),
            true => {
                let chain = CertificateDer::from_pem_file(self.path("client.crt"));
                let key = PrivateKeyDer::from_pem_file(self.path("client.key"));
                config
                    .with_client_auth_cert(vec![chain.expect("made")], key.expect("made"))
                    .expect("a certificate")
            }
        })
    }

    fn connect(&self, port: u16) -> TlsClient {
        TlsClient::connect(port, self.client_config(BOTH, false))
    }
}

const BOTH: &[&rustls::SupportedProtocolVersion] =
    &[&rustls::version::TLS13, &rustls::version::TLS12];

/// A client that speaks TLS.
struct TlsClient {
    stream: StreamOwned<ClientConnection, TcpStream>,
    buffer: Vec<u8>,
}

fn socket(port: u16) -> TcpStream {
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    let socket = TcpStream::connect(address).expect("the server accepts");
    socket.set_nodelay(true).expect("a socket");
    socket.set_read_timeout(Some(PATIENCE)).expect("a socket");
    socket.set_write_timeout(Some(PATIENCE)).expect("a socket");
    socket
}

impl TlsClient {
    fn connect(port: u16, config: Arc<ClientConfig>) -> Self {
        let name = ServerName::try_from("localhost").expect("a name");
        let session = ClientConnection::new(config, name).expect("a session");
        Self {
            stream: StreamOwned::new(session, socket(port)),
            buffer: Vec::new(),
        }
    }

    fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("the server reads");
    }

    fn call(&mut self, words: &[&str]) -> Reply {
        self.send(&command(words));
        self.read()
    }

    fn read(&mut self) -> Reply {
        self.try_read().expect("a reply")
    }

    fn try_read(&mut self) -> std::io::Result<Reply> {
        let mut chunk = vec![0; 64 << 10];
        loop {
            if let Some((reply, used)) = Reply::read(&self.buffer).expect("well-formed replies") {
                self.buffer.drain(..used);
                return Ok(reply);
            }
            match self.stream.read(&mut chunk)? {
                0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
                n => self.buffer.extend_from_slice(&chunk[..n]),
            }
        }
    }

    /// Reads until the server has said goodbye.
    fn read_to_end(&mut self) -> Vec<u8> {
        let mut all = std::mem::take(&mut self.buffer);
        self.stream.read_to_end(&mut all).expect("a goodbye");
        all
    }

    fn info(&mut self, section: &str, field: &str) -> u64 {
        let info = text(&self.call(&["INFO", section]));
        let prefix = format!("{field}:");
        let value = info.lines().find_map(|line| line.strip_prefix(&prefix));
        value.expect("the field").parse().expect("a number")
    }

    /// The certificate that the server has shown.
    fn certificate(&self) -> Vec<u8> {
        let shown = self.stream.conn.peer_certificates().expect("one");
        shown[0].to_vec()
    }
}

#[test]
fn commands_and_replies_of_any_length_travel_by_both_versions() {
    let files = Files::new("lengths");
    let server = files.server(&[]);
    for version in BOTH {
        let config = files.client_config(&[*version], false);
        let mut client = TlsClient::connect(server.port, config);
        assert_eq!(client.call(&["PING"]), simple("PONG"));
        for len in [
            0, 1, 16_383, 16_384, 16_385, 65_535, 65_536, 300_000, 3_000_000,
        ] {
            let value = "v".repeat(len);
            assert_eq!(client.call(&["SET", "key", &value]), ok(), "{len}");
            assert_eq!(text(&client.call(&["GET", "key"])), value, "{len}");
        }
        let line = text(&client.call(&["CLIENT", "LIST"]));
        let is = format!("{:?}", version.version).replace("TLSv1_", "TLSv1.");
        assert!(line.contains(&format!(" tls={is}")), "{line}");
        assert_eq!(client.info("clients", "tls_clients"), 1);
    }
}

/// A burst is longer than what one read of the socket takes.
#[test]
fn a_long_pipeline_is_answered_to_its_end() {
    let files = Files::new("pipeline");
    let server = files.server(&[]);
    let mut client = files.connect(server.port);
    for count in [10, 1_000, 20_000] {
        client.send(&command(&["PING"]).repeat(count));
        for _ in 0..count {
            assert_eq!(client.read(), simple("PONG"));
        }
    }
}

/// A slow reader's socket is full again and again: sealed bytes wait, and leave in the end.
#[test]
fn a_reply_that_is_read_late_arrives_whole() {
    let files = Files::new("late");
    let server = files.server(&[]);
    let mut client = files.connect(server.port);
    let value = "v".repeat(5_000_000);
    assert_eq!(client.call(&["SET", "key", &value]), ok());
    client.send(&command(&["GET", "key"]).repeat(4));
    let mut other = files.connect(server.port);
    eventually("the socket is full", || {
        let list = text(&other.call(&["CLIENT", "LIST"]));
        let mut held = list.lines().filter(|line| !line.contains(" omem=0 "));
        held.next().map(str::to_owned)
    });
    for _ in 0..4 {
        assert_eq!(text(&client.read()).len(), value.len());
    }
    assert_eq!(client.call(&["PING"]), simple("PONG"));
}

#[test]
fn a_client_that_says_goodbye_gets_its_replies_and_a_goodbye() {
    let files = Files::new("goodbye");
    let server = files.server(&[]);
    for version in BOTH {
        let config = files.client_config(&[*version], false);
        let mut client = TlsClient::connect(server.port, Arc::clone(&config));
        client.send(&[command(&["PING"]), command(&["ECHO", "tea"])].concat());
        client.stream.conn.send_close_notify();
        client.stream.flush().expect("the server reads");
        assert_eq!(client.read_to_end(), b"+PONG\r\n$3\r\ntea\r\n");
        // Without the word, only the socket is closed.
        let mut client = TlsClient::connect(server.port, config);
        client.send(&command(&["PING"]));
        let socket = &client.stream.sock;
        socket
            .shutdown(std::net::Shutdown::Write)
            .expect("a socket");
        assert_eq!(client.read_to_end(), b"+PONG\r\n");
    }
    let mut client = files.connect(server.port);
    assert_eq!(client.call(&["QUIT"]), ok());
    assert_eq!(client.read_to_end(), b"");
}

/// The third trap: handshakes in the loop would wait for it, and it for them.
#[test]
fn a_handshake_is_done_while_the_only_loop_is_busy() {
    let files = Files::new("busy");
    let server = files.server(&["--threads", "1", "--enable-debug-command", "yes"]);
    let mut busy = files.connect(server.port);
    assert_eq!(busy.call(&["PING"]), simple("PONG"));
    let began = now();
    busy.send(&command(&["DEBUG", "SLEEP", "2"]));
    let mut client = files.connect(server.port);
    while client.stream.conn.is_handshaking() {
        let stream = &mut client.stream;
        stream
            .conn
            .complete_io(&mut stream.sock)
            .expect("a handshake");
    }
    assert!(began.elapsed() < Duration::from_millis(1_500));
    assert_eq!(client.call(&["PING"]), simple("PONG"));
}

#[test]
fn a_client_without_tls_is_told_so_and_one_with_tls_at_the_plain_port_is_logged() {
    let files = Files::new("mixed");
    let server = files.server(&["--port", "any"]);
    let plain = server.port;
    let mut boss = server.client();
    let info = text(&boss.call(&["INFO", "server"]));
    let tls = info
        .lines()
        .find(|line| line.starts_with("listener1:name=tls"));
    let bind = format!("listener0:name=tcp,bind=127.0.0.1,port={plain}\r\n");
    assert!(info.contains(&bind), "{info}");
    let (_, tls) = tls.expect("a listener").rsplit_once('=').expect("a port");
    let tls: u16 = tls.parse().expect("a number");
    let mut client = Client::connect(tls);
    client.send(&command(&["SET", "stolen", "yes"]));
    let answer = String::from_utf8(client.read_to_end()).expect("text");
    assert!(answer.starts_with("-ERR this port is for TLS"), "{answer}");
    server.logged("speaks without TLS at the port for TLS");
    let config = files.client_config(BOTH, false);
    let mut client = TlsClient::connect(plain, config);
    assert!(client.stream.write_all(b"PING\r\n").is_err());
    server.logged("it speaks TLS");
    assert_eq!(boss.call(&["EXISTS", "stolen"]), Reply::Integer(0));
    assert_eq!(files.connect(tls).call(&["PING"]), simple("PONG"));
}

/// A certificate as OpenSSL 3.0 makes it where no extension is asked for.
const OF_VERSION_1: &str = "\
-----BEGIN CERTIFICATE-----
MIIBGDCBvwIUOB5s1+P+LBicf+nbMeXTkYPKxYQwCgYIKoZIzj0EAwIwDjEMMAoG
A1UEAwwDb2xkMCAXDTI2MTEzMDA5MzMyNVoYDzIxMjYxMTA2MDkzMzI1WjAOMQww
CgYDVQQDDANvbGQwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAARILN7zyDGs4kET
b9xLUZSp1CkTtoRj9EpFiGbEZ4h9Ik+vVgY5g2SiXcHcBkkNpX0NTurXPOrV201w
JKgJontRMAoGCCqGSM49BAMCA0gAMEUCIQCGtapwh66sETal9WHUPqKRdXs6vXV2
i2vETZTk1tzjegIgBGfdc09NCMTJ/v45JoOmthHkU5GadvxiVgNFVJwz3hc=
-----END CERTIFICATE-----
";

#[test]
fn what_is_missing_or_unknown_is_named_at_the_start() {
    let files = Files::new("start");
    let pem = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMA==\n-----END ENCRYPTED PRIVATE KEY-----\n";
    fs::write(files.path("locked.key"), pem).expect("a file");
    let locked = files.text("locked.key");
    fs::write(files.path("old.crt"), OF_VERSION_1).expect("a file");
    let old = files.text("old.crt");
    for (flags, said) in [
        // It said no more than UnsupportedCertVersion.
        (vec!["--tls-cert-file", &old], "X.509 version 1 is not read"),
        (vec!["--tls-cert-file", ""], "set tls-cert-file"),
        (vec!["--tls-key-file", ""], "set tls-key-file"),
        (vec!["--tls-key-file", &locked], "has a password"),
        (vec!["--tls-key-file-pass", "secret"], "openssl pkey"),
        (
            vec!["--tls-auth-clients", "yes", "--tls-ca-cert-file", ""],
            "no authorities",
        ),
        (vec!["--tls-protocols", "TLSv1.1"], "TLSv1.1 is not secure"),
        (
            vec!["--tls-ciphersuites", "TLS_FAST"],
            "'TLS_FAST' is not there",
        ),
        (vec!["--tls-ciphers", "RC4-MD5"], "'RC4-MD5' is not there"),
        (vec!["--tls-port", "0"], "nothing to listen at"),
        (vec!["--tls-replication", "yes"], "no replication"),
    ] {
        let own = files.flags();
        let mut all: Vec<&str> = own.iter().map(String::as_str).collect();
        all.extend(flags);
        let output = program(&all)
            .stdin(Stdio::null())
            .output()
            .expect("it runs");
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && text.contains(said), "{text}");
        // Nobody has to start it to know. Without a port nobody reads the files of certificates.
        if !all.ends_with(&["--tls-port", "0"]) {
            all.push("--check-config");
            let checked = program(&all).output().expect("it runs");
            let text = String::from_utf8_lossy(&checked.stderr);
            assert_eq!(checked.status.code(), Some(2), "{all:?}: {text}");
            assert!(text.contains(said), "{all:?}: {text}");
        }
    }
    let right = [files.flags(), vec!["--check-config".to_owned()]].concat();
    let right: Vec<&str> = right.iter().map(String::as_str).collect();
    let checked = program(&right).output().expect("it runs");
    assert!(checked.status.success());
}

#[test]
fn versions_and_suites_are_those_of_the_settings() {
    let files = Files::new("suites");
    let server = files.server(&["--tls-protocols", "TLSv1.3"]);
    let (tls12, tls13) = (&[&rustls::version::TLS12], &[&rustls::version::TLS13]);
    let works = |version| {
        let mut client = TlsClient::connect(server.port, files.client_config(version, false));
        let works = client.stream.write_all(b"PING\r\n").is_ok();
        let suite = client.stream.conn.negotiated_cipher_suite();
        works.then(|| format!("{:?}", suite.expect("one").suite()))
    };
    assert_eq!(works(tls12), None);
    let suite = "TLS_CHACHA20_POLY1305_SHA256";
    let mut boss = files.connect(server.port);
    assert_eq!(
        boss.call(&["CONFIG", "SET", "tls-ciphersuites", suite]),
        ok()
    );
    assert_eq!(
        works(tls13).as_deref(),
        Some("TLS13_CHACHA20_POLY1305_SHA256")
    );
    let suite = "ECDHE-ECDSA-AES128-GCM-SHA256";
    let set = [
        "CONFIG",
        "SET",
        "tls-protocols",
        "TLSv1.2",
        "tls-ciphers",
        suite,
    ];
    assert_eq!(boss.call(&set), ok());
    assert_eq!(works(tls13), None);
    let found = works(tls12);
    assert_eq!(
        found.as_deref(),
        Some("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256")
    );
}

#[test]
fn messages_and_blocked_clients_are_served_by_tls() {
    let files = Files::new("messages");
    let server = files.server(&[]);
    let (mut one, mut two) = (files.connect(server.port), files.connect(server.port));
    one.send(&command(&["SUBSCRIBE", "news"]));
    one.read();
    let message = "m".repeat(200_000);
    assert_eq!(two.call(&["PUBLISH", "news", &message]), Reply::Integer(1));
    let Reply::Array(parts) = one.read() else {
        panic!("a message")
    };
    assert_eq!(text(&parts[2]), message);
    let mut three = files.connect(server.port);
    three.send(&command(&["BLPOP", "list", "0"]));
    eventually("it waits", || {
        (two.info("clients", "blocked_clients") == 1).then_some(())
    });
    assert_eq!(two.call(&["RPUSH", "list", "x"]), Reply::Integer(1));
    assert_eq!(three.read(), crate::common::array(&["list", "x"]));
}

/// Runs a client program, says this to it, and returns what it printed.
fn run(program: &str, arguments: &[&str], input: &str) -> String {
    let (mut child, stdin) = begin(program, arguments, input);
    drop(stdin);
    printed(&mut child)
}

fn begin(program: &str, arguments: &[&str], input: &str) -> (Child, ChildStdin) {
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut stdin = child.stdin.take().expect("piped");
    stdin.write_all(input.as_bytes()).expect("it reads");
    (child, stdin)
}

/// What a program prints until it ends.
fn printed(child: &mut Child) -> String {
    let mut text = String::new();
    let stdout = child.stdout.as_mut().expect("piped");
    stdout.read_to_string(&mut text).expect("text");
    let stderr = child.stderr.as_mut().expect("piped");
    stderr.read_to_string(&mut text).expect("text");
    child.wait().expect("it ends");
    text
}

#[test]
fn stock_clients_are_served() {
    let files = Files::new("stock");
    let server = files.server(&["--tls-auth-clients", "yes"]);
    let port = server.port.to_string();
    let [ca, certificate, key] = ["ca.crt", "client.crt", "client.key"].map(|f| files.text(f));
    if have("redis-cli", &["--tls", "--version"]) {
        let flags = [
            "--tls",
            "--cacert",
            &ca,
            "--cert",
            &certificate,
            "--key",
            &key,
            "-p",
            &port,
        ];
        let said = run(
            "redis-cli",
            &[&flags[..], &["SET", "tea", "hot"]].concat(),
            "",
        );
        assert_eq!(said, "OK\n");
        let said = run(
            "redis-cli",
            &["--tls", "--cacert", &ca, "-p", &port, "PING"],
            "",
        );
        assert!(!said.contains("PONG"), "{said}");
    }
    if have("openssl", &["version"]) {
        let address = format!("localhost:{port}");
        let own = [
            "s_client",
            "-connect",
            &address,
            "-CAfile",
            &ca,
            "-cert",
            &certificate,
        ];
        let own = [&own[..], &["-key", &key, "-quiet", "-verify_return_error"]].concat();
        for version in ["-tls1_2", "-tls1_3"] {
            let said = run(
                "openssl",
                &[&own[..], &[version]].concat(),
                "PING\r\nQUIT\r\n",
            );
            assert!(said.contains("+PONG\r\n+OK\r\n"), "{version}: {said}");
        }
        // `R` at the start of a line asks for new terms; with TLS 1.2 that was a way to attack.
        let asks = [&own[..9], &["-key", &key, "-tls1_2"]].concat();
        let (mut child, _open) = begin("openssl", &asks, "R\n");
        let said = printed(&mut child);
        assert!(
            said.contains("RENEGOTIATING") && said.contains("no renegotiation"),
            "{said}"
        );
        let said = run("openssl", &[&own[..], &["-tls1_1"]].concat(), "PING\r\n");
        assert!(!said.contains("PONG"), "{said}");
    }
    let mut client = TlsClient::connect(server.port, files.client_config(BOTH, true));
    assert_eq!(client.call(&["PING"]), simple("PONG"));
}

#[test]
fn top_speaks_tls_and_shows_its_certificate() {
    let files = Files::new("top");
    let server = files.server(&["--tls-auth-clients", "yes"]);
    let (port, ca) = (server.port.to_string(), files.text("ca.crt"));
    let (own, key) = (files.text("client.crt"), files.text("client.key"));
    let known = ["-p", &port, "--tls", "--cacert", &ca];
    let frame = top::once(
        &[&known[..], &["--cert", &own, "--key", &key]].concat(),
        &[],
    );
    let text = String::from_utf8_lossy(&frame.stdout).into_owned();
    assert!(text.contains("clients 1"), "{text} {frame:?}");
    let unknown = top::once(&["-p", &port, "--tls", "--cacert", &own], &[]);
    let why = String::from_utf8_lossy(&unknown.stderr).into_owned();
    assert!(why.contains("invalid peer certificate"), "{why}");
    let unread = top::once(&["-p", &port, "--tls", "--cacert", "nowhere"], &[]);
    let why = String::from_utf8_lossy(&unread.stderr).into_owned();
    assert!(why.contains("cannot read nowhere (--cacert)"), "{why}");
    // It said: unexpected end of file.
    let other = Server::start(&[]);
    let plain = other.port.to_string();
    let refused = top::once(&["-p", &plain, "--tls", "--cacert", &ca], &[]);
    let why = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(why.contains("is this its port for TLS?"), "{why}");
}
