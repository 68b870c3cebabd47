//! A coordinator that says what a test tells it to say, on a real port.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};

use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use tengen_games::{AnyGame, Game, GameVisitor};
use tengen_network::{Metadata, Shape, model_id, random_weights, write_onnx};
use tengen_proto::v1::learner_service_server::{LearnerService, LearnerServiceServer};
use tengen_proto::v1::model_service_server::{ModelService, ModelServiceServer};
use tengen_proto::v1::publish_model_request::Part;
use tengen_proto::v1::replay_service_server::{ReplayService, ReplayServiceServer};
use tengen_proto::v1::{
    DownloadModelRequest, GetModelRequest, LearnerStatus, ListModelsRequest, ListModelsResponse, Model, ModelChunk,
    PublishHeader, PublishModelRequest, RegisterLearnerRequest, RegisterLearnerResponse, ReportLearnerRequest,
    ReportLearnerResponse, StreamWindowRequest, WatchChampionRequest, WindowChunk, WindowGame,
};
use tengen_records::{Kind, Record, encode, testing};
use tengen_service::run_config::RunConfig;
use tengen_service::testing::now_us;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_stream::wrappers::TcpListenerStream;
use tokio_stream::{Stream, StreamExt};
use tonic::{Request, Response, Status, Streaming};

/// Tic-tac-toe with a network of a few thousand weights: 32 positions a step, each sampled once on average.
pub(crate) const RUN_TOML: &str = r#"
    [run]
    name = "fake"
    game = "tic-tac-toe"
    seed = 7
    [network]
    blocks = 1
    channels = 8
    value_channels = 4
    value_hidden = 8
    [[schedule]]
    from_iteration = 0
    games = 10
    simulations = 16
    [learner]
    batch = 32
    samples_per_position = 1.0
    window_min_positions = 64
    checkpoint_every_steps = 5
"#;

type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// What the coordinator holds and what happened to it.
#[derive(Default)]
pub(crate) struct State {
    /// The newest fence; reports and publications under another are refused.
    pub(crate) fence: u64,
    /// How a wrong fence is refused.
    pub(crate) refusal: Option<fn(String) -> Status>,
    /// The run's configuration.
    pub(crate) run_toml: String,
    /// Revision of the configuration.
    pub(crate) settings_revision: u32,
    /// Whether training is paused.
    pub(crate) paused: bool,
    /// Whether the run has ended.
    pub(crate) ended: bool,
    /// What is due: iteration and positions.
    pub(crate) due: (u32, u64),
    /// Streams of the window that were opened.
    pub(crate) streams: u32,
    /// What `window_store` says.
    pub(crate) window_store: String,
    /// The window's games with their positions in all.
    pub(crate) games: Vec<WindowGame>,
    /// Who registered.
    pub(crate) registered: Vec<RegisterLearnerRequest>,
    /// The newest status.
    pub(crate) status: LearnerStatus,
    /// What was published.
    pub(crate) published: Vec<(PublishHeader, Vec<u8>)>,
    /// What becomes of publications.
    pub(crate) publishing: Publishing,
    /// Publications that were begun.
    pub(crate) publications_tried: u32,
    /// When each publication was begun, microseconds since the Unix epoch, with the step of its network.
    pub(crate) published_at: Vec<(u64, u64)>,
    /// When each report came, with the step it told.
    pub(crate) reported_at: Vec<(u64, u64)>,
    /// How often generation 0 was read.
    pub(crate) downloads: u32,
}

/// What becomes of publications.
#[derive(Clone, Copy, Default)]
pub(crate) enum Publishing {
    /// They are stored.
    #[default]
    Works,
    /// They are refused for good.
    Refused,
    /// Those in more than fp32 are refused.
    Fp32Alone,
    /// They fail before anything is stored.
    Away,
    /// They are stored, and the learner is not told.
    AnswerLost,
}

impl State {
    /// Positions of the window's games.
    pub(crate) fn positions(&self) -> u64 {
        self.games.last().map_or(0, |game| game.positions_total)
    }
}

/// A handle to the coordinator; the state outlives the server, as a database does.
#[derive(Clone)]
pub(crate) struct Coordinator {
    state: Arc<Mutex<State>>,
    happened: watch::Sender<u64>,
}

/// A coordinator that is being served.
pub(crate) struct Serving {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Serving {
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Kills the server and its connections.
    pub(crate) async fn kill(self) -> SocketAddr {
        self.task.abort();
        let _ = self.task.await;
        self.address
    }
}

impl Coordinator {
    /// Holds so many random games of tic-tac-toe.
    pub(crate) fn new(games: u32) -> Coordinator {
        let mut total = 0;
        let games = (1..).zip(records(games)).map(|(sequence, record)| {
            total += u64::from(record.positions());
            WindowGame {
                sequence,
                record: encode(&record),
                positions_total: total,
                positions: record.positions(),
            }
        });
        let state = State {
            games: games.collect(),
            run_toml: RUN_TOML.to_owned(),
            settings_revision: 1,
            ..State::default()
        };
        Coordinator {
            state: Arc::new(Mutex::new(state)),
            happened: watch::Sender::new(0),
        }
    }

    pub(crate) async fn serve(&self) -> Serving {
        self.serve_at("127.0.0.1:0".parse().unwrap()).await
    }

    pub(crate) async fn serve_at(&self, address: SocketAddr) -> Serving {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = tonic::transport::Server::builder()
            .add_service(LearnerServiceServer::new(self.clone()))
            .add_service(ModelServiceServer::new(self.clone()))
            .add_service(ReplayServiceServer::new(self.clone()));
        let task = tokio::spawn(async move {
            router
                .serve_with_incoming(TcpListenerStream::new(listener))
                .await
                .unwrap();
        });
        Serving { address, task }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Positions of the window's games.
    pub(crate) fn positions(&self) -> u64 {
        self.state().positions()
    }

    /// Waits until `holds`; the learner's reports are what moves it on.
    pub(crate) async fn until(&self, holds: impl Fn(&State) -> bool) {
        let mut happened = self.happened.subscribe();
        while !holds(&self.state()) {
            happened.changed().await.unwrap();
        }
    }

    fn note(&self) {
        self.happened.send_modify(|count| *count += 1);
    }

    fn check_fence(&self, fence: u64) -> Result<(), Status> {
        let state = self.state();
        if fence == state.fence {
            return Ok(());
        }
        let refuse = state.refusal.unwrap_or(Status::failed_precondition);
        Err(refuse(format!("fence {fence} is not the newest")))
    }

    fn generation_zero() -> Vec<u8> {
        let run = RunConfig::from_toml(RUN_TOML).unwrap();
        let shape = Shape::new(game().spec(), &run.network).unwrap();
        write_onnx(&shape, &random_weights(&shape, 1), &Metadata::of_shape(&shape)).unwrap()
    }

    pub(crate) fn generation_zero_id() -> Vec<u8> {
        model_id(&Self::generation_zero()).to_vec()
    }
}

fn game() -> AnyGame {
    AnyGame::parse("tic-tac-toe").unwrap()
}

fn records(games: u32) -> Vec<Record> {
    struct Random(u32);
    impl GameVisitor for Random {
        type Output = Vec<Record>;
        fn visit<G: Game>(self, game: G) -> Vec<Record> {
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
            let expected = testing::expected(&game, Kind::SelfPlay, &mut rng);
            (0..self.0)
                .map(|index| testing::random_record(&game, &expected, index, &mut rng))
                .collect()
        }
    }
    game().visit(Random(games))
}

/// The files of a network and of its variants, which must add up to these bytes.
fn files(model: &Model, mut bytes: Vec<u8>) -> Result<Vec<Vec<u8>>, Status> {
    let variants = model
        .variants
        .iter()
        .map(|variant| (&variant.file_id, variant.size_bytes));
    let mut files = Vec::new();
    for (id, size) in std::iter::once((&model.model_id, model.size_bytes)).chain(variants) {
        if bytes.len() < size as usize {
            return Err(Status::invalid_argument("bytes are missing"));
        }
        let rest = bytes.split_off(size as usize);
        if model_id(&bytes) != id[..] {
            return Err(Status::invalid_argument("a file is not the one that was described"));
        }
        files.push(std::mem::replace(&mut bytes, rest));
    }
    if bytes.is_empty() {
        Ok(files)
    } else {
        Err(Status::invalid_argument("there are more bytes than were described"))
    }
}

/// These items, then nothing for ever.
fn then_silence<T: Send + 'static>(items: Vec<T>) -> Answers<T> {
    Box::pin(tokio_stream::iter(items).map(Ok).chain(tokio_stream::pending()))
}

#[tonic::async_trait]
impl LearnerService for Coordinator {
    async fn register(
        &self,
        request: Request<RegisterLearnerRequest>,
    ) -> Result<Response<RegisterLearnerResponse>, Status> {
        let game = game();
        let mut state = self.state();
        state.fence += 1;
        state.registered.push(request.into_inner());
        let answer = RegisterLearnerResponse {
            run_id: "fake-1".to_owned(),
            game: "tic-tac-toe".to_owned(),
            rules_fingerprint: game.rules_fingerprint().0.to_vec(),
            feature_fingerprint: game.feature_fingerprint().0.to_vec(),
            fence: state.fence,
            run_toml: state.run_toml.clone(),
            seed: 7,
            window_store: state.window_store.clone(),
            settings_revision: state.settings_revision,
            training_paused: state.paused,
        };
        drop(state);
        self.note();
        Ok(Response::new(answer))
    }

    async fn report(&self, request: Request<ReportLearnerRequest>) -> Result<Response<ReportLearnerResponse>, Status> {
        let request = request.into_inner();
        self.check_fence(request.fence)?;
        let mut state = self.state();
        state.status = request.status.unwrap();
        let step = state.status.step;
        state.reported_at.push((now_us(), step));
        let newest = state
            .published
            .iter()
            .map(|(header, _)| header.model.as_ref().unwrap().iteration)
            .max();
        let answer = ReportLearnerResponse {
            iteration: state.due.0,
            candidate_iteration: state.due.0,
            candidate_positions: state.due.1,
            published_iteration: newest.unwrap_or(0),
            training_paused: state.paused,
            ended: state.ended,
            settings_revision: state.settings_revision,
            run_toml: if request.settings_revision == state.settings_revision {
                String::new()
            } else {
                state.run_toml.clone()
            },
        };
        drop(state);
        self.note();
        Ok(Response::new(answer))
    }
}

#[tonic::async_trait]
impl ReplayService for Coordinator {
    type StreamWindowStream = Answers<WindowChunk>;

    async fn stream_window(
        &self,
        request: Request<StreamWindowRequest>,
    ) -> Result<Response<Self::StreamWindowStream>, Status> {
        let cursor = request.into_inner();
        let mut state = self.state();
        state.streams += 1;
        let after = if cursor.epoch == 1 { cursor.after_sequence } else { 0 };
        let games = state.games.iter().filter(|game| game.sequence > after);
        let chunk = WindowChunk {
            epoch: 1,
            games: games.cloned().collect(),
            capacity_positions: 10_000,
            caught_up: true,
        };
        drop(state);
        self.note();
        Ok(Response::new(then_silence(vec![chunk])))
    }
}

#[tonic::async_trait]
impl ModelService for Coordinator {
    type DownloadModelStream = Answers<ModelChunk>;
    type WatchChampionStream = Answers<Model>;

    async fn list_models(&self, _: Request<ListModelsRequest>) -> Result<Response<ListModelsResponse>, Status> {
        Err(Status::unimplemented("not asked for by a learner"))
    }

    async fn get_model(&self, request: Request<GetModelRequest>) -> Result<Response<Model>, Status> {
        assert_eq!(request.into_inner().name, "latest");
        let newest = self
            .state()
            .published
            .last()
            .and_then(|(header, _)| header.model.clone());
        Ok(Response::new(newest.unwrap_or_else(|| Model {
            model_id: Self::generation_zero_id(),
            generation: Some(0),
            ..Model::default()
        })))
    }

    async fn download_model(
        &self,
        request: Request<DownloadModelRequest>,
    ) -> Result<Response<Self::DownloadModelStream>, Status> {
        let id = request.into_inner().model_id;
        let mut state = self.state();
        state.downloads += 1;
        let published = state.published.iter().find(|(_, file)| model_id(file) == id[..]);
        let file = published.map_or_else(Self::generation_zero, |(_, file)| file.clone());
        drop(state);
        let (first, second) = file.split_at(1000);
        let chunks = [(0, first), (1000, second)].map(|(offset, data)| {
            Ok(ModelChunk {
                offset,
                data: data.to_vec(),
            })
        });
        Ok(Response::new(Box::pin(tokio_stream::iter(chunks))))
    }

    async fn publish_model(&self, request: Request<Streaming<PublishModelRequest>>) -> Result<Response<Model>, Status> {
        let mut parts = request.into_inner();
        let Some(Part::Header(header)) = parts.message().await?.and_then(|first| first.part) else {
            return Err(Status::invalid_argument("the header comes first"));
        };
        self.check_fence(header.fence)?;
        let publishing = {
            let mut state = self.state();
            state.publications_tried += 1;
            let step = header.model.as_ref().map_or(0, |model| model.step);
            state.published_at.push((now_us(), step));
            state.publishing
        };
        self.note();
        if matches!(publishing, Publishing::Away) {
            return Err(Status::unavailable("not now"));
        }
        let comes_in_more = header.model.as_ref().is_some_and(|model| !model.variants.is_empty());
        if matches!(publishing, Publishing::Refused) || matches!(publishing, Publishing::Fp32Alone) && comes_in_more {
            return Err(Status::failed_precondition("not such a network"));
        }
        let mut bytes = Vec::new();
        while let Some(next) = parts.message().await? {
            let Some(Part::Chunk(chunk)) = next.part else {
                return Err(Status::invalid_argument("two headers"));
            };
            bytes.extend_from_slice(&chunk);
        }
        let model = header.model.clone().unwrap();
        let file = files(&model, bytes)?.swap_remove(0);
        let same = |(header, _): &(PublishHeader, Vec<u8>)| header.model.as_ref() == Some(&model);
        if self.state().published.iter().any(same) {
            return Ok(Response::new(model));
        }
        self.state().published.push((header, file));
        self.note();
        match publishing {
            Publishing::AnswerLost => Err(Status::unavailable("the answer was lost")),
            Publishing::Works | Publishing::Away | Publishing::Refused | Publishing::Fp32Alone => {
                Ok(Response::new(model))
            }
        }
    }

    async fn watch_champion(
        &self,
        _: Request<WatchChampionRequest>,
    ) -> Result<Response<Self::WatchChampionStream>, Status> {
        Ok(Response::new(then_silence(vec![Model {
            generation: Some(0),
            ..Model::default()
        }])))
    }
}
