//! Laws of steering: what is paused does not begin, what is pinned is not promoted, what is stale changes nothing.

use std::collections::BTreeMap;

use proptest::prelude::*;
use tengen_control::rating::{PlayerId, RatingRules, RatingState};
use tengen_control::{
    Activity, ActorId, Candidate, Control, Effect, Event, FixedRule, GameScore, GateId, GatePlay, GateRule, Lease,
    LeaseId, LeaseRules, Leg, MatchRule, ModelId, Needed, Openings, Order, OrderRefused, Queue, Row, Rules, Schedule,
    Seen, SeenGate, Snapshot, Steering, Then, Work,
};

fn rules(gate: GateRule, games: u32) -> Rules {
    let row = Row {
        from_iteration: 0,
        simulations: 16,
        games,
    };
    Rules {
        schedule: Schedule::new(vec![row]).expect("a good schedule"),
        candidate_every: 1,
        gate,
        queue: Queue::Replace,
        gate_share: 0.5,
        actor_share: 0.5,
        leases: LeaseRules::default(),
        ratings: RatingRules::default(),
    }
}

fn fixed(games: u32) -> GateRule {
    in_a_row(games, 1)
}

/// A gate of so many games that so many successive candidates must pass.
fn in_a_row(games: u32, in_a_row: u32) -> GateRule {
    GateRule::Play(GatePlay {
        rule: MatchRule::Fixed(FixedRule::new(games, Needed::AtLeast(0.55)).expect("a good rule")),
        in_a_row,
        pool: None,
    })
}

/// A run that is steered, with everything its store would know.
struct Run {
    control: Control,
    serial: u8,
    published: u8,
    leases: Vec<Lease>,
    /// Generations by champion, the first one's included.
    champions: BTreeMap<ModelId, u32>,
    effects: Vec<Effect>,
    rating_players: Vec<PlayerId>,
}

impl Run {
    fn new(rules: Rules) -> Run {
        let (control, effects) = Control::restore(rules, Snapshot::new(ModelId([0; 32])), 0).expect("good rules");
        assert_eq!(effects, []);
        Run {
            control,
            serial: 0,
            published: 0,
            leases: Vec::new(),
            champions: [(ModelId([0; 32]), 0)].into(),
            effects: Vec::new(),
            rating_players: Vec::new(),
        }
    }

    /// Carries out effects as the coordinator does, and keeps them.
    fn take(&mut self, effects: Vec<Effect>) -> Vec<Effect> {
        let mut all = effects;
        let mut next = 0;
        while next < all.len() {
            match all[next].clone() {
                Effect::GateWanted { gate, play, .. } => {
                    let drawn = Event::GateDrawn {
                        gate,
                        openings: Openings::distinct(play.rule.pairs()),
                        pool: Vec::new(),
                    };
                    all.extend(self.control.step(drawn, 0));
                }
                Effect::LeaseIssued(lease) => self.leases.push(lease),
                Effect::Promoted { model, generation, .. } => _ = self.champions.insert(model, generation),
                _ => {}
            }
            next += 1;
        }
        self.effects.extend(all.iter().cloned());
        all
    }

    fn step(&mut self, event: Event) -> Vec<Effect> {
        let effects = self.control.step(event, 0);
        self.take(effects)
    }

    fn order(&mut self, order: Order) -> Result<Vec<Effect>, OrderRefused> {
        let effects = self.control.steer(order)?;
        Ok(self.take(effects))
    }

    fn ask(&mut self) -> Effect {
        self.serial = self.serial.wrapping_add(1);
        let event = Event::WorkAsked {
            actor: ActorId(1),
            lease: LeaseId([self.serial; 16]),
            games_per_minute: 4.0,
            self_play_max: u32::MAX,
            rating_players: self.rating_players.clone(),
        };
        self.step(event).swap_remove(0)
    }

    /// Delivers every game of the oldest lease; the candidate's pairs end like this.
    fn deliver(&mut self, score: GameScore) {
        if self.leases.is_empty() {
            return;
        }
        let lease = self.leases.remove(0);
        match &lease.work {
            Work::SelfPlay { .. } => (0..lease.games).for_each(|_| self.store(lease.id)),
            Work::Match { gate, pairs, .. } => {
                for (&pair, leg) in pairs.iter().flat_map(|pair| Leg::BOTH.map(|leg| (pair, leg))) {
                    self.step(Event::MatchStored {
                        lease: lease.id,
                        gate: *gate,
                        pair,
                        leg,
                        score,
                    });
                }
            }
            Work::Rating { .. } => (0..lease.games).for_each(|_| _ = self.step(Event::RatingStored(lease.id))),
        }
    }

    fn publish(&mut self) -> Option<ModelId> {
        let iteration = self.control.iteration();
        if !self.control.wants_candidate(iteration) {
            return None;
        }
        self.published += 1;
        let model = ModelId([self.published; 32]);
        self.step(Event::CandidatePublished(Candidate { model, iteration }));
        Some(model)
    }

    /// Plays an iteration, its gate's games apart, and publishes its candidate.
    fn iterate(&mut self) -> ModelId {
        loop {
            if self.control.iteration() > 0
                && let Some(model) = self.publish()
            {
                return model;
            }
            self.store(LeaseId([99; 16]));
        }
    }

    /// Stores one self-play game.
    fn store(&mut self, lease: LeaseId) {
        self.step(Event::SelfPlayStored { lease, positions: 5 });
    }

    /// What there is to be seen now.
    fn seen(&self) -> Seen {
        Seen {
            champion: self.control.champion(),
            gate: Some(self.control.seen_gate()),
        }
    }

    /// Everything that an order could change, in words.
    fn standing(&self) -> String {
        let control = &self.control;
        let leases: Vec<LeaseId> = control.leases().map(|lease| lease.id).collect();
        format!(
            "{:?} {} {:?} {:?} {:?} {leases:?}",
            control.champion(),
            control.generation(),
            control.seen_gate(),
            control.waiting().collect::<Vec<_>>(),
            control.steering()
        )
    }

    /// The run as its store would hand it to the next process.
    fn restored(&self, rules: Rules) -> Control {
        let control = &self.control;
        let snapshot = Snapshot {
            iteration: control.iteration(),
            iteration_games: control.iteration_games(),
            positions: control.positions(),
            due: control.newest_due(),
            published_iteration: control.published_iteration(),
            champion: control.champion(),
            generation: control.generation(),
            newest_generation: *self.champions.values().max().expect("the first champion"),
            gates: match control.seen_gate() {
                SeenGate::Open(gate) => gate.0,
                SeenGate::None => self.gates(),
            },
            gate: control.gate().cloned(),
            streak: control.streak().0,
            waiting: control.waiting().collect(),
            ratings: RatingState::default(),
            leases: control.leases().cloned().collect(),
            steering: control.steering().clone(),
        };
        Control::restore(rules, snapshot, 0).expect("good rules").0
    }

    fn gates(&self) -> u32 {
        let opened = self.effects.iter();
        opened
            .filter(|effect| matches!(effect, Effect::GateWanted { .. }))
            .count() as u32
    }
}

const REASON: &str = "by hand";

fn promote(model: ModelId, seen: Seen) -> Order {
    let reason = REASON.to_owned();
    Order::Promote { model, seen, reason }
}

fn reject(model: ModelId, seen: Seen) -> Order {
    let reason = REASON.to_owned();
    Order::Reject { model, seen, reason }
}

fn roll_back(model: ModelId, generation: u32, seen: Seen, then: Then) -> Order {
    Order::RollBack {
        model,
        generation,
        seen,
        reason: REASON.to_owned(),
        then,
    }
}

/// What may happen next; numbers pick among what there is.
#[derive(Clone, Debug)]
enum Op {
    Ask,
    Deliver(GameScore),
    Publish,
    Set(Activity, bool),
    Pin(bool),
    Promote(usize),
    Reject(usize),
    RollBack(usize),
}

fn op() -> impl Strategy<Value = Op> {
    let activity = prop_oneof![
        Just(Activity::SelfPlay),
        Just(Activity::Training),
        Just(Activity::Gating)
    ];
    let score = prop_oneof![Just(GameScore::Win), Just(GameScore::Draw), Just(GameScore::Loss)];
    prop_oneof![
        6 => Just(Op::Ask),
        6 => score.prop_map(Op::Deliver),
        3 => Just(Op::Publish),
        2 => (activity, any::<bool>()).prop_map(|(activity, on)| Op::Set(activity, on)),
        1 => any::<bool>().prop_map(Op::Pin),
        1 => any::<usize>().prop_map(Op::Promote),
        1 => any::<usize>().prop_map(Op::Reject),
        1 => any::<usize>().prop_map(Op::RollBack),
    ]
}

impl Run {
    /// Plays one op; true when people gave an order.
    fn play(&mut self, op: &Op) -> bool {
        let published = usize::from(self.published).max(1);
        let pick = |n: usize| ModelId([(n % published) as u8 + 1; 32]);
        let order = match *op {
            Op::Ask => {
                self.ask();
                return false;
            }
            Op::Deliver(score) => {
                self.deliver(score);
                return false;
            }
            Op::Publish => {
                self.publish();
                return false;
            }
            Op::Set(activity, true) => Order::Pause(activity),
            Op::Set(activity, false) => Order::Resume(activity),
            Op::Pin(true) => Order::Pin(self.seen()),
            Op::Pin(false) => Order::Unpin(self.seen()),
            Op::Promote(n) if self.published > 0 && !self.champions.contains_key(&pick(n)) => {
                promote(pick(n), self.seen())
            }
            Op::Reject(n) => reject(pick(n), self.seen()),
            Op::Promote(n) | Op::RollBack(n) => {
                let earlier: Vec<_> = self.champions.iter().collect();
                let (&model, &generation) = earlier[n % earlier.len()];
                roll_back(model, generation, self.seen(), Then::GoOn)
            }
        };
        // Refused when the picked one is champion already, or no candidate.
        let _ = self.order(order);
        true
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn what_is_paused_does_not_begin_and_nobody_but_people_changes_a_pinned_champion(
        ops in proptest::collection::vec(op(), 0..120),
    ) {
        let mut run = Run::new(rules(fixed(4), 6));
        let (mut champion, mut newest) = (ModelId([0; 32]), 0);
        for op in ops {
            let before: Steering = run.control.steering().clone();
            let from = run.effects.len();
            let by_hand = run.play(&op);
            let after = run.control.steering().clone();
            for effect in &run.effects[from..] {
                match effect {
                    Effect::LeaseIssued(lease) => {
                        let activity = if lease.is_self_play() { Activity::SelfPlay } else { Activity::Gating };
                        prop_assert!(!before.paused.contains(&activity), "{effect:?}");
                        if let Work::SelfPlay { model, .. } = &lease.work {
                            prop_assert_eq!(*model, run.control.champion());
                        }
                    }
                    Effect::GateWanted { champion: met, .. } => {
                        prop_assert!(!after.paused.contains(&Activity::Gating), "{effect:?}");
                        prop_assert_eq!(*met, run.control.champion());
                    }
                    Effect::Promoted { model, generation, previous, .. } => {
                        prop_assert!(by_hand || !before.pinned, "{effect:?}");
                        prop_assert_eq!((*previous, *generation), (champion, newest + 1));
                        (champion, newest) = (*model, *generation);
                    }
                    Effect::RolledBack { model, previous, .. } => {
                        prop_assert_eq!(*previous, champion);
                        prop_assert!(run.champions.contains_key(model));
                        champion = *model;
                    }
                    Effect::Held { .. } => prop_assert!(before.pinned, "{effect:?}"),
                    _ => {}
                }
            }
            prop_assert_eq!(run.control.champion(), champion);
            prop_assert_eq!(run.control.generation(), run.champions[&champion]);
        }
    }

    #[test]
    fn every_candidate_is_in_one_place_until_its_fate_is_told_once(ops in proptest::collection::vec(op(), 0..120)) {
        let mut run = Run::new(rules(fixed(4), 6));
        for op in ops {
            run.play(&op);
            for n in 1..=run.published {
                let model = ModelId([n; 32]);
                let settled = run.effects.iter().filter(|effect| match effect {
                    Effect::GateDecided { candidate, .. } => *candidate == model,
                    Effect::Superseded(gone) | Effect::Rejected { model: gone, .. } => *gone == model,
                    _ => false,
                });
                let promoted = run.champions.contains_key(&model);
                let waits = run.control.waiting().any(|waiting| waiting.model == model);
                let gating = run.control.gate().is_some_and(|gate| gate.candidate().model == model);
                let places = usize::from(waits) + usize::from(gating) + settled.count();
                prop_assert!(places == 1 || (places == 0 && promoted), "{model:?}: {places} places");
            }
        }
    }

    #[test]
    fn a_restored_run_is_steered_like_one_that_never_stopped(
        before in proptest::collection::vec(op(), 0..80),
        after in proptest::collection::vec(op(), 0..40),
    ) {
        let make = || rules(fixed(4), 6);
        let mut run = Run::new(make());
        before.iter().for_each(|op| _ = run.play(op));
        let mut twin = Run {
            control: run.restored(make()),
            leases: run.leases.clone(),
            champions: run.champions.clone(),
            effects: run.effects.clone(),
            ..Run::new(make())
        };
        (twin.serial, twin.published) = (run.serial, run.published);
        prop_assert_eq!(run.standing(), twin.standing());
        // A restart counts the shares of a gate anew, so what is handed out is not compared.
        for op in after.iter().filter(|op| !matches!(op, Op::Ask)) {
            run.play(op);
            twin.play(op);
            prop_assert_eq!(run.standing(), twin.standing());
        }
        prop_assert_eq!(run.effects, twin.effects);
    }
}

#[test]
fn of_two_orders_about_the_same_champion_one_wins_and_the_other_is_told_both() {
    let mut run = Run::new(rules(fixed(4), 1));
    let first = run.iterate();
    let second = run.iterate();
    let seen = run.seen();
    run.order(promote(first, seen)).expect("it is as it was seen");
    assert_eq!((run.control.champion(), run.control.generation()), (first, 1));
    let before = run.standing();
    let refused = run.order(promote(second, seen)).expect_err("the champion is another");
    assert_eq!(
        refused,
        OrderRefused::Champion {
            expected: ModelId([0; 32]),
            found: first
        }
    );
    assert_eq!(run.standing(), before);
    let other_gate = Seen {
        champion: first,
        gate: Some(SeenGate::Open(GateId(1))),
    };
    let refused = run.order(reject(second, other_gate)).expect_err("the gate is another");
    let found = SeenGate::Open(GateId(2));
    let expected = SeenGate::Open(GateId(1));
    assert_eq!(refused, OrderRefused::Gate { expected, found });
    assert_eq!(run.standing(), before);
}

#[test]
fn rejecting_the_candidate_of_a_gate_closes_it_and_the_one_that_waits_comes_next() {
    let mut run = Run::new(rules(fixed(4), 1));
    let first = run.iterate();
    let lease = loop {
        match run.ask() {
            Effect::LeaseIssued(lease) if !lease.is_self_play() => break lease.id,
            _ => {}
        }
    };
    let second = run.iterate();
    let effects = run.order(reject(first, run.seen())).expect("it is a candidate");
    assert!(
        matches!(effects[0], Effect::GateVoid { gate: GateId(1), .. }),
        "{effects:?}"
    );
    assert!(
        effects
            .iter()
            .any(|effect| matches!(effect, Effect::LeaseClosed { lease: closed, .. } if *closed == lease))
    );
    assert!(
        effects
            .iter()
            .any(|effect| matches!(effect, Effect::Rejected { model, .. } if *model == first))
    );
    let gate = run.control.gate().expect("the next gate");
    assert_eq!((gate.id(), gate.candidate().model), (GateId(2), second));
    let refused = run.order(reject(first, run.seen())).expect_err("it is none any more");
    assert!(
        matches!(refused, OrderRefused::NoCandidate { gating: Some(Candidate { model, .. }), .. } if model == second)
    );
}

#[test]
fn after_a_roll_back_candidates_meet_the_earlier_champion_and_generations_go_on_counting() {
    let mut run = Run::new(rules(fixed(4), 1));
    let first = run.iterate();
    run.order(promote(first, run.seen())).expect("a candidate");
    let second = run.iterate();
    run.order(promote(second, run.seen())).expect("a candidate");
    let third = run.iterate();
    let effects = run
        .order(roll_back(first, 1, run.seen(), Then::Pin))
        .expect("an earlier champion");
    assert!(effects.contains(&Effect::Waits(third)), "{effects:?}");
    assert_eq!((run.control.champion(), run.control.generation()), (first, 1));
    assert!(run.control.steering().pinned);
    let gate = run.control.gate().expect("a new gate");
    assert_eq!(
        (gate.champion_match().plan().opponent, gate.candidate().model),
        (first, third)
    );
    run.order(promote(third, run.seen()))
        .expect("people may, pinned or not");
    assert_eq!(run.control.generation(), 3);
}

#[test]
fn a_candidate_that_passes_while_the_champion_is_pinned_is_held() {
    for rule in [fixed(4), GateRule::None] {
        let mut run = Run::new(rules(rule, 1));
        run.order(Order::Pin(run.seen())).expect("it is as it was seen");
        let candidate = run.iterate();
        while run.control.gate().is_some() {
            run.ask();
            run.deliver(GameScore::Win);
        }
        let held = |effect: &Effect| matches!(effect, Effect::Held { model, .. } if *model == candidate);
        assert!(run.effects.iter().any(held), "{:?}", run.effects);
        assert_eq!(run.control.generation(), 0);
        run.order(Order::Unpin(run.seen())).expect("it goes on");
        run.order(promote(candidate, run.seen())).expect("by hand");
        assert_eq!(run.control.generation(), 1);
    }
}

#[test]
fn rating_matches_pause_with_gating() {
    let ratings = RatingRules {
        share: 0.5,
        pairs: 1,
        openings: 8,
    };
    let make = || Rules {
        ratings,
        ..rules(GateRule::None, 1000)
    };
    let is_rating =
        |effect: &Effect| matches!(effect, Effect::LeaseIssued(lease) if matches!(lease.work, Work::Rating { .. }));
    let play = |paused: bool| {
        let mut run = Run::new(make());
        let ratings = RatingState {
            anchor: Some(PlayerId(0)),
            ..RatingState::default()
        };
        let first = Snapshot {
            ratings,
            ..Snapshot::new(ModelId([0; 32]))
        };
        run.control = Control::restore(make(), first, 0).expect("good rules").0;
        run.rating_players = vec![PlayerId(0), PlayerId(1)];
        if paused {
            run.order(Order::Pause(Activity::Gating)).expect("it goes on");
        }
        (0..8).filter(|_| is_rating(&run.ask())).count()
    };
    assert!(play(false) > 0);
    assert_eq!(play(true), 0);
}

#[test]
fn a_row_of_passes_that_ends_at_a_pinned_champion_begins_anew() {
    let mut run = Run::new(rules(in_a_row(4, 2), 1));
    run.order(Order::Pin(run.seen())).expect("it is as it was seen");
    for streak in [1, 0, 1] {
        run.iterate();
        while run.control.gate().is_some() {
            run.ask();
            run.deliver(GameScore::Win);
        }
        assert_eq!(run.control.streak(), (streak, 2));
    }
    assert_eq!(run.control.generation(), 0);
}

#[test]
fn a_gate_in_progress_keeps_how_many_must_pass_and_the_next_one_asks_for_more() {
    let mut run = Run::new(rules(in_a_row(4, 1), 1));
    for (asked, generation) in [(3, 1), (3, 1)] {
        run.iterate();
        run.control.follow(rules(in_a_row(4, asked), 1)).expect("good rules");
        let restored = run.restored(rules(in_a_row(4, asked), 1));
        assert_eq!(restored.streak(), run.control.streak());
        while run.control.gate().is_some() {
            run.ask();
            run.deliver(GameScore::Win);
        }
        assert_eq!(run.control.generation(), generation);
    }
    assert_eq!(run.control.streak(), (1, 3));
}

#[test]
fn a_closed_gate_leaves_its_candidate_first_in_the_queue() {
    let mut run = Run::new(Rules {
        queue: Queue::Wait,
        ..rules(fixed(4), 1)
    });
    let published: Vec<ModelId> = (0..4).map(|_| run.iterate()).collect();
    run.order(promote(published[2], run.seen())).expect("it waits");
    let gating = run.control.gate().map(|gate| gate.candidate().model);
    assert_eq!(gating, Some(published[0]));
    let waiting: Vec<ModelId> = run.control.waiting().map(|candidate| candidate.model).collect();
    assert_eq!(waiting, [published[1], published[3]]);
    run.order(reject(published[3], run.seen())).expect("it waits");
    assert_eq!(run.control.waiting().len(), 1);
}

#[test]
fn an_ended_run_hands_out_nothing_wants_no_candidate_and_takes_no_order() {
    let mut run = Run::new(rules(fixed(4), 1));
    run.iterate();
    run.ask();
    let out = run.leases.len();
    let reason = REASON.to_owned();
    let effects = run.order(Order::End { reason }).expect("it goes on until then");
    assert!(matches!(effects[0], Effect::GateVoid { .. }), "{effects:?}");
    assert!(matches!(
        run.ask(),
        Effect::NoWork {
            reason: "the run has ended",
            ..
        }
    ));
    assert_eq!(run.leases.len(), out);
    // Games under way are still taken, and end iterations.
    let iteration = run.control.iteration();
    run.store(LeaseId([99; 16]));
    assert_eq!(run.control.iteration(), iteration + 1);
    assert!(!run.control.wants_candidate(iteration + 1));
    assert_eq!(run.order(Order::Unpin(run.seen())), Err(OrderRefused::Ended));
    let again = run.restored(rules(fixed(4), 1));
    assert!(again.steering().ended && again.gate().is_none());
}

#[test]
fn other_rules_hold_at_once_and_a_gate_in_progress_keeps_its_own() {
    let mut run = Run::new(rules(fixed(4), 10));
    run.store(LeaseId([99; 16]));
    let effects = run.control.follow(rules(fixed(8), 1)).expect("good rules");
    assert!(
        matches!(effects[0], Effect::IterationEnded { iteration: 0, .. }),
        "{effects:?}"
    );
    run.publish().expect("it is due");
    run.control.follow(rules(GateRule::None, 1)).expect("good rules");
    assert_eq!(
        run.control.gate().map(|gate| gate.champion_match().rule().pairs()),
        Some(4)
    );
    let bad = Rules {
        candidate_every: 0,
        ..rules(fixed(8), 1)
    };
    run.control.follow(bad).expect_err("no good rules");
    assert_eq!(run.control.row().games, 1);
}

#[test]
fn networks_from_elsewhere_are_news_until_the_run_has_one_of_its_own() {
    let mut run = Run::new(rules(fixed(2), 4));
    let first = run.publish().expect("a start from elsewhere");
    assert_eq!(run.control.gate().map(|gate| gate.candidate().model), Some(first));
    assert!(run.control.wants_candidate(0), "another one may come after it");
    assert!(!run.control.wants_candidate(1), "the first iteration goes on");
    assert_eq!(run.control.published_iteration(), 0);
    run.iterate();
    assert!(run.control.published_iteration() > 0 && !run.control.wants_candidate(0));
}
