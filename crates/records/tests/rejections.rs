//! Honest records pass the check; a record with one edit is rejected with the code of that edit.

use std::cell::RefCell;
use std::collections::BTreeSet;

use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use tengen_games::{Action, Fingerprint, Game, Reason, Seat};
use tengen_records::testing::{self, EveryGame, each_game};
use tengen_records::{
    Expected, Kind, LeaseId, ModelId, ModelIndex, NetworkPlay, Player, ReasonCode, Record, RunId, SearchBlock, Work,
    check, decode, encode,
};

fn rng(seed: u64) -> Xoshiro256PlusPlus {
    Xoshiro256PlusPlus::seed_from_u64(seed)
}

struct HonestRecordsPass;

impl EveryGame for HonestRecordsPass {
    fn test<G: Game>(&self, game: &G) {
        for kind in [Kind::SelfPlay, Kind::Match] {
            let mut rng = rng(11);
            let expected = testing::expected(game, kind, &mut rng);
            pass(game, &expected, &mut rng);
            if kind == Kind::Match {
                let network = Player::Network {
                    network: ModelId([5; 32]),
                    play: NetworkPlay::Policy,
                };
                let rated = testing::rated(expected, [Player::Rollout { simulations: 20 }, network]);
                assert_eq!(rated.models, [ModelId([5; 32])]);
                pass(game, &rated, &mut rng);
            }
        }
    }
}

fn pass<G: Game>(game: &G, expected: &Expected, rng: &mut Xoshiro256PlusPlus) {
    for index in 0..8 {
        let record = testing::random_record(game, expected, index, rng);
        let checked = check(game, &record, expected).expect("the record is honest");
        assert_eq!(checked.positions, record.positions());
        assert_eq!(checked.outcome, record.outcome);
        assert_eq!(checked.opening_path, record.opening_path(game));
        assert_eq!(checked.plies as usize, record.plies.len());
        assert_eq!(checked.opening_plies as usize, record.opening.len());
        assert_eq!(decode(&encode(&record)).as_ref(), Ok(&record));
        assert_eq!(testing::invariants::violation(game, &record, expected), None);
    }
}

#[test]
fn honest_records_of_every_game_pass_and_survive_the_wire() {
    each_game(&HonestRecordsPass);
}

/// One change to an honest record and the code it must be rejected with. It does nothing where the record has no place
/// for it.
type Edit = (&'static str, ReasonCode, Change);

/// Edits of a record or of a search block.
type Edits<T> = Vec<(&'static str, ReasonCode, fn(&mut T))>;

#[derive(Clone, Copy)]
enum Change {
    Record(fn(&mut Record)),
    /// The first search block of weight above 0 with two target entries.
    Search(fn(&mut SearchBlock)),
}

impl Change {
    fn make(self, record: &mut Record) {
        match self {
            Change::Record(change) => change(record),
            Change::Search(change) => {
                let mut searched = record.plies.iter_mut().filter_map(|ply| ply.search.as_mut());
                if let Some(search) = searched.find(|search| search.weight > 0.0 && search.policy_target.len() >= 2) {
                    change(search);
                }
            }
        }
    }
}

/// Another seat than this one, or the first where there is none.
fn other(seat: Option<Seat>) -> Option<Seat> {
    Some(seat.map_or(Seat::FIRST, Seat::other))
}

/// No game has it.
const NOWHERE: Action = Action(u16::MAX);

fn heading_edits() -> Edits<Record> {
    vec![
        ("run", ReasonCode::WrongRun, |r| {
            r.run_id = RunId::new("other").expect("a legal run id")
        }),
        ("game", ReasonCode::WrongGame, |r| r.game_id.push('x')),
        ("fingerprint", ReasonCode::WrongRules, |r| {
            r.rules_fingerprint = Fingerprint([7; 32])
        }),
        ("lease", ReasonCode::UnknownLease, |r| {
            r.id.lease = LeaseId(r.id.lease.0 ^ 1)
        }),
        ("index", ReasonCode::IndexOutOfLease, |r| r.id.index = u32::MAX),
        ("to match", ReasonCode::WrongKind, |r| r.kind = Kind::Match),
        ("to self-play", ReasonCode::WrongKind, |r| r.kind = Kind::SelfPlay),
        ("model", ReasonCode::WrongModel, |r| r.models[0] = ModelId([1; 32])),
        ("players", ReasonCode::WrongPlayers, |r| {
            r.players = Some([Player::Random, Player::OnePly])
        }),
        ("no model", ReasonCode::WrongModel, |r| r.models.clear()),
        ("one model more", ReasonCode::WrongModel, |r| {
            r.models.push(ModelId([1; 32]))
        }),
        ("model order", ReasonCode::WrongModel, |r| r.models.reverse()),
        ("seats swapped", ReasonCode::WrongModel, |r| r.seat_models.reverse()),
        ("seat model", ReasonCode::WrongModel, |r| {
            r.seat_models[1] = ModelIndex(9)
        }),
        ("revision", ReasonCode::WrongRevision, |r| r.settings_revision += 1),
        ("seed", ReasonCode::WrongSeed, |r| r.seed ^= 1),
        ("pair", ReasonCode::WrongPair, |r| r.match_pair += 9),
    ]
}

fn game_edits() -> Edits<Record> {
    vec![
        ("seat", ReasonCode::WrongSeat, |r| {
            r.plies.iter_mut().take(1).for_each(|ply| ply.seat = ply.seat.other())
        }),
        ("ply's model", ReasonCode::WrongModel, |r| {
            r.plies.iter_mut().for_each(|ply| ply.model = ModelIndex(7))
        }),
        ("action", ReasonCode::IllegalAction, |r| {
            r.plies.iter_mut().take(1).for_each(|ply| ply.action = NOWHERE)
        }),
        ("last ply gone", ReasonCode::Unfinished, |r| drop(r.plies.pop())),
        ("no plies", ReasonCode::Unfinished, |r| r.plies.clear()),
        ("winner", ReasonCode::WrongResult, |r| {
            r.outcome.winner = other(r.outcome.winner)
        }),
        ("draw", ReasonCode::WrongResult, |r| r.outcome.winner = None),
        ("reason", ReasonCode::WrongReason, |r| r.outcome.reason = Reason::Score),
        ("resignation", ReasonCode::WrongReason, |r| {
            r.outcome.reason = Reason::Resignation
        }),
        ("opener", ReasonCode::WrongRoles, |r| {
            r.roles.opener = other(r.roles.opener)
        }),
        ("chooser", ReasonCode::WrongRoles, |r| {
            r.roles.chooser = other(r.roles.chooser)
        }),
        ("first colour", ReasonCode::WrongRoles, |r| {
            r.roles.first_colour = other(r.roles.first_colour)
        }),
        ("no roles", ReasonCode::WrongRoles, |r| r.roles = Default::default()),
        ("opening", ReasonCode::Opening, |r| {
            r.opening.iter_mut().take(1).for_each(|action| *action = NOWHERE)
        }),
    ]
}

fn policy_edits() -> Edits<SearchBlock> {
    vec![
        ("NaN target", ReasonCode::PolicyNotFinite, |s| {
            s.policy_target[0].1 = f32::NAN
        }),
        ("infinite target", ReasonCode::PolicyNotFinite, |s| {
            s.policy_target[1].1 = f32::INFINITY
        }),
        ("negative target", ReasonCode::PolicyRange, |s| {
            s.policy_target[0].1 = -0.25
        }),
        ("target above one", ReasonCode::PolicyRange, |s| {
            s.policy_target[0].1 = 1.5
        }),
        ("target twice", ReasonCode::PolicyOrder, |s| {
            s.policy_target[1].0 = s.policy_target[0].0
        }),
        ("target order", ReasonCode::PolicyOrder, |s| s.policy_target.swap(0, 1)),
        ("illegal target", ReasonCode::PolicyIllegal, |s| {
            s.policy_target[1].0 = NOWHERE
        }),
        ("target sum", ReasonCode::PolicySum, |s| s.policy_target[0].1 += 0.01),
        ("target entries gone", ReasonCode::PolicySum, |s| {
            s.policy_target.truncate(s.policy_target.len() / 2)
        }),
        ("no target", ReasonCode::PolicySum, |s| s.policy_target.clear()),
        ("NaN prior", ReasonCode::NetPolicy, |s| s.net_policy_top[0].1 = f32::NAN),
        ("negative prior", ReasonCode::NetPolicy, |s| {
            s.net_policy_top[0].1 = -0.25
        }),
        ("illegal prior", ReasonCode::NetPolicy, |s| {
            s.net_policy_top[0].0 = NOWHERE
        }),
        ("prior twice", ReasonCode::NetPolicy, |s| {
            s.net_policy_top[1].0 = s.net_policy_top[0].0
        }),
        ("nine priors", ReasonCode::NetPolicy, |s| {
            s.net_policy_top.resize(9, (NOWHERE, 0.0))
        }),
        ("prior sum", ReasonCode::NetPolicy, |s| {
            s.net_policy_top.iter_mut().for_each(|prior| prior.1 = 0.9)
        }),
        ("NaN divergence", ReasonCode::PriorKl, |s| s.prior_kl = f32::NAN),
        ("negative divergence", ReasonCode::PriorKl, |s| s.prior_kl = -0.5),
    ]
}

fn search_edits() -> Edits<SearchBlock> {
    vec![
        ("zero visits", ReasonCode::Visits, |s| s.visits[0].1 = 0),
        ("visits twice", ReasonCode::Visits, |s| s.visits[1].0 = s.visits[0].0),
        ("visits order", ReasonCode::Visits, |s| s.visits.swap(0, 1)),
        ("illegal visits", ReasonCode::Visits, |s| s.visits[1].0 = NOWHERE),
        ("visits above the total", ReasonCode::Visits, |s| {
            s.visits[0].1 += s.visits_total
        }),
        ("visits overflow", ReasonCode::Visits, |s| {
            s.visits.iter_mut().for_each(|entry| entry.1 = u32::MAX)
        }),
        ("no root visit", ReasonCode::Visits, |s| {
            (s.visits_total, s.visits) = (0, Vec::new())
        }),
        ("reused above the total", ReasonCode::Visits, |s| {
            s.visits_reused = s.visits_total + 1
        }),
        ("NaN value", ReasonCode::Wdl, |s| s.root_wdl[0] = f32::NAN),
        ("negative value", ReasonCode::Wdl, |s| s.root_wdl = [-0.5, 0.5, 1.0]),
        ("value sum", ReasonCode::Wdl, |s| s.net_wdl = [0.5, 0.5, 0.5]),
        ("negative weight", ReasonCode::Weight, |s| s.weight = -1.0),
        ("NaN weight", ReasonCode::Weight, |s| s.weight = f32::NAN),
        ("heavy weight", ReasonCode::Weight, |s| s.weight = 16.5),
        ("infinite temperature", ReasonCode::Temperature, |s| {
            s.temperature = f32::INFINITY
        }),
        ("negative temperature", ReasonCode::Temperature, |s| {
            s.temperature = -1.0
        }),
        ("symmetry", ReasonCode::Symmetry, |s| s.symmetry = 999),
    ]
}

fn edits() -> Vec<Edit> {
    let of_record = heading_edits().into_iter().chain(game_edits());
    let of_search = policy_edits().into_iter().chain(search_edits());
    let of_record = of_record.map(|(what, code, change)| (what, code, Change::Record(change)));
    of_record
        .chain(of_search.map(|(what, code, change)| (what, code, Change::Search(change))))
        .collect()
}

/// Gathers the edits that some record had a place for.
#[derive(Default)]
struct EditsAreRejected(RefCell<BTreeSet<&'static str>>);

impl EveryGame for EditsAreRejected {
    fn test<G: Game>(&self, game: &G) {
        for kind in [Kind::SelfPlay, Kind::Match] {
            let mut rng = rng(23);
            let mut expected = testing::expected(game, kind, &mut rng);
            if let Work::SelfPlay { index_end, .. } = &mut expected.work {
                *index_end = 100;
            }
            for index in 0..4 {
                let honest = testing::random_record(game, &expected, index, &mut rng);
                for (what, code, change) in edits() {
                    let mut edited = honest.clone();
                    change.make(&mut edited);
                    // Compared by bytes: a NaN is not equal to itself.
                    if encode(&edited) == encode(&honest) {
                        continue;
                    }
                    let found = check(game, &edited, &expected).map_err(|rejection| rejection.code);
                    assert_eq!(found, Err(code), "{what} of {}", game.spec().id);
                    self.0.borrow_mut().insert(what);
                }
            }
        }
    }
}

#[test]
fn every_single_edit_is_rejected_with_its_code() {
    let tried = EditsAreRejected::default();
    each_game(&tried);
    let all: BTreeSet<&str> = edits().iter().map(|&(what, ..)| what).collect();
    assert_eq!(tried.0.into_inner(), all);
}
