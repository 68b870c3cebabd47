//! Openings, ends and sizes: what the check says of records that need more than one edit.

use std::collections::BTreeSet;

use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use tengen_games::mnk::Mnk;
use tengen_games::{Action, AnyGame, Outcome, Reason};
use tengen_records::testing::invariants::violation;
use tengen_records::{
    Expected, Kind, Precision, ReasonCode, Record, SearchBlock, Work, check, encode, referee, testing,
};

fn rng(seed: u64) -> Xoshiro256PlusPlus {
    Xoshiro256PlusPlus::seed_from_u64(seed)
}

/// A game of stones in a row with what its honest records must agree with.
struct Case {
    game: Mnk,
    expected: Expected,
}

impl Case {
    fn new(name: &str, kind: Kind) -> Case {
        match AnyGame::parse(name) {
            Ok(AnyGame::Mnk(game) | AnyGame::TicTacToe(game)) => {
                let expected = testing::expected(&game, kind, &mut rng(1));
                Case { game, expected }
            }
            other => panic!("{name} is {other:?}"),
        }
    }

    fn record(&self, index: u32, seed: u64) -> Record {
        testing::random_record(&self.game, &self.expected, index, &mut rng(seed))
    }

    fn judge(&self, record: &Record) -> Result<(), ReasonCode> {
        check(&self.game, record, &self.expected)
            .map(drop)
            .map_err(|rejection| rejection.code)
    }
}

fn block(record: &mut Record) -> &mut SearchBlock {
    record
        .plies
        .iter_mut()
        .find_map(|ply| ply.search.as_mut())
        .expect("some ply was searched")
}

#[test]
fn a_repeated_action_is_illegal() {
    let case = Case::new("mnk?m=5&n=5&k=4", Kind::SelfPlay);
    let mut record = case.record(0, 1);
    record.plies[3].action = record.plies[2].action;
    record.plies[3].search = None;
    assert_eq!(case.judge(&record), Err(ReasonCode::IllegalAction));
}

#[test]
fn plies_after_the_end_are_rejected_before_they_are_looked_at() {
    let case = Case::new("mnk?m=8&n=8&k=3", Kind::SelfPlay);
    let mut record = case.record(0, 1);
    record.plies.push(record.plies[0].clone());
    assert_eq!(case.judge(&record), Err(ReasonCode::PliesAfterEnd));
}

#[test]
fn more_plies_or_list_entries_than_the_game_can_have_are_too_large() {
    let case = Case::new("tic-tac-toe", Kind::SelfPlay);
    let mut plies = case.record(0, 1);
    let ply = plies.plies[0].clone();
    plies.plies.resize(10, ply);
    assert_eq!(case.judge(&plies), Err(ReasonCode::TooLarge));
    let mut targets = case.record(0, 1);
    block(&mut targets).policy_target = vec![(Action(0), 0.1); 10];
    assert_eq!(case.judge(&targets), Err(ReasonCode::TooLarge));
    let mut visits = case.record(0, 1);
    block(&mut visits).visits = vec![(Action(0), 1); 10];
    assert_eq!(case.judge(&visits), Err(ReasonCode::TooLarge));
}

#[test]
fn a_longer_opening_than_the_lease_allows_is_rejected() {
    let case = Case::new("mnk?m=5&n=5&k=4", Kind::SelfPlay);
    let mut record = case.record(0, 3);
    while record.opening.len() < 5 {
        record.opening.push(record.plies.remove(0).action);
    }
    assert_eq!(case.judge(&record), Err(ReasonCode::Opening));
}

#[test]
fn an_opening_that_ends_the_game_is_rejected() {
    let case = Case::new("mnk?m=4&n=4&k=2", Kind::SelfPlay);
    let mut record = case.record(0, 1);
    record.opening = [0, 8, 1].map(Action).to_vec();
    record.plies.clear();
    assert_eq!(case.judge(&record), Err(ReasonCode::Opening));
}

#[test]
fn another_opening_than_the_match_ordered_is_rejected() {
    let mut case = Case::new("mnk?m=6&n=6&k=4", Kind::Match);
    let Work::Match(games) = &mut case.expected.work else {
        panic!("not a match")
    };
    games[3].opening = vec![Action(7), Action(8)];
    let mut record = case.record(3, 2);
    assert_eq!(case.judge(&record), Ok(()));
    record.opening.swap(0, 1);
    assert_eq!(case.judge(&record), Err(ReasonCode::Opening));
}

#[test]
fn a_match_game_beyond_the_lease_is_rejected() {
    let case = Case::new("tic-tac-toe", Kind::Match);
    let mut record = case.record(7, 2);
    record.id.index = 8;
    assert_eq!(case.judge(&record), Err(ReasonCode::IndexOutOfLease));
}

#[test]
fn a_match_game_is_searched_in_one_precision_whichever_and_self_play_may_be_in_several() {
    let of_match = Err(ReasonCode::MixedPrecisions);
    for (kind, mixed) in [(Kind::Match, of_match), (Kind::SelfPlay, Ok(()))] {
        let case = Case::new("mnk?m=6&n=6&k=4", kind);
        let mut record = case.record(1, 2);
        for (precisions, expected) in [
            (&[Precision::Int8][..], Ok(())),
            (&[Precision::Fp16], Ok(())),
            (&[Precision::Fp32, Precision::Int8], mixed),
            (&[Precision::Int8, Precision::Int8, Precision::Fp16], mixed),
        ] {
            let searches = record.plies.iter_mut().filter_map(|ply| ply.search.as_mut());
            for (search, &precision) in searches.zip(precisions.iter().cycle()) {
                search.precision = precision;
            }
            assert_eq!(case.judge(&record), expected, "{precisions:?} in {kind:?}");
            let found = violation(&case.game, &record, &case.expected);
            assert_eq!(
                found.is_some(),
                expected.is_err(),
                "{precisions:?} in {kind:?}: {found:?}"
            );
            // Where nobody knows the lease it is taken as stated.
            assert!(referee(&case.game, case.expected.rules_fingerprint, &record).is_ok());
        }
    }
}

#[test]
fn a_cheap_search_needs_no_target_but_one_that_is_there_is_checked() {
    let case = Case::new("mnk?m=5&n=5&k=4", Kind::SelfPlay);
    let mut record = case.record(0, 1);
    block(&mut record).weight = 0.0;
    assert_eq!(case.judge(&record), Ok(()));
    block(&mut record).policy_target[0].1 += 0.1;
    assert_eq!(case.judge(&record), Err(ReasonCode::PolicySum));
    block(&mut record).policy_target.clear();
    assert_eq!(case.judge(&record), Ok(()));
}

#[test]
fn a_record_may_end_by_resignation_or_limit_only_where_the_run_allows_it() {
    let mut case = Case::new("mnk?m=8&n=8&k=5", Kind::SelfPlay);
    let mut record = case.record(0, 1);
    record.plies.truncate(6);
    let actor = record.plies[5].seat.other();
    let plies = (record.opening.len() + record.plies.len()) as u32;
    let resigned = Record {
        outcome: Outcome::win(actor.other(), Reason::Resignation),
        ..record.clone()
    };
    let broken_off = Record {
        outcome: Outcome::draw(Reason::MoveLimit),
        ..record
    };
    assert_eq!(case.judge(&resigned), Err(ReasonCode::Unfinished));
    assert_eq!(case.judge(&broken_off), Err(ReasonCode::Unfinished));
    case.expected.endings.resignation = true;
    case.expected.endings.move_limit_plies = Some(plies);
    assert_eq!(case.judge(&resigned), Ok(()));
    assert_eq!(case.judge(&broken_off), Ok(()));
    let by_the_winner = Record {
        outcome: Outcome::win(actor, Reason::Resignation),
        ..resigned
    };
    assert_eq!(case.judge(&by_the_winner), Err(ReasonCode::WrongResult));
    case.expected.endings.move_limit_plies = Some(plies + 1);
    assert_eq!(case.judge(&broken_off), Err(ReasonCode::Unfinished));
}

#[test]
fn swap2_paths_are_named_by_their_decisions() {
    let case = Case::new("mnk?m=5&n=5&k=5&opening=swap2", Kind::SelfPlay);
    let paths = (0..200).map(|seed| case.record(0, seed).opening_path(&case.game));
    let paths: BTreeSet<_> = paths.map(|path| path.expect("Swap2 games decide")).collect();
    let all = ["offer/take-black", "offer/take-white", "take-black", "take-white"];
    assert_eq!(paths.into_iter().collect::<Vec<_>>(), all);
}

#[test]
fn a_record_whose_searches_are_thinned_out_is_as_good_and_shorter() {
    let case = Case::new("mnk?m=9&n=9&k=5", Kind::SelfPlay);
    for seed in 0..20 {
        let whole = case.record(0, seed);
        let mut thin = whole.clone();
        testing::thin_out(&mut thin);
        assert_eq!(case.judge(&thin), Ok(()), "seed {seed}");
        assert!(encode(&thin).len() < encode(&whole).len(), "seed {seed}");
    }
}
