//! Stored games as people look at them: pages, filters, and one game whole.

use tengen_coordinator::store::FILE_NAME;
use tengen_proto::v1;
use tengen_proto::v1::run_service_client::RunServiceClient;
use tengen_records::{LeaseId, RecordId, decode};
use tengen_selfplay::wire::order_from_wire;
use tonic::Code;

use crate::gates::with_candidate;
use crate::rig::{Actor, FIXED, Reached, Rig, TIC_TAC_TOE};

async fn list(rig: &Reached, request: v1::ListGamesRequest) -> v1::ListGamesResponse {
    let mut client = RunServiceClient::new(rig.channel().await);
    client.list_games(request).await.expect("a page").into_inner()
}

/// Every game that a filter lets through, in pages of this size.
async fn all(rig: &Reached, filter: v1::GameFilter, page_size: i32) -> Vec<v1::StoredGame> {
    let mut games = Vec::new();
    let mut request = v1::ListGamesRequest {
        page_size,
        filter: Some(filter),
        ..v1::ListGamesRequest::default()
    };
    loop {
        let page = list(rig, request.clone()).await;
        assert!(page.games.len() <= page_size as usize);
        games.extend(page.games);
        if page.next_page_token.is_empty() {
            return games;
        }
        request.page_token = page.next_page_token;
    }
}

fn id(game: &v1::StoredGame) -> RecordId {
    RecordId {
        lease: LeaseId::from_bytes(&game.lease_id).expect("a lease"),
        index: game.game_index,
    }
}

async fn get(rig: &Reached, id: RecordId) -> Result<v1::StoredGame, tonic::Status> {
    let mut client = RunServiceClient::new(rig.channel().await);
    let request = v1::GetGameRequest {
        lease_id: id.lease.to_bytes().to_vec(),
        game_index: id.index,
    };
    Ok(client.get_game(request).await?.into_inner())
}

#[tokio::test]
async fn games_are_listed_newest_first_in_pages_and_read_whole() {
    let rig = Rig::start(TIC_TAC_TOE).await;
    let mut actor = Actor::new(&rig, "actor-1").await;
    let mut delivered = actor.deliver(4).await;
    delivered.extend(actor.deliver(3).await);
    let champion = rig.model("champion").await;

    let games = all(&rig, v1::GameFilter::default(), 2).await;
    assert_eq!(games.len(), 7);
    assert!(games.windows(2).all(|pair| pair[0].sequence > pair[1].sequence));
    for (game, bytes) in games.iter().rev().zip(&delivered) {
        let record = decode(bytes).expect("a record");
        assert_eq!(id(game), record.id);
        assert_eq!((game.kind(), &game.actor[..]), (v1::GameKind::SelfPlay, "actor-1"));
        assert_eq!(game.model_ids, std::slice::from_ref(&champion.model_id));
        assert_eq!(game.plies as usize, record.actions().count());
        assert_eq!(game.positions, record.positions());
        assert_eq!(game.winner, record.outcome.winner.map(|seat| seat.index() as u32));
        assert_eq!(game.reason, record.outcome.reason.as_str());
        assert!(game.record.is_empty() && game.work_order.is_none(), "headings alone");

        let whole = get(&rig, record.id).await.expect("the game");
        assert_eq!(&whole.record, bytes);
        assert!(!whole.damaged);
        let order = order_from_wire(&whole.work_order.expect("an order")).expect("a good order");
        assert_eq!(order.lease, record.id.lease);
        assert_eq!(whole.sequence, game.sequence);
    }
    let with_records = v1::ListGamesRequest {
        with_records: true,
        ..v1::ListGamesRequest::default()
    };
    let page = list(&rig, with_records).await;
    let records: Vec<&Vec<u8>> = page.games.iter().rev().map(|game| &game.record).collect();
    assert_eq!(records, delivered.iter().collect::<Vec<_>>());
    rig.stop().await;
}

#[tokio::test]
async fn filters_let_through_what_they_name() {
    let (rig, _first, mut learner) = with_candidate(FIXED).await;
    let mut actor = Actor::new(&rig, "actor-2").await;
    let work = actor.match_work(0.0).await;
    for index in 0..work.order.plan.games() {
        let record = actor.play_to(&work, index, Some(1));
        assert_eq!(actor.submit(&record).await, v1::Verdict::Stored);
    }
    learner.report().await.expect("an answer");
    let count = async |filter: v1::GameFilter| all(&rig, filter, 50).await.len() as u64;
    let of_kind = |kind: v1::GameKind| v1::GameFilter {
        kind: kind.into(),
        ..v1::GameFilter::default()
    };
    let of_result = |result: v1::GameResult| v1::GameFilter {
        result: result.into(),
        ..v1::GameFilter::default()
    };
    let status = rig.status().await;
    assert_eq!(count(of_kind(v1::GameKind::SelfPlay)).await, status.games);
    assert_eq!(count(of_kind(v1::GameKind::Gate)).await, status.match_games);
    assert_eq!(count(of_kind(v1::GameKind::Rating)).await, 0);
    let everything = count(v1::GameFilter::default()).await;
    assert_eq!(everything, status.games + status.match_games);
    let results = [v1::GameResult::Seat0, v1::GameResult::Seat1, v1::GameResult::Draw];
    let mut by_result = 0;
    for result in results {
        let sql = match result {
            v1::GameResult::Draw => "winner IS NULL".to_owned(),
            seat => format!("winner = {}", seat as i32 - 1),
        };
        let games = count(of_result(result)).await;
        assert_eq!(games, rig.count(&format!("SELECT count(*) FROM games WHERE {sql}")));
        by_result += games;
    }
    assert_eq!(by_result, everything);
    let by_actor = |actor: &str| v1::GameFilter {
        actor: actor.to_owned(),
        ..v1::GameFilter::default()
    };
    assert_eq!(count(by_actor("actor-2")).await, status.match_games);
    assert_eq!(count(by_actor("nobody")).await, 0);

    // The candidate plays in its gate alone; what was the champion before plays everywhere.
    let by_model = |id: &tengen_records::ModelId| v1::GameFilter {
        model_id: id.to_bytes().to_vec(),
        ..v1::GameFilter::default()
    };
    let [candidate, champion] = &work.order.models[..] else {
        panic!("a match has two models")
    };
    assert_eq!(count(by_model(candidate)).await, status.match_games);
    assert_eq!(count(by_model(champion)).await, everything);
    rig.stop().await;
}

#[tokio::test]
async fn an_iterations_games_are_those_stored_while_it_was_played() {
    let rig = Rig::start(TIC_TAC_TOE).await;
    let mut actor = Actor::new(&rig, "actor-1").await;
    actor.deliver(4).await;
    // The clock of the stored times, set apart so that no two moments are the same.
    let data = rig.stop().await;
    let database = rusqlite::Connection::open(data.path().join(FILE_NAME)).expect("a database");
    database
        .execute_batch(
            "UPDATE games SET stored_ms = sequence * 10; DELETE FROM iterations; \
             INSERT INTO iterations VALUES (0, 1, 1, 0, 10), (1, 2, 3, 0, 30);",
        )
        .expect("an update");
    drop(database);
    let rig = Rig::start_in(data, TIC_TAC_TOE).await.expect("it starts");
    let of = |iteration| v1::GameFilter {
        iteration: Some(iteration),
        ..v1::GameFilter::default()
    };
    let sequences = async |iteration| {
        let games = all(&rig, of(iteration), 1).await;
        assert!(games.iter().all(|game| game.iteration == iteration));
        games.iter().map(|game| game.sequence).collect::<Vec<_>>()
    };
    assert_eq!(sequences(0).await, [1]);
    assert_eq!(sequences(1).await, [3, 2]);
    assert_eq!(sequences(2).await, [4]);
    assert_eq!(sequences(3).await, [0; 0]);
    rig.stop().await;
}

#[tokio::test]
async fn what_is_not_there_is_refused_and_what_is_damaged_is_told() {
    let rig = Rig::start(TIC_TAC_TOE).await;
    let mut actor = Actor::new(&rig, "actor-1").await;
    let delivered = actor.deliver(2).await;
    let unknown = RecordId {
        lease: LeaseId(7),
        index: 0,
    };
    let refused = get(&rig, unknown).await.expect_err("no such game");
    assert_eq!(refused.code(), Code::NotFound);
    assert!(refused.message().contains("there is no game"), "{refused}");
    let mut client = RunServiceClient::new(rig.channel().await);
    for request in [
        v1::ListGamesRequest {
            page_token: "x".to_owned(),
            ..v1::ListGamesRequest::default()
        },
        v1::ListGamesRequest {
            filter: Some(v1::GameFilter {
                model_id: vec![1],
                ..v1::GameFilter::default()
            }),
            ..v1::ListGamesRequest::default()
        },
        v1::ListGamesRequest {
            filter: Some(v1::GameFilter {
                kind: 99,
                ..v1::GameFilter::default()
            }),
            ..v1::ListGamesRequest::default()
        },
    ] {
        let refused = client.list_games(request).await.expect_err("nonsense");
        assert_eq!(refused.code(), Code::InvalidArgument);
    }

    let spoilt = decode(&delivered[0]).expect("a record").id;
    let database = rusqlite::Connection::open(rig.path(FILE_NAME)).expect("a database");
    database
        .execute(
            "UPDATE games SET record = zeroblob(length(record)) WHERE sequence = 1",
            [],
        )
        .expect("an update");
    assert!(get(&rig, spoilt).await.expect("the game").damaged);
    assert!(
        !get(&rig, decode(&delivered[1]).expect("a record").id)
            .await
            .expect("the game")
            .damaged
    );
    rig.stop().await;
}
