//! Networks in reduced precisions: published with their network, kept, checked, removed with it, and audited as what games
//! say they are.

use std::path::Path;
use std::sync::Arc;

use sha2::{Digest, Sha256};
use tempfile::TempDir;
use tengen_coordinator::{AuditConfig, RetentionConfig};
use tengen_network::{Weights, model_id, random_weights, read_weights};
use tengen_proto::v1;
use tengen_proto::v1::Verdict;
use tengen_records::{ModelId, Precision, Record};
use tengen_selfplay::audit::{evaluator, load_runtime};
use tengen_selfplay::{Evaluator, ModelBytes};
use tonic::Code;

use crate::audits::{champion, dealt_with, play};
use crate::database::{assert_sound, db};
use crate::rig::{Actor, Assignment, Learner, NONE, Rig, TIC_TAC_TOE, options};

fn toml() -> String {
    format!("{TIC_TAC_TOE}{NONE}")
}

/// A run that wants its first candidate.
async fn run_with_iteration() -> (Rig, Learner) {
    let rig = Rig::start(&toml()).await;
    Actor::new(&rig, "actor-1").await.deliver(4).await;
    let learner = Learner::new(&rig).await;
    (rig, learner)
}

/// The names of the network files.
fn files(rig: &Rig) -> Vec<String> {
    let entries = std::fs::read_dir(rig.path("models")).expect("a folder");
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("plain names"))
        .collect();
    names.sort();
    names
}

/// The bytes that are downloaded by this id.
async fn download(rig: &Rig, id: &[u8]) -> Vec<u8> {
    let named = v1::Model {
        model_id: id.to_vec(),
        ..v1::Model::default()
    };
    rig.download(&named, 0).await
}

/// An answer to the one probe that these networks have.
fn answer() -> v1::ProbeAnswer {
    v1::ProbeAnswer {
        policy: vec![0.125; 9],
        wdl: vec![0.5, 0.25, 0.25],
    }
}

#[tokio::test]
async fn a_network_and_its_variants_are_published_listed_and_downloaded_together() {
    let (rig, mut learner) = run_with_iteration().await;
    let (mut model, bytes) = learner.network_in(1, &[Precision::Int8, Precision::Fp16]);
    model.variants[0].answers = vec![answer()];
    let published = learner
        .publish_bytes(model.clone(), bytes.clone())
        .await
        .expect("a model");
    assert_eq!(files(&rig).len(), 4, "the random network, and three files of this one");
    let watched = {
        let mut champions = rig
            .models()
            .await
            .watch_champion(v1::WatchChampionRequest {})
            .await
            .expect("a stream")
            .into_inner();
        champions.message().await.expect("a message").expect("a champion")
    };
    let listed = rig.listed_models().await.swap_remove(0);
    for told in [&published, &rig.model("champion").await, &watched, &listed] {
        assert_eq!(told.model_id, model.model_id);
        assert_eq!(told.variants.len(), 2, "{told:?}");
        let mut from = model.size_bytes as usize;
        for announced in &model.variants {
            let file = &bytes[from..][..announced.size_bytes as usize];
            from += file.len();
            let mut expected = v1::ModelVariant {
                sha256: Sha256::digest(file).to_vec(),
                ..announced.clone()
            };
            // Lists have neither probes nor answers to them.
            if told.probes.is_empty() {
                expected.answers.clear();
            }
            assert!(told.variants.contains(&expected), "{expected:?} in {told:?}");
            assert!(download(&rig, &announced.file_id).await == file, "the file itself");
        }
    }
    assert!(download(&rig, &model.model_id).await == bytes[..model.size_bytes as usize]);

    // A lost answer: the same again changes nothing, and neither does the network with another file.
    let before = files(&rig);
    let again = learner.publish_bytes(model.clone(), bytes.clone()).await;
    assert_eq!(again.expect("the same again").variants, published.variants);
    let network = &bytes[..model.size_bytes as usize];
    let (other, file) = {
        let shape = learner.shape().1;
        learner.variant_of(network, &random_weights(&shape, 3), Precision::Int8)
    };
    let with_other = v1::Model {
        variants: vec![other],
        ..model
    };
    let known = learner.publish_bytes(with_other, [network, &file[..]].concat()).await;
    assert_eq!(known.expect("known by its network").variants, published.variants);
    assert_eq!(files(&rig), before, "what is not named is not kept");
    let folder = rig.stop().await;
    assert_sound(folder.path()).await;
    let rig = Rig::start_in(folder, &toml()).await.expect("it starts again");
    assert_eq!(rig.model("champion").await.variants, published.variants);
    rig.stop().await;
}

/// Makes a publication what it must not be.
type Spoil = fn(&mut v1::Model, &mut Vec<u8>);

/// Answers of a variant that do not fit its network's probes, and what is said of them.
const OTHER_ANSWERS: [(Spoil, &str); 3] = [
    (
        |model, _| model.variants[0].answers = vec![answer(); 2],
        "variants[0].answers: there are 2 for 1 probes",
    ),
    (
        |model, _| {
            model.variants[0].answers = vec![answer()];
            model.variants[0].answers[0].policy.pop();
        },
        "answer 0 does not fit the game",
    ),
    (
        |model, _| {
            model.variants[0].answers = vec![answer()];
            model.variants[0].answers[0].wdl[2] = f32::NAN;
        },
        "answer 0 does not fit the game",
    ),
];

#[tokio::test]
async fn a_publication_whose_variants_are_not_what_they_are_said_to_be_is_refused_whole() {
    let (rig, mut learner) = run_with_iteration().await;
    let (good, bytes) = learner.network_in(1, &[Precision::Int8]);
    let before = files(&rig);
    let cases: [(Spoil, &str); 9] = [
        (|model, _| model.variants[0].precision = 1, "no reduced precision"),
        (|model, _| model.variants[0].precision = 0, "no reduced precision"),
        (
            |model, _| model.variants.push(model.variants[0].clone()),
            "announced twice",
        ),
        (|model, _| model.variants[0].precision = 2, "precision \"int8\""),
        (
            |model, _| model.variants[0].file_id[0] ^= 1,
            "variants[0].file_id: the bytes hash to",
        ),
        (
            |model, _| model.variants[0].size_bytes = 0,
            "variants[0].size_bytes: 0 is not",
        ),
        (|_, bytes| bytes.truncate(bytes.len() - 1), "were announced"),
        (|model, _| model.variants[0].fidelity = None, "fidelity: it is missing"),
        (|model, _| model.probes.clear(), "model.probes: there are none"),
    ];
    for (spoil, expected) in cases.into_iter().chain(OTHER_ANSWERS) {
        let (mut model, mut bytes) = (good.clone(), bytes.clone());
        spoil(&mut model, &mut bytes);
        let refused = learner.publish_bytes(model, bytes).await.expect_err(expected);
        assert!(
            refused.message().contains(expected),
            "{expected:?} in {}",
            refused.message()
        );
        assert_eq!(files(&rig), before, "{expected}");
    }
    let far = v1::Fidelity {
        policy_agreement: 1.5,
        ..good.variants[0].fidelity.expect("it is stated")
    };
    let mut beyond = good.clone();
    beyond.variants[0].fidelity = Some(far);
    let refused = learner
        .publish_bytes(beyond, bytes.clone())
        .await
        .expect_err("no share");
    assert!(refused.message().contains("no comparison"), "{refused}");

    // The variant of another network.
    let (mut model, network) = learner.network(1);
    let (stranger, strange_files) = learner.network_in(2, &[Precision::Int8]);
    model.variants.clone_from(&stranger.variants);
    let strange = &strange_files[stranger.size_bytes as usize..];
    let refused = learner
        .publish_bytes(model, [&network[..], strange].concat())
        .await
        .expect_err("another network's");
    assert_eq!(refused.code(), Code::FailedPrecondition);
    assert!(refused.message().contains("fp32_model"), "{refused}");
    // A reduced precision in the place of the network.
    let (mut model, network) = learner.network(1);
    let weights = read_weights(&network).expect("weights");
    let (_, reduced) = learner.variant_of(&network, &weights, Precision::Int8);
    model.model_id = model_id(&reduced).to_vec();
    model.size_bytes = reduced.len() as u64;
    let refused = learner.publish_bytes(model, reduced).await.expect_err("no fp32");
    assert!(refused.message().contains("precision int8"), "{refused}");

    assert_eq!(files(&rig), before);
    assert_eq!(rig.count("SELECT count(*) FROM models"), 1);
    learner
        .publish_bytes(good, bytes)
        .await
        .expect("the good one is still wanted");
    rig.stop().await;
}

/// Starts on a folder with a rule, and returns when its first sweep is over.
async fn swept(folder: TempDir, retention: RetentionConfig) -> Rig {
    let mut options = options(folder.path(), &toml());
    options.config.retention = retention;
    let rig = Rig::start_with(folder, options).await.expect("it starts");
    let mut actor = Actor::new(&rig, "sweeper").await;
    for _ in 0..8 {
        actor.report(vec![], vec![]).await;
    }
    rig
}

#[tokio::test]
async fn files_of_variants_are_checked_copied_and_removed_with_their_network() {
    let rig = Rig::start(&toml()).await;
    let mut actor = Actor::new(&rig, "actor-1").await;
    let mut learner = Learner::new(&rig).await;
    for iteration in 1..=4 {
        actor.deliver(4).await;
        let (model, bytes) = learner.network_in(iteration, &[Precision::Int8]);
        learner.publish_bytes(model, bytes).await.expect("a candidate");
    }
    let variant = rig.model("gen:2").await.variants.swap_remove(0);
    let name = format!("{}.onnx", ModelId::from_bytes(&variant.file_id).expect("an id"));
    let folder = rig.stop().await;
    assert_sound(folder.path()).await;
    let parent = tempfile::tempdir().expect("a folder");
    let backup = parent.path().join("backup");
    let (made, text) = db(&["backup", backup.to_str().expect("a path")], folder.path()).await;
    assert!(made, "{text}");
    assert!(backup.join("models").join(&name).exists(), "the copy has it");
    assert_sound(&backup).await;
    assert_damage_is_named(folder.path(), &name).await;

    let rule = RetentionConfig {
        keep_generations: 1,
        ..RetentionConfig::default()
    };
    let rig = swept(folder, rule).await;
    let request = v1::DownloadModelRequest {
        model_id: variant.file_id.clone(),
        offset: 0,
    };
    let gone = rig
        .models()
        .await
        .download_model(request)
        .await
        .expect_err("it is gone");
    assert_eq!(gone.code(), Code::NotFound);
    assert!(gone.message().contains("retention"), "{gone}");
    let described = rig.model("gen:2").await.variants;
    assert_eq!(described, [variant], "its description stays");
    // Generation 0, and the champion with its variant.
    assert_eq!(files(&rig).len(), 3, "{:?}", files(&rig));
    let folder = rig.stop().await;
    assert_sound(folder.path()).await;
}

/// A variant's file with one bit flipped, then whole again.
async fn assert_damage_is_named(data: &Path, name: &str) {
    let path = data.join("models").join(name);
    let whole = std::fs::read(&path).expect("a file");
    let mut damaged = whole.clone();
    damaged[200] ^= 1;
    tengen_service::files::write_atomic(&path, &damaged).expect("it is written");
    let (sound, text) = db(&["check"], data).await;
    assert!(
        !sound && text.contains("table model_variants: the file") && text.contains("of network 3 does not hold"),
        "{text}"
    );
    tengen_service::files::write_atomic(&path, &whole).expect("it is written");
}

/// A run whose every game is audited, after its first iteration of games with its random network.
pub(crate) async fn audited() -> (Rig, Actor, u64) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut options = options(folder.path(), &toml());
    options.config.audit = Some(AuditConfig {
        share: 1.0,
        strikes: 100,
        ..AuditConfig::default()
    });
    let rig = Rig::start_with(folder, options).await.expect("it starts");
    let network = champion(&rig);
    let mut actor = Actor::new(&rig, "actor-1").await;
    let work = actor.work(0.0).await;
    let games = submit(&mut actor, &play(&work, network)[..4]).await;
    let status = dealt_with(&rig, games).await;
    assert_eq!((status.audited, status.audit_failed), (games, 0));
    (rig, actor, games)
}

pub(crate) async fn submit(actor: &mut Actor, records: &[Record]) -> u64 {
    for record in records {
        assert_eq!(actor.submit(record).await, Verdict::Stored);
    }
    records.len() as u64
}

/// The network's weights, but sure of winning everywhere, as sums that overflow might make it.
pub(crate) fn sure_of_winning(network: &[u8]) -> Weights {
    let mut weights = read_weights(network).expect("weights");
    let bias = weights.get_mut("value.out.bias").expect("it is there");
    bias.data_mut()[0] += 4.0;
    weights
}

/// A lease with the network that was just promoted.
pub(crate) async fn work_with(actor: &mut Actor, model: &v1::Model) -> Assignment {
    for _ in 0..8 {
        let work = actor.work(0.0).await;
        if work.order.models[0].0[..] == model.model_id {
            return work;
        }
    }
    panic!("no lease names the champion");
}

#[tokio::test]
async fn a_claim_of_int8_is_audited_with_that_file_and_a_claim_of_what_is_not_offered_is_false() {
    let (rig, mut actor, mut games) = audited().await;
    let mut learner = Learner::new(&rig).await;
    let (model, bytes) = learner.network_in(1, &[Precision::Int8]);
    let network = ModelBytes::new(bytes[..model.size_bytes as usize].to_vec());
    let file = bytes[model.size_bytes as usize..].to_vec();
    let reduced = ModelBytes::variant(network.id(), Precision::Int8, file);
    learner.publish_bytes(model.clone(), bytes).await.expect("a champion");

    let work = work_with(&mut actor, &model).await;
    let honest = play(&work, Arc::clone(&reduced));
    let stated = honest[0].plies[0].search.as_ref().map(|search| search.precision);
    assert_eq!(stated, Some(Precision::Int8));
    games += submit(&mut actor, &honest).await;
    let status = dealt_with(&rig, games).await;
    assert_eq!(
        (status.audited, status.audit_failed, status.audit_missed),
        (games, 0, 0)
    );

    // Another network under the name of int8, and the right one under a precision that nobody published.
    let (_, strange) = learner.variant_of(network.bytes(), &sure_of_winning(network.bytes()), Precision::Int8);
    for (model_played, part) in [
        (
            ModelBytes::variant(network.id(), Precision::Int8, strange),
            "away from network",
        ),
        (
            ModelBytes::variant(network.id(), Precision::Fp16, reduced.bytes().to_vec()),
            "states fp16, in which network",
        ),
    ] {
        let work = work_with(&mut actor, &model).await;
        let records = play(&work, model_played);
        let failed = rig.status().await.audit_failed;
        games += submit(&mut actor, &records[..1]).await;
        let status = dealt_with(&rig, games).await;
        assert_eq!(status.audit_failed, failed + 1, "{part}");
        let sql = format!("SELECT count(*) FROM audit_failures WHERE detail LIKE '%{part}%'");
        assert_eq!(rig.count(&sql), 1, "{part}");
    }
    rig.stop().await;
}

#[tokio::test]
async fn what_is_not_faithful_on_the_coordinators_own_cpu_is_held_against_nobody() {
    let (rig, mut actor, games) = audited().await;
    let mut learner = Learner::new(&rig).await;
    let (mut model, network) = learner.network(1);
    let (variant, file) = learner.variant_of(&network, &sure_of_winning(&network), Precision::Int8);
    model.variants.push(variant);
    let bytes = [&network[..], &file[..]].concat();
    learner.publish_bytes(model.clone(), bytes).await.expect("a champion");

    let work = work_with(&mut actor, &model).await;
    let reduced = ModelBytes::variant(ModelId(model_id(&network)), Precision::Int8, file);
    let records = play(&work, reduced);
    let missed = submit(&mut actor, &records[..2]).await;
    let status = dealt_with(&rig, games + missed).await;
    assert_eq!((status.audit_missed, status.audit_failed), (missed, 0));
    assert_eq!(status.actors[0].strikes, 0);
    assert!(status.audit.contains("it is another network here"), "{}", status.audit);
    // The network itself is audited as ever.
    let work = work_with(&mut actor, &model).await;
    let records = play(&work, ModelBytes::new(network));
    let more = submit(&mut actor, &records[..1]).await;
    let status = dealt_with(&rig, games + missed + more).await;
    assert_eq!((status.audited, status.audit_failed), (games + more, 0));
    rig.stop().await;
}

/// What the file answers for the probe on this machine.
fn answer_here(file: &Arc<ModelBytes>, probe: &v1::Probe) -> v1::ProbeAnswer {
    load_runtime(None).expect("ONNX Runtime is laid out");
    let softmax = |logits: &[f32]| -> Vec<f32> {
        let sum: f32 = logits.iter().map(|logit| logit.exp()).sum();
        logits.iter().map(|logit| logit.exp() / sum).collect()
    };
    let mut outputs = Default::default();
    evaluator()
        .evaluate(file, &probe.planes, 1, &mut outputs)
        .expect("it runs");
    let (policy, wdl) = outputs.position(0);
    v1::ProbeAnswer {
        policy: softmax(policy),
        wdl: softmax(&wdl),
    }
}

#[tokio::test]
async fn what_this_cpu_does_not_reproduce_is_held_against_nobody_and_the_status_says_so() {
    for (off, judged) in [(0.0, 2), (0.1, 0)] {
        let (rig, mut actor, games) = audited().await;
        let mut learner = Learner::new(&rig).await;
        let (mut model, bytes) = learner.network_in(1, &[Precision::Int8]);
        let (network, file) = bytes.split_at(model.size_bytes as usize);
        let id = ModelId(model_id(network));
        let reduced = ModelBytes::variant(id, Precision::Int8, file.to_vec());
        let mut made = answer_here(&reduced, &model.probes[0]);
        made.wdl[1] += off;
        model.variants[0].answers = vec![made];
        learner.publish_bytes(model.clone(), bytes).await.expect("a champion");

        let work = work_with(&mut actor, &model).await;
        let records = play(&work, reduced);
        let played = submit(&mut actor, &records[..2]).await;
        let status = dealt_with(&rig, games + played).await;
        assert_eq!((status.audited, status.audit_failed), (games + judged, 0));
        let says = format!(
            "not judged: int8 of network {}: this CPU does not reproduce it",
            id.short()
        );
        assert_eq!(status.audit.contains(&says), judged == 0, "{}", status.audit);
        assert_eq!(status.audit.contains("not judged"), judged == 0, "{}", status.audit);
        rig.stop().await;
    }
}
