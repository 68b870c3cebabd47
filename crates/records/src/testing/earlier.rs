//! Records as earlier builds wrote them. Data folders, spools, Redis and files hold such bytes, and they stay readable.

use std::mem::take;

use prost::Message;
use tengen_proto::v1;

use crate::record::Record;
use crate::wire::{SCHEMA_VERSION_MIN, encode};

/// The record's bytes in schema version 1, where each entry of a list was a message.
pub fn version_1(record: &Record) -> Vec<u8> {
    let mut wire = v1::GameRecord::decode(&encode(record)[..]).expect("what is encoded decodes");
    wire.schema_version = SCHEMA_VERSION_MIN;
    for search in wire.plies.iter_mut().filter_map(|ply| ply.search.as_mut()) {
        search.policy_target = probabilities(
            take(&mut search.policy_target_actions),
            take(&mut search.policy_target_probabilities),
        );
        search.net_policy_top = probabilities(
            take(&mut search.net_policy_top_actions),
            take(&mut search.net_policy_top_probabilities),
        );
        let visits = take(&mut search.visit_actions)
            .into_iter()
            .zip(take(&mut search.visit_counts));
        search.visits = visits
            .map(|(action, visits)| v1::ActionVisits { action, visits })
            .collect();
    }
    wire.encode_to_vec()
}

fn probabilities(actions: Vec<u32>, probabilities: Vec<f32>) -> Vec<v1::ActionProbability> {
    let entries = actions.into_iter().zip(probabilities);
    entries
        .map(|(action, probability)| v1::ActionProbability { action, probability })
        .collect()
}
