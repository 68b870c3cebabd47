//! A server behind TLS, with a certificate of our own CA.

use std::io::Write;
use std::path::Path;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tengen_replay::testing::RedisServer;
use tengen_replay::{RedisFault, RedisOptions, RedisWriter};

/// Writes `ca.pem`, `server.pem` and `server.key`; the server's name is 127.0.0.1.
fn certificates(folder: &Path) {
    let mut ca = CertificateParams::new(Vec::new()).expect("parameters");
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca = CertifiedIssuer::self_signed(ca, KeyPair::generate().expect("a key")).expect("a CA");
    let key = KeyPair::generate().expect("a key");
    let server = CertificateParams::new(vec!["127.0.0.1".to_owned()]).expect("parameters");
    let server = server.signed_by(&key, &ca).expect("a certificate");
    for (name, text) in [
        ("ca.pem", ca.pem()),
        ("server.pem", server.pem()),
        ("server.key", key.serialize_pem()),
    ] {
        let mut file = std::fs::File::create(folder.join(name)).expect("a file");
        file.write_all(text.as_bytes()).expect("written");
    }
}

#[tokio::test]
async fn a_server_behind_tls_is_reached_with_its_ca_and_with_no_other() {
    let folder = tempfile::tempdir().expect("a folder");
    certificates(folder.path());
    // The port for TLS takes the place of the plain one, which the helper waits on.
    let plain = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let tls_port = plain.local_addr().expect("bound").port();
    drop(plain);
    let _server = RedisServer::start(
        folder.path(),
        &[
            "--tls-port",
            &tls_port.to_string(),
            "--tls-cert-file",
            "server.pem",
            "--tls-key-file",
            "server.key",
            "--tls-ca-cert-file",
            "ca.pem",
            "--tls-auth-clients",
            "no",
        ],
    );
    let url = format!("rediss://127.0.0.1:{tls_port}");
    let ca = folder.path().join("ca.pem");
    let known = RedisOptions::load(&url, None, Some(&ca)).expect("a good URL");
    RedisWriter::open(&known, "run", 1).await.expect("let in");
    let unknown = RedisOptions::load(&url, None, None).expect("a good URL");
    let refused = RedisWriter::open(&unknown, "run", 1)
        .await
        .map(drop)
        .expect_err("nobody knows this CA");
    assert!(matches!(refused, RedisFault::Unreachable { .. }), "{refused}");
    assert!(refused.to_string().contains("certificate"), "{refused}");
}
