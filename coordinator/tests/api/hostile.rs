//! Messages made to hurt: they are refused, and everybody else is served on.

use tengen_faults::Proof;
use tengen_proto::v1;
use tengen_proto::v1::Verdict;
use tengen_proto::v1::actor_service_client::ActorServiceClient;
use tengen_records::RECORD_BYTES_MAX;
use tengen_service::channel::{Channel, MESSAGE_BYTES_MAX};
use tonic::codec::CompressionEncoding;
use tonic::{Code, Status};

use crate::rig::{Actor, Rig, TIC_TAC_TOE};

/// Sends one record on a stream of its own and returns the first answer; none when the stream ends without one.
async fn submit(
    mut client: ActorServiceClient<Channel>,
    record: Vec<u8>,
) -> Result<Option<v1::SubmitGameResponse>, Status> {
    let request = v1::SubmitGameRequest {
        actor_id: "actor-1".to_owned(),
        record,
        ..v1::SubmitGameRequest::default()
    };
    client
        .submit_games(tokio_stream::once(request))
        .await?
        .into_inner()
        .message()
        .await
}

#[tokio::test]
async fn what_unpacks_to_more_than_a_message_may_hold_is_never_unpacked() {
    let proof = Proof::begin("decompression-bombs");
    let rig = Rig::start(TIC_TAC_TOE).await;
    let mut actor = Actor::new(&rig, "actor-1").await;
    // 64 MiB of zeros are 64 KiB on the wire.
    let bomb = vec![0; 64 << 20];
    let bytes = bomb.len();
    let packing = ActorServiceClient::new(rig.channel().await).send_compressed(CompressionEncoding::Gzip);
    let refused = submit(packing.clone(), bomb).await.expect_err("a refusal");
    // Today nothing packed is taken at all; were it switched on, the limit on messages would have to hold.
    assert!(
        matches!(
            refused.code(),
            Code::Unimplemented | Code::ResourceExhausted | Code::OutOfRange
        ),
        "{refused}"
    );
    // Not even what is small.
    let small = submit(packing, vec![0; 100]).await.expect_err("a refusal");
    assert_eq!(small.code(), Code::Unimplemented);

    let work = actor.work(0.0).await;
    let record = actor.play(&work, 0);
    assert_eq!(actor.submit(&record).await, Verdict::Stored);
    rig.stop().await;
    proof.count("bombs", 1).count("bomb_bytes", bytes).proved();
}

#[tokio::test]
async fn a_record_too_large_is_rejected_and_a_message_too_large_ends_its_stream() {
    let rig = Rig::start(TIC_TAC_TOE).await;
    let mut actor = Actor::new(&rig, "actor-1").await;
    let client = ActorServiceClient::new(rig.channel().await);
    let large = submit(client.clone(), vec![0; RECORD_BYTES_MAX + 1]).await;
    let large = large.expect("a stream").expect("a verdict");
    assert_eq!(
        (large.verdict(), large.reason_code.as_str()),
        (Verdict::Rejected, "too-large")
    );
    // The beginning is kept for whoever looks into it, not the whole.
    assert_eq!(rig.count("SELECT max(length(record)) FROM quarantine"), 64 * 1024);
    let larger = submit(client, vec![0; MESSAGE_BYTES_MAX + 1]).await;
    assert!(!matches!(larger, Ok(Some(_))), "{larger:?}");

    let work = actor.work(0.0).await;
    let record = actor.play(&work, 0);
    assert_eq!(actor.submit(&record).await, Verdict::Stored);
    assert_eq!(rig.count("SELECT count(*) FROM quarantine"), 1);
    rig.stop().await;
}
