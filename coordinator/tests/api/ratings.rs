//! Rating matches and what they add up to: handed out apart from everything else, counted once, told to everybody.

use tengen_proto::v1;
use tengen_proto::v1::Verdict;
use tengen_proto::v1::run_service_client::RunServiceClient;
use tengen_records::{Player, ReasonCode, encode};
use tengen_selfplay::Plan;

use crate::database::assert_sound;
use crate::rig::{Actor, Assignment, FIXED, Rig, TIC_TAC_TOE};
use crate::{gates, rig};

/// Half of the games are for ratings, in matches of two pairs.
const RATINGS: &str = "[ratings]\nshare = 0.5\npairs = 2\nbaselines = [\"random\", \"one-ply\"]\n";

fn toml() -> String {
    format!("{TIC_TAC_TOE}{RATINGS}")
}

async fn ratings(rig: &rig::Reached) -> Vec<v1::PlayerRating> {
    let mut client = RunServiceClient::new(rig.channel().await);
    let page = client.list_ratings(v1::ListRatingsRequest::default()).await;
    page.expect("a page").into_inner().ratings
}

async fn pairings(rig: &rig::Reached) -> Vec<v1::Pairing> {
    let mut client = RunServiceClient::new(rig.channel().await);
    let page = client.list_pairings(v1::ListPairingsRequest::default()).await;
    page.expect("a page").into_inner().pairings
}

/// Asks until there is a rating match; self-play leases on the way go back.
async fn rating_work(actor: &mut Actor) -> Assignment {
    for _ in 0..8 {
        let work = actor.work(0.0).await;
        if matches!(work.order.plan, Plan::Rating { .. }) {
            return work;
        }
        actor.report(vec![], vec![work.order.lease.to_bytes().to_vec()]).await;
    }
    panic!("no rating match");
}

fn players(work: &Assignment) -> &[Player; 2] {
    work.order.plan.players().expect("a rating match")
}

/// Plays the whole match; the player at this index wins every game.
async fn play_match(actor: &mut Actor, work: &Assignment, winner: usize) {
    for index in 0..work.order.plan.games() {
        let record = actor.play_to(work, index, Some(winner));
        assert_eq!(actor.submit(&record).await, Verdict::Stored);
    }
}

#[tokio::test]
async fn rating_games_are_counted_once_and_teach_nothing() {
    let rig = Rig::start(&toml()).await;
    let mut actor = Actor::new(&rig, "actor-1").await;
    let work = rating_work(&mut actor).await;
    let games = work.order.plan.match_games().expect("a match");
    assert_eq!(games.len(), 4, "two pairs");
    assert_eq!((games[0].pair, &games[0].opening), (games[1].pair, &games[1].opening));
    assert_eq!((games[0].seat0_model, games[1].seat0_model), (0, 1));
    assert_ne!(games[0].opening, games[2].opening);
    play_match(&mut actor, &work, 0).await;

    let status = rig.status().await;
    assert_eq!((status.rating_games, status.match_games, status.games), (4, 4, 0));
    assert_eq!((status.positions, status.window_positions), (0, 0));
    let again = actor.play_to(&work, 0, Some(0));
    assert_ne!(actor.submit(&again).await, Verdict::Stored);
    assert_eq!(rig.status().await.rating_games, 4, "an id counts once");

    let rated = ratings(&rig).await;
    assert_eq!(rated.iter().map(|rating| rating.games).sum::<u64>(), 8);
    let [winner, loser] = [&rated[0], &rated[rated.len() - 1]];
    assert_eq!((winner.wins, winner.losses, loser.wins, loser.losses), (4, 0, 0, 4));
    // Four wins and a virtual draw: 4.5 of 5 points.
    let lead = winner.elo.expect("a rating") - loser.elo.expect("a rating");
    assert!((lead - 400.0 * 9.0_f64.log10()).abs() < 1e-6, "{rated:?}");
    let zero = rated
        .iter()
        .find(|rating| rating.player == "gen:0")
        .expect("generation 0");
    assert_eq!(
        (zero.elo, zero.elo_error, zero.generation),
        (Some(0.0), Some(0.0), Some(0))
    );
    let listed = pairings(&rig).await;
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].wins + listed[0].losses, 4);
    let expected = listed[0].expected_score.expect("both are rated");
    assert!(
        (expected - 0.9).abs() < 1e-6 || (expected - 0.1).abs() < 1e-6,
        "{listed:?}"
    );
    rig.stop().await;
}

#[tokio::test]
async fn everybody_meets_somebody_and_a_restart_repeats_no_opening() {
    let mut rig = Rig::start(&toml()).await;
    let mut seen = Vec::new();
    for _ in 0..3 {
        let mut actor = Actor::new(&rig, "actor-1").await;
        for _ in 0..3 {
            let work = rating_work(&mut actor).await;
            for game in work.order.plan.match_games().expect("a match").iter().step_by(2) {
                seen.push((players(&work).clone(), game.opening.clone()));
            }
            play_match(&mut actor, &work, 0).await;
        }
        let before = ratings(&rig).await;
        rig = rig.restart(&toml()).await;
        assert_eq!(ratings(&rig).await, before, "a restart changes no rating");
    }
    assert_eq!(rig.status().await.rating_games, 36);
    for at in 0..seen.len() {
        assert!(!seen[..at].contains(&seen[at]), "{:?} again", seen[at]);
    }
    let names: Vec<String> = ratings(&rig).await.into_iter().map(|rating| rating.player).collect();
    for name in ["gen:0", "random", "one-ply"] {
        assert!(names.contains(&name.to_owned()), "{names:?}");
    }
    assert_sound(rig.stop().await.path()).await;
}

#[tokio::test]
async fn a_match_that_was_handed_back_or_comes_late_still_counts_what_was_played() {
    let rig = Rig::start(&toml()).await;
    let mut actor = Actor::new(&rig, "actor-1").await;
    let work = rating_work(&mut actor).await;
    let first = actor.play_to(&work, 0, Some(1));
    assert_eq!(actor.submit(&first).await, Verdict::Stored);
    actor.report(vec![], vec![work.order.lease.to_bytes().to_vec()]).await;
    let late = actor.play_to(&work, 1, Some(1));
    assert_eq!(actor.submit(&late).await, Verdict::Stored);
    let [won, lost] = players(&work).clone();
    let rated = ratings(&rig).await;
    let of = |wins: u64| rated.iter().filter(|rating| rating.wins == wins).count();
    assert_eq!((of(2), of(0)), (1, rated.len() - 1), "{won} against {lost}: {rated:?}");
    rig.stop().await;
}

#[tokio::test]
async fn false_statements_about_who_played_are_refused() {
    let rig = Rig::start(&toml()).await;
    let mut actor = Actor::new(&rig, "actor-1").await;
    let work = rating_work(&mut actor).await;
    let honest = actor.play(&work, 0);
    let mut others = honest.clone();
    others.players = Some([Player::Random, Player::Random]);
    let mut nobody = honest.clone();
    nobody.players = None;
    for (record, code) in [(others, ReasonCode::WrongPlayers), (nobody, ReasonCode::WrongPlayers)] {
        let answer = actor.submit_bytes(encode(&record)).await;
        assert_eq!(
            (answer.verdict(), answer.reason_code.as_str()),
            (Verdict::Rejected, code.as_str())
        );
    }
    assert_eq!(rig.status().await.rating_games, 0);
    rig.stop().await;
}

#[tokio::test]
async fn actors_of_earlier_builds_are_given_no_rating_match() {
    let rig = Rig::start(&toml()).await;
    let mut actor = Actor::new(&rig, "actor-1").await;
    for _ in 0..20 {
        let request = v1::GetWorkRequest {
            actor_id: actor.id.clone(),
            games_parallel: 1,
            ..v1::GetWorkRequest::default()
        };
        let answer = actor.client.get_work(request).await.expect("an answer").into_inner();
        let Some(v1::get_work_response::Work::Order(order)) = answer.work else {
            panic!("no work: {answer:?}")
        };
        assert_eq!(order.kind(), v1::WorkKind::SelfPlay);
    }
    rig.stop().await;
}

#[tokio::test]
async fn gates_rate_candidate_and_champion_without_any_rating_match() {
    let (rig, mut actor, _learner) = gates::with_candidate(FIXED).await;
    gates::play_gate(&rig, &mut actor, Some(0)).await;
    let rated = ratings(&rig).await;
    let names: Vec<&str> = rated.iter().map(|rating| rating.player.as_str()).collect();
    assert_eq!(names, ["gen:1", "gen:0"]);
    assert!(rated[0].elo.expect("a rating") > 100.0 && rated[0].wins >= 3);
    assert_eq!(rig.status().await.rating_games, 0);
    rig.stop().await;
}

#[tokio::test]
async fn a_run_without_a_match_rates_generation_0_alone_and_lists_come_in_pages() {
    let rig = Rig::start(&toml()).await;
    let rated = ratings(&rig).await;
    assert_eq!(rated.len(), 1);
    assert_eq!(
        (rated[0].player.as_str(), rated[0].elo, rated[0].games),
        ("gen:0", Some(0.0), 0)
    );
    let mut actor = Actor::new(&rig, "actor-1").await;
    for _ in 0..3 {
        let work = rating_work(&mut actor).await;
        play_match(&mut actor, &work, 0).await;
    }
    let whole = ratings(&rig).await;
    let mut client = RunServiceClient::new(rig.channel().await);
    let mut request = v1::ListRatingsRequest {
        page_size: 1,
        page_token: String::new(),
    };
    let mut paged = Vec::new();
    loop {
        let page = client.list_ratings(request.clone()).await.expect("a page").into_inner();
        assert!(page.ratings.len() <= 1);
        paged.extend(page.ratings);
        if page.next_page_token.is_empty() {
            break;
        }
        request.page_token = page.next_page_token;
    }
    assert_eq!(paged, whole);
    request.page_token = "nonsense".to_owned();
    assert!(client.list_ratings(request).await.is_err());
    rig.stop().await;
}

#[tokio::test]
async fn a_baseline_that_is_none_is_refused_with_what_to_write() {
    let toml = toml().replace("one-ply", "two-ply");
    let folder = tempfile::tempdir().expect("a folder");
    let Err(refused) = Rig::start_in(folder, &toml).await else {
        panic!("it started")
    };
    let words = refused.to_string();
    assert!(
        words.contains("ratings.baselines") && words.contains("rollout:N"),
        "{words}"
    );
}
