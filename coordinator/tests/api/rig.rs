//! What the tests stand on: a coordinator on a folder, and an actor that plays its leases at random.

use std::net::SocketAddr;
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use tempfile::TempDir;
use tengen_control::LeaseRules;
use tengen_coordinator::{AuditConfig, Config as ProcessConfig, Coordinator, CoordinatorError, LiveKeys, Options};
use tengen_games::{AnyGame, Fingerprint, Game, GameVisitor};
use tengen_network::{
    ActivationRanges, Config, Metadata, Shape, Weights, model_id, random_weights, read_metadata, read_weights,
    write_onnx, write_onnx_as_stated,
};
use tengen_proto::v1;
use tengen_proto::v1::actor_service_client::ActorServiceClient;
use tengen_proto::v1::admin_service_client::AdminServiceClient;
use tengen_proto::v1::learner_service_client::LearnerServiceClient;
use tengen_proto::v1::model_service_client::ModelServiceClient;
use tengen_proto::v1::publish_model_request::Part;
use tengen_proto::v1::replay_service_client::ReplayServiceClient;
use tengen_proto::v1::run_service_client::RunServiceClient;
use tengen_records::{
    Endings, Expected, MatchGame, ModelIndex, Precision, Record, RunId, Work, encode, precision_to_wire, testing,
};
use tengen_selfplay::wire::order_from_wire;
use tengen_selfplay::{Order, Plan};
use tengen_service::channel::{self, Channel};
use tengen_service::credentials::Credentials;
use tengen_service::metrics::MetricsArgs;
use tengen_service::run_config::RunConfig;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::Streaming;

/// A small run of tic-tac-toe; sections may be appended.
pub(crate) const TIC_TAC_TOE: &str = r#"
[run]
name = "test"
game = "tic-tac-toe"
seed = 7
[network]
blocks = 1
channels = 4
value_channels = 4
value_hidden = 4
[[schedule]]
from_iteration = 0
games = 4
simulations = 8
[selfplay]
random_plies_max = 2
"#;

/// A gate of two pairs.
pub(crate) const FIXED: &str = "[gate]\nkind = \"fixed\"\ngames = 4\nthreshold = 0.55\ngate_share = 1.0\n";
/// No gate.
pub(crate) const NONE: &str = "[gate]\nkind = \"none\"\n";

/// Leases that do not lapse while a test thinks.
fn leases() -> LeaseRules {
    LeaseRules {
        lapse_ms: 3_600_000,
        ..LeaseRules::default()
    }
}

/// Options for a coordinator on this folder.
pub(crate) fn options(data: &Path, toml: &str) -> Options {
    Options {
        run: RunConfig::from_toml(toml).expect("a good configuration"),
        data: data.to_path_buf(),
        config: ProcessConfig {
            listen: "127.0.0.1:0".parse().expect("an address"),
            // No network is behind the records of these tests.
            audit: Some(AuditConfig {
                share: 0.0,
                ..AuditConfig::default()
            }),
            ..ProcessConfig::default()
        },
        addr_file: None,
        live_keys: LiveKeys::Win,
        leases: leases(),
        metrics: MetricsArgs::default(),
    }
}

/// A coordinator that serves, and its folder.
pub(crate) struct Rig {
    pub(crate) folder: TempDir,
    reached: Reached,
    coordinator: Coordinator,
    stop: CancellationToken,
}

impl Rig {
    /// Starts a fresh run.
    pub(crate) async fn start(toml: &str) -> Rig {
        Rig::start_in(tempfile::tempdir().expect("a folder"), toml)
            .await
            .expect("it starts")
    }

    /// Starts on a folder that may hold a run.
    pub(crate) async fn start_in(folder: TempDir, toml: &str) -> Result<Rig, CoordinatorError> {
        let options = options(folder.path(), toml);
        Rig::start_with(folder, options).await
    }

    /// Starts with options of the test's own.
    pub(crate) async fn start_with(folder: TempDir, options: Options) -> Result<Rig, CoordinatorError> {
        let stop = CancellationToken::new();
        let tls = options.config.tls.cert.is_some();
        let coordinator = Coordinator::start(options, stop.clone()).await?;
        let mut reached = Reached::new(coordinator.addr());
        if tls {
            reached.url = reached.url.replace("http://", "https://");
        }
        Ok(Rig {
            folder,
            reached,
            coordinator,
            stop,
        })
    }

    /// Drains, and leaves the folder.
    pub(crate) async fn stop(self) -> TempDir {
        self.stop.cancel();
        self.coordinator.join().await.expect("it drains");
        self.folder
    }

    /// Stops and starts again with this configuration.
    pub(crate) async fn restart(self, toml: &str) -> Rig {
        Rig::start_in(self.stop().await, toml).await.expect("it starts again")
    }

    /// Copies the files as a power cut at this moment would leave them.
    pub(crate) fn power_cut(&self) -> TempDir {
        let copy = tempfile::tempdir().expect("a folder");
        copy_folder(self.folder.path(), copy.path());
        copy
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Counts rows of a table with a reader of our own.
    pub(crate) fn count(&self, sql: &str) -> u64 {
        let database = rusqlite::Connection::open(self.path("tengen.db")).expect("a database");
        database.query_row(sql, [], |row| row.get(0)).expect("a number")
    }
}

impl DerefMut for Rig {
    fn deref_mut(&mut self) -> &mut Reached {
        &mut self.reached
    }
}

impl Deref for Rig {
    type Target = Reached;

    fn deref(&self) -> &Reached {
        &self.reached
    }
}

/// A run that somebody serves, asked over the wire.
pub(crate) struct Reached {
    pub(crate) url: String,
    /// What its clients show.
    pub(crate) credentials: Credentials,
}

impl Reached {
    pub(crate) fn new(addr: SocketAddr) -> Reached {
        Reached {
            url: format!("http://127.0.0.1:{}", addr.port()),
            credentials: Credentials::default(),
        }
    }

    pub(crate) async fn channel(&self) -> Channel {
        channel::connect(&self.url, &self.credentials).expect("a url")
    }

    pub(crate) async fn status(&self) -> v1::RunStatus {
        let mut client = RunServiceClient::new(self.channel().await);
        client
            .get_status(v1::GetStatusRequest {})
            .await
            .expect("a status")
            .into_inner()
    }

    pub(crate) async fn models(&self) -> ModelServiceClient<Channel> {
        ModelServiceClient::new(self.channel().await)
    }

    pub(crate) async fn window(&self) -> ReplayServiceClient<Channel> {
        ReplayServiceClient::new(self.channel().await)
    }

    pub(crate) async fn admin(&self) -> AdminServiceClient<Channel> {
        AdminServiceClient::new(self.channel().await)
    }

    /// The audit's rows, newest first.
    pub(crate) async fn trail(&self) -> Vec<v1::AuditEntry> {
        let request = v1::ListAuditRequest::default();
        let page = self.admin().await.list_audit(request).await.expect("a page");
        page.into_inner().entries
    }

    pub(crate) async fn model(&self, name: &str) -> v1::Model {
        let request = v1::GetModelRequest { name: name.to_owned() };
        self.models()
            .await
            .get_model(request)
            .await
            .expect("a model")
            .into_inner()
    }

    pub(crate) async fn listed_models(&self) -> Vec<v1::Model> {
        let request = v1::ListModelsRequest::default();
        let page = self.models().await.list_models(request).await.expect("a page");
        page.into_inner().models
    }

    /// The bytes of a network from `offset`.
    pub(crate) async fn download(&self, model: &v1::Model, offset: u64) -> Vec<u8> {
        let request = v1::DownloadModelRequest {
            model_id: model.model_id.clone(),
            offset,
        };
        let mut chunks = self
            .models()
            .await
            .download_model(request)
            .await
            .expect("a stream")
            .into_inner();
        let mut bytes = Vec::new();
        while let Some(chunk) = chunks.message().await.expect("a chunk") {
            assert_eq!(chunk.offset, offset + bytes.len() as u64);
            assert!(chunk.data.len() <= 32 << 10, "downloads hold small pieces");
            bytes.extend(chunk.data);
        }
        bytes
    }
}

/// Copies a data folder, without what only a running process needs.
pub(crate) fn copy_folder(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            std::fs::create_dir(&target).expect("a folder");
            copy_folder(&entry.path(), &target);
        } else if !entry.file_name().to_string_lossy().ends_with("-shm") {
            std::fs::copy(entry.path(), target).expect("a copy");
        }
    }
}

/// An actor with an open stream.
pub(crate) struct Actor {
    pub(crate) id: String,
    pub(crate) client: ActorServiceClient<Channel>,
    pub(crate) hello: v1::RegisterActorResponse,
    games: mpsc::Sender<v1::SubmitGameRequest>,
    verdicts: Streaming<v1::SubmitGameResponse>,
    rng: Xoshiro256PlusPlus,
}

/// A lease with all that is needed to play it.
#[derive(Clone, Debug)]
pub(crate) struct Assignment {
    pub(crate) order: Order,
    pub(crate) expected: Expected,
}

impl Actor {
    pub(crate) async fn new(rig: &Rig, id: &str) -> Actor {
        Actor::with(rig.channel().await, id).await
    }

    /// Over a channel of the test's own.
    pub(crate) async fn with(channel: Channel, id: &str) -> Actor {
        let mut client = ActorServiceClient::new(channel);
        let hello = client.register(hello(id)).await.expect("a welcome").into_inner();
        let (games, stream) = mpsc::channel(16);
        let verdicts = client
            .submit_games(ReceiverStream::new(stream))
            .await
            .expect("a stream")
            .into_inner();
        let rng = Xoshiro256PlusPlus::seed_from_u64(id.len() as u64);
        Actor {
            id: id.to_owned(),
            client,
            hello,
            games,
            verdicts,
            rng,
        }
    }

    /// Asks for a lease of about so many games.
    pub(crate) async fn work(&mut self, games_per_minute: f32) -> Assignment {
        let request = v1::GetWorkRequest {
            actor_id: self.id.clone(),
            games_parallel: 1,
            games_per_minute,
            takes_players: true,
        };
        let answer = self.client.get_work(request).await.expect("an answer").into_inner();
        let Some(v1::get_work_response::Work::Order(wire)) = answer.work else {
            panic!("no work: {answer:?}")
        };
        let order = order_from_wire(&wire).expect("a good order");
        let expected = expected(&self.hello, &order);
        Assignment { order, expected }
    }

    /// Why there is no work.
    pub(crate) async fn no_work(&mut self) -> String {
        let request = v1::GetWorkRequest {
            actor_id: self.id.clone(),
            games_parallel: 1,
            games_per_minute: 0.0,
            takes_players: true,
        };
        let answer = self.client.get_work(request).await.expect("an answer").into_inner();
        let Some(v1::get_work_response::Work::Wait(wait)) = answer.work else {
            panic!("work: {answer:?}")
        };
        wait.reason
    }

    /// Asks until there is a lease of this kind.
    pub(crate) async fn match_work(&mut self, games_per_minute: f32) -> Assignment {
        for _ in 0..8 {
            let work = self.work(games_per_minute).await;
            if matches!(work.order.plan, Plan::Match { .. }) {
                return work;
            }
        }
        panic!("no match work");
    }

    /// A random game of the lease.
    pub(crate) fn play(&mut self, work: &Assignment, index: u32) -> Record {
        random_record(&self.hello.game, &work.expected, index, &mut self.rng)
    }

    /// A random game of a match that ends well for this model of the lease (or in a draw).
    pub(crate) fn play_to(&mut self, work: &Assignment, index: u32, winner: Option<usize>) -> Record {
        for _ in 0..10_000 {
            let record = self.play(work, index);
            let won_by = record
                .outcome
                .winner
                .map(|seat| record.seat_models[seat.index()].index());
            if won_by == winner {
                return record;
            }
        }
        panic!("no game ends like this");
    }

    pub(crate) async fn send(&mut self, record: Vec<u8>) {
        self.send_with_ticket(record, 0).await;
    }

    pub(crate) async fn send_with_ticket(&mut self, record: Vec<u8>, ticket: u64) {
        self.games
            .send(v1::SubmitGameRequest {
                actor_id: self.id.clone(),
                record,
                ticket,
            })
            .await
            .expect("an open stream");
    }

    pub(crate) async fn verdict(&mut self) -> v1::SubmitGameResponse {
        self.verdicts
            .message()
            .await
            .expect("a good stream")
            .expect("a verdict")
    }

    /// The error that ends the stream.
    pub(crate) async fn stream_error(&mut self) -> tonic::Status {
        self.verdicts.message().await.expect_err("an error")
    }

    /// Sends bytes and waits for their verdict.
    pub(crate) async fn submit_bytes(&mut self, record: Vec<u8>) -> v1::SubmitGameResponse {
        self.send(record).await;
        self.verdict().await
    }

    pub(crate) async fn submit(&mut self, record: &Record) -> v1::Verdict {
        self.submit_bytes(encode(record)).await.verdict()
    }

    /// Plays and delivers this many self-play games, one after another; returns their records.
    pub(crate) async fn deliver(&mut self, games: u32) -> Vec<Vec<u8>> {
        let work = self.work(0.0).await;
        assert!(games <= work.order.plan.games(), "the lease is too small");
        let mut delivered = Vec::new();
        for index in 0..games {
            let record = encode(&self.play(&work, index));
            assert_eq!(self.submit_bytes(record.clone()).await.verdict(), v1::Verdict::Stored);
            delivered.push(record);
        }
        let returned = vec![work.order.lease.to_bytes().to_vec()];
        self.report(vec![], returned).await;
        delivered
    }

    pub(crate) async fn report(&mut self, lease_ids: Vec<Vec<u8>>, returned: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
        self.report_for_wishes(lease_ids, returned).await.cancelled_lease_ids
    }

    pub(crate) async fn report_for_wishes(
        &mut self,
        lease_ids: Vec<Vec<u8>>,
        returned: Vec<Vec<u8>>,
    ) -> v1::ReportActorResponse {
        let report = v1::ReportActorRequest {
            actor_id: self.id.clone(),
            evaluations_per_second: 100.0,
            lease_ids,
            returned_lease_ids: returned,
            ..v1::ReportActorRequest::default()
        };
        self.client.report(report).await.expect("an answer").into_inner()
    }
}

pub(crate) fn hello(id: &str) -> v1::RegisterActorRequest {
    v1::RegisterActorRequest {
        actor_id: id.to_owned(),
        host: "here".to_owned(),
        build: "test".to_owned(),
        protocol_min: tengen_proto::PROTOCOL_MIN,
        protocol_max: tengen_proto::PROTOCOL,
        provider: "CPU".to_owned(),
    }
}

fn expected(hello: &v1::RegisterActorResponse, order: &Order) -> Expected {
    let work = match &order.plan {
        Plan::SelfPlay {
            games,
            random_plies_max,
        } => Work::SelfPlay {
            index_end: *games,
            random_plies_max: *random_plies_max,
        },
        Plan::Match { games } | Plan::Rating { games, .. } => {
            let game = |game: &tengen_selfplay::MatchGame| MatchGame {
                pair: game.pair,
                opening: game.opening.clone(),
                seat0_model: ModelIndex(game.seat0_model as u8),
            };
            Work::Match(games.iter().map(game).collect())
        }
    };
    Expected {
        run_id: RunId::new(hello.run_id.clone()).expect("a run id"),
        game_id: hello.game.clone(),
        rules_fingerprint: Fingerprint(hello.rules_fingerprint.clone().try_into().expect("32 bytes")),
        lease: order.lease,
        models: order.models.clone(),
        players: order.plan.players().cloned(),
        settings_revision: order.settings_revision,
        lease_seed: order.seed,
        work,
        endings: Endings::default(),
    }
}

fn random_record(game: &str, expected: &Expected, index: u32, rng: &mut Xoshiro256PlusPlus) -> Record {
    struct Play<'a>(&'a Expected, u32, &'a mut Xoshiro256PlusPlus);
    impl GameVisitor for Play<'_> {
        type Output = Record;
        fn visit<G: Game>(self, game: G) -> Record {
            testing::random_record(&game, self.0, self.1, self.2)
        }
    }
    AnyGame::parse(game).expect("a game").visit(Play(expected, index, rng))
}

/// A learner with its place.
pub(crate) struct Learner {
    pub(crate) client: LearnerServiceClient<Channel>,
    pub(crate) models: ModelServiceClient<Channel>,
    pub(crate) welcome: v1::RegisterLearnerResponse,
}

impl Learner {
    pub(crate) async fn new(rig: &Rig) -> Learner {
        let mut client = LearnerServiceClient::new(rig.channel().await);
        let hello = v1::RegisterLearnerRequest {
            build: "test".to_owned(),
            device: "cpu".to_owned(),
            step: 0,
            host: "test".to_owned(),
        };
        let welcome = client.register(hello).await.expect("a welcome").into_inner();
        Learner {
            client,
            models: rig.models().await,
            welcome,
        }
    }

    pub(crate) async fn report(&mut self) -> Result<v1::ReportLearnerResponse, tonic::Status> {
        let request = v1::ReportLearnerRequest {
            fence: self.welcome.fence,
            status: None,
            settings_revision: self.welcome.settings_revision,
        };
        Ok(self.client.report(request).await?.into_inner())
    }

    /// The shape of the run's networks, and its game.
    pub(crate) fn shape(&self) -> (AnyGame, Shape) {
        let game = AnyGame::parse(&self.welcome.game).expect("a game");
        let config = RunConfig::from_toml(&self.welcome.run_toml).expect("the run's configuration");
        let network: Config = config.network;
        let shape = Shape::new(game.spec(), &network).expect("a shape");
        (game, shape)
    }

    /// These weights in a file that says it is the network in a reduced precision.
    pub(crate) fn variant_of(
        &self,
        network: &[u8],
        weights: &Weights,
        precision: Precision,
    ) -> (v1::ModelVariant, Vec<u8>) {
        let stated = tengen_network::Precision::parse(precision.as_str()).expect("it is known");
        let metadata = read_metadata(network).expect("metadata");
        let metadata = metadata.in_precision(stated, model_id(network));
        let shape = self.shape().1;
        let ranges = ActivationRanges::within(&shape, 6.0);
        let bytes = write_onnx_as_stated(&shape, weights, &ranges, &metadata).expect("an onnx file");
        let variant = v1::ModelVariant {
            precision: precision_to_wire(precision).into(),
            file_id: model_id(&bytes).to_vec(),
            size_bytes: bytes.len() as u64,
            sha256: Vec::new(),
            fidelity: Some(v1::Fidelity {
                positions: 512,
                policy_kl: 0.0003,
                policy_agreement: 0.987,
                value_error: 0.011,
            }),
            answers: Vec::new(),
        };
        (variant, bytes)
    }

    /// A random network as the candidate of an iteration, with its own weights as its variants: the description, and all
    /// files in the order in which they are sent.
    pub(crate) fn network_in(&self, iteration: u32, precisions: &[Precision]) -> (v1::Model, Vec<u8>) {
        let (mut model, network) = self.network(iteration);
        let weights = read_weights(&network).expect("weights");
        let mut files = network.clone();
        for &precision in precisions {
            let (variant, bytes) = self.variant_of(&network, &weights, precision);
            model.variants.push(variant);
            files.extend(bytes);
        }
        (model, files)
    }

    /// A random network as the candidate of an iteration.
    pub(crate) fn network(&self, iteration: u32) -> (v1::Model, Vec<u8>) {
        let (game, shape) = self.shape();
        let mut metadata = Metadata {
            run: self.welcome.run_id.clone(),
            game: self.welcome.game.clone(),
            iteration,
            step: u64::from(iteration) * 100,
            created: "2026-01-01T00:00:00Z".to_owned(),
            ..Metadata::of_shape(&shape)
        };
        metadata.rules_fingerprint = game.rules_fingerprint();
        metadata.feature_fingerprint = game.feature_fingerprint();
        let weights = random_weights(&shape, 1_000 + u64::from(iteration));
        let bytes = write_onnx(&shape, &weights, &metadata).expect("an onnx file");
        let model = v1::Model {
            model_id: model_id(&bytes).to_vec(),
            iteration,
            step: metadata.step,
            size_bytes: bytes.len() as u64,
            probes: vec![probe(game.spec().planes_len(), game.spec().actions.len())],
            ..v1::Model::default()
        };
        (model, bytes)
    }

    pub(crate) async fn publish(&mut self, iteration: u32) -> Result<v1::Model, tonic::Status> {
        let (model, bytes) = self.network(iteration);
        self.publish_bytes(model, bytes).await
    }

    pub(crate) async fn publish_bytes(&mut self, model: v1::Model, bytes: Vec<u8>) -> Result<v1::Model, tonic::Status> {
        let header = Part::Header(v1::PublishHeader {
            fence: self.welcome.fence,
            model: Some(model),
        });
        let chunks = bytes.chunks(1_000).map(|chunk| Part::Chunk(chunk.to_vec()));
        let parts: Vec<_> = std::iter::once(header).chain(chunks).collect();
        let parts = parts
            .into_iter()
            .map(|part| v1::PublishModelRequest { part: Some(part) });
        Ok(self.models.publish_model(tokio_stream::iter(parts)).await?.into_inner())
    }
}

fn probe(planes_len: usize, actions: usize) -> v1::Probe {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    v1::Probe {
        planes: (0..planes_len).map(|_| u8::from(rng.random_bool(0.5))).collect(),
        policy: vec![1.0 / actions as f32; actions],
        wdl: vec![0.4, 0.2, 0.4],
    }
}
