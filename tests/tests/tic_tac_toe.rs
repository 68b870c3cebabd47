//! The preset for tic-tac-toe learns to play perfectly within a budget of games.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

use tengen_proto::v1::model_service_client::ModelServiceClient;
use tengen_proto::v1::run_service_client::RunServiceClient;
use tengen_proto::v1::{DownloadModelRequest, WatchChampionRequest, WatchStatusRequest};
use tengen_service::channel::Channel;
use tengen_system_tests::cluster::{Up, repository};
use tengen_system_tests::optimal::TicTacToe;

/// Three times the median of five runs (docs/benchmarks.md).
const GAMES_MAX: u64 = 13_000;

/// Root visits of the champion's searches.
const SIMULATIONS: u32 = 32;

#[tokio::test(flavor = "multi_thread")]
async fn the_champion_becomes_optimal_everywhere_and_loses_no_line() {
    tengen_inference::init(None).unwrap();
    let solved = TicTacToe::solve();
    let data = tempfile::tempdir().unwrap();
    let up = Up::start(&repository().join(Path::new("runs/tic-tac-toe.toml")), data.path(), &[]);
    let mut client = ModelServiceClient::new(up.channel());
    let mut champions = client
        .watch_champion(WatchChampionRequest {})
        .await
        .unwrap()
        .into_inner();
    loop {
        let champion = tokio::select! {
            champion = champions.message() => champion.unwrap().expect("the champions' stream goes on"),
            games = spent(&up) => panic!("{games} games and no champion that plays perfectly"),
        };
        let model = download(&mut client, &champion.model_id).await;
        let choices = solved.choices(&model, SIMULATIONS);
        let (mistakes, lost) = (solved.mistakes(&choices), solved.lost_lines(&choices));
        let games = up.status().await.games;
        println!(
            "generation {:?}: {mistakes} mistakes, {lost} lost lines after {games} games",
            champion.generation
        );
        if mistakes == 0 && lost == 0 {
            break;
        }
        assert!(
            games <= GAMES_MAX,
            "{mistakes} mistakes and {lost} lost lines are left after {games} games"
        );
    }
    let status = up.status().await;
    assert!(
        status.rejected.is_empty(),
        "honest games were rejected: {:?}",
        status.rejected
    );
    assert!(up.interrupt().0.success());
}

/// Ends when the budget is spent.
async fn spent(up: &Up) -> u64 {
    let mut client = RunServiceClient::new(up.channel());
    let request = WatchStatusRequest {
        interval_ms: 500,
        ..Default::default()
    };
    let mut updates = client.watch_status(request).await.unwrap().into_inner();
    loop {
        let status = updates.message().await.unwrap().expect("the status stream goes on");
        if status.games > GAMES_MAX {
            return status.games;
        }
    }
}

async fn download(client: &mut ModelServiceClient<Channel>, model_id: &[u8]) -> Vec<u8> {
    let request = DownloadModelRequest {
        model_id: model_id.to_vec(),
        offset: 0,
    };
    let mut chunks = client.download_model(request).await.unwrap().into_inner();
    let mut bytes = Vec::new();
    while let Some(chunk) = chunks.message().await.unwrap() {
        bytes.extend_from_slice(&chunk.data);
    }
    assert_eq!(tengen_network::model_id(&bytes).as_slice(), model_id);
    bytes
}
