//! Limits: what one connection, one address and one token may take. Raw connections speak just enough HTTP/2 to be rude.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::Frame;
use http_body_util::BodyExt;
use tengen_coordinator::Limits;
use tengen_proto::v1;
use tengen_proto::v1::model_service_client::ModelServiceClient;
use tengen_proto::v1::run_service_client::RunServiceClient;
use tengen_service::channel::{Channel, MESSAGE_BYTES_MAX};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_stream::wrappers::ReceiverStream;
use tonic::body::Body;
use tonic::codegen::Service;
use tonic::{Code, Request, Status};
use tonic_types::StatusExt;

use crate::door::{Guarded, assert_refused};
use crate::rig::Actor;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const EMPTY_SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];

async fn connect(guarded: &Guarded) -> TcpStream {
    let address = guarded.rig.url.trim_start_matches("http://");
    TcpStream::connect(address).await.expect("a connection")
}

/// Reads until the other side closes; a reset is a close too.
async fn read_to_close(stream: &mut TcpStream) -> Vec<u8> {
    let mut all = Vec::new();
    let mut buffer = [0; 4_096];
    loop {
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => return all,
            Ok(read) => all.extend_from_slice(&buffer[..read]),
        }
    }
}

/// The settings that the server announces in its first frame.
async fn settings(stream: &mut TcpStream) -> BTreeMap<u16, u32> {
    stream.write_all(PREFACE).await.expect("an open connection");
    stream.write_all(EMPTY_SETTINGS).await.expect("an open connection");
    let mut head = [0; 9];
    stream.read_exact(&mut head).await.expect("a frame");
    assert_eq!(head[3], 4, "the first frame is SETTINGS");
    let mut body = vec![0; usize::from(head[2]) + (usize::from(head[1]) << 8)];
    stream.read_exact(&mut body).await.expect("a frame");
    let setting = |bytes: &[u8]| {
        (
            u16::from_be_bytes([bytes[0], bytes[1]]),
            u32::from_be_bytes([bytes[2], bytes[3], bytes[4], bytes[5]]),
        )
    };
    body.chunks_exact(6).map(setting).collect()
}

fn retry_after(status: &Status) -> Duration {
    let details = status.get_error_details();
    let retry = details.retry_info().and_then(|info| info.retry_delay);
    retry.unwrap_or_else(|| panic!("no RetryInfo in {status}"))
}

#[tokio::test]
async fn connections_of_one_address_are_bounded_and_a_closed_one_makes_place() {
    let limits = Limits {
        connections_per_address_max: 4,
        ..Limits::default()
    };
    let guarded = Guarded::start_with(limits).await;
    let mut held = Vec::new();
    for _ in 0..4 {
        let mut stream = connect(&guarded).await;
        settings(&mut stream).await;
        held.push(stream);
    }
    let mut one_more = connect(&guarded).await;
    assert!(read_to_close(&mut one_more).await.is_empty());
    // The place is free once the server has seen the end of a connection: it closes its own side then.
    let mut last = held.pop().expect("a connection");
    last.shutdown().await.expect("an open connection");
    read_to_close(&mut last).await;
    let status = loop {
        // The next accept may come before the old connection is forgotten.
        match guarded.status_with(&guarded.role("viewer")).await {
            Err(status) if status.code() == Code::Unavailable || status.code() == Code::Unknown => {}
            other => break other,
        }
    };
    status.expect("a status");
    drop(held);
    guarded.rig.stop().await;
}

#[tokio::test]
async fn a_connection_that_says_nothing_or_dribbles_is_closed() {
    let limits = Limits {
        handshake_seconds: 1,
        ..Limits::default()
    };
    let guarded = Guarded::start_with(limits).await;
    let mut silent = connect(&guarded).await;
    let mut dribbling = connect(&guarded).await;
    dribbling.write_all(&PREFACE[..10]).await.expect("an open connection");
    // Both are closed by the server; nothing else ends these reads.
    tokio::join!(read_to_close(&mut silent), read_to_close(&mut dribbling));
    guarded.status_with(&guarded.role("viewer")).await.expect("a status");
    guarded.rig.stop().await;
}

#[tokio::test]
async fn a_call_that_is_not_answered_in_time_is_given_up() {
    let limits = Limits {
        answer_seconds: 1,
        ..Limits::default()
    };
    let guarded = Guarded::start_with(limits).await;
    let mut models = ModelServiceClient::new(guarded.channel(&guarded.role("learner")));
    // A publication whose first part never comes: there is nothing to answer.
    let (parts, stream) = mpsc::channel::<v1::PublishModelRequest>(1);
    let late = models.publish_model(ReceiverStream::new(stream)).await;
    let status = late.expect_err("nobody answers");
    assert_eq!((status.code(), status.message()), (Code::Cancelled, "Timeout expired"));
    drop(parts);
    guarded.rig.stop().await;
}

#[tokio::test]
async fn an_idle_connection_is_closed_and_one_with_a_stream_is_not() {
    let limits = Limits {
        idle_seconds: 1,
        keepalive_seconds: 600,
        ..Limits::default()
    };
    let guarded = Guarded::start_with(limits).await;
    let mut client = RunServiceClient::new(guarded.channel(&guarded.role("viewer")));
    let request = v1::WatchStatusRequest {
        interval_ms: 100,
        ..Default::default()
    };
    let mut watching = client.watch_status(request).await.expect("a stream").into_inner();
    let mut idle = connect(&guarded).await;
    settings(&mut idle).await;
    read_to_close(&mut idle).await;
    // By now the watched connection is older than an idle one may get; it goes on for as long again.
    for _ in 0..15 {
        watching.message().await.expect("a status").expect("a status");
    }
    guarded.rig.stop().await;
}

#[tokio::test]
async fn a_connection_that_answers_no_probe_is_closed() {
    let limits = Limits {
        keepalive_seconds: 1,
        keepalive_timeout_seconds: 1,
        ..Limits::default()
    };
    let guarded = Guarded::start_with(limits).await;
    let mut mute = connect(&guarded).await;
    settings(&mut mute).await;
    // Half a frame: a peer that dribbles cannot answer in the middle of it.
    mute.write_all(&[0, 0, 100, 1]).await.expect("an open connection");
    let rest = read_to_close(&mut mute).await;
    let ping = rest.windows(4).any(|bytes| bytes == [0, 0, 8, 6]);
    assert!(ping, "{rest:?}");
    guarded.rig.stop().await;
}

#[tokio::test]
async fn an_old_connection_makes_place_and_its_client_comes_again() {
    let limits = Limits {
        connection_age_seconds: 1,
        connection_grace_seconds: 1,
        ..Limits::default()
    };
    let guarded = Guarded::start_with(limits).await;
    let mut client = RunServiceClient::new(guarded.channel(&guarded.role("viewer")));
    let request = v1::WatchStatusRequest {
        interval_ms: 100,
        ..Default::default()
    };
    let mut watching = client.watch_status(request).await.expect("a stream").into_inner();
    while let Ok(Some(_)) = watching.message().await {}
    client.get_status(v1::GetStatusRequest {}).await.expect("a status");
    guarded.rig.stop().await;
}

#[tokio::test]
async fn streams_and_headers_are_bounded_and_announced() {
    let limits = Limits {
        streams_per_connection_max: 8,
        header_list_bytes_max: 4_096,
        ..Limits::default()
    };
    let guarded = Guarded::start_with(limits).await;
    let settings = settings(&mut connect(&guarded).await).await;
    // RFC 9113, 6.5.2: MAX_CONCURRENT_STREAMS is 3, MAX_HEADER_LIST_SIZE is 6.
    assert_eq!((settings.get(&3), settings.get(&6)), (Some(&8), Some(&4_096)));
    let mut client = RunServiceClient::new(guarded.channel(&guarded.role("viewer")));
    let mut request = Request::new(v1::GetStatusRequest {});
    let long = "x".repeat(8_192).parse().expect("a header");
    request.metadata_mut().insert("long", long);
    client.get_status(request).await.expect_err("a refusal");
    client.get_status(v1::GetStatusRequest {}).await.expect("a status");
    guarded.rig.stop().await;
}

#[tokio::test]
async fn a_message_that_is_too_large_is_refused_and_the_next_one_is_taken() {
    let guarded = Guarded::start().await;
    let mut actor = Actor::new(&guarded.rig, "actor-1").await;
    actor.send(vec![0; MESSAGE_BYTES_MAX + 1]).await;
    let error = actor.stream_error().await;
    assert!(
        matches!(error.code(), Code::OutOfRange | Code::ResourceExhausted),
        "{error}"
    );
    Actor::new(&guarded.rig, "actor-1").await.deliver(1).await;
    guarded.rig.stop().await;
}

#[tokio::test]
async fn a_token_that_asks_too_often_is_told_when_to_come_again_and_others_are_served() {
    let limits = Limits {
        requests_per_second: 1,
        ..Limits::default()
    };
    let guarded = Guarded::start_with(limits).await;
    let viewer = guarded.role("viewer");
    let refused = loop {
        // The bucket holds two; the loop ends as soon as calls are faster than one a second.
        if let Err(status) = guarded.status_with(&viewer).await {
            break status;
        }
    };
    assert_refused(
        &refused,
        Code::ResourceExhausted,
        "REQUEST_RATE",
        "more than 1 requests a second",
    );
    assert!(retry_after(&refused) <= Duration::from_secs(1));
    guarded.status_with(&guarded.rig.credentials).await.expect("a status");
    guarded.rig.stop().await;
}

/// The beginning of a message of 15 MiB, then nothing more.
struct HalfSent(Option<Bytes>);

impl HalfSent {
    const LEN: usize = 8 << 20;

    fn new() -> HalfSent {
        let mut bytes = vec![0; HalfSent::LEN];
        bytes[1..5].copy_from_slice(&(15_u32 << 20).to_be_bytes());
        HalfSent(Some(bytes.into()))
    }
}

impl http_body::Body for HalfSent {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        match self.0.take() {
            Some(bytes) => Poll::Ready(Some(Ok(Frame::data(bytes)))),
            None => Poll::Pending,
        }
    }
}

/// Sends half a message; what it hears.
async fn send_half(mut channel: Channel, url: String) -> Status {
    let request = http::Request::post(format!("{url}/tengen.v1.ActorService/SubmitGames"))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(Body::new(HalfSent::new()))
        .expect("a request");
    std::future::poll_fn(|context| channel.poll_ready(context))
        .await
        .expect("a connection");
    let answer = channel.call(request).await.expect("an answer");
    if let Some(status) = Status::from_header_map(answer.headers()) {
        return status;
    }
    let body = answer.into_body().collect().await.expect("an end");
    let trailers = body.trailers().expect("trailers");
    Status::from_header_map(trailers).expect("a status")
}

#[tokio::test]
async fn half_sent_messages_of_a_token_are_bounded_and_others_are_served() {
    let limits = Limits {
        unfinished_bytes_max: 17 << 20,
        ..Limits::default()
    };
    let guarded = Guarded::start_with(limits).await;
    let (_, rude) = guarded.make("actor", 0).await;
    // Two of 8 MiB are within the bound, of three one is not: whichever comes last.
    let mut halves = JoinSet::new();
    for _ in 0..3 {
        halves.spawn(send_half(guarded.channel(&rude), guarded.rig.url.clone()));
    }
    let refused = halves.join_next().await.expect("one ends").expect("no panic");
    assert_refused(
        &refused,
        Code::ResourceExhausted,
        "UNFINISHED_BYTES",
        "half sent with this token",
    );
    assert!(retry_after(&refused) <= Duration::from_secs(1));
    Actor::new(&guarded.rig, "actor-1").await.deliver(1).await;
    assert!(halves.try_join_next().is_none(), "the others go on");
    Actor::with(guarded.channel(&rude), "actor-2").await.deliver(1).await;
    guarded.rig.stop().await;
}

#[tokio::test]
async fn games_over_the_quota_of_a_token_end_its_stream_and_are_not_lost() {
    let limits = Limits {
        games_per_minute: 1,
        ..Limits::default()
    };
    let guarded = Guarded::start_with(limits).await;
    let mut actor = Actor::new(&guarded.rig, "actor-1").await;
    actor.deliver(2).await;
    let work = actor.work(0.0).await;
    let game = tengen_records::encode(&actor.play(&work, 0));
    actor.send(game.clone()).await;
    let refused = actor.stream_error().await;
    assert_refused(
        &refused,
        Code::ResourceExhausted,
        "GAME_QUOTA",
        "more games than it may",
    );
    assert!(retry_after(&refused) <= Duration::from_secs(60));
    // The quota is the token's, whatever its actors are called: another token brings the same game in.
    let (_, other) = guarded.make("actor", 0).await;
    let mut brings = Actor::with(guarded.channel(&other), "actor-2").await;
    assert_eq!(brings.submit_bytes(game).await.verdict(), v1::Verdict::Stored);
    guarded.rig.stop().await;
}

#[tokio::test]
async fn a_flood_of_streams_that_are_reset_at_once_ends_the_connection() {
    let guarded = Guarded::start().await;
    let mut flood = connect(&guarded).await;
    settings(&mut flood).await;
    let mut frames = Vec::new();
    for stream in (1_u32..4_001).step_by(2).map(u32::to_be_bytes) {
        // HEADERS with END_HEADERS: POST, http, path `/`, all from HPACK's static table; then RST_STREAM with CANCEL.
        frames.extend_from_slice(&[0, 0, 3, 1, 4]);
        frames.extend_from_slice(&stream);
        frames.extend_from_slice(&[0x83, 0x86, 0x84]);
        frames.extend_from_slice(&[0, 0, 4, 3, 0]);
        frames.extend_from_slice(&stream);
        frames.extend_from_slice(&[0, 0, 0, 8]);
    }
    // The server may close before it has read everything.
    let _cut_off = flood.write_all(&frames).await;
    let answer = read_to_close(&mut flood).await;
    // GOAWAY: type 7, flags, stream 0, last stream, error code; the code wanted is ENHANCE_YOUR_CALM.
    let calm = answer
        .windows(14)
        .any(|frame| frame[0] == 7 && frame[10..14] == [0, 0, 0, 0xb]);
    assert!(calm, "{} bytes without ENHANCE_YOUR_CALM", answer.len());
    guarded.status_with(&guarded.role("viewer")).await.expect("a status");
    guarded.rig.stop().await;
}
