//! An honest actor under a test's control that remembers every acknowledgement: the oracle of the kill tests.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use rusqlite::{Connection, OpenFlags};
use tengen_games::{AnyGame, Fingerprint, Game, GameVisitor};
use tengen_proto::v1::actor_service_client::ActorServiceClient;
use tengen_proto::v1::get_work_response::Work as Offer;
use tengen_proto::v1::{
    GetWorkRequest, RegisterActorRequest, ReportActorRequest, SubmitGameRequest, SubmitGameResponse, Verdict,
};
use tengen_records::{Endings, Expected, LeaseId, Record, RecordId, RunId, Work, testing};
use tengen_selfplay::order::{Order, Plan};
use tengen_selfplay::wire::order_from_wire;
use tengen_service::channel::Channel;
use tengen_service::testing::now_us;
use tokio_stream::wrappers::ReceiverStream;

use crate::cluster::program;

/// The actor and what it was promised.
pub struct Ledger {
    client: ActorServiceClient<Channel>,
    actor_id: String,
    game: AnyGame,
    run_id: RunId,
    rules: Fingerprint,
    rng: Xoshiro256PlusPlus,
    /// What records of each lease so far are held to.
    leases: BTreeMap<LeaseId, Expected>,
    /// Bytes of every game whose verdict was `stored`.
    pub acknowledged: BTreeMap<RecordId, Vec<u8>>,
    /// When each of these verdicts came, microseconds since the Unix epoch, in that order.
    pub acknowledged_at: Vec<(u64, RecordId)>,
}

impl Ledger {
    /// Registers at the coordinator behind `channel`.
    pub async fn register(channel: Channel, seed: u64) -> Ledger {
        let mut client = ActorServiceClient::new(channel);
        let actor_id = format!("00000000-0000-4000-8000-{seed:012x}");
        let run = client
            .register(hello(&actor_id))
            .await
            .expect("the coordinator registers us")
            .into_inner();
        let game = AnyGame::parse(&run.game).expect("the run's game is known");
        let rules = game.rules_fingerprint();
        assert_eq!(run.rules_fingerprint, rules.0);
        Ledger {
            client,
            actor_id,
            game,
            run_id: RunId::new(run.run_id).expect("the run's id is legal"),
            rules,
            rng: Xoshiro256PlusPlus::seed_from_u64(seed),
            leases: BTreeMap::new(),
            acknowledged: BTreeMap::new(),
            acknowledged_at: Vec::new(),
        }
    }

    /// Registers again at a coordinator that was started again.
    pub async fn reconnect(&mut self, channel: Channel) {
        self.client = ActorServiceClient::new(channel);
        let hello = hello(&self.actor_id);
        self.client.register(hello).await.expect("the coordinator registers us");
    }

    /// Whether this record's verdict was `stored`.
    pub fn is_acknowledged(&self, record: &[u8]) -> bool {
        tengen_records::peek_id(record).is_some_and(|id| self.acknowledged.contains_key(&id))
    }

    /// Asks for self-play until there is some, and plays all of the lease's games at random. Pairs of a gate go back: a
    /// random player would decide it.
    pub async fn play_lease(&mut self) -> Vec<Record> {
        loop {
            let request = GetWorkRequest {
                actor_id: self.actor_id.clone(),
                games_parallel: 8,
                games_per_minute: 60.0,
                takes_players: false,
            };
            let answer = self
                .client
                .get_work(request)
                .await
                .expect("the coordinator answers")
                .into_inner();
            if let Some(Offer::Order(wire)) = answer.work {
                let order = order_from_wire(&wire).expect("the order is well-formed");
                if let Plan::SelfPlay {
                    games,
                    random_plies_max,
                } = order.plan
                {
                    let expected = self.expected(&order, games, random_plies_max);
                    self.leases.insert(expected.lease, expected.clone());
                    return (0..games).map(|index| self.play(&expected, index)).collect();
                }
                self.hand_back(order.lease).await;
            }
            tokio::task::yield_now().await;
        }
    }

    async fn hand_back(&mut self, lease: LeaseId) {
        let report = ReportActorRequest {
            actor_id: self.actor_id.clone(),
            returned_lease_ids: vec![lease.to_bytes().to_vec()],
            ..ReportActorRequest::default()
        };
        self.client.report(report).await.expect("the coordinator answers");
    }

    /// Sends records and returns the verdicts, each with the place of its record as its ticket; remembers what was stored. Fewer verdicts
    /// than records come back when the connection broke.
    pub async fn submit(&mut self, records: &[Vec<u8>]) -> Vec<SubmitGameResponse> {
        let actor_id = self.actor_id.clone();
        let requests: Vec<SubmitGameRequest> = records
            .iter()
            .zip(0..)
            .map(|(record, ticket)| SubmitGameRequest {
                actor_id: actor_id.clone(),
                record: record.clone(),
                ticket,
            })
            .collect();
        let Ok(answer) = self.client.submit_games(tokio_stream::iter(requests)).await else {
            return Vec::new();
        };
        let mut stream = answer.into_inner();
        let mut verdicts = Vec::new();
        while let Ok(Some(verdict)) = stream.message().await {
            self.note(records, &verdict);
            verdicts.push(verdict);
        }
        verdicts
    }

    /// Sends records one after the other, `every` so often whatever becomes of those before, and returns how many a second
    /// were acknowledged between the first verdict and the last: `1 / every`, unless the coordinator cannot keep up. All of
    /// them must be stored.
    pub async fn submit_paced(&mut self, records: &[Vec<u8>], every: Duration) -> f64 {
        let (sender, receiver) = tokio::sync::mpsc::channel(records.len());
        let (actor_id, to_send) = (self.actor_id.clone(), records.to_vec());
        let sending = tokio::spawn(async move {
            let mut ticks = tokio::time::interval(every);
            for (record, ticket) in to_send.into_iter().zip(0..) {
                ticks.tick().await;
                let request = SubmitGameRequest {
                    actor_id: actor_id.clone(),
                    record,
                    ticket,
                };
                sender.send(request).await.expect("the stream is open");
            }
        });
        let answer = self.client.submit_games(ReceiverStream::new(receiver)).await;
        let mut stream = answer.expect("the coordinator takes games").into_inner();
        let (mut first, mut verdicts) = (None, 0);
        while let Some(verdict) = stream.message().await.expect("the stream holds") {
            first.get_or_insert_with(Instant::now);
            assert_eq!(verdict.verdict(), Verdict::Stored, "{verdict:?}");
            self.note(records, &verdict);
            verdicts += 1;
        }
        sending.await.expect("all was sent");
        assert_eq!(verdicts, records.len());
        let first = first.expect("there are records");
        (verdicts - 1) as f64 / first.elapsed().as_secs_f64()
    }

    /// What records of a lease are held to, if it was one of ours.
    pub fn lease(&self, lease: LeaseId) -> Option<&Expected> {
        self.leases.get(&lease)
    }

    /// The game that is played.
    pub fn game(&self) -> &AnyGame {
        &self.game
    }

    /// Remembers a promise.
    fn note(&mut self, records: &[Vec<u8>], verdict: &SubmitGameResponse) {
        if verdict.verdict() != Verdict::Stored {
            return;
        }
        let id = id_of(verdict);
        self.acknowledged_at.push((now_us(), id));
        let record = records.get(verdict.ticket as usize);
        self.acknowledged
            .insert(id, record.expect("the verdict is about a game we sent").clone());
    }

    /// Sends records again, after whatever happened in between; returns how many verdicts came. What was acknowledged
    /// before must be a duplicate now, the rest is stored or a duplicate.
    pub async fn submit_again(&mut self, records: &[Vec<u8>]) -> usize {
        let acknowledged: BTreeSet<RecordId> = self.acknowledged.keys().copied().collect();
        let verdicts = self.submit(records).await;
        for verdict in &verdicts {
            let kept = acknowledged.contains(&id_of(verdict));
            let fits = match verdict.verdict() {
                Verdict::Duplicate => true,
                Verdict::Stored => !kept,
                _ => false,
            };
            assert!(fits, "acknowledged before: {kept}, now {verdict:?}");
        }
        verdicts.len()
    }

    /// The oracle at the end of a run: the promises are kept, and `tengen db check` finds nothing wrong.
    pub fn assert_kept(&self, data: &Path) {
        self.assert_promises(data);
        assert_sound(data);
    }

    /// What is looked at after every fault: whatever was acknowledged lies in the database of `data` with the same bytes,
    /// nothing lies there twice, and the run's counters agree with its games.
    pub fn assert_promises(&self, data: &Path) {
        let database = Connection::open_with_flags(data.join("tengen.db"), OpenFlags::SQLITE_OPEN_READ_ONLY)
            .expect("the run has a database");
        let mut rows = database
            .prepare("SELECT lease, game_index, record FROM games")
            .expect("it has games");
        let stored = rows
            .query_map([], |row| {
                let lease = LeaseId(u128::from_be_bytes(row.get(0)?));
                let index = row.get(1)?;
                Ok((RecordId { lease, index }, row.get::<_, Vec<u8>>(2)?))
            })
            .expect("games can be read");
        let mut games = BTreeMap::new();
        for row in stored {
            let (id, record) = row.expect("a game can be read");
            assert!(games.insert(id, record).is_none(), "{id} is stored twice");
        }
        for (id, record) in &self.acknowledged {
            assert_eq!(
                games.get(id),
                Some(record),
                "the acknowledged game {id} is lost or changed"
            );
        }
        let (counted, positions): (i64, i64) = database
            .query_row(
                "SELECT self_play_games + match_games, positions FROM progress",
                [],
                |row| Ok((row.get(0)?, row.get(1)?)),
            )
            .expect("the run has its counters");
        // Games of matches are not trained on.
        let positions_of = "SELECT coalesce(sum(positions), 0) FROM games WHERE kind = 'self-play'";
        let total: i64 = database
            .query_row(positions_of, [], |row| row.get(0))
            .expect("positions can be counted");
        assert_eq!(
            (counted, positions),
            (games.len() as i64, total),
            "the counters disagree with the games"
        );
    }

    fn expected(&self, order: &Order, games: u32, random_plies_max: u32) -> Expected {
        Expected {
            run_id: self.run_id.clone(),
            game_id: self.game.spec().id.clone(),
            rules_fingerprint: self.rules,
            lease: order.lease,
            models: order.models.clone(),
            players: None,
            settings_revision: order.settings_revision,
            lease_seed: order.seed,
            work: Work::SelfPlay {
                index_end: games,
                random_plies_max,
            },
            endings: Endings::default(),
        }
    }

    fn play(&mut self, expected: &Expected, index: u32) -> Record {
        struct Visitor<'a>(&'a Expected, u32, &'a mut Xoshiro256PlusPlus);
        impl GameVisitor for Visitor<'_> {
            type Output = Record;
            fn visit<G: Game>(self, game: G) -> Record {
                testing::random_record(&game, self.0, self.1, self.2)
            }
        }
        self.game.visit(Visitor(expected, index, &mut self.rng))
    }
}

/// `tengen db check` of a run at rest: every record, network file, reference and counter, and every gate's evidence counted
/// again.
fn assert_sound(data: &Path) {
    let check = Command::new(program("tengen-coordinator"))
        .args(["db", "check", "--data"])
        .arg(data)
        .output()
        .expect("the program starts");
    let said = [check.stdout, check.stderr].concat();
    assert!(check.status.success(), "{}", String::from_utf8_lossy(&said));
}

/// What an actor of this name says first.
pub fn hello(actor_id: &str) -> RegisterActorRequest {
    RegisterActorRequest {
        actor_id: actor_id.to_owned(),
        host: "ledger".to_owned(),
        build: tengen_service::BUILD.to_owned(),
        protocol_min: tengen_proto::PROTOCOL,
        protocol_max: tengen_proto::PROTOCOL,
        provider: "none".to_owned(),
    }
}

/// The game that a verdict is about.
fn id_of(verdict: &SubmitGameResponse) -> RecordId {
    RecordId {
        lease: LeaseId::from_bytes(&verdict.lease_id).expect("a verdict names its lease"),
        index: verdict.game_index,
    }
}
