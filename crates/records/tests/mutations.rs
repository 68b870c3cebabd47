//! Spoilt records of every game: nothing panics, and what is accepted keeps every promise. The long form is the example
//! `mutate`.

use std::cell::RefCell;

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use tengen_games::Game;
use tengen_records::testing::hammer::{Tally, every_prefix, hammer, honest_refused};
use tengen_records::testing::invariants::violation;
use tengen_records::testing::{self, EveryGame, each_game};
use tengen_records::{Kind, Record};

/// Mutations of each game.
const MUTATIONS: u64 = 4_000;

#[derive(Default)]
struct Hammered(RefCell<Tally>);

impl EveryGame for Hammered {
    fn test<G: Game>(&self, game: &G) {
        self.0
            .borrow_mut()
            .add(hammer::<G, Xoshiro256PlusPlus>(game, MUTATIONS, 5));
    }
}

#[test]
fn no_spoilt_record_panics_and_what_is_accepted_keeps_every_promise() {
    let hammered = Hammered::default();
    each_game(&hammered);
    let tally = hammered.0.into_inner();
    assert_eq!(tally.faults, 0, "{:#?}", tally.told);
    // The test is worth something only while damage of most kinds now and then goes through the check.
    let [tried, decoded, accepted] = tally.totals();
    assert!(
        accepted > tried / 100 && decoded > tried / 3 && accepted < tried / 2,
        "{tally:?}"
    );
    assert_eq!(tally.kinds.len(), testing::mutation::Mutation::ALL.len());
}

struct Cut;

impl EveryGame for Cut {
    fn test<G: Game>(&self, game: &G) {
        if game.spec().actions.len() <= 9 {
            let tally = every_prefix::<G, Xoshiro256PlusPlus>(game, 10, 3);
            assert_eq!(tally.faults, 0, "{:#?}", tally.told);
            let [tried, _, accepted] = tally.totals();
            assert!(tried > 2_000, "{tried}");
            // Cut after its last field but one, a record lacks at most what is zero anyway.
            assert!(accepted < 30, "{accepted}");
        }
    }
}

#[test]
fn no_prefix_of_a_record_panics() {
    each_game(&Cut);
}

struct Honest;

impl EveryGame for Honest {
    fn test<G: Game>(&self, game: &G) {
        assert_eq!(
            honest_refused::<G, Xoshiro256PlusPlus>(game, 20, 9),
            Vec::<String>::new()
        );
    }
}

#[test]
fn no_honest_game_is_refused() {
    each_game(&Honest);
}

/// The second opinion is no rubber stamp: it finds what each of these edits breaks.
#[test]
fn the_second_opinion_finds_broken_promises() {
    struct Broken;
    impl EveryGame for Broken {
        fn test<G: Game>(&self, game: &G) {
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(rand_seed(game));
            let expected = testing::expected(game, Kind::SelfPlay, &mut rng);
            let honest = testing::random_record(game, &expected, 1, &mut rng);
            assert_eq!(violation(game, &honest, &expected), None);
            let edits: [fn(&mut Record); 9] = [
                |record| record.settings_revision += 1,
                |record| record.match_pair = 1,
                |record| drop(record.plies.pop()),
                |record| record.plies[0].action.0 = u16::MAX,
                |record| record.roles.opener = record.roles.opener.map_or(Some(tengen_games::Seat::FIRST), |_| None),
                |record| first_search(record).weight = f32::NAN,
                |record| first_search(record).root_wdl = [0.5; 3],
                |record| {
                    first_search(record)
                        .policy_target
                        .iter_mut()
                        .for_each(|entry| entry.1 *= 0.9)
                },
                |record| first_search(record).visits_total = 0,
            ];
            for (n, edit) in edits.iter().enumerate() {
                let mut record = honest.clone();
                edit(&mut record);
                assert!(
                    violation(game, &record, &expected).is_some(),
                    "edit {n} of {}",
                    game.spec().id
                );
            }
        }
    }
    each_game(&Broken);
}

fn first_search(record: &mut Record) -> &mut tengen_records::SearchBlock {
    let mut searches = record.plies.iter_mut().filter_map(|ply| ply.search.as_mut());
    searches.next().expect("a searched ply")
}

/// A seed whose game has a searched ply: nine in ten plies have one, and no game is over after two.
fn rand_seed<G: Game>(game: &G) -> u64 {
    let found = (0..100).find(|&seed| {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let expected = testing::expected(game, Kind::SelfPlay, &mut rng);
        let record = testing::random_record(game, &expected, 1, &mut rng);
        let _next: u64 = rng.random();
        record.plies.iter().any(|ply| ply.search.is_some())
    });
    found.expect("one of a hundred games has a searched ply")
}
