//! `ActorService`: handshake, work, games, reports.

use tengen_proto::v1::actor_service_server::ActorService;
use tengen_proto::{PROTOCOL, PROTOCOL_MIN, v1};
use tengen_records::LeaseId;
use tengen_selfplay::wire::order_to_wire;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};

use super::{Shared, errors, submit};
use crate::access::{TokenId, caller};
use crate::run::request::{self, ActorReport, Handout};
use crate::store::actors::ActorRow;

/// How often actors report, milliseconds.
const REPORT_INTERVAL_MS: u32 = 2_000;
/// When an actor asks for work again while the disk has no room, milliseconds.
const NO_ROOM_WAIT_MS: u32 = 5_000;
/// Leases that one report may name.
const LEASES_MAX: usize = 4_096;
/// Longest text an actor may send about itself, bytes.
const TEXT_LEN_MAX: usize = 200;
/// Longest sentence of it that is kept, bytes.
const SENTENCE_LEN_MAX: usize = 400;

/// The service.
#[derive(Debug)]
pub(crate) struct ActorApi(pub(crate) Shared);

#[tonic::async_trait]
impl ActorService for ActorApi {
    async fn register(
        &self,
        request: Request<v1::RegisterActorRequest>,
    ) -> Result<Response<v1::RegisterActorResponse>, Status> {
        let caller = caller(&request)?;
        let hello = request.into_inner();
        let protocol = common_protocol(&hello)?;
        let actor = ActorRow {
            actor: actor_id(hello.actor_id)?,
            host: text("host", hello.host)?,
            build: text("build", hello.build)?,
            provider: text("provider", hello.provider)?,
            token: caller.token().map(TokenId::to_string),
            ..ActorRow::default()
        };
        let (id, access) = (actor.actor.clone(), &self.0.archive.access);
        let new = access.claim(&caller, &id)?;
        let registered = self
            .0
            .run
            .ask(|reply| request::Request::RegisterActor { actor, reply })
            .await?;
        if registered.is_err() && new {
            access.unclaim(&id);
        }
        registered?;
        let facts = self.0.run.facts();
        Ok(Response::new(v1::RegisterActorResponse {
            run_id: facts.id.to_string(),
            game: facts.game.spec().id.clone(),
            rules_fingerprint: facts.rules_fingerprint.0.to_vec(),
            feature_fingerprint: facts.feature_fingerprint.0.to_vec(),
            protocol,
            build: tengen_service::BUILD.to_owned(),
            report_interval_ms: REPORT_INTERVAL_MS,
            run_created_unix_ms: facts.created_ms,
        }))
    }

    async fn get_work(&self, request: Request<v1::GetWorkRequest>) -> Result<Response<v1::GetWorkResponse>, Status> {
        let caller = caller(&request)?;
        let v1::GetWorkRequest {
            actor_id: actor,
            games_per_minute,
            takes_players,
            ..
        } = request.into_inner();
        self.0.archive.access.speaks_for(&caller, &actor)?;
        if let Err(no_room) = self.0.disk.check() {
            // Games that could not be stored are not worth playing.
            let wait = v1::Wait {
                reason: no_room.to_string(),
                retry_after_ms: NO_ROOM_WAIT_MS,
            };
            let work = Some(v1::get_work_response::Work::Wait(wait));
            return Ok(Response::new(v1::GetWorkResponse { work }));
        }
        let handout = self
            .0
            .run
            .ask(|reply| request::Request::Work {
                ask: request::WorkAsk {
                    actor,
                    games_per_minute,
                    takes_players,
                },
                reply,
            })
            .await??;
        let work = match handout {
            Handout::Order(order) => v1::get_work_response::Work::Order(order_to_wire(&order)),
            Handout::Wait { reason, retry_after_ms } => {
                v1::get_work_response::Work::Wait(v1::Wait { reason, retry_after_ms })
            }
        };
        Ok(Response::new(v1::GetWorkResponse { work: Some(work) }))
    }

    type SubmitGamesStream = ReceiverStream<Result<v1::SubmitGameResponse, Status>>;

    async fn submit_games(
        &self,
        request: Request<Streaming<v1::SubmitGameRequest>>,
    ) -> Result<Response<Self::SubmitGamesStream>, Status> {
        let (answers, stream) = mpsc::channel(submit::IN_FLIGHT_MAX);
        let caller = caller(&request)?;
        tokio::spawn(submit::serve(self.0.clone(), caller, request.into_inner(), answers));
        Ok(Response::new(ReceiverStream::new(stream)))
    }

    async fn report(
        &self,
        request: Request<v1::ReportActorRequest>,
    ) -> Result<Response<v1::ReportActorResponse>, Status> {
        let caller = caller(&request)?;
        let told = request.into_inner();
        self.0.archive.access.speaks_for(&caller, &told.actor_id)?;
        let report = Box::new(report(told)?);
        let wishes = self
            .0
            .run
            .ask(|reply| request::Request::Report { report, reply })
            .await??;
        let wire = |leases: Vec<LeaseId>| leases.iter().map(|lease| lease.to_bytes().to_vec()).collect();
        Ok(Response::new(v1::ReportActorResponse {
            cancelled_lease_ids: wire(wishes.cancelled),
            wanted_back_lease_ids: wire(wishes.wanted_back),
        }))
    }
}

/// The newest protocol that both sides speak.
fn common_protocol(hello: &v1::RegisterActorRequest) -> Result<u32, Status> {
    let newest = hello.protocol_max.min(PROTOCOL);
    if newest >= hello.protocol_min.max(PROTOCOL_MIN) {
        return Ok(newest);
    }
    let older = if hello.protocol_max < PROTOCOL_MIN {
        "actor"
    } else {
        "coordinator"
    };
    let message = format!(
        "this coordinator (build {}) serves protocols {PROTOCOL_MIN} to {PROTOCOL}, the actor (build {}) speaks {} to {}: \
         bring the {older} up to date, the coordinator first when both are old",
        tengen_service::BUILD,
        hello.build,
        hello.protocol_min,
        hello.protocol_max
    );
    Err(errors::precondition("PROTOCOL", "protocol", message))
}

/// An actor's identity: short plain text, as a UUID is.
fn actor_id(id: String) -> Result<String, Status> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if id.is_empty() || id.len() > 64 || !id.chars().all(plain) {
        return Err(errors::bad_field(
            "actor_id",
            format!("{id:?} is not 1 to 64 letters, digits, `-`, `_` or `.`"),
        ));
    }
    Ok(id)
}

/// A sentence that may hold what others said: too long a one is cut, not refused.
pub(super) fn clipped(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(SENTENCE_LEN_MAX));
    text
}

pub(super) fn text(field: &str, text: String) -> Result<String, Status> {
    if text.len() > TEXT_LEN_MAX {
        return Err(errors::bad_field(
            field,
            format!("{} bytes, at most {TEXT_LEN_MAX} are allowed", text.len()),
        ));
    }
    Ok(text)
}

fn lease_ids(field: &str, ids: &[Vec<u8>]) -> Result<Vec<LeaseId>, Status> {
    if ids.len() > LEASES_MAX {
        return Err(errors::bad_field(
            field,
            format!("{} leases, at most {LEASES_MAX} are allowed", ids.len()),
        ));
    }
    ids.iter()
        .map(|id| LeaseId::from_bytes(id).map_err(|error| errors::bad_field(field, error)))
        .collect()
}

/// A report whose numbers are numbers and whose texts are short.
fn report(told: v1::ReportActorRequest) -> Result<ActorReport, Status> {
    if !matches!(told.model_id.len(), 0 | 32) {
        let fault = format!("{} bytes are no model's id", told.model_id.len());
        return Err(errors::bad_field("model_id", fault));
    }
    Ok(ActorReport {
        mentioned: lease_ids("lease_ids", &told.lease_ids)?,
        returned: lease_ids("returned_lease_ids", &told.returned_lease_ids)?,
        told: v1::ReportActorRequest {
            evaluations_per_second: finite(told.evaluations_per_second),
            games_per_minute: finite(told.games_per_minute),
            provider: text("provider", told.provider)?,
            device: text("device", told.device)?,
            precision: text("precision", told.precision)?,
            precision_fell_back: clipped(told.precision_fell_back),
            waiting: clipped(told.waiting),
            usage: told.usage.map(usage),
            lease_ids: Vec::new(),
            returned_lease_ids: Vec::new(),
            ..told
        },
    })
}

/// A usage whose numbers are numbers.
pub(super) fn usage(told: v1::Usage) -> v1::Usage {
    v1::Usage {
        cpu_cores: finite(told.cpu_cores),
        gpu_busy: told.gpu_busy.map(|busy| finite(busy).min(1.0)),
        cpu_cores_lacking: told.cpu_cores_lacking.map(finite),
        ..told
    }
}

/// A number above or at 0, whatever was told.
pub(super) fn finite(rate: f32) -> f32 {
    if rate.is_finite() { rate.max(0.0) } else { 0.0 }
}
