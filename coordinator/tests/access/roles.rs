//! Every call of every service, tried over the wire with every role and with none.

use http::Request;
use prost::Message;
use prost_types::FileDescriptorSet;
use tengen_service::credentials::Credentials;
use tonic::Code;
use tonic::body::Body;
use tonic::codegen::Service;

use crate::door::{Guarded, assert_refused};

/// What each role may call, by the beginnings of paths; an admin may call everything.
const VIEWER: &[&str] = &[
    "RunService/",
    "ModelService/ListModels",
    "ModelService/GetModel",
    "ModelService/DownloadModel",
    "ModelService/WatchChampion",
];
const ACTOR: &[&str] = &[
    "ActorService/",
    "ModelService/ListModels",
    "ModelService/GetModel",
    "ModelService/DownloadModel",
    "ModelService/WatchChampion",
];
const LEARNER: &[&str] = &["LearnerService/", "ReplayService/", "ModelService/"];

/// Every call of our own services.
fn calls() -> Vec<String> {
    let set = FileDescriptorSet::decode(tengen_proto::DESCRIPTOR_SET).expect("descriptors");
    let services = set.file.into_iter().flat_map(|file| file.service);
    let methods = services.flat_map(|service| {
        let name = service.name().to_owned();
        let methods = service.method.into_iter();
        methods.map(move |method| format!("{name}/{}", method.name()))
    });
    methods.collect()
}

/// Makes a call with an empty message; the code of a refusal that comes before any answer.
async fn call(guarded: &Guarded, credentials: &Credentials, path: &str) -> Option<Code> {
    let mut channel = guarded.channel(credentials);
    // One gRPC message of length 0.
    let body = Body::new(http_body_util::Full::new(bytes::Bytes::from_static(&[0; 5])));
    let request = Request::post(format!("{}/tengen.v1.{path}", guarded.rig.url))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(body)
        .expect("a request");
    std::future::poll_fn(|context| channel.poll_ready(context))
        .await
        .expect("a connection");
    let answer = channel.call(request).await.expect("an answer");
    let status = answer.headers().get("grpc-status")?;
    let code: i32 = status.to_str().expect("a number").parse().expect("a number");
    Some(Code::from(code))
}

#[tokio::test]
async fn every_role_may_call_what_is_its_own_and_nothing_else() {
    let guarded = Guarded::start().await;
    let calls = calls();
    assert!(calls.len() > 20, "{calls:?}");
    for (role, allowed) in [
        ("viewer", VIEWER),
        ("actor", ACTOR),
        ("learner", LEARNER),
        ("admin", &[""][..]),
    ] {
        for path in &calls {
            let code = call(&guarded, &guarded.role(role), path).await;
            let refused = matches!(code, Some(Code::PermissionDenied | Code::Unauthenticated));
            let expected = !allowed.iter().any(|beginning| path.starts_with(beginning));
            assert_eq!(refused, expected, "{role} calls {path}: {code:?}");
        }
    }
    for path in &calls {
        let code = call(&guarded, &Credentials::default(), path).await;
        assert_eq!(code, Some(Code::Unauthenticated), "{path}");
    }
    guarded.rig.stop().await;
}

#[tokio::test]
async fn a_refusal_says_which_role_is_needed_and_how_to_get_it() {
    let guarded = Guarded::start().await;
    let nobody = guarded
        .status_with(&Credentials::default())
        .await
        .expect_err("a refusal");
    let way = "tengen token create --role viewer";
    assert_refused(&nobody, Code::Unauthenticated, "TOKEN_MISSING", way);
    let actor = guarded
        .status_with(&guarded.role("actor"))
        .await
        .expect_err("a refusal");
    assert_refused(
        &actor,
        Code::PermissionDenied,
        "ROLE",
        "has the role actor, this call needs viewer or admin",
    );
    assert!(actor.message().contains(way), "{actor}");
    guarded.rig.stop().await;
}

#[tokio::test]
async fn a_wrong_secret_of_a_known_token_is_no_token_and_hears_nothing_about_it() {
    let guarded = Guarded::start().await;
    let good = guarded.text("viewer");
    let last = if good.ends_with('0') { '1' } else { '0' };
    let wrong = format!("{}{last}", &good[..good.len() - 1]);
    for token in [wrong.as_str(), "tengen_0123456789ab_0", "something-else"] {
        let credentials = Credentials::default()
            .with_token(token.into(), "the test")
            .expect("printable text");
        let refused = guarded.status_with(&credentials).await.expect_err("a refusal");
        assert_refused(&refused, Code::Unauthenticated, "TOKEN_UNKNOWN", "none of this run's");
        assert!(!refused.message().contains(&good[7..19]), "{refused}");
    }
    guarded.rig.stop().await;
}

#[tokio::test]
async fn health_and_reflection_are_open_and_a_call_nobody_knows_is_told_apart() {
    let guarded = Guarded::start().await;
    tengen_service::health::probe(&guarded.rig.url, &Credentials::default())
        .await
        .expect("it serves");
    let channel = guarded.channel(&Credentials::default());
    let mut reflection = tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient::new(channel);
    let ask = tokio_stream::empty();
    reflection.server_reflection_info(ask).await.expect("an answer");
    let code = call(&guarded, &guarded.role("admin"), "RunService/NoSuchCall").await;
    assert_eq!(code, Some(Code::Unimplemented));
    guarded.rig.stop().await;
}
