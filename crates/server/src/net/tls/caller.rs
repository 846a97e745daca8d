//! The terms on which a tool of this program speaks TLS to a server.

use std::sync::Arc;

use rustls::ClientConfig;
use rustls::crypto::ring;

use super::certificate::advice;
use super::terms::{authorities, chain, key};

/// Where systems keep the authorities that they trust.
const SYSTEM: &str = "/etc/ssl/certs";

/// Makes terms: the authorities of a file, or those of the system, and a certificate with its key
/// for servers that ask for one.
pub(crate) fn terms(file: Option<&str>, own: Option<(&str, &str)>) -> anyhow::Result<ClientConfig> {
    let names = ["--cacert", "the system's authorities"];
    let roots = match file {
        Some(file) => authorities(file, "", names)?,
        None => authorities("", SYSTEM, names)?,
    };
    let terms = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots);
    let Some((certificate, own_key)) = own else {
        return Ok(terms.with_no_client_auth());
    };
    let chain = chain(certificate, "--cert")?;
    let key = key(own_key, "--key")?;
    terms.with_client_auth_cert(chain, key).map_err(|why| {
        let advice = advice(&why.to_string());
        anyhow::anyhow!(
            "the certificate in {certificate} and the key in {own_key} do not serve: {why}{advice}"
        )
    })
}
