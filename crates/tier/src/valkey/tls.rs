//! TLS with the certificates that the system trusts.

use std::io;
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// The encryption of the watching connections.
#[derive(Clone)]
pub(super) struct Tls(TlsConnector);

impl Tls {
    /// Reads the certificates that the system trusts, or those that `SSL_CERT_FILE` and
    /// `SSL_CERT_DIR` name.
    ///
    /// One that cannot be read is an error: the crate of the data connections takes it for one too,
    /// with each of its connections.
    pub(super) fn of_system() -> Result<Self, String> {
        let mut roots = RootCertStore::empty();
        let found = rustls_native_certs::load_native_certs();
        if let Some(error) = found.errors.first() {
            return Err(error.to_string());
        }
        for certificate in found.certs {
            roots.add(certificate).map_err(|error| error.to_string())?;
        }
        if roots.is_empty() {
            return Err("there are no certificates to trust".into());
        }
        // The crate of the data connections needs one for the whole process. A program that has
        // chosen another one keeps it.
        let _ = ring::default_provider().install_default();
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self(TlsConnector::from(Arc::new(config))))
    }

    /// Encrypts a connection to a host, which must prove that it is the one.
    pub(super) async fn secure(
        &self,
        host: &str,
        stream: TcpStream,
    ) -> io::Result<TlsStream<TcpStream>> {
        let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        self.0.connect(name, stream).await
    }
}
