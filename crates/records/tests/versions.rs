//! The lists of searches in both schema versions: which form belongs to which, what is refused, and what they cost.

use prost::Message;
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use tengen_games::{AnyGame, Game, GameVisitor};
use tengen_proto::v1;
use tengen_records::testing::earlier::version_1;
use tengen_records::{Kind, ReasonCode, Record, Rejection, decode, encode, testing};

/// A self-play game of five in a row, its searches about as long as real ones.
fn typical_record() -> Record {
    struct Play;
    impl GameVisitor for Play {
        type Output = Record;
        fn visit<G: Game>(self, game: G) -> Record {
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(4);
            let expected = testing::expected(&game, Kind::SelfPlay, &mut rng);
            let mut record = testing::random_record(&game, &expected, 0, &mut rng);
            testing::thin_out(&mut record);
            record
        }
    }
    AnyGame::parse("caro5?size=9").expect("a game").visit(Play)
}

/// What the bytes are refused for once the first search block in them is changed, and the number of its ply.
fn refusal(bytes: &[u8], change: impl FnOnce(&mut v1::SearchBlock)) -> (Rejection, usize) {
    let mut wire = v1::GameRecord::decode(bytes).expect("a record");
    let mut plies = wire.plies.iter_mut().enumerate();
    let (n, search) = plies
        .find_map(|(n, ply)| Some((n, ply.search.as_mut()?)))
        .expect("a searched ply");
    change(search);
    let refused = decode(&wire.encode_to_vec()).expect_err("a block that no build writes");
    (refused, n)
}

#[test]
fn a_record_takes_little_more_than_half_of_what_it_took_in_version_1() {
    let record = typical_record();
    let (bytes, before) = (encode(&record).len(), version_1(&record).len());
    assert!(bytes as f64 / (before as f64) < 0.65, "{bytes} bytes, {before} before");
}

#[test]
fn what_is_read_of_version_1_is_written_as_version_2() {
    let record = typical_record();
    let read = decode(&version_1(&record)).expect("it is still read");
    assert_eq!(read, record);
    assert_eq!(encode(&read), encode(&record));
}

#[test]
fn lists_of_the_other_version_are_refused_by_field() {
    type Edit = (&'static str, fn(&mut v1::SearchBlock));
    let messages: [Edit; 3] = [
        ("policy_target", |s| {
            s.policy_target.push(v1::ActionProbability::default())
        }),
        ("visits", |s| s.visits.push(v1::ActionVisits::default())),
        ("net_policy_top", |s| {
            s.net_policy_top.push(v1::ActionProbability::default())
        }),
    ];
    let columns: [Edit; 6] = [
        ("policy_target_actions", |s| s.policy_target_actions.push(0)),
        ("policy_target_probabilities", |s| {
            s.policy_target_probabilities.push(0.0)
        }),
        ("visit_actions", |s| s.visit_actions.push(0)),
        ("visit_counts", |s| s.visit_counts.push(0)),
        ("net_policy_top_actions", |s| s.net_policy_top_actions.push(0)),
        ("net_policy_top_probabilities", |s| {
            s.net_policy_top_probabilities.push(0.0)
        }),
    ];
    let record = typical_record();
    for (bytes, edits) in [(encode(&record), &messages[..]), (version_1(&record), &columns[..])] {
        for &(field, change) in edits {
            let (refused, n) = refusal(&bytes, change);
            assert_eq!(refused.code, ReasonCode::Decode, "{field}");
            let told = format!("ply {n}: {field} has 1 entries");
            assert!(refused.detail.starts_with(&told), "{refused}");
        }
    }
}

#[test]
fn columns_of_unequal_length_are_refused_with_ply_and_lengths() {
    type Edit = (&'static str, fn(&mut v1::SearchBlock));
    let bytes = encode(&typical_record());
    let edits: [Edit; 6] = [
        ("policy_target has 3 actions and 2 values", |s| {
            s.policy_target_actions = vec![1, 2, 3];
            s.policy_target_probabilities = vec![0.5; 2];
        }),
        ("policy_target has 0 actions and 1 values", |s| {
            s.policy_target_actions.clear();
            s.policy_target_probabilities.truncate(1);
        }),
        ("visits has 1 actions and 2 values", |s| {
            s.visit_actions = vec![1];
            s.visit_counts = vec![1; 2];
        }),
        ("visits has 1 actions and 0 values", |s| {
            s.visit_actions = vec![1];
            s.visit_counts.clear();
        }),
        ("net_policy_top has 2 actions and 1 values", |s| {
            s.net_policy_top_actions = vec![1, 2];
            s.net_policy_top_probabilities = vec![0.5];
        }),
        ("net_policy_top has 0 actions and 1 values", |s| {
            s.net_policy_top_actions.clear();
            s.net_policy_top_probabilities = vec![0.5];
        }),
    ];
    for (what, change) in edits {
        let (refused, n) = refusal(&bytes, change);
        assert_eq!(refused.code, ReasonCode::Decode, "{what}");
        assert_eq!(refused.detail, format!("ply {n}: {what}"));
    }
}
