//! `ModelService`: listing, reading, downloading and watching networks. Publishing is in `publish`, what a download reads in
//! `download`.

use tengen_proto::v1;
use tengen_proto::v1::model_service_server::ModelService;
use tengen_records::ModelId;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Request, Response, Status, Streaming};

use super::download::{Download, Downloads};
use super::{Shared, errors, page_size, page_start, publish};
use crate::archive::Archive;
use crate::messages;
use crate::store::StoreError;
use crate::store::models::{self, ModelRow};
use crate::store::variants;

/// Fewest hexadecimal digits that name a network.
const PREFIX_LEN_MIN: usize = 8;

/// The service.
#[derive(Debug)]
pub(crate) struct ModelApi {
    archive: Archive,
    /// Takes publications; a run that is only read has none.
    live: Option<Shared>,
    downloads: Downloads,
}

impl ModelApi {
    pub(crate) fn new(archive: Archive, live: Option<Shared>) -> ModelApi {
        let downloads = Downloads::new(archive.files.clone());
        ModelApi {
            archive,
            live,
            downloads,
        }
    }
}

#[tonic::async_trait]
impl ModelService for ModelApi {
    async fn list_models(
        &self,
        request: Request<v1::ListModelsRequest>,
    ) -> Result<Response<v1::ListModelsResponse>, Status> {
        let v1::ListModelsRequest {
            page_size: asked,
            page_token,
        } = request.into_inner();
        let limit = page_size(asked);
        let before = page_start(&page_token, i64::MAX)?;
        let run_id = self.archive.run_id.clone();
        let page = self.archive.read(move |connection| {
            let mut rows = models::list(connection, before, limit + 1)?;
            let next = rows.len() > limit as usize;
            rows.truncate(limit as usize);
            let next_page_token = rows
                .last()
                .filter(|_| next)
                .map(|row| row.number.to_string())
                .unwrap_or_default();
            let models = rows
                .iter()
                .map(|row| messages::model(connection, &run_id, row))
                .collect::<Result<_, _>>()?;
            Ok(v1::ListModelsResponse {
                models,
                next_page_token,
            })
        });
        Ok(Response::new(page.await?))
    }

    async fn get_model(&self, request: Request<v1::GetModelRequest>) -> Result<Response<v1::Model>, Status> {
        let name = ModelName::parse(&request.into_inner().name)?;
        let missing = errors::refusal(Code::NotFound, "NO_SUCH_MODEL", format!("there is no model {name:?}"));
        let run_id = self.archive.run_id.clone();
        let found = self.archive.read(move |connection| match name.find(connection)? {
            Found::One(row) => messages::model(connection, &run_id, &row).map(Ok),
            Found::None => Ok(Err(missing)),
            Found::Ambiguous => {
                let message = "more than one model begins with these digits: give more of them";
                Ok(Err(errors::refusal(Code::FailedPrecondition, "AMBIGUOUS", message)))
            }
        });
        Ok(Response::new(found.await??))
    }

    type DownloadModelStream = Download;

    async fn download_model(
        &self,
        request: Request<v1::DownloadModelRequest>,
    ) -> Result<Response<Self::DownloadModelStream>, Status> {
        let v1::DownloadModelRequest { model_id, offset } = request.into_inner();
        let id = ModelId::from_bytes(&model_id).map_err(|error| errors::bad_field("model_id", error))?;
        let file = self
            .archive
            .read(move |connection| variants::file(connection, id))
            .await?;
        let file =
            file.ok_or_else(|| errors::refusal(Code::NotFound, "NO_SUCH_MODEL", format!("there is no model {id}")))?;
        if file.removed_ms.is_some() {
            let message = format!("the file of model {id} was removed by the run's retention; its description stays");
            return Err(errors::refusal(Code::NotFound, "MODEL_REMOVED", message));
        }
        if offset > file.size_bytes {
            let message = format!(
                "offset {offset} is beyond the end, the file has {} bytes",
                file.size_bytes
            );
            return Err(errors::refusal(Code::OutOfRange, "OFFSET", message));
        }
        let download = self.downloads.begin(&file.file_name, file.size_bytes, offset);
        Ok(Response::new(download))
    }

    async fn publish_model(
        &self,
        request: Request<Streaming<v1::PublishModelRequest>>,
    ) -> Result<Response<v1::Model>, Status> {
        let Some(live) = &self.live else {
            let message = "this run is only read: start its coordinator to publish";
            return Err(errors::precondition("READ_ONLY", "run", message));
        };
        publish::take(live, request.into_inner()).await.map(Response::new)
    }

    type WatchChampionStream = ReceiverStream<Result<v1::Model, Status>>;

    async fn watch_champion(
        &self,
        _: Request<v1::WatchChampionRequest>,
    ) -> Result<Response<Self::WatchChampionStream>, Status> {
        let (champions, stream) = mpsc::channel(1);
        tokio::spawn(watch_champion(self.archive.clone(), champions));
        Ok(Response::new(ReceiverStream::new(stream)))
    }
}

async fn watch_champion(archive: Archive, champions: mpsc::Sender<Result<v1::Model, Status>>) {
    let mut champion = archive.champion;
    loop {
        let now = champion.borrow_and_update().as_ref().clone();
        if champions.send(Ok(now)).await.is_err() {
            return;
        }
        tokio::select! {
            changed = champion.changed() => if changed.is_err() { return },
            () = archive.stop.cancelled() => {
                let _gone = champions.send(Err(errors::draining())).await;
                return;
            }
            () = champions.closed() => return,
        }
    }
}

/// How a network is named.
#[derive(Clone, Debug)]
enum ModelName {
    Champion,
    Latest,
    Generation(u32),
    Prefix(String),
}

enum Found {
    One(Box<ModelRow>),
    None,
    Ambiguous,
}

impl ModelName {
    fn parse(name: &str) -> Result<ModelName, Status> {
        let digits = (PREFIX_LEN_MIN..=64).contains(&name.len()) && name.chars().all(|c| c.is_ascii_hexdigit());
        let generation = name.strip_prefix("gen:").map(str::parse);
        match (name, generation) {
            ("champion", _) => Ok(ModelName::Champion),
            ("latest", _) => Ok(ModelName::Latest),
            (_, Some(Ok(generation))) => Ok(ModelName::Generation(generation)),
            _ if digits => Ok(ModelName::Prefix(name.to_owned())),
            _ => {
                let fault = format!(
                    "{name:?} names no model: use champion, latest, gen:N, or {PREFIX_LEN_MIN} to 64 hexadecimal digits of an id"
                );
                Err(errors::bad_field("name", fault))
            }
        }
    }

    fn find(&self, connection: &rusqlite::Connection) -> Result<Found, StoreError> {
        let row = match self {
            ModelName::Champion => models::champion(connection)?,
            ModelName::Latest => models::latest(connection)?,
            ModelName::Generation(generation) => models::of_generation(connection, *generation)?,
            ModelName::Prefix(digits) => {
                let mut rows = models::by_prefix(connection, digits)?;
                if rows.len() > 1 {
                    return Ok(Found::Ambiguous);
                }
                rows.pop()
            }
        };
        Ok(row.map_or(Found::None, |row| Found::One(Box::new(row))))
    }
}
