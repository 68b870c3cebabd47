//! Laws of the gates: when they end, whom they promote, who plays them, and who waits for one.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use tengen_control::rating::RatingRules;
use tengen_control::{
    ActorId, Candidate, Control, Decision, Effect, Event, FixedRule, GameScore, Gate, GateId, GatePlay, GateRule,
    Lease, LeaseId, LeaseRules, Leg, LogEntry, MatchPlan, MatchRule, ModelId, Needed, Openings, Outcome,
    PAIRS_BEFORE_SHARES, PoolRule, Queue, Row, Rules, Schedule, Snapshot, SprtRule, Standing, Tally, Unit, Work,
    log_likelihood_ratio,
};

fn score() -> impl Strategy<Value = GameScore> {
    prop_oneof![Just(GameScore::Win), Just(GameScore::Draw), Just(GameScore::Loss)]
}

fn fixed(games: u32, threshold: f64) -> FixedRule {
    FixedRule::new(games, Needed::AtLeast(threshold)).expect("a good rule")
}

fn plan(opponent: u8, rule: impl Into<MatchRule>) -> MatchPlan {
    let rule = rule.into();
    MatchPlan {
        opponent: ModelId([opponent; 32]),
        rule,
        openings: Openings::distinct(rule.pairs()),
    }
}

fn candidate(n: u32) -> Candidate {
    let mut model = [200; 32];
    model[..4].copy_from_slice(&n.to_be_bytes());
    Candidate {
        model: ModelId(model),
        iteration: n,
    }
}

/// Both games of a pair, in time and from one lease.
fn entries(pair: u32, first: GameScore, second: GameScore) -> [LogEntry; 2] {
    let entry = |leg, score| LogEntry {
        lease: LeaseId([7; 16]),
        pair,
        leg,
        score,
        standing: Standing::Counts,
    };
    [entry(Leg::CandidateFirst, first), entry(Leg::ChampionFirst, second)]
}

fn sprt_rule() -> impl Strategy<Value = SprtRule> {
    let hypotheses = prop_oneof![
        Just((Unit::Elo, [0.0, 150.0])),
        Just((Unit::Score, [0.5, 0.7])),
        Just((Unit::NormalizedElo, [0.0, 150.0])),
    ];
    (hypotheses, 1u32..60, 0.05..0.3, 0.05..0.3).prop_map(|((unit, hypotheses), pairs, alpha, beta)| {
        SprtRule::new(pairs * 2, unit, hypotheses, [alpha, beta]).expect("a good rule")
    })
}

proptest! {
    #[test]
    fn a_sequential_gate_is_frozen_where_its_ratio_first_crosses_a_bound(
        rule in sprt_rule(),
        results in proptest::collection::vec((score(), score()), 60),
    ) {
        let mut gate = Gate::new(GateId(1), candidate(1), plan(0, rule));
        let (lower, upper) = rule.bounds();
        let mut tally = Tally::default();
        let mut decision = None;
        for (pair, &(first, second)) in (0..rule.pairs_max).zip(&results) {
            prop_assert_eq!(gate.decision(), decision);
            entries(pair, first, second).into_iter().for_each(|entry| gate.append(entry));
            if decision.is_none() {
                tally.add_pair(first, second);
                let llr = log_likelihood_ratio(tally.pairs_by_half_points, rule.unit, rule.lower, rule.upper);
                decision = if llr >= upper {
                    Some(Decision::Promote)
                } else if llr <= lower || tally.pairs == rule.pairs_max {
                    Some(Decision::Reject)
                } else {
                    None
                };
            }
            prop_assert_eq!((gate.tally(), gate.decision()), (tally, decision));
        }
        prop_assert!(gate.decision().is_some(), "every pair is played");
    }

    #[test]
    fn better_results_never_lower_the_likelihood_ratio_of_a_score(
        counts in proptest::collection::vec(1u32..200, 5),
        from in 0usize..4,
        elo in (-200.0..200.0, 1.0..200.0),
    ) {
        let worse: [u32; 5] = counts.try_into().expect("five");
        let mut better = worse;
        better[from] -= 1;
        better[from + 1] += 1;
        let (lower, upper) = (elo.0, elo.0 + elo.1);
        let llr = |pairs| log_likelihood_ratio(pairs, Unit::Elo, lower, upper);
        // Every outcome is seen in both, so that what is taken for an unseen one plays no part.
        prop_assume!(better[from] > 0);
        prop_assert!(llr(better) >= llr(worse), "{} after {}", llr(better), llr(worse));
    }

    #[test]
    fn a_candidate_passes_when_it_beats_the_champion_and_loses_to_none_of_the_pool(
        champion in proptest::collection::vec((score(), score()), 4),
        pool in proptest::collection::vec(proptest::collection::vec((score(), score()), 3), 0..4),
    ) {
        let plans: Vec<MatchPlan> = (0..pool.len()).map(|n| plan(n as u8 + 1, fixed(6, 0.5))).collect();
        let mut gate = Gate::new(GateId(1), candidate(1), plan(0, fixed(8, 0.55))).with_pool(&plans);
        let all = champion.iter().chain(pool.iter().flatten());
        for (pair, &(first, second)) in all.enumerate() {
            entries(pair as u32, first, second).into_iter().for_each(|entry| gate.append(entry));
        }
        let points = |results: &[(GameScore, GameScore)]| {
            let mut tally = Tally::default();
            results.iter().for_each(|&(first, second)| tally.add_pair(first, second));
            tally.score()
        };
        let passes = points(&champion) >= 0.55 && pool.iter().all(|results| points(results) >= 0.5);
        let decision = if passes { Decision::Promote } else { Decision::Reject };
        prop_assert_eq!(gate.decision(), Some(decision));
        if points(&champion) < 0.55 {
            prop_assert!(gate.evidence().pool.iter().all(|played| played.tally.pairs == 0), "the pool comes after");
        }
    }

    #[test]
    fn the_last_of_a_row_that_passed_is_promoted_and_a_failure_begins_anew(
        passes in proptest::collection::vec(any::<bool>(), 1..30),
        in_a_row in 1u32..5,
    ) {
        let rule = GateRule::Play(GatePlay { rule: fixed(2, 0.55).into(), in_a_row, pool: None });
        let mut run = Run::new(rule, Queue::Replace, 1.0);
        let (mut streak, mut generation) = (0, 0);
        for (n, &passed) in passes.iter().enumerate() {
            run.publish(n as u32 + 1);
            run.play_out(|_| if passed { GameScore::Win } else { GameScore::Loss });
            streak = if passed { streak + 1 } else { 0 };
            let outcome = match (passed, streak == in_a_row) {
                (false, _) => Outcome::Rejected,
                (true, false) => Outcome::Passed { streak },
                (true, true) => Outcome::Promoted { streak },
            };
            prop_assert_eq!(run.outcomes.last(), Some(&(candidate(n as u32 + 1).model, outcome)));
            if matches!(outcome, Outcome::Promoted { .. }) {
                (streak, generation) = (0, generation + 1);
                prop_assert_eq!(run.control.champion(), candidate(n as u32 + 1).model);
            }
            prop_assert_eq!((run.control.streak(), run.control.generation()), ((streak, in_a_row), generation));
        }
    }

    #[test]
    fn of_three_actors_none_ever_has_more_than_its_share_and_the_match_ends(
        order in proptest::collection::vec((0u64..4, any::<bool>(), any::<usize>(), score()), 0..300),
        share in 0.4..1.0,
        pairs in 1u32..60,
    ) {
        let mut run = Run::new(fixed(pairs * 2, 1.0).into(), Queue::Replace, share);
        // Each has been heard before the gate opens.
        for actor in 0..4 {
            run.ask(actor);
        }
        run.publish(1);
        for (actor, asks, which, score) in order {
            if asks {
                run.ask(actor);
            } else {
                run.deliver_one(which, score);
            }
            run.check_shares(share)?;
        }
        // From here on the actors take turns; wins alone, so that every pair is needed.
        run.play_out(|_| GameScore::Win);
        run.check_shares(share)?;
        prop_assert_eq!(run.outcomes.len(), 1, "the match is not held up");
    }

    #[test]
    fn candidates_that_wait_have_their_gates_in_order_and_the_learner_is_never_held_up(
        published in 1u32..40,
        queue in prop_oneof![Just(Queue::Replace), Just(Queue::Wait)],
    ) {
        let mut run = Run::new(fixed(2, 0.55).into(), queue, 1.0);
        for n in 1..=published {
            run.publish(n);
            prop_assert!(run.control.waiting().len() <= queue.waiting_max());
        }
        // The first one has the gate; of the others the newest are kept.
        let kept = (published - 1).min(queue.waiting_max() as u32);
        let superseded: Vec<ModelId> = (2..=published - kept).map(|n| candidate(n).model).collect();
        prop_assert_eq!(&run.superseded, &superseded);
        for _ in 0..=kept {
            run.play_out(|_| GameScore::Loss);
        }
        let order: Vec<ModelId> = run.outcomes.iter().map(|(model, _)| *model).collect();
        let expected: Vec<ModelId> =
            std::iter::once(1).chain(published - kept + 1..=published).map(|n| candidate(n).model).collect();
        prop_assert_eq!(order, expected);
    }
}

/// A run of which only the gates matter.
struct Run {
    control: Control,
    serial: u16,
    out: BTreeMap<LeaseId, (Lease, usize)>,
    actors: BTreeMap<LeaseId, ActorId>,
    outcomes: Vec<(ModelId, Outcome)>,
    superseded: Vec<ModelId>,
    log: Vec<LogEntry>,
}

impl Run {
    fn new(gate: GateRule, queue: Queue, actor_share: f64) -> Run {
        let row = Row {
            from_iteration: 0,
            simulations: 2,
            games: 1_000_000,
        };
        let rules = Rules {
            schedule: Schedule::new(vec![row]).expect("a good schedule"),
            candidate_every: 1,
            gate,
            queue,
            gate_share: 1.0,
            actor_share,
            leases: LeaseRules::default(),
            ratings: RatingRules::default(),
        };
        let (control, _) = Control::restore(rules, Snapshot::new(ModelId([0; 32])), 0).expect("good rules");
        Run {
            control,
            serial: 0,
            out: BTreeMap::new(),
            actors: BTreeMap::new(),
            outcomes: Vec::new(),
            superseded: Vec::new(),
            log: Vec::new(),
        }
    }

    fn step(&mut self, event: Event) -> Vec<Effect> {
        let mut effects = self.control.step(event, 0);
        let wanted = effects.iter().find_map(|effect| match effect {
            Effect::GateWanted { gate, play, .. } => Some((*gate, *play)),
            _ => None,
        });
        if let Some((gate, play)) = wanted {
            self.log.clear();
            let openings = Openings::distinct(play.rule.pairs());
            let pool = Vec::new();
            effects.extend(self.control.step(Event::GateDrawn { gate, openings, pool }, 0));
        }
        for effect in &effects {
            match effect {
                Effect::GateDecided { candidate, outcome, .. } => self.outcomes.push((*candidate, *outcome)),
                Effect::Superseded(model) => self.superseded.push(*model),
                Effect::LeaseClosed { lease, .. } => drop(self.out.remove(lease)),
                _ => {}
            }
        }
        effects
    }

    fn publish(&mut self, n: u32) {
        self.step(Event::CandidatePublished(candidate(n)));
    }

    /// Whether the actor got pairs of a match.
    fn ask(&mut self, actor: u64) -> bool {
        self.serial += 1;
        let mut lease = [0; 16];
        lease[..2].copy_from_slice(&self.serial.to_be_bytes());
        let effects = self.step(Event::WorkAsked {
            actor: ActorId(actor),
            lease: LeaseId(lease),
            games_per_minute: 20.0,
            self_play_max: 0,
            rating_players: Vec::new(),
        });
        match effects.into_iter().next() {
            Some(Effect::LeaseIssued(lease)) if !lease.is_self_play() => {
                self.actors.insert(lease.id, lease.actor);
                self.out.insert(lease.id, (lease, 0));
                true
            }
            _ => false,
        }
    }

    /// Delivers the next game of one of the leases that are out.
    fn deliver_one(&mut self, which: usize, score: GameScore) {
        let Some(id) = self.out.keys().nth(which % self.out.len().max(1)).copied() else {
            return;
        };
        let Some((lease, next)) = self.out.get_mut(&id) else {
            return;
        };
        let Work::Match { gate, pairs, .. } = lease.work.clone() else {
            return;
        };
        let (pair, leg) = (pairs[*next / 2], Leg::BOTH[*next % 2]);
        *next += 1;
        let stored = Event::MatchStored {
            lease: id,
            gate,
            pair,
            leg,
            score,
        };
        if let Some(Effect::MatchLogged(standing)) = self.step(stored).first() {
            self.log.push(LogEntry {
                lease: id,
                pair,
                leg,
                score,
                standing: *standing,
            });
        }
    }

    /// Four actors play until the gate that is open is decided, or none of them is given anything.
    fn play_out(&mut self, score: impl Fn(usize) -> GameScore) {
        let decided = self.outcomes.len();
        while self.outcomes.len() == decided {
            let asked: Vec<bool> = (0..4).map(|actor| self.ask(actor)).collect();
            if self.out.is_empty() && !asked.contains(&true) {
                return;
            }
            for game in 0.. {
                if self.out.is_empty() || self.outcomes.len() > decided {
                    break;
                }
                self.deliver_one(game, score(game));
            }
        }
    }

    /// No actor has more of the counted pairs than its share, the first few apart.
    fn check_shares(&self, share: f64) -> Result<(), TestCaseError> {
        let mut halves = BTreeSet::new();
        let mut counted: BTreeMap<ActorId, u32> = BTreeMap::new();
        for entry in self.log.iter().filter(|entry| entry.standing == Standing::Counts) {
            if !halves.insert((entry.lease, entry.pair)) {
                *counted.entry(self.actors[&entry.lease]).or_default() += 1;
            }
        }
        let all: u32 = counted.values().sum();
        for (actor, pairs) in counted {
            let most = (share * f64::from(all) + 1e-6).floor() as u32;
            prop_assert!(
                pairs <= most.max(PAIRS_BEFORE_SHARES),
                "{actor:?} played {pairs} of {all} pairs with a share of {share}"
            );
        }
        Ok(())
    }
}

#[test]
fn a_pool_of_none_and_one_that_is_empty_are_the_same() {
    let pool = PoolRule {
        champions: 3,
        rule: fixed(4, 0.5),
    };
    let rule = GateRule::Play(GatePlay {
        rule: fixed(2, 0.55).into(),
        in_a_row: 1,
        pool: Some(pool),
    });
    let mut run = Run::new(rule, Queue::Replace, 1.0);
    run.publish(1);
    run.play_out(|_| GameScore::Win);
    assert_eq!(run.outcomes, [(candidate(1).model, Outcome::Promoted { streak: 1 })]);
}
