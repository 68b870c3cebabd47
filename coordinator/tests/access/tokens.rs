//! Tokens: made, listed, revoked; what goes on with one ends with it.

use std::time::Duration;

use tengen_coordinator::{CoordinatorError, Limits};
use tengen_proto::v1;
use tengen_proto::v1::admin_service_client::AdminServiceClient;
use tengen_proto::v1::model_service_client::ModelServiceClient;
use tengen_proto::v1::run_service_client::RunServiceClient;
use tengen_service::credentials::Credentials;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Status, Streaming};

use crate::door::{Guarded, assert_refused, options_with};
use crate::rig::{Actor, Rig};

/// Every token, read in pages of two.
async fn tokens(guarded: &Guarded) -> Vec<v1::Token> {
    let mut request = v1::ListTokensRequest {
        page_size: 2,
        page_token: String::new(),
    };
    let mut all = Vec::new();
    loop {
        let answer = guarded.admin().list_tokens(request.clone()).await;
        let page = answer.expect("tokens").into_inner();
        assert!(page.tokens.len() <= 2, "{page:?}");
        all.extend(page.tokens);
        if page.next_page_token.is_empty() {
            return all;
        }
        request.page_token = page.next_page_token;
    }
}

async fn watch(guarded: &Guarded, credentials: &Credentials) -> Streaming<v1::RunStatus> {
    let mut client = RunServiceClient::new(guarded.channel(credentials));
    let request = v1::WatchStatusRequest {
        interval_ms: 60_000,
        ..Default::default()
    };
    let mut stream = client.watch_status(request).await.expect("a stream").into_inner();
    stream.message().await.expect("a status").expect("a status");
    stream
}

/// The error that ends a stream, within a second.
async fn cut<T>(stream: &mut Streaming<T>) -> Status {
    tokio::time::timeout(Duration::from_secs(1), stream.message())
        .await
        .expect("the stream ends within a second")
        .map(|_| ())
        .expect_err("an error")
}

#[tokio::test]
async fn revoking_a_token_cuts_its_streams_within_a_second_and_leaves_others_alone() {
    let guarded = Guarded::start().await;
    let (token, mine) = guarded.make("viewer", 0).await;
    let (_, others) = guarded.make("viewer", 0).await;
    let mut cut_off = watch(&guarded, &mine).await;
    let mut goes_on = watch(&guarded, &others).await;

    let revoked = guarded.revoke(&token.token_id).await.expect("an answer");
    assert!(revoked.revoked_unix_ms >= revoked.created_unix_ms);
    let error = cut(&mut cut_off).await;
    assert_refused(&error, Code::Unauthenticated, "TOKEN_REVOKED", &token.token_id);
    let again = guarded.status_with(&mine).await.expect_err("a refusal");
    assert_refused(&again, Code::Unauthenticated, "TOKEN_REVOKED", "was revoked");
    guarded.status_with(&others).await.expect("a status");

    // The other stream ends only with the process.
    let stop = guarded.rig.stop();
    let (_, end) = tokio::join!(stop, goes_on.message());
    assert_eq!(end.expect_err("an error").code(), Code::Unavailable);
}

#[tokio::test]
async fn revoking_cuts_a_stream_of_games_and_a_publication_that_are_under_way() {
    let guarded = Guarded::start().await;
    let (token, actor) = guarded.make("actor", 0).await;
    let mut submitting = Actor::with(guarded.channel(&actor), "actor-1").await;
    submitting.deliver(1).await;
    let (learner_token, learner) = guarded.make("learner", 0).await;
    let (parts, stream) = mpsc::channel::<v1::PublishModelRequest>(1);
    let mut models = ModelServiceClient::new(guarded.channel(&learner));
    let publishing = tokio::spawn(async move { models.publish_model(ReceiverStream::new(stream)).await });
    // Taken by the server's side of the stream: the call has begun.
    parts
        .send(v1::PublishModelRequest::default())
        .await
        .expect("an open stream");

    guarded.revoke(&token.token_id).await.expect("an answer");
    let error = submitting.stream_error().await;
    assert_refused(&error, Code::Unauthenticated, "TOKEN_REVOKED", &token.token_id);
    guarded.revoke(&learner_token.token_id).await.expect("an answer");
    let error = publishing.await.expect("no panic").expect_err("an error");
    assert!(
        matches!(error.code(), Code::Unauthenticated | Code::InvalidArgument),
        "{error}"
    );
    assert_eq!(guarded.rig.status().await.games, 1);
    drop(parts);
    guarded.rig.stop().await;
}

#[tokio::test]
async fn a_token_that_expires_ends_its_open_stream_and_every_later_call() {
    let guarded = Guarded::start().await;
    let (token, brief) = guarded.make("viewer", 1).await;
    assert_eq!(token.expires_unix_ms - token.created_unix_ms, 1_000);
    let mut stream = watch(&guarded, &brief).await;
    let end = stream.message().await.expect_err("an error");
    assert_refused(&end, Code::Unauthenticated, "TOKEN_EXPIRED", &token.token_id);
    let again = guarded.status_with(&brief).await.expect_err("a refusal");
    assert_refused(&again, Code::Unauthenticated, "TOKEN_EXPIRED", "has expired");
    let found = findings(&guarded).await;
    let refused = finding(&found, "token-refused");
    assert!(refused.sentence.contains("whose time is over"), "{refused:?}");
    assert!(refused.evidence[0].contains("has expired"), "{refused:?}");
    guarded.rig.stop().await;
}

#[tokio::test]
async fn tokens_outlive_a_restart_and_every_change_is_in_the_audit() {
    let guarded = Guarded::start().await;
    let (kept, kept_credentials) = guarded.make("viewer", 0).await;
    let (gone, gone_credentials) = guarded.make("viewer", 0).await;
    guarded.revoke(&gone.token_id).await.expect("an answer");
    let unknown = guarded.revoke("000000000000").await.expect_err("a refusal");
    assert_refused(&unknown, Code::NotFound, "NO_SUCH_TOKEN", "tengen token list");
    let bad = guarded.revoke("what").await.expect_err("a refusal");
    assert_eq!(bad.code(), Code::InvalidArgument, "{bad}");

    let guarded = guarded.restart().await;
    guarded.status_with(&kept_credentials).await.expect("a status");
    guarded.status_with(&gone_credentials).await.expect_err("a refusal");
    let tokens = tokens(&guarded).await;
    assert_eq!(tokens.len(), 6);
    let find = |id: &str| {
        tokens
            .iter()
            .find(|token| token.token_id == id)
            .expect("the token")
            .clone()
    };
    assert_eq!(find(&kept.token_id), kept);
    assert!(find(&gone.token_id).revoked_unix_ms > 0);
    assert!(kept.created_by.ends_with("(init, admin)"), "{}", kept.created_by);

    let request = v1::ListAuditRequest {
        page_size: 2,
        page_token: String::new(),
    };
    let page = guarded.admin().list_audit(request).await.expect("rows").into_inner();
    assert_eq!(page.entries.len(), 2);
    assert_eq!(page.entries[0].action, "revoke-token");
    assert!(page.entries[0].detail.contains(&gone.token_id), "{:?}", page.entries[0]);
    assert_eq!(
        (page.entries[0].old.as_str(), page.entries[0].new.as_str()),
        ("good", "revoked")
    );
    assert_eq!(page.entries[0].who, kept.created_by);
    let rest = v1::ListAuditRequest {
        page_size: 1_000,
        page_token: page.next_page_token,
    };
    let rest = guarded.admin().list_audit(rest).await.expect("rows").into_inner();
    let made = rest.entries.iter().filter(|entry| entry.action == "create-token");
    assert_eq!(made.count() + 1, 6, "four of init, two of the admin");
    assert!(rest.next_page_token.is_empty());
    guarded.rig.stop().await;
}

#[tokio::test]
async fn without_tokens_this_machine_is_served_and_no_token_can_be_made() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = options_with(folder.path(), Limits::default());
    let rig = Rig::start_with(folder, options).await.expect("it starts");
    let status = rig.status().await;
    assert_eq!(status.access, "this machine only, without tokens");
    let mut admin = AdminServiceClient::new(rig.channel().await);
    let request = v1::CreateTokenRequest {
        role: "viewer".to_owned(),
        ..v1::CreateTokenRequest::default()
    };
    let refused = admin.create_token(request).await.expect_err("a refusal");
    assert_refused(
        &refused,
        Code::FailedPrecondition,
        "NO_TOKENS",
        "tengen-coordinator init",
    );
    rig.stop().await;
}

#[tokio::test]
async fn beyond_this_machine_it_takes_tokens_or_the_word_insecure() {
    let start = |data: tempfile::TempDir, insecure: bool| {
        let mut options = options_with(data.path(), Limits::default());
        options.config.listen = "0.0.0.0:0".parse().expect("an address");
        options.config.insecure = insecure;
        Rig::start_with(data, options)
    };
    let refused = start(tempfile::tempdir().expect("a folder"), false).await;
    let Err(CoordinatorError::NotLoopback { .. }) = &refused else {
        panic!("it must be refused")
    };
    let text = refused.err().expect("a refusal").to_string();
    assert!(
        text.contains("tengen-coordinator init") && text.contains("--insecure"),
        "{text}"
    );

    let open = start(tempfile::tempdir().expect("a folder"), true)
        .await
        .expect("it starts");
    let access = open.status().await.access;
    assert!(access.contains("OPEN"), "{access}");
    open.stop().await;

    let (data, tokens) = (
        tempfile::tempdir().expect("a folder"),
        tempfile::tempdir().expect("a folder"),
    );
    tengen_coordinator::init(data.path(), tokens.path()).expect("tokens");
    let mut guarded = start(data, false).await.expect("it starts");
    guarded.credentials = crate::door::shown(&tokens.path().join("viewer.token"));
    let access = guarded.status().await.access;
    assert!(access.contains("WITHOUT TLS"), "{access}");
    guarded.stop().await;
}

async fn findings(guarded: &Guarded) -> Vec<v1::Finding> {
    let mut client = RunServiceClient::new(guarded.channel(&guarded.role("viewer")));
    let answer = client.diagnose(v1::DiagnoseRequest {}).await;
    answer.expect("a diagnosis").into_inner().findings
}

fn finding<'a>(findings: &'a [v1::Finding], cause: &str) -> &'a v1::Finding {
    let found = findings.iter().find(|finding| finding.cause == cause);
    let found = found.unwrap_or_else(|| panic!("no {cause} in {findings:#?}"));
    assert!(!found.evidence.is_empty(), "{found:?}");
    found
}

#[tokio::test]
async fn a_viewer_is_told_of_tokens_that_are_refused_or_end_soon() {
    let guarded = Guarded::start().await;
    let (ends_soon, actor) = guarded.make("actor", 3_600).await;
    assert!(
        findings(&guarded)
            .await
            .iter()
            .all(|finding| finding.cause != "token-ends")
    );
    // In use once an actor has come with it.
    let _actor = Actor::with(guarded.channel(&actor), "actor-1").await;
    let found = findings(&guarded).await;
    let ends = finding(&found, "token-ends");
    assert!(ends.sentence.contains(&ends_soon.token_id), "{ends:?}");
    assert_eq!(ends.remedy, "tengen token create --role actor --out FILE");

    guarded.revoke(&ends_soon.token_id).await.expect("an answer");
    guarded.status_with(&actor).await.expect_err("a refusal");
    let found = findings(&guarded).await;
    let refused = finding(&found, "token-refused");
    assert!(refused.sentence.contains("was revoked"), "{refused:?}");
    guarded
        .status_with(&Credentials::default())
        .await
        .expect_err("a refusal");
    let found = findings(&guarded).await;
    let missing = found
        .iter()
        .find(|finding| finding.sentence.contains("without a token"));
    assert!(missing.expect("it is named").remedy.contains("--token-file"));
    guarded.rig.stop().await;
}
