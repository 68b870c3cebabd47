//! An honest actor under a test's control that remembers every acknowledgement: the oracle of the kill tests.

use std::collections::BTreeMap;

use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use tengen_games::{AnyGame, Fingerprint, Game, GameVisitor};
use tengen_proto::v1::actor_service_client::ActorServiceClient;
use tengen_proto::v1::get_work_response::Work as Offer;
use tengen_proto::v1::{GetWorkRequest, RegisterActorRequest, SubmitGameRequest, SubmitGameResponse, Verdict};
use tengen_records::{Endings, Expected, Record, RecordId, RunId, Work, testing};
use tengen_selfplay::order::{Order, Plan};
use tengen_selfplay::wire::order_from_wire;
use tonic::transport::Channel;

/// The actor and what it was promised.
pub struct Ledger {
    client: ActorServiceClient<Channel>,
    actor_id: String,
    game: AnyGame,
    run_id: RunId,
    rules: Fingerprint,
    rng: Xoshiro256PlusPlus,
    /// Bytes of every game whose verdict was `stored`.
    pub acknowledged: BTreeMap<RecordId, Vec<u8>>,
}

impl Ledger {
    /// Registers at the coordinator behind `channel`.
    pub async fn register(channel: Channel, seed: u64) -> Ledger {
        let mut client = ActorServiceClient::new(channel);
        let actor_id = format!("00000000-0000-4000-8000-{seed:012x}");
        let request = RegisterActorRequest {
            actor_id: actor_id.clone(),
            host: "ledger".to_owned(),
            build: tengen_service::BUILD.to_owned(),
            protocol_min: tengen_proto::PROTOCOL,
            protocol_max: tengen_proto::PROTOCOL,
            provider: "none".to_owned(),
        };
        let run = client
            .register(request)
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
            acknowledged: BTreeMap::new(),
        }
    }

    /// Asks for self-play until there is some, and plays all of the lease's games at random.
    pub async fn play_lease(&mut self) -> Vec<Record> {
        loop {
            let request = GetWorkRequest {
                actor_id: self.actor_id.clone(),
                games_parallel: 8,
                games_per_minute: 60.0,
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
                    return (0..games).map(|index| self.play(&expected, index)).collect();
                }
            }
            tokio::task::yield_now().await;
        }
    }

    /// Sends records and returns the verdicts in the order of the records; remembers what was stored. Fewer verdicts
    /// than records come back when the connection broke.
    pub async fn submit(&mut self, records: &[Vec<u8>]) -> Vec<SubmitGameResponse> {
        let actor_id = self.actor_id.clone();
        let requests: Vec<SubmitGameRequest> = records
            .iter()
            .map(|record| SubmitGameRequest {
                actor_id: actor_id.clone(),
                record: record.clone(),
            })
            .collect();
        let Ok(answer) = self.client.submit_games(tokio_stream::iter(requests)).await else {
            return Vec::new();
        };
        let mut stream = answer.into_inner();
        let mut verdicts = Vec::new();
        while let Ok(Some(verdict)) = stream.message().await {
            if verdict.verdict() == Verdict::Stored {
                let lease: [u8; 16] = verdict.lease_id.clone().try_into().expect("lease ids have 16 bytes");
                let id = RecordId {
                    lease: tengen_records::LeaseId(u128::from_be_bytes(lease)),
                    index: verdict.game_index,
                };
                let bytes = records
                    .iter()
                    .find(|record| tengen_records::peek_id(record) == Some(id));
                self.acknowledged
                    .insert(id, bytes.expect("the verdict is about a game we sent").clone());
            }
            verdicts.push(verdict);
        }
        verdicts
    }

    fn expected(&self, order: &Order, games: u32, random_plies_max: u32) -> Expected {
        Expected {
            run_id: self.run_id.clone(),
            game_id: self.game.spec().id.clone(),
            rules_fingerprint: self.rules,
            lease: order.lease,
            models: order.models.clone(),
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
