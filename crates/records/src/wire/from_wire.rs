//! The wire types as a record: each value is parsed into its type or refused with the code of its field.

use tengen_games::{Action, Fingerprint, Outcome, Reason, Roles, Seat};
use tengen_proto::v1;

use super::lists::{Form, Lists};
use super::players_from_wire;
use crate::ids::{LeaseId, ModelId, RecordId, RunId};
use crate::record::{Kind, ModelIndex, PlyRecord, Precision, Record, SearchBlock};
use crate::rejection::{ReasonCode, Rejection};

pub(super) type Parsed<T> = Result<T, Rejection>;

pub(super) fn record(wire: v1::GameRecord) -> Parsed<Record> {
    let form = Form::of_version(wire.schema_version)?;
    let models = wire.model_ids.iter().map(|id| model(id)).collect::<Parsed<Vec<_>>>()?;
    Ok(Record {
        id: RecordId {
            lease: lease(&wire.lease_id)?,
            index: wire.game_index,
        },
        run_id: RunId::new(wire.run_id).map_err(refused(ReasonCode::WrongRun))?,
        game_id: wire.game,
        rules_fingerprint: fingerprint(&wire.rules_fingerprint)?,
        kind: kind(wire.kind)?,
        players: players_from_wire(&wire.players, &models).map_err(refused(ReasonCode::WrongPlayers))?,
        models,
        seat_models: seat_models(&wire.seat_models)?,
        settings_revision: wire.settings_revision,
        seed: wire.seed,
        opening: opening(&wire.opening)?,
        plies: parsed(wire.plies.iter().enumerate(), |(n, wire)| ply(n, form, wire))?,
        outcome: outcome(wire.result)?,
        roles: roles(wire.roles.unwrap_or_default())?,
        created_unix_ms: wire.created_unix_ms,
        duration_ms: wire.duration_ms,
        match_pair: wire.match_pair,
    })
}

/// Every entry parsed, or the first refusal. Asks for the room of all entries at once, which collecting results cannot:
/// they might stop anywhere.
pub(super) fn parsed<T, U>(
    entries: impl ExactSizeIterator<Item = T>,
    mut parse: impl FnMut(T) -> Parsed<U>,
) -> Parsed<Vec<U>> {
    let mut list = Vec::with_capacity(entries.len());
    for entry in entries {
        list.push(parse(entry)?);
    }
    Ok(list)
}

/// Turns an error into a rejection with this code.
fn refused<E: ToString>(code: ReasonCode) -> impl Fn(E) -> Rejection {
    move |error| Rejection::new(code, error.to_string())
}

fn lease(bytes: &[u8]) -> Parsed<LeaseId> {
    LeaseId::from_bytes(bytes).map_err(refused(ReasonCode::UnknownLease))
}

fn model(bytes: &[u8]) -> Parsed<ModelId> {
    ModelId::from_bytes(bytes).map_err(refused(ReasonCode::WrongModel))
}

fn fingerprint(bytes: &[u8]) -> Parsed<Fingerprint> {
    let refuse = |_| {
        Rejection::new(
            ReasonCode::WrongRules,
            format!("rules fingerprint has {} bytes, not 32", bytes.len()),
        )
    };
    bytes.try_into().map(Fingerprint).map_err(refuse)
}

fn kind(number: i32) -> Parsed<Kind> {
    match v1::WorkKind::try_from(number) {
        Ok(v1::WorkKind::SelfPlay) => Ok(Kind::SelfPlay),
        Ok(v1::WorkKind::Match) => Ok(Kind::Match),
        Ok(v1::WorkKind::Unspecified) | Err(_) => Err(Rejection::new(
            ReasonCode::WrongKind,
            format!("{number} is neither self-play nor match"),
        )),
    }
}

/// The precision that the wire says by this number; `None` when it says none that this build knows.
pub fn precision_from_wire(number: i32) -> Option<Precision> {
    match v1::Precision::try_from(number) {
        Ok(v1::Precision::Fp32) => Some(Precision::Fp32),
        Ok(v1::Precision::Fp16) => Some(Precision::Fp16),
        Ok(v1::Precision::Int8) => Some(Precision::Int8),
        Ok(v1::Precision::Unspecified) | Err(_) => None,
    }
}

fn model_index(number: u32) -> Parsed<ModelIndex> {
    let refuse = |_| Rejection::new(ReasonCode::WrongModel, format!("model index {number} is out of range"));
    u8::try_from(number).map(ModelIndex).map_err(refuse)
}

fn seat_models(numbers: &[u32]) -> Parsed<[ModelIndex; 2]> {
    match *numbers {
        [first, second] => Ok([model_index(first)?, model_index(second)?]),
        _ => Err(Rejection::new(
            ReasonCode::WrongModel,
            format!("{} seat models instead of 2", numbers.len()),
        )),
    }
}

pub(super) fn action(number: u32, code: ReasonCode, place: impl FnOnce() -> String) -> Parsed<Action> {
    let refuse = |_| Rejection::new(code, format!("{}: {number} is no action of any game", place()));
    u16::try_from(number).map(Action).map_err(refuse)
}

fn opening(numbers: &[u32]) -> Parsed<Vec<Action>> {
    parsed(numbers.iter(), |&number| {
        action(number, ReasonCode::Opening, || "opening".to_owned())
    })
}

fn seat(number: u32, code: ReasonCode, place: impl FnOnce() -> String) -> Parsed<Seat> {
    let seat = u8::try_from(number).ok().and_then(Seat::new);
    seat.ok_or_else(|| Rejection::new(code, format!("{}: there is no seat {number}", place())))
}

fn outcome(wire: Option<v1::Result>) -> Parsed<Outcome> {
    let wire = wire.ok_or_else(|| Rejection::new(ReasonCode::Unfinished, "the record states no result"))?;
    let winner = wire
        .winner
        .map(|winner| seat(winner, ReasonCode::WrongResult, || "winner".to_owned()))
        .transpose()?;
    let unknown = || {
        let shown: String = wire.reason.chars().take(40).collect();
        Rejection::new(
            ReasonCode::WrongReason,
            format!("{shown:?} is no reason a game ends for"),
        )
    };
    let reason = Reason::parse(&wire.reason).ok_or_else(unknown)?;
    Ok(Outcome { winner, reason })
}

fn roles(wire: v1::Roles) -> Parsed<Roles> {
    let role = |number: Option<u32>, name: &str| {
        number
            .map(|number| seat(number, ReasonCode::WrongRoles, || name.to_owned()))
            .transpose()
    };
    Ok(Roles {
        opener: role(wire.opener, "opener")?,
        chooser: role(wire.chooser, "chooser")?,
        first_colour: role(wire.first_colour, "first colour")?,
    })
}

fn ply(n: usize, form: Form, wire: &v1::Ply) -> Parsed<PlyRecord> {
    let place = || format!("ply {n}");
    Ok(PlyRecord {
        seat: seat(wire.seat, ReasonCode::WrongSeat, place)?,
        action: action(wire.action, ReasonCode::IllegalAction, place)?,
        model: model_index(wire.model)?,
        search: wire.search.as_ref().map(|wire| search(n, form, wire)).transpose()?,
    })
}

fn search(n: usize, form: Form, wire: &v1::SearchBlock) -> Parsed<SearchBlock> {
    let refuse = |code, what: String| Rejection::new(code, format!("ply {n}: {what}"));
    let Lists {
        policy_target,
        visits,
        net_policy_top,
    } = Lists::read(n, form, wire)?;
    Ok(SearchBlock {
        policy_target,
        visits,
        weight: wire.weight,
        root_wdl: wdl(n, "root", &wire.root_wdl)?,
        net_wdl: wdl(n, "network", &wire.net_wdl)?,
        net_policy_top,
        prior_kl: wire.prior_kl,
        visits_total: wire.visits_total,
        visits_reused: wire.visits_reused,
        temperature: wire.temperature,
        precision: precision_from_wire(wire.precision)
            .ok_or_else(|| refuse(ReasonCode::Precision, format!("{} is no precision", wire.precision)))?,
        symmetry: u16::try_from(wire.symmetry)
            .map_err(|_| refuse(ReasonCode::Symmetry, format!("there is no symmetry {}", wire.symmetry)))?,
    })
}

fn wdl(n: usize, whose: &str, values: &[f32]) -> Parsed<[f32; 3]> {
    let refuse = |_| {
        Rejection::new(
            ReasonCode::Wdl,
            format!("ply {n}: {whose} has {} values, not 3", values.len()),
        )
    };
    values.try_into().map_err(refuse)
}
