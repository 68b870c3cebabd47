//! The one TLS provider of the house, and PEM files as checked values.
//!
//! Certificates are read from files and never made here: making them is the business of whoever runs the cluster.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// Largest PEM file that is read; a system's whole bundle of authorities is about 220 KiB.
const PEM_BYTES_MAX: u64 = 4 << 20;

/// A file of certificates or keys cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PemError {
    /// It cannot be read.
    #[error("failed to read {what} {path}: {source}", path = path.display())]
    Read {
        /// What it should hold.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// It holds something else.
    #[error("{path} holds no {what} in PEM form ({reason})", path = path.display())]
    Empty {
        /// What it should hold.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A certificate and a key that do not belong together.
    #[error("{key} is not the key of the certificate in {cert} ({reason})", key = key.display(), cert = cert.display())]
    Unmatched {
        /// The certificate's file.
        cert: PathBuf,
        /// The key's file.
        key: PathBuf,
        /// What the TLS library said.
        reason: String,
    },
}

/// Makes ring the TLS provider of this process. The first thing in every `main`; harmless when repeated.
pub fn install_provider() {
    // The error only says that a provider is installed already, which is ours.
    let _already = ring::default_provider().install_default();
}

/// The certificates of a PEM file, as its text; at least one.
pub fn certificates(path: &Path) -> Result<Vec<u8>, PemError> {
    const WHAT: &str = "certificate";
    let pem = read(WHAT, path)?;
    parse_certificates(path, &pem)?;
    Ok(pem)
}

/// A certificate chain and its private key from two PEM files, checked to belong together.
pub fn identity(cert: &Path, key: &Path) -> Result<(Vec<u8>, Vec<u8>), PemError> {
    const WHAT: &str = "private key";
    let cert_pem = read("certificate", cert)?;
    let chain = parse_certificates(cert, &cert_pem)?;
    let key_pem = read(WHAT, key)?;
    let parsed = PrivateKeyDer::from_pem_slice(&key_pem).map_err(|error| PemError::Empty {
        what: WHAT,
        path: key.to_path_buf(),
        reason: error.to_string(),
    })?;
    let provider: Arc<CryptoProvider> = Arc::new(ring::default_provider());
    rustls::sign::CertifiedKey::from_der(chain, parsed, &provider).map_err(|error| PemError::Unmatched {
        cert: cert.to_path_buf(),
        key: key.to_path_buf(),
        reason: error.to_string(),
    })?;
    Ok((cert_pem, key_pem))
}

fn parse_certificates(path: &Path, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, PemError> {
    let empty = |reason: String| PemError::Empty {
        what: "certificate",
        path: path.to_path_buf(),
        reason,
    };
    let found = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| empty(error.to_string()))?;
    if found.is_empty() {
        return Err(empty("there is no BEGIN CERTIFICATE in it".to_owned()));
    }
    Ok(found)
}

fn read(what: &'static str, path: &Path) -> Result<Vec<u8>, PemError> {
    let failed = |source| PemError::Read {
        what,
        path: path.to_path_buf(),
        source,
    };
    let bytes = std::fs::metadata(path).map_err(failed)?.len();
    if bytes > PEM_BYTES_MAX {
        return Err(PemError::Empty {
            what,
            path: path.to_path_buf(),
            reason: format!("{bytes} bytes, where {PEM_BYTES_MAX} are the most"),
        });
    }
    std::fs::read(path).map_err(failed)
}
