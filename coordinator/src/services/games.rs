//! The calls of `RunService` that show stored games.

use tengen_games::Seat;
use tengen_proto::v1;
use tengen_records::{LeaseId, ModelId, RecordId};
use tonic::{Code, Status};

use super::{errors, page_size, page_start};
use crate::archive::Archive;
use crate::store::game_list::{self, Extent, Filter, GameRow, Purpose, Won};

pub(super) async fn list(archive: &Archive, request: v1::ListGamesRequest) -> Result<v1::ListGamesResponse, Status> {
    let filter = filter(request.filter.unwrap_or_default())?;
    let limit = page_size(request.page_size) as usize;
    let before = page_start(&request.page_token, u64::MAX)?;
    let extent = if request.with_records {
        Extent::Whole
    } else {
        Extent::Heading
    };
    let page = archive
        .read(move |connection| game_list::page(connection, &filter, before, limit, extent))
        .await?;
    Ok(v1::ListGamesResponse {
        next_page_token: page.next_before.map(|before| before.to_string()).unwrap_or_default(),
        games: page.games.into_iter().map(game).collect(),
    })
}

pub(super) async fn get(archive: &Archive, request: v1::GetGameRequest) -> Result<v1::StoredGame, Status> {
    let lease = LeaseId::from_bytes(&request.lease_id).map_err(|error| errors::bad_field("lease_id", error))?;
    let id = RecordId {
        lease,
        index: request.game_index,
    };
    let found = archive.read(move |connection| game_list::get(connection, id)).await?;
    let missing = || errors::refusal(Code::NotFound, "NO_SUCH_GAME", format!("there is no game {id}"));
    Ok(game(found.ok_or_else(missing)?))
}

fn filter(wire: v1::GameFilter) -> Result<Filter, Status> {
    let bad = |field: &str, number: i32| errors::bad_field(field, format!("there is no value {number}"));
    let model = match &wire.model_id[..] {
        [] => None,
        id => Some(ModelId::from_bytes(id).map_err(|error| errors::bad_field("filter.model_id", error))?),
    };
    let purpose = match v1::GameKind::try_from(wire.kind).map_err(|_| bad("filter.kind", wire.kind))? {
        v1::GameKind::Unspecified => None,
        v1::GameKind::SelfPlay => Some(Purpose::SelfPlay),
        v1::GameKind::Gate => Some(Purpose::Gate),
        v1::GameKind::Rating => Some(Purpose::Rating),
    };
    let won = match v1::GameResult::try_from(wire.result).map_err(|_| bad("filter.result", wire.result))? {
        v1::GameResult::Unspecified => None,
        v1::GameResult::Seat0 => Some(Won::By(Seat::FIRST)),
        v1::GameResult::Seat1 => Some(Won::By(Seat::SECOND)),
        v1::GameResult::Draw => Some(Won::Nobody),
    };
    Ok(Filter {
        iteration: wire.iteration,
        model,
        purpose,
        won,
        actor: Some(wire.actor).filter(|actor| !actor.is_empty()),
    })
}

fn game(row: GameRow) -> v1::StoredGame {
    let kind = match row.purpose {
        Purpose::SelfPlay => v1::GameKind::SelfPlay,
        Purpose::Gate => v1::GameKind::Gate,
        Purpose::Rating => v1::GameKind::Rating,
    };
    let model_ids = row.order.model_ids.clone();
    let players = row.order.players.clone();
    let (record, sound) = row.record.unwrap_or((Vec::new(), true));
    let work_order = (!record.is_empty()).then_some(row.order);
    v1::StoredGame {
        sequence: row.sequence,
        lease_id: row.id.lease.to_bytes().to_vec(),
        game_index: row.id.index,
        kind: kind.into(),
        actor: row.actor,
        iteration: row.iteration,
        model_ids,
        players,
        positions: row.positions,
        plies: row.plies,
        winner: row.winner,
        reason: row.reason,
        opening_path: row.opening_path.unwrap_or_default(),
        created_unix_ms: row.created_ms,
        stored_unix_ms: row.stored_ms,
        purged: row.purged,
        record,
        work_order,
        damaged: !sound,
    }
}
