//! Spoilt records over the wire, to a coordinator in a process of its own: each gets its verdict, none gets in that breaks
//! a promise, and the process lives on. In process, and far more of them: the example `mutate` of `tengen-records`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use tengen_games::{Game, GameVisitor};
use tengen_proto::v1::Verdict;
use tengen_records::testing::invariants::violation;
use tengen_records::testing::mutation::Mutation;
use tengen_records::{Expected, Record, decode, encode};
use tengen_system_tests::coordinator::Coordinator;
use tengen_system_tests::faults::{self, Proof, scaled};
use tengen_system_tests::ledger::Ledger;

/// Boards of every kind: nine actions, gravity, and an opening protocol.
const GAMES: [&str; 3] = ["tic-tac-toe", "connect-four", "caro5?size=9"];
/// Spoilt records of one stream.
const STREAM: usize = 500;
/// A coordinator that goes on listening to an actor whose every record is spoilt.
const PATIENT: [(&str, &str); 2] = [("LIMITS__STRIKES_MAX", "1000000"), ("LIMITS__GAMES_PER_MINUTE", "0")];

/// What became of spoilt records.
#[derive(Debug, Default)]
struct Tally {
    sent: usize,
    rejected: usize,
    /// Passed the check: their damage left them valid.
    valid: usize,
}

#[tokio::test(flavor = "multi_thread")]
async fn spoilt_records_get_a_verdict_each_and_none_gets_in_that_breaks_a_promise() {
    let proof = Proof::begin("records-spoilt-on-the-wire");
    let each = scaled(3_000, 102_000) / GAMES.len();
    let mut tally = Tally::default();
    for game in GAMES {
        spoil(game, each, &mut tally).await;
    }
    let Tally { sent, rejected, valid } = tally;
    // The test is worth something only while some damage goes through the check and most does not.
    assert!(rejected > sent / 2 && valid > sent / 200, "{tally:?}");
    let proof = proof.count("mutations", sent).count("rejected", rejected);
    proof.count("still_valid", valid).count("exits", 0).proved();
}

/// Sends so many spoilt records of this game to a coordinator of its own.
async fn spoil(game: &str, many: usize, tally: &mut Tally) {
    let folder = tempfile::tempdir().unwrap();
    let (run, data) = (faults::write_run_of(folder.path(), game), folder.path().join("data"));
    let coordinator = Coordinator::start(&run, &data, &PATIENT).await;
    let mut ledger = Ledger::register(coordinator.channel(), 7).await;
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(13);
    let end = tally.sent + many;
    while tally.sent < end {
        let honest: Vec<Vec<u8>> = ledger.play_lease().await.iter().map(encode).collect();
        let spoilt: Vec<Vec<u8>> = (0..STREAM.min(end - tally.sent))
            .map(|_| {
                let [record, donor] = [0; 2].map(|_| &honest[rng.random_range(0..honest.len())]);
                Mutation::ALL[rng.random_range(0..Mutation::ALL.len())].apply(record, donor, &mut rng)
            })
            .collect();
        judge(&mut ledger, &spoilt, tally).await;
    }
    // The process is the same, and what is honest is still taken: no spoilt record has spoilt a lease.
    let honest: Vec<Vec<u8>> = ledger.play_lease().await.iter().map(encode).collect();
    let verdicts = ledger.submit(&honest).await;
    assert!(
        verdicts.iter().all(|verdict| verdict.verdict() == Verdict::Stored),
        "{verdicts:?}"
    );
    coordinator.drain().await;
    ledger.assert_kept(&data);
}

/// Sends spoilt records. Whatever the coordinator's check let through is looked at again.
async fn judge(ledger: &mut Ledger, spoilt: &[Vec<u8>], tally: &mut Tally) {
    let verdicts = ledger.submit(spoilt).await;
    // A check that panics ends the stream, and so does a coordinator that is gone.
    assert_eq!(verdicts.len(), spoilt.len(), "{:?}", verdicts.last());
    tally.sent += verdicts.len();
    for verdict in &verdicts {
        match verdict.verdict() {
            Verdict::Rejected => tally.rejected += 1,
            // All three have passed the check; the latter two only have an id that is known by now.
            Verdict::Stored | Verdict::Duplicate | Verdict::Conflict => {
                tally.valid += 1;
                let broken = broken_promise(ledger, &spoilt[verdict.ticket as usize]);
                assert_eq!(broken, None, "{verdict:?}");
            }
            other => panic!("{other:?}: {verdict:?}"),
        }
    }
}

/// What these bytes, which were let in, break of what their lease asks for.
fn broken_promise(ledger: &Ledger, bytes: &[u8]) -> Option<String> {
    struct Opinion<'a>(&'a Record, &'a Expected);
    impl GameVisitor for Opinion<'_> {
        type Output = Option<String>;
        fn visit<G: Game>(self, game: G) -> Option<String> {
            violation(&game, self.0, self.1)
        }
    }
    let record = decode(bytes).unwrap();
    match ledger.lease(record.id.lease) {
        Some(lease) => ledger.game().visit(Opinion(&record, lease)),
        None => Some(format!("lease {} is none of ours", record.id.lease)),
    }
}
