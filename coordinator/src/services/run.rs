//! `RunService`: the run as people watch it.

use std::time::Duration;

use tengen_proto::v1;
use tengen_proto::v1::run_service_server::RunService;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

use super::{errors, page_size, page_start, ratings};
use crate::archive::Archive;
use crate::messages;
use crate::store::gates::{self, GateState};
use crate::store::{StoreError, actors};

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
        let interval_ms = match request.into_inner().interval_ms {
            0 => INTERVAL_DEFAULT_MS,
            asked => asked.clamp(*INTERVAL_MS.start(), *INTERVAL_MS.end()),
        };
        let (statuses, stream) = mpsc::channel(1);
        tokio::spawn(watch_status(
            self.0.clone(),
            Duration::from_millis(interval_ms.into()),
            statuses,
        ));
        Ok(Response::new(ReceiverStream::new(stream)))
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
fn status_now(archive: &Archive) -> v1::RunStatus {
    v1::RunStatus {
        access: archive.access.in_words().to_owned(),
        ..archive.status.borrow().as_ref().clone()
    }
}

async fn watch_status(archive: Archive, interval: Duration, statuses: mpsc::Sender<Result<v1::RunStatus, Status>>) {
    let mut ticks = tokio::time::interval(interval);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = ticks.tick() => {
                if statuses.send(Ok(status_now(&archive))).await.is_err() {
                    return;
                }
            }
            () = archive.stop.cancelled() => {
                let _gone = statuses.send(Err(errors::draining())).await;
                return;
            }
            () = statuses.closed() => return,
        }
    }
}

fn read_gates(connection: &rusqlite::Connection, before: u32, limit: u32) -> Result<Vec<v1::Gate>, StoreError> {
    let rows = gates::list(connection, before, limit)?;
    rows.iter()
        .map(|row| {
            let tally = match row.state {
                GateState::Open => row.restore(&gates::log(connection, row.id)?).tally(),
                GateState::Promoted | GateState::Rejected => row.tally,
            };
            Ok(messages::stored_gate(row, tally))
        })
        .collect()
}
