//! Records as bytes: pinned, lossless, and safe to decode whatever the bytes are.

use proptest::prelude::*;
use prost::Message;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use tengen_games::mnk::Mnk;
use tengen_games::{Action, AnyGame, Fingerprint, Outcome, Reason, Roles, Seat};
use tengen_proto::v1;
use tengen_records::testing::earlier::version_1;
use tengen_records::{
    Kind, LeaseId, ModelId, ModelIndex, NetworkPlay, PLIES_MAX, Player, PlyRecord, Precision, RECORD_BYTES_MAX,
    ReasonCode, Record, RecordId, RunId, SearchBlock, decode, encode, peek_id, precision_from_wire, precision_to_wire,
    testing,
};

fn game() -> Mnk {
    match AnyGame::parse("mnk?m=4&n=4&k=3") {
        Ok(AnyGame::Mnk(game)) => game,
        other => panic!("not an mnk game: {other:?}"),
    }
}

fn random_record(seed: u64) -> Record {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let kind = if seed.is_multiple_of(2) {
        Kind::SelfPlay
    } else {
        Kind::Match
    };
    let expected = testing::expected(&game(), kind, &mut rng);
    testing::random_record(&game(), &expected, (seed % 8) as u32, &mut rng)
}

/// A record with every field set to something of its own. Not a legal game.
fn full_record() -> Record {
    let search = SearchBlock {
        policy_target: vec![(Action(3), 0.25), (Action(300), 0.75)],
        visits: vec![(Action(3), 8), (Action(300), 24)],
        weight: 1.5,
        root_wdl: [0.5, 0.25, 0.25],
        net_wdl: [0.125, 0.125, 0.75],
        net_policy_top: vec![(Action(300), 0.5), (Action(3), 0.0625)],
        prior_kl: 0.375,
        visits_total: 33,
        visits_reused: 5,
        temperature: 1.0,
        precision: Precision::Fp16,
        symmetry: 6,
    };
    Record {
        id: RecordId {
            lease: LeaseId(0x0011_2233_4455_6677_8899_aabb_ccdd_eeff),
            index: 300,
        },
        run_id: RunId::new("golden").expect("a legal run id"),
        game_id: "caro5?size=9".into(),
        rules_fingerprint: Fingerprint([0xa5; 32]),
        kind: Kind::Match,
        models: vec![ModelId([1; 32]), ModelId([2; 32])],
        players: None,
        seat_models: [ModelIndex(1), ModelIndex(0)],
        settings_revision: 4,
        seed: 0x0102_0304_0506_0708,
        opening: vec![Action(40), Action(0), Action(200)],
        plies: vec![
            PlyRecord {
                seat: Seat::SECOND,
                action: Action(300),
                model: ModelIndex(0),
                search: Some(search),
            },
            PlyRecord {
                seat: Seat::FIRST,
                action: Action(7),
                model: ModelIndex(1),
                search: None,
            },
        ],
        outcome: Outcome::win(Seat::FIRST, Reason::Line),
        roles: Roles {
            opener: Some(Seat::FIRST),
            chooser: Some(Seat::SECOND),
            first_colour: Some(Seat::SECOND),
        },
        created_unix_ms: 1_700_000_000_123,
        duration_ms: 4567,
        match_pair: 12,
    }
}

/// The full record as it is written today.
fn golden() -> Vec<u8> {
    bytes_of(include_str!("golden/record_2.hex"))
}

/// What a golden file says in hexadecimal digits, without its comments.
fn bytes_of(file: &str) -> Vec<u8> {
    let lines = file.lines().filter(|line| !line.starts_with('#'));
    hex::decode(lines.collect::<String>()).expect("the golden file is hexadecimal")
}

#[test]
fn the_bytes_of_a_record_are_pinned() {
    let bytes = encode(&full_record());
    assert_eq!(hex::encode(&bytes), hex::encode(golden()));
    assert_eq!(decode(&golden()), Ok(full_record()));
}

#[test]
fn the_bytes_that_builds_before_schema_version_2_wrote_are_read_as_the_same_record() {
    let earlier = bytes_of(include_str!("golden/record_1.hex"));
    assert_eq!(decode(&earlier), Ok(full_record()));
    assert_eq!(hex::encode(version_1(&full_record())), hex::encode(earlier));
}

#[test]
fn the_players_of_a_rating_game_come_after_everything_that_earlier_readers_know() {
    let mut record = full_record();
    let before = encode(&record);
    record.players = Some([
        Player::Rollout { simulations: 300 },
        Player::Network {
            network: ModelId([2; 32]),
            play: NetworkPlay::Policy,
        },
    ]);
    let bytes = encode(&record);
    assert!(bytes.starts_with(&before));
    // Field 19, twice: kind 3 with 300 playouts, then kind 5 with network number 1.
    assert_eq!(
        hex::encode(&bytes[before.len()..]),
        "9a01050803 18ac02 9a0104 0805 1001".replace(' ', "")
    );
    assert_eq!(decode(&bytes), Ok(record));
}

#[test]
fn unset_fields_read_back_as_unset() {
    let mut record = full_record();
    record.outcome = Outcome::draw(Reason::BoardFull);
    record.roles = Roles::default();
    record.opening.clear();
    assert_eq!(decode(&encode(&record)), Ok(record));
}

#[test]
fn the_id_is_read_from_bytes_that_are_otherwise_unreadable() {
    let mut wire = v1::GameRecord::decode(&golden()[..]).expect("a record");
    wire.schema_version = 99;
    let bytes = wire.encode_to_vec();
    assert_eq!(
        decode(&bytes).expect_err("a later version").code,
        ReasonCode::SchemaVersion
    );
    assert_eq!(peek_id(&bytes), Some(full_record().id));
    assert_eq!(peek_id(b"nothing"), None);
    assert_eq!(peek_id(&[]), None);
}

/// The code that an edited wire message is refused with.
fn refusal(edit: impl FnOnce(&mut v1::GameRecord)) -> ReasonCode {
    let mut wire = v1::GameRecord::decode(&golden()[..]).expect("a record");
    edit(&mut wire);
    decode(&wire.encode_to_vec()).expect_err("an impossible value").code
}

fn search(wire: &mut v1::GameRecord) -> &mut v1::SearchBlock {
    wire.plies[0].search.as_mut().expect("the golden record has a search")
}

#[test]
fn impossible_values_are_refused_with_the_code_of_their_field() {
    assert_eq!(refusal(|r| r.schema_version = 0), ReasonCode::SchemaVersion);
    assert_eq!(refusal(|r| r.schema_version = 3), ReasonCode::SchemaVersion);
    assert_eq!(refusal(|r| r.lease_id.truncate(15)), ReasonCode::UnknownLease);
    assert_eq!(refusal(|r| r.run_id = "a/b".into()), ReasonCode::WrongRun);
    assert_eq!(refusal(|r| r.rules_fingerprint.clear()), ReasonCode::WrongRules);
    assert_eq!(refusal(|r| r.kind = 0), ReasonCode::WrongKind);
    assert_eq!(refusal(|r| r.kind = 77), ReasonCode::WrongKind);
    assert_eq!(refusal(|r| r.model_ids[1].push(0)), ReasonCode::WrongModel);
    assert_eq!(refusal(|r| r.seat_models.push(0)), ReasonCode::WrongModel);
    assert_eq!(refusal(|r| r.seat_models[0] = 256), ReasonCode::WrongModel);
    assert_eq!(refusal(|r| r.opening[1] = 65_536), ReasonCode::Opening);
    assert_eq!(refusal(|r| r.plies[1].seat = 2), ReasonCode::WrongSeat);
    assert_eq!(refusal(|r| r.plies[1].action = 65_536), ReasonCode::IllegalAction);
    assert_eq!(refusal(|r| r.plies[1].model = 256), ReasonCode::WrongModel);
    assert_eq!(refusal(|r| r.result = None), ReasonCode::Unfinished);
    assert_eq!(
        refusal(|r| r.result = Some(v1::Result {
            winner: Some(2),
            reason: "line".into()
        })),
        ReasonCode::WrongResult
    );
    assert_eq!(
        refusal(|r| r.result = Some(v1::Result {
            winner: None,
            reason: "tired".into()
        })),
        ReasonCode::WrongReason
    );
    assert_eq!(
        refusal(|r| r.roles = Some(v1::Roles {
            opener: Some(5),
            ..Default::default()
        })),
        ReasonCode::WrongRoles
    );
    assert_eq!(
        refusal(|r| search(r).policy_target_actions[0] = 65_536),
        ReasonCode::PolicyIllegal
    );
    assert_eq!(refusal(|r| search(r).visit_actions[0] = 65_536), ReasonCode::Visits);
    assert_eq!(
        refusal(|r| search(r).net_policy_top_actions[0] = 65_536),
        ReasonCode::NetPolicy
    );
    assert_eq!(refusal(|r| search(r).root_wdl.truncate(2)), ReasonCode::Wdl);
    assert_eq!(refusal(|r| search(r).net_wdl.push(0.0)), ReasonCode::Wdl);
    assert_eq!(refusal(|r| search(r).precision = 0), ReasonCode::Precision);
    assert_eq!(refusal(|r| search(r).symmetry = 65_536), ReasonCode::Symmetry);
}

#[test]
fn every_precision_survives_the_wire_and_its_name() {
    for precision in [Precision::Fp32, Precision::Fp16, Precision::Int8] {
        assert_eq!(
            precision_from_wire(precision_to_wire(precision).into()),
            Some(precision)
        );
        assert_eq!(Precision::parse(precision.as_str()), Some(precision));
    }
    assert_eq!((precision_from_wire(0), precision_from_wire(99)), (None, None));
    assert_eq!(Precision::parse("fp8"), None);
}

#[test]
fn sizes_are_checked_before_anything_is_parsed() {
    // Zeros are no protobuf message: only the size can be the reason.
    let code = |bytes: &[u8]| decode(bytes).expect_err("too large").code;
    assert_eq!(code(&vec![0; RECORD_BYTES_MAX + 1]), ReasonCode::TooLarge);
    assert_eq!(peek_id(&vec![0; RECORD_BYTES_MAX + 1]), None);
    // The same empty ply over and over, two bytes each, without a schema version.
    assert_eq!(code(&[0x6a, 0].repeat(PLIES_MAX + 1)), ReasonCode::TooLarge);
    assert_eq!(code(&[0x6a, 0].repeat(PLIES_MAX)), ReasonCode::SchemaVersion);
}

#[test]
fn no_bytes_make_decoding_panic() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(99);
    let honest: Vec<Vec<u8>> = (0..50).map(|seed| encode(&random_record(seed))).collect();
    let mut refused = 0;
    for round in 0..100_000 {
        let mut bytes = honest[round % honest.len()].clone();
        if rng.random_bool(0.2) {
            bytes.truncate(rng.random_range(0..=bytes.len()));
        }
        for _ in 0..rng.random_range(0..4) {
            if !bytes.is_empty() {
                let place = rng.random_range(0..bytes.len());
                bytes[place] = rng.random();
            }
        }
        if rng.random_bool(0.1) {
            let place = rng.random_range(0..=bytes.len());
            bytes.splice(
                place..place,
                (0..rng.random_range(1..20))
                    .map(|_| rng.random::<u8>())
                    .collect::<Vec<_>>(),
            );
        }
        let _ = peek_id(&bytes);
        match decode(&bytes) {
            // What can be decoded can be encoded and is then the same, bit for bit.
            Ok(record) => {
                let again = decode(&encode(&record)).expect("an encoded record decodes");
                assert_eq!(encode(&again), encode(&record));
            }
            Err(_) => refused += 1,
        }
    }
    assert!(refused > 10_000, "{refused}: the mutations are too tame");
}

#[test]
fn every_prefix_of_a_record_is_decoded_or_refused() {
    let bytes = encode(&random_record(3));
    let whole = (0..bytes.len()).filter(|&len| decode(&bytes[..len]).is_ok()).count();
    // Optional fields at the end may be missing; most prefixes cut a field in two.
    assert!(whole < 8, "{whole}");
}

proptest! {
    #[test]
    fn records_survive_the_wire(seed in any::<u64>()) {
        let record = random_record(seed);
        let bytes = encode(&record);
        prop_assert_eq!(peek_id(&bytes), Some(record.id));
        let back = decode(&bytes);
        prop_assert_eq!(back.as_ref(), Ok(&record));
        prop_assert_eq!(encode(&record), bytes);
        prop_assert_eq!(decode(&version_1(&record)), Ok(record));
    }

    #[test]
    fn arbitrary_bytes_are_decoded_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = decode(&bytes);
        let _ = peek_id(&bytes);
    }
}
