//! Secrets stay out of the log: a real process at its most talkative, and every secret looked for in what it wrote.

use std::process::{Command, Stdio};
use std::time::Duration;

use tengen_proto::v1;
use tengen_proto::v1::admin_service_client::AdminServiceClient;
use tengen_proto::v1::run_service_client::RunServiceClient;
use tengen_service::channel;
use tengen_service::credentials::{ConnectArgs, Credentials};
use tonic::Request;
use tonic::transport::Endpoint;

use crate::door::run;

/// Waits until the process has written the address it serves at.
async fn address(file: &std::path::Path) -> String {
    let mut looks = tokio::time::interval(Duration::from_millis(20));
    for _ in 0..3_000 {
        looks.tick().await;
        if let Ok(text) = std::fs::read_to_string(file) {
            return text.trim().to_owned();
        }
    }
    panic!("the coordinator did not serve within a minute");
}

#[tokio::test]
async fn no_secret_is_in_the_log_of_a_process_that_logs_everything() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    tengen_service::files::write_atomic(&path("run.toml"), run().as_bytes()).expect("a file");
    let program = env!("CARGO_BIN_EXE_tengen-coordinator");
    let made = Command::new(program)
        .args(["init", "--data"])
        .arg(path("data"))
        .arg("--tokens")
        .arg(path("tokens"))
        .output()
        .expect("it runs");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let log = std::fs::File::create(path("log")).expect("a file");
    let mut process = Command::new(program)
        .arg("--run")
        .arg(path("run.toml"))
        .arg("--data")
        .arg(path("data"))
        .arg("--addr-file")
        .arg(path("addr"))
        .args(["--listen", "127.0.0.1:0", "--log", "trace", "--exit-with-parent"])
        .stdin(Stdio::piped())
        .stdout(log.try_clone().expect("a file"))
        .stderr(log)
        .spawn()
        .expect("it runs");
    let url = format!("http://{}", address(&path("addr")).await);

    let token = |role: &str| std::fs::read_to_string(path("tokens").join(format!("{role}.token"))).expect("a token");
    let mut secrets: Vec<String> = ["viewer", "actor", "learner", "admin"].map(token).to_vec();
    let args = ConnectArgs {
        token_file: Some(path("tokens/admin.token")),
        ..ConnectArgs::default()
    };
    let channel = channel::connect(&url, &args.credentials().expect("a token")).expect("a url");
    let request = v1::CreateTokenRequest {
        role: "viewer".to_owned(),
        ..v1::CreateTokenRequest::default()
    };
    let made = AdminServiceClient::new(channel).create_token(request).await;
    secrets.push(made.expect("a token").into_inner().secret);
    // A client that does not mark its token as a secret, with good and with wrong tokens.
    let plain = Endpoint::from_shared(url.clone()).expect("a url").connect_lazy();
    for text in [&secrets[0], &secrets[4], &format!("{}00", "tengen_0123456789ab_")] {
        let mut request = Request::new(v1::GetStatusRequest {});
        let value = format!("Bearer {}", text.trim()).parse().expect("a header");
        request.metadata_mut().insert("authorization", value);
        let _refused_or_not = RunServiceClient::new(plain.clone()).get_status(request).await;
    }
    tengen_service::health::probe(&url, &Credentials::default())
        .await
        .expect("it serves");
    drop(process.stdin.take());
    assert!(process.wait().expect("it ends").success());

    let log = std::fs::read_to_string(path("log")).expect("a log");
    assert!(
        log.contains("serving") && log.contains("token made") && log.lines().count() > 50,
        "{log}"
    );
    for secret in secrets {
        let secret = secret.trim().rsplit('_').next().expect("a secret").to_owned();
        assert_eq!(secret.len(), 64);
        assert!(!log.contains(&secret), "a secret is in the log");
    }
}
