//! Reduced precisions: played where they are the network here, and said; else fp32 is, and why is said.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use tengen_actor::{Clock, Options};
use tengen_games::{Action, AnyGame};
use tengen_inference::{REPRODUCTION_TOLERANCE, Session, SessionOptions, answered};
use tengen_network::{Weights, read_weights};
use tengen_proto::v1::{Probe, ProbeAnswer};
use tengen_records::{LeaseId, Precision};
use tengen_selfplay::{MatchGame, ModelBytes, Plan};
use tengen_service::run_config::WantedPrecision;

use crate::peer::{DownloadFault, Peer, Server, State, variant};
use crate::{ANY_PORT, Running, options, self_play};

/// Positions that a network ships with.
const PROBES: usize = 4;

fn wanting(server: &Server, data: &Path, precision: WantedPrecision) -> Options {
    Options {
        precision,
        ..options(server, data)
    }
}

/// Positions with what the file says of them.
fn probes(game: &AnyGame, file: &ModelBytes) -> Vec<Probe> {
    tengen_inference::init(None).unwrap();
    let mut session = Session::load(file.bytes(), &SessionOptions::default()).unwrap();
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
    let len = game.spec().planes_len();
    let planes: Vec<u8> = (0..PROBES * len).map(|_| u8::from(rng.random_bool(0.3))).collect();
    let position = |planes: &[u8]| tengen_inference::Probe {
        planes: planes.to_vec(),
        policy: Vec::new(),
        wdl: [0.0; 3],
    };
    let positions: Vec<_> = planes.chunks(len).map(position).collect();
    let answers = answered(&mut session, &positions).unwrap().into_iter();
    let probe = |answer: tengen_inference::Probe| Probe {
        planes: answer.planes,
        policy: answer.policy,
        wdl: answer.wdl.to_vec(),
    };
    answers.map(probe).collect()
}

/// What the file says of them, as it is published with it.
fn answers(game: &AnyGame, file: &ModelBytes) -> Vec<ProbeAnswer> {
    let answer = |probe: Probe| ProbeAnswer {
        policy: probe.policy,
        wdl: probe.wdl,
    };
    probes(game, file).into_iter().map(answer).collect()
}

fn weights(network: &ModelBytes) -> Weights {
    read_weights(network.bytes()).unwrap()
}

/// The network's weights, but sure of winning everywhere, as sums that overflow might make it.
fn sure_of_winning(network: &ModelBytes) -> Weights {
    let mut weights = weights(network);
    weights.get_mut("value.out.bias").unwrap().data_mut()[0] += 4.0;
    weights
}

/// A peer whose first networks come in int8, too, each with the weights that `reduce` makes of it.
fn peer(reduced: usize, reduce: fn(&ModelBytes) -> Weights) -> Peer {
    let peer = Peer::new("tic-tac-toe");
    let models: Vec<Arc<ModelBytes>> = peer.state().models.clone();
    let game = peer.game.clone();
    for model in &models {
        let probes = probes(&game, model);
        peer.state().own_probes.insert(model.id(), probes);
    }
    let files = models.iter().take(reduced);
    let variants = files.map(|model| variant(&game, model, &reduce(model), Precision::Int8));
    peer.state().variants = variants.collect();
    peer
}

/// The precisions that the games of a lease state.
fn stated(state: &State, lease: LeaseId) -> BTreeSet<Precision> {
    let records = state.stored.iter().filter(|(id, _)| id.lease == lease);
    let records = records.map(|(_, bytes)| tengen_records::decode(bytes).unwrap());
    let plies = records.flat_map(|record| record.plies);
    plies.filter_map(|ply| Some(ply.search?.precision)).collect()
}

/// What the last report says of the precision, and why it is no reduced one.
fn told(state: &State) -> (String, String) {
    let report = state.reports.last().cloned().unwrap_or_default();
    (report.precision, report.precision_fell_back)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_faithful_int8_is_played_stated_and_kept_on_disk() {
    let data = tempfile::tempdir().unwrap();
    let peer = peer(1, weights);
    let lease = peer.order(1, self_play(3), 8);
    let server = peer.serve(ANY_PORT).await;
    let actor = Running::start(wanting(&server, data.path(), WantedPrecision::Int8));
    peer.until("three games and a word about them", |state| {
        state.stored.len() == 3 && told(state) == ("int8".to_owned(), String::new())
    })
    .await;
    actor.drain().await.unwrap();
    assert_eq!(stated(&peer.state(), lease), [Precision::Int8].into());
    assert_eq!(peer.state().downloads, 2);
    let kept: BTreeSet<String> = std::fs::read_dir(data.path().join("models"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let files = {
        let state = peer.state();
        [state.models[0].file_id(), state.variants[0].file_id()]
    };
    assert_eq!(kept, files.map(|file| format!("{file}.onnx")).into());

    // The next start finds both.
    let lease = peer.order(2, self_play(2), 8);
    let actor = Running::start(wanting(&server, data.path(), WantedPrecision::Int8));
    peer.until("two more", |state| state.stored.len() == 5).await;
    actor.drain().await.unwrap();
    assert_eq!(stated(&peer.state(), lease), [Precision::Int8].into());
    assert_eq!(peer.state().downloads, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_int8_that_is_another_network_here_is_never_played_and_that_is_said() {
    for wanted in [WantedPrecision::Int8, WantedPrecision::Auto] {
        let data = tempfile::tempdir().unwrap();
        let peer = peer(1, sure_of_winning);
        let lease = peer.order(1, self_play(3), 8);
        let server = peer.serve(ANY_PORT).await;
        let actor = Running::start(wanting(&server, data.path(), wanted));
        let short = peer.state().models[0].id().short();
        peer.until("three games and a word about them", |state| {
            let (precision, why) = told(state);
            state.stored.len() == 3
                && precision == "fp32"
                && why.contains(&short)
                && why.contains("another one in int8")
        })
        .await;
        actor.drain().await.unwrap();
        assert_eq!(stated(&peer.state(), lease), [Precision::Fp32].into(), "{wanted:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_int8_that_computes_something_else_here_than_where_it_was_made_is_never_played_and_that_is_said() {
    type Spoil = fn(&mut Vec<ProbeAnswer>);
    // Near enough to fp32 all the same.
    let far: Spoil = |answers| answers[1].wdl[1] += 2.0 * REPRODUCTION_TOLERANCE;
    let cases: [(Spoil, Precision, &str); 4] = [
        (|_| {}, Precision::Int8, ""),
        (far, Precision::Fp32, "computes something else in int8 here"),
        (|answers| answers.truncate(3), Precision::Fp32, "3 answers to 4 probes"),
        (|answers| answers.clear(), Precision::Int8, ""),
    ];
    for (spoil, expected, part) in cases {
        let data = tempfile::tempdir().unwrap();
        let peer = peer(1, weights);
        let file = Arc::clone(&peer.state().variants[0]);
        let mut made = answers(&peer.game, &file);
        spoil(&mut made);
        peer.state().answers.insert(file.file_id(), made);
        let lease = peer.order(1, self_play(2), 4);
        let server = peer.serve(ANY_PORT).await;
        let actor = Running::start(wanting(&server, data.path(), WantedPrecision::Int8));
        peer.until("two games and a word about them", |state| {
            let (precision, why) = told(state);
            let is_said = why.is_empty() == part.is_empty() && why.contains(part);
            state.stored.len() == 2 && precision == expected.as_str() && is_said
        })
        .await;
        actor.drain().await.unwrap();
        assert_eq!(stated(&peer.state(), lease), [expected].into(), "{part}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_says_it_is_something_else_or_cannot_be_had_is_no_reason_not_to_play() {
    // The variant of the other network under this one's name.
    let data = tempfile::tempdir().unwrap();
    let peer = peer(2, weights);
    {
        let mut state = peer.state();
        let stranger = state.variants.remove(1);
        let id = state.models[0].id();
        state.variants = vec![ModelBytes::variant(id, Precision::Int8, stranger.bytes().to_vec())];
    }
    let lease = peer.order(1, self_play(2), 4);
    let server = peer.serve(ANY_PORT).await;
    let actor = Running::start(wanting(&server, data.path(), WantedPrecision::Int8));
    peer.until("two games and why they are in fp32", |state| {
        state.stored.len() == 2 && told(state).1.contains("fp32_model")
    })
    .await;
    actor.drain().await.unwrap();
    assert_eq!(stated(&peer.state(), lease), [Precision::Fp32].into());

    // One that never arrives whole.
    let data = tempfile::tempdir().unwrap();
    let peer = self::peer(1, weights);
    let mut faults = vec![DownloadFault::Break(usize::MAX)];
    faults.extend([DownloadFault::Flip(0); 3]);
    peer.state().download_faults = faults.into();
    let lease = peer.order(1, self_play(2), 4);
    let server = peer.serve(ANY_PORT).await;
    let actor = Running::start(wanting(&server, data.path(), WantedPrecision::Int8));
    peer.until("two games and why they are in fp32", |state| {
        state.stored.len() == 2 && told(state).1.contains("another hash")
    })
    .await;
    actor.drain().await.unwrap();
    assert_eq!(stated(&peer.state(), lease), [Precision::Fp32].into());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_could_not_be_had_is_left_alone_for_a_while_and_then_had_after_all() {
    static PASSED_S: AtomicU64 = AtomicU64::new(0);
    // It goes on when the test says so.
    let clock = Clock(|| {
        static BEGUN: LazyLock<Instant> = LazyLock::new(Instant::now);
        *BEGUN + Duration::from_secs(PASSED_S.load(Ordering::SeqCst))
    });
    let data = tempfile::tempdir().unwrap();
    let peer = peer(1, weights);
    // The fp32 file arrives; the other one arrives when it is fetched for the third time.
    peer.state().download_faults = [
        DownloadFault::Break(usize::MAX),
        DownloadFault::Skip(0),
        DownloadFault::Skip(0),
    ]
    .into();
    let server = peer.serve(ANY_PORT).await;
    let actor = Running::start(Options {
        clock,
        ..wanting(&server, data.path(), WantedPrecision::Int8)
    });
    // What has passed by then, how often the network is described and files are fetched by then, and what is played.
    for (number, passed_s, described, downloads, precision) in [
        (1, 0, 1, 2, Precision::Fp32),
        (2, 9, 1, 2, Precision::Fp32),
        (3, 20, 2, 3, Precision::Fp32),
        // The second wait is longer than the first.
        (4, 39, 2, 3, Precision::Fp32),
        (5, 60, 3, 4, Precision::Int8),
        (6, 3_600, 3, 4, Precision::Int8),
    ] {
        PASSED_S.store(passed_s, Ordering::SeqCst);
        let lease = peer.order(number, self_play(2), 4);
        peer.until("its two games", |state| {
            state.stored.keys().filter(|id| id.lease == lease).count() == 2
        })
        .await;
        let state = peer.state();
        assert_eq!(stated(&state, lease), [precision].into(), "lease {number}");
        assert_eq!(
            (state.described, state.downloads),
            (described, downloads),
            "lease {number}"
        );
    }
    actor.drain().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_offered_is_played_in_fp32_and_said_where_it_was_asked_for() {
    for (wanted, part) in [
        (WantedPrecision::Int8, "does not come in int8"),
        (WantedPrecision::Fp16, "does not come in fp16"),
        (WantedPrecision::Auto, ""),
        (WantedPrecision::Fp32, ""),
    ] {
        let data = tempfile::tempdir().unwrap();
        let peer = peer(usize::from(wanted == WantedPrecision::Fp16), weights);
        let lease = peer.order(1, self_play(2), 4);
        let server = peer.serve(ANY_PORT).await;
        let actor = Running::start(wanting(&server, data.path(), wanted));
        peer.until("two games and a word about them", |state| {
            let (precision, why) = told(state);
            state.stored.len() == 2 && precision == "fp32" && why.is_empty() == part.is_empty() && why.contains(part)
        })
        .await;
        actor.drain().await.unwrap();
        assert_eq!(stated(&peer.state(), lease), [Precision::Fp32].into(), "{wanted:?}");
        assert_eq!(peer.state().downloads, 1, "{wanted:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn auto_takes_one_of_the_two_by_their_speed_and_says_which() {
    let data = tempfile::tempdir().unwrap();
    let peer = peer(1, weights);
    let lease = peer.order(1, self_play(3), 8);
    let server = peer.serve(ANY_PORT).await;
    let actor = Running::start(wanting(&server, data.path(), WantedPrecision::Auto));
    peer.until("three games and a word about them", |state| {
        let (precision, why) = told(state);
        state.stored.len() == 3 && !precision.is_empty() && why.is_empty()
    })
    .await;
    actor.drain().await.unwrap();
    let state = peer.state();
    let stated = stated(&state, lease);
    assert_eq!(stated.len(), 1, "{stated:?}");
    assert_eq!(
        stated.first().map(|stated| stated.as_str()),
        Some(told(&state).0.as_str())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn both_sides_of_a_match_play_in_the_same_precision() {
    for (reduced, expected) in [(1, Precision::Fp32), (2, Precision::Int8)] {
        let data = tempfile::tempdir().unwrap();
        let peer = peer(reduced, weights);
        let games = [0, 1].map(|seat0_model| MatchGame {
            pair: 0,
            opening: vec![Action(4)],
            sampled_plies: 0,
            seat0_model,
        });
        // The first network alone is played in int8 wherever it need not be compared.
        let alone = peer.order(1, self_play(2), 4);
        let between = peer.order(2, Plan::Match { games: games.into() }, 4);
        let server = peer.serve(ANY_PORT).await;
        let actor = Running::start(wanting(&server, data.path(), WantedPrecision::Int8));
        peer.until("two games of each", |state| state.stored.len() == 4).await;
        actor.drain().await.unwrap();
        let state = peer.state();
        assert_eq!(stated(&state, alone), [Precision::Int8].into());
        assert_eq!(
            stated(&state, between),
            [expected].into(),
            "{reduced} of 2 come in int8"
        );
    }
}
