//! This stands in for TLS where the feature `tls` is off.

use std::io;

use tokio::net::TcpStream;

/// There is none.
#[derive(Clone)]
pub(super) enum Tls {}

impl Tls {
    pub(super) fn of_system() -> Result<Self, String> {
        Err("the feature `tls` is off".into())
    }

    pub(super) async fn secure(&self, _: &str, _: TcpStream) -> io::Result<TcpStream> {
        match *self {}
    }
}
