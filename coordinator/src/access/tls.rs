//! TLS of this process, from files: its own certificate and, where wanted, its clients'.

use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{VerifierBuilderError, WebPkiClientVerifier};
use rustls::{RootCertStore, ServerConfig};
use tengen_service::tls::{self, PemError};
use tokio_rustls::TlsAcceptor;

use super::config::TlsConfig;

/// The certificates cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file is missing or wrong.
    #[error("[tls]: {0}")]
    File(#[from] PemError),
    /// The certificates make no configuration.
    #[error("[tls]: {0}")]
    Refused(#[from] rustls::Error),
    /// The authorities of the clients cannot be used.
    #[error("[tls]: client_ca: {0}")]
    ClientCa(#[from] VerifierBuilderError),
    /// A PEM file that was read can no longer be parsed.
    #[error("[tls]: {0}")]
    Pem(#[from] rustls::pki_types::pem::Error),
}

/// The TLS side of the door; `None` when the process serves unencrypted. Blocks: reads the files.
pub(crate) fn acceptor(config: &TlsConfig) -> Result<Option<TlsAcceptor>, TlsError> {
    let (Some(cert), Some(key)) = (&config.cert, &config.key) else {
        return Ok(None);
    };
    let (cert, key) = tls::identity(cert, key)?;
    let chain = CertificateDer::pem_slice_iter(&cert).collect::<Result<Vec<_>, _>>()?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions()?;
    let builder = match &config.client_ca {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let mut roots = RootCertStore::empty();
            for authority in CertificateDer::pem_slice_iter(&tls::certificates(path)?) {
                roots.add(authority?)?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build()?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let mut config = builder.with_single_cert(chain, PrivateKeyDer::from_pem_slice(&key)?)?;
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(Some(TlsAcceptor::from(Arc::new(config))))
}
