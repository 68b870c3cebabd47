//! Laws of the state machine, over random histories of a whole run.

use std::collections::BTreeSet;

use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use tengen_control::rating::{RatingRules, RatingState};
use tengen_control::{
    ActorId, Candidate, Control, Decision, Effect, Event, FixedRule, GameScore, Gate, GateId, GatePlay, GateRule,
    Lease, LeaseEnd, LeaseId, LeaseRules, Leg, LogEntry, MatchPlan, MatchRule, ModelId, Needed, Openings, Outcome,
    PoolRule, Queue, Row, Rules, Schedule, Snapshot, Standing, Tally, Work,
};

fn rules(rows: Vec<Row>, gate: GateRule, candidate_every: u32) -> Rules {
    let schedule = Schedule::new(rows).expect("a good schedule");
    Rules {
        schedule,
        candidate_every,
        gate,
        queue: Queue::Replace,
        gate_share: 0.5,
        actor_share: 0.5,
        leases: LeaseRules::default(),
        ratings: RatingRules::default(),
    }
}

fn row(from_iteration: u32, games: u32) -> Row {
    Row {
        from_iteration,
        simulations: 16,
        games,
    }
}

fn fixed(games: u32, threshold: f64) -> FixedRule {
    FixedRule::new(games, Needed::AtLeast(threshold)).expect("a good rule")
}

fn start(rules: Rules) -> Control {
    let (control, effects) = Control::restore(rules, Snapshot::new(ModelId([0; 32])), 0).expect("good rules");
    assert_eq!(effects, []);
    control
}

fn score() -> impl Strategy<Value = GameScore> {
    prop_oneof![Just(GameScore::Win), Just(GameScore::Draw), Just(GameScore::Loss)]
}

/// What may happen next in a random history; numbers pick among what there is.
#[derive(Clone, Debug)]
enum Op {
    Ask(u64),
    Deliver(usize, usize, GameScore, u32),
    Return(usize),
    Wait(u64),
    Publish,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (0u64..3).prop_map(Op::Ask),
        12 => (any::<usize>(), any::<usize>(), score(), 0u32..9).prop_map(|(a, b, c, d)| Op::Deliver(a, b, c, d)),
        1 => any::<usize>().prop_map(Op::Return),
        2 => (0u64..20_000).prop_map(Op::Wait),
        2 => Just(Op::Publish),
    ]
}

/// A run played from ops, with everything the store would see.
struct History {
    control: Control,
    now_ms: u64,
    serial: u8,
    published: u32,
    issued: Vec<Lease>,
    delivered: BTreeSet<(LeaseId, usize)>,
    effects: Vec<Effect>,
    logs: Vec<(GateId, LogEntry)>,
    games: u64,
    positions: u64,
}

impl History {
    fn new(rules: Rules) -> History {
        History {
            control: start(rules),
            now_ms: 0,
            serial: 0,
            published: 0,
            issued: Vec::new(),
            delivered: BTreeSet::new(),
            effects: Vec::new(),
            logs: Vec::new(),
            games: 0,
            positions: 0,
        }
    }

    fn step(&mut self, event: Event) -> Vec<Effect> {
        let effects = self.control.step(event, self.now_ms);
        for effect in &effects {
            if let Effect::GateWanted { gate, play, .. } = *effect {
                let drawn = self.drawn(gate, play);
                let more = self.control.step(drawn, self.now_ms);
                self.effects.extend(more);
            }
        }
        self.effects.extend(effects.clone());
        effects
    }

    /// All the openings that are wanted, and as many earlier champions as there are.
    fn drawn(&self, gate: GateId, play: GatePlay) -> Event {
        let promotions = self.effects.iter().filter_map(|effect| match effect {
            Effect::Promoted { previous, .. } => Some(*previous),
            _ => None,
        });
        let mut earlier: Vec<ModelId> = promotions.collect();
        earlier.reverse();
        let against = |rule: PoolRule| {
            let opponents = earlier.iter().take(rule.champions as usize);
            let plan = move |&opponent| plan(opponent, rule.rule);
            opponents.map(plan).collect()
        };
        Event::GateDrawn {
            gate,
            openings: Openings::distinct(play.rule.pairs()),
            pool: play.pool.map(against).unwrap_or_default(),
        }
    }

    fn play(&mut self, op: Op) {
        match op {
            Op::Ask(actor) => {
                self.serial = self.serial.wrapping_add(1);
                let lease = LeaseId([self.serial; 16]);
                if self.issued.iter().any(|old| old.id == lease) {
                    return;
                }
                let asked = Event::WorkAsked {
                    actor: ActorId(actor),
                    lease,
                    games_per_minute: 3.0,
                    self_play_max: u32::MAX,
                    rating_players: Vec::new(),
                };
                for effect in self.step(asked) {
                    if let Effect::LeaseIssued(lease) = effect {
                        self.issued.push(lease);
                    }
                }
            }
            Op::Deliver(lease, index, score, positions) if !self.issued.is_empty() => {
                let lease = self.issued[lease % self.issued.len()].clone();
                let index = index % lease.games as usize;
                if self.delivered.insert((lease.id, index)) {
                    self.deliver(&lease, index, score, positions);
                }
            }
            Op::Return(lease) if !self.issued.is_empty() => {
                let id = self.issued[lease % self.issued.len()].id;
                self.step(Event::LeaseReturned(id));
            }
            Op::Wait(ms) => {
                self.now_ms += ms;
                self.step(Event::Tick);
            }
            Op::Publish => {
                let iteration = self.control.iteration();
                if self.control.wants_candidate(iteration) {
                    // Networks from elsewhere may come one after the other for iteration 0.
                    self.published += 1;
                    let mut model = [0; 32];
                    model[..4].copy_from_slice(&self.published.to_be_bytes());
                    self.step(Event::CandidatePublished(Candidate {
                        model: ModelId(model),
                        iteration,
                    }));
                }
            }
            Op::Deliver(..) | Op::Return(_) => {}
        }
    }

    fn deliver(&mut self, lease: &Lease, index: usize, score: GameScore, positions: u32) {
        match &lease.work {
            Work::Rating { .. } => panic!("no rating match was asked for"),
            Work::SelfPlay { .. } => {
                self.games += 1;
                self.positions += u64::from(positions);
                self.step(Event::SelfPlayStored {
                    lease: lease.id,
                    positions,
                });
            }
            Work::Match { gate, pairs, .. } => {
                let (pair, leg) = (pairs[index / 2], Leg::BOTH[index % 2]);
                let stored = Event::MatchStored {
                    lease: lease.id,
                    gate: *gate,
                    pair,
                    leg,
                    score,
                };
                let Some(Effect::MatchLogged(standing)) = self.step(stored).into_iter().next() else {
                    panic!("a match game's first effect is its standing");
                };
                self.logs.push((
                    *gate,
                    LogEntry {
                        lease: lease.id,
                        pair,
                        leg,
                        score,
                        standing,
                    },
                ));
            }
        }
    }
}

/// A match over all its pairs.
fn plan(opponent: ModelId, rule: impl Into<MatchRule>) -> MatchPlan {
    let rule = rule.into();
    MatchPlan {
        opponent,
        rule,
        openings: Openings::distinct(rule.pairs()),
    }
}

/// A gate whose log this is, without holders: what the log alone says.
fn from_log(champion: MatchPlan, pool: &[MatchPlan], log: &[LogEntry]) -> Gate {
    let candidate = Candidate {
        model: ModelId([1; 32]),
        iteration: 1,
    };
    let mut gate = Gate::new(GateId(1), candidate, champion).with_pool(pool);
    log.iter().for_each(|entry| gate.append(*entry));
    gate
}

/// The tally and the decision of a log of a match with the champion.
fn recount(rule: impl Into<MatchRule>, log: &[LogEntry]) -> (Tally, Option<Decision>) {
    let gate = from_log(plan(ModelId([0; 32]), rule), &[], log);
    (gate.tally(), gate.decision())
}

proptest! {
    #[test]
    fn iterations_end_exactly_when_their_games_are_stored(
        games in proptest::collection::vec((1u32..6, 0u32..50), 1..4),
        positions in proptest::collection::vec(0u32..40, 0..60),
        every in 1u32..4,
    ) {
        let rows = games.iter().enumerate().map(|(i, &(games, _))| row(i as u32 * 2, games)).collect();
        let rules = rules(rows, GateRule::None, every);
        let schedule = rules.schedule.clone();
        let mut control = start(rules);
        let (mut iteration, mut in_iteration, mut total) = (0, 0, 0u64);
        for positions in positions {
            in_iteration += 1;
            total += u64::from(positions);
            let effects = control.step(Event::SelfPlayStored { lease: LeaseId([9; 16]), positions }, 0);
            if in_iteration == schedule.row(iteration).games {
                let due = (iteration + 1) % every == 0;
                prop_assert_eq!(
                    effects,
                    vec![Effect::IterationEnded { iteration, games: in_iteration, positions: total, candidate_due: due }]
                );
                iteration += 1;
                in_iteration = 0;
                if due {
                    let owed = control.due().unwrap();
                    prop_assert_eq!((owed.iteration, owed.positions), (iteration, total));
                }
            } else {
                prop_assert_eq!(effects, vec![]);
            }
            prop_assert_eq!((control.iteration(), control.iteration_games()), (iteration, in_iteration));
        }
    }

    #[test]
    fn no_pair_counts_twice_and_every_decision_follows_from_its_log(
        ops in proptest::collection::vec(op(), 0..400),
    ) {
        let rule = fixed(8, 0.55);
        let mut history = History::new(rules(vec![row(0, 5)], rule.into(), 1));
        for op in ops {
            history.play(op);
        }
        let self_play_ended: u32 = history.effects.iter().filter_map(|effect| match effect {
            Effect::IterationEnded { games, .. } => Some(*games),
            _ => None,
        }).sum();
        prop_assert_eq!(u64::from(self_play_ended + history.control.iteration_games()), history.games);
        prop_assert_eq!(history.control.positions(), history.positions);

        for effect in &history.effects {
            let Effect::GateDecided { gate, outcome, evidence, .. } = effect else { continue };
            let (tally, decision) = (&evidence.tally, match outcome {
                Outcome::Promoted { .. } => Decision::Promote,
                Outcome::Rejected => Decision::Reject,
                Outcome::Passed { .. } => panic!("one is enough here"),
            });
            let log: Vec<LogEntry> =
                history.logs.iter().filter(|(id, _)| id == gate).map(|(_, entry)| *entry).collect();
            prop_assert_eq!(recount(rule, &log), (*tally, Some(decision)));
            prop_assert!(tally.pairs <= rule.pairs);
            prop_assert_eq!(tally.games(), tally.pairs * 2);
            let counted: Vec<_> = log.iter().filter(|entry| entry.standing == Standing::Counts).collect();
            // Counted games come from distinct (lease, pair, leg), and no pair is complete under two leases.
            for pair in 0..rule.pairs {
                let complete: BTreeSet<LeaseId> = counted.iter().filter(|entry| entry.pair == pair).filter(|entry| {
                    counted.iter().any(|other| {
                        other.pair == pair && other.lease == entry.lease && other.leg != entry.leg
                    })
                }).map(|entry| entry.lease).collect();
                prop_assert!(complete.len() <= 1, "pair {pair} is complete under {} leases", complete.len());
            }
        }
    }

    #[test]
    fn promotions_follow_one_another_and_candidates_are_settled_once(
        ops in proptest::collection::vec(op(), 0..400),
    ) {
        let mut history = History::new(rules(vec![row(0, 3)], fixed(4, 0.5).into(), 1));
        for op in ops {
            history.play(op);
        }
        let (mut champion, mut generation) = (ModelId([0; 32]), 0);
        let mut settled = BTreeSet::new();
        for effect in &history.effects {
            match effect {
                Effect::Promoted { model, generation: g, previous, .. } => {
                    prop_assert_eq!((*previous, *g), (champion, generation + 1));
                    (champion, generation) = (*model, *g);
                }
                Effect::GateDecided { candidate, .. } => prop_assert!(settled.insert(*candidate)),
                Effect::Superseded(model) => prop_assert!(settled.insert(*model)),
                _ => {}
            }
        }
        prop_assert_eq!((history.control.champion(), history.control.generation()), (champion, generation));
    }

    #[test]
    fn a_decision_does_not_depend_on_how_first_games_interleave(
        results in proptest::collection::vec((score(), score()), 6),
        order in Just((0u32..6).collect::<Vec<_>>()).prop_shuffle(),
        early in proptest::collection::vec(any::<bool>(), 6),
        swapped in proptest::collection::vec(any::<bool>(), 6),
    ) {
        let rule = fixed(12, 0.55);
        let lease = LeaseId([7; 16]);
        let entry = |pair: u32, leg: Leg| {
            let (first, second) = results[pair as usize];
            let score = if leg == Leg::CandidateFirst { first } else { second };
            LogEntry { lease, pair, leg, score, standing: Standing::Counts }
        };
        let legs = |pair: u32| if swapped[pair as usize] { [Leg::BOTH[1], Leg::BOTH[0]] } else { Leg::BOTH };
        let straight: Vec<_> = order.iter().flat_map(|&pair| Leg::BOTH.map(|leg| entry(pair, leg))).collect();
        // Some pairs' first games all come before anything else; pairs are completed in the same order.
        let mut mixed: Vec<_> =
            order.iter().filter(|&&pair| early[pair as usize]).map(|&pair| entry(pair, legs(pair)[0])).collect();
        for &pair in &order {
            if !early[pair as usize] {
                mixed.push(entry(pair, legs(pair)[0]));
            }
            mixed.push(entry(pair, legs(pair)[1]));
        }
        prop_assert_eq!(recount(rule, &straight), recount(rule, &mixed));
    }

    #[test]
    fn a_restored_run_goes_on_like_one_that_never_stopped(
        before in proptest::collection::vec(op(), 0..200),
        after in proptest::collection::vec(op(), 0..100),
    ) {
        let make = || rules(vec![row(0, 5)], fixed(8, 0.55).into(), 2);
        let mut history = History::new(make());
        for op in before {
            history.play(op);
        }
        let control = &history.control;
        let gate = control.gate().map(|gate| {
            let mut again = Gate::new(gate.id(), gate.candidate(), gate.champion_match().plan());
            gate.log().iter().for_each(|entry| again.append(*entry));
            again
        });
        let gates = history.effects.iter().filter(|effect| matches!(effect, Effect::GateOpened { .. })).count();
        let snapshot = Snapshot {
            iteration: control.iteration(),
            iteration_games: control.iteration_games(),
            positions: control.positions(),
            due: control.newest_due(),
            published_iteration: control.published_iteration(),
            champion: control.champion(),
            generation: control.generation(),
            newest_generation: control.generation(),
            gates: gates as u32,
            gate,
            streak: control.streak().0,
            waiting: control.waiting().collect(),
            ratings: RatingState::default(),
            leases: control.leases().cloned().collect(),
            steering: control.steering().clone(),
        };
        let (restored, effects) = Control::restore(make(), snapshot, history.now_ms).unwrap();
        prop_assert_eq!(effects, vec![]);
        let mut twin = History::new(make());
        twin.control = restored;
        twin.now_ms = history.now_ms;
        twin.serial = history.serial;
        twin.published = history.published;
        twin.issued.clone_from(&history.issued);
        twin.delivered.clone_from(&history.delivered);
        history.effects.clear();
        // Time limits start afresh and shares are counted anew, so only deliveries are compared.
        for op in after.into_iter().filter(|op| matches!(op, Op::Deliver(..) | Op::Publish | Op::Return(_))) {
            history.play(op.clone());
            twin.play(op);
        }
        prop_assert_eq!(history.effects, twin.effects);
    }
}

#[test]
fn lapsed_pairs_are_handed_on_and_late_games_are_kept_but_not_counted() {
    let mut history = History::new(rules(vec![row(0, 1)], fixed(2, 0.5).into(), 1));
    history.play(Op::Ask(1));
    history.play(Op::Deliver(0, 0, GameScore::Win, 5));
    history.play(Op::Publish);
    history.play(Op::Ask(1));
    let first = history.issued[1].clone();
    assert!(
        matches!(&first.work, Work::Match { pairs, .. } if pairs == &[0]),
        "{first:?}"
    );
    history.play(Op::Deliver(1, 0, GameScore::Win, 0));
    history.play(Op::Wait(30_000));
    assert!(history.effects.contains(&Effect::LeaseClosed {
        lease: first.id,
        end: LeaseEnd::Lapsed
    }));
    // The gate has had its share of the games, so self-play is served before the pair is handed on.
    history.play(Op::Ask(2));
    history.play(Op::Ask(2));
    let second = history.issued.len() - 1;
    assert!(matches!(history.issued[second - 1].work, Work::SelfPlay { .. }));
    assert!(matches!(&history.issued[second].work, Work::Match { pairs, .. } if pairs == &[0]));
    history.play(Op::Deliver(1, 1, GameScore::Win, 0));
    assert_eq!(history.logs.last().unwrap().1.standing, Standing::Late);
    history.play(Op::Deliver(second, 0, GameScore::Loss, 0));
    history.play(Op::Deliver(second, 1, GameScore::Loss, 0));
    assert_eq!(history.control.generation(), 0);
    assert!(history.effects.iter().any(|effect| matches!(
        effect,
        Effect::GateDecided {
            outcome: Outcome::Rejected,
            evidence,
            ..
        } if (evidence.tally.losses, evidence.tally.wins) == (2, 0)
    )));
}

#[test]
fn a_match_takes_half_of_what_is_handed_out() {
    let mut history = History::new(rules(vec![row(0, 1)], fixed(400, 0.55).into(), 1));
    history.play(Op::Ask(1));
    history.play(Op::Deliver(0, 0, GameScore::Win, 5));
    history.play(Op::Publish);
    for _ in 0..40 {
        history.play(Op::Ask(1));
    }
    let games = |matches: bool| -> u32 {
        let of_kind = |lease: &&Lease| matches!(lease.work, Work::Match { .. }) == matches;
        history.issued[1..]
            .iter()
            .filter(of_kind)
            .map(|lease| lease.games)
            .sum()
    };
    let (of_match, of_self_play) = (games(true), games(false));
    assert!(
        of_match.abs_diff(of_self_play) <= 8,
        "{of_match} match games, {of_self_play} self-play games"
    );
}

#[test]
fn self_play_under_way_stays_within_what_is_wanted_and_a_match_does_not_wait_for_it() {
    let mut history = History::new(rules(vec![row(0, 100)], fixed(20, 0.55).into(), 1));
    let ask = |history: &mut History, serial: u8, self_play_max: u32| {
        history.step(Event::WorkAsked {
            actor: ActorId(0),
            lease: LeaseId([serial; 16]),
            games_per_minute: 60.0,
            self_play_max,
            rating_players: Vec::new(),
        })
    };
    let games = |effects: &[Effect]| match effects {
        [Effect::LeaseIssued(lease)] => lease.games,
        [Effect::NoWork { .. }] => 0,
        other => panic!("not an answer to an actor: {other:?}"),
    };
    // 90 s at 60 games a minute would be 90 games.
    assert_eq!(games(&ask(&mut history, 1, 50)), 50);
    assert_eq!(games(&ask(&mut history, 2, 60)), 10);
    assert_eq!(games(&ask(&mut history, 3, 60)), 0);

    let lease = LeaseId([1; 16]);
    for _ in 0..100 {
        history.step(Event::SelfPlayStored { lease, positions: 5 });
    }
    history.play(Op::Publish);
    let wanted = ask(&mut history, 4, 0);
    let [
        Effect::LeaseIssued(Lease {
            work: Work::Match { pairs, .. },
            ..
        }),
    ] = wanted.as_slice()
    else {
        panic!("the match waits for self-play: {wanted:?}");
    };
    assert_eq!(pairs.len(), 10, "nobody else wants the actor");
}

#[test]
fn a_gate_without_rule_promotes_at_once_and_waiting_candidates_give_way() {
    let publish = |control: &mut Control, n: u8, iteration| {
        control.step(
            Event::CandidatePublished(Candidate {
                model: ModelId([n; 32]),
                iteration,
            }),
            0,
        )
    };
    let mut open = start(rules(vec![row(0, 1)], GateRule::None, 1));
    let effects = publish(&mut open, 1, 1);
    assert!(
        matches!(effects[..], [Effect::Promoted { generation: 1, .. }]),
        "{effects:?}"
    );

    let mut gated = start(rules(vec![row(0, 1)], fixed(2, 0.5).into(), 1));
    let effects = publish(&mut gated, 1, 1);
    assert!(
        matches!(effects[..], [Effect::GateWanted { gate: GateId(1), .. }]),
        "{effects:?}"
    );
    assert_eq!(publish(&mut gated, 2, 2), []);
    assert_eq!(publish(&mut gated, 3, 3), [Effect::Superseded(ModelId([2; 32]))]);
    assert!(gated.waiting().map(|waiting| waiting.model).eq([ModelId([3; 32])]));
}

/// Chance that a fair coin thrown `n` times shows heads at least `k` times.
fn fair_tail(n: u32, k: u32) -> f64 {
    let choose = |k: u32| (0..k).fold(1.0, |c, i| c * f64::from(n - i) / f64::from(i + 1));
    (k..=n).map(choose).sum::<f64>() / 2f64.powi(n as i32)
}

fn play_pairs(rule: FixedRule, mut score: impl FnMut() -> GameScore) -> Decision {
    let mut log = Vec::new();
    for pair in 0..rule.pairs {
        for leg in Leg::BOTH {
            let (lease, score) = (LeaseId([0; 16]), score());
            log.push(LogEntry {
                lease,
                pair,
                leg,
                score,
                standing: Standing::Counts,
            });
        }
    }
    recount(rule, &log).1.expect("all pairs are played")
}

#[test]
fn equal_players_pass_as_often_as_the_binomial_says_exactly() {
    // Every course of 5 pairs without draws, each as likely as the others.
    for (needed, heads) in [
        (Needed::AtLeast(0.55), 6),
        (Needed::MoreThan(0.6), 7),
        (Needed::AtLeast(0.5), 5),
        (Needed::AtLeast(1.0), 10),
    ] {
        let rule = FixedRule::new(10, needed).unwrap();
        let promoted = (0u32..1024).filter(|course| {
            let mut bits = *course;
            let decision = play_pairs(rule, || {
                let win = bits & 1 == 1;
                bits >>= 1;
                if win { GameScore::Win } else { GameScore::Loss }
            });
            decision == Decision::Promote
        });
        assert_eq!(promoted.count() as f64 / 1024.0, fair_tail(10, heads), "{needed:?}");
    }
}

#[test]
fn simulated_gates_of_equal_players_agree_with_the_binomial() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(11);
    let rule = fixed(60, 0.55);
    let gates = 4_000;
    let win = |rng: &mut Xoshiro256PlusPlus| {
        if rng.random::<bool>() {
            GameScore::Win
        } else {
            GameScore::Loss
        }
    };
    let promoted = (0..gates)
        .filter(|_| play_pairs(rule, || win(&mut rng)) == Decision::Promote)
        .count();
    let expected = fair_tail(60, 33);
    let sigma = (expected * (1.0 - expected) / f64::from(gates)).sqrt();
    let seen = promoted as f64 / f64::from(gates);
    assert!(
        (seen - expected).abs() < 4.0 * sigma,
        "{seen} of the gates promote, the binomial says {expected}"
    );
}

#[test]
fn only_self_play_from_before_the_gate_is_wanted_back_and_only_while_pairs_wait() {
    let rule = fixed(4, 0.5).into();
    let mut control = start(rules(vec![row(0, 1)], rule, 1));
    let (first, second) = (ActorId(1), ActorId(2));
    let mut serial = 0;
    let mut ask = |control: &mut Control, actor| {
        serial += 1;
        let event = Event::WorkAsked {
            actor,
            lease: LeaseId([serial; 16]),
            games_per_minute: 1.0,
            self_play_max: u32::MAX,
            rating_players: Vec::new(),
        };
        match control.step(event, 0).pop() {
            Some(Effect::LeaseIssued(lease)) => lease,
            other => panic!("{other:?}"),
        }
    };
    let wanted = |control: &Control, actor| control.wanted_back(actor).collect::<Vec<_>>();
    let early = ask(&mut control, first);
    let others = ask(&mut control, second);
    control.step(
        Event::SelfPlayStored {
            lease: LeaseId([99; 16]),
            positions: 5,
        },
        0,
    );
    let candidate = Candidate {
        model: ModelId([1; 32]),
        iteration: 1,
    };
    control.step(Event::CandidatePublished(candidate), 0);
    assert_eq!(wanted(&control, first), [], "the gate is not open yet");
    control.step(
        Event::GateDrawn {
            gate: GateId(1),
            openings: Openings::distinct(2),
            pool: Vec::new(),
        },
        0,
    );
    assert_eq!(wanted(&control, first), [early.id]);
    assert_eq!(wanted(&control, second), [others.id]);

    control.step(Event::LeaseReturned(early.id), 0);
    assert_eq!(wanted(&control, first), []);
    let pair = ask(&mut control, first);
    assert!(!pair.is_self_play());
    // The share is self-play's now: what it gets it keeps.
    let share = ask(&mut control, first);
    assert!(share.is_self_play());
    assert_eq!(wanted(&control, first), []);
    assert_eq!(wanted(&control, second), [others.id]);
    while ask(&mut control, first).is_self_play() {}
    assert_eq!(wanted(&control, second), [], "no pair waits any more");
    control.step(Event::LeaseReturned(pair.id), 0);
    assert_eq!(wanted(&control, second), [others.id], "one waits again");
}
