//! Many flights on one thread, their leaves evaluated together: the one place where batches are made.

use std::sync::Arc;

use tengen_games::{Game, Outcome, State};
use tengen_inference::Outputs;
use tengen_records::ModelId;
use tengen_search::Evaluation;

use crate::cache::{EvaluationCache, Key};
use crate::driver::{Counters, DriverError, DriverOptions};
use crate::evaluator::{EvaluateError, Evaluator};
use crate::flight::{Flight, Step};
use crate::model::ModelBytes;
use crate::symmetry::Lens;

/// A flight with the models it plays with and whatever its owner wants to know it by.
pub(crate) struct Entry<G: Game, T> {
    /// The owner's note.
    pub(crate) tag: T,
    /// The models that the flight's indexes point into.
    pub(crate) models: Vec<Arc<ModelBytes>>,
    /// The game.
    pub(crate) flight: Flight<G>,
}

impl<G: Game, T> Entry<G, T> {
    /// The model that its waiting leaves are for; `None` when none wait.
    fn model(&self) -> Option<&Arc<ModelBytes>> {
        self.flight.model().map(|model| &self.models[model.index()])
    }
}

/// Flights that share their batches. A round takes no memory beyond what flights take that end a search or a game: what it
/// needs is kept from round to round.
pub(crate) struct Pool<G: Game, E, T> {
    planes_len: usize,
    actions: usize,
    evaluator: E,
    options: DriverOptions,
    entries: Vec<Entry<G, T>>,
    counters: Counters,
    /// Plies of all flights that are in the pool.
    plies_in_flight: u64,
    cache: Option<Arc<EvaluationCache>>,
    lens: Lens<G>,
    /// Files of the models that this round's leaves have been evaluated by.
    files: Vec<ModelId>,
    waiting: Vec<Waiting>,
    /// Planes of the batch, one position after the other; as long as the longest batch so far.
    planes: Vec<u8>,
    outputs: Outputs,
    /// Policy logits, then those of win, draw, loss, as the cache knows them.
    known: Vec<f32>,
}

/// A leaf whose planes are in the batch.
struct Waiting {
    entry: usize,
    leaf: usize,
    /// What its answer will be kept under, where there is a cache.
    key: Option<Key>,
    /// Index of the symmetry that its planes are seen through.
    symmetry: u16,
}

impl<G: Game, E: Evaluator, T> Pool<G, E, T> {
    pub(crate) fn new(game: &G, evaluator: E, options: DriverOptions) -> Self {
        Pool {
            planes_len: game.spec().planes_len(),
            actions: game.spec().actions.len(),
            evaluator,
            options,
            entries: Vec::new(),
            counters: Counters::default(),
            plies_in_flight: 0,
            cache: None,
            lens: Lens::new(game.clone()),
            files: Vec::new(),
            waiting: Vec::new(),
            planes: Vec::new(),
            outputs: Outputs::default(),
            known: vec![0.0; game.spec().actions.len() + 3],
        }
    }

    /// Looks answers up in this cache, and keeps them there.
    pub(crate) fn share(&mut self, cache: Arc<EvaluationCache>) {
        self.cache = Some(cache);
    }

    pub(crate) fn evaluator(&self) -> &E {
        &self.evaluator
    }

    pub(crate) fn counters(&self) -> Counters {
        self.counters
    }

    pub(crate) fn plies_in_flight(&self) -> u64 {
        self.plies_in_flight
    }

    pub(crate) fn entries(&self) -> &[Entry<G, T>] {
        &self.entries
    }

    /// Games that may still be pushed.
    pub(crate) fn free(&self) -> usize {
        self.options.games.saturating_sub(self.entries.len())
    }

    pub(crate) fn push(&mut self, entry: Entry<G, T>) {
        self.plies_in_flight += plies(&entry);
        self.entries.push(entry);
    }

    /// Takes out every flight for which `leave` holds, unfinished.
    pub(crate) fn take_out(&mut self, leave: impl FnMut(&mut Entry<G, T>) -> bool) -> Vec<Entry<G, T>> {
        let left: Vec<_> = self.entries.extract_if(.., leave).collect();
        self.plies_in_flight -= left.iter().map(plies).sum::<u64>();
        left
    }

    /// One round: every flight plays on to its next leaves, the leaves are evaluated, the answers backed up. Finished
    /// flights leave the pool through `finished`.
    pub(crate) fn tick(&mut self, mut finished: impl FnMut(Entry<G, T>, Outcome)) -> Result<(), DriverError> {
        let mut at = 0;
        while at < self.entries.len() {
            let entry = &mut self.entries[at];
            let before = plies(entry);
            let step = entry.flight.step(self.options.leaves_per_game);
            let played = plies(entry) - before;
            self.counters.plies += played;
            self.plies_in_flight += played;
            self.counters.searched(entry.flight.take_effort());
            match step? {
                Step::Waiting => at += 1,
                Step::Over(outcome) => {
                    let entry = self.entries.swap_remove(at);
                    self.counters.games += 1;
                    self.plies_in_flight -= plies(&entry);
                    finished(entry, outcome);
                }
            }
        }
        self.files.clear();
        for first in 0..self.entries.len() {
            let Some(model) = self.entries[first].model() else {
                continue;
            };
            if self.files.contains(&model.file_id()) {
                continue;
            }
            self.files.push(model.file_id());
            let model = Arc::clone(model);
            self.evaluate_all(&model, first)?;
        }
        for entry in &mut self.entries {
            entry.flight.end_round();
        }
        Ok(())
    }

    /// Has this model's file evaluate every leaf that waits for it, of the entry `first` and those after it.
    fn evaluate_all(&mut self, model: &Arc<ModelBytes>, first: usize) -> Result<(), DriverError> {
        let file = model.file_id();
        for entry in first..self.entries.len() {
            if self.entries[entry].model().is_none_or(|other| other.file_id() != file) {
                continue;
            }
            for leaf in 0..self.entries[entry].flight.leaves().len() {
                self.ask(model, entry, leaf)?;
                if self.waiting.len() == self.options.batch_max {
                    self.evaluate(model)?;
                }
            }
        }
        self.evaluate(model)
    }

    /// Answers a leaf from the cache, or adds it to the batch.
    fn ask(&mut self, model: &Arc<ModelBytes>, entry: usize, leaf: usize) -> Result<(), DriverError> {
        let at = self.waiting.len() * self.planes_len;
        let end = at + self.planes_len;
        if self.planes.len() < end {
            self.planes.resize(end, 0);
        }
        let flight = &self.entries[entry].flight;
        flight.leaves()[leaf].state.planes(&mut self.planes[at..end]);
        let symmetry = flight.symmetry(leaf);
        let (file, planes) = (model.file_id(), &self.planes[at..end]);
        let key = self.cache.as_ref().map(|_| Key::of(file, planes, symmetry));
        if let (Some(cache), Some(key)) = (&self.cache, key)
            && cache.get(key, &mut self.known)
        {
            self.counters.cache_hits += 1;
            let (policy_logits, wdl) = self.known.split_at(self.actions);
            let wdl_logits = [wdl[0], wdl[1], wdl[2]];
            let answer = Evaluation {
                policy_logits,
                wdl_logits,
            };
            let leaves_max = self.options.leaves_per_game;
            return Ok(self.entries[entry].flight.apply(leaf, &answer, leaves_max)?);
        }
        self.lens.turn(symmetry, &mut self.planes[at..end]);
        self.waiting.push(Waiting {
            entry,
            leaf,
            key,
            symmetry,
        });
        Ok(())
    }

    /// Evaluates the batch, backs the answers up, and empties it.
    fn evaluate(&mut self, model: &Arc<ModelBytes>) -> Result<(), DriverError> {
        let n = self.waiting.len();
        if n == 0 {
            return Ok(());
        }
        let planes = &self.planes[..n * self.planes_len];
        self.evaluator.evaluate(model, planes, n, &mut self.outputs)?;
        check(model, &self.outputs, n, self.actions)?;
        let answers = self
            .outputs
            .policy
            .chunks_exact(self.actions)
            .zip(self.outputs.wdl.chunks_exact(3));
        for (waiting, (policy, wdl)) in self.waiting.drain(..).zip(answers) {
            let Waiting {
                entry,
                leaf,
                key,
                symmetry,
            } = waiting;
            let policy_logits = self.lens.turn_back(symmetry, policy);
            if let (Some(cache), Some(key)) = (&self.cache, key) {
                cache.insert(key, policy_logits, wdl);
            }
            let wdl_logits = [wdl[0], wdl[1], wdl[2]];
            self.entries[entry].flight.apply(
                leaf,
                &Evaluation {
                    policy_logits,
                    wdl_logits,
                },
                self.options.leaves_per_game,
            )?;
        }
        self.counters.evaluations += n as u64;
        self.counters.batches += 1;
        Ok(())
    }
}

/// Plies that a flight has played, opening not included.
fn plies<G: Game, T>(entry: &Entry<G, T>) -> u64 {
    entry.flight.plies().len() as u64
}

/// A network of another game must not reach a tree. (That logits are finite, session and tree check themselves.)
fn check(model: &Arc<ModelBytes>, outputs: &Outputs, n: usize, actions: usize) -> Result<(), EvaluateError> {
    let (policy, wdl) = (&outputs.policy, &outputs.wdl);
    if policy.len() != n * actions || wdl.len() != n * 3 {
        let (policy, wdl) = (policy.len(), wdl.len());
        return Err(EvaluateError::Shape {
            model: model.id(),
            policy,
            wdl,
            positions: n,
            actions,
        });
    }
    Ok(())
}
