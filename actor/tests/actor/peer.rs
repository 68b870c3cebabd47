//! The other end of the wire: a coordinator in miniature that hands out scripted leases and checks every record as the
//! real one does. What the real one does beyond that is tested over real processes in `tests/`.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tengen_games::{AnyGame, Game, GameVisitor};
use tengen_network::{
    ActivationRanges, Config, Metadata, Shape, Weights, random_weights, read_metadata, write_onnx, write_onnx_as_stated,
};
use tengen_proto::PROTOCOL;
use tengen_proto::v1::actor_service_server::{ActorService, ActorServiceServer};
use tengen_proto::v1::get_work_response::Work as WireWork;
use tengen_proto::v1::model_service_server::{ModelService, ModelServiceServer};
use tengen_proto::v1::{
    DownloadModelRequest, Fidelity, GetModelRequest, GetWorkRequest, GetWorkResponse, ListModelsRequest,
    ListModelsResponse, Model, ModelChunk, ModelVariant, Probe, ProbeAnswer, PublishModelRequest, RegisterActorRequest,
    RegisterActorResponse, ReportActorRequest, ReportActorResponse, SubmitGameRequest, SubmitGameResponse, Verdict,
    Wait, WatchChampionRequest,
};
use tengen_records::{
    Endings, Expected, LeaseId, ModelId, ModelIndex, Precision, RecordId, RunId, Work, precision_to_wire,
};
use tengen_search::Settings;
use tengen_selfplay::wire::order_to_wire;
use tengen_selfplay::{ModelBytes, Order, Plan};
use tengen_service::testing::now_us;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tonic::{Request, Response, Status, Streaming};

/// How long anything may take before the test counts as failed. Nothing waits this long when all is well.
const GUARD: Duration = Duration::from_secs(40);

/// What the peer answers to a record that passed its check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mood {
    /// Stored, or duplicate.
    Store,
    /// Nothing at all.
    Silence,
    /// "Not now" to each game's first arrival.
    RetryFirst,
    /// Rejected, when the index is this one.
    Reject(u32),
}

/// What a download does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DownloadFault {
    /// The stream breaks after about so many bytes.
    Break(usize),
    /// The stream ends after about so many bytes as if it were complete.
    End(usize),
    /// This bit of the file is another one, counted from the lowest of the first byte; of a file with fewer, one of them.
    Flip(usize),
    /// The chunk that should begin at this place is left out.
    Skip(usize),
}

pub(crate) struct State {
    pub(crate) mood: Mood,
    /// Orders to hand out, then "wait".
    pub(crate) orders: VecDeque<Order>,
    pub(crate) issued: BTreeMap<LeaseId, Order>,
    /// Reports that had come when each lease was handed out.
    pub(crate) issued_after: BTreeMap<LeaseId, usize>,
    /// Stored records.
    pub(crate) stored: BTreeMap<RecordId, Vec<u8>>,
    /// Every record that came, whatever the verdict.
    pub(crate) seen: BTreeMap<RecordId, Vec<u8>>,
    /// Arrivals by game, whatever the verdict.
    pub(crate) arrivals: BTreeMap<RecordId, u32>,
    /// When each game first came, and when it first had a verdict that ends it, microseconds since the Unix epoch.
    pub(crate) arrived_at: BTreeMap<RecordId, u64>,
    pub(crate) decided_at: BTreeMap<RecordId, u64>,
    /// When reports came while the peer was silent, with the games that waited for a verdict.
    pub(crate) counted: Vec<(u64, u32)>,
    pub(crate) verdicts: BTreeMap<&'static str, u32>,
    /// Uploads whose games are still being read: those of a killed process end after what it had sent.
    pub(crate) uploads: u32,
    pub(crate) registered: u32,
    pub(crate) asked: u32,
    /// Networks that were described.
    pub(crate) described: u32,
    pub(crate) downloads: u32,
    pub(crate) reports: Vec<ReportActorRequest>,
    pub(crate) returned: Vec<LeaseId>,
    pub(crate) cancel: Vec<LeaseId>,
    pub(crate) wanted_back: Vec<LeaseId>,
    pub(crate) answer: RegisterActorResponse,
    pub(crate) models: Vec<Arc<ModelBytes>>,
    /// What they come in beside fp32.
    pub(crate) variants: Vec<Arc<ModelBytes>>,
    /// Probes of every network that has none of its own.
    pub(crate) probes: Vec<Probe>,
    pub(crate) own_probes: BTreeMap<ModelId, Vec<Probe>>,
    /// What the variants, by their files, answered for the probes where they were made; nothing is known of the others.
    pub(crate) answers: BTreeMap<ModelId, Vec<ProbeAnswer>>,
    /// What the next downloads do wrong, in order.
    pub(crate) download_faults: VecDeque<DownloadFault>,
    /// Where each download began.
    pub(crate) download_offsets: Vec<u64>,
}

/// Everything but the socket: survives a restart of the server.
#[derive(Clone)]
pub(crate) struct Peer {
    pub(crate) game: AnyGame,
    state: Arc<Mutex<State>>,
    changed: watch::Sender<()>,
}

impl Peer {
    /// A peer for this game with two networks.
    pub(crate) fn new(game: &str) -> Peer {
        let game = AnyGame::parse(game).unwrap();
        let answer = RegisterActorResponse {
            run_id: "peer-run".to_owned(),
            game: game.spec().id.clone(),
            rules_fingerprint: game.rules_fingerprint().0.to_vec(),
            feature_fingerprint: game.feature_fingerprint().0.to_vec(),
            protocol: PROTOCOL,
            build: "peer".to_owned(),
            report_interval_ms: 100,
            run_created_unix_ms: 1,
        };
        let state = State {
            mood: Mood::Store,
            orders: VecDeque::new(),
            issued: BTreeMap::new(),
            issued_after: BTreeMap::new(),
            stored: BTreeMap::new(),
            seen: BTreeMap::new(),
            arrivals: BTreeMap::new(),
            arrived_at: BTreeMap::new(),
            decided_at: BTreeMap::new(),
            counted: Vec::new(),
            verdicts: BTreeMap::new(),
            uploads: 0,
            registered: 0,
            asked: 0,
            described: 0,
            downloads: 0,
            reports: Vec::new(),
            returned: Vec::new(),
            cancel: Vec::new(),
            wanted_back: Vec::new(),
            answer,
            models: [1, 2].map(|seed| network(&game, seed)).into(),
            variants: Vec::new(),
            probes: Vec::new(),
            own_probes: BTreeMap::new(),
            answers: BTreeMap::new(),
            download_faults: VecDeque::new(),
            download_offsets: Vec::new(),
        };
        Peer {
            game,
            state: Arc::new(Mutex::new(state)),
            changed: watch::channel(()).0,
        }
    }

    /// Adds an order with this plan and number of simulations to those that will be handed out.
    pub(crate) fn order(&self, lease: u128, plan: Plan, simulations: u32) -> LeaseId {
        let mut state = self.state();
        let order = Order {
            lease: LeaseId(lease),
            models: state
                .models
                .iter()
                .take(plan.models())
                .map(|model| model.id())
                .collect(),
            settings: Settings {
                simulations,
                ..Settings::default()
            },
            settings_revision: 1,
            seed: lease as u64,
            plan,
        };
        state.orders.push_back(order);
        LeaseId(lease)
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Waits until the state is as wanted.
    pub(crate) async fn until(&self, what: &str, wanted: impl Fn(&State) -> bool) {
        let mut changed = self.changed.subscribe();
        let waiting = async {
            while !wanted(&self.state()) {
                changed.changed().await.unwrap();
            }
        };
        if tokio::time::timeout(GUARD, waiting).await.is_err() {
            let state = self.state();
            panic!(
                "{what}: {} stored, {:?}, {} asked",
                state.stored.len(),
                state.verdicts,
                state.asked
            );
        }
    }

    /// Changes the state and tells whoever waits.
    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let changed = change(&mut self.state());
        self.changed.send_replace(());
        changed
    }

    /// Serves on `address`; port 0 takes a free one.
    pub(crate) async fn serve(&self, address: SocketAddr) -> Server {
        // A runtime of its own, so that killing it kills the connections too, as the death of a process does.
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let listener = runtime.spawn(TcpListener::bind(address)).await.unwrap().unwrap();
        let address = listener.local_addr().unwrap();
        let serving = tonic::transport::Server::builder()
            .add_service(ActorServiceServer::new(self.clone()))
            .add_service(ModelServiceServer::new(self.clone()))
            .serve_with_incoming(TcpListenerStream::new(listener));
        runtime.spawn(async move { drop(serving.await) });
        Server {
            address,
            runtime: Some(runtime),
        }
    }

    fn verdict(&self, game: &SubmitGameRequest) -> Option<SubmitGameResponse> {
        let record = &game.record;
        let (id, outcome) = self.check(record);
        self.change(|state| {
            let arrivals = state.arrivals.entry(id).or_default();
            *arrivals += 1;
            let first = *arrivals == 1;
            let now = now_us();
            state.arrived_at.entry(id).or_insert(now);
            state.seen.insert(id, record.clone());
            let verdict = match (outcome, state.mood) {
                (Err(rejection), _) => panic!("game {id}: {rejection}"),
                (Ok(()), Mood::Silence) => return None,
                (Ok(()), Mood::RetryFirst) if first => Verdict::Retry,
                (Ok(()), Mood::Reject(index)) if index == id.index => Verdict::Rejected,
                (Ok(()), _) => match state.stored.insert(id, record.clone()) {
                    None => Verdict::Stored,
                    Some(old) if old == *record => Verdict::Duplicate,
                    Some(_) => Verdict::Conflict,
                },
            };
            if verdict != Verdict::Retry {
                state.decided_at.entry(id).or_insert(now);
            }
            *state.verdicts.entry(verdict.as_str_name()).or_default() += 1;
            Some(SubmitGameResponse {
                // As for a record that cannot be read: the ticket alone must do.
                lease_id: Vec::new(),
                game_index: 0,
                ticket: game.ticket,
                verdict: verdict.into(),
                reason_code: "illegal-action".to_owned(),
                detail: "as the test wants it".to_owned(),
            })
        })
    }

    fn check(&self, bytes: &[u8]) -> (RecordId, Result<(), String>) {
        struct Visitor(tengen_records::Record, Expected);
        impl GameVisitor for Visitor {
            type Output = Result<(), String>;

            fn visit<G: Game>(self, game: G) -> Self::Output {
                tengen_records::check(&game, &self.0, &self.1)
                    .map(drop)
                    .map_err(|rejection| format!("{rejection:?}"))
            }
        }
        let record = tengen_records::decode(bytes).unwrap();
        let order = self
            .state()
            .issued
            .get(&record.id.lease)
            .cloned()
            .expect("a record of a lease we issued");
        let work = match &order.plan {
            Plan::SelfPlay { random_plies_max, .. } => Work::SelfPlay {
                index_end: u32::MAX,
                random_plies_max: *random_plies_max,
            },
            Plan::Match { games } | Plan::Rating { games, .. } => Work::Match(games.iter().map(match_game).collect()),
        };
        let expected = Expected {
            run_id: RunId::new("peer-run").unwrap(),
            game_id: self.game.spec().id.clone(),
            rules_fingerprint: self.game.rules_fingerprint(),
            lease: order.lease,
            players: order.plan.players().cloned(),
            models: order.models,
            settings_revision: order.settings_revision,
            lease_seed: order.seed,
            work,
            endings: Endings::default(),
        };
        (record.id, self.game.visit(Visitor(record, expected)))
    }
}

fn match_game(game: &tengen_selfplay::MatchGame) -> tengen_records::MatchGame {
    tengen_records::MatchGame {
        pair: game.pair,
        opening: game.opening.clone(),
        seat0_model: ModelIndex(game.seat0_model as u8),
    }
}

/// One upload in the peer's count of them.
struct Upload(Peer);

impl Upload {
    fn begin(peer: Peer) -> Upload {
        peer.change(|state| state.uploads += 1);
        Upload(peer)
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        self.0.change(|state| state.uploads -= 1);
    }
}

/// A running server. Dropping it kills it.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    runtime: Option<tokio::runtime::Runtime>,
}

impl Server {
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Kills it and waits until it is dead, so that its port is free again.
    pub(crate) async fn kill(mut self) {
        let runtime = self.runtime.take().unwrap();
        tokio::task::spawn_blocking(move || runtime.shutdown_timeout(GUARD))
            .await
            .unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// The shape of the networks here.
fn shape(game: &AnyGame) -> Shape {
    let config = Config {
        blocks: 1,
        channels: 8,
        ..Config::default()
    };
    Shape::new(game.spec(), &config).unwrap()
}

/// These weights in a file that says it is the network in a reduced precision.
pub(crate) fn variant(
    game: &AnyGame,
    network: &ModelBytes,
    weights: &Weights,
    precision: Precision,
) -> Arc<ModelBytes> {
    let stated = tengen_network::Precision::parse(precision.as_str()).unwrap();
    let metadata = read_metadata(network.bytes())
        .unwrap()
        .in_precision(stated, network.id().to_bytes());
    let shape = shape(game);
    let ranges = ActivationRanges::within(&shape, 6.0);
    let bytes = write_onnx_as_stated(&shape, weights, &ranges, &metadata).unwrap();
    ModelBytes::variant(network.id(), precision, bytes)
}

fn described(file: &ModelBytes, answers: Option<&Vec<ProbeAnswer>>) -> ModelVariant {
    ModelVariant {
        precision: precision_to_wire(file.precision()).into(),
        file_id: file.file_id().to_bytes().to_vec(),
        size_bytes: file.bytes().len() as u64,
        sha256: Vec::new(),
        fidelity: Some(Fidelity::default()),
        answers: answers.cloned().unwrap_or_default(),
    }
}

/// A small random network for the game.
pub(crate) fn network(game: &AnyGame, seed: u64) -> Arc<ModelBytes> {
    let shape = shape(game);
    let metadata = Metadata {
        run: "peer-run".to_owned(),
        game: game.spec().id.clone(),
        rules_fingerprint: game.rules_fingerprint(),
        feature_fingerprint: game.feature_fingerprint(),
        created: "2026-01-01T00:00:00Z".to_owned(),
        ..Metadata::of_shape(&shape)
    };
    ModelBytes::new(write_onnx(&shape, &random_weights(&shape, seed), &metadata).unwrap())
}

type Answers<T> = Pin<Box<dyn tokio_stream::Stream<Item = Result<T, Status>> + Send>>;

#[tonic::async_trait]
impl ActorService for Peer {
    type SubmitGamesStream = Answers<SubmitGameResponse>;

    async fn register(
        &self,
        _request: Request<RegisterActorRequest>,
    ) -> Result<Response<RegisterActorResponse>, Status> {
        Ok(Response::new(self.change(|state| {
            state.registered += 1;
            state.answer.clone()
        })))
    }

    async fn get_work(&self, _request: Request<GetWorkRequest>) -> Result<Response<GetWorkResponse>, Status> {
        let work = self.change(|state| {
            state.asked += 1;
            match state.orders.pop_front() {
                Some(order) => {
                    let wire = order_to_wire(&order);
                    state.issued_after.insert(order.lease, state.reports.len());
                    state.issued.insert(order.lease, order);
                    WireWork::Order(wire)
                }
                None => WireWork::Wait(Wait {
                    reason: "the script has ended".to_owned(),
                    retry_after_ms: 20,
                }),
            }
        });
        Ok(Response::new(GetWorkResponse { work: Some(work) }))
    }

    async fn submit_games(
        &self,
        request: Request<Streaming<SubmitGameRequest>>,
    ) -> Result<Response<Self::SubmitGamesStream>, Status> {
        let (sender, receiver) = mpsc::channel(16);
        let mut games = request.into_inner();
        let upload = Upload::begin(self.clone());
        tokio::spawn(async move {
            while let Ok(Some(game)) = games.message().await {
                if let Some(verdict) = upload.0.verdict(&game)
                    && sender.send(Ok(verdict)).await.is_err()
                {
                    return;
                }
            }
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(receiver))))
    }

    async fn report(&self, request: Request<ReportActorRequest>) -> Result<Response<ReportActorResponse>, Status> {
        let report = request.into_inner();
        let wire = |leases: &[LeaseId]| leases.iter().map(|id| id.to_bytes().to_vec()).collect();
        let answer = self.change(|state| {
            state.returned.extend(
                report
                    .returned_lease_ids
                    .iter()
                    .map(|id| LeaseId::from_bytes(id).unwrap()),
            );
            if state.mood == Mood::Silence {
                state.counted.push((now_us(), report.queue));
            }
            state.reports.push(report);
            ReportActorResponse {
                cancelled_lease_ids: wire(&state.cancel),
                wanted_back_lease_ids: wire(&state.wanted_back),
            }
        });
        Ok(Response::new(answer))
    }
}

#[tonic::async_trait]
impl ModelService for Peer {
    type DownloadModelStream = Answers<ModelChunk>;
    type WatchChampionStream = Answers<Model>;

    async fn list_models(&self, _: Request<ListModelsRequest>) -> Result<Response<ListModelsResponse>, Status> {
        Err(Status::unimplemented("not needed by actors"))
    }

    async fn get_model(&self, request: Request<GetModelRequest>) -> Result<Response<Model>, Status> {
        let name = request.into_inner().name;
        let mut state = self.state();
        state.described += 1;
        let model = state.models.iter().find(|model| model.id().to_string() == name);
        let model = model.ok_or_else(|| Status::not_found(name))?;
        let variants = state.variants.iter().filter(|variant| variant.id() == model.id());
        Ok(Response::new(Model {
            model_id: model.id().to_bytes().to_vec(),
            size_bytes: model.bytes().len() as u64,
            probes: state.own_probes.get(&model.id()).unwrap_or(&state.probes).clone(),
            variants: variants
                .map(|variant| described(variant, state.answers.get(&variant.file_id())))
                .collect(),
            ..Model::default()
        }))
    }

    async fn download_model(
        &self,
        request: Request<DownloadModelRequest>,
    ) -> Result<Response<Self::DownloadModelStream>, Status> {
        let DownloadModelRequest { model_id, offset } = request.into_inner();
        let (mut bytes, fault) = self.change(|state| {
            state.downloads += 1;
            state.download_offsets.push(offset);
            let mut files = state.models.iter().chain(&state.variants);
            let model = files.find(|file| file.file_id().0 == *model_id).unwrap();
            (model.bytes().to_vec(), state.download_faults.pop_front())
        });
        if let Some(DownloadFault::Flip(bit)) = fault {
            let bit = bit % (8 * bytes.len());
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        let mut answers = Vec::new();
        for (number, data) in bytes[offset as usize..].chunks(1_000).enumerate() {
            let offset = offset + 1_000 * number as u64;
            match fault {
                Some(DownloadFault::Break(at)) if offset as usize >= at => {
                    answers.push(Err(Status::unavailable("as the test wants it")));
                    break;
                }
                Some(DownloadFault::End(at)) if offset as usize >= at => break,
                Some(DownloadFault::Skip(at)) if offset as usize == at => continue,
                _ => {}
            }
            answers.push(Ok(ModelChunk {
                offset,
                data: data.to_vec(),
            }));
        }
        Ok(Response::new(Box::pin(tokio_stream::iter(answers))))
    }

    async fn publish_model(&self, _: Request<Streaming<PublishModelRequest>>) -> Result<Response<Model>, Status> {
        Err(Status::unimplemented("not needed by actors"))
    }

    async fn watch_champion(
        &self,
        _: Request<WatchChampionRequest>,
    ) -> Result<Response<Self::WatchChampionStream>, Status> {
        Err(Status::unimplemented("not needed by actors"))
    }
}
