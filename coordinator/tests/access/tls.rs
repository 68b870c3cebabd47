//! TLS and mutual TLS with certificates made here.

use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tempfile::TempDir;
use tengen_coordinator::{Config, Limits, TlsConfig, init};
use tengen_proto::v1::GetStatusRequest;
use tengen_proto::v1::run_service_client::RunServiceClient;
use tengen_service::channel;
use tengen_service::credentials::{ConnectArgs, Credentials};
use tengen_service::files::write_atomic;
use tonic::Status;

use crate::door::options_with;
use crate::rig::Rig;

/// A certificate authority whose files lie in a folder.
struct Authority {
    folder: TempDir,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Authority {
        let mut params = CertificateParams::new(Vec::new()).expect("parameters");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let folder = tempfile::tempdir().expect("a folder");
        let certificate = params.self_signed(&key).expect("a certificate");
        write_atomic(&folder.path().join("ca.pem"), certificate.pem().as_bytes()).expect("a file");
        Authority {
            folder,
            issuer: Issuer::new(params, key),
        }
    }

    fn ca(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    /// Certificate and key for a name, as files.
    fn issue(&self, name: &str) -> (PathBuf, PathBuf) {
        let params = CertificateParams::new(vec![name.to_owned()]).expect("parameters");
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        let path = |kind: &str| self.folder.path().join(format!("{name}-{kind}.pem"));
        write_atomic(&path("cert"), certificate.pem().as_bytes()).expect("a file");
        write_atomic(&path("key"), key.serialize_pem().as_bytes()).expect("a file");
        (path("cert"), path("key"))
    }

    fn tls(&self) -> TlsConfig {
        let (cert, key) = self.issue("127.0.0.1");
        TlsConfig {
            cert: Some(cert),
            key: Some(key),
            client_ca: None,
        }
    }
}

async fn start(tls: TlsConfig) -> Result<Rig, tengen_coordinator::CoordinatorError> {
    let data = tempfile::tempdir().expect("a folder");
    init(data.path(), &data.path().join("tokens")).expect("tokens");
    let options = options_with(data.path(), Limits::default());
    let config = Config { tls, ..options.config };
    let options = tengen_coordinator::Options { config, ..options };
    Rig::start_with(data, options).await
}

fn shows(rig: &Rig, ca: &Path) -> ConnectArgs {
    ConnectArgs {
        token_file: Some(rig.path("tokens").join("viewer.token")),
        ca: Some(ca.to_path_buf()),
        ..ConnectArgs::default()
    }
}

async fn status(url: &str, credentials: &Credentials) -> Result<String, Status> {
    let channel = channel::connect(url, credentials).expect("a url");
    let answer = RunServiceClient::new(channel).get_status(GetStatusRequest {}).await?;
    Ok(answer.into_inner().access)
}

#[tokio::test]
async fn tls_serves_who_trusts_its_authority_and_nobody_else() {
    let (ours, theirs) = (Authority::new(), Authority::new());
    let rig = start(ours.tls()).await.expect("it starts");
    let good = shows(&rig, &ours.ca()).credentials().expect("credentials");
    assert_eq!(status(&rig.url, &good).await.expect("a status"), "tokens, TLS");
    tengen_service::health::probe(&rig.url, &good).await.expect("it serves");

    let wrong = shows(&rig, &theirs.ca()).credentials().expect("credentials");
    let refused = status(&rig.url, &wrong).await.expect_err("a refusal");
    assert!(refused.message().contains("does not fit --ca FILE"), "{refused}");

    let plain_url = rig.url.replace("https://", "http://");
    let refused = status(&plain_url, &good).await.expect_err("a refusal");
    assert!(
        refused.message().contains("write https:// and give --ca FILE"),
        "{refused}"
    );
    rig.stop().await;
}

#[tokio::test]
async fn a_tls_client_of_a_port_without_tls_hears_what_to_change() {
    let ours = Authority::new();
    let rig = start(TlsConfig::default()).await.expect("it starts");
    let good = shows(&rig, &ours.ca()).credentials().expect("credentials");
    let url = rig.url.replace("http://", "https://");
    let refused = status(&url, &good).await.expect_err("a refusal");
    assert!(refused.message().contains("write http://"), "{refused}");
    rig.stop().await;
}

#[tokio::test]
async fn mutual_tls_asks_for_a_certificate_of_its_authority() {
    let (ours, theirs) = (Authority::new(), Authority::new());
    let tls = TlsConfig {
        client_ca: Some(ours.ca()),
        ..ours.tls()
    };
    let rig = start(tls).await.expect("it starts");
    let without = shows(&rig, &ours.ca()).credentials().expect("credentials");
    let refused = status(&rig.url, &without).await.expect_err("a refusal");
    assert!(refused.message().contains("--client-cert"), "{refused}");

    let with = |authority: &Authority| {
        let (cert, key) = authority.issue("client");
        let args = ConnectArgs {
            client_cert: Some(cert),
            client_key: Some(key),
            ..shows(&rig, &ours.ca())
        };
        args.credentials().expect("credentials")
    };
    let access = status(&rig.url, &with(&ours)).await.expect("a status");
    assert_eq!(access, "tokens, TLS with client certificates");
    status(&rig.url, &with(&theirs)).await.expect_err("a refusal");
    // A certificate is no token.
    let tokenless = ConnectArgs {
        token_file: None,
        ..shows(&rig, &ours.ca())
    };
    let (cert, key) = ours.issue("client");
    let read = |path: PathBuf| std::fs::read(path).expect("a file");
    let tokenless = tokenless
        .credentials()
        .expect("credentials")
        .with_identity(read(cert), read(key));
    let refused = status(&rig.url, &tokenless).await.expect_err("a refusal");
    assert_eq!(refused.code(), tonic::Code::Unauthenticated, "{refused}");
    rig.stop().await;
}

#[tokio::test]
async fn missing_and_unmatched_files_are_named() {
    let ours = Authority::new();
    let good = ours.tls();
    let (_, other_key) = ours.issue("other");
    let refusal = async |tls: TlsConfig| start(tls).await.err().expect("a refusal").to_string();

    let missing = TlsConfig {
        cert: Some("/nowhere/cert.pem".into()),
        ..good.clone()
    };
    let text = refusal(missing).await;
    assert!(text.contains("failed to read certificate /nowhere/cert.pem"), "{text}");
    let unmatched = TlsConfig {
        key: Some(other_key),
        ..good.clone()
    };
    let text = refusal(unmatched).await;
    assert!(text.contains("is not the key of the certificate in"), "{text}");
    let swapped = TlsConfig {
        cert: good.key.clone(),
        ..good.clone()
    };
    let text = refusal(swapped).await;
    assert!(text.contains("holds no certificate in PEM form"), "{text}");

    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("coordinator.toml");
    write_atomic(&file, b"[tls]\ncert = \"cert.pem\"\n").expect("a file");
    let text = Config::load(Some(&file)).expect_err("a refusal").to_string();
    assert!(
        text.contains("tls.key is missing") && text.contains("coordinator.toml"),
        "{text}"
    );
}
