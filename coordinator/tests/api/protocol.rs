//! Protocol versions: what is new in the newest, and that those before are still served.

use tengen_proto::v1;
use tengen_proto::v1::Verdict;
use tengen_records::encode;
use tengen_records::testing::earlier::version_1;
use tonic::codegen::http::uri::PathAndQuery;

use crate::rig::{Actor, Rig, TIC_TAC_TOE, hello};

#[tokio::test]
async fn every_verdict_repeats_its_ticket_even_for_what_cannot_be_read() {
    let rig = Rig::start(TIC_TAC_TOE).await;
    let mut actor = Actor::new(&rig, "actor-1").await;
    assert_eq!(actor.hello.protocol, tengen_proto::PROTOCOL);
    let work = actor.work(10.0).await;
    let good = encode(&actor.play(&work, 0));
    let oversized = vec![0; tengen_records::RECORD_BYTES_MAX + 1];
    for (record, ticket, verdict, reason) in [
        (good.clone(), 11, Verdict::Stored, ""),
        (good, 12, Verdict::Duplicate, ""),
        (oversized, 13, Verdict::Rejected, "too-large"),
        (b"rubbish".to_vec(), u64::MAX, Verdict::Rejected, "decode"),
    ] {
        actor.send_with_ticket(record, ticket).await;
        let answer = actor.verdict().await;
        assert_eq!((answer.ticket, answer.verdict()), (ticket, verdict));
        assert_eq!(answer.reason_code, reason);
    }
    rig.stop().await;
}

#[tokio::test]
async fn a_message_beyond_the_limit_ends_the_stream_with_the_limit_and_harms_nobody() {
    let rig = Rig::start(TIC_TAC_TOE).await;
    let mut actor = Actor::new(&rig, "actor-1").await;
    let limit = tengen_service::channel::MESSAGE_BYTES_MAX;
    actor.send_with_ticket(vec![0; limit + 1], 1).await;
    let error = actor.stream_error().await;
    assert_eq!(error.code(), tonic::Code::OutOfRange);
    assert!(error.message().contains(&limit.to_string()), "{error}");
    Actor::new(&rig, "actor-1").await.deliver(1).await;
    rig.stop().await;
}

/// The wire as protocol 1 had it: what an actor of that version sends and understands.
mod protocol_1 {
    /// `tengen.v1.SubmitGameRequest` without a ticket.
    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct SubmitGameRequest {
        #[prost(string, tag = "1")]
        pub(super) actor_id: String,
        #[prost(bytes = "vec", tag = "2")]
        pub(super) record: Vec<u8>,
    }

    /// `tengen.v1.SubmitGameResponse` without a ticket.
    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct SubmitGameResponse {
        #[prost(bytes = "vec", tag = "1")]
        pub(super) lease_id: Vec<u8>,
        #[prost(uint32, tag = "2")]
        pub(super) game_index: u32,
        #[prost(int32, tag = "3")]
        pub(super) verdict: i32,
        #[prost(string, tag = "4")]
        pub(super) reason_code: String,
        #[prost(string, tag = "5")]
        pub(super) detail: String,
    }

    /// `tengen.v1.ReportActorResponse` that knows no leases wanted back.
    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct ReportActorResponse {
        #[prost(bytes = "vec", repeated, tag = "1")]
        pub(super) cancelled_lease_ids: Vec<Vec<u8>>,
    }
}

#[tokio::test]
async fn actors_of_the_first_protocol_and_their_records_are_served() {
    let rig = Rig::start(TIC_TAC_TOE).await;
    let mut actor = Actor::new(&rig, "actor-1").await;
    let old = v1::RegisterActorRequest {
        protocol_min: 1,
        protocol_max: 1,
        ..hello("actor-1")
    };
    let welcome = actor.client.register(old).await.expect("a welcome").into_inner();
    assert_eq!(welcome.protocol, 1);
    let work = actor.work(10.0).await;

    let mut client = tonic::client::Grpc::new(rig.channel().await);
    client.ready().await.expect("a connection");
    let record = version_1(&actor.play(&work, 0));
    let game = protocol_1::SubmitGameRequest {
        actor_id: "actor-1".to_owned(),
        record: record.clone(),
    };
    let path = PathAndQuery::from_static("/tengen.v1.ActorService/SubmitGames");
    let codec = tonic_prost::ProstCodec::<protocol_1::SubmitGameRequest, protocol_1::SubmitGameResponse>::default();
    let games = tonic::Request::new(tokio_stream::iter([game]));
    let mut verdicts = client
        .streaming(games, path, codec)
        .await
        .expect("a stream")
        .into_inner();
    let verdict = verdicts.message().await.expect("a good stream").expect("a verdict");
    assert_eq!(verdict.verdict, i32::from(Verdict::Stored));
    assert_eq!(verdict.lease_id, work.order.lease.to_bytes());
    assert_eq!(verdict.game_index, 0);
    // It is known by the bytes that came, not by those that this build would have written.
    let again = actor.submit_bytes(record).await;
    assert_eq!(again.verdict(), Verdict::Duplicate);

    client.ready().await.expect("a connection");
    let report = v1::ReportActorRequest {
        actor_id: "actor-1".to_owned(),
        lease_ids: vec![work.order.lease.to_bytes().to_vec()],
        ..v1::ReportActorRequest::default()
    };
    let path = PathAndQuery::from_static("/tengen.v1.ActorService/Report");
    let codec = tonic_prost::ProstCodec::<v1::ReportActorRequest, protocol_1::ReportActorResponse>::default();
    let answer = client
        .unary(tonic::Request::new(report), path, codec)
        .await
        .expect("an answer");
    assert!(answer.into_inner().cancelled_lease_ids.is_empty());
    rig.stop().await;
}
