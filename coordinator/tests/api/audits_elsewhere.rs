//! Audits of actors that compute elsewhere than on a CPU, or have not said where: looser, but audits all the same.

use std::sync::Arc;

use tengen_network::{model_id, random_weights, read_metadata, write_onnx};
use tengen_proto::v1;
use tengen_records::{ModelId, Precision, Record};
use tengen_selfplay::ModelBytes;

use crate::audits::{dealt_with, play};
use crate::precisions::{audited, submit, sure_of_winning, work_with};
use crate::rig::{Actor, Learner, Rig};

/// What other devices may make of a rounded network and the coordinator's CPU never does.
const OFF: f32 = 0.05;

/// A candidate that is sure of winning, as one with opinions is, and comes in int8: its description, its files in the order
/// in which they are sent, and the one in int8.
fn opinionated(learner: &Learner) -> (v1::Model, Vec<u8>, Arc<ModelBytes>) {
    let (mut model, plain) = learner.network(1);
    let weights = sure_of_winning(&plain);
    let metadata = read_metadata(&plain).expect("metadata");
    let mut bytes = write_onnx(&learner.shape().1, &weights, &metadata).expect("a network");
    let (variant, file) = learner.variant_of(&bytes, &weights, Precision::Int8);
    let id = ModelId(model_id(&bytes));
    model.model_id = id.to_bytes().to_vec();
    model.size_bytes = bytes.len() as u64;
    model.variants.push(variant);
    bytes.extend_from_slice(&file);
    (model, bytes, ModelBytes::variant(id, Precision::Int8, file))
}

/// A random network's file in int8, under the name of this one.
fn impostor(learner: &Learner, network: &[u8], id: ModelId) -> Arc<ModelBytes> {
    let weights = random_weights(&learner.shape().1, 77);
    let (_, file) = learner.variant_of(network, &weights, Precision::Int8);
    ModelBytes::variant(id, Precision::Int8, file)
}

/// The same game, as a device would state it that rounds otherwise.
fn rounded_otherwise(mut record: Record) -> Record {
    for search in record.plies.iter_mut().filter_map(|ply| ply.search.as_mut()) {
        search.net_wdl[0] -= OFF;
        search.net_wdl[1] += OFF;
    }
    record
}

/// Says where the actor computes.
async fn computes_on(actor: &mut Actor, provider: &str) {
    let told = v1::ReportActorRequest {
        actor_id: actor.id.clone(),
        provider: provider.to_owned(),
        ..v1::ReportActorRequest::default()
    };
    actor.client.report(told).await.expect("an answer");
}

/// How many audits fail when this game is sent; `games` were dealt with before.
async fn failed(rig: &Rig, actor: &mut Actor, record: Record, games: &mut u64) -> u64 {
    let before = rig.status().await.audit_failed;
    *games += submit(actor, &[record]).await;
    let status = dealt_with(rig, *games).await;
    assert_eq!(status.audit_missed, 0);
    status.audit_failed - before
}

#[tokio::test]
async fn a_random_network_behind_int8_is_found_out_wherever_its_actor_says_it_computes() {
    let (rig, mut actor, mut games) = audited().await;
    let mut learner = Learner::new(&rig).await;
    let (model, bytes, honest) = opinionated(&learner);
    let stranger = impostor(&learner, &bytes[..model.size_bytes as usize], honest.id());
    learner.publish_bytes(model.clone(), bytes).await.expect("a champion");

    for (provider, failed_when_off) in [
        ("CUDAExecutionProvider", 0),
        ("none yet", 0),
        ("CPUExecutionProvider", 1),
    ] {
        computes_on(&mut actor, provider).await;
        let work = work_with(&mut actor, &model).await;
        let mut played = play(&work, Arc::clone(&honest)).into_iter();
        let mut next = || played.next().expect("a lease has three games");
        let (exact, off) = (next(), rounded_otherwise(next()));
        let lie = play(&work, Arc::clone(&stranger)).swap_remove(2);
        for (record, expected, what) in [
            (exact, 0, "honest"),
            (off, failed_when_off, "off"),
            (lie, 1, "a random network"),
        ] {
            let found = failed(&rig, &mut actor, record, &mut games).await;
            assert_eq!(found, expected, "{what} on {provider}");
        }
    }
    rig.stop().await;
}
