//! `RunService`: the run as people watch it.

use std::fmt;
use std::time::Duration;

use tengen_proto::v1;
use tengen_proto::v1::run_service_server::RunService;
use tengen_records::ModelId;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Request, Response, Status};

use super::watch::{self, Cursor};
use super::{errors, games, page_size, page_start, ratings};
use crate::archive::Archive;
use crate::clock::unix_ms;
use crate::diagnose::{Cause, Snapshot, diagnose};
use crate::messages;
use crate::store::gates::{self, GateState};
use crate::store::{StoreError, actors, progress, settings, tokens};

/// Shortest and longest distance between two messages of a watch, milliseconds.
const INTERVAL_MS: std::ops::RangeInclusive<u32> = 100..=60_000;
/// The distance when none is asked for, milliseconds.
const INTERVAL_DEFAULT_MS: u32 = 1_000;

/// The service.
#[derive(Debug)]
pub(crate) struct RunApi(pub(crate) Archive);

#[tonic::async_trait]
impl RunService for RunApi {
    async fn get_status(&self, _: Request<v1::GetStatusRequest>) -> Result<Response<v1::RunStatus>, Status> {
        Ok(Response::new(status_now(&self.0)))
    }

    type WatchStatusStream = ReceiverStream<Result<v1::RunStatus, Status>>;

    async fn watch_status(
        &self,
        request: Request<v1::WatchStatusRequest>,
    ) -> Result<Response<Self::WatchStatusStream>, Status> {
        let v1::WatchStatusRequest {
            interval_ms,
            resume_token,
        } = request.into_inner();
        let seen = Cursor::read(&resume_token)?;
        let interval_ms = match interval_ms {
            0 => INTERVAL_DEFAULT_MS,
            asked => asked.clamp(*INTERVAL_MS.start(), *INTERVAL_MS.end()),
        };
        let (statuses, stream) = mpsc::channel(1);
        let interval = Duration::from_millis(interval_ms.into());
        tokio::spawn(watch::watch(self.0.clone(), interval, seen, statuses));
        Ok(Response::new(ReceiverStream::new(stream)))
    }

    async fn list_iterations(
        &self,
        request: Request<v1::ListIterationsRequest>,
    ) -> Result<Response<v1::ListIterationsResponse>, Status> {
        let v1::ListIterationsRequest {
            page_size: asked,
            page_token,
        } = request.into_inner();
        let limit = page_size(asked);
        let before = page_start(&page_token, u32::MAX)?;
        let page = self
            .0
            .read(move |connection| read_iterations(connection, before, limit));
        Ok(Response::new(page.await?))
    }

    async fn list_matches(
        &self,
        request: Request<v1::ListMatchesRequest>,
    ) -> Result<Response<v1::ListMatchesResponse>, Status> {
        let v1::ListMatchesRequest {
            page_size: asked,
            page_token,
        } = request.into_inner();
        let limit = page_size(asked);
        let before = page_start(&page_token, u32::MAX)?;
        let mut gates = self
            .0
            .read(move |connection| read_gates(connection, before, limit + 1))
            .await?;
        let next = gates.len() > limit as usize;
        gates.truncate(limit as usize);
        let next_page_token = gates
            .last()
            .filter(|_| next)
            .map(|gate| gate.gate_id.to_string())
            .unwrap_or_default();
        Ok(Response::new(v1::ListMatchesResponse { gates, next_page_token }))
    }

    async fn get_match(&self, request: Request<v1::GetMatchRequest>) -> Result<Response<v1::MatchEvidence>, Status> {
        let which = Which::parse(request.into_inner())?;
        let missing = errors::refusal(Code::NotFound, "NO_SUCH_MATCH", format!("there is no gate {which}"));
        let found = self.0.read(move |connection| which.read(connection)).await?;
        Ok(Response::new(found.ok_or(missing)?))
    }

    async fn diagnose(&self, _: Request<v1::DiagnoseRequest>) -> Result<Response<v1::Diagnosis>, Status> {
        let (actors, tokens) = self
            .0
            .read(|connection| Ok((actors::all(connection)?, tokens::all(connection)?)))
            .await?;
        let snapshot = Snapshot {
            status: status_now(&self.0),
            refused: self.0.access.refused().into_iter().collect(),
            actors,
            tokens,
            is_at_rest: self.0.is_at_rest,
            now_ms: unix_ms(),
        };
        let findings = diagnose(&snapshot).iter().map(Cause::finding).collect();
        Ok(Response::new(v1::Diagnosis { findings }))
    }

    async fn list_actors(
        &self,
        request: Request<v1::ListActorsRequest>,
    ) -> Result<Response<v1::ListActorsResponse>, Status> {
        let v1::ListActorsRequest {
            page_size: asked,
            page_token,
        } = request.into_inner();
        let limit = page_size(asked) as usize;
        let mut rows = self
            .0
            .read(move |connection| actors::page(connection, &page_token, limit as u32 + 1))
            .await?;
        let next = rows.len() > limit;
        rows.truncate(limit);
        let last = rows.last().filter(|_| next);
        let next_page_token = last.map(|row| row.actor.clone()).unwrap_or_default();
        let actors = rows.into_iter().map(messages::actor).collect();
        Ok(Response::new(v1::ListActorsResponse {
            actors,
            next_page_token,
        }))
    }

    async fn get_settings(&self, _: Request<v1::GetSettingsRequest>) -> Result<Response<v1::Settings>, Status> {
        let settings = self.0.read(|connection| {
            let mut rows = settings::before(connection, u32::MAX, 2)?.into_iter();
            let newest = rows
                .next()
                .ok_or_else(|| StoreError::corrupt("settings", "there is no revision"))?;
            Ok(v1::Settings {
                live_keys: settings::live_keys(connection)?.into_iter().collect(),
                ..messages::settings(newest, rows.next().as_ref())
            })
        });
        Ok(Response::new(settings.await?))
    }

    async fn list_settings(
        &self,
        request: Request<v1::ListSettingsRequest>,
    ) -> Result<Response<v1::ListSettingsResponse>, Status> {
        let v1::ListSettingsRequest {
            page_size: asked,
            page_token,
        } = request.into_inner();
        let limit = page_size(asked) as usize;
        let before = page_start(&page_token, u32::MAX)?;
        // One more than asked for: what the last of the page is compared with.
        let rows = self
            .0
            .read(move |connection| settings::before(connection, before, limit as u32 + 1))
            .await?;
        let next_page_token = match rows.get(limit) {
            Some(_) => rows[limit - 1].revision.to_string(),
            None => String::new(),
        };
        let page = rows.iter().take(limit).enumerate().map(|(n, row)| v1::Settings {
            run_toml: String::new(),
            ..messages::settings(row.clone(), rows.get(n + 1))
        });
        Ok(Response::new(v1::ListSettingsResponse {
            settings: page.collect(),
            next_page_token,
        }))
    }

    async fn list_ratings(
        &self,
        request: Request<v1::ListRatingsRequest>,
    ) -> Result<Response<v1::ListRatingsResponse>, Status> {
        let request = request.into_inner();
        let table = self.0.read(ratings::read).await?;
        let (ratings, next_page_token) = page(table.ratings, request.page_size, &request.page_token)?;
        Ok(Response::new(v1::ListRatingsResponse {
            ratings,
            next_page_token,
        }))
    }

    async fn list_pairings(
        &self,
        request: Request<v1::ListPairingsRequest>,
    ) -> Result<Response<v1::ListPairingsResponse>, Status> {
        let request = request.into_inner();
        let table = self.0.read(ratings::read).await?;
        let (pairings, next_page_token) = page(table.pairings, request.page_size, &request.page_token)?;
        Ok(Response::new(v1::ListPairingsResponse {
            pairings,
            next_page_token,
        }))
    }

    async fn list_games(
        &self,
        request: Request<v1::ListGamesRequest>,
    ) -> Result<Response<v1::ListGamesResponse>, Status> {
        Ok(Response::new(games::list(&self.0, request.into_inner()).await?))
    }

    async fn get_game(&self, request: Request<v1::GetGameRequest>) -> Result<Response<v1::StoredGame>, Status> {
        Ok(Response::new(games::get(&self.0, request.into_inner()).await?))
    }
}

/// The items of one page of a list that is put together when it is asked for, and the token of the next page.
fn page<T>(items: Vec<T>, asked: i32, token: &str) -> Result<(Vec<T>, String), Status> {
    let (start, size) = (page_start(token, 0usize)?, page_size(asked) as usize);
    let next = start.saturating_add(size);
    let token = if next < items.len() {
        next.to_string()
    } else {
        String::new()
    };
    Ok((items.into_iter().skip(start).take(size).collect(), token))
}

/// The run's status, and how this process lets people in.
pub(crate) fn status_now(archive: &Archive) -> v1::RunStatus {
    let status = archive.status.borrow().as_ref().clone();
    v1::RunStatus {
        access: archive.access.in_words().to_owned(),
        refused_calls: archive
            .access
            .refused()
            .into_iter()
            .map(|(reason, calls)| (reason, calls.count))
            .collect(),
        resume_token: Cursor::of(&status).to_string(),
        ..status
    }
}

/// Which gate is asked for.
#[derive(Clone, Copy, Debug)]
enum Which {
    Number(u32),
    Of(ModelId),
}

impl fmt::Display for Which {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Which::Number(gate) => write!(f, "{gate}"),
            Which::Of(candidate) => write!(f, "of the network {candidate}"),
        }
    }
}

impl Which {
    fn parse(request: v1::GetMatchRequest) -> Result<Which, Status> {
        match (request.gate_id, &request.candidate_id[..]) {
            (0, []) => Err(errors::bad_field("gate_id", "neither a gate nor a candidate is named")),
            (0, candidate) => {
                let id = ModelId::from_bytes(candidate);
                Ok(Which::Of(id.map_err(|error| errors::bad_field("candidate_id", error))?))
            }
            (gate, []) => Ok(Which::Number(gate)),
            _ => Err(errors::bad_field(
                "gate_id",
                "the gate and its candidate are named, and one is wanted",
            )),
        }
    }

    fn read(self, connection: &rusqlite::Connection) -> Result<Option<v1::MatchEvidence>, StoreError> {
        let row = match self {
            Which::Number(gate) => gates::get(connection, gate)?,
            Which::Of(candidate) => gates::of_candidate(connection, candidate)?,
        };
        row.map(|row| {
            let log = gates::log(connection, row.id)?;
            Ok(messages::evidence(&row, &log))
        })
        .transpose()
    }
}

/// A page of the iterations that ended before one.
fn read_iterations(
    connection: &rusqlite::Connection,
    before: u32,
    limit: u32,
) -> Result<v1::ListIterationsResponse, StoreError> {
    // One more than asked for: the last of the page began when that one ended.
    let rows = progress::iterations_between(connection, 0, before, limit + 1)?;
    let surplus = rows.len().saturating_sub(limit as usize);
    let created_ms = progress::run(connection)?.map_or(0, |run| run.created_ms);
    let began_ms = std::iter::once(created_ms).chain(rows.iter().map(|row| row.ended_ms));
    let ascending = rows.iter().zip(began_ms).skip(surplus);
    let mut iterations: Vec<v1::Iteration> = ascending
        .map(|(row, began_unix_ms)| v1::Iteration {
            iteration: row.iteration,
            games: row.games,
            positions: row.positions,
            candidate_due: row.candidate_due,
            began_unix_ms,
            ended_unix_ms: row.ended_ms,
        })
        .collect();
    iterations.reverse();
    let last = iterations.last().filter(|_| surplus > 0);
    let next_page_token = last.map(|last| last.iteration.to_string()).unwrap_or_default();
    Ok(v1::ListIterationsResponse {
        iterations,
        next_page_token,
    })
}

fn read_gates(connection: &rusqlite::Connection, before: u32, limit: u32) -> Result<Vec<v1::Gate>, StoreError> {
    let rows = gates::list(connection, before, limit)?;
    rows.iter()
        .map(|row| {
            let log = match row.state {
                GateState::Open => gates::log(connection, row.id)?,
                GateState::Promoted | GateState::Rejected | GateState::Void => Vec::new(),
            };
            Ok(messages::stored_gate(row, &log))
        })
        .collect()
}
