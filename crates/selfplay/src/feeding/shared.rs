//! One evaluator for several threads, which take turns.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use tengen_inference::Outputs;

use crate::evaluator::{EvaluateError, Evaluator};
use crate::model::ModelBytes;

/// An evaluator that several threads share: each holds a clone. While one's batch is evaluated, the others walk their
/// trees, and who comes first is served first.
///
/// A mutex alone would not do: the thread that lets go of it may take it again before the one that waited is awake. Then
/// one half of the games would run ahead while the other stands still, and nothing would be gained by having two.
pub struct Shared<E>(Arc<Set<E>>);

struct Set<E> {
    turns: Turns,
    evaluator: Mutex<E>,
}

impl<E> Shared<E> {
    /// The first holder.
    pub fn new(evaluator: E) -> Shared<E> {
        Shared(Arc::new(Set {
            turns: Turns::default(),
            evaluator: Mutex::new(evaluator),
        }))
    }

    /// What `look` sees in the evaluator, when its turn has come.
    pub fn look<T>(&self, look: impl FnOnce(&E) -> T) -> T {
        let _turn = self.0.turns.wait(self.0.turns.draw());
        look(&self.evaluator())
    }

    /// A batch is filled anew and its answers are overwritten, so a panic in an evaluation leaves nothing half done that
    /// the next one would use.
    fn evaluator(&self) -> MutexGuard<'_, E> {
        self.0.evaluator.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<E> Clone for Shared<E> {
    fn clone(&self) -> Shared<E> {
        Shared(Arc::clone(&self.0))
    }
}

impl<E: Evaluator> Evaluator for Shared<E> {
    /// Waits for its turn first.
    fn evaluate(
        &mut self,
        model: &Arc<ModelBytes>,
        planes: &[u8],
        n: usize,
        out: &mut Outputs,
    ) -> Result<(), EvaluateError> {
        let _turn = self.0.turns.wait(self.0.turns.draw());
        self.evaluator().evaluate(model, planes, n, out)
    }
}

/// Who may go now: tickets are numbered as they are drawn, and served by number.
#[derive(Default)]
struct Turns {
    tickets: Mutex<Tickets>,
    changed: Condvar,
}

#[derive(Default)]
struct Tickets {
    /// The number that is drawn next.
    next: u64,
    /// The number whose turn it is.
    serving: u64,
}

/// A turn. It ends when this is dropped, also by a panic.
struct Turn<'a>(&'a Turns);

impl Turns {
    /// A place in the queue. It must be waited for, or nobody behind it is served.
    fn draw(&self) -> u64 {
        let mut tickets = self.lock();
        let ticket = tickets.next;
        tickets.next += 1;
        ticket
    }

    /// Waits until it is this ticket's turn.
    fn wait(&self, ticket: u64) -> Turn<'_> {
        let waiting = self
            .changed
            .wait_while(self.lock(), |tickets| tickets.serving != ticket);
        drop(waiting.unwrap_or_else(PoisonError::into_inner));
        Turn(self)
    }

    /// Every change under the lock is complete in itself.
    fn lock(&self) -> MutexGuard<'_, Tickets> {
        self.tickets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.lock().serving += 1;
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::mpsc::sync_channel;

    use super::*;
    use crate::evaluator::UniformEvaluator;

    /// A thread whose turn has ended draws again behind those that wait: it never has two turns while another has none.
    #[test]
    fn who_comes_first_is_served_first_whoever_is_awake_first() {
        let turns = Turns::default();
        let tickets: Vec<u64> = (0..6).map(|_| turns.draw()).collect();
        let (served, order) = sync_channel(tickets.len());
        std::thread::scope(|scope| {
            // The last to come is the first to look whether it may go.
            for &ticket in tickets.iter().rev() {
                let (turns, served) = (&turns, served.clone());
                scope.spawn(move || {
                    let _turn = turns.wait(ticket);
                    served.send(ticket).expect("the test listens");
                });
            }
        });
        drop(served);
        assert_eq!(order.iter().collect::<Vec<u64>>(), tickets);
    }

    /// Panics when it is asked for the first time.
    struct PanicsOnce(bool);

    impl Evaluator for PanicsOnce {
        fn evaluate(
            &mut self,
            model: &Arc<ModelBytes>,
            planes: &[u8],
            n: usize,
            out: &mut Outputs,
        ) -> Result<(), EvaluateError> {
            assert!(std::mem::replace(&mut self.0, true), "the first evaluation fails");
            UniformEvaluator { actions: 3 }.evaluate(model, planes, n, out)
        }
    }

    #[test]
    fn a_panic_in_one_half_does_not_keep_the_other_waiting() {
        let mut first = Shared::new(PanicsOnce(false));
        let mut second = first.clone();
        let (model, mut out) = (ModelBytes::new(vec![1]), Outputs::default());
        let failed = catch_unwind(AssertUnwindSafe(|| first.evaluate(&model, &[0], 1, &mut out)));
        assert!(failed.is_err());
        second.evaluate(&model, &[0, 0], 2, &mut out).expect("an answer");
        assert_eq!(out.len(), 2);
        assert!(second.look(|evaluator| evaluator.0));
    }
}
